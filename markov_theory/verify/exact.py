"""The exact oracle: failure probabilities by enumeration of tables of counts, for small J and N, or in closed form.

Nothing here is sampled. A failure means that *some* maximiser of the likelihood fails, so a tie is a
failure; log-likelihoods that agree within rounding are ties. What every exact oracle of the package offers is
importable from here.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import rel_entr

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.verify.packed import packed_failure
from markov_theory.verify.tables import (
    MAX_TABLES,
    Bracket,
    Mask,
    Tables,
    compositions,
    likely_tables,
    multinomial_log_pmf,
)
from markov_theory.verify.two_outcomes import Divergence, interval_failure, interval_failures, row_failures

__all__ = [
    "MAX_TABLES",
    "ROUNDING",
    "Bracket",
    "compositions",
    "divergence_from",
    "failure_curve",
    "first_and_last",
    "interval_failure",
    "interval_failures",
    "likely_tables",
    "multinomial_log_pmf",
    "one_to_one_failure",
    "packed_failure",
    "row_failure",
    "row_failures",
    "segment_fails",
    "segment_failure",
]

ROUNDING = 1e-10  # relative, of an enumerated probability
IMPOSSIBLE = -1e290  # for log 0: below every log-likelihood, and 0 times it is 0
_TIE = 1e-12  # relative to the magnitude of the log-likelihood's terms


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
        One probability a truth; 1 for a row that has a duplicate. Tables of total probability below 1e-11 may be
        left out (see `row_failure`).

    Examples
    --------
    >>> one_to_one_failure([[.9, .1], [1, 0]], 2).round(6).tolist()
    [0.81, 0.0]
    """
    rows = _checks.as_transitions(transitions)
    if rows.shape[1] == 2:
        return row_failures(rows[:, 0], [_checks.whole(n_samples, "n_samples")])[0]
    return np.array([float(row_failure(rows, v, n_samples).low) for v in range(rows.shape[0])])


def row_failure(rows: Array, truth: int, n_samples: int, most: int = MAX_TABLES) -> Bracket:
    """`one_to_one_failure` of one truth, with what the enumeration left out.

    Parameters
    ----------
    rows : ndarray, shape (T, J)
    truth : int
        Which row.
    n_samples : int
        N.
    most : int
        Tables to list at most; ValueError if it takes more.
    """
    if rows.shape[0] == 1:
        return Bracket.exact(0.0)
    tables = likely_tables(rows[truth], n_samples, most=most)
    logs = np.log(rows, out=np.full_like(rows, IMPOSSIBLE), where=rows > 0)
    counts = tables.counts.astype(np.float64)
    own = np.where(rows[truth] > 0, logs[truth], 0.0)
    lead = (counts @ (np.delete(logs, truth, axis=0) - own).T).max(axis=1)
    return Bracket.of(tables, lead >= -_TIE * (1 + np.abs(counts @ own)))


def failure_curve(transitions: ArrayLike, n_max: int) -> Array:
    """`one_to_one_failure` at N = 0, …, `n_max`, shape (n_max + 1, T)."""
    rows = _checks.as_transitions(transitions)
    if rows.shape[1] == 2:
        return row_failures(rows[:, 0], np.arange(n_max + 1))
    return np.array([one_to_one_failure(rows, n) for n in range(n_max + 1)])


def segment_failure(rows: ArrayLike, weight: float, n_samples: int, epsilon: float) -> float:
    """Probability that ``KL(q‖q̂) > ε`` for maximum likelihood over the mixtures of two rows, any J.

    Parameters
    ----------
    rows : array_like, shape (2, J)
    weight : float
        The truth is ``q = (1−weight)·rows[0] + weight·rows[1]``.
    n_samples : int
        N; the likely tables of counts are enumerated.
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
    tables = likely_tables((1 - weight) * pair[0] + weight * pair[1], n_samples)
    return float(Bracket.of(tables, segment_fails(tables, pair, weight, epsilon)).low)


def segment_fails(tables: Tables, pair: Array, weight: float, epsilon: float, divergence: Divergence = "kl") -> Mask:
    """Mark the tables at which some maximiser over a segment of laws is farther than ε from the truth in it.

    The divergence from the truth is convex along the segment, so the laws within ε are those between two points.
    The maximiser is beyond such a point if the concave log-likelihood still rises there: one scalar product a table.

    Parameters
    ----------
    tables : Tables
    pair : ndarray, shape (2, J)
    weight : float
        Of the second row in the truth.
    epsilon : float
    divergence : {"kl", "hellinger"}

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    gap = pair[1] - pair[0]
    truth = pair[0] + weight * gap
    fails = np.zeros(tables.counts.shape[0], dtype=bool)
    counts = tables.counts.astype(np.float64)
    for end, direction in ((0.0, -gap), (1.0, gap)):
        edge = _edge(truth, pair[int(end)], epsilon, divergence)
        if edge is not None:
            law = truth + edge * (pair[int(end)] - truth)
            seen = (truth > 0) & (gap != 0)
            slope = np.divide(direction, law, out=np.zeros_like(law), where=seen)
            value = counts @ slope
            fails |= value > _TIE * (counts @ np.abs(slope))
    flat = ~((tables.counts > 0) & (gap != 0)).any(axis=1)
    fails[flat] = divergence_from(truth, pair, divergence).max() > epsilon
    return fails


def divergence_from(truth: Array, laws: Array, divergence: Divergence = "kl") -> Array:
    """KL(q‖·) (nats) or H²(q, ·) from one law (J,) to others (..., J)."""
    if divergence == "kl":
        return np.asarray(rel_entr(truth, laws).sum(axis=-1))
    return np.asarray(((np.sqrt(truth) - np.sqrt(laws)) ** 2).sum(axis=-1))


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


def _edge(truth: Array, end: Array, epsilon: float, divergence: Divergence) -> float | None:
    """Share of the way from the truth to an end at which the divergence is ε; None if it is never more."""
    if float(divergence_from(truth, end, divergence)) <= epsilon:
        return None

    def excess(log_share: float) -> float:
        law = truth + math.exp(log_share) * (end - truth)
        return float(divergence_from(truth, law, divergence)) / epsilon - 1

    low = -1.0
    while excess(low) > 0:
        low *= 2
    return math.exp(brentq(excess, low, 0.0, xtol=1e-15, rtol=1e-15))
