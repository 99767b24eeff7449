"""Estimators that answer with a mixture of the dictionary's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from markov_theory._checks import Array
from markov_theory.estimators.base import RowEstimator
from markov_theory.solvers.best_subset import MAX_NODES, best_subset
from markov_theory.solvers.matching_pursuit import orthogonal_matching_pursuit
from markov_theory.solvers.pursuit import kl_pursuit
from markov_theory.solvers.result import FEASIBLE, MixtureFit
from markov_theory.solvers.simplex_mle import simplex_mle


def _fitted(fit: MixtureFit, transitions: Array) -> dict[str, Any]:
    return {"alpha": fit.alpha, "law": fit.alpha @ transitions, "gap": fit.gap, "status": fit.status}


class ConstrainedKL(RowEstimator):
    """Maximum likelihood over *all* mixtures of the rows, without a cardinality: ``min_α KL(n̂‖Pᵀα)``.

    Parameters
    ----------
    tolerance : float
        Certified gap, nats per sample.

    Examples
    --------
    >>> from markov_theory.dictionary import Dictionary
    >>> fit = ConstrainedKL().fit(Dictionary([[.8, .2], [.3, .7]]), [7, 3])
    >>> fit.alpha_.round(6).tolist(), fit.support_.tolist()
    ([0.8, 0.2], [0, 1])
    """

    name: ClassVar[str] = "constrained-kl"
    thinned: ClassVar[bool] = True

    def __init__(self, tolerance: float = 1e-9) -> None:
        self.tolerance = tolerance

    @property
    def bound_class(self) -> str:
        """See `RowEstimator`."""
        return "simplex"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        return _fitted(simplex_mle(transitions, counts, self.tolerance), transitions)


class Oracle(RowEstimator):
    """Maximum likelihood over mixtures of the *true* support, which no estimator from data knows.

    Parameters
    ----------
    support : sequence of int
        Rows that may be mixed.
    tolerance : float
        Certified gap, nats per sample.
    """

    name: ClassVar[str] = "oracle"

    def __init__(self, support: Sequence[int], tolerance: float = 1e-9) -> None:
        self.support = support
        self.tolerance = tolerance

    @property
    def bound_class(self) -> str:
        """See `RowEstimator`."""
        return "oracle"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        rows = list(self.support)
        fit = simplex_mle(transitions[rows], counts, self.tolerance)
        alpha = np.zeros((counts.shape[0], transitions.shape[0]))
        alpha[:, rows] = fit.alpha
        return _fitted(MixtureFit(alpha, fit.gap, fit.status), transitions)


class KLPursuit(RowEstimator):
    """Sparse maximum likelihood by pursuit: relax, keep the s largest weights, exchange rows while it helps.

    Parameters
    ----------
    sparsity : int
        s, the number of rows that may be mixed.
    tolerance : float
        Accuracy of each fit, nats per sample.
    """

    name: ClassVar[str] = "kl-pursuit"
    thinned: ClassVar[bool] = True

    def __init__(self, sparsity: int, tolerance: float = 1e-9) -> None:
        self.sparsity = sparsity
        self.tolerance = tolerance

    @property
    def bound_class(self) -> str:
        """With s = 1 it compares all rows, so it is the one-to-one maximum likelihood; else no guarantee."""
        return "one-to-one" if self.sparsity == 1 else "none"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        return _fitted(kl_pursuit(transitions, counts, self.sparsity, self.tolerance), transitions)


class OMP(RowEstimator):
    """Orthogonal matching pursuit on the empirical row for the support, constrained KL for the weights on it.

    Parameters
    ----------
    sparsity : int
        s, the number of rows that may be mixed.
    tolerance : float
        Accuracy of the weights, nats per sample.

    Notes
    -----
    An outcome that was observed but that no chosen row can give is left out of the weights' fit.
    """

    name: ClassVar[str] = "omp"
    thinned: ClassVar[bool] = True

    def __init__(self, sparsity: int, tolerance: float = 1e-9) -> None:
        self.sparsity = sparsity
        self.tolerance = tolerance

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        alpha = np.zeros((counts.shape[0], transitions.shape[0]))
        frequencies = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        pursuit = orthogonal_matching_pursuit(transitions, frequencies, self.sparsity)
        for i, (n, size) in enumerate(zip(counts, pursuit.sizes, strict=True)):
            if size == 0:
                alpha[i] = 1 / transitions.shape[0]
                continue
            rows = np.sort(pursuit.support[i, :size])
            possible = transitions[rows].max(axis=0) > 0
            alpha[i, rows] = simplex_mle(transitions[rows], n * possible, self.tolerance).alpha[0]
        gap = np.full(counts.shape[0], np.inf)
        return _fitted(MixtureFit(alpha, gap, np.full(counts.shape[0], FEASIBLE)), transitions)


class ExactL0(RowEstimator):
    """Exact maximum likelihood over mixtures of at most s rows, by branch and bound.

    Parameters
    ----------
    sparsity : int
        s, the number of rows that may be mixed.
    tolerance : float
        Certified gap, nats per sample.
    max_nodes : int
        Relaxed problems to solve for each fit; then status ``"feasible"``: the best found, with its proven gap.
    """

    name: ClassVar[str] = "exact-l0"
    thinned: ClassVar[bool] = True

    def __init__(self, sparsity: int, tolerance: float = 1e-9, max_nodes: int = MAX_NODES) -> None:
        self.sparsity = sparsity
        self.tolerance = tolerance
        self.max_nodes = max_nodes

    @property
    def bound_class(self) -> str:
        """See `RowEstimator`."""
        return "l0"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        fit = best_subset(transitions, counts, self.sparsity, self.tolerance, max_nodes=self.max_nodes)
        return _fitted(fit, transitions)


class NearestRow(RowEstimator):
    """One-to-one mapping: the single row of largest likelihood, ``argmax_v Σ_j n_j log p_v(j)``."""

    name: ClassVar[str] = "nearest-row"

    @property
    def bound_class(self) -> str:
        """See `RowEstimator`."""
        return "one-to-one"

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        fit = best_subset(transitions, counts, 1)
        return _fitted(fit, transitions)
