"""Error exponents of all pairs of rows at once, and divergences that stay exact for near-duplicate rows.

Precision matters at both ends. Near-duplicate rows have exponents far below rounding of a sum that is almost
one, so the *deficit* ``Σ [(1−λ)p + λq − p^{1−λ}q^λ]``, whose terms are non-negative, is summed instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from markov_theory._checks import Array, IntArray, as_transitions

_GRID = np.linspace(0.0, 1.0, 33)
_MAX_STEPS = 60
_CHUNK = 1 << 21  # entries of a (pairs, J) block


def pairs_of_rows(n_rows: int) -> tuple[IntArray, IntArray]:
    """Indices (v, w) of the T(T−1)/2 pairs v < w, in the order that this module uses."""
    first, second = np.triu_indices(n_rows, k=1)
    return first.astype(np.int64), second.astype(np.int64)


def pairwise_chernoff(rows: ArrayLike) -> Array:
    """Chernoff informations ``C(p,q) = −inf_{0<λ<1} log Σ_{p,q>0} p^{1−λ}q^λ`` of all pairs of rows (nats).

    Parameters
    ----------
    rows : array_like, shape (T, J)

    Returns
    -------
    ndarray, shape (T, T)
        Symmetric, zero diagonal, ∞ without common support. Every value is attained at some λ, hence never
        above the true information by more than rounding, whatever the optimiser did.

    Examples
    --------
    >>> float(pairwise_chernoff([[.9, .1], [.1, .9]])[0, 1].round(6))
    0.510826
    """
    laws = as_transitions(rows, "rows")
    n_rows, n_outcomes = laws.shape
    first, second = pairs_of_rows(n_rows)
    start = best_on_grid(laws)[first, second]
    values = np.empty(first.size)
    step = max(1, _CHUNK // n_outcomes)
    for low in range(0, first.size, step):
        cut = slice(low, low + step)
        values[cut] = _refined(laws[first[cut]], laws[second[cut]], start[cut])
    information = np.zeros((n_rows, n_rows))
    information[first, second] = values
    information[second, first] = values
    return information


def middle_exponents(rows: ArrayLike) -> Array:
    """``−log ρ = −log Σ_j √(p_v(j) p_w(j))`` for every pair v < w (nats), shape (T(T−1)/2,)."""
    laws = as_transitions(rows, "rows")
    first, second = pairs_of_rows(laws.shape[0])
    values = np.empty(first.size)
    step = max(1, _CHUNK // laws.shape[1])
    for low in range(0, first.size, step):
        cut = slice(low, low + step)
        values[cut] = middle_exponent(laws[first[cut]], laws[second[cut]])
    return values


def best_on_grid(laws: Array) -> Array:
    """For every pair, the λ of a grid where the affinity is least: one matrix product a λ.  Shape (T, T)."""
    live = laws > 0
    logs = np.log(laws, out=np.zeros_like(laws), where=live)
    least = np.full((laws.shape[0],) * 2, np.inf)
    best = np.full_like(least, 0.5)
    for tilt in _GRID:
        affinity = (np.exp((1 - tilt) * logs) * live) @ (np.exp(tilt * logs) * live).T
        better = affinity < least
        least[better] = affinity[better]
        best[better] = tilt
    return best


def _refined(p: Array, q: Array, start: Array) -> Array:
    """Chernoff informations of pairs of laws, shape (n,), from the best λ of the grid."""
    common = (p > 0) & (q > 0)
    log_p = np.log(p, out=np.zeros_like(p), where=common)
    slope = np.log(q, out=np.zeros_like(q), where=common) - log_p  # (n, J) log-likelihood ratio
    tilt = best_tilt(log_p, slope, common, start)
    exact = np.maximum(exponent_at(p, q, tilt), exponent_at(p, q, start))
    return np.where(common.any(axis=1), np.maximum(exact, middle_exponent(p, q)), np.inf)


def best_tilt(log_p: Array, slope: Array, common: NDArray[np.bool_], start: Array) -> Array:
    """Minimisers over λ of ``log Σ p e^{λ·slope}``: Newton steps in a shrinking bracket, or halving it."""
    low, high = np.maximum(start - _GRID[1], 0.0), np.minimum(start + _GRID[1], 1.0)
    tilt, active = start.copy(), np.arange(start.size)
    for _ in range(_MAX_STEPS):
        now, ratio = tilt[active], slope[active]
        weight = np.exp(log_p[active] + now[:, None] * ratio) * common[active]
        total = np.maximum(weight.sum(axis=1), np.finfo(float).tiny)
        tilted = weight * ratio
        mean = tilted.sum(axis=1) / total  # derivative in λ
        variance = (tilted * ratio).sum(axis=1) / total - mean**2
        low[active] = np.where(mean < 0, now, low[active])
        high[active] = np.where(mean > 0, now, high[active])
        left, right = low[active], high[active]
        step = np.divide(mean, variance, out=np.zeros_like(mean), where=variance > 0)
        inside = (now - step >= left) & (now - step <= right)
        tilt[active] = np.where(inside, now - step, (left + right) / 2)
        gain = np.abs(mean) * np.where(inside, np.abs(step), right - left)  # what is left to win, at most
        active = active[gain > 1e-11 * np.abs(np.log(total)) + 1e-18]
        if active.size == 0:
            break
    return tilt


def exponent_at(p: Array, q: Array, tilt: Array) -> Array:
    """``−log Σ_{p,q>0} p^{1−λ}q^λ`` for pairs of laws at given λ, rounded up by a few ulps at most."""
    base, other = np.maximum(p, q), np.minimum(p, q)
    weight = np.where(q > p, 1 - tilt[:, None], tilt[:, None])  # exponent of the smaller one
    live = other > 0
    gap = other - base
    relative = np.divide(gap, base, out=np.zeros_like(base), where=live)
    close = relative > -0.5  # where log1p is the accurate one
    log_other = np.log(other, out=np.zeros_like(base), where=live)
    log_base = np.log(base, out=np.zeros_like(base), where=live)
    log_ratio = np.log1p(relative, out=log_other - log_base, where=close)
    power = np.expm1(weight * log_ratio)
    terms = np.where(live, weight * gap - base * power, (1 - weight) * base)
    deficit = terms.sum(axis=1)
    deficit += 4 * np.finfo(float).eps * gap.sum(axis=1)  # so that rounding never raises an exponent
    near = -np.log1p(-np.clip(deficit, 0.0, 0.75))
    logs = weight * log_other + (1 - weight) * log_base
    with np.errstate(divide="ignore"):
        far = -logsumexp(np.where(live, logs, -np.inf), axis=1)
    return np.where(deficit < 0.5, near, far)


def middle_exponent(p: Array, q: Array) -> Array:
    """``−log Σ_j √(p(j)q(j))`` of pairs of laws (n, J), shape (n,)."""
    total = np.sqrt(p) + np.sqrt(q)
    gap = np.divide(p - q, total, out=np.zeros_like(p), where=total > 0)  # √p − √q without cancellation
    deficit = (gap**2).sum(axis=1) / 2
    with np.errstate(divide="ignore"):
        far = -np.log(np.sqrt(p * q).sum(axis=1))
    return np.where(deficit < 0.5, -np.log1p(-np.minimum(deficit, 0.75)), far)
