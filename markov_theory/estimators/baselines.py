"""Trivial estimators: what is learned without data, and without the dictionary."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from markov_theory._checks import Array
from markov_theory.estimators.base import RowEstimator


class UniformMixture(RowEstimator):
    """The mean row, whatever the data."""

    name: ClassVar[str] = "uniform"
    thinned: ClassVar[bool] = True

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        alpha = np.full((counts.shape[0], transitions.shape[0]), 1 / transitions.shape[0])
        return {"alpha": alpha, "law": alpha @ transitions}


class SmoothedEmpirical(RowEstimator):
    """The empirical row with a pseudo-count on every outcome: ``(n_j + a)/(N + aJ)``.

    Parameters
    ----------
    pseudo_count : float
        a > 0; ½ is Krichevsky and Trofimov's. Without it one unseen outcome makes KL(q‖q̂) infinite.
    """

    name: ClassVar[str] = "smoothed-empirical"
    thinned: ClassVar[bool] = True

    def __init__(self, pseudo_count: float = 0.5) -> None:
        self.pseudo_count = pseudo_count

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        if not self.pseudo_count > 0:
            raise ValueError(f"pseudo_count must be > 0, got {self.pseudo_count!r}")
        smoothed = counts + self.pseudo_count
        return {"law": smoothed / smoothed.sum(axis=1, keepdims=True)}
