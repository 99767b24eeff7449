"""Exact ℓ0: the best mixture of at most s rows, by enumeration of every support."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, positive, whole
from markov_theory._compile import compiled
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers.result import INACCURATE, MixtureFit, certified, frequencies

MAX_SUPPORTS = 200_000


@dataclass(frozen=True, eq=False)
class BestSubset(MixtureFit):
    """A `MixtureFit` with every support of s rows that attains the maximum (to the tolerance).

    Attributes
    ----------
    supports : tuple of tuple of tuple of int, length R
        More than one entry: the support is not unique, as with duplicate rows.
    """

    supports: tuple[tuple[tuple[int, ...], ...], ...]


def best_subset(transitions: ArrayLike, counts: ArrayLike, sparsity: int, tolerance: float = 1e-9) -> BestSubset:
    """Solve ``max Σ_j n_j log (Pᵀα)_j`` over α ∈ Δ with ‖α‖₀ ≤ s exactly: fit each of the C(T, s) supports.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,) or (R, J)
    sparsity : int
        s >= 1; values above T mean T.
    tolerance : float
        Certified gap of every support's fit, nats per sample; supports within it of the best count as ties.

    Returns
    -------
    BestSubset
        ``gap`` is the certificate of the fit on the winning support plus the largest one among the others.

    Raises
    ------
    ValueError
        If there are more than 200,000 supports, or as in `simplex_mle`.
    """
    sparsity = whole(sparsity, "sparsity", low=1)
    tolerance = positive(tolerance, "tolerance")
    P, F, has_data = frequencies(transitions, counts)
    sparsity = min(sparsity, P.shape[0])
    n_supports = math.comb(P.shape[0], sparsity)
    if n_supports > MAX_SUPPORTS:
        raise ValueError(
            f"enumeration of {n_supports:,} supports (C({P.shape[0]}, {sparsity})) exceeds {MAX_SUPPORTS:,}: "
            "use KL pursuit, fewer rows or a smaller s"
        )
    supports = np.array(list(combinations(range(P.shape[0]), sparsity)), dtype=np.int64)
    alpha, gap = np.zeros((F.shape[0], P.shape[0])), np.zeros(F.shape[0])
    tied: list[tuple[tuple[int, ...], ...]] = []
    for i, f in enumerate(F):
        if not has_data[i]:
            tied.append(tuple(map(tuple, supports.tolist())))
            continue
        weights, values, gaps = _fit_supports(P, f, supports, tolerance)
        best = int(values.argmax())
        alpha[i, supports[best]] = weights[best]
        gap[i] = max(0.0, float((values + gaps).max() - values[best]))
        tied.append(tuple(tuple(supports[k].tolist()) for k in np.flatnonzero(values >= values[best] - tolerance)))
    fit = certified(alpha, gap, has_data, tolerance, INACCURATE)
    return BestSubset(fit.alpha, fit.gap, fit.status, tuple(tied))


@compiled
def _fit_supports(P: Array, f: Array, supports: np.ndarray, tolerance: float) -> tuple[Array, Array, Array]:
    """Weights, mean log-likelihoods and certified gaps on each support; −∞ and 0 where an outcome is impossible."""
    n, s = supports.shape
    weights, values, gaps = np.zeros((n, s)), np.full(n, -np.inf), np.zeros(n)
    seen = np.flatnonzero(f > 0.0)
    for k in range(n):
        rows = P[supports[k]]
        possible = True
        for j in seen:
            if rows[:, j].max() <= 0.0:
                possible = False
                break
        if not possible:
            continue
        alpha, gap, _ = solve_batch(rows, f.copy().reshape(1, -1), tolerance, s)
        q = alpha[0] @ rows
        total = 0.0
        for j in seen:
            total += f[j] * np.log(q[j])
        weights[k], values[k], gaps[k] = alpha[0], total, max(gap[0], 0.0)
    return weights, values, gaps
