"""What a fit does not say by itself: intervals for the weights, and whether the law is a mixture of the rows at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.stats import chi2

from markov_theory._checks import Array, IntArray, as_counts, as_transitions, open_unit, whole
from markov_theory.randomness import named_generator
from markov_theory.solvers.selection import select_sparsity
from markov_theory.solvers.simplex_mle import simplex_mle

EDGE = 1e-6  # accuracy of an interval's ends
SAME = 1e-6  # statistics (nats) that differ by less are equal: fits are not exact


@dataclass(frozen=True, eq=False)
class WeightIntervals:
    """Maximum-likelihood weights on a support, each with its interval.

    Attributes
    ----------
    support : ndarray of int, shape (s,)
    estimates, lower, upper : ndarray, shape (s,)
        0 <= lower <= estimate <= upper <= 1.
    level : float
        Nominal probability that one interval covers its weight.
    """

    support: IntArray
    estimates: Array
    lower: Array
    upper: Array
    level: float


@dataclass(frozen=True, eq=False)
class HullTest:
    """Whether counts can come from a mixture of the rows.

    Attributes
    ----------
    statistic : float
        2N·KL(n̂‖q̂) (nats), q̂ the likeliest mixture: the likelihood ratio against all laws.
    p_value : float
        (1 + number of bootstrap statistics that are no smaller, to 1e-6) / (1 + B), in [1/(1 + B), 1].
    bootstrap : ndarray, shape (B,)
        Statistics of counts drawn from a mixture, ascending.
    """

    statistic: float
    p_value: float
    bootstrap: Array


def weight_intervals(
    transitions: ArrayLike, counts: ArrayLike, support: ArrayLike, *, level: float = 0.95
) -> WeightIntervals:
    r"""Intervals ``{a ∈ [0, 1] : 2(max_α ℓ(α) − max_{α_v = a} ℓ(α)) ≤ χ²₁(level)}`` of the weights α_v on a support.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,)
    support : array_like of int, shape (s,)
        The rows that are mixed; *given*, not chosen from the same counts: intervals on a chosen support are too short.
    level : float
        Nominal coverage of each interval by itself.

    Returns
    -------
    WeightIntervals

    Raises
    ------
    ValueError, TypeError
        If there are no counts, the support is empty, repeats itself or leaves the dictionary, or an observed outcome
        is impossible under every row of it.

    Notes
    -----
    Coverage tends to the level as N grows where all weights are positive (Wilks). A weight of zero on the support
    is covered more often than stated: its likelihood ratio is half a χ²₁, and the interval keeps the end 0. With
    dependent rows an interval is as wide as the data leave it.

    A weight fixed at a leaves mixtures of the laws a p_v + (1 − a) p_u, u ≠ v, so that each profile likelihood is a
    `simplex_mle` with its certificate; the ends are found to 1e-6.

    References
    ----------
    Wilks (1938); Self and Liang (1987).

    Examples
    --------
    >>> fit = weight_intervals([[.8, .2], [.3, .7]], [700, 300], [0, 1])
    >>> fit.estimates.round(3).tolist(), fit.lower.round(3).tolist(), fit.upper.round(3).tolist()
    ([0.8, 0.2], [0.742, 0.144], [0.856, 0.258])
    """
    P, n = as_transitions(transitions), _some_counts(transitions, counts)
    rows = np.asarray(support)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu" or np.unique(rows).size < rows.size:
        raise ValueError(f"support must be distinct row indices, at least one, got {support!r}")
    if rows.min() < 0 or rows.max() >= P.shape[0]:
        raise ValueError(f"support must lie in 0 … {P.shape[0] - 1}, got {rows.min()} … {rows.max()}")
    quantile = float(chi2.ppf(open_unit(level, "level"), 1))
    P = P[rows]
    estimates = simplex_mle(P, n, _tolerance(n)).alpha[0]
    best = _log_likelihood(P, n, estimates)

    def excess(v: int, a: float) -> float:
        return 2 * (best - _profile(P, n, v, a)) - quantile

    lower, upper = np.zeros(rows.size), np.ones(rows.size)
    for v, estimate in enumerate(estimates.tolist()):
        if rows.size == 1:
            lower[v] = 1.0
            continue
        if estimate > 0 and excess(v, 0.0) > 0:
            lower[v] = brentq(lambda a, v=v: min(excess(v, a), 1e9), 0.0, estimate, xtol=EDGE)
        if estimate < 1 and excess(v, 1.0) > 0:
            upper[v] = brentq(lambda a, v=v: min(excess(v, a), 1e9), estimate, 1.0, xtol=EDGE)
    return WeightIntervals(rows, estimates, lower, upper, level)


def profile_ratio(transitions: ArrayLike, counts: ArrayLike, token: int, weight: float) -> float:
    """Likelihood ratio ``2(max_α ℓ(α) − max_{α_v = a} ℓ(α))`` (nats) of the weight a of one row, α over all rows.

    Parameters
    ----------
    transitions : array_like, shape (s, J)
        The rows that are mixed.
    counts : array_like, shape (J,)
    token : int
        v.
    weight : float
        a in [0, 1].

    Returns
    -------
    float
        In [0, ∞]; a is in the interval of `weight_intervals` iff this is at most the quantile of χ²₁.
    """
    P, n = as_transitions(transitions), _some_counts(transitions, counts)
    v = whole(token, "token", high=P.shape[0] - 1)
    if not 0 <= weight <= 1:
        raise ValueError(f"weight must lie in [0, 1], got {weight!r}")
    best = _log_likelihood(P, n, simplex_mle(P, n, _tolerance(n)).alpha[0])
    return max(0.0, 2 * (best - _profile(P, n, v, float(weight))))


def hull_test(transitions: ArrayLike, counts: ArrayLike, *, n_bootstrap: int = 999, seed: int = 0) -> HullTest:
    r"""Test whether the law of the counts is a mixture of the rows, by 2N·KL(n̂‖hull) and a parametric bootstrap.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,)
    n_bootstrap : int
        B >= 1.
    seed : int
        Of the bootstrap; the same counts and seed give the same p-value.

    Returns
    -------
    HullTest

    Raises
    ------
    ValueError, TypeError
        If there are no counts, or an observed outcome is impossible under every row: then no mixture is possible.

    Notes
    -----
    The statistic is asymptotically the squared distance of a Gaussian to the hull's tangent cone, which depends on the
    face that the law lies on. The likeliest mixture lies on a larger face than the law does, whose statistics are
    smaller; so the bootstrap draws from the sparse mixture of `select_sparsity`, which finds the face as N grows. Its
    level is exact only in that limit; measured ones stand in benchmarks/inference.csv, where the likeliest mixture
    as the bootstrap's law rejects up to three times as often as stated.

    References
    ----------
    Andrews (2000) on the bootstrap at a boundary; Davison and Hinkley (1997), ch. 4, on the +1.
    """
    P, n = as_transitions(transitions), _some_counts(transitions, counts)
    B, N = whole(n_bootstrap, "n_bootstrap", low=1), int(n.sum())
    law = select_sparsity(P, n).fit.alpha[0] @ P
    generator = named_generator(seed, "hull test", N, B)
    drawn = generator.multinomial(N, law / law.sum(), size=B)
    statistics = np.sort(hull_statistics(P, drawn))
    statistic = float(hull_statistics(P, n)[0])
    n_larger = int((statistics >= statistic - max(SAME, 4 * N * _tolerance(n))).sum())
    return HullTest(statistic, (1 + n_larger) / (1 + B), statistics)


def hull_statistics(transitions: ArrayLike, counts: ArrayLike) -> Array:
    """2N·KL(n̂‖likeliest mixture) (nats) of counts (R, J) over rows (T, J), to 2e-7; shape (R,)."""
    P = as_transitions(transitions)
    n = np.atleast_2d(as_counts(counts, P.shape[1]))
    totals = n.sum(axis=1, keepdims=True)
    law = simplex_mle(P, n, _tolerance(n)).alpha @ P
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(n > 0, n * np.log(n / (np.maximum(totals, 1) * law)), 0.0)
    return np.maximum(2 * terms.sum(axis=1), 0.0)


def _profile(P: Array, n: Array, v: int, a: float) -> float:
    """Maximal log-likelihood with weight a on row v; −∞ if an observed outcome is impossible then."""
    rows = a * P[v] + (1 - a) * np.delete(P, v, axis=0)
    if a == 1:
        rows = rows[:1]
    if (n[rows.max(axis=0) == 0] > 0).any():
        return -np.inf
    return _log_likelihood(rows, n, simplex_mle(rows, n, _tolerance(n)).alpha[0])


def _tolerance(n: Array) -> float:
    """Gap (nats per sample) that leaves a likelihood ratio 2e-7 nats, as far as rounding allows."""
    return min(max(1e-7 / max(1.0, float(np.atleast_2d(n).sum(axis=1).max())), 1e-12), 1e-9)


def _log_likelihood(P: Array, n: Array, alpha: Array) -> float:
    seen = n > 0
    with np.errstate(divide="ignore"):
        return float(n[seen] @ np.log((alpha @ P)[seen]))


def _some_counts(transitions: ArrayLike, counts: ArrayLike) -> Array:
    n = as_counts(counts, np.asarray(transitions).shape[-1])
    if n.ndim != 1 or n.sum() == 0:
        raise ValueError(f"counts must be those of one problem, at least one sample, got shape {n.shape}")
    return n
