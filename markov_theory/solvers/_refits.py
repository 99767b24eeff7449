"""Least-squares refits of few atoms: a column added to an orthogonal factor, and active sets for signed weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled

DEPENDENT = 1e-7  # an atom of which a smaller share lies outside the span of those chosen adds no direction
ENOUGH = 0.7  # where more of an atom is left, rounding did no harm, and it is not made orthogonal once more
NOTHING = 1e-140  # a length whose square is not a normal number


@compiled
def extend(Q: Array, U: Array, b: Array, residual: Array, size: int, new: Array) -> float:
    """Add an atom of norm one to the factors QᵀU of a target; return the part of it outside the span of those chosen.

    Q (k, d) holds orthonormal rows, U (k, k) a triangle, b (k,) = Qx; the residual (d,) is updated, and `new` is
    destroyed. Where the part is at most DEPENDENT nothing else is changed.
    """
    h = np.zeros(size)
    part = 1.0
    for _ in range(2 if size > 0 else 0):
        c = np.dot(Q[:size], new)
        new -= np.dot(c, Q[:size])
        h += c
        part = math.sqrt(np.dot(new, new))
        if part > ENOUGH:
            break
    if part <= DEPENDENT:
        return part
    U[:size, size] = h
    U[size, size] = part
    np.divide(new, part, Q[size])
    b[size] = np.dot(Q[size], residual)
    residual -= b[size] * Q[size]
    return part


@compiled
def extend_all(Q: Array, U: Array, b: Array, residuals: Array, sizes: IntArray, new: Array, who: IntArray) -> Array:
    """Do so for the targets `who` (A,), of R, with the atoms `new` (A, d); return the parts (A,)."""
    parts = np.zeros(who.size)
    for i in range(who.size):
        t = who[i]
        parts[i] = extend(Q[t], U[t], b[t], residuals[t], sizes[t], new[i])
    return parts


@compiled
def distances(atoms: NDArray[Any], targets: Array, support: IntArray, weights: Array) -> Array:
    """‖x − Aᵀw‖₂ of R targets, given supports and weights (R, k), of which those of support −1 are left out."""
    norms = np.zeros(len(targets))
    for t in range(len(targets)):
        residual = targets[t].copy()
        for i in range(support.shape[1]):
            if support[t, i] >= 0:
                residual -= weights[t, i] * atoms[support[t, i]]
        norms[t] = math.sqrt(np.dot(residual, residual))
    return norms


def least_squares(rows: Array, target: Array, affine: bool) -> tuple[Array, bool]:
    """Weights that minimise ‖target − rowsᵀw‖₂, of sum one if `affine`; and whether the rows are dependent."""
    columns = (rows[1:] - rows[0]).T if affine else rows.T
    aim = target - rows[0] if affine else target
    if columns.shape[1] == 0:
        return np.ones(1), False
    scale = np.linalg.norm(columns, axis=0)
    if scale.min() < NOTHING:
        return np.zeros(len(rows)), True
    orthogonal, upper = np.linalg.qr(columns / scale)
    if np.abs(np.diag(upper)).min() <= DEPENDENT:
        return np.zeros(len(rows)), True
    weights = np.linalg.solve(upper, orthogonal.T @ aim) / scale
    return (np.concatenate([[1 - weights.sum()], weights]) if affine else weights), False


def active_set(rows: Array, target: Array, weights: Array, affine: bool) -> tuple[Array, bool]:
    """Non-negative least squares (of sum one if `affine`) from feasible weights, the last of which is the new atom's.

    Returns the weights, zero where an atom has left, and whether the atoms were dependent: nothing changes then.

    References
    ----------
    Lawson and Hanson (1974); with `affine`, Wolfe (1976).
    """
    inside = np.arange(len(rows))
    weights, start = weights.copy(), weights
    while inside.size:
        best, dependent = least_squares(rows[inside], target, affine)
        if dependent:
            return start, True
        if best.min() > 0:
            weights[inside] = best
            return weights, False
        now = weights[inside]
        falls = best <= 0
        steps = now[falls] / (now[falls] - best[falls])
        moved = now + steps.min() * (best - now)
        moved[np.flatnonzero(falls)[steps.argmin()]] = 0.0
        weights[inside] = np.maximum(moved, 0.0)
        inside = inside[weights[inside] > 0]
    return start, True
