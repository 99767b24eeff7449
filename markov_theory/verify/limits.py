"""Limit laws of 2N·KL(q‖q̂) on three outcomes: truths on edges, at vertices and where supports cross, in one formula.

In coordinates whitened at q the hull of an admissible support S (one that can mix q) looks like a cone of the plane,
and 2N·KL tends to ``max_S ‖Π_S Z‖²``, Z a standard Gaussian of the plane. In polar coordinates ‖Π_S Z‖ is R·g_S(angle),
R² exponential with mean 2, so that ``P(limit > x)`` is the mean over angles of ``exp(−x/(2 max_S g_S²))``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, nnls

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.verify.mixtures import supports

N_ANGLES = 20_000
OFF = 1e-9  # a residual above this: the support cannot mix q


def limit_tail(transitions: ArrayLike, alpha: ArrayLike, sparsity: int, x: float) -> float:
    """``lim P(2N·KL(q‖q̂) > x)`` for maximum likelihood over mixtures of at most s rows on three outcomes.

    Parameters
    ----------
    transitions : array_like, shape (T, 3)
    alpha : array_like, shape (T,)
        The truth, positive for every outcome.
    sparsity : int
        s.
    x : float
        ≥ 0.

    Examples
    --------
    >>> rows = [[.6, .3, .1], [.1, .3, .6], [.3, .6, .1]]
    >>> round(limit_tail(rows, [.5, .5, 0], 2, 3.841459), 4), round(limit_tail(rows, [.5, .5, 0], 3, 5.138), 4)
    (0.05, 0.05)
    """
    reach = _reach(transitions, alpha, sparsity)
    with np.errstate(divide="ignore"):
        return float(np.exp(-x / (2 * reach**2)).mean()) if x > 0 else float((reach > 0).mean())


def limit_point(transitions: ArrayLike, alpha: ArrayLike, sparsity: int, delta: float) -> float:
    """Return x with `limit_tail` = δ; 0 if even at 0 it is less."""
    delta = _checks.open_unit(delta, "delta")
    if limit_tail(transitions, alpha, sparsity, 0.0) <= delta:
        return 0.0
    return float(brentq(lambda x: limit_tail(transitions, alpha, sparsity, x) - delta, 0.0, 200.0))


def _reach(transitions: ArrayLike, alpha: ArrayLike, sparsity: int) -> Array:
    """``max_S g_S`` at evenly spaced angles."""
    rows, weights = _checks.as_transitions(transitions), _checks.as_laws(alpha, "alpha")
    truth = weights @ rows
    if rows.shape[1] != 3 or truth.min() <= 0:
        raise ValueError(f"need three outcomes, all possible under the truth, got {truth.tolist()}")
    scaled = (rows - truth) / np.sqrt(truth)
    plane = np.linalg.svd(np.sqrt(truth)[None, :])[2][1:]  # orthogonal to √q
    directions = scaled @ plane.T  # (T, 2)
    angles = (np.arange(N_ANGLES) + 0.5) * (2 * np.pi / N_ANGLES)
    units = np.column_stack([np.cos(angles), np.sin(angles)])
    reach = np.zeros(N_ANGLES)
    for S in supports(rows.shape[0], 3, min(sparsity, rows.shape[0])):
        if nnls(np.vstack([rows[list(S)].T, np.ones(len(S))]), np.append(truth, 1.0))[1] < OFF:
            reach = np.maximum(reach, _cone_reach(units, directions[list(S)]))
    return reach


def _cone_reach(units: Array, generators: Array) -> Array:
    """Length of the projection of unit vectors (n, 2) on the cone of some generators (k, 2)."""
    length = np.linalg.norm(generators, axis=1)
    rays = generators[length > OFF] / length[length > OFF, None]
    if rays.size == 0:
        return np.zeros(units.shape[0])
    reach = np.maximum((units @ rays.T).max(axis=1), 0.0)
    for i in range(len(rays)):
        for j in range(i):
            pair = rays[[i, j]]
            if abs(np.linalg.det(pair)) > OFF:
                reach[(units @ np.linalg.inv(pair) >= 0).all(axis=1)] = 1.0
    return reach
