"""Interior-point method for constrained KL with bounds on each weight."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from markov_theory._checks import Array, IntArray
from markov_theory.solvers._descent import hessian

MAX_STEPS = 200


def fit_in_box(P: Array, f: Array, low: Array, high: Array, between: Array, tolerance: float) -> tuple[Array, float]:
    """Weights between the bounds and their gap, by a primal–dual interior-point method from a point `between`."""
    seen = f > 0
    A, g = np.ascontiguousarray(P[:, seen]), f[seen]
    best, best_gap = between, _box_gap(A, g, between, low, high)
    free = np.flatnonzero((between > low) & (between < high))
    x = between.copy()
    under, over = np.full(free.size, 1.0), np.full(free.size, 1.0)  # multipliers of the two bounds
    for _ in range(MAX_STEPS):
        if best_gap <= 0.5 * tolerance or free.size < 2:
            break
        step = _central_step(A[free], g, x @ A, x[free] - low[free], high[free] - x[free], under, over)
        x[free] += step
        for candidate in (x, _on_bounds(x, low, high, free, under, over)):
            gap = _box_gap(A, g, candidate, low, high)
            if gap < best_gap or (gap <= 0.5 * tolerance and candidate is not x):
                best, best_gap = candidate.copy(), gap
    return best, best_gap


def _central_step(A: Array, f: Array, q: Array, left: Array, right: Array, under: Array, over: Array) -> Array:
    """Step towards the central path; the multipliers `under`, `over` move in place."""
    target = 0.1 * float(left @ under + right @ over) / (2 * left.size)
    D = hessian(A, f, q)
    D[np.diag_indices(left.size)] += under / left + over / right
    rhs = np.stack([A @ (f / q) + target / left - target / right, np.ones(left.size)], axis=1)
    solved = cho_solve(cho_factor(D), rhs)
    step = solved[:, 0] - solved[:, 0].sum() / solved[:, 1].sum() * solved[:, 1]
    new_under, new_over = (target - under * step) / left, (target + over * step) / right
    worst = max(float((-step / left).max()), float((step / right).max()), float((-(step @ A) / q).max()))
    size = min(1.0, 0.95 / max(worst, 1e-300))
    shrink = max(float((1 - new_under / under).max()), float((1 - new_over / over).max()))
    dual = min(1.0, 0.95 / max(shrink, 1e-300))
    under += dual * (new_under - under)
    over += dual * (new_over - over)
    return size * step


def _on_bounds(x: Array, low: Array, high: Array, free: IntArray, under: Array, over: Array) -> Array:
    """The weights with those put on a bound whose multiplier exceeds their distance from it; the sum stays 1."""
    snapped = x.copy()
    snapped[free] = np.where(under > x[free] - low[free], low[free], x[free])
    snapped[free] = np.where(over > high[free] - x[free], high[free], snapped[free])
    missing = 1 - snapped.sum()
    room = np.where(missing > 0, high - snapped, snapped - low)
    room[(snapped == low) | (snapped == high)] = 0
    if room.sum() <= abs(missing):
        return x
    return np.clip(snapped + missing * room / room.sum(), low, high)


def _box_gap(A: Array, f: Array, alpha: Array, low: Array, high: Array) -> float:
    """Certified gap: the most that (P r)·(β − α) can be, by filling the rows of largest score first."""
    q = alpha @ A
    if q.min() <= 0:
        return math.inf
    score = A @ (f / q)
    order = np.argsort(-score, kind="stable")
    width = (high - low)[order]
    filled = np.clip(1 - low.sum() - (np.cumsum(width) - width), 0, width)
    return float(score[order] @ (low[order] + filled - alpha[order]))
