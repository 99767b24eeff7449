"""When a trial succeeds, and what a number of failures says about the probability of failure."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from scipy.special import betaincinv

from markov_theory._checks import Array, open_unit, whole


def failures(kl: ArrayLike, epsilon: float) -> int:
    """Number of trials that fail: KL(q‖q̂) > ε.  A KL that is not a number counts as a failure."""
    return int((~(np.asarray(kl) <= epsilon)).sum())


def failure_bounds(n_failures: int, n_trials: int, level: float) -> tuple[float, float]:
    """Clopper-Pearson bounds on a failure probability, each wrong with probability at most `level`.

    Parameters
    ----------
    n_failures, n_trials : int
    level : float
        Error probability of *each* side.

    Returns
    -------
    lower, upper : float
        0 and 1 without trials.

    References
    ----------
    Clopper and Pearson (1934).

    Examples
    --------
    >>> [round(bound, 4) for bound in failure_bounds(0, 59, 0.05)]
    [0.0, 0.0495]
    """
    n = whole(n_trials, "n_trials")
    k = whole(n_failures, "n_failures", high=n)
    level = open_unit(level, "level")
    lower = float(betaincinv(k, n - k + 1, level)) if k else 0.0
    upper = float(betaincinv(k + 1, n - k, 1 - level)) if k < n else 1.0
    return lower, upper


def decreasing_fit(values: ArrayLike, weights: ArrayLike) -> Array:
    """Least-squares decreasing fit to a sequence (pool adjacent violators), used to steer and to interpolate."""
    return np.asarray(
        isotonic_regression(np.asarray(values, float), weights=np.asarray(weights, float), increasing=False).x
    )
