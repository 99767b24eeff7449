"""Maximum likelihood over the hull of a few rows, for many tables at once: what `mixtures` needs, vectorised.

Segments take Newton steps in a bracket, triangles in their plane. A hull of full dimension holds the frequencies, or
its answer lies on a facet between it and them: from elsewhere in the hull, likelihood rises towards the frequencies.
What no certificate confirms goes to the project's certified solver.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError

from markov_theory._checks import Array
from markov_theory.solvers._newton import solve_batch
from markov_theory.verify.tables import log_likelihoods

GAP = 1e-12  # certified gap asked of the solvers, nats a sample
BRACKETED_STEPS, PLANE_STEPS = 60, 12
MOST_OF_IT = 0.95  # a step in a plane goes no farther than this share of the way out of the triangle


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
    laws = _into_simplex(_least_squares(frequencies, rows)) @ rows
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
    full = _full_hull(rows)
    if full is not None:
        laws, gap = _from_outside(frequencies, rows, full)
    elif rows.shape[0] == 3:
        laws, gap = _triangle(frequencies, rows)
    else:
        laws, gap = frequencies.copy(), np.full(frequencies.shape[0], np.inf)
    left = np.flatnonzero(~(gap <= GAP))
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
    weight = np.where(at_low, 0.0, np.where(at_high, 1.0, _into_simplex(_least_squares(frequencies, pair))[:, 1]))
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


def _full_hull(rows: Array) -> ConvexHull | None:
    """The hull in all coordinates but the last, if it has full dimension there, two or more."""
    if rows.shape[0] < rows.shape[1] or rows.shape[1] < 3:
        return None
    try:
        return ConvexHull(rows[:, :-1])
    except QhullError:
        return None


def _from_outside(frequencies: Array, rows: Array, hull: ConvexHull) -> tuple[Array, Array]:
    """Laws and gaps over a hull of full dimension: the frequencies, or the best of the facets that face them."""
    faced = frequencies[:, :-1] @ hull.equations[:, :-1].T + hull.equations[:, -1] > 0
    facets = [rows[corners] for corners in hull.simplices]
    return _best_face(frequencies, rows, facets, faced)


def _best_face(frequencies: Array, rows: Array, faces: list[Array], wanted: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The most likely of the laws on the faces wanted (n, faces), certified over the rows; else the frequencies."""
    laws, gap = frequencies.copy(), np.zeros(frequencies.shape[0])
    outside = wanted.any(axis=1)
    value = np.full(frequencies.shape[0], -np.inf)
    for face, chosen in zip(faces, wanted.T, strict=True):
        here = np.flatnonzero(chosen)
        if here.size:
            found, _ = hull_fit(frequencies[here], face)
            reached = mean_log(frequencies[here], found)
            better = reached > value[here]
            laws[here[better]], value[here[better]] = found[better], reached[better]
    gap[outside] = np.maximum(_gap(frequencies[outside], laws[outside], rows), 1e-16)
    return laws, gap


def _triangle(frequencies: Array, rows: Array) -> tuple[Array, Array]:
    """Laws and gaps over three rows: on the sides that the least-squares guess is beyond, or inside, or on any side."""
    weights = _least_squares(frequencies, rows)
    sides = [rows[1:], rows[::2], rows[:2]]
    laws, gap = _best_face(frequencies, rows, sides, weights < 0)
    left = np.flatnonzero((weights >= 0).all(axis=1) | ~(gap <= GAP))
    if left.size:
        laws[left] = _plane_newton(frequencies[left], rows, weights[left])
        gap[left] = np.maximum(_gap(frequencies[left], laws[left], rows), 1e-16)
        left = left[~(gap[left] <= GAP)]
    if left.size:
        laws[left], gap[left] = _best_face(frequencies[left], rows, sides, np.ones((left.size, 3), dtype=bool))
    return laws, gap


def _least_squares(frequencies: Array, rows: Array) -> Array:
    """Weights, of sum 1 and any sign, of a least-squares fit to frequencies, shape (n, k)."""
    middle = rows.mean(axis=0)
    scale = np.divide(1.0, np.sqrt(middle), out=np.zeros_like(middle), where=middle > 0)
    directions = (rows[1:] - rows[0]) * scale
    rest = (frequencies - rows[0]) @ (scale[:, None] * np.linalg.pinv(directions))
    return np.column_stack([1 - rest @ np.ones(rest.shape[1]), rest])


def _into_simplex(weights: Array) -> Array:
    weights = np.maximum(weights, 0.0)
    return np.asarray(weights / (weights @ np.ones(weights.shape[1]))[:, None])


def _gap(frequencies: Array, laws: Array, rows: Array) -> Array:
    """``log max_v Σ_j f_j p_v(j)/q(j)``: no mixture of the rows gains more a sample."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(frequencies > 0, frequencies / laws, 0.0)
        gap = np.log((ratio @ rows.T).max(axis=1))
    return np.where(np.isnan(gap), np.inf, np.maximum(gap, 0.0))


def _plane_newton(frequencies: Array, rows: Array, weights: Array) -> Array:
    """Laws (n, J) after Newton steps of ``Σ_j f_j log q(j)`` in the plane of three rows, kept inside the triangle."""
    moves = rows[1:] - rows[0]
    products = np.array([moves[0] ** 2, moves[0] * moves[1], moves[1] ** 2])
    z = 0.98 * _into_simplex(weights) + 0.02 / 3
    active, w, f = np.arange(z.shape[0]), z.copy(), frequencies
    for _ in range(PLANE_STEPS):
        law = w @ rows
        ratio = np.divide(f, law, out=np.zeros_like(f), where=law > 0)
        g = ratio @ moves.T
        h = np.divide(ratio, law, out=ratio, where=law > 0) @ products.T
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.column_stack([h[:, 2] * g[:, 0] - h[:, 1] * g[:, 1], h[:, 0] * g[:, 1] - h[:, 1] * g[:, 0]])
            step /= (h[:, 0] * h[:, 2] - h[:, 1] ** 2)[:, None]
            gain = np.einsum("ij,ij->i", g, step)
            step = np.column_stack([-step[:, 0] - step[:, 1], step])
            shrink = (-step / w).max(axis=1)
            w = w + step * np.minimum(1.0, MOST_OF_IT / shrink, where=shrink > 0, out=np.ones_like(shrink))[:, None]
        z[active] = w
        moving = gain > 1e-13  # quadratic: this step has made the others exact; NaN: none can be made
        active, w, f = active[moving], w[moving], f[moving]
        if active.size == 0:
            break
    return np.asarray(z @ rows)
