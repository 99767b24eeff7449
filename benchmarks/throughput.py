"""Measure how many trials a second a sweep runs, with 1 and 2 processes, and where its workers' time goes.

    python benchmarks/throughput.py                  # a shortened default sweep: --s 1..8 --truths 2
    python benchmarks/throughput.py --s 1..32 --truths 5 --engine dask:127.0.0.1:8786

Each row is one sweep from nothing: seconds until its workers have started (Python, its packages, the sweep's problem)
and seconds from then on, with the rate over the latter and with that including the start; speed-up of the rate over
that of the first row; and what the workers' time after the start went to: sampling, solving and scoring (timed inside
the workers, compiled code being loaded included), the rest of a trial, and all else (waiting for the parent, for
the last task, for messages). With --engine there is one row more for a cluster, whose workers have started; its trials
are not split into stages. Written to benchmarks/throughput.csv.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from write_table import write_table

from markov_theory._processes import worker_processes
from markov_theory.estimators import RowEstimator
from markov_theory.sweep import trials
from markov_theory.sweep.cluster import Cluster
from markov_theory.sweep.engine import Effort, run_sweep
from markov_theory.sweep.problems.mixture import MixtureTruth
from markov_theory.sweep.setup import Setup, set_up
from markov_theory.sweep.specification import Specification
from markov_theory.sweep.store import Store

STAGES = ("sampling", "solving", "scoring")
COLUMNS = ["workers", "trials", "start s", "run s", "trials/s", "trials/s with start", "speed-up",
           *(f"{stage} %" for stage in STAGES), "rest of trials %", "else %"]  # fmt: skip


def prepare(specification: Specification, totals: Any) -> None:
    """Prepare a worker, and have it add the time of each stage to `totals`."""
    trials.prepare(specification)
    draw = MixtureTruth.draw
    MixtureTruth.draw = lambda *arguments: iter(list(draw(*arguments)))  # where it is called, not where it is read
    timed = (
        (trials, "named_generator", 0), (MixtureTruth, "draw", 0), (RowEstimator, "fit", 1), (MixtureTruth, "loss", 2)
    )  # fmt: skip
    for owner, name, stage in timed:
        setattr(owner, name, stopwatch(getattr(owner, name), partial(add, totals, stage)))


def add(totals: Any, stage: int, seconds: float) -> None:
    with totals.get_lock():
        totals[stage] += seconds


def stopwatch(function: Callable[..., Any], stop: Callable[[float], None]) -> Callable[..., Any]:
    def timed(*arguments: Any, **keywords: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments, **keywords)
        finally:
            stop(time.perf_counter() - started)

    return timed


@contextmanager
def local_workers(one: Setup, n_workers: int, totals: Any) -> Iterator[Any]:
    with worker_processes(n_workers, prepare, one.specification, totals) as executor:
        for task in [executor.submit(time.sleep, 0.5) for _ in range(n_workers)]:
            task.result()
        yield executor


def measure(one: Setup, workers: Callable[[], Any]) -> tuple[Effort, float]:
    """The effort of a sweep from nothing, and seconds until its workers had started."""
    with tempfile.TemporaryDirectory() as folder, closing(Store(Path(folder), one.specification)) as store:
        started = time.perf_counter()
        with workers() as executor:
            start = time.perf_counter() - started
            outcome = run_sweep(one.specification, store, executor, checks=one.bounds.checks)
    assert not outcome.errors, outcome.errors
    return outcome.effort, start


def row(label: str, n_workers: int, effort: Effort, start: float, stages: list[float], first: float) -> list[str]:
    available = n_workers * effort.duration
    rate = effort.n_trials / effort.duration
    shares = [*stages, effort.work - sum(stages)] if stages else [math.nan] * 3 + [effort.work]
    return [
        label, str(effort.n_trials), f"{start:.1f}", f"{effort.duration:.1f}", f"{rate:.0f}",
        f"{effort.n_trials / (effort.duration + start):.0f}", f"{rate / (first or rate):.2f}",
        *(f"{100 * share / available:.1f}" for share in [*shares, available - effort.work]),
    ]  # fmt: skip


def rows(one: Setup, processes: list[int], scheduler: str | None) -> Iterator[list[str]]:
    trials.compile_estimators(one.specification)
    first = 0.0
    for n_workers in processes:
        totals = multiprocessing.get_context("spawn").Array("d", len(STAGES))
        effort, start = measure(one, partial(local_workers, one, n_workers, totals))
        yield row(f"{n_workers}", n_workers, effort, start, list(totals), first)
        first = first or effort.n_trials / effort.duration
    if scheduler:
        with closing(Cluster(scheduler)) as cluster:
            cluster.check(one.specification)
            effort, start = measure(one, partial(cluster.ready, one.specification))
            yield row(f"{cluster.n_workers} (Dask)", cluster.n_workers, effort, start, [], first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--s", default="1..8", help="mixed rows (default: 1..8)")
    parser.add_argument("--truths", type=int, default=2, help="planted truths at each (default: 2)")
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="rows of the table (default: 1 2)")
    parser.add_argument("--engine", help="one row more: dask:ADDRESS")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    one = set_up({"s": options.s, "truths": options.truths})
    title = f"--s {options.s} --truths {options.truths}, {os.cpu_count()} cores"
    measured = rows(one, options.processes, options.engine and options.engine.removeprefix("dask:"))
    write_table(COLUMNS, measured, options.output, title)


if __name__ == "__main__":
    main()
