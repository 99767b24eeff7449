"""The exact oracle for supports: whether maximum likelihood over mixtures of at most two rows names the rows mixed.

For every likely table of counts the likelihood is maximised over every row and every pair of rows. A failure means
that *some* maximiser fails; log-likelihoods that agree within rounding are ties.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.verify.hulls import best_weights, mean_log
from markov_theory.verify.tables import MAX_TABLES, Bracket, likely_tables

TIE = 1e-12  # nats a sample, relative to the log-likelihood: what agrees this closely is a tie


def support_failure(
    transitions: ArrayLike, alpha: ArrayLike, sparsity: int, n_samples: int, most: int = MAX_TABLES
) -> Bracket:
    """Probability that some maximiser over s-sparse mixtures gives no weight to some row that the truth mixes.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    alpha : array_like, shape (T,)
        Weights of the truth ``q = Σ_v α_v p_v``; at most s of them positive.
    sparsity : int
        s: 1 or 2.
    n_samples : int
        N.
    most : int
        Tables to list at most; ValueError if it takes more.

    Returns
    -------
    Bracket
        The probability, under q, that the largest likelihood over the supports of size ≤ s that lack some row of the
        truth's is at least that over all others. Exact but for the tables left out.

    Examples
    --------
    >>> rows = [[.9, .1, 0], [.1, .9, 0], [0, .1, .9]]
    >>> support_failure(rows, [.5, .5, 0], sparsity=2, n_samples=2).low.round(6).item()  # one row suits one outcome
    0.5
    """
    P, weights = _checks.as_transitions(transitions), _checks.as_laws(alpha, "alpha")
    if weights.shape != (P.shape[0],):
        raise ValueError(f"alpha must have shape ({P.shape[0]},) to match the rows, got {weights.shape}")
    s = min(_checks.whole(sparsity, "sparsity", low=1, high=2), P.shape[0])
    truth = frozenset(np.flatnonzero(weights).tolist())
    if len(truth) > s:
        raise ValueError(f"alpha must mix at most {s} rows, got {len(truth)}")
    tables = likely_tables(weights @ P, n_samples, most=most)
    frequencies = tables.counts / max(1, n_samples)
    right = np.full(frequencies.shape[0], -np.inf)
    wrong = right.copy()
    for size in range(1, s + 1):
        for support in combinations(range(P.shape[0]), size):
            best = right if truth <= set(support) else wrong
            np.maximum(best, _maximum(frequencies, P[list(support)]), out=best)
    slack = TIE * (1 + np.abs(right, where=np.isfinite(right), out=np.zeros_like(right)))
    return Bracket.of(tables, wrong >= right - slack)


def _maximum(frequencies: Array, rows: Array) -> Array:
    """Largest log-likelihood a sample over the mixtures of one or two rows, shape (n,).

    A maximum at an end of a pair is the row's own number, to the bit, so that it ties with the row.
    """
    ends = np.array([mean_log(frequencies, np.broadcast_to(row, frequencies.shape)) for row in rows])
    if rows.shape[0] == 1:
        return np.asarray(ends[0])
    weight = best_weights(frequencies, rows)[:, None]
    inside = mean_log(frequencies, (1 - weight) * rows[0] + weight * rows[1])
    return np.where(weight[:, 0] == 0, ends[0], np.where(weight[:, 0] == 1, ends[1], np.maximum(inside, ends.max(0))))
