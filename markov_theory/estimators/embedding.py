"""Estimators of a new token's law through a softmax head, for embedding mixtures q = softmax(W Eᵀα + b).

The head and the embeddings are options, so that ``fit(dictionary, counts)`` is that of every estimator; the dictionary
gives the number of outcomes alone (`laws_of_tokens` makes one). Without a maximiser the fitted law is the limit to
which the likelihood's supremum belongs: it has zeros, so its KL from the truth is infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from numpy.typing import ArrayLike

from markov_theory._checks import Array
from markov_theory.dictionary import Dictionary
from markov_theory.estimators.base import RowEstimator
from markov_theory.estimators.baselines import SmoothedEmpirical
from markov_theory.solvers.softmax_head import (
    SoftmaxFit,
    embedding_mle,
    head_scores,
    softmax_mixture_mle,
    softmax_rows,
)
from markov_theory.solvers.sparse_softmax_head import softmax_best_subset, softmax_pursuit


def laws_of_tokens(embeddings: ArrayLike, weights: ArrayLike, bias: ArrayLike, origin: str = "a head") -> Dictionary:
    """Rows f(e_v) = softmax(W e_v + b): the next-token laws of the old tokens themselves."""
    scores, b = head_scores(embeddings, weights, bias)
    return Dictionary(softmax_rows(scores.T + b), origin=origin)


def _fitted(fit: SoftmaxFit) -> dict[str, Any]:
    return {"solution": fit.solution, "law": fit.law, "gap": fit.gap, "status": fit.status}


class EmbeddingOracle(RowEstimator):
    """Maximum likelihood over real weights on the *true* support: ``max_α Σ_j n_j log softmax(W E_Sᵀα + b)_j``.

    Parameters
    ----------
    embeddings : array_like, shape (T, d)
    weights : array_like, shape (J, d)
    bias : array_like, shape (J,)
    support : sequence of int
        Tokens that may have weight.
    tolerance : float
        Certified gap, nats per sample.

    Examples
    --------
    >>> head = {"embeddings": [[2.0], [0.0]], "weights": [[1.0], [-1.0]], "bias": [0.0, 0.0]}
    >>> fit = EmbeddingOracle(**head, support=[0]).fit(laws_of_tokens(**head), [9, 1])
    >>> fit.law_.round(6).tolist()
    [0.9, 0.1]
    """

    name: ClassVar[str] = "embedding-oracle"
    solution_: Array

    def __init__(
        self,
        embeddings: ArrayLike,
        weights: ArrayLike,
        bias: ArrayLike,
        support: Sequence[int],
        tolerance: float = 1e-9,
    ) -> None:
        self.embeddings = embeddings
        self.weights = weights
        self.bias = bias
        self.support = support
        self.tolerance = tolerance

    @property
    def bound_class(self) -> str:
        """See `RowEstimator`."""
        return "embedding-oracle"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        head = (self.embeddings, self.weights, self.bias)
        return _fitted(softmax_mixture_mle(*head, counts, support=list(self.support), tolerance=self.tolerance))


class EmbeddingTuning(RowEstimator):
    """Unconstrained embedding tuning: ``max_x Σ_j n_j log softmax(Wx + b)_j`` over x ∈ R^d, no old token used.

    Parameters
    ----------
    weights : array_like, shape (J, d)
    bias : array_like, shape (J,)
    tolerance : float
        Certified gap, nats per sample.
    """

    name: ClassVar[str] = "embedding-tuning"
    thinned: ClassVar[bool] = True
    solution_: Array

    def __init__(self, weights: ArrayLike, bias: ArrayLike, tolerance: float = 1e-9) -> None:
        self.weights = weights
        self.bias = bias
        self.tolerance = tolerance

    @property
    def bound_class(self) -> str:
        """See `RowEstimator`; bounds of a known support speak of it too, with W in place of W E_Sᵀ."""
        return "embedding-dense"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        return _fitted(embedding_mle(self.weights, self.bias, counts, tolerance=self.tolerance))


class _Sparse(RowEstimator):
    """What the estimators of sparse weights in the ball ‖α‖₂ ≤ B share: their options.

    Parameters
    ----------
    embeddings : array_like, shape (T, d)
    weights : array_like, shape (J, d)
    bias : array_like, shape (J,)
    sparsity : int
        s.
    radius : float
        B.
    tolerance : float
        Certified gap, nats per sample.
    """

    thinned: ClassVar[bool] = True
    solution_: Array

    def __init__(
        self,
        embeddings: ArrayLike,
        weights: ArrayLike,
        bias: ArrayLike,
        sparsity: int,
        radius: float,
        tolerance: float = 1e-9,
    ) -> None:
        self.embeddings = embeddings
        self.weights = weights
        self.bias = bias
        self.sparsity = sparsity
        self.radius = radius
        self.tolerance = tolerance

    def _solve(self, solver: Callable[..., SoftmaxFit], counts: Array) -> dict[str, Any]:
        problem = (self.embeddings, self.weights, self.bias, counts, self.sparsity)
        return _fitted(solver(*problem, radius=self.radius, tolerance=self.tolerance))


class EmbeddingPursuit(_Sparse):
    """Sparse weights in the ball by pursuit with exchanges (`softmax_pursuit`): no guarantee."""

    name: ClassVar[str] = "embedding-pursuit"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        return self._solve(softmax_pursuit, counts)


class EmbeddingL0(_Sparse):
    """Exact sparse maximum likelihood in the ball, all supports tried (`softmax_best_subset`)."""

    name: ClassVar[str] = "embedding-l0"

    @property
    def bound_class(self) -> str:
        """See `RowEstimator`."""
        return "embedding-l0"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        return self._solve(softmax_best_subset, counts)


EMBEDDING_ESTIMATORS: dict[str, type[RowEstimator]] = {
    estimator.name: estimator
    for estimator in (EmbeddingOracle, EmbeddingTuning, EmbeddingPursuit, EmbeddingL0, SmoothedEmpirical)
}
