"""Embedding tuning in theory: convex fits of an embedding, or of weights on old embeddings, through a softmax head.

The law after a new token is ``f(x) = softmax(W x + b)``; x is free, or x = Eᵀα with real weights α on the old
embeddings. See `markov_theory.solvers.sparse_softmax_head` for few weights on an unknown support.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markov_theory._checks import Array, as_counts, positive, whole
from markov_theory.solvers._softmax import Mask, fit_core
from markov_theory.solvers.result import INACCURATE, NO_DATA, OPTIMAL

NO_MAXIMISER = "no maximiser"


@dataclass(frozen=True, eq=False)
class SoftmaxFit:
    """Fits of R problems through a softmax head, with the certificate of each.

    Attributes
    ----------
    solution : ndarray, shape (R, d) or (R, T)
        The embedding x, or the weights α; zeros off the support are exact. NaN where there is no maximiser.
    law : ndarray, shape (R, J)
        The fitted law; without a maximiser the limit law to which the likelihood's supremum belongs, which has
        zeros (so its KL from a positive truth is ∞).
    gap : ndarray, shape (R,)
        Certified bound, in nats per sample, on how far the log-likelihood lies below its supremum over the class
        that the solver searches.
    status : ndarray of str, shape (R,)
        ``"optimal"``: gap within tolerance. ``"inaccurate"``: not, although the solver aims at it. ``"feasible"``:
        a heuristic's answer with its proven gap. ``"no maximiser"``: the likelihood grows without end in some
        direction. ``"no data"``: no counts; the solution is zero.
    """

    solution: Array
    law: Array
    gap: Array
    status: NDArray[np.str_]

    @property
    def support_sizes(self) -> NDArray[np.int64]:
        """Number of non-zero entries of each solution, shape (R,); all of them where there is no maximiser."""
        return (self.solution != 0).sum(axis=1)


def embedding_mle(
    weights: ArrayLike, bias: ArrayLike, counts: ArrayLike, *, radius: float | None = None, tolerance: float = 1e-9
) -> SoftmaxFit:
    r"""Solve ``max_x Σ_j n_j log softmax(W x + b)_j`` over x ∈ R^d: unconstrained embedding tuning, R problems.

    Parameters
    ----------
    weights : array_like, shape (J, d)
        Head W: one row an outcome.
    bias : array_like, shape (J,)
        b.
    counts : array_like, shape (J,) or (R, J)
        Observed transitions out of the new token; whole numbers.
    radius : float, optional
        Confine x to ‖x‖₂ ≤ radius.
    tolerance : float
        Certified gap to reach, in nats per sample.

    Returns
    -------
    SoftmaxFit
        ``solution`` is x, of least norm among the maximisers. Free, the gap comes from the generalised
        self-concordance of the log-sum-exp (Bach 2010), which also proves that a maximiser exists; in a ball it is
        the Frank-Wolfe gap ``B‖∇‖ + ⟨∇, x⟩``.

    Raises
    ------
    ValueError, TypeError
        If shapes or values are wrong.

    Notes
    -----
    Damped Newton steps in the range of the centred W. A maximiser exists if and only if no proper face of the
    convex hull of the rows of W holds every outcome seen; where Newton's certificate is missing, a linear programme
    decides. If rank(centred W) = J − 1, one zero count suffices for there to be none.

    Examples
    --------
    >>> fit = embedding_mle([[1.0], [-1.0]], [0.0, 0.0], [[9, 1], [5, 0]])
    >>> fit.law.round(6).tolist(), fit.status.tolist()
    ([[0.9, 0.1], [1.0, 0.0]], ['optimal', 'no maximiser'])
    """
    W, b = _head(weights, bias)
    return convex_fit(W, b, counts, radius, tolerance)


def softmax_mixture_mle(
    embeddings: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike,
    counts: ArrayLike,
    *,
    support: ArrayLike | None = None,
    radius: float | None = None,
    tolerance: float = 1e-9,
) -> SoftmaxFit:
    r"""Solve ``max_α Σ_j n_j log softmax(W Eᵀα + b)_j`` over real α, of a given support or dense, R problems.

    Parameters
    ----------
    embeddings : array_like, shape (T, d)
        E: one row an old token.
    weights : array_like, shape (J, d)
        Head W.
    bias : array_like, shape (J,)
        b.
    counts : array_like, shape (J,) or (R, J)
    support : array_like of int, optional
        Distinct indices of the tokens that may have weight; all by default.
    radius : float, optional
        B: confine α to ‖α‖₂ ≤ B; free by default.
    tolerance : float
        Certified gap to reach, nats per sample.

    Returns
    -------
    SoftmaxFit
        ``solution`` is α, of least norm among the maximisers; certificates as in `embedding_mle`.

    Raises
    ------
    ValueError, TypeError
        If shapes or values are wrong, or the support is not one.

    Examples
    --------
    >>> fit = softmax_mixture_mle([[2.0], [0.0]], [[1.0], [-1.0]], [0.0, 0.0], [9, 1], radius=0.25)
    >>> fit.solution.round(6).tolist(), fit.law.round(4).tolist()
    ([[0.25, 0.0]], [[0.7311, 0.2689]])
    """
    scores, b = head_scores(embeddings, weights, bias)
    chosen = _support(support, scores.shape[1])
    fit = convex_fit(scores[:, chosen], b, counts, radius, tolerance)
    alpha = np.zeros((fit.law.shape[0], scores.shape[1]))
    alpha[:, chosen] = fit.solution
    return SoftmaxFit(alpha, fit.law, fit.gap, fit.status)


def head_scores(embeddings: ArrayLike, weights: ArrayLike, bias: ArrayLike) -> tuple[Array, Array]:
    """Validate; return the scores W Eᵀ, shape (J, T), and the bias, shape (J,).

    Raises
    ------
    ValueError, TypeError
        If a shape or value is wrong.
    """
    W, b = _head(weights, bias)
    E = _matrix(embeddings, "embeddings")
    if E.shape[1] != W.shape[1]:
        raise ValueError(f"embeddings must have {W.shape[1]} columns, as the head's weights do, got {E.shape[1]}")
    return W @ E.T, b


def frequencies_of(counts: ArrayLike, n_outcomes: int) -> tuple[Array, Mask]:
    """Return frequencies (R, J), uniform where there is no data, and who has data (R,)."""
    n = np.atleast_2d(as_counts(counts, n_outcomes))
    totals = n.sum(axis=1)
    return np.where(totals[:, None] > 0, n, 1.0) / np.where(totals > 0, totals, n_outcomes)[:, None], totals > 0


def ball(radius: float | None) -> float:
    """B as a number, ∞ for None."""
    return math.inf if radius is None else positive(radius, "radius")


def convex_fit(scores: Array, bias: Array, counts: ArrayLike, radius: float | None, tolerance: float) -> SoftmaxFit:
    """Fit θ ∈ R^k of ``softmax(Xθ + b)`` to counts; X (J, k) and b are validated already."""
    tolerance, limit = positive(tolerance, "tolerance"), ball(radius)
    F, has_data = frequencies_of(counts, scores.shape[0])
    solution, gap = np.zeros((F.shape[0], scores.shape[1])), np.zeros(F.shape[0])
    law = np.repeat(softmax_rows(bias[None, :]), F.shape[0], axis=0)
    attained = np.ones(F.shape[0], bool)
    if has_data.any():
        core = fit_core(scores, bias, F[has_data], limit, tolerance)
        solution[has_data], law[has_data] = core.theta, core.law
        gap[has_data], attained[has_data] = core.gap, core.attained
    return assemble(solution, law, gap, attained, has_data, tolerance, INACCURATE)


def assemble(
    solution: Array, law: Array, gap: Array, attained: Mask, has_data: Mask, tolerance: float, aim: str
) -> SoftmaxFit:
    """Say what became of each problem; those above tolerance get status `aim`, with one warning if inaccurate."""
    gap = np.maximum(gap, 0.0)
    status = np.where(gap <= tolerance, OPTIMAL, aim)
    status = np.where(has_data, np.where(attained, status, NO_MAXIMISER), NO_DATA)
    missed = int((status == INACCURATE).sum())
    if missed:
        warnings.warn(
            f"{missed} of {gap.size} fits did not reach a gap of {tolerance:g} nats per sample (worst {gap.max():.3g})",
            stacklevel=4,
        )
    return SoftmaxFit(solution, law, gap, status)


def softmax_rows(logits: Array) -> Array:
    """Softmax along the last axis."""
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def _head(weights: ArrayLike, bias: ArrayLike) -> tuple[Array, Array]:
    W = _matrix(weights, "weights")
    b = _finite(bias, "bias")
    if b.shape != (W.shape[0],):
        raise ValueError(f"bias must have shape ({W.shape[0]},), one number a row of weights, got {b.shape}")
    return W, b


def _matrix(values: ArrayLike, name: str) -> Array:
    matrix = _finite(values, name)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise ValueError(f"{name} must be a matrix with at least one row and column, got shape {matrix.shape}")
    return matrix


def _finite(values: ArrayLike, name: str) -> Array:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers, got {type(values).__name__}") from None
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]:g}")
    return array


def _support(support: ArrayLike | None, n_tokens: int) -> NDArray[np.int64]:
    if support is None:
        return np.arange(n_tokens)
    chosen = [whole(v, "an index of the support", high=n_tokens - 1) for v in np.atleast_1d(np.asarray(support))]
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"support must hold distinct indices, at least one, got {chosen}")
    return np.array(chosen, dtype=np.int64)
