"""Projection of a law onto the hull of rows: the smallest KL divergence that any mixture can have from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import as_laws, as_transitions
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers.simplex_mle import FIRST_ROWS

TOLERANCE = 1e-12


def information_projection(transitions: ArrayLike, target: ArrayLike) -> float:
    """Certified lower bound on ``min_{β ∈ Δ} KL(q‖Pᵀβ)`` (nats): the value reached minus the solver's gap.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    target : array_like, shape (J,)

    Returns
    -------
    float
        In [0, ∞]; ∞ if q has an outcome that no row can give.

    Examples
    --------
    >>> information_projection([[.5, .5]], [1., 0.]) == np.log(2)
    True
    """
    P, q = as_transitions(transitions), as_laws(target, "target")
    if q.shape != (P.shape[1],):
        raise ValueError(f"target must have shape ({P.shape[1]},), got {q.shape}")
    if ((q > 0) & (P.max(axis=0) == 0)).any():
        return float("inf")
    alpha, gap, _ = solve_batch(P, q[None], TOLERANCE, min(FIRST_ROWS, P.shape[0]))
    live = q > 0
    reached = float(q[live] @ np.log(q[live] / (alpha[0] @ P)[live]))
    return max(0.0, reached - max(0.0, float(gap[0])))
