"""Projection of a law onto the hull of rows: the smallest KL divergence that any mixture can have from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import as_laws, as_transitions
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers.simplex_mle import FIRST_ROWS

TOLERANCES = (1e-3, 1e-5, 1e-7, 1e-9, 1e-12)
SHARP = 0.95


def information_projection(transitions: ArrayLike, target: ArrayLike) -> float:
    """Certified lower bound on ``min_{β ∈ Δ} KL(q‖Pᵀβ)`` (nats): the value reached minus the solver's gap.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    target : array_like, shape (J,)

    Returns
    -------
    float
        In [0, ∞], at least 95 % of the minimum or within 1e-12 of it; ∞ if q has an outcome that no row can give.

    Examples
    --------
    >>> round(information_projection([[.5, .5]], [1., 0.]), 6)
    0.693147
    """
    P, q = as_transitions(transitions), as_laws(target, "target")
    if q.shape != (P.shape[1],):
        raise ValueError(f"target must have shape ({P.shape[1]},), got {q.shape}")
    if ((q > 0) & (P.max(axis=0) == 0)).any():
        return float("inf")
    live = q > 0
    for tolerance in TOLERANCES:  # a bound needs only to be sharp relative to its value
        alpha, gap, _ = solve_batch(P, q[None], tolerance, min(FIRST_ROWS, P.shape[0]))
        reached = float(q[live] @ np.log(q[live] / (alpha[0] @ P)[live]))
        bound = reached - max(0.0, float(gap[0]))
        if bound >= SHARP * reached:
            break
    return max(0.0, bound)
