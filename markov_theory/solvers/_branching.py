"""The kernel of exact ℓ0: certified bounds of one node's children.

A node of the search *includes* some rows (they count towards s, used or not) and *excludes* others. Its bound is the
relaxed maximum likelihood over the rows not excluded: the value reached plus the Jensen gap log max_v (P r)_v over
them, which is valid however far the solve got. Including a row leaves the bound as it is, so a node's whole
chain of inclusions is taken at once: with v₁, v₂, … its relaxed support, the children are "v₁, …, vᵢ₋₁ in, vᵢ out",
and last the mixture of the included rows and v₁, …, v_b alone, where b is the room left.
"""

from __future__ import annotations

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import compiled
from markov_theory.solvers._newton import newton

MAX_ROUNDS = 100
FEWEST_NEW = 8
CLEAR = 0.05  # a node's solve ends once its gap is below this times the value's height over the cutoff
RIDGE = 1e-12
THIN = 1e-8  # an outcome whose law is below this times its frequency is first given a row of its own


@compiled
def relax(
    A: Array,
    f: Array,
    banned: np.ndarray,
    rows: IntArray,
    z: Array,
    cutoff: float,
    enough: int,
    aim: float,
    tolerance: float,
) -> tuple[IntArray, Array, float, float]:
    """Maximise Σ f log(Aᵀα) over the rows not banned, until certified to `tolerance` or bounded below `cutoff`.

    Parameters
    ----------
    A : ndarray, shape (T, J)
        All rows on the observed outcomes.
    f : ndarray, shape (J,)
        Positive frequencies of total 1.
    banned : ndarray of bool, shape (T,)
    rows, z : ndarray, shape (w,)
        Start, none of it banned.
    cutoff : float
        A bound below this is good enough.
    enough : int
        On so many rows or more a solution that is certain to stay above `cutoff` is good enough, too.
    aim : float
        Accuracy of the first round.

    Returns
    -------
    rows, z : ndarray
        Support and simplex weights.
    value : float
        Mean log-likelihood there; −∞ (with bound −∞) if an outcome is impossible.
    upper : float
        Certified bound on the maximum.
    """
    rows, z, possible = _cover(A, f, banned, rows, z)
    if not possible:
        return rows, z, -np.inf, -np.inf
    value, upper = -np.inf, np.inf
    for _ in range(MAX_ROUNDS):
        z = newton(A[rows], f, z, aim)
        rows, z = rows[z > 0.0], z[z > 0.0]
        z = z / z.sum()
        q = z @ A[rows]
        value = (f * np.log(q)).sum()
        score = A @ (f / q)
        score[banned] = -np.inf
        worst = np.log(score.max())
        upper = min(upper, value + max(worst, 0.0))
        if worst <= tolerance or upper < cutoff or (rows.size >= enough and worst < CLEAR * (value - cutoff)):
            break
        score[rows] = -np.inf
        new = np.flatnonzero(score > 1.0 + 0.1 * worst)
        n_new = min(max(FEWEST_NEW, rows.size), new.size)
        new = new[np.argsort(-score[new])[:n_new]]
        aim = max(0.1 * worst if n_new > 0 else min(0.1 * aim, 0.1 * worst), 0.1 * tolerance)
        rows, z = np.concatenate((rows, new)), np.concatenate((z, np.zeros(n_new)))
    return rows, z, value, upper


@compiled
def _cover(A: Array, f: Array, banned: np.ndarray, rows: IntArray, z: Array) -> tuple[IntArray, Array, bool]:
    """Add the best allowed row for each outcome that the start gives no probability; say whether that is possible."""
    q = np.zeros(f.size)
    if rows.size > 0:
        q = z @ A[rows]
    for j in range(f.size):
        if q[j] >= THIN * f[j]:
            continue
        best = -1
        for v in range(A.shape[0]):
            if not banned[v] and A[v, j] > 0.0 and (best < 0 or A[v, j] > A[best, j]):
                best = v
        if best < 0:
            return rows, z, False
        known = np.flatnonzero(rows == best)
        if known.size > 0:
            z = z.copy()
            z[known] += 0.1
        else:
            rows, z = np.append(rows, best), np.append(z, 0.1)
        q += 0.1 * A[best]
    return rows, z, True


@compiled
def branch_rows(
    A: Array, f: Array, included: IntArray, rows: IntArray, z: Array, room: int
) -> tuple[IntArray, Array, Array]:
    """Up to `room` rows v₁, …, v_b of a relaxed solution to branch on; the weights and the loss to expect without each.

    They are the rows not included, by falling second-order loss of dropping them.
    """
    B = A[rows]
    B = B * (np.sqrt(f) / (z @ B))
    H = B @ B.T
    ridge = RIDGE * np.trace(H) / z.size
    for i in range(z.size):
        H[i, i] += ridge
    inverse = np.linalg.inv(H)
    loss = np.zeros(z.size)
    for i in range(z.size):
        loss[i] = 0.5 * z[i] ** 2 / max(inverse[i, i], 1e-300)
    for v in included:
        loss[rows == v] = -1.0
    order = np.argsort(-loss)[: min((loss >= 0.0).sum(), room)]
    starts = np.zeros((order.size, z.size))
    for k in range(order.size):
        i = order[k]
        starts[k] = np.maximum(z - z[i] / max(inverse[i, i], 1e-300) * inverse[i], 0.0)
    return rows[order], starts, loss[order]
