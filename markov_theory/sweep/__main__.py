"""Measure the sample complexity N* along an axis and set it against the theory: ``python -m markov_theory.sweep``."""

from __future__ import annotations

import argparse
import os
import shlex
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console

from markov_theory._command import complain
from markov_theory._compile import COMPILED
from markov_theory._progress import progress
from markov_theory.provenance import recorded
from markov_theory.sweep import engine, extension, results, screen
from markov_theory.sweep.arguments import PRESETS, options_of, parser, scheduler_of
from markov_theory.sweep.axes import AXES, as_text
from markov_theory.sweep.cluster import Cluster
from markov_theory.sweep.setup import Setup, set_up
from markov_theory.sweep.specfile import read_sweeps, write_sweep
from markov_theory.sweep.store import Store
from markov_theory.sweep.trials import compile_estimators

HUGE_RATIO = 1e6
LOCATING = "locating N*"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0; 1 a violated bound or a failed cell; 2 wrong input; 130 stopped."""
    arguments = parser().parse_args(argv)
    if arguments.preset is not None:
        return _preset(arguments)
    command = shlex.join(["python", "-m", "markov_theory.sweep", *(sys.argv[1:] if argv is None else argv)])
    opened = ExitStack()
    try:
        try:
            scheduler = scheduler_of(arguments)
            setups = _setups(arguments)
            workers = _workers(scheduler, arguments.jobs, setups, opened)
            stores = [
                opened.enter_context(closing(Store(one.out, one.specification, arguments.extend))) for one in setups
            ]
        except (ValueError, TypeError, FileNotFoundError, FileExistsError, NotADirectoryError) as error:
            return complain(error, 2)
        worst = 0
        for one, store in zip(setups, stores, strict=True):
            if one.name:
                Console().rule(one.name)
            worst = max(worst, _measure(one, store, workers, arguments.fail_fast, command))
            if worst and arguments.fail_fast:
                break
        return worst
    except (OSError, RuntimeError, ArithmeticError, sqlite3.Error) as error:
        return complain(error, 1)
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    finally:
        opened.close()


def _preset(arguments: argparse.Namespace) -> int:
    """Hand over to the command of a preset."""
    usual = vars(parser().parse_args([]))
    given = {name: value for name, value in vars(arguments).items() if value != usual[name] and name != "preset"}
    if beside := sorted(given.keys() - {"seed", "jobs", "out"}):
        return complain(ValueError(f"--{beside[0].replace('_', '-')} does not go with --preset {arguments.preset}"), 2)
    flags = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    command: int = import_module(f"markov_theory.{PRESETS[arguments.preset]}.__main__").main(flags)
    return command


def _workers(
    scheduler: str | None, n_jobs: int | None, setups: list[Setup], opened: ExitStack
) -> engine.Processes | Cluster:
    if scheduler is None:
        return engine.Processes(n_jobs or os.cpu_count() or 1)
    cluster = opened.enter_context(closing(Cluster(scheduler)))
    for one in setups:
        cluster.check(one.specification)
    if not cluster.n_workers:
        print(f"no worker is at {scheduler} yet: waiting for the first one", file=sys.stderr)
    return cluster


def _setups(arguments: argparse.Namespace) -> list[Setup]:
    """Check everything that can be wrong before anything is written."""
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


def _measure(one: Setup, store: Store, workers: engine.Processes | Cluster, fail_fast: bool, command: str) -> int:
    specification = one.specification
    console, errors = Console(), Console(stderr=True)
    about = {"cells": len(specification.cells()), "rows": _show_rows(console, one), "bounds": _told(one)}
    write_sweep(one, store.path.parent)
    for name, code in extension.own_code(one.bound_names).items():
        store.note(f"code of bound {name}", code)
    if COMPILED:
        with errors.status("compiling the solvers (the first time only)"):
            compile_estimators(specification)
    with (
        recorded(store.path.parent, "sweep", command, workers.n_workers, **about) as run,
        workers.ready(specification, one.given) as executor,
        progress(LOCATING) as update,
    ):

        def show(done: int, cells: int, trials: int) -> None:
            update(done, cells, f"{LOCATING} ({trials:,} trials)")

        outcome = engine.run_sweep(specification, store, executor, show, one.bounds.checks, fail_fast)
        run["failed"] = [[str(point), truth, name, error] for (point, truth, name), error in outcome.errors.items()]
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
    if outcome.effort.n_trials:
        fixed = workers.n_workers if isinstance(workers, engine.Processes) else None
        console.print(screen.effort_line(outcome.effort, fixed), soft_wrap=True, highlight=False)
    return 1 if violated or outcome.errors else 0


def _told(one: Setup) -> dict[str, dict[str, Any]]:
    """What the bounds of the sweep state, by label."""
    facts = ("kind", "origin", "speaks_of", "statement")
    return {label: {fact: getattr(bound, fact, "") for fact in facts} for label, bound in one.bounds.shown.items()}


def _show_rows(console: Console, one: Setup) -> dict[str, dict[str, str]]:
    """Print, and return, what the dictionaries of the sweep are; say whether their density ratio is huge."""
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
    return described


if __name__ == "__main__":
    sys.exit(main())
