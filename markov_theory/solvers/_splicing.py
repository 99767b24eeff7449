"""The kernel of KL pursuit: improve a support by exchanging its least useful rows for the most useful outside."""

from __future__ import annotations

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled
from markov_theory.solvers._descent import newton, take

MAX_EXCHANGES = 50
CANDIDATES = 32
MOST_AT_ONCE = 4
OPTIMISM = 4.0  # an exchange is tried if this many times its second-order gain covers its loss


@compiled
def log_likelihood(A: Array, f: Array, z: Array) -> float:
    """Mean log-likelihood Σ f log(Aᵀz), with f > 0 throughout; −∞ if an observed outcome is impossible."""
    q = z @ A
    if q.min() <= 0.0:
        return -np.inf
    return (f * np.log(q)).sum()


@compiled
def fit_rows(A: Array, f: Array, z: Array, tolerance: float) -> tuple[Array, float]:
    """Fit simplex weights on the rows A from a mixture of `z` with uniform weights; return them and the value."""
    start = 0.9 * z / max(z.sum(), 1e-300) + 0.1 / z.size
    if (start @ A).min() <= 0.0:
        return start / start.sum(), -np.inf
    z = newton(A, f, start, tolerance)
    z = z / z.sum()
    return z, log_likelihood(A, f, z)


@compiled
def _usefulness(A: Array, f: Array, z: Array, outside: Array) -> tuple[Array, Array]:
    """Second-order loss of dropping each row of A, and gain of adding each row outside (0 if none)."""
    q = z @ A
    weight = np.sqrt(f) / q
    inner = A * weight
    outer = outside * weight
    H = inner @ inner.T
    for i in range(z.size):
        H[i, i] *= 1.0 + 1e-12
        H[i, i] += 1e-300
    inverse = np.linalg.inv(H)
    loss = np.zeros(z.size)
    for i in range(z.size):
        loss[i] = 0.5 * z[i] ** 2 / max(inverse[i, i], 1e-300)
    cross = outer @ inner.T
    projected = cross @ inverse
    gain = np.zeros(outside.shape[0])
    for i in range(gain.size):
        excess = (outer[i] * np.sqrt(f)).sum() - 1.0
        curvature = (outer[i] ** 2).sum() - (projected[i] * cross[i]).sum()
        if excess > 0.0:
            gain[i] = excess**2 / max(curvature, 1e-12)
    return loss, gain


@compiled
def largest(values: Array, n: int, floor: float) -> IntArray:
    """Indices of the n largest values above `floor`, in falling order, ties by index; fewer if there are fewer."""
    left = values.copy()
    chosen = np.empty(n, dtype=np.int64)
    for k in range(n):
        chosen[k] = np.argmax(left)
        if not left[chosen[k]] > floor:
            return chosen[:k]
        left[chosen[k]] = -np.inf
    return chosen


@compiled
def splice(P: Array, F: Array, support: IntArray, weights: Array, tolerance: float) -> tuple[IntArray, Array, float]:
    """Exchange k rows for k others while the likelihood rises; return support, weights, mean log-likelihood.

    Parameters
    ----------
    P : ndarray, shape (T, J)
    F : ndarray, shape (J,)
        Frequencies of total 1.
    support, weights : ndarray, shape (s,)
        Start.
    """
    seen = np.flatnonzero(F > 0.0)
    f = F[seen]
    A = take(P, support, seen)
    z, value = fit_rows(A, f, weights, tolerance)
    ratio = np.zeros(F.size)
    for _ in range(MAX_EXCHANGES):
        if np.isinf(value):
            break
        q = np.dot(z, A)
        for k in range(seen.size):
            ratio[seen[k]] = f[k] / q[k]
        score = np.dot(P, ratio)
        for v in support:
            score[v] = -np.inf
        others = largest(score, min(CANDIDATES, P.shape[0] - support.size), 1.0 + tolerance)
        if others.size == 0:
            break
        loss, gain = _usefulness(A, f, z, take(P, others, seen))
        leave, join = largest(-loss, loss.size, -np.inf), largest(gain, gain.size, -np.inf)
        improved = False
        losses, gains = 0.0, 0.0
        for k in range(min(support.size, others.size, MOST_AT_ONCE)):
            losses += loss[leave[k]]
            gains += gain[join[k]]
            if OPTIMISM * gains < losses:
                continue
            trial, start = support.copy(), z.copy()
            for i in range(k + 1):
                trial[leave[i]] = others[join[i]]
                start[leave[i]] = 1.0 / support.size
            trial_A = take(P, trial, seen)
            trial_z, trial_value = fit_rows(trial_A, f, start, tolerance)
            if trial_value > value + tolerance:
                support, A, z, value = trial, trial_A, trial_z, trial_value
                improved = True
                break
        if not improved:
            break
    return support, z, value


@compiled
def best_single_row(P: Array, F: Array) -> tuple[int, float]:
    """Return the lowest index that maximises Σ f log p_v, and the value (−∞ if every row is impossible)."""
    seen = np.flatnonzero(F > 0.0)
    best, value = 0, -np.inf
    for v in range(P.shape[0]):
        row = P[v][seen]
        if row.min() > 0.0:
            current = (F[seen] * np.log(row)).sum()
            if current > value:
                best, value = v, current
    return best, value


def pursue_batch(P: Array, F: Array, relaxed: Array, sparsity: int, tolerance: float) -> tuple[Array, Array, Array]:
    """For each problem splice from the largest `sparsity` relaxed weights.

    Returns
    -------
    alpha : ndarray, shape (R, T)
    value : ndarray, shape (R,)
        Mean log-likelihood.
    jensen : ndarray, shape (R,)
        log max_v (P r)_v at the answer: its gap over all mixtures.
    """
    R = F.shape[0]
    alpha = np.zeros_like(relaxed)
    value, jensen = np.full(R, -np.inf), np.full(R, np.inf)
    for i in range(R):
        if sparsity == 1:
            best, value[i] = best_single_row(P, F[i])
            alpha[i, best] = 1.0
        else:
            start = np.argsort(-relaxed[i], kind="stable")[:sparsity]
            start = start[relaxed[i][start] > 0.0]
            support, z, value[i] = splice(P, F[i], start, relaxed[i][start], tolerance)
            alpha[i, support] = z
        if value[i] > -np.inf:
            seen = F[i] > 0.0
            ratio = np.zeros(F.shape[1])
            ratio[seen] = F[i][seen] / (alpha[i] @ P)[seen]
            jensen[i] = np.log((P @ ratio).max())
    return alpha, value, jensen
