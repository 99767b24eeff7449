"""Sparse mixtures by pursuit: KL pursuit with exchanges, and orthogonal matching pursuit in least squares."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, as_transitions, positive, whole
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers._splicing import pursue_batch
from markov_theory.solvers.result import FEASIBLE, MixtureFit, certified, frequencies
from markov_theory.solvers.simplex_mle import FIRST_ROWS

RELAXED_TOLERANCE = 1e-8
DEPENDENT = 1e-7  # an atom whose part outside the span is smaller than this (relative) adds no direction


def kl_pursuit(transitions: ArrayLike, counts: ArrayLike, sparsity: int, tolerance: float = 1e-9) -> MixtureFit:
    """Seek ``max Σ_j n_j log (Pᵀα)_j`` over α ∈ Δ with ‖α‖₀ ≤ s: relax, keep the s largest weights, exchange rows.

    The relaxed problem (`simplex_mle`) gives the start and, since its maximum is no smaller, the certificate.
    For s = 1 all rows are compared and the answer is exact, although the certified gap seldom says so.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,) or (R, J)
    sparsity : int
        s >= 1; values above T mean T.
    tolerance : float
        Accuracy of each fit, nats per sample.

    Returns
    -------
    MixtureFit
        ``gap`` bounds the distance to the best s-sparse mixture: relaxed maximum minus what was reached, or the
        Jensen gap of the answer itself (`simplex_mle`) where that is smaller.

    Raises
    ------
    ValueError, TypeError
        On wrong shapes or values; see `simplex_mle`.
    """
    sparsity = whole(sparsity, "sparsity", low=1)
    tolerance = positive(tolerance, "tolerance")
    P, F, has_data = frequencies(transitions, counts)
    sparsity = min(sparsity, P.shape[0])
    alpha, gap = np.zeros((F.shape[0], P.shape[0])), np.zeros(F.shape[0])
    if has_data.any():
        seen = np.ascontiguousarray(F[has_data])
        loose = max(tolerance, RELAXED_TOLERANCE)
        relaxed, slack, _ = solve_batch(P, seen, loose, min(FIRST_ROWS, P.shape[0]))
        best = _mean_log_likelihood(relaxed @ P, seen) + np.maximum(slack, 0)
        alpha[has_data], value, jensen = pursue_batch(P, seen, relaxed, sparsity, tolerance)
        gap[has_data] = np.minimum(best - value, jensen)
    return certified(alpha, gap, has_data, tolerance, FEASIBLE)


def orthogonal_matching_pursuit(transitions: ArrayLike, target: ArrayLike, sparsity: int) -> Array:
    """Least-squares weights of ``‖x − Pᵀa‖₂`` with at most s non-zeros, chosen greedily.

    Each step takes the row of largest |cosine| with the residual (rows are normalised in the selection, ties go
    to the lowest index) and refits all chosen rows. It stops at s rows, when the residual vanishes, or when
    every remaining row depends on the chosen ones.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    target : array_like, shape (J,)
        Any real vector, say empirical frequencies.
    sparsity : int
        s >= 1; values above T mean T.

    Returns
    -------
    ndarray, shape (T,)
        Real weights, not confined to the simplex.

    References
    ----------
    Pati, Rezaiifar and Krishnaprasad (1993).
    """
    P = as_transitions(transitions)
    x = np.asarray(target, dtype=float)
    if x.shape != (P.shape[1],) or not np.isfinite(x).all():
        raise ValueError(f"target must be {P.shape[1]} finite numbers, got shape {x.shape}")
    norms = np.linalg.norm(P, axis=1)
    chosen: list[int] = []
    weights = np.zeros(0)
    available = np.ones(P.shape[0], dtype=bool)
    residual = x
    for _ in range(min(whole(sparsity, "sparsity", low=1), P.shape[0])):
        if np.linalg.norm(residual) <= 1e-12 * np.linalg.norm(x):
            break
        best = _next_atom(P, norms, residual, available, chosen)
        if best is None:
            break
        chosen.append(best)
        weights = np.linalg.lstsq(P[chosen].T, x, rcond=None)[0]
        residual = x - weights @ P[chosen]
    result = np.zeros(P.shape[0])
    result[chosen] = weights
    return result


def _next_atom(P: Array, norms: Array, residual: Array, available: Array, chosen: list[int]) -> int | None:
    """Index of the available row most aligned with the residual and independent of those chosen."""
    cosine = np.where(available, np.abs(P @ residual) / norms, -1.0)
    while cosine.max() > 0:
        best = int(cosine.argmax())
        available[best] = False
        atom = P[best]
        rest = atom - P[chosen].T @ np.linalg.lstsq(P[chosen].T, atom, rcond=None)[0] if chosen else atom
        if np.linalg.norm(rest) > DEPENDENT * norms[best]:
            return best
        cosine[best] = -1.0
    return None


def _mean_log_likelihood(laws: Array, F: Array) -> Array:
    """Σ_j f_j log q_j for each problem, with 0·log 0 = 0."""
    return (F * np.log(laws, where=F > 0, out=np.zeros_like(laws))).sum(axis=1)
