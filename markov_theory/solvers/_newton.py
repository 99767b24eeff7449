"""The kernel of constrained KL: a working-set method for a batch of problems over one dictionary.

All rows are priced by ``P r``, r = f/q; the rows with weight and those that violate ``P r ≤ 1`` most form the
working set of a few Newton steps (`markov_theory.solvers._descent`), and so on. ``log max_v (P r)_v`` certifies.
"""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled
from markov_theory.solvers._descent import descend, hessian, newton, take
from markov_theory.solvers._triangular import subtract_multiple

__all__ = ["newton", "solve_batch"]

MAX_ROUNDS = 200
FEWEST_NEW = 8
SHARE = 0.05  # rows join whose violation is more than this share of the worst
STEPS_A_ROUND = 3.0  # Newton steps a round while rows join: this many times T / w²
POLISH = 10  # ... and when none do
FEWEST_TO_POOL = 4
ALIKE = 0.5
HELPFUL = 0.5
POOLED_TOLERANCE = 1e-4
MEAN_ROWS = 64
ROUNDING = 1e-13  # a gap below this that does not fall any more will not
FAR_BELOW = 0.01
TINY = 1e-300


@compiled
def _mean_row(P: Array) -> Array:
    """The mean row, roughly: of evenly spaced rows where there are many."""
    mean = np.zeros(P.shape[1])
    stride = max(1, P.shape[0] // MEAN_ROWS)
    for v in range(0, P.shape[0], stride):
        subtract_multiple(mean, -float(stride) / P.shape[0], P[v])
    return mean


@compiled
def _start(P: Array, f: Array, mean: Array, n_rows: int, guess: Array, z: Array) -> None:
    """Start at the guess, if it is not zero, else at equal weights on the rows that score best against the mean."""
    q = np.zeros(f.size)
    n = 0
    for v in range(z.size):
        if guess[v] > 0.0:
            n += 1
            z[v] = guess[v]
            subtract_multiple(q, -z[v], P[v])
    if n == 0:
        ratio, score = np.empty(f.size), np.empty(z.size)
        for j in range(f.size):
            ratio[j] = f[j] / max(mean[j] + f[j], TINY)
        np.dot(P, ratio, score)
        for _ in range(n_rows):
            best = np.argmax(score)
            score[best] = -1.0
            z[best] = 1.0 / n_rows
            subtract_multiple(q, -z[best], P[best])
    _cover(P, f, z, q)


@compiled
def _cover(P: Array, f: Array, z: Array, q: Array) -> None:
    """Give weight to more rows until every observed outcome is likely enough.

    At the optimum (P r)_v ≤ 1, so that q_j ≥ f_j P_vj for every row v; a start must not be far below that.
    """
    for j in range(f.size):
        if q[j] < FAR_BELOW * f[j]:
            best = 0
            for v in range(P.shape[0]):
                if P[v, j] > P[best, j]:
                    best = v
            if q[j] < FAR_BELOW * f[j] * P[best, j]:
                z[best] += f[j]
                subtract_multiple(q, -f[j], P[best])


@compiled
def _observed(f: Array) -> IntArray:
    """Outcomes with f > 0."""
    n = 0
    seen = np.empty(f.size, dtype=np.int64)
    for j in range(f.size):
        if f[j] > 0.0:
            seen[n] = j
            n += 1
    return seen[:n]


@compiled
def _joined(z: Array, score: Array, worst: float) -> tuple[IntArray, bool]:
    """Rows with weight, and the most violating others, not many more than there are already; whether there are."""
    n = 0
    for v in range(z.size):
        n += z[v] > 0.0
    share = SHARE
    while True:
        n_new = 0
        for v in range(z.size):
            n_new += z[v] == 0.0 and score[v] > 1.0 + share * worst
        if n_new <= max(FEWEST_NEW, n) or share > 0.999:
            break
        share = 0.5 * (1.0 + share)
    rows = np.empty(n + n_new, dtype=np.int64)
    k = 0
    for v in range(z.size):
        if z[v] > 0.0 or score[v] > 1.0 + share * worst:
            rows[k] = v
            k += 1
    return rows, n_new > 0


@compiled
def _improve(P: Array, f: Array, z: Array, rows: IntArray, shared: Array, place: IntArray, aim: float, n: int) -> None:
    """Take up to n steps on the given rows alone; the weights `z` (over all rows) are replaced."""
    seen = _observed(f)
    A = take(P, rows, seen)
    g, inner, q = np.empty(seen.size), np.empty(rows.size), np.empty(seen.size)
    for k in range(seen.size):
        g[k] = f[seen[k]]
    at = np.empty(rows.size, dtype=np.int64)
    n_known = 0
    for i in range(rows.size):
        inner[i] = z[rows[i]]
        at[i] = place[rows[i]]
        n_known += at[i] >= 0
    fresh = n_known < rows.size
    np.dot(inner, A, q)
    H = hessian(A, g, q) if fresh else take(shared, at, at)
    descend(A, g, inner, q, H, fresh, aim, n)
    for i in range(rows.size):
        z[rows[i]] = inner[i]


@compiled
def _price(P: Array, f: Array, z: Array, ratio: Array) -> None:
    """Scale the weights to sum 1 and set ratio = f / Pᵀz."""
    total = z.sum()
    ratio[:] = 0.0
    for v in range(z.size):
        if z[v] > 0.0:
            z[v] /= total
            subtract_multiple(ratio, -z[v], P[v])
    for j in range(f.size):
        ratio[j] = f[j] / ratio[j] if f[j] > 0.0 else 0.0


@compiled
def _rounds(
    P: Array, F: Array, alpha: Array, gap: Array, rounds: IntArray, shared: Array, place: IntArray, tolerance: float
) -> None:
    """Price all rows for all pending problems by one matrix product; solve each again with its violating rows."""
    n_pending = F.shape[0]
    pending = np.arange(n_pending)
    ratio, score, nowhere = np.empty(F.shape), np.empty(alpha.shape), np.full(P.shape[0], -1)
    while n_pending > 0:
        for k in range(n_pending):
            _price(P, F[pending[k]], alpha[pending[k]], ratio[k])
        np.dot(ratio[:n_pending], P.T, score[:n_pending])
        n_left = 0
        for k in range(n_pending):
            i = pending[k]
            worst = math.log(score[k].max())
            helpful = worst < HELPFUL * gap[i]  # else the pooled Hessian is too far from this problem's own
            gap[i] = min(gap[i], worst)
            if worst <= tolerance or rounds[i] == MAX_ROUNDS or (worst < ROUNDING and not helpful):
                continue
            rounds[i] += 1
            rows, more = _joined(alpha[i], score[k], worst)
            n_steps = 1 + int(STEPS_A_ROUND * P.shape[0] / rows.size**2) + rounds[i] // 8 if more else POLISH
            aim = max(0.1 * worst, 0.3 * tolerance) if more else 0.3 * tolerance
            _improve(P, F[i], alpha[i], rows, shared, place if helpful else nowhere, aim, n_steps)
            pending[n_left] = i
            n_left += 1
        n_pending = n_left


@compiled
def _pooled(F: Array, mean: Array) -> Array:
    """Pooled frequencies of problems that look alike, shape (1, J); all zero if they do not.

    They look alike if the pooled frequencies are much closer to those of each problem than the mean row is.
    """
    R, J = F.shape
    pooled, near, far = np.zeros((1, J)), 0.0, 0.0
    if R < FEWEST_TO_POOL:
        return pooled
    for i in range(R):
        subtract_multiple(pooled[0], -1.0 / R, F[i])
    for i in range(R):
        for j in range(J):
            if F[i, j] > 0.0:
                near += F[i, j] * math.log(F[i, j] / pooled[0, j])
                far += F[i, j] * math.log(F[i, j] / max(mean[j], TINY))
    if near > ALIKE * far:
        pooled[:] = 0.0
    return pooled


@compiled
def _likely_hessian(P: Array, f: Array, z: Array, place: IntArray, first_rows: int) -> Array:
    """Hessian at the fit z to pooled data, on the rows likely to be needed; `place` says where each row is in it."""
    seen, ratio, score = _observed(f), np.empty(f.size), np.empty(z.size)
    _price(P, f, z, ratio)
    np.dot(P, ratio, score)
    n = 2 * first_rows
    for v in range(z.size):
        n += 2 * (z[v] > 0.0)
    n = min(n, z.size)
    rows = np.empty(n, dtype=np.int64)
    for k in range(n):
        rows[k] = np.argmax(score)
        score[rows[k]] = -1.0
        place[rows[k]] = k
    A, g, q = take(P, rows, seen), np.empty(seen.size), np.empty(seen.size)
    for k in range(seen.size):
        g[k] = f[seen[k]]
        q[k] = g[k] / ratio[seen[k]]
    return hessian(A, g, q)


@compiled
def solve_batch(P: Array, F: Array, tolerance: float, first_rows: int) -> tuple[Array, Array, IntArray]:
    """Solve R problems over one dictionary in lockstep: one matrix product a round prices all rows for all.

    Parameters
    ----------
    P : ndarray, shape (T, J)
    F : ndarray, shape (R, J)
        Frequencies, each row of total 1; every observed outcome has positive probability in some row.
    tolerance : float
        Certified gap to reach, nats per sample.
    first_rows : int
        Size of the first working set.

    Returns
    -------
    alpha : ndarray, shape (R, T)
    gap : ndarray, shape (R,)
        log max_v (P r)_v at the returned weights.
    rounds : ndarray, shape (R,)
    """
    R, T = F.shape[0], P.shape[0]
    alpha, gap, rounds = np.zeros((R, T)), np.full(R, np.inf), np.zeros(R, dtype=np.int64)
    mean = _mean_row(P)
    place = np.full(T, -1)
    shared, guess = np.empty((0, 0)), np.zeros((1, T))
    pooled = _pooled(F, mean)
    if pooled.max() > 0.0:
        _start(P, pooled[0], mean, first_rows, guess[0], guess[0])
        _rounds(P, pooled, guess, np.full(1, np.inf), np.zeros(1, dtype=np.int64), shared, place, POOLED_TOLERANCE)
        shared = _likely_hessian(P, pooled[0], guess[0], place, first_rows)
    for i in range(R):
        _start(P, F[i], mean, first_rows, guess[0], alpha[i])
    _rounds(P, F, alpha, gap, rounds, shared, place, tolerance)
    return alpha, gap, rounds
