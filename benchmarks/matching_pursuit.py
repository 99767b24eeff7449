"""Time orthogonal matching pursuit by us, a batch in lockstep, and by scikit-learn, target by target, side by side.

    OMP_NUM_THREADS=1 python benchmarks/matching_pursuit.py --runs 5

Atoms are Gaussian vectors, divided by their norms beforehand since scikit-learn does not; a target is a sum of eight
of them with random signs and 2 % of noise. Both ways run in turns, after a round that does not count, and get the same
arrays, in the order of memory that each likes best; times are those of the processor. The table shows medians in
milliseconds a target, and the median, least and largest of the ratios of the rounds. Supports must be the same, or the
script fails. It is written to benchmarks/matching_pursuit.csv.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import orthogonal_mp

from markov_theory.randomness import named_generator
from markov_theory.solvers.matching_pursuit import orthogonal_matching_pursuit

# T, d, targets in our batch, targets that scikit-learn gets, type
CASES = [
    (4096, 512, 1, 1, "float64"),
    (4096, 512, 64, 16, "float64"),
    (4096, 512, 256, 16, "float64"),
    (4096, 512, 256, 16, "float32"),
    (49_152, 576, 64, 4, "float64"),
    (49_152, 576, 256, 4, "float64"),
    (49_152, 576, 256, 4, "float32"),
]
SPARSITY = 8
COLUMNS = ["T", "d", "k", "targets", "type", "ours ms", "scikit-learn ms", "ratio", "least", "largest", "same supports"]


def problem(T: int, d: int, n_targets: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Atoms of norm one and noisy sums of eight."""
    generator = named_generator(0, "benchmark", "matching pursuit", T, d)
    atoms = generator.standard_normal((T, d))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    targets = 0.02 * generator.standard_normal((n_targets, d))
    for target in targets:
        target += generator.choice([-1, 1], SPARSITY) @ atoms[generator.choice(T, SPARSITY, replace=False)]
    return atoms.astype(dtype), targets.astype(dtype)


def measure(case: tuple[int, int, int, int, str], runs: int) -> list[str]:
    """One row of the table."""
    T, d, n_targets, n_peer, dtype = case
    atoms, targets = problem(T, d, n_targets, dtype)
    columns, aims = np.asfortranarray(atoms.T), np.asfortranarray(targets[:n_peer].T)
    ours, theirs = [], []
    for _ in range(runs + 1):
        start = time.process_time()
        fit = orthogonal_matching_pursuit(atoms, targets, SPARSITY)
        ours.append((time.process_time() - start) / n_targets * 1e3)
        start = time.process_time()
        weights = orthogonal_mp(columns, aims, n_nonzero_coefs=SPARSITY)
        theirs.append((time.process_time() - start) / n_peer * 1e3)
    same = ((weights.reshape(T, n_peer).T != 0) == (fit.dense()[:n_peer] != 0)).all(axis=1)
    if not same.all():
        raise AssertionError(f"{(~same).sum()} of {n_peer} supports differ at T = {T}, d = {d}, {dtype}")
    ratios = [peer / own for own, peer in zip(ours[1:], theirs[1:], strict=True)]
    times = [f"{statistics.median(ours[1:]):.3f}", f"{statistics.median(theirs[1:]):.2f}"]
    spread = [f"{value:.1f}" for value in (statistics.median(ratios), min(ratios), max(ratios))]
    return [*map(str, (T, d, SPARSITY, n_targets, dtype)), *times, *spread, f"{same.sum()}/{n_peer}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed rounds of each size (default: 5)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    table = Table(*COLUMNS)
    with options.output.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for case in CASES:
            row = measure(case, options.runs)
            writer.writerow(row)
            file.flush()
            table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
