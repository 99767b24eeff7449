"""Sparse mixtures by KL pursuit with exchanges."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, positive, whole
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers._splicing import pursue_batch
from markov_theory.solvers.result import FEASIBLE, MixtureFit, certified, frequencies
from markov_theory.solvers.simplex_mle import FIRST_ROWS

RELAXED_TOLERANCE = 1e-8


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


def _mean_log_likelihood(laws: Array, F: Array) -> Array:
    """Σ_j f_j log q_j for each problem, with 0·log 0 = 0."""
    return (F * np.log(laws, where=F > 0, out=np.zeros_like(laws))).sum(axis=1)
