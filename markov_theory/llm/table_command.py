"""The command ``table``: a language model's transition table as a dictionary file, made once and kept."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from markov_theory.dictionary import Dictionary
from markov_theory.llm import _cli

ABOUT = """\
Read the model's own transition table: for the N most frequent whole-word tokens v, the row p(. | context, v)
over the next token. These rows are a dictionary that new tokens are mixed from, in place of a synthetic one:

  python -m markov_theory.llm table --tokens 500 --out rows.npz
  python -m markov_theory.sweep --dictionary rows.npz

The table is kept in the cache folder ($MARKOV_THEORY_CACHE, or ~/.cache/markov_theory); the same arguments
find it again. 2,000 rows take about 20 seconds on one core.
"""


def table(options: argparse.Namespace) -> int:
    """Make the table or find it in the cache, describe it, and return 0."""
    from markov_theory.llm.transitions import table_path

    _check_out(options.out)
    choice: dict[str, Any] = {
        "n_tokens": options.tokens,
        "context": options.context,
        "text": _text(options.text),
        "n_outcomes": options.outcomes,
    }
    language_model = _cli.load(options)
    path = table_path(language_model, **choice)
    dictionary = _stored(path)
    found = dictionary is not None
    if dictionary is None:
        dictionary = _make(language_model, choice, options.batch_size, path)
    if options.out is not None:
        _cli.publish(options.out, lambda partial: shutil.copyfile(path, partial))
    if options.print_path:
        print(path)
        return 0
    _describe(dictionary)
    print(f"{'reused' if found else 'written'}: {path}")
    if options.out is not None:
        print(f"copied to: {options.out}")
    return 0


def add_table(commands: Any) -> None:
    """Add the command to the sub-parsers `commands`."""
    raw = argparse.RawDescriptionHelpFormatter
    summary = "the model's transition table, as a dictionary"
    parser = commands.add_parser("table", help=summary, description=ABOUT, formatter_class=raw)
    parser.set_defaults(run=table)
    add = parser.add_argument
    add("--tokens", type=_cli.number(1), default=2000, metavar="N", help="number of rows (default: 2000)")
    context = "what stands before v; not empty: at position 0 all rows nearly coincide (default: %(default)r)"
    add("--context", default="<|endoftext|> and", metavar="TEXT", help=context)
    text = (
        "count frequencies in this UTF-8 text; a word counts if it is one token there (default: the order of "
        "the tokenizer's merges, which is by frequency, without tokens that the model mostly continues)"
    )
    add("--text", type=Path, metavar="FILE", help=text)
    outcomes = "the J-1 outcomes most probable on average and one for all the rest, or 'all' (default: 2048)"
    add("--outcomes", type=_outcomes, default=2048, metavar="J", help=outcomes)
    add("--batch-size", type=_cli.number(1), default=64, metavar="B", help="rows at once (default: 64)")
    _cli.add_model_options(parser)
    add("--out", type=Path, metavar="FILE", help="copy the table to this .npz file")
    add("--print-path", action="store_true", help="print only the path of the cached file")


def _make(language_model: Any, choice: dict[str, Any], batch_size: int, path: Path) -> Dictionary:
    from markov_theory.llm.transitions import transition_table
    from markov_theory.llm.words import word_tokens

    with _cli.progress() as report:
        made = transition_table(language_model, **choice, batch_size=batch_size, progress=report)
    for reason, names in word_tokens(language_model).excluded.items():
        shown = " ".join(names[:20]) + (" ..." if len(names) > 20 else "")
        print(f"excluded: {reason} ({len(names)}): {shown}", file=sys.stderr)
    _cli.publish(path, made.save)
    return made


def _stored(path: Path) -> Dictionary | None:
    """Return the cached table, or None if there is none or it cannot be read."""
    if not path.is_file():
        return None
    try:
        return Dictionary.load(path)
    except ValueError as error:
        print(f"making the table again: {error}", file=sys.stderr)
        return None


def _describe(dictionary: Dictionary) -> None:
    grid = Table(show_header=False, box=None)
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for quantity, value in dictionary.describe():
        grid.add_row(quantity, value)
    Console(highlight=False, markup=False).print(grid)


def _check_out(path: Path | None) -> None:
    if path is None:
        return
    if path.suffix != ".npz":
        raise ValueError(f"--out must end in .npz, got {str(path)!r}")
    if path.is_dir():
        raise ValueError(f"--out {path} is a folder")


def _text(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"--text {path} is not a UTF-8 text") from None
    except OSError as error:
        raise ValueError(f"--text {path} cannot be read ({error.strerror})") from None


def _outcomes(value: str) -> int | None:
    return None if value == "all" else _cli.number(2, " or 'all'")(value)
