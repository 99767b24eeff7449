"""Least-squares refits of few atoms: a column added to an orthogonal factor, and active sets for signed weights."""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled

DEPENDENT = 1e-7  # an atom of which a smaller share lies outside the span of those chosen adds no direction
NOTHING = 1e-140  # a length whose square is not a normal number


@compiled
def extend(Q: Array, U: Array, b: Array, residuals: Array, size: int, new: Array, who: IntArray) -> Array:
    """Add an atom of norm one to the factors QᵀU of the targets `who`; return the part of it outside their spans.

    Q (R, k, d) holds orthonormal rows, U (R, k, k) triangles, b (R, k) = Qx; residuals (R, d) are updated. Where
    the part is at most DEPENDENT nothing is changed.
    """
    part = np.zeros(who.size)
    for i in range(who.size):
        t = who[i]
        a = new[i].copy()
        h = np.zeros(size)
        for _ in range(2):  # once more against rounding
            if size > 0:
                c = np.dot(Q[t, :size], a)
                a -= np.dot(c, Q[t, :size])
                h += c
        part[i] = math.sqrt(np.dot(a, a))
        if part[i] <= DEPENDENT:
            continue
        a /= part[i]
        U[t, :size, size] = h
        U[t, size, size] = part[i]
        Q[t, size] = a
        b[t, size] = np.dot(a, residuals[t])
        residuals[t] -= b[t, size] * a
    return part


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
