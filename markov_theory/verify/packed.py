"""Packed rows, all equally far apart: exact failure probabilities for any number of rows."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, xlogy
from scipy.stats import binom

from markov_theory import _checks

NEGLIGIBLE = 1e-18


def packed_failure(n_tokens: int, peak_ratio: float, n_samples: int) -> float:
    """`one_to_one_failure` for T rows over J = T outcomes, p_v = a at v and b elsewhere, a = `peak_ratio`·b.

    The likelihood is highest at the outcome seen most often, so the failure is the probability that outcome
    v* is not *strictly* the most frequent: exact for any T, from the generating function of bounded counts.

    Parameters
    ----------
    n_tokens : int
        T = J ≥ 2.
    peak_ratio : float
        a/b > 1.
    n_samples : int
        N.

    Examples
    --------
    >>> from markov_theory.verify.exact import one_to_one_failure
    >>> rows = np.full((3, 3), 1 / 6) + np.eye(3) / 2
    >>> bool(np.isclose(packed_failure(3, 4.0, 9), one_to_one_failure(rows, 9)[0], rtol=1e-12))
    True
    """
    n_tokens = _checks.whole(n_tokens, "n_tokens", low=2)
    n_samples = _checks.whole(n_samples, "n_samples")
    if not peak_ratio > 1:
        raise ValueError(f"the ratio of peak to floor must be > 1, got {peak_ratio:g}")
    peak = peak_ratio / (peak_ratio + n_tokens - 1)
    top = np.arange(n_samples + 1)
    weight = binom.pmf(top, n_samples, peak)
    success = 0.0
    for count in top[weight > NEGLIGIBLE][::-1]:
        success += weight[count] * _all_below(int(count), n_samples - int(count), n_tokens - 1)
    return float(min(1.0, max(0.0, 1.0 - success)))


def _all_below(limit: int, n_balls: int, n_cells: int) -> float:
    """Probability that `n_balls` thrown uniformly into `n_cells` leave every cell with fewer than `limit`."""
    if n_balls == 0:
        return float(limit > 0)
    if (limit - 1) * n_cells < n_balls:
        return 0.0
    # Independent Poisson counts at the mean load, conditioned on their total; powers by squaring.
    load = n_balls / n_cells
    counts = np.arange(min(limit, n_balls + 1))
    power = np.exp(xlogy(counts, load) - load - gammaln(counts + 1.0))
    total, exponent = np.ones(1), n_cells
    while exponent:
        if exponent & 1:
            total = np.convolve(total, power)[: n_balls + 1]
        exponent >>= 1
        if exponent:
            power = np.convolve(power, power)[: n_balls + 1]
    if total.size <= n_balls:
        return 0.0
    log_total = n_balls * math.log(n_balls) - n_balls - math.lgamma(n_balls + 1)  # Poisson(n) at its mean n
    return float(total[n_balls]) / math.exp(log_total)
