"""Measure the sample complexity N*(s) and set it against the theory: ``python -m markov_theory.sweep --s 1..32``."""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from markov_theory._compile import COMPILED
from markov_theory.dictionary import Dictionary
from markov_theory.sweep import engine, results, screen, source
from markov_theory.sweep.arguments import parser
from markov_theory.sweep.grid import parse_range
from markov_theory.sweep.specification import Specification, fingerprint
from markov_theory.sweep.store import Store
from markov_theory.sweep.table import CellBounds
from markov_theory.sweep.trials import Trials, compile_estimators

HUGE_RATIO = 1e6


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0; 1 a violated bound or a failed cell; 2 wrong input; 130 stopped."""
    arguments = parser().parse_args(argv)
    try:
        try:
            dictionary, specification, store = _prepare(arguments)
        except (ValueError, TypeError, FileNotFoundError, FileExistsError, NotADirectoryError) as error:
            return _complain(error, 2)
        try:
            return _measure(dictionary, specification, store, arguments.jobs)
        finally:
            store.close()
    except (OSError, RuntimeError, ArithmeticError, sqlite3.Error) as error:
        return _complain(error, 1)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130


def _complain(error: Exception, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


def _prepare(arguments: argparse.Namespace) -> tuple[Dictionary, Specification, Store]:
    """Check everything that can be wrong before anything is written."""
    if arguments.jobs < 1:
        raise ValueError(f"--jobs must be >= 1, got {arguments.jobs}")
    values = parse_range(arguments.s)
    dictionary = source.dictionary_from(arguments)
    if values[0] < 1 or values[-1] > dictionary.n_tokens:
        raise ValueError(f"--s must lie in [1, {dictionary.n_tokens}] (the dictionary's rows), got {arguments.s}")
    truths, trials = (3, 256) if arguments.dictionary == source.LLM else (5, 16384)
    specification = Specification(
        sparsities=values,
        estimators=tuple(dict.fromkeys(name.strip() for name in arguments.estimators.split(","))),
        epsilon=arguments.epsilon,
        delta=arguments.delta,
        truths=truths if arguments.truths is None else arguments.truths,
        trials=trials if arguments.trials is None else arguments.trials,
        seed=arguments.seed,
        dictionary=fingerprint(dictionary),
    )
    folder = arguments.out or Path("results") / f"sweep-{specification.short_name()}"
    return dictionary, specification, Store(folder, specification)


def _measure(dictionary: Dictionary, specification: Specification, store: Store, n_jobs: int) -> int:
    console, errors = Console(), Console(stderr=True)
    shown = Table(title="dictionary", title_justify="left", show_header=False)
    for quantity, value in dictionary.describe():
        shown.add_row(quantity, value)
    console.print(shown)
    if dictionary.density_ratio > HUGE_RATIO:
        console.print(
            f"the density ratio is huge ({dictionary.density_ratio:.2g}): some row gives an outcome next to no "
            "probability; nothing is clipped, and bounds that contain c say accordingly little"
        )
    if COMPILED:
        with errors.status("compiling the solvers (the first time only)"):
            compile_estimators(specification.estimators)
    bounds = CellBounds(specification, Trials(dictionary, specification).instance)
    with (
        engine.local_processes(dictionary, specification, n_jobs) as executor,
        screen.progress(errors) as update,
    ):
        outcome = engine.run_sweep(specification, store, executor, update, bounds.checks)
    for (s, truth, name), error in outcome.errors.items():
        print(f"error: s={s}, truth {truth}, {name}: {error}; run the command again to retry", file=sys.stderr)
    if not outcome.located:
        return 1
    violated = results.present(console, outcome, bounds, store.uncertified(), dictionary.origin, store.path.parent)
    n_trials, inaccurate, seconds = store.totals()
    console.print(
        f"{n_trials:,} trials in {store.path}, {seconds:.0f} s of work; "
        f"fits without the certificate that their bounds ask for: {inaccurate:,}",
        soft_wrap=True,
        highlight=False,
    )
    return 1 if violated or outcome.errors else 0


if __name__ == "__main__":
    sys.exit(main())
