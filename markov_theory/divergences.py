"""Divergences between laws, in nats, and the constants that compare them.

Zeros follow the usual conventions: 0·log 0 = 0, a log(a/0) = ∞ for a > 0; no value is ever NaN.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, rel_entr

from markov_theory._checks import Array, as_laws, as_transitions


def kl_divergence(p: ArrayLike, q: ArrayLike) -> Array:
    """Kullback-Leibler divergence ``KL(p‖q) = Σ_j p_j log(p_j / q_j)`` (nats).

    Parameters
    ----------
    p, q : array_like, shape (..., J)
        Laws; leading axes broadcast. The *first* argument is the law that is averaged over.

    Returns
    -------
    ndarray, shape (...)
        In [0, ∞]; ∞ where some p_j > 0 = q_j.

    Raises
    ------
    ValueError
        If an argument is not a law (negative, not finite, sum not 1) or the numbers of outcomes differ.

    Examples
    --------
    >>> float(kl_divergence([.5, .5], [.9, .1]).round(6))
    0.510826
    """
    p, q = _pair(p, q)
    return kl_of(p, q)


def kl_of(p: Array, q: Array) -> Array:
    """`kl_divergence` of laws (..., J) that are known to be laws; keeps its digits for p next to q.

    Summed is ``p log(p/q) − p + q`` ≥ 0, by its series in p/q − 1 where that is small.
    """
    gap = p - q
    close = np.abs(gap) <= q / 2
    x = np.divide(gap, q, out=np.zeros_like(gap), where=close & (q > 0))  # p/q − 1
    near = np.abs(x) < 1e-4
    y = np.where(near, x, 0.0)
    series = y**2 * (1 / 2 - y * (1 / 6 - y * (1 / 12 - y / 20)))
    terms = q * np.where(near, series, (1 + x) * np.log1p(x) - x)
    return np.asarray(np.where(close, terms, rel_entr(p, q) - gap).sum(axis=-1))


def squared_hellinger(p: ArrayLike, q: ArrayLike) -> Array:
    """Squared Hellinger distance ``H² = Σ_j (√p_j − √q_j)²``, in [0, 2].  Arguments as in `kl_divergence`."""
    p, q = _pair(p, q)
    return ((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=-1)


def jensen_shannon(rows: ArrayLike) -> float:
    """Jensen-Shannon divergence of M laws: mean KL to their barycentre (nats), in [0, log M].

    Parameters
    ----------
    rows : array_like, shape (M, J)
    """
    laws = as_transitions(rows, "rows")
    return float(kl_divergence(laws, laws.mean(axis=0)).mean())


def chernoff_information(p: ArrayLike, q: ArrayLike) -> float:
    """Chernoff information ``C(p,q) = −inf_{0<λ<1} log Σ_{p,q>0} p^{1−λ} q^λ`` (nats); ∞ without common support.

    Parameters
    ----------
    p, q : array_like, shape (J,)

    Notes
    -----
    ``log Σ p^{1−λ}q^λ`` is convex in λ; the infimum is taken over the open interval, where only the common
    support counts, so its limits at the ends are ``log p(q>0)`` and ``log q(p>0)``.

    Examples
    --------
    >>> round(chernoff_information([.9, .1], [.1, .9]), 6)
    0.510826
    """
    p, q = _pair(p, q)
    common = (p > 0) & (q > 0)
    if not common.any():
        return math.inf
    log_p, log_q = np.log(p[common]), np.log(q[common])

    def log_affinity(tilt: float) -> float:
        return float(logsumexp((1 - tilt) * log_p + tilt * log_q))

    inner = minimize_scalar(log_affinity, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    return max(0.0, -min(float(inner.fun), log_affinity(0.0), log_affinity(1.0)))


def pairwise_kl(rows: ArrayLike) -> Array:
    """All ``KL(p_v‖p_v')`` of T laws (nats), shape (T, T); diagonal 0, ∞ where supports require it."""
    laws = as_transitions(rows, "rows")
    live = laws > 0
    logs = np.log(laws, where=live, out=np.zeros_like(laws))
    divergence = (laws * logs).sum(axis=1)[:, None] - laws @ logs.T
    if not live.all():
        divergence[laws @ (~live).T.astype(float) > 0] = math.inf
    np.fill_diagonal(divergence, 0.0)
    return np.maximum(divergence, 0.0)


def margin(rows: ArrayLike) -> float:
    """KL margin ``γ = min_{v≠v'} KL(p_v‖p_v')`` (nats); 0 with duplicate rows, ∞ for a single row."""
    divergence = pairwise_kl(rows)
    np.fill_diagonal(divergence, math.inf)
    if divergence.shape[0] == 1:
        return math.inf
    laws = as_transitions(rows, "rows")
    nearest = divergence <= divergence.min() + 1e-12  # known to rounding of its two large terms
    np.fill_diagonal(nearest, False)
    sources = np.flatnonzero(nearest.any(axis=1))
    return min(float(kl_divergence(laws[v], laws[nearest[v]]).min()) for v in sources)


def density_ratio(rows: ArrayLike) -> float:
    """Density ratio ``c = max_j max_{v,v'} p_v(j)/p_v'(j)`` over outcomes that some row can give.

    Returns
    -------
    float
        In [1, ∞]; ∞ if a row has a zero where another has not. Every two mixtures of the rows keep the ratio.
    """
    laws = as_transitions(rows, "rows")
    high, low = laws.max(axis=0), laws.min(axis=0)
    live = high > 0
    if (low[live] == 0).any():
        return math.inf
    return float((high[live] / low[live]).max())


def kappa(ratio: float) -> float:
    """Constant of ``H² ≤ KL(p‖q) ≤ κ(c)·H²`` whenever p/q ≤ c.

    ``κ(c) = (c log c − c + 1)/(√c − 1)²``: increasing, 2 at c = 1, at most 2 + log c, tight.

    Parameters
    ----------
    ratio : float
        c in [1, ∞].

    Raises
    ------
    ValueError
        If c < 1.

    Examples
    --------
    >>> round(kappa(9.0), 6)
    2.943755
    """
    if not ratio >= 1:
        raise ValueError(f"the density ratio must be >= 1, got {ratio:g}")
    if math.isinf(ratio):
        return math.inf
    log_ratio = math.log(ratio)
    x = log_ratio / 2
    if x < 0.01:  # the quotient cancels to 0/0: its Taylor series, exact to 1e-13
        return 2 + x * (2 / 3 + x * (1 / 6 + x * (1 / 90 - x / 360)))
    return (log_ratio + math.expm1(-log_ratio)) / math.expm1(-x) ** 2


def largest_kl(ratio: float) -> float:
    """Largest KL between two laws of density ratio at most c: ``L·tanh(L/2)`` with L = log c (nats)."""
    log_ratio = math.log(ratio)
    return math.inf if math.isinf(log_ratio) else log_ratio * math.tanh(log_ratio / 2)


def _pair(p: ArrayLike, q: ArrayLike) -> tuple[Array, Array]:
    p, q = as_laws(p, "p"), as_laws(q, "q")
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"p and q must have as many outcomes, got {p.shape[-1]} and {q.shape[-1]}")
    return p, q
