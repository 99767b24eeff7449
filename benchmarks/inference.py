"""Measure the coverage of the weights' intervals, and the level and power of the test of the hull.

    python benchmarks/inference.py --trials 200

Coverage: the share of intervals (nominal 0.95) on the planted support that cover the planted weight. Test: the share
of p-values up to 0.05 and 0.2 for laws in the hull, and for (1 − w)·mixture + w·(a law drawn from Dirichlet(1)), whose
KL to the hull is stated; beside it the same with a bootstrap from the likeliest mixture ("naive"), which is not
calibrated. Shares have standard error at most 0.5/√trials. Written to benchmarks/inference.csv.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from write_table import write_table

from markov_theory.estimators.inference import SAME, hull_statistics, hull_test, weight_intervals
from markov_theory.families import make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.relaxation import information_projection
from markov_theory.solvers.simplex_mle import simplex_mle

BOOTSTRAP = 99
# T, J, s
TRUTHS = [(32, 64, 1), (32, 64, 4), (32, 64, 16), (64, 32, 4)]
SAMPLES = (100, 1_000, 10_000)
OUTSIDE = (0.0, 0.1, 0.3)
COLUMNS = [
    "T", "J", "s", "N", "w", "KL to hull", "coverage", "width", "p <= .05", "p <= .2", "naive p <= .05", "naive p <= .2"
]  # fmt: skip


def naive_p_value(rows: np.ndarray, counts: np.ndarray, seed: int) -> float:
    """The p-value of the same statistic with a bootstrap from the likeliest mixture."""
    law = simplex_mle(rows, counts).alpha[0] @ rows
    drawn = named_generator(seed, "naive").multinomial(int(counts.sum()), law / law.sum(), size=BOOTSTRAP)
    statistic = hull_statistics(rows, counts[None])[0]
    return float(1 + (hull_statistics(rows, drawn) >= statistic - SAME).sum()) / (1 + BOOTSTRAP)


def coverage(planted: Instance, counts: np.ndarray) -> tuple[float, float]:
    """Share of intervals that cover, and their mean width."""
    fits = [weight_intervals(planted.transitions, n, planted.support) for n in counts]
    truth = planted.alpha[planted.support]
    covered = np.mean([(fit.lower <= truth) & (truth <= fit.upper) for fit in fits])
    return float(covered), float(np.mean([fit.upper - fit.lower for fit in fits]))


def measure(truth: tuple[int, int, int], N: int, w: float, trials: int) -> list[str]:
    """One row of the table."""
    T, J, s = truth
    planted = plant(make_dictionary(T, J, density_ratio=20.0), s)
    law = (1 - w) * planted.target + w * named_generator(0, "outside", J).dirichlet(np.ones(J))
    counts = sample_counts(law, N, trials, named_generator(0, "benchmark", "inference", T, J, s, N, f"{w}"))
    rows = planted.transitions
    values = np.array([hull_test(rows, n, n_bootstrap=BOOTSTRAP, seed=i).p_value for i, n in enumerate(counts)])
    naive = np.array([naive_p_value(rows, n, i) for i, n in enumerate(counts)])
    shown = [f"{value:.3f}" for value in coverage(planted, counts)] if w == 0 else ["", ""]
    shares = [f"{(p <= level).mean():.3f}" for p in (values, naive) for level in (0.05, 0.2)]
    distance = information_projection(rows, law) if w else 0.0
    return [*map(str, (T, J, s, N, w)), f"{distance:.1e}", *shown, *shares]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=200, help="samples of each size (default: 200)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    cases = ((truth, N, w) for truth in TRUTHS for w in OUTSIDE for N in SAMPLES)
    write_table(COLUMNS, (measure(*case, options.trials) for case in cases), options.output)


if __name__ == "__main__":
    main()
