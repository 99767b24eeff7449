"""Measure the sample complexity N*(s) and set it against the theory: ``python -m markov_theory.sweep --s 1..32``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table

from markov_theory.dictionary import Dictionary
from markov_theory.estimators import ESTIMATORS
from markov_theory.plots import sample_complexity_figure, save_figure
from markov_theory.sweep import engine, screen, source
from markov_theory.sweep.grid import parse_range
from markov_theory.sweep.growth import growth_fits
from markov_theory.sweep.specification import Specification, fingerprint
from markov_theory.sweep.store import Store
from markov_theory.sweep.table import cell_table, summary_table, write_table
from markov_theory.sweep.trials import Trials

DEFAULT_ESTIMATORS = "oracle,constrained-kl,kl-pursuit,uniform,smoothed-empirical"
DESCRIPTION = """\
How many observed transitions N of a new token does it take to learn its next-token law q, a mixture of s rows of
a dictionary? For every s and several planted truths the sweep locates N*: the least N of a geometric grid from
which P(KL(q||q_hat) > epsilon) stays at most delta. It prints N* with an interval beside the upper bounds and the
prediction that speak of each estimator, fits the growth in s, and writes every trial (SQLite), the tables (CSV,
Parquet) and a figure (PNG, PDF). A sweep that was stopped goes on where it was when the command is repeated."""
EPILOGUE = """\
examples:
  python -m markov_theory.sweep --s 1..32
  python -m markov_theory.sweep --s 2,4,8 --ratio 10 --gamma 0.1 --epsilon 1e-4
  python -m markov_theory.sweep --dictionary llm --s 1..8
  python -m markov_theory.sweep --dictionary rows.npz --s 1..4 --out results/mine"""


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> Any:
        self.exit(2, f"error: {message}\n")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made, llm = source.DEFAULTS[source.MADE], source.DEFAULTS[source.LLM]
    p = _Parser(
        prog="python -m markov_theory.sweep",
        description=DESCRIPTION,
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = p.add_argument
    add("--s", default="1..32", metavar="RANGE", help="mixed rows s: 1..32, 1,2,4 or 1..32:4 (default 1..32)")
    add(
        "--epsilon",
        type=float,
        metavar="NATS",
        help="accuracy: success is KL(q||q_hat) <= epsilon (default 1e-5)",
    )
    add("--delta", type=float, default=0.05, help="admissible probability of failure (default 0.05)")
    add("--truths", type=int, default=5, help="planted truths at each s (default 5)")
    add(
        "--trials",
        type=int,
        default=4096,
        help="most trials at one N; few are needed where N decides (default 4096)",
    )
    add("--estimators", default=DEFAULT_ESTIMATORS, metavar="NAMES",
        help=f"separated by commas, among {', '.join(ESTIMATORS)} (default {DEFAULT_ESTIMATORS}); "
        "all but the oracle run on fewer s")  # fmt: skip
    add("--seed", type=int, default=0, help="of dictionary, truths and samples (default 0)")
    add(
        "--jobs",
        type=int,
        default=os.cpu_count() or 1,
        help="worker processes; numbers do not depend on it (default: all cores)",
    )
    add(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="results go here (default: a folder under results/ named after the sweep)",
    )
    rows = p.add_argument_group("dictionary")
    add = rows.add_argument
    add("--dictionary", default=source.MADE, metavar="made|llm|FILE",
        help="made to measure (default), a language model's own rows, or a file of rows (.npz with 'transitions', .csv)")  # fmt: skip
    add("--tokens", type=int, metavar="T", help=f"rows (default {made['tokens']}; llm: {llm['tokens']})")
    add(
        "--outcomes",
        type=int,
        metavar="J",
        help=f"outcomes (default {made['outcomes']}; llm: {llm['outcomes']})",
    )
    add("--ratio", type=float, metavar="c", help=f"made: density ratio c > 1 (default {made['ratio']:g})")
    add(
        "--gamma",
        type=float,
        metavar="NATS",
        help="made: margin, the smallest KL between two rows (default: the largest at this ratio)",
    )
    add("--family", help=f"made: well-conditioned or correlated (default {made['family']})")
    add(
        "--context",
        help=f"llm: text before the token whose next-token law is a row (default {llm['context']!r})",
    )
    add(
        "--model",
        help="llm: folder or hub id of a causal language model (default: the packaged SmolLM2-135M)",
    )
    add("--text", metavar="FILE", help="llm: choose the rows by their frequency in this text")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0; 1 a violated bound or a failed cell; 2 wrong input; 130 stopped."""
    arguments = parser().parse_args(argv)
    try:
        return _run(arguments)
    except (ValueError, TypeError, FileNotFoundError, NotADirectoryError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (OSError, RuntimeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130


def _run(arguments: argparse.Namespace) -> int:
    console, errors = Console(), Console(stderr=True)
    if arguments.jobs < 1:
        raise ValueError(f"--jobs must be >= 1, got {arguments.jobs}")
    values = parse_range(arguments.s)
    tables = arguments.out or Path("results") / "tables"
    dictionary = source.dictionary_from(arguments, tables)
    if values[0] < 1 or values[-1] > dictionary.n_tokens:
        raise ValueError(f"--s must lie in [1, {dictionary.n_tokens}] (the dictionary's rows), got {arguments.s}")
    specification = Specification(
        sparsities=values,
        estimators=tuple(dict.fromkeys(name.strip() for name in arguments.estimators.split(","))),
        epsilon=arguments.epsilon if arguments.epsilon is not None else DEFAULT_EPSILON,
        delta=arguments.delta,
        truths=arguments.truths,
        trials=arguments.trials,
        seed=arguments.seed,
        dictionary=fingerprint(dictionary),
    )
    folder = arguments.out or Path("results") / f"sweep-{specification.short_name()}"
    _show_dictionary(console, dictionary)
    store = Store(folder, specification)
    try:
        with (
            engine.local_processes(dictionary, specification, arguments.jobs) as executor,
            screen.progress(errors) as update,
        ):
            outcome = engine.run_sweep(specification, store, executor, update)
        return _report(console, specification, dictionary, outcome, store, folder)
    finally:
        store.close()


def _show_dictionary(console: Console, dictionary: Dictionary) -> None:
    table = Table(title="dictionary", title_justify="left", show_header=False)
    for quantity, value in dictionary.describe():
        table.add_row(quantity, value)
    console.print(table)


def _report(
    console: Console,
    specification: Specification,
    dictionary: Dictionary,
    outcome: engine.Outcome,
    store: Store,
    folder: Path,
) -> int:
    """Write and print the tables, the figure and the fits; return the exit code."""
    for cell, error in outcome.errors.items():
        print(
            f"error: s={cell[0]}, truth {cell[1]}, {cell[2]}: {error}; run the command again to retry",
            file=sys.stderr,
        )
    if not outcome.located:
        return 1
    cells = cell_table(specification, outcome.located, Trials(dictionary, specification).instance)
    summary = summary_table(cells)
    written = [*write_table(cells, folder, "cells"), *write_table(summary, folder, "summary")]
    figure = sample_complexity_figure(summary, specification.epsilon, specification.delta, dictionary.origin)
    written += save_figure(figure, folder, "n_star_against_s")
    for name in dict.fromkeys(cells.estimator):
        console.print(screen.estimator_table(summary, name))
    written.append(_print_fits(console, cells, specification, folder))
    violated = _print_verdicts(console, cells)
    n_trials, inaccurate, seconds = store.totals()
    console.print(f"{n_trials:,} trials, {seconds:.0f} s of work; fits that missed their tolerance: {inaccurate:,}")
    console.print("written: " + ", ".join(str(path) for path in [*written, store.path]), soft_wrap=True)
    return 1 if violated or outcome.errors else 0


def _print_fits(console: Console, cells: pd.DataFrame, specification: Specification, folder: Path) -> Path:
    console.print("growth in s (s = 1 left out; 95 % intervals; small-ε cells only):")
    stored = {}
    for name, group in cells.groupby("estimator", sort=False):
        fits = growth_fits(group, specification.epsilon, specification.delta)
        for fit in fits:
            console.print("  " + screen.fit_line(str(name), fit), soft_wrap=True, highlight=False)
        stored[name] = [asdict(fit) for fit in fits]
    path = folder / "growth.json"
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=False))
    return path


def _print_verdicts(console: Console, cells: pd.DataFrame) -> int:
    """Print how often each upper bound held; return the number of violations."""
    total = 0
    for label in [c for c in cells.columns if c in ("O1", "O2", "S1", "S2", "S6")]:
        spoken = cells[cells[label].notna()]
        if spoken.empty:
            continue
        violated = spoken.violated.str.split().map(lambda labels, label=label: label in labels).sum()
        open_ = spoken.inconclusive.str.split().map(lambda labels, label=label: label in labels).sum()
        slack = (spoken[label] / spoken.n_star.clip(lower=1)).median()
        console.print(
            f"{label}: {len(spoken) - violated - open_} truths hold, {violated} violated, {open_} inconclusive; "
            f"median bound/N* = {slack:.3g}"
        )
        total += int(violated)
    return total


DEFAULT_EPSILON = 1e-5

if __name__ == "__main__":
    sys.exit(main())
