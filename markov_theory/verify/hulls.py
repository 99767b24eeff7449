"""Maximum likelihood over the hull of a few rows, for many tables at once: what `mixtures` needs, vectorised.

Segments take Newton steps in a bracket; larger hulls take Newton steps on all weights from a least-squares guess, which
converge unless a weight of the answer is zero, and those go to the project's certified solver.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from markov_theory._checks import Array
from markov_theory.solvers._newton import solve_batch
from markov_theory.verify.tables import log_likelihoods

GAP = 1e-12  # certified gap asked of the solvers, nats a sample
BRACKETED_STEPS, FREE_STEPS = 60, 7
NO_LESS = 0.1  # a weight shrinks to no less than this share in one step


def value_range(frequencies: Array, rows: Array) -> tuple[Array, Array]:
    """Certified range of the greatest ``Σ_j f_j log q(j)`` over the hull of rows, from one guess (Jensen's inequality).

    Parameters
    ----------
    frequencies : ndarray, shape (n, J)
    rows : ndarray, shape (k, J)

    Returns
    -------
    low, high : ndarray, shape (n,)
        Nats a sample; high ∞ where the guess cannot give what was seen.
    """
    if rows.shape[0] == 1:
        value = log_likelihoods(frequencies, rows)[:, 0]
        return value, value
    laws = _guess(frequencies, rows) @ rows
    value = mean_log(frequencies, laws)
    gap = _gap(frequencies, laws, rows)
    return value, np.where(np.isinf(gap), np.inf, np.where(np.isinf(value), 0.0, value) + gap)


def hull_fit(frequencies: Array, rows: Array) -> tuple[Array, Array]:
    """Laws of greatest likelihood in the hull of rows.

    Parameters
    ----------
    frequencies : ndarray, shape (n, J)
        Such that the law is unique (see `mixtures`).
    rows : ndarray, shape (k, J), k ≥ 2

    Returns
    -------
    laws : ndarray, shape (n, J)
    gap : ndarray, shape (n,)
        Certified, nats a sample; 0 where the law is exact up to rounding.
    """
    if rows.shape[0] == 2:
        weight = best_weights(frequencies, rows)
        return rows[0] + weight[:, None] * (rows[1] - rows[0]), np.zeros(weight.size)
    laws, gap = frequencies.copy(), np.zeros(frequencies.shape[0])
    left = np.flatnonzero(~_in_hull(frequencies, rows))
    if left.size and rows.shape[0] <= rows.shape[1]:
        found = _free_newton(frequencies[left], rows)
        laws[left], gap[left] = found, np.maximum(_gap(frequencies[left], found, rows), 1e-16)
        left = left[~(gap[left] <= GAP)]
    if left.size and rows.shape[0] == 3:
        found, value = frequencies[left], np.full(left.size, -np.inf)
        for pair in (rows[:2], rows[1:], rows[::2]):
            laws_on_edge, _ = hull_fit(frequencies[left], pair)
            reached = mean_log(frequencies[left], laws_on_edge)
            found = np.where((reached > value)[:, None], laws_on_edge, found)
            value = np.maximum(value, reached)
        laws[left], gap[left] = found, np.maximum(_gap(frequencies[left], found, rows), 1e-16)
        left = left[~(gap[left] <= GAP)]
    if left.size:
        alpha, reached, _ = solve_batch(rows, np.ascontiguousarray(frequencies[left]), GAP, rows.shape[0])
        laws[left], gap[left] = alpha @ rows, np.maximum(reached, 1e-16)
    return laws, gap


def mean_log(frequencies: Array, laws: Array) -> Array:
    """``Σ_j f_j log q(j)``, −∞ where an outcome seen is impossible; shape (n,)."""
    live = laws > 0
    logs = np.log(laws, out=np.zeros_like(laws), where=live)
    value = np.einsum("ij,ij->i", frequencies, logs)
    if not live.all():
        value[((frequencies > 0) & ~live).any(axis=1)] = -np.inf
    return np.asarray(value)


def best_weights(frequencies: Array, pair: Array) -> Array:
    """Maximisers over [0, 1] of the concave ``w ↦ Σ_j f_j log((1−w)p_j + w p'_j)``: Newton in a shrinking bracket.

    Parameters
    ----------
    frequencies : ndarray, shape (n, J)
    pair : ndarray, shape (2, J)

    Returns
    -------
    ndarray, shape (n,)
    """
    gap = pair[1] - pair[0]
    moved = np.flatnonzero(gap)
    F, p, d = np.ascontiguousarray(frequencies[:, moved]), pair[0, moved], gap[moved]

    ones = np.ones(d.size)

    def slope(w: Array, f: Array) -> tuple[Array, Array]:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = d / (p + w[:, None] * d)
            term = f * ratio
            return term @ ones, np.einsum("ij,ij->i", term, ratio)

    with np.errstate(divide="ignore", invalid="ignore"):
        at_low = np.where(F > 0, F * (d / p), 0.0).sum(axis=1) <= 0
        at_high = np.where(F > 0, F * (d / (p + d)), 0.0).sum(axis=1) >= 0
    weight = np.where(at_low, 0.0, np.where(at_high, 1.0, _guess(frequencies, pair)[:, 1]))
    active = np.flatnonzero(~at_low & ~at_high)
    low, high = np.zeros(active.size), np.ones(active.size)
    w, f = np.clip(weight[active], 1e-12, 1 - 1e-12), F[active]
    for _ in range(BRACKETED_STEPS):
        first, second = slope(w, f)
        low, high = np.where(first > 0, w, low), np.where(first > 0, high, w)
        step = w + first / second
        new = np.where((step > low) & (step < high), step, (low + high) / 2)
        moving = np.abs(new - w) > 1e-9 * np.minimum(new, 1 - new)  # quadratic: this step has made it exact
        weight[active] = new
        active, low, high, w, f = active[moving], low[moving], high[moving], new[moving], f[moving]
        if active.size == 0:
            break
    return weight


def _in_hull(frequencies: Array, rows: Array) -> NDArray[np.bool_]:
    """Whether frequencies are mixtures of the rows, where the hull has full dimension; False where it has not."""
    nowhere = np.zeros(frequencies.shape[0], dtype=bool)
    J = rows.shape[1]
    if J < 3 or rows.shape[0] < J:
        return nowhere
    try:
        facets = ConvexHull(rows[:, :-1]).equations
    except QhullError:
        return nowhere
    return np.asarray((frequencies[:, :-1] @ facets[:, :-1].T + facets[:, -1] <= 0).all(axis=1))


def _guess(frequencies: Array, rows: Array) -> Array:
    """Weights of a least-squares fit to frequencies, moved into the simplex, shape (n, k)."""
    middle = rows.mean(axis=0)
    scale = np.divide(1.0, np.sqrt(middle), out=np.zeros_like(middle), where=middle > 0)
    directions = (rows[1:] - rows[0]) * scale
    rest = ((frequencies - rows[0]) * scale) @ np.linalg.pinv(directions)
    weights = np.column_stack([1 - rest @ np.ones(rest.shape[1]), rest])
    weights = np.maximum(weights, 0.0)
    return np.asarray(weights / (weights @ np.ones(weights.shape[1]))[:, None])


def _gap(frequencies: Array, laws: Array, rows: Array) -> Array:
    """``log max_v Σ_j f_j p_v(j)/q(j)``: no mixture of the rows gains more a sample."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(frequencies > 0, frequencies / laws, 0.0)
        gap = np.log((ratio @ rows.T).max(axis=1))
    return np.where(np.isnan(gap), np.inf, np.maximum(gap, 0.0))


def _free_newton(frequencies: Array, rows: Array) -> Array:
    """Laws (n, J) after a few Newton steps of ``min_{z>0} −Σ f log(Pᵀz) + Σ z``, whose answer sums to 1."""
    k = rows.shape[0]
    z = 0.98 * _guess(frequencies, rows) + 0.02 / k
    ridge = 1e-12 * np.eye(k)
    for _ in range(FREE_STEPS):
        shares = z[:, :, None] * rows / (z @ rows)[:, None, :]  # (n, k, J): of each row in each outcome
        gradient = z - np.einsum("nkj,nj->nk", shares, frequencies)
        hessian = (shares * frequencies[:, None, :]) @ shares.transpose(0, 2, 1) + ridge
        z *= np.maximum(1 - np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0], NO_LESS)
    return np.asarray(z @ rows / (z @ np.ones(k))[:, None])
