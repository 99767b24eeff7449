"""Tables of counts: all of a given total, or those that a law makes likely, with their probabilities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb, gammaln
from scipy.stats import binom

from markov_theory import _checks
from markov_theory._checks import Array, IntArray

Mask = NDArray[np.bool_]
MAX_TABLES = 5_000_000
TAIL = 1e-11  # probability that may be left out of an enumeration; it is counted, not forgotten
FEW = 4096  # tables up to which nothing is left out


class Tables(NamedTuple):
    """Tables of counts (n, J), the probability of each (n,), and a bound on that of all tables left out."""

    counts: IntArray
    probability: Array
    lost: float


class Bracket(NamedTuple):
    """Exact probabilities as intervals: what was enumerated, and that plus what was left out or undecided."""

    low: Array
    high: Array

    @classmethod
    def exact(cls, values: ArrayLike) -> Bracket:
        """Of probabilities that are known."""
        known = np.minimum(np.asarray(values, dtype=np.float64), 1.0)
        return cls(known, known)

    @classmethod
    def of(cls, tables: Tables, fails: Mask, undecided: Mask | None = None) -> Bracket:
        """Of the event that holds at the tables marked."""
        low = float(tables.probability[fails].sum())
        more = 0.0 if undecided is None else float(tables.probability[undecided & ~fails].sum())
        return cls(np.array(min(low, 1.0)), np.array(min(low + more + tables.lost, 1.0)))


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
    return _tables_in_box(n_samples, np.zeros(n_outcomes, np.int64), np.full(n_outcomes, n_samples, np.int64))


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
    return np.asarray(log_ways[:, None] + log_likelihoods(counts, _checks.as_transitions(laws, "laws")))


def log_likelihoods(counts: IntArray | Array, rows: Array) -> Array:
    """``Σ_j n_j log p_v(j)`` with 0·log 0 = 0, shape (n, T)."""
    live = rows > 0
    logs = np.log(rows, out=np.zeros_like(rows), where=live)
    value = np.asarray(counts @ logs.T, dtype=np.float64)
    if not live.all():
        value[counts @ (~live).T > 0] = -np.inf
    return value


def likely_tables(law: ArrayLike, n_samples: int, tail: float = TAIL, most: int = MAX_TABLES) -> Tables:
    """Tables of N counts under a law, without those of a count far from its mean.

    A count is left out where the law's own binomial law gives all that is beyond less than tail/(2J), so what is
    left out has probability at most `tail`, all together; the bound returned is computed, and 0 if nothing is.

    Parameters
    ----------
    law : array_like, shape (J,)
    n_samples : int
        N.
    tail : float
        Probability that may be left out.
    most : int
        Tables to list at most.

    Raises
    ------
    ValueError
        If there are more.

    Examples
    --------
    >>> tables = likely_tables([.5, .3, .2], 1000)
    >>> tables.counts.shape[0] < 60_000, tables.lost < 1e-11, bool(abs(tables.probability.sum() - 1) < 1e-11)
    (True, True, True)
    """
    q = _checks.as_laws(law)
    N = _checks.whole(n_samples, "n_samples")
    low, high, lost = _box(q, N, tail)
    n_tables = _box_size(N, low, high)
    if n_tables > most:
        raise ValueError(f"about {n_tables:.3g} tables of counts are too many to enumerate (at most {most:,})")
    counts = _tables_in_box(N, low, high)
    log_probability = np.full(counts.shape[0], float(gammaln(N + 1.0)))
    for j in range(q.size):
        n = np.arange(low[j], high[j] + 1, dtype=np.float64)
        log_q = np.log(q[j]) if q[j] > 0 else 0.0  # its count is 0 then
        log_probability += (n * log_q - gammaln(n + 1.0))[counts[:, j] - low[j]]
    return Tables(counts, np.exp(log_probability), lost)


def n_likely_tables(law: Array, n_samples: int, tail: float = TAIL) -> float:
    """About how many tables `likely_tables` lists, from above."""
    low, high, _ = _box(law, n_samples, tail)
    return _box_size(n_samples, low, high)


def _box(q: Array, N: int, tail: float) -> tuple[IntArray, IntArray, float]:
    """Least and greatest count of each outcome, and a bound on the probability beyond them."""
    J = q.size
    low, high = np.zeros(J, np.int64), np.where(q > 0, N, 0).astype(np.int64)
    if comb(N + J - 1, J - 1) <= FEW:
        return low, high, 0.0
    share = tail / (2 * J)
    low = np.maximum(binom.ppf(share, N, q) - 1, 0).astype(np.int64)
    high = np.minimum(binom.isf(share, N, q) + 1, high).astype(np.int64)
    return low, high, float(np.sum(binom.cdf(low - 1, N, q) + binom.sf(high, N, q)))


def _box_size(N: int, low: IntArray, high: IntArray) -> float:
    """Number of tables in a box, from above: all counts but one are free."""
    widths = np.sort((high - low + 1).astype(np.float64))
    free = float(np.prod(widths[:-1]))
    return min(free, float(comb(N + low.size - 1, low.size - 1)))


def _tables_in_box(N: int, low: IntArray, high: IntArray) -> IntArray:
    """All tables with total N and low ≤ n ≤ high, one outcome after the other, in lexicographic order."""
    J = low.size
    least_after = np.append(np.cumsum(low[::-1])[::-1][1:], 0)
    most_after = np.append(np.cumsum(high[::-1])[::-1][1:], 0)
    columns: list[IntArray] = []
    left = np.array([N], dtype=np.int64)
    for j in range(J):
        first = np.maximum(low[j], left - most_after[j])
        n_choices = np.maximum(np.minimum(high[j], left - least_after[j]) - first + 1, 0)
        parent = np.repeat(np.arange(left.size), n_choices)
        starts = np.cumsum(n_choices) - n_choices
        count = np.arange(parent.size) - (starts - first)[parent]
        columns = [column[parent] for column in columns]
        columns.append(count)
        left = left[parent] - count
    return np.column_stack(columns)
