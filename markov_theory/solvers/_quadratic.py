"""Non-negative quadratic programmes by block principal pivoting on one Cholesky factor, kept up to date.

``min_{y ≥ 0} ½ yᵀHy − bᵀy``: the factor UᵀU = H on the free variables, in the order in which they came, is
extended by a column when a variable becomes free and repaired by Givens rotations when one leaves.
"""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled
from markov_theory.solvers._blas import cholesky
from markov_theory.solvers._triangular import shift_and_rotate, solve_transposed, solve_upper

RIDGE = 1e-14
DEPENDENT = 1e-13  # a row whose squared distance from the span is a smaller share of its square adds nothing
RENEW = 64  # a factor of size n is made anew when more than 2 + n/64 of its variables change
MOST_PIVOTS = 100


@compiled
def _remove(U: Array, order: IntArray, n: int, k: int) -> None:
    """Take the k-th of n free variables out of the factor."""
    for i in range(k, n - 1):
        order[i] = order[i + 1]
    shift_and_rotate(U, n, k)


@compiled
def _append(H: Array, U: Array, order: IntArray, n: int, i: int, column: Array, least: float) -> bool:
    """Add variable i to the factor of size n unless it depends on the others; `column` receives its new column."""
    for k in range(n):
        column[k] = H[order[k], i]
    solve_transposed(U, n, column)
    rest = H[i, i] * (1.0 + RIDGE)
    for k in range(n):
        rest -= column[k] * column[k]
    if not rest > least * H[i, i]:
        return False
    for k in range(n):
        U[k, n] = column[k]
    U[n, n] = math.sqrt(rest)
    order[n] = i
    return True


@compiled
def _scale(b: Array) -> float:
    """How far below zero a gradient must be to count."""
    largest = 1.0
    for i in range(b.size):
        largest = max(largest, abs(b[i]))
    return 1e-14 * largest


@compiled
def _to_minimum(b: Array, y: Array, U: Array, order: IntArray, n: int, x: Array) -> int:
    """Move the free variables of the feasible `y` to their minimum; those that reach zero on the way leave."""
    while True:
        for k in range(n):
            x[k] = b[order[k]]
        solve_transposed(U, n, x)
        solve_upper(U, n, x)
        leaving, share = 0 * n - 1, 1.0
        for k in range(n):
            now = y[order[k]]
            if x[k] < 0.0 and now < share * (now - x[k]):
                leaving, share = k, now / (now - x[k])
        for k in range(n):
            y[order[k]] = max(y[order[k]] + share * (x[k] - y[order[k]]), 0.0)
        if leaving < 0:
            return n
        y[order[leaving]] = 0.0
        _remove(U, order, n, leaving)
        n -= 1


@compiled
def _slide(H: Array, b: Array, U: Array, order: IntArray, n: int, i: int, column: Array, y: Array) -> int:
    """Move along the direction in which variable i and the free ones cancel, downhill, until one of them is zero.

    On entry `column` is Uᵀ⁻¹ H[free, i] and `y` is feasible. A free variable at zero leaves the factor, whose size
    is returned.
    """
    solve_upper(U, n, column)  # row i is this combination of the free rows
    slope = np.dot(H[i], y) - b[i]
    for k in range(n):
        slope -= column[k] * (np.dot(H[order[k]], y) - b[order[k]])
    sign = 1.0 if slope <= 0.0 else -1.0
    leaving, shortest = 0 * n - 1, y[i] if sign < 0.0 else np.inf
    for k in range(n):
        if sign * column[k] > 1e-9 and y[order[k]] < shortest * sign * column[k]:
            leaving, shortest = k, y[order[k]] / (sign * column[k])
    if shortest == np.inf:
        return n
    for k in range(n):
        y[order[k]] = max(y[order[k]] - sign * shortest * column[k], 0.0)
    y[i] = max(y[i] + sign * shortest, 0.0)
    if leaving < 0:
        y[i] = 0.0
        return n
    y[order[leaving]] = 0.0
    _remove(U, order, n, leaving)
    return n - 1


@compiled
def _enter(H: Array, b: Array, U: Array, order: IntArray, n: int, i: int, work: Array, y: Array) -> int:
    """Make variable i free, by exchange if it depends on those that are; returns their number."""
    for _ in range(n + 1):
        if _append(H, U, order, n, i, work, DEPENDENT):
            return n + 1
        smaller = _slide(H, b, U, order, n, i, work, y)
        if smaller == n:
            return n
        n = smaller
    return n


@compiled
def _primal(H: Array, b: Array, y: Array, U: Array, order: IntArray, work: Array) -> int:
    """Lower the objective from the feasible `y`, one variable at a time; sure but slow. Returns the factor's size."""
    w = b.size
    n = 0 * w
    scale = _scale(b)
    for i in range(w):
        if y[i] > 0.0:
            n = _enter(H, b, U, order, n, i, work, y)
    for _ in range(5 * w + 20):
        n = _to_minimum(b, y, U, order, n, work)
        np.dot(H, y, work)
        for k in range(n):
            work[order[k]] = np.inf
        for i in range(w):
            work[i] -= b[i]
        entering = int(np.argmin(work))
        if work[entering] >= -scale:
            break
        n = _enter(H, b, U, order, n, entering, work, y)
    return n


@compiled
def _factorise(H: Array, U: Array, order: IntArray, inside: np.ndarray, least: float) -> int:
    """Factor H on the variables `inside` from scratch; 0 if they are dependent."""
    n = 0
    for i in range(inside.size):
        if inside[i]:
            order[n] = i
            n += 1
    for k in range(n):
        i = order[k]
        for j in range(k, n):
            U[k, j] = H[i, order[j]]
        U[k, k] *= 1.0 + RIDGE
    if not cholesky(U, n):
        return 0
    for k in range(n):
        if not U[k, k] * U[k, k] > least * H[order[k], order[k]]:
            return 0
    return n


@compiled
def _update(H: Array, U: Array, order: IntArray, n: int, inside: np.ndarray, work: Array, least: float) -> int:
    """Make the free variables those `inside`. Returns their number, or -1 if they are dependent."""
    wanted, staying = 0, 0
    for i in range(inside.size):
        wanted += inside[i]
    for k in range(n):
        staying += inside[order[k]]
    if n - staying + wanted - staying > 2 + wanted // RENEW:
        n = _factorise(H, U, order, inside, least)
        return n if n == wanted else -1
    for k in range(n - 1, -1, -1):
        if not inside[order[k]]:
            _remove(U, order, n, k)
            n -= 1
    missing = inside.copy()
    for k in range(n):
        missing[order[k]] = False
    for i in range(missing.size):
        if missing[i]:
            if not _append(H, U, order, n, i, work, least):
                return -1
            n += 1
    return n


@compiled
def nonnegative_quadratic(
    H: Array, b: Array, inside: np.ndarray, y: Array, U: Array, order: IntArray, n: int, least: float = DEPENDENT
) -> int:
    """Replace a feasible `y` by argmin_{y ≥ 0} ½ yᵀHy − bᵀy, by block principal pivoting (Kim and Park 2011).

    All infeasible variables change sides at once. When that stops helping, or H is singular on the free
    variables, a primal method takes over, which never raises the objective.

    Parameters
    ----------
    H : ndarray, shape (w, w)
    b, y : ndarray, shape (w,)
    inside : ndarray of bool, shape (w,)
        Guess of the free variables.
    U, order, n
        Factor of H on the n variables ``order[:n]``; kept up to date.

    Returns
    -------
    int
        The new n.
    """
    w = b.size
    x, dual, start = np.empty(w), np.empty(w), y.copy()
    scale = _scale(b)
    fewest, chances = w + 1, 2
    while True:
        n = _update(H, U, order, n, inside, x, least)
        if n < 0:
            break
        y[:] = 0.0
        for k in range(n):
            x[k] = b[order[k]]
        solve_transposed(U, n, x)
        solve_upper(U, n, x)
        for k in range(n):
            y[order[k]] = x[k]
        np.dot(H, y, dual)
        n_wrong = 0
        for i in range(w):
            if (inside[i] and y[i] < 0.0) or (not inside[i] and dual[i] < b[i] - scale):
                inside[i] = not inside[i]
                n_wrong += 1
        if n_wrong == 0:
            return n
        if n_wrong < fewest:
            fewest, chances = n_wrong, 2
        elif chances == 0:
            break
        else:
            chances -= 1
    for i in range(w):
        y[i] = start[i]
    if least > DEPENDENT:
        return -1
    return _primal(H, b, y, U, order, x)
