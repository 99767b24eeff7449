"""Arm 1. Packed rows, all equally far apart: N* exact for any T.

Peak(T) has T rows over J = T outcomes, p_v = a at v and b elsewhere, a = 4b. Every row is at the same margin γ from
every other; as γ falls like 1/T, N*·γ is what is looked at.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, xlogy
from scipy.stats import binom, poisson

from markov_theory import _checks
from markov_theory._checks import Array, IntArray
from markov_theory.dependence.series import BLOCK, Measured, Setting, least_from_where

PEAK_RATIO = 4.0


def packed_failures(n_tokens: int, peak_ratio: float, n_samples: IntArray) -> Array:
    """`markov_theory.verify.packed.packed_failure` at consecutive N, all from one transform a count of the peak.

    The truth's outcome is seen k times, k binomial; it wins if all other outcomes, among which N − k balls are thrown
    uniformly, are seen less than k times. Independent Poisson counts conditioned on their total have that law, and
    the law of the total of T − 1 of them below k is a power of a characteristic function.

    Parameters
    ----------
    n_tokens : int
        T = J ≥ 2.
    peak_ratio : float
        a/b > 1.
    n_samples : ndarray of int, shape (n,)
        N, ascending; at most `BLOCK` consecutive ones.

    Returns
    -------
    ndarray, shape (n,)
        Absolute accuracy about 1e-12.

    Examples
    --------
    >>> from markov_theory.verify.packed import packed_failure
    >>> block = np.arange(60, 70)
    >>> bool(np.allclose(packed_failures(16, 4.0, block), [packed_failure(16, 4.0, n) for n in block], atol=1e-12))
    True
    """
    T, N = _checks.whole(n_tokens, "n_tokens", low=2), np.asarray(n_samples, dtype=np.int64)
    if not peak_ratio > 1:
        raise ValueError(f"the ratio of peak to floor must be > 1, got {peak_ratio:g}")
    if N.size == 0 or N[-1] - N[0] >= BLOCK:
        raise ValueError(f"n_samples must be at most {BLOCK} consecutive numbers, got {N.size}")
    peak = peak_ratio / (peak_ratio + T - 1)
    mean = peak * N[-1]
    counts = np.arange(1, min(int(N[-1]), int(mean + 13 * math.sqrt(mean) + 60)) + 1)
    weights: Array = np.asarray(binom.pmf(counts[:, None], N, peak))  # (counts, n)
    success = np.zeros(N.size)
    others = max((1 - peak) * float(N.mean()), 1.0)  # how many balls the other T − 1 outcomes have on average
    size = 1 << math.ceil(math.log2(max(int(N[-1]), others + 40 * math.sqrt(others)) + 200))
    low = np.arange(counts.size + 1)
    law = np.exp(xlogy(low, others / (T - 1)) - others / (T - 1) - gammaln(low + 1.0))
    for i, k in enumerate(counts.tolist()):
        weight = weights[i]
        if weight.max() < 1e-18:
            continue
        total = np.fft.irfft(np.fft.rfft(law[:k], size) ** (T - 1), size)
        balls = N - k
        chance = poisson.pmf(balls, others)
        some = (balls >= 0) & (weight >= 1e-18) & (chance > 0)
        success[some] += weight[some] * np.clip(total[balls[some]] / chance[some], 0.0, 1.0)
    return np.clip(1.0 - success, 0.0, 1.0)


def measure(n_tokens: int, repeat: int, setting: Setting) -> Measured:
    """N*_last of Peak(T), exact: beyond the union bound (T−1)·ρ^N ≤ δ nothing fails, below every N is evaluated."""
    b = 1 / (PEAK_RATIO + n_tokens - 1)
    rate = -math.log1p(-((math.sqrt(PEAK_RATIO) - 1) ** 2) * b)  # −log ρ of two rows
    top = math.ceil(math.log((n_tokens - 1) / setting.delta) / rate) + 1
    found = least_from_where(lambda n: packed_failures(n_tokens, PEAK_RATIO, n), top, setting.delta)
    gamma = (PEAK_RATIO - 1) * b * math.log(PEAK_RATIO)
    return Measured(found, found, found, facts={"gamma": gamma})
