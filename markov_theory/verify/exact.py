"""The exact oracle: failure probabilities by enumeration of every table of counts, for small J and N.

Nothing here is sampled. A failure means that *some* maximiser of the likelihood fails, so a tie is a
failure; log- likelihoods that agree within rounding are ties.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import comb, gammaln, rel_entr, xlogy
from scipy.stats import binom, poisson

from markov_theory import _checks
from markov_theory._checks import Array, IntArray

MAX_TABLES = 5_000_000
ROUNDING = 1e-10  # relative, of an enumerated probability
_TIE = 1e-12  # relative to the magnitude of the log-likelihood's terms


def compositions(n_samples: int, n_outcomes: int) -> IntArray:
    """All tables of counts with a given total: the C(N+J−1, J−1) vectors n ≥ 0 with Σ_j n_j = N.

    Parameters
    ----------
    n_samples, n_outcomes : int
        N ≥ 0 and J ≥ 1.

    Returns
    -------
    ndarray of int64, shape (C(N+J−1, J−1), J)

    Raises
    ------
    ValueError
        If there are more than `MAX_TABLES` of them.

    Examples
    --------
    >>> compositions(2, 2).tolist()
    [[0, 2], [1, 1], [2, 0]]
    """
    n_samples = _checks.whole(n_samples, "n_samples")
    n_outcomes = _checks.whole(n_outcomes, "n_outcomes", low=1)
    n_tables = comb(n_samples + n_outcomes - 1, n_outcomes - 1)
    if n_tables > MAX_TABLES:
        raise ValueError(f"{n_tables:.3g} tables of counts are too many to enumerate (at most {MAX_TABLES:,})")
    tables = np.zeros((1, 0), dtype=np.int64)
    left = np.array([n_samples], dtype=np.int64)
    for _ in range(n_outcomes - 1):
        parent = np.repeat(np.arange(left.size), left + 1)
        ends = np.cumsum(left + 1)
        count = np.arange(parent.size) - np.repeat(ends - (left + 1), left + 1)
        tables = np.column_stack([tables[parent], count])
        left = left[parent] - count
    return np.column_stack([tables, left])


def multinomial_log_pmf(counts: IntArray, laws: ArrayLike) -> Array:
    """Log-probability of every table of counts (…, J) under every law; −∞ where impossible.

    Parameters
    ----------
    counts : ndarray of int, shape (n, J)
    laws : array_like, shape (T, J)

    Returns
    -------
    ndarray, shape (n, T)
    """
    log_ways = gammaln(counts.sum(axis=1) + 1.0) - gammaln(counts + 1.0).sum(axis=1)
    return np.asarray(log_ways[:, None] + _log_likelihoods(counts, _checks.as_transitions(laws, "laws")))


def one_to_one_failure(transitions: ArrayLike, n_samples: int) -> Array:
    """Probability that maximum likelihood over single rows does not name the truth alone, for every truth.

    Failure under truth v* is the event that some other row's likelihood is at least that of v*.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    n_samples : int
        N.

    Returns
    -------
    ndarray, shape (T,)
        One probability a truth; 1 for a row that has a duplicate.

    Examples
    --------
    >>> one_to_one_failure([[.9, .1], [1, 0]], 2).round(6).tolist()
    [0.81, 0.0]
    """
    rows = _checks.as_transitions(transitions)
    counts = compositions(n_samples, rows.shape[1])
    likelihood = _log_likelihoods(counts, rows)  # (n, T)
    top = np.partition(likelihood, -2, axis=1)[:, -2:] if rows.shape[0] > 1 else None
    probability = np.exp(multinomial_log_pmf(counts, rows))
    if top is None:
        return np.zeros(1)
    slack = _TIE * (1 + np.abs(np.where(np.isfinite(likelihood), likelihood, 0.0)))
    # The best rival of a row is the best of all, or the second best if the row itself is the best.
    rival = np.where(likelihood >= top[:, 1:], top[:, :1], top[:, 1:])
    fails = rival >= likelihood - slack
    return np.minimum((probability * fails).sum(axis=0), 1.0)


def failure_curve(transitions: ArrayLike, n_max: int) -> Array:
    """`one_to_one_failure` at N = 0, …, `n_max`, shape (n_max + 1, T)."""
    return np.array([one_to_one_failure(transitions, n) for n in range(n_max + 1)])


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
    for count in top[weight > 1e-18][::-1]:
        success += weight[count] * _all_below(int(count), n_samples - int(count), n_tokens - 1)
    return float(min(1.0, max(0.0, 1.0 - success)))


def interval_failure(low: float, high: float, truth: float, n_samples: int, epsilon: float) -> float:
    """Probability that ``KL(q‖q̂) > ε`` for maximum likelihood over all mixtures of laws on J = 2 outcomes.

    The mixtures are the laws (x, 1−x) with x in [low, high]; as the likelihood is strictly concave in x on
    the outcomes seen, its maximiser is the empirical frequency moved to the nearest end of the interval, and
    is unique for N ≥ 1. Without a sample every mixture maximises, and the worst one counts.

    Parameters
    ----------
    low, high : float
        Least and greatest probability of the first outcome among the rows.
    truth : float
        Probability x of the first outcome under q, in [low, high].
    n_samples : int
        N.
    epsilon : float
        ε, nats.

    Examples
    --------
    >>> round(interval_failure(.2, .8, .5, 1423, 1e-3), 4)
    0.0897
    """
    if not 0 <= low <= truth <= high <= 1:
        raise ValueError(f"need 0 <= low <= truth <= high <= 1, got {low:g}, {truth:g}, {high:g}")
    n_samples = _checks.whole(n_samples, "n_samples")
    epsilon = _checks.positive(epsilon, "epsilon")
    if n_samples == 0:
        return float(max(_binary_kl(truth, np.array([low, high]))) > epsilon)
    seen = np.arange(n_samples + 1)
    estimate = np.clip(seen / n_samples, low, high)
    fails = _binary_kl(truth, estimate) > epsilon
    return float(min(1.0, binom.pmf(seen, n_samples, truth)[fails].sum()))


def segment_failure(rows: ArrayLike, weight: float, n_samples: int, epsilon: float) -> float:
    """Probability that ``KL(q‖q̂) > ε`` for maximum likelihood over the mixtures of two rows, any J.

    Parameters
    ----------
    rows : array_like, shape (2, J)
    weight : float
        The truth is ``q = (1−weight)·rows[0] + weight·rows[1]``.
    n_samples : int
        N; all C(N+J−1, J−1) tables of counts are enumerated.
    epsilon : float
        ε, nats.

    Notes
    -----
    The likelihood is strictly concave in the weight unless the rows agree on every outcome seen; then every
    mixture maximises it, and the worst one counts.

    Examples
    --------
    >>> round(segment_failure([[.2, .8], [.8, .2]], .5, 1423, 1e-3), 4)
    0.0897
    """
    pair = _checks.as_transitions(rows, "rows")
    if pair.shape[0] != 2 or not 0 <= weight <= 1:
        raise ValueError(f"need two rows and a weight in [0, 1], got {pair.shape[0]} and {weight:g}")
    epsilon = _checks.positive(epsilon, "epsilon")
    truth = (1 - weight) * pair[0] + weight * pair[1]
    counts = compositions(n_samples, pair.shape[1])
    estimate = _best_weight(counts, pair)
    laws = (1 - estimate)[:, None] * pair[0] + estimate[:, None] * pair[1]
    divergence = rel_entr(truth, laws).sum(axis=1)
    flat = ~((counts > 0) & (pair[0] != pair[1])).any(axis=1)
    divergence[flat] = rel_entr(truth, pair).sum(axis=1).max()
    probability = np.exp(multinomial_log_pmf(counts, truth[None, :]))[:, 0]
    return float(min(1.0, probability[divergence > epsilon].sum()))


def first_and_last(failures: ArrayLike, delta: float) -> tuple[float, float]:
    """Least N with failure ≤ δ, and least N from which failure stays ≤ δ to the end of the range given.

    Failure probabilities need not fall with N, so the two differ.

    Parameters
    ----------
    failures : array_like, shape (n_max + 1,) or (n_max + 1, T)
        Failure probability at N = 0, 1, …; with several columns, the worst truth counts. The second number is
        N*_last only if failure is known to stay ≤ δ beyond the range, for example from an upper bound on N.
    delta : float
        δ; a failure probability that equals it, within rounding, qualifies.

    Returns
    -------
    (float, float)
        ``inf`` where no N of the range qualifies.

    Examples
    --------
    >>> first_and_last([1, .2, .04, .06, .01], .05)
    (2.0, 4.0)
    """
    delta = _checks.open_unit(delta, "delta")
    curve = np.asarray(failures, dtype=float)
    good = (curve if curve.ndim == 1 else curve.max(axis=1)) <= delta * (1 + ROUNDING)
    first = float(np.argmax(good)) if good.any() else math.inf
    bad = np.flatnonzero(~good)
    last = float(bad[-1] + 1) if bad.size else 0.0
    return first, last if last < good.size else math.inf


def _log_likelihoods(counts: IntArray, rows: Array) -> Array:
    """``Σ_j n_j log p_v(j)`` with 0·log 0 = 0, shape (n, T)."""
    live = rows > 0
    logs = np.log(rows, out=np.zeros_like(rows), where=live)
    value = np.asarray(counts @ logs.T, dtype=np.float64)
    if not live.all():
        value[counts @ (~live).T > 0] = -np.inf
    return value


def _best_weight(counts: IntArray, pair: Array) -> Array:
    """Maximiser over [0, 1] of the concave ``w ↦ Σ_j n_j log((1−w)p_j + w p'_j)`` for every table."""
    gap = pair[1] - pair[0]

    def slope(weight: Array) -> Array:
        law = (1 - weight)[:, None] * pair[0] + weight[:, None] * pair[1]
        with np.errstate(divide="ignore"):
            terms = np.divide(gap, law, out=np.zeros_like(law), where=(counts > 0) & (gap != 0))
        return np.asarray((counts * terms).sum(axis=1))

    low, high = np.zeros(counts.shape[0]), np.ones(counts.shape[0])
    at_low, at_high = slope(low) <= 0, slope(high) >= 0
    for _ in range(60):
        middle = (low + high) / 2
        rising = slope(middle) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.where(at_low, 0.0, np.where(at_high, 1.0, (low + high) / 2))


def _binary_kl(truth: float, estimate: Array) -> Array:
    return np.asarray(rel_entr(truth, estimate) + rel_entr(1 - truth, 1 - estimate), dtype=np.float64)


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
    return float(total[n_balls] / poisson.pmf(n_balls, n_balls))
