"""Maximum likelihood over several small hulls at once, compiled: an active-set Newton method for each table and hull.

Tables come in lexicographic order, so that the answer to one is a start for the next. A hull is left as soon as it
cannot hold the most likely law any more; ``log max_v Σ_j f_j p_v(j)/q(j)`` certifies both (Jensen's inequality).
"""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array
from markov_theory._compile import compiled

MOST_STEPS, MOST_HALVINGS = 40, 12
FAR_BELOW = 0.01  # an outcome seen is not made less likely than this share of what it is at any optimum, or more
RIDGE = 1e-14


@compiled
def fit_hulls(frequencies: Array, hulls: Array, gap: float, slack: float) -> tuple[Array, Array, Array]:
    """Most likely laws over each of several hulls of k rows, where that hull may hold the most likely law of all.

    Parameters
    ----------
    frequencies : ndarray, shape (n, J)
        Such that every hull can give what was seen.
    hulls : ndarray, shape (m, k, J)
    gap : float
        Certified gap to reach, nats a sample.
    slack : float
        Hulls are left that are certain to be this much below another, nats a sample.

    Returns
    -------
    laws : ndarray, shape (m, n, J)
    value : ndarray, shape (m, n)
        Log-likelihood a sample of these laws.
    gaps : ndarray, shape (m, n)
        Of each, nats a sample; above `gap` where the hull was left, or the steps did not suffice.
    """
    m, k, J = hulls.shape
    n = frequencies.shape[0]
    laws, value, gaps = np.empty((m, n, J)), np.empty((m, n)), np.empty((m, n))
    weights = np.full((m, k), 1.0 / k)
    least = FAR_BELOW * _greatest(hulls)
    ratio, score, old, x, H = np.empty(J), np.empty(k), np.empty(k), np.empty(k), np.empty((k, k))
    last = 0  # the hull of the most likely law, tried first at the next table
    for i in range(n):
        best, first = -np.inf, last
        for turn in range(m):
            t = first if turn == 0 else (turn - 1 if turn <= first else turn)
            f, rows, w, q = frequencies[i], hulls[t], weights[t], laws[t, i]
            _back_inside(f, rows, least[t], w, q)
            for step in range(MOST_STEPS):
                reached, left, highest = _price(f, rows, q, ratio, score)
                if left <= gap or reached + left < best - slack or step == MOST_STEPS - 1:
                    break
                _step(f, rows, least[t], w, q, ratio, score, highest, old, x, H)
            value[t, i], gaps[t, i] = reached, left
            if reached > best:
                best, last = reached, t
    return laws, value, gaps


@compiled
def _greatest(hulls: Array) -> Array:
    """Of each outcome in each hull, shape (m, J)."""
    m, k, J = hulls.shape
    greatest = np.zeros((m, J))
    for t in range(m):
        for v in range(k):
            for j in range(J):
                greatest[t, j] = max(greatest[t, j], hulls[t, v, j])
    return greatest


@compiled
def _price(f: Array, rows: Array, q: Array, ratio: Array, score: Array) -> tuple[float, float, int]:
    """Log-likelihood of q, its certified gap, and the row of highest score; sets r = f/q and the scores Σ_j r_j p_v."""
    reached, highest = 0.0, 0
    for j in range(q.size):
        ratio[j] = 0.0
        if f[j] > 0.0:
            ratio[j] = f[j] / q[j]
            reached += f[j] * math.log(q[j])
    for v in range(score.size):
        score[v] = 0.0
        for j in range(q.size):
            score[v] += ratio[j] * rows[v, j]
        if score[v] > score[highest]:
            highest = v
    return reached, math.log(max(score[highest], 1.0)), highest


@compiled
def _mix(rows: Array, w: Array, q: Array) -> None:
    for j in range(q.size):
        q[j] = 0.0
        for v in range(w.size):
            q[j] += w[v] * rows[v, j]


@compiled
def _too_low(f: Array, least: Array, q: Array) -> bool:
    low = False
    for j in range(q.size):
        low = low or (f[j] > 0.0 and q[j] < least[j] * f[j])
    return low


@compiled
def _back_inside(f: Array, rows: Array, least: Array, w: Array, q: Array) -> None:
    """Start from given weights, or nearer to equal ones if they make an outcome seen too unlikely."""
    _mix(rows, w, q)
    if _too_low(f, least, q):
        for v in range(w.size):
            w[v] = 0.5 * w[v] + 0.5 / w.size
        _mix(rows, w, q)


@compiled
def _step(
    f: Array, rows: Array, least: Array, w: Array, q: Array, ratio: Array, score: Array, highest: int,
    old: Array, x: Array, H: Array,
) -> None:  # fmt: skip
    """Newton's step on the rows with weight and the one of highest score, no farther than where a weight is zero."""
    k, base = w.size, 0
    for v in range(k):
        old[v] = w[v]
        if w[v] > w[base]:
            base = v
    _direction(rows, w, q, ratio, score, base, highest, x, H)
    if w[highest] == 0.0 and x[highest] <= 0.0:  # the rows with weight are not settled yet
        _direction(rows, w, q, ratio, score, base, base, x, H)
    share, first = 1.0, -1
    for v in range(k):
        if x[v] < 0.0 and w[v] < -share * x[v]:
            share, first = w[v] / -x[v], v
    for v in range(k):
        w[v] = max(w[v] + share * x[v], 0.0)
    if first >= 0:
        w[first] = 0.0
    _mix(rows, w, q)
    for _ in range(MOST_HALVINGS):
        if not _too_low(f, least, q):
            break
        for v in range(k):
            w[v] = 0.5 * (w[v] + old[v])
        _mix(rows, w, q)


@compiled
def _direction(
    rows: Array, w: Array, q: Array, ratio: Array, score: Array, base: int, joining: int, x: Array, H: Array
) -> None:
    """Newton's direction x, of sum 0, on the rows with weight and a joining one: in differences to a base row."""
    k, J = rows.shape
    for a in range(k):
        x[a] = 0.0
        H[a, :] = 0.0
        H[:, a] = 0.0
        if a == base or (w[a] == 0.0 and a != joining):
            H[a, a] = 1.0
            continue
        x[a] = score[a] - score[base]
        for c in range(a + 1):
            if c != base and (w[c] > 0.0 or c == joining):
                for j in range(J):
                    if ratio[j] > 0.0:
                        H[a, c] += ratio[j] / q[j] * (rows[a, j] - rows[base, j]) * (rows[c, j] - rows[base, j])
                H[c, a] = H[a, c]
        H[a, a] *= 1.0 + RIDGE
    _solve(H, x)
    x[base] = 0.0
    x[base] = -x.sum()


@compiled
def _solve(H: Array, x: Array) -> None:
    """Gaussian elimination of a positive definite H, in place: x becomes H⁻¹x."""
    k = x.size
    for a in range(k):
        for c in range(a + 1, k):
            if H[c, a] != 0.0 and H[a, a] > 0.0:
                factor = H[c, a] / H[a, a]
                for b in range(a, k):
                    H[c, b] -= factor * H[a, b]
                x[c] -= factor * x[a]
    for a in range(k - 1, -1, -1):
        for b in range(a + 1, k):
            x[a] -= H[a, b] * x[b]
        x[a] = x[a] / H[a, a] if H[a, a] > 0.0 else 0.0
