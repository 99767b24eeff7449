"""Newton's method on the homogeneous form of constrained KL, on a given set of rows.

``max Σ_j f_j log (Aᵀα)_j`` over the simplex equals ``min_{z ≥ 0} −Σ_j f_j log (Aᵀz)_j + Σ_v z_v``, whose optimum
sums to one: the simplex constraint is gone. With r = f/q, q = Aᵀz, the gradient is 1 − A r and the Hessian
A diag(f/q²) Aᵀ. A Newton step is a non-negative quadratic programme; the Hessian is kept from one step to the
next for as long as that converges fast. With S = Σ z, log(S·max_v (A r)_v) bounds what is missing.
"""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import COMPILED, compiled
from markov_theory.solvers._quadratic import nonnegative_quadratic

MAX_NEWTON = 200
SLOW = 0.2  # the Hessian is made anew when a step leaves more than this share of the gap
SMALL = 24  # up to this size a new Hessian costs no more than another step
CHEAP_STEPS = 3
BLOCK = 128

if COMPILED:

    @compiled
    def take(P: Array, rows: IntArray, columns: IntArray) -> Array:
        """The given rows on the given columns."""
        A = np.empty((rows.size, columns.size))
        for i in range(rows.size):
            row = P[rows[i]]
            for k in range(columns.size):
                A[i, k] = row[columns[k]]
        return A

    @compiled
    def _divide(x: Array, y: Array, out: Array) -> None:
        """Out = x / y."""
        for j in range(x.size):
            out[j] = x[j] / y[j]

    @compiled
    def _weigh(A: Array, f: Array, q: Array) -> Array:
        """Columns of A times √f/q."""
        scaled, weight = np.empty(A.shape), np.empty(f.size)
        for j in range(f.size):
            weight[j] = math.sqrt(f[j]) / q[j]
        for i in range(A.shape[0]):
            for j in range(f.size):
                scaled[i, j] = A[i, j] * weight[j]
        return scaled

    @compiled
    def _curvature(q: Array, change: Array, f: Array) -> tuple[float, float, float]:
        """Least and largest relative change, and Σ f (change/q)²."""
        least, largest, curvature = np.inf, -np.inf, 0.0
        for j in range(q.size):
            relative = change[j] / q[j]
            least, largest = min(least, relative), max(largest, relative)
            curvature += f[j] * relative * relative
        return least, largest, curvature

    @compiled
    def _log_gain(q: Array, change: Array, f: Array, size: float) -> float:
        """Σ f log(1 + size·change/q)."""
        gain = 0.0
        for j in range(q.size):
            gain += f[j] * math.log1p(size * change[j] / q[j])
        return gain

else:

    def take(P: Array, rows: IntArray, columns: IntArray) -> Array:
        """The given rows on the given columns."""
        return P[rows[:, None], columns]

    def _divide(x: Array, y: Array, out: Array) -> None:
        """Out = x / y."""
        np.divide(x, y, out=out)

    def _weigh(A: Array, f: Array, q: Array) -> Array:
        """Columns of A times √f/q."""
        return A * (np.sqrt(f) / q)

    def _curvature(q: Array, change: Array, f: Array) -> tuple[float, float, float]:
        """Least and largest relative change, and Σ f (change/q)²."""
        relative = change / q
        return relative.min(), relative.max(), float(np.dot(f, relative**2))

    def _log_gain(q: Array, change: Array, f: Array, size: float) -> float:
        """Σ f log(1 + size·change/q)."""
        return float(np.dot(f, np.log1p(size * change / q)))


@compiled
def hessian(A: Array, f: Array, q: Array) -> Array:
    """A diag(f/q²) Aᵀ, by blocks of rows: only the lower half is computed."""
    w = A.shape[0]
    scaled = _weigh(A, f, q)
    H = np.empty((w, w))
    if w <= BLOCK:
        np.dot(scaled, scaled.T, H)
        return H
    for start in range(0, w, BLOCK):
        end = min(start + BLOCK, w)
        block = np.dot(scaled[start:end], scaled[:end].T)
        for i in range(start, end):
            for j in range(end):
                H[i, j] = block[i - start, j]
    for i in range(w):
        for j in range(i + 1, w):
            H[i, j] = H[j, i]
    return H


@compiled
def newton(A: Array, f: Array, z: Array, tolerance: float) -> Array:
    """Minimise −Σ f log(Aᵀz) + Σ z over z ≥ 0 from a `z` with finite value, to a certified gap of `tolerance`.

    Parameters
    ----------
    A : ndarray, shape (w, J)
        Rows of the working set, restricted to outcomes with f > 0.
    f : ndarray, shape (J,)
        Positive frequencies, total 1.
    z : ndarray, shape (w,)
        Start; Aᵀz > 0.
    """
    z, q = z.copy(), np.dot(z, A)
    descend(A, f, z, q, hessian(A, f, q), True, tolerance, MAX_NEWTON)
    return z


@compiled
def descend(A: Array, f: Array, z: Array, q: Array, H: Array, fresh: bool, tolerance: float, n_steps: int) -> None:
    """Take up to `n_steps` Newton steps of z and q = Aᵀz with the Hessian H, that at z itself if `fresh`.

    A few more follow as long as they do without a new Hessian.
    """
    w = z.size
    ratio, score, b, y = np.empty(f.size), np.empty(w), np.empty(w), np.empty(w)
    U, order, n = np.empty((w, w)), np.empty(w, dtype=np.int64), 0 * w
    inside = np.empty(w, dtype=np.bool_)
    previous = np.inf
    for step in range(n_steps + CHEAP_STEPS):
        _divide(f, q, ratio)
        np.dot(A, ratio, score)
        gap = z.sum() * score.max() - 1.0
        if gap <= tolerance:
            break
        if not fresh and (w <= SMALL or gap > SLOW * previous):
            if step >= n_steps:
                break
            H, fresh, n = hessian(A, f, q), True, 0 * w
        previous = gap
        np.dot(H, z, b)
        for i in range(w):
            b[i] += score[i] - 1.0
            inside[i] = z[i] > 0.0 or score[i] > 1.0
            y[i] = z[i]
        n = nonnegative_quadratic(H, b, inside, y, U, order, n)
        size = _step(A, f, z, q, score, y)
        if size == 0.0:
            if not fresh:
                previous = 0.0  # try again with the Hessian of this point
                continue
            for i in range(w):
                y[i] = z[i] * score[i]  # one EM step: always an ascent of the likelihood
            if _step(A, f, z, q, score, y) == 0.0:
                break
        fresh = False


@compiled
def _step(A: Array, f: Array, z: Array, q: Array, score: Array, y: Array) -> float:
    """Move z towards y, and q = Aᵀz with it, as far as that lowers the objective; return the share of the way."""
    slope, mass = 0.0, 0.0
    for i in range(z.size):
        y[i] -= z[i]
        slope += (1.0 - score[i]) * y[i]
        mass += y[i]
    if not slope < 0.0:
        return 0.0
    change = np.dot(y, A)
    size = _line_search(q, change, f, mass, slope)
    if size == 0.0:
        return 0.0
    for i in range(z.size):
        z[i] = max(z[i] + size * y[i], 0.0)
    np.dot(z, A, q)
    return size


@compiled
def _line_search(q: Array, change: Array, f: Array, mass: float, slope: float) -> float:
    """Backtrack from 1 until −Σ f log(q + t·change) + t·mass falls by a quarter of what the slope promises.

    Where no q_j changes by much, log(1 + x) ≥ x − x²/(2 − 2|x|) decides without logarithms.
    """
    least, largest, curvature = _curvature(q, change, f)
    span = max(-least, largest)
    size = 1.0 if least > -0.99 else -0.99 / least
    for _ in range(60):
        if size * span < 0.9 and 0.5 * size * curvature <= -0.75 * slope * (1.0 - size * span):
            return size
        if size * mass - _log_gain(q, change, f, size) <= 0.25 * size * slope:
            return size
        size *= 0.5
    return 0.0
