"""The kernel of constrained KL: a working-set Newton method on the homogeneous form, for a batch of problems.

``max Σ_j f_j log (Pᵀα)_j`` over the simplex equals ``min_{z ≥ 0} −Σ_j f_j log (Pᵀz)_j + Σ_v z_v``, whose optimum
sums to one: the simplex constraint is gone. With r = f/q, q = Pᵀz, the gradient is 1 − P r and the Hessian
A diag(f/q²) Aᵀ on the rows A of a working set. A Newton step is a non-negative quadratic programme; the Hessian
is kept from one step to the next for as long as that converges fast.
"""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import COMPILED, compiled
from markov_theory.solvers._quadratic import nonnegative_quadratic, subtract_multiple

MAX_NEWTON = 200
MAX_ROUNDS = 200
SLOW = 0.2  # the Hessian is made anew when a step leaves more than this share of the gap
FEWEST_TO_POOL = 4
POOLED_TOLERANCE = 1e-4
ALIKE = 0.5
HELPFUL = 0.5
TINY = 1e-300
POLISH = 10
MEAN_ROWS = 64
HALVES = 128
SMALL = 24  # up to this size a new Hessian costs no more than another step
FEWEST_NEW = 8
FAR_BELOW = 0.01
STEPS_A_ROUND = 3.0
SHARE = 0.05  # rows join whose violation is more than this share of the worst

if COMPILED:

    @compiled
    def _take(P: Array, rows: IntArray, columns: IntArray) -> Array:
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

    def _take(P: Array, rows: IntArray, columns: IntArray) -> Array:
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
    if w <= HALVES:
        np.dot(scaled, scaled.T, H)
        return H
    for start in range(0, w, HALVES):
        end = min(start + HALVES, w)
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
    """Take up to `n_steps` Newton steps of z and q = Aᵀz with the Hessian H, that at z itself if `fresh`."""
    w = z.size
    ratio, score, b, y = np.empty(f.size), np.empty(w), np.empty(w), np.empty(w)
    U, order, n = np.empty((w, w)), np.empty(w, dtype=np.int64), np.int64(0)
    inside = np.empty(w, dtype=np.bool_)
    previous = np.inf
    for _ in range(n_steps):
        _divide(f, q, ratio)
        np.dot(A, ratio, score)
        gap = z.sum() * score.max() - 1.0
        if gap <= tolerance:
            break
        if not fresh and (w <= SMALL or gap > SLOW * previous):
            H, fresh, n = hessian(A, f, q), True, np.int64(0)
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


@compiled
def _cover(P: Array, f: Array, seen: IntArray, z: Array, q: Array) -> None:
    """Give weight to more rows until every observed outcome is likely enough.

    At the optimum (P r)_v ≤ 1, so that q_j ≥ f_j P_vj for every row v; a start must not be far below that.
    """
    for j in seen:
        if q[j] < FAR_BELOW * f[j]:
            best = np.argmax(P[:, j])
            if q[j] < FAR_BELOW * f[j] * P[best, j]:
                z[best] += f[j]
                subtract_multiple(q, -f[j], P[best])


@compiled
def _cold_start(P: Array, f: Array, mean: Array, n_rows: int, z: Array, q: Array) -> None:
    """Put equal weights on the rows that score best against the mean row, and more where needed; q = Pᵀz."""
    ratio = np.empty(f.size)
    for j in range(f.size):
        ratio[j] = f[j] / max(mean[j] + f[j], TINY)
    score = np.dot(P, ratio)
    q[:] = 0.0
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
    A = _take(P, rows, seen)
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
    H = hessian(A, g, q) if fresh else _take(shared, at, at)
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
    pending = np.arange(F.shape[0])
    n_pending = F.shape[0]
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
            if worst <= tolerance or rounds[i] == MAX_ROUNDS:
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
def _pool(P: Array, F: Array, mean: Array, first_rows: int, guess: Array, place: IntArray) -> Array:
    """Fit the pooled data of problems that look alike: weights to start from, and the Hessian on the likely rows.

    They look alike if the pooled frequencies are much closer to those of each problem than the mean row is.
    """
    R, J = F.shape
    pooled, near, far = np.zeros((1, J)), 0.0, 0.0
    for i in range(R):
        subtract_multiple(pooled[0], -1.0 / R, F[i])
    for i in range(R):
        for j in range(J):
            if F[i, j] > 0.0:
                near += F[i, j] * math.log(F[i, j] / pooled[0, j])
                far += F[i, j] * math.log(F[i, j] / max(mean[j], TINY))
    if near > ALIKE * far:
        return np.empty((0, 0))
    gap, rounds, none = np.full(1, np.inf), np.zeros(1, dtype=np.int64), np.empty((0, 0))
    _cold_start(P, pooled[0], mean, first_rows, guess[0], np.empty(J))
    _rounds(P, pooled, guess, gap, rounds, none, place, POOLED_TOLERANCE)
    seen = _observed(pooled[0])
    ratio = np.empty(J)
    _price(P, pooled[0], guess[0], ratio)
    score = np.dot(P, ratio)
    n = min(P.shape[0], 2 * first_rows + 2 * int((guess[0] > 0.0).sum()))
    rows = np.empty(n, dtype=np.int64)
    for k in range(n):
        rows[k] = np.argmax(score)
        score[rows[k]] = -1.0
        place[rows[k]] = k
    A, q = _take(P, rows, seen), np.empty(seen.size)
    for k in range(seen.size):
        q[k] = pooled[0, seen[k]] / ratio[seen[k]]
    return hessian(A, pooled[0][seen], q)


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
    mean, q = np.zeros(P.shape[1]), np.empty(P.shape[1])
    stride = max(1, T // MEAN_ROWS)
    for v in range(0, T, stride):
        subtract_multiple(mean, -float(stride) / T, P[v])
    shared, place, guess = np.empty((0, 0)), np.full(T, -1), np.zeros((1, T))
    if R >= FEWEST_TO_POOL:
        shared = _pool(P, F, mean, first_rows, guess, place)
    known = _observed(guess[0])
    for i in range(R):
        if known.size == 0:
            _cold_start(P, F[i], mean, first_rows, alpha[i], q)
            continue
        q[:] = 0.0
        for v in known:
            alpha[i, v] = guess[0, v]
            subtract_multiple(q, -guess[0, v], P[v])
        _cover(P, F[i], alpha[i], q)
    _rounds(P, F, alpha, gap, rounds, shared, place, tolerance)
    return alpha, gap, rounds
