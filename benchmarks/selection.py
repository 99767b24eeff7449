"""Measure how often the number of mixed rows is chosen rightly, against the number of samples.

    python benchmarks/selection.py --trials 200

For planted truths of s rows over well-conditioned and correlated dictionaries: the share of samples in which
`select_sparsity` chooses s, less, or more, and in which the support is the planted one; beside it, the share in which
pursuit *told* s finds the support. Shares have standard error at most 0.5/√trials. Written to benchmarks/selection.csv.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from write_table import write_table

from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.pursuit import kl_pursuit
from markov_theory.solvers.selection import select_sparsity

# family, T, J, density ratio
DICTIONARIES = [("well-conditioned", 64, 64, 20.0), ("well-conditioned", 256, 64, 20.0), ("correlated", 64, 64, 20.0)]
SPARSITIES = (1, 2, 4, 8)
SAMPLES = (100, 300, 1_000, 3_000, 10_000, 100_000)
COLUMNS = ["family", "T", "J", "s", "N", "right s", "too few", "too many", "right rows", "right rows, s told", "ms"]


def measure(family: str, T: int, J: int, ratio: float, s: int, N: int, trials: int) -> list[str]:
    """One row of the table."""
    planted = plant(make_dictionary(T, J, density_ratio=ratio, family=family), s)  # type: ignore[arg-type]
    counts = sample_counts(planted.target, N, trials, named_generator(0, "benchmark", "selection", family, T, s, N))
    start = time.process_time()
    chosen = select_sparsity(planted.transitions, counts)
    elapsed = (time.process_time() - start) / trials * 1e3
    told = kl_pursuit(planted.transitions, counts, s)
    right = [((alpha > 0) == (planted.alpha > 0)).all(axis=1).mean() for alpha in (chosen.fit.alpha, told.alpha)]
    shares = [(chosen.sparsity == s).mean(), (chosen.sparsity < s).mean(), (chosen.sparsity > s).mean(), *right]
    return [family, *map(str, (T, J, s, N)), *(f"{share:.3f}" for share in shares), f"{elapsed:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200, help="samples of each size (default: 200)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    select_sparsity(np.eye(3), [2, 1, 1])  # compile
    cases = ((*dictionary, s, N) for dictionary in DICTIONARIES for s in SPARSITIES for N in SAMPLES)
    write_table(COLUMNS, (measure(*case, options.trials) for case in cases), options.output)


if __name__ == "__main__":
    main()
