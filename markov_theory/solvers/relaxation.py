"""Projection of a law onto the hull of rows: the smallest KL divergence that any mixture can have from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, as_laws, as_transitions
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
        logs = np.log(q[live] / (alpha[0] @ P)[live])
        reached = float(q[live] @ logs)
        rounding = 8 * np.finfo(float).eps * (1 + float(q[live] @ np.abs(logs)))
        bound = reached - max(0.0, float(gap[0])) - rounding
        if bound >= SHARP * reached:
            break
    return max(0.0, float(bound))


def projection_weights(rows: Array, laws: Array, tolerance: float = 1e-15) -> Array:
    """Weights of ``argmin_{β ∈ Δ} KL(w‖Pᵀβ)`` for R laws w, on the outcomes that some row can give.

    Parameters
    ----------
    rows : ndarray, shape (T, J)
        P, row-stochastic.
    laws : ndarray, shape (R, J)
    tolerance : float
        Gap to aim at, nats; rounding may stop the solver at about 1e-13. What is built on the weights is to be
        certified by itself.

    Returns
    -------
    ndarray, shape (R, T)
        Equal weights for a law all of whose outcomes are out of the rows' reach.

    Examples
    --------
    >>> projection_weights(np.array([[.9, .1, 0], [.1, .9, 0]]), np.array([[.3, .2, .5]])).round(6).tolist()
    [[0.625, 0.375]]
    """
    within = np.where(rows.max(axis=0) > 0, laws, 0.0)
    mass = within.sum(axis=1)
    weights = np.full((laws.shape[0], rows.shape[0]), 1 / rows.shape[0])
    if rows.shape[0] > 1 and mass.any():
        some = mass > 0
        scaled = within[some] / mass[some, None]
        weights[some] = solve_batch(rows, scaled, tolerance, min(FIRST_ROWS, rows.shape[0]))[0]
    return weights
