"""Time the exact engine: tables of counts a second, for one-to-one mapping and for mixtures.

    python benchmarks/exact_engine.py --runs 5

Each instance has Dirichlet(1) rows, and N chosen so that about 1e5 likely tables are enumerated; the truth mixes the
first s rows evenly. Listing the tables and their probabilities is part of what is timed. Times are those of the
processor, one thread; the table shows medians over runs and is written to benchmarks/exact_engine.csv. The engine is to
reach 1e6 tables a second for one-to-one mapping and 1e5 for mixtures.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from write_table import write_table

from markov_theory.randomness import named_generator
from markov_theory.verify.exact import row_failure
from markov_theory.verify.mixtures import mixture_failure
from markov_theory.verify.tables import Bracket, likely_tables, n_likely_tables

# J, T, s: one-to-one for s = 1
CASES = [
    (3, 2, 1), (3, 8, 1), (4, 4, 1), (4, 16, 1),
    (3, 2, 2), (3, 3, 3), (3, 4, 2), (3, 5, 2), (3, 6, 3),
    (4, 2, 2), (4, 4, 2), (4, 4, 3), (4, 4, 4), (4, 6, 2), (4, 6, 3), (4, 6, 4),
]  # fmt: skip
TABLES = 100_000
EPSILON = 0.02
WANTED = {True: 1e6, False: 1e5}  # one-to-one, mixtures
COLUMNS = ["J", "T", "s", "N", "tables", "failure", "failure up to", "ms", "tables/s", "wanted"]


def n_samples(law: np.ndarray) -> int:
    """Largest N, in steps of 10 %, with at most so many likely tables."""
    N = 10
    while n_likely_tables(law, N + max(N // 10, 1)) <= TABLES:
        N += max(N // 10, 1)
    return N


def measure(case: tuple[int, int, int], n_runs: int) -> list[str]:
    """One row of the table."""
    J, T, s = case
    rows = named_generator(0, "benchmark", "exact engine", f"{J} {T} {s}").dirichlet(np.ones(J), size=T)
    alpha = np.where(np.arange(T) < s, 1 / s, 0.0)
    law = alpha @ rows
    N = n_samples(law)
    tables = likely_tables(law, N).probability.size

    def run() -> Bracket:
        return row_failure(rows, 0, N) if s == 1 else mixture_failure(rows, alpha, s, N, EPSILON)

    failure, seconds = _timed(run, n_runs)
    shown = [f"{float(failure.low):.6g}", f"{float(failure.high):.6g}", f"{seconds * 1e3:.1f}"]
    return [*map(str, (*case, N, tables)), *shown, f"{tables / seconds:.3g}", f"{WANTED[s == 1]:.0e}"]


def _timed(run: Callable[[], Bracket], n_runs: int) -> tuple[Bracket, float]:
    """What a run gives, and the median of its times, after one that is not timed."""
    failure, times = run(), []
    for _ in range(n_runs):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return failure, statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed runs of each case (default: 5)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    write_table(COLUMNS, (measure(case, options.runs) for case in CASES), options.output)


if __name__ == "__main__":
    main()
