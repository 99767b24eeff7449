"""Measure the sample complexity N* along an axis and set it against the theory: ``python -m markov_theory.sweep``."""

from __future__ import annotations

import argparse
import sqlite3
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from markov_theory._compile import COMPILED
from markov_theory.sweep import engine, extension, results, screen
from markov_theory.sweep.arguments import options_of, parser
from markov_theory.sweep.axes import AXES, as_text
from markov_theory.sweep.setup import Setup, set_up
from markov_theory.sweep.specfile import read_sweeps, write_sweep
from markov_theory.sweep.store import Store
from markov_theory.sweep.trials import compile_estimators

HUGE_RATIO = 1e6


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0; 1 a violated bound or a failed cell; 2 wrong input; 130 stopped."""
    arguments = parser().parse_args(argv)
    stores: list[Store] = []
    try:
        try:
            setups = _setups(arguments)
            for one in setups:
                stores.append(Store(one.out, one.specification, arguments.extend))
        except (ValueError, TypeError, FileNotFoundError, FileExistsError, NotADirectoryError) as error:
            return _complain(error, 2)
        worst = 0
        for one, store in zip(setups, stores, strict=True):
            if one.name:
                Console().rule(one.name)
            worst = max(worst, _measure(one, store, arguments.jobs, arguments.fail_fast))
            if worst and arguments.fail_fast:
                break
        return worst
    except (OSError, RuntimeError, ArithmeticError, sqlite3.Error) as error:
        return _complain(error, 1)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    finally:
        for store in stores:
            store.close()


def _complain(error: Exception, code: int) -> int:
    print(f"error: {error}", file=sys.stderr)
    return code


def _setups(arguments: argparse.Namespace) -> list[Setup]:
    """Check everything that can be wrong before anything is written."""
    if arguments.jobs < 1:
        raise ValueError(f"--jobs must be >= 1, got {arguments.jobs}")
    options = options_of(arguments)
    if arguments.spec is None:
        return [set_up(options)]
    given = [name for name, value in options.items() if value is not None and name != "out"]
    if given:
        raise ValueError(f"--{given[0].replace('_', '-')} does not go with --spec: say it in {arguments.spec}")
    sweeps = read_sweeps(arguments.spec)
    setups = [_from_file(one, arguments.spec, i, len(sweeps)) for i, one in enumerate(sweeps, start=1)]
    if arguments.out is not None:
        several = len(setups) > 1
        setups = [
            replace(one, out=arguments.out / (one.slug or f"sweep-{i}") if several else arguments.out)
            for i, one in enumerate(setups, start=1)
        ]
    folders = [one.out for one in setups]
    if len(set(folders)) < len(folders):
        raise ValueError(f"{arguments.spec}: two of its sweeps go to the same folder; give each its own name or out")
    return setups


def _from_file(options: dict[str, object], path: Path, number: int, total: int) -> Setup:
    try:
        return set_up(options, path.parent)
    except (ValueError, TypeError) as error:
        which = f", sweep {number} of {total}" if total > 1 else ""
        raise ValueError(f"{path}{which}: {error}") from None


def _measure(one: Setup, store: Store, n_jobs: int, fail_fast: bool) -> int:
    specification = one.specification
    console, errors = Console(), Console(stderr=True)
    _show_rows(console, one)
    write_sweep(one, store.path.parent)
    for name, code in extension.own_code(one.bound_names).items():
        store.note(f"code of bound {name}", code)
    if COMPILED:
        with errors.status("compiling the solvers (the first time only)"):
            compile_estimators(specification)
    with (
        engine.local_processes(specification, n_jobs, one.given) as executor,
        screen.progress(errors) as update,
    ):
        outcome = engine.run_sweep(specification, store, executor, update, one.bounds.checks, fail_fast)
    for (point, truth, name), error in outcome.errors.items():
        print(f"error: {point}, truth {truth}, {name}: {error}; run the command again to retry", file=sys.stderr)
    if not outcome.located or (outcome.errors and fail_fast):
        return 1
    origin = one.problem.rows(specification.points[0]).origin
    violated = results.present(console, outcome, one.bounds, store.uncertified(), origin, store.path.parent)
    n_trials, inaccurate, seconds = store.totals()
    console.print(
        f"{n_trials:,} trials in {store.path}, {seconds:.0f} s of work; "
        f"fits without the certificate that their bounds ask for: {inaccurate:,}",
        soft_wrap=True,
        highlight=False,
    )
    return 1 if violated or outcome.errors else 0


def _show_rows(console: Console, one: Setup) -> None:
    """Print what the dictionaries of the sweep are, and whether their density ratio is huge."""
    shaping = [name for name in one.specification.swept if AXES[name].shapes_rows]
    described: dict[str, dict[str, str]] = {}
    ratio = 1.0
    for point in one.specification.points:
        key = " ".join(f"{name}={as_text(point[name])}" for name in shaping)
        if key not in described:
            rows = one.problem.rows(point)
            described[key], ratio = dict(rows.describe()), max(ratio, rows.density_ratio)
    console.print(screen.dictionary_table(described))
    if ratio > HUGE_RATIO:
        console.print(
            f"the density ratio is huge ({ratio:.2g}): some row gives an outcome next to no "
            "probability; nothing is clipped, and bounds that contain c say accordingly little"
        )


if __name__ == "__main__":
    sys.exit(main())
