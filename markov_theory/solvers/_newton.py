"""The kernel of constrained KL: a working-set Newton method on the homogeneous form, for a batch of problems.

``max Σ_j f_j log (Pᵀα)_j`` over the simplex equals ``min_{z ≥ 0} −Σ_j f_j log (Pᵀz)_j + Σ_v z_v``, whose optimum
sums to one: the simplex constraint is gone. With r = f/q, q = Pᵀz, the gradient is 1 − P r and the Hessian
A diag(f/q²) Aᵀ on the rows A of a working set; since H z = P r, a Newton step is the non-negative least-squares
problem ``min_{y ≥ 0} ½ yᵀHy − (2 P r − 1)ᵀy``, solved here by block principal pivoting.
"""

from __future__ import annotations

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled

MAX_NEWTON = 60
MAX_OUTER = 200
RIDGE = 1e-14
FEWEST_TO_POOL = 4
POOLED_TOLERANCE = 1e-7


@compiled
def nonnegative_quadratic(H: Array, b: Array, free: np.ndarray) -> Array:
    """Return argmin_{y ≥ 0} ½ yᵀHy − bᵀy by block principal pivoting (Kim and Park 2011), started at `free`.

    All infeasible variables change sides at once; when that stops helping, one at a time (Murty's rule).
    The answer is clipped at zero, and only a guess if the pivots run out: the caller checks descent.
    """
    n = b.size
    ridge = RIDGE * max(np.trace(H) / n, 1e-300)
    y = np.zeros(n)
    fewest, chances = n + 1, 3
    for _ in range(5 * n + 20):
        F = np.flatnonzero(free)
        y[:] = 0.0
        if F.size > 0:
            y[F] = np.linalg.solve(_principal(H, F, ridge), b[F])
        dual = H @ y - b
        scale = 1e-13 * (1.0 + np.abs(b).max())
        wrong = (free & (y < 0.0)) | (~free & (dual < -scale))
        n_wrong = wrong.sum()
        if n_wrong == 0:
            break
        if n_wrong < fewest:
            fewest, chances = n_wrong, 3
            free ^= wrong
        elif chances > 0:
            chances -= 1
            free ^= wrong
        else:
            last = np.flatnonzero(wrong)[-1]
            free[last] = not free[last]
    return np.maximum(y, 0.0)


@compiled
def _principal(H: Array, F: IntArray, ridge: float) -> Array:
    """The submatrix of H on the indices F, with a ridge on its diagonal."""
    K = np.empty((F.size, F.size))
    for i in range(F.size):
        for j in range(F.size):
            K[i, j] = H[F[i], F[j]]
        K[i, i] += ridge
    return K


@compiled
def newton(A: Array, f: Array, z: Array, tolerance: float) -> Array:
    """Minimise −Σ f log(Aᵀz) + Σ z over z ≥ 0 from a `z` with finite value; stop at KKT residual `tolerance`.

    Parameters
    ----------
    A : ndarray, shape (w, J)
        Rows of the working set, restricted to outcomes with f > 0.
    f : ndarray, shape (J,)
        Positive frequencies, total 1.
    z : ndarray, shape (w,)
        Start; Aᵀz > 0.
    """
    q = z @ A
    for _ in range(MAX_NEWTON):
        ratio = f / q
        score = A @ ratio  # optimal: ≤ 1, and = 1 where z > 0
        if score.max() - 1.0 <= tolerance and np.abs(z * (1.0 - score)).max() <= tolerance:
            break
        scaled = A * (np.sqrt(f) / q)
        H = scaled @ scaled.T
        y = nonnegative_quadratic(H, 2.0 * score - 1.0, z > 0.0)
        step = y - z
        slope = ((1.0 - score) * step).sum()
        if not slope < 0.0:
            step = z * (score - 1.0)  # one EM step: always an ascent of the likelihood
            slope = ((1.0 - score) * step).sum()
            if not slope < 0.0:
                break
        change = step @ A
        size = _line_search(q, change, f, step.sum(), slope)
        if size == 0.0:
            break
        z = np.maximum(z + size * step, 0.0)
        q = z @ A
    return z


@compiled
def _line_search(q: Array, change: Array, f: Array, mass: float, slope: float) -> float:
    """Backtrack from 1 until −Σ f log(q + t·change) + t·mass falls by a quarter of what the slope promises."""
    relative = change / q
    lowest = relative.min()
    size = 1.0 if lowest > -0.99 else min(1.0, -0.99 / lowest)
    for _ in range(60):
        if size * mass - (f * np.log1p(size * relative)).sum() <= 0.25 * size * slope + 1e-17:
            return size
        size *= 0.5
    return 0.0


@compiled
def _initial_rows(P: Array, f: Array, score: Array, n_rows: int) -> IntArray:
    """Indices of the best-scoring rows, with more until every observed outcome can be given by one of them."""
    chosen = np.zeros(P.shape[0], dtype=np.bool_)
    order = np.argsort(-score)
    chosen[order[:n_rows]] = True
    for j in np.flatnonzero(f > 0):
        covered = False
        for v in np.flatnonzero(chosen):
            if P[v, j] > 0.0:
                covered = True
                break
        if not covered:
            chosen[np.argmax(P[:, j])] = True
    return np.flatnonzero(chosen)


@compiled
def _solve_rows(P: Array, f: Array, rows: IntArray, z: Array, tolerance: float) -> Array:
    """Run `newton` on the given rows, on the observed outcomes alone."""
    A = P[rows]
    seen = np.flatnonzero(f > 0)
    if seen.size < f.size:
        A = np.ascontiguousarray(A.T[seen].T)
        f = f[seen]
    return newton(A, f, z, tolerance)


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
    gap = np.full(R, np.inf)
    rounds = np.zeros(R, dtype=np.int64)
    if R >= FEWEST_TO_POOL:  # problems with a common truth start from the fit to their pooled data
        pooled = np.zeros((1, F.shape[1]))
        for i in range(R):
            pooled[0] += F[i] / R
        guess = _start(P, pooled, first_rows, np.zeros(T))
        for _ in range(MAX_OUTER):
            if (
                _price(
                    P,
                    pooled,
                    guess,
                    np.full(1, np.inf),
                    np.zeros(1, dtype=np.int64),
                    np.zeros(1, dtype=np.int64),
                    POOLED_TOLERANCE,
                ).size
                == 0
            ):
                break
        alpha = _start(P, F, first_rows, guess[0])
    else:
        alpha = _start(P, F, first_rows, np.zeros(T))
    pending = np.arange(R)
    for _ in range(MAX_OUTER):
        pending = _price(P, F, alpha, gap, rounds, pending, tolerance)
        if pending.size == 0:
            break
    return alpha, gap, rounds


@compiled
def _start(P: Array, F: Array, first_rows: int, guess: Array) -> Array:
    """Weights to start from: a rough fit on the best-scoring rows, or `guess` where that is likelier already."""
    mean = np.zeros(P.shape[1])
    for v in range(P.shape[0]):
        mean += P[v] / P.shape[0]
    known = np.flatnonzero(guess)
    guessed = guess[known] @ P[known]
    alpha = np.zeros((F.shape[0], P.shape[0]))
    for i in range(F.shape[0]):
        seen = np.flatnonzero(F[i] > 0.0)
        if known.size > 0 and guessed[seen].min() > 0.0:
            gain = (F[i][seen] * np.log(guessed[seen] / mean[seen])).sum()
            if gain > 0.0:
                alpha[i] = guess
                continue
        ratio = np.zeros(F.shape[1])
        ratio[seen] = F[i][seen] / mean[seen]
        rows = _initial_rows(P, F[i], P @ ratio, first_rows)
        alpha[i][rows] = _solve_rows(P, F[i], rows, np.full(rows.size, 1.0 / rows.size), 1e-3)
    return alpha


@compiled
def _price(
    P: Array, F: Array, alpha: Array, gap: Array, rounds: IntArray, pending: IntArray, tolerance: float
) -> IntArray:
    """Certify the pending problems; give each that is not done its violating rows and solve it again."""
    ratio = np.zeros((pending.size, P.shape[1]))
    for k in range(pending.size):
        i = pending[k]
        alpha[i] /= alpha[i].sum()
        rows = np.flatnonzero(alpha[i])
        q = alpha[i][rows] @ P[rows]
        for j in range(q.size):
            if F[i, j] > 0.0:
                ratio[k, j] = F[i, j] / q[j]
    score = ratio @ P.T
    still = np.zeros(pending.size, dtype=np.bool_)
    for k in range(pending.size):
        i = pending[k]
        worst = np.log(score[k].max())
        if worst < gap[i]:
            gap[i] = worst
        if worst <= tolerance:
            continue
        still[k] = True
        rounds[i] += 1
        support = alpha[i] > 0.0
        excess = np.where(support, -np.inf, score[k])
        n_new = min(max(8, support.sum()), (excess > 1.0 + 0.1 * worst).sum())
        joined = support.copy()
        joined[np.argsort(-excess)[:n_new]] = True
        rows = np.flatnonzero(joined)
        aim = 0.1 * worst if n_new > 0 else 0.0
        alpha[i][rows] = _solve_rows(P, F[i], rows, alpha[i][rows], max(aim, 0.1 * tolerance))
    return pending[still]
