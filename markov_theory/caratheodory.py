"""Carathéodory's theorem as an algorithm: the same mixture from no more points than its dimension needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, IntArray, as_laws

RANK_TOLERANCE = 64 * np.finfo(float).eps
LARGEST_RESIDUAL = 1e-9


@dataclass(frozen=True, eq=False)
class Reduction:
    """Weights on few points that give the same mixture.

    Attributes
    ----------
    weights : ndarray, shape (A,)
        In the simplex; positive only where the given weights are.
    residual : float
        ``max_i |Σ_v α'_v x_vi − Σ_v α_v x_vi| / max(1, max_v |x_vi|)``, measured on the answer: rounding alone.
    """

    weights: Array
    residual: float

    @property
    def support(self) -> IntArray:
        """Indices of the positive weights."""
        return np.flatnonzero(self.weights)


def reduce_support(points: ArrayLike, weights: ArrayLike) -> Reduction:
    """Find α' in the simplex with ``Σ_v α'_v x_v = Σ_v α_v x_v`` and ``‖α'‖₀ ≤ dim aff{x_v : α_v > 0} + 1 ≤ D + 1``.

    Parameters
    ----------
    points : array_like, shape (A, D)
        x_v; D may be 0.
    weights : array_like, shape (A,)
        α, in the simplex.

    Returns
    -------
    Reduction

    Raises
    ------
    ValueError
        If the shapes do not fit, a point is not finite, or `weights` is not a law.
    ArithmeticError
        If rounding left a residual above 1e-9.

    Notes
    -----
    While the terms α_v·(1, x_v) are dependent, Σ_v z_v α_v (1, x_v) = 0 with max z = 1, the weights change to
    (1 − z_v)·α_v, of which one is 0: it leaves. Weights change by factors, so that small ones keep their digits. With
    more than D + 1 points there always is such a z, so that the bound D + 1 rests on no tolerance; below it, the rank
    is decided to rounding.

    References
    ----------
    Carathéodory (1907).

    Examples
    --------
    >>> reduced = reduce_support([[0.0], [0.25], [1.0]], [0.2, 0.4, 0.4])
    >>> len(reduced.support), round(float(reduced.weights @ [0.0, 0.25, 1.0]), 12)
    (2, 0.5)
    """
    x = np.array(points, dtype=np.float64)
    alpha = as_laws(weights, "weights")
    if x.ndim != 2 or alpha.shape != (x.shape[0],):
        raise ValueError(f"points must be (A, D) and weights (A,), got shapes {x.shape} and {alpha.shape}")
    if not np.isfinite(x).all():
        raise ValueError("points must be finite")
    lifted = np.column_stack([np.ones(x.shape[0]), x])
    reduced = alpha.copy()
    while True:
        # D + 2 points are enough to find a dependency, and cheaper than all.
        used = np.flatnonzero(reduced)[: lifted.shape[1] + 1]
        direction = _null_vector(reduced[used, None] * lifted[used])
        if direction is None:
            break
        reduced[used] *= 1 - direction
        reduced[used[direction.argmax()]] = 0.0
    reduced /= reduced.sum()
    scale = np.maximum(1.0, np.abs(x).max(axis=0, initial=0.0))
    residual = float(np.abs((reduced - alpha) @ (x / scale)).max(initial=0.0))
    if residual > LARGEST_RESIDUAL:
        raise ArithmeticError(f"the reduced weights miss the mixture by {residual:.2g}")
    return Reduction(reduced, residual)


def _null_vector(terms: Array) -> Array | None:
    """Solve ``Σ_v z_v t_v = 0`` for z of maximum 1, also in modulus; None if the terms (k, D+1) are independent."""
    k, dimension = terms.shape
    if k < 2:
        return None
    size = np.abs(terms).max(axis=0)
    _, singular, basis = np.linalg.svd((terms / np.where(size > 0, size, 1.0)).T)  # each equation at its own scale
    if k <= dimension and singular[-1] > RANK_TOLERANCE * np.sqrt(k) * singular[0]:
        return None
    return basis[-1] / basis[-1][np.abs(basis[-1]).argmax()]
