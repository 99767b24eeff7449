"""How many rows to mix when nobody says: the extended Bayesian information criterion over KL pursuits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from markov_theory._checks import Array, IntArray, positive, whole
from markov_theory.solvers.pursuit import kl_pursuit
from markov_theory.solvers.result import MixtureFit, frequencies
from markov_theory.solvers.simplex_mle import simplex_mle

LARGEST = 32


@dataclass(frozen=True, eq=False)
class SparsitySelection:
    """The number of rows chosen for each of R problems, the fit of that many, and what was compared.

    Attributes
    ----------
    sparsity : ndarray of int, shape (R,)
        The s that minimises the criterion, the smallest of equals; 1 without data.
    fit : MixtureFit
        The KL pursuit with that s; its gap speaks of mixtures of at most s rows.
    criterion : ndarray, shape (R, s_max)
        −2 log-likelihood + penalty (nats), for s = 1 … s_max; NaN where the bound of `select_sparsity` spared the fit.
    """

    sparsity: IntArray
    fit: MixtureFit
    criterion: Array


def select_sparsity(
    transitions: ArrayLike, counts: ArrayLike, *, largest: int | None = None, tolerance: float = 1e-9
) -> SparsitySelection:
    r"""Minimise ``−2 max_{‖α‖₀ ≤ s} Σ_j n_j log (Pᵀα)_j + (s − 1) log N + 2 log C(T, s)`` over s, for R problems.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,) or (R, J)
    largest : int, optional
        The largest s considered; min(T, 32) by default.
    tolerance : float
        Accuracy of each fit, nats per sample.

    Returns
    -------
    SparsitySelection

    Raises
    ------
    ValueError, TypeError
        On wrong shapes or values; see `simplex_mle`.

    Notes
    -----
    A mixture of s rows has s − 1 free weights, and there are C(T, s) sets of rows. Without the second penalty, one of
    the T − s rows too many is admitted with probability that grows with T: its weight's likelihood ratio is half a
    χ²₁ (weights are not negative), and the largest of T − s of those is about 2 log T. With it, the union bound over
    rows leaves a probability of order (s + 1)/√(N log N). A row of weight so small that it gains less than
    ½ log N + log(T/s) nats in all is left out: that is the rule's price.

    Since no s gains more than the mixture of all rows, larger s are not tried once their penalty exceeds what that
    could gain. Likelihoods are those that `kl_pursuit` reaches, made monotone in s.

    References
    ----------
    Schwarz (1978); Chen and Chen (2008), with their γ = 1.

    Examples
    --------
    >>> chosen = select_sparsity([[.8, .1, .1], [.1, .8, .1], [.1, .1, .8]], [[80, 10, 10], [450, 450, 100]])
    >>> chosen.sparsity.tolist()
    [1, 2]
    """
    tolerance = positive(tolerance, "tolerance")
    P, F, has_data = frequencies(transitions, counts)
    n = np.atleast_2d(np.asarray(counts, dtype=float))
    T, R = P.shape[0], len(F)
    top = min(T, LARGEST) if largest is None else min(whole(largest, "largest", low=1), T)
    penalties = _penalties(T, top, np.maximum(n.sum(axis=1), 1))
    relaxed = simplex_mle(P, n, max(tolerance, 1e-8))
    ceiling = 2 * (_log_likelihood(P, n, relaxed.alpha) + n.sum(axis=1) * relaxed.gap)
    criterion, best = np.full((R, top), np.nan), np.full(R, np.inf)
    sparsity = np.ones(R, dtype=np.int64)
    alpha, gap, status = relaxed.alpha.copy(), relaxed.gap.copy(), relaxed.status.copy()
    reached = np.full(R, -np.inf)
    for s in range(1, top + 1):
        open_ = np.flatnonzero(has_data & (penalties[:, s - 1 :].min(axis=1) - ceiling < best))
        if not open_.size:
            break
        fit = kl_pursuit(P, n[open_], s, tolerance)
        value = _log_likelihood(P, n[open_], fit.alpha)
        reached[open_] = np.maximum(reached[open_], value)
        criterion[open_, s - 1] = penalties[open_, s - 1] - 2 * reached[open_]
        better = (criterion[open_, s - 1] < best[open_]) & (value >= reached[open_])
        who = open_[better]
        best[who], sparsity[who] = criterion[who, s - 1], s
        alpha[who], gap[who], status[who] = fit.alpha[better], fit.gap[better], fit.status[better]
    return SparsitySelection(sparsity, MixtureFit(alpha, gap, status), criterion)


def _penalties(n_tokens: int, largest: int, n_samples: Array) -> Array:
    """(s − 1) log N + 2 log C(T, s), shape (R, s_max)."""
    s = np.arange(1, largest + 1)
    log_choices = gammaln(n_tokens + 1) - gammaln(s + 1) - gammaln(n_tokens - s + 1)
    return (s - 1) * np.log(n_samples)[:, None] + 2 * log_choices


def _log_likelihood(P: Array, n: Array, alpha: Array) -> Array:
    """Σ_j n_j log (Pᵀα)_j (nats), −∞ where an observed outcome is impossible."""
    laws = alpha @ P
    with np.errstate(divide="ignore"):
        return np.where(n > 0, n * np.log(np.where(n > 0, laws, 1.0)), 0.0).sum(axis=1)
