"""Time orthogonal matching pursuit by us, a batch in lockstep, and by scikit-learn, target by target, side by side.

    OMP_NUM_THREADS=1 python benchmarks/matching_pursuit.py --runs 5

Atoms are Gaussian vectors, divided by their norms beforehand since scikit-learn does not; a target is a sum of eight
of them with random signs and 2 % of noise. Both ways run in turns, after a round that does not count, and get the same
arrays, in the order of memory that each likes best; times are those of the processor. We get the atoms as an array, or
prepared with the products of all pairs (as scikit-learn can; at these sizes that makes it slower). The table shows
medians in milliseconds a target, the preparation's once, and the median, least and largest of the ratios of the rounds
without it, and the median with it. Supports must be the same, or the script fails. It is written to
benchmarks/matching_pursuit.csv.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import orthogonal_mp
from write_table import write_table

from markov_theory.randomness import named_generator
from markov_theory.solvers.matching_pursuit import orthogonal_matching_pursuit, prepare_atoms

# T, d, targets in our batch, targets that scikit-learn gets, type, whether atoms are prepared
CASES = [
    (4096, 512, 1, 1, "float64", False),
    (4096, 512, 64, 16, "float64", False),
    (4096, 512, 256, 16, "float64", False),
    (4096, 512, 4096, 16, "float64", False),
    (4096, 512, 256, 16, "float32", False),
    (4096, 512, 1, 1, "float64", True),
    (4096, 512, 64, 16, "float64", True),
    (4096, 512, 256, 16, "float64", True),
    (4096, 512, 4096, 16, "float64", True),
    (4096, 512, 256, 16, "float32", True),
    (49_152, 576, 64, 4, "float64", False),
    (49_152, 576, 256, 4, "float64", False),
    (49_152, 576, 256, 4, "float32", False),
]
SPARSITY = 8
COLUMNS = ["T", "d", "k", "targets", "type", "atoms", "ours ms", "preparation ms", "scikit-learn ms", "ratio", "least"]
COLUMNS += ["largest", "with preparation", "same supports"]


def problem(T: int, d: int, n_targets: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Atoms of norm one and noisy sums of eight."""
    generator = named_generator(0, "benchmark", "matching pursuit", T, d)
    atoms = generator.standard_normal((T, d))
    atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
    targets = 0.02 * generator.standard_normal((n_targets, d))
    for target in targets:
        target += generator.choice([-1, 1], SPARSITY) @ atoms[generator.choice(T, SPARSITY, replace=False)]
    return atoms.astype(dtype), targets.astype(dtype)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Milliseconds of processor time that a call takes, and what it returns."""
    start = time.process_time()
    result = function()
    return (time.process_time() - start) * 1e3, result


def measure(case: tuple[int, int, int, int, str, bool], runs: int) -> list[str]:
    """One row of the table."""
    T, d, n_targets, n_peer, dtype, prepared = case
    atoms, targets = problem(T, d, n_targets, dtype)
    columns, aims = np.asfortranarray(atoms.T), np.asfortranarray(targets[:n_peer].T)
    times = []
    for _ in range(runs + 1):
        once, ours = timed(lambda: prepare_atoms(atoms, gram=True)) if prepared else (0.0, atoms)
        own, fit = timed(lambda ours=ours: orthogonal_matching_pursuit(ours, targets, SPARSITY))
        peer, weights = timed(lambda: orthogonal_mp(columns, aims, n_nonzero_coefs=SPARSITY))
        times.append((own / n_targets, once, peer / n_peer))
    same = ((weights.reshape(T, n_peer).T != 0) == (fit.dense()[:n_peer] != 0)).all(axis=1)
    if not same.all():
        raise AssertionError(f"{(~same).sum()} of {n_peer} supports differ at T = {T}, d = {d}, {dtype}")
    own, once, peer = np.array(times[1:]).T
    ratios = peer / own
    spread = [np.median(ratios), ratios.min(), ratios.max(), np.median(peer / (own + once / n_targets))]
    row = [T, d, SPARSITY, n_targets, dtype, "prepared" if prepared else "array", f"{np.median(own):.3f}"]
    row += [f"{np.median(once):.0f}", f"{np.median(peer):.2f}", *(f"{value:.1f}" for value in spread)]
    return [*map(str, row), f"{same.sum()}/{n_peer}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="timed rounds of each size (default: 5)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    write_table(COLUMNS, (measure(case, options.runs) for case in CASES), options.output)


if __name__ == "__main__":
    main()
