"""The kernel of constrained KL: a working-set method for a batch of problems over one dictionary.

All rows are priced by ``P r``, r = f/q; the rows with weight and those that violate ``P r ≤ 1`` most form the
working set of a few Newton steps (`markov_theory.solvers._descent`), and so on. ``log max_v (P r)_v`` certifies.
What is known of the Hessian is kept from round to round. Problems that look alike start at the fit to their sum.
"""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled
from markov_theory.solvers._descent import PRODUCT, TINY, Model, descend, modelled, newton, revised, worn
from markov_theory.solvers._rows import divide, mix, weigh, weigh_far
from markov_theory.solvers._triangular import subtract_multiple

__all__ = ["newton", "solve_batch"]

MAX_ROUNDS = 200
FEWEST_NEW = 24
SHARE = 0.02  # rows join whose violation is more than this share of the worst
FAR = 0.1  # gap above which a Hessian is that of `weigh_far`
STEPS_A_ROUND = 3.0  # Newton steps a round while rows join: this many times T / w²
POLISH = 10  # ... and when none do
FEWEST_TO_POOL = 4
ALIKE = 0.5
HELPFUL = 0.5
MEAN_ROWS = 64
LEAST_START = 0.03
LOCKSTEP = 64  # problems at a time, fewer where the Hessians of so many take too much memory
MOST_NUMBERS = 2**27
FEW = 3  # problems for which the product of two matrices takes longer than one product for each
ROUNDING = 1e-13  # a gap below this that does not fall any more will not
FAR_BELOW = 0.01


@compiled
def _mean_row(P: Array) -> Array:
    """The mean row, roughly: of evenly spaced rows where there are many."""
    rows = np.arange(0, P.shape[0], max(1, P.shape[0] // MEAN_ROWS))
    mean = np.empty(P.shape[1])
    mix(P, rows, np.full(rows.size, 1.0 / rows.size), mean)
    return mean


@compiled
def _start(P: Array, f: Array, mean: Array, n_rows: int) -> Array:
    """Weights on the rows that score best against the mean, the more the better they do."""
    ratio, score, z = np.empty(f.size), np.empty(P.shape[0]), np.zeros(P.shape[0])
    for j in range(f.size):
        ratio[j] = f[j] / max(mean[j] + f[j], TINY)
    np.dot(P, ratio, score)
    rows, found = np.empty(n_rows, dtype=np.int64), np.empty(n_rows)
    for k in range(n_rows):
        rows[k] = np.argmax(score)
        found[k] = score[rows[k]]
        score[rows[k]] = -1.0
    for k in range(n_rows):
        z[rows[k]] = LEAST_START + ((found[k] - found[-1]) / max(found[0] - found[-1], TINY)) ** 3
    z /= z.sum()
    return z


@compiled
def _cover(P: Array, f: Array, z: Array, q: Array) -> None:
    """Set q = Pᵀz, and give weight to more rows until every observed outcome is likely enough; q is 1 elsewhere.

    At the optimum (P r)_v ≤ 1, so that q_j ≥ f_j P_vj for every row v; a start must not be far below that.
    """
    rows = np.flatnonzero(z > 0.0)
    mix(P, rows, z[rows], q)
    for j in range(f.size):
        if q[j] < FAR_BELOW * f[j]:
            best = 0
            for v in range(P.shape[0]):
                if P[v, j] > P[best, j]:
                    best = v
            if q[j] < FAR_BELOW * f[j] * P[best, j]:
                z[best] += f[j]
                subtract_multiple(q, -f[j], P[best])
    for j in range(f.size):
        if f[j] == 0.0:
            q[j] = 1.0


@compiled
def _normalise(z: Array, f: Array, q: Array) -> None:
    """Scale the weights and the law to sum 1."""
    total = z.sum()
    for v in range(z.size):
        z[v] /= total
    for j in range(f.size):
        if f[j] > 0.0:
            q[j] /= total


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
def _saving(rows: IntArray, members: IntArray, J: int, reading: float) -> float:
    """How many steps are saved by keeping the Hessian of those rows that are members."""
    known = np.zeros(1 + max(rows.max(), members.max()), dtype=np.bool_)
    known[members] = True
    w, n_kept = rows.size, known[rows].sum()
    return n_kept**2 * J / (2.0 * PRODUCT) / (reading + 2.0 * w * J + 3.0 * w * w)


@compiled
def _advance(
    P: Array,
    f: Array,
    z: Array,
    q: Array,
    score: Array,
    model: Model,
    n: int,
    single: bool,
    before: float,
    age: int,
    start: Array,
    tolerance: float,
    reading: float,
) -> tuple[Model, int, bool, float]:
    """Take a few steps of one problem, given the scores of all rows; z and q move.

    Parameters
    ----------
    age : int
        This is so many rounds after the first, which has no model yet but that of the weights `start`, if any.
    reading : float
        Cost of the scores, in multiplications at the pace of a matrix-vector product.

    Returns
    -------
    model, n, single, before
        See `descend`.
    """
    worst, aim = score.max() - 1.0, 0.3 * tolerance
    rows, more = _joined(z, score, worst)
    fresh = age == 0
    if not fresh:
        saving = _saving(rows, model.rows, f.size, reading)
        fresh = worn(score[model.rows].max() - 1.0, before, aim, saving)
        if not fresh:
            model, n = revised(P, model, rows, n, single)
    if fresh:
        weight = weigh(f, q) if worst < FAR else weigh_far(f, q)
        if age == 0 and start.size > 0:
            weight[:] = start
        model, n = modelled(P, rows, weight, single), 0 * n
    n_steps = POLISH
    if more:
        n_steps, aim = 1 + int(STEPS_A_ROUND * P.shape[0] / rows.size**2) + age // 8, max(0.1 * worst, aim)
    inner = z[model.rows]
    n, single, before = descend(P, f, q, inner, score[model.rows], model, n, single, fresh, before, aim, n_steps, True)
    z[model.rows] = inner
    return model, n, single, before


@compiled
def _rounds(
    P: Array, F: Array, alpha: Array, Q: Array, gap: Array, rounds: IntArray, start: Array, tolerance: float
) -> None:
    """Price all rows for all pending problems by one matrix product; solve each again with its violating rows."""
    R, T, J = F.shape[0], P.shape[0], P.shape[1]
    pending, n_pending = np.arange(R), R
    ratio, score = np.empty((R, J)), np.empty((R, T))
    nothing = Model(pending[:0], start[:0], score[:0], score[:0], pending[:0])
    models = [nothing for _ in range(R)]
    n, single, before = np.zeros(R, dtype=np.int64), np.ones(R, dtype=np.bool_), np.full(R, np.inf)
    reading = T * J / min(PRODUCT, float(R))
    while n_pending > 0:
        for k in range(n_pending):
            i = pending[k]
            _normalise(alpha[i], F[i], Q[i])
            divide(F[i], Q[i], ratio[k])
        if n_pending > FEW:
            np.dot(ratio[:n_pending], P.T, score[:n_pending])
        else:
            for k in range(n_pending):
                np.dot(P, ratio[k], score[k])
        n_left = 0
        for k in range(n_pending):
            i = pending[k]
            worst = math.log(score[k].max())
            helpful = worst < HELPFUL * gap[i]
            gap[i] = min(gap[i], worst)
            if worst <= tolerance or rounds[i] == MAX_ROUNDS or (worst < ROUNDING and not helpful):
                models[i] = nothing
                continue
            models[i], n[i], single[i], before[i] = _advance(
                P,
                F[i],
                alpha[i],
                Q[i],
                score[k],
                models[i],
                n[i],
                single[i],
                before[i],
                rounds[i],
                start,
                tolerance,
                reading,
            )
            rounds[i] += 1
            pending[n_left] = i
            n_left += 1
        n_pending = n_left


@compiled
def _pooled(F: Array, mean: Array) -> tuple[Array, float]:
    """Pooled frequencies of problems that look alike, shape (1, J), and how far (KL) they are from them; else zeros.

    They look alike if the pooled frequencies are much closer to those of each problem than the mean row is.
    """
    R, J = F.shape
    pooled, near, far = np.zeros((1, J)), 0.0, 0.0
    if R < FEWEST_TO_POOL:
        return pooled, 0.0
    for i in range(R):
        subtract_multiple(pooled[0], -1.0 / R, F[i])
    for i in range(R):
        for j in range(J):
            if F[i, j] > 0.0:
                near += F[i, j] * math.log(F[i, j] / pooled[0, j])
                far += F[i, j] * math.log(F[i, j] / max(mean[j], TINY))
    if near > ALIKE * far:
        pooled[:] = 0.0
    return pooled, near / R


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
    R, T, J = F.shape[0], P.shape[0], P.shape[1]
    alpha, Q, gap, rounds = np.zeros((R, T)), np.empty((R, J)), np.full(R, np.inf), np.zeros(R, dtype=np.int64)
    mean = _mean_row(P)
    pooled, noise = _pooled(F, mean)
    alike, weight = pooled.max() > 0.0, np.empty(0)
    guess, law = np.zeros((1, T)), np.zeros((1, J))
    if alike:  # as well as one of them can be told from the others
        guess[0] = _start(P, pooled[0], mean, first_rows)
        _cover(P, pooled[0], guess[0], law[0])
        _rounds(P, pooled, guess, law, np.full(1, np.inf), rounds[:1].copy(), weight, max(tolerance, noise))
        weight = weigh(pooled[0], law[0])
    for i in range(R):
        alpha[i] = guess[0] if alike else _start(P, F[i], mean, first_rows)
        _cover(P, F[i], alpha[i], Q[i])
    step = max(8, min(LOCKSTEP, MOST_NUMBERS // min(T, J) ** 2))
    for i in range(0, R, step):
        k = min(i + step, R)
        _rounds(P, F[i:k], alpha[i:k], Q[i:k], gap[i:k], rounds[i:k], weight, tolerance)
    return alpha, gap, rounds
