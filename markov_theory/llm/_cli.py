"""What the commands of ``python -m markov_theory.llm`` share: one-line errors, progress, atomic files."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.progress import Progress

from markov_theory._command import complain


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Exit with status 2 after one line on standard error."""
        self.exit(2, f"error: {message} (see {self.prog} --help)\n")


def run(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a command; return its status, 2 for a wrong value, 1 for a failure, 130 when interrupted."""
    try:
        return command(options)
    except (ValueError, TypeError) as error:
        return complain(error, 2)
    except (ImportError, OSError, RuntimeError, MemoryError) as error:
        return complain(error, 1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that choose a language model and how it is loaded."""
    add = parser.add_argument
    add("--model", metavar="NAME", help="a folder or a hub id (default: the packaged SmolLM2-135M-Instruct)")
    add("--online", action="store_true", help="allow a hub id to be downloaded")
    add("--device", default="cpu", help="as PyTorch names it (default: cpu)")
    add("--dtype", default="float32", help="float32 (default), bfloat16, float16 or float64")


def load(options: argparse.Namespace) -> Any:
    """Return the language model that the options of `add_model_options` choose; the libraries keep quiet."""
    from markov_theory.llm.model import load_model, require_extra, stay_offline

    stay_offline(options.online)
    os.environ.setdefault("TQDM_DISABLE", "1")
    require_extra()
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return load_model(options.model, device=options.device, dtype=options.dtype, online=options.online)


def number(low: int, also: str = "") -> Callable[[str], int]:
    """Return a reader of whole numbers >= `low` for `argparse`; `also` names what else is admissible."""

    def parse(value: str) -> int:
        try:
            result = int(value.replace(",", ""))
        except ValueError:
            result = low - 1
        if result < low:
            raise argparse.ArgumentTypeError(f"must be a whole number >= {low}{also}, got {value!r}")
        return result

    return parse


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a reporter that draws bars on standard error, or does nothing if that is not a terminal."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def report(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what, total=total)
            bar.update(tasks[what], completed=done)

        yield report


def publish(path: Path, write: Callable[[Path], Any]) -> None:
    """Have `write` make the file in a folder of its own beside `path`, then put it there in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".partial-", dir=path.parent) as folder:
        partial = Path(folder) / path.name
        write(partial)
        partial.replace(path)
