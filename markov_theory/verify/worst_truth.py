"""N*_first and N*_last over the worst truth of a class: all mixtures of two rows on two outcomes, on a grid of weights.

A lower bound speaks of the worst truth, so that the number of one truth does not do for a comparison with it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from markov_theory import _checks
from markov_theory.verify.exact import ROUNDING
from markov_theory.verify.two_outcomes import Divergence, interval_failures, interval_window, last_possible

MOST_SAMPLES, BLOCK = 5_000_000, 8192


class WorstTruth(NamedTuple):
    """Numbers of samples that the class of truths needs, and the weight of the second row at the hardest truth.

    Attributes
    ----------
    first, last : float
        N*_first: least N with failure ≤ δ at every truth. N*_last: least N from which on that stays so.
    weight_before_first, weight_before_last : float
        Of the truth that fails most often at N*_first − 1, and at N*_last − 1; NaN if that is −1.
    """

    first: float
    last: float
    weight_before_first: float
    weight_before_last: float


def worst_truth(
    transitions: ArrayLike, epsilon: float, delta: float, n_weights: int = 65, divergence: Divergence = "kl"
) -> WorstTruth:
    """Least N with ``max_α P(KL(q_α‖q̂) > ε) ≤ δ``, and least N from which it stays so, α on an even grid.

    The estimator is maximum likelihood over all mixtures of the two rows. Every N is looked at up to the one that
    Chernoff's inequality clears, so both numbers are exact for the truths of the grid; for the whole class both are
    at least this.

    Parameters
    ----------
    transitions : array_like, shape (2, 2)
    epsilon, delta : float
        ε (nats, or H²) and δ.
    n_weights : int
        Weights of the second row: 0, 1/(n−1), …, 1.
    divergence : {"kl", "hellinger"}

    Returns
    -------
    WorstTruth

    Raises
    ------
    ValueError
        If the rows are not two laws on two outcomes, or more than 5,000,000 samples had to be looked at.

    Examples
    --------
    >>> found = worst_truth([[.2, .8], [.8, .2]], epsilon=1e-3, delta=.05, n_weights=9)
    >>> found.first, found.last
    (1915.0, 1948.0)
    """
    rows = _checks.as_transitions(transitions)
    if rows.shape != (2, 2):
        raise ValueError(f"transitions must be two rows on two outcomes, got shape {rows.shape}")
    epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
    weights = np.linspace(0, 1, _checks.whole(n_weights, "n_weights", low=2))
    low, high = float(rows[:, 0].min()), float(rows[:, 0].max())
    truths = np.clip((1 - weights) * rows[0, 0] + weights * rows[1, 0], low, high)
    windows = [interval_window(low, high, float(x), epsilon, divergence) for x in truths]
    cleared = max(last_possible(window, delta) for window in windows)
    if not cleared <= MOST_SAMPLES:
        raise ValueError(f"N up to {cleared:.3g} would have to be looked at, more than {MOST_SAMPLES:,}")

    first, last, before_first, before_last = math.nan, 0.0, math.nan, math.nan
    at_end = math.nan  # hardest weight at the last N of the block before
    for start in range(0, int(cleared) + 1, BLOCK):
        N = np.arange(start, min(start + BLOCK, int(cleared) + 1))
        failure = np.stack([interval_failures(low, high, float(x), N, epsilon, divergence) for x in truths])  # (n, N)
        hardest = weights[failure.argmax(axis=0)]
        good = failure.max(axis=0) <= delta * (1 + ROUNDING)
        if math.isnan(first) and good.any():
            place = int(good.argmax())
            first = float(N[place])
            before_first = float(hardest[place - 1]) if place else at_end
        if not good.all():
            place = int(np.flatnonzero(~good)[-1])
            last, before_last = float(N[place] + 1), float(hardest[place])
        at_end = float(hardest[-1])
    return WorstTruth(first, last, before_first, before_last)
