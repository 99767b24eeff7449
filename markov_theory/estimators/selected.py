"""The sparse mixture whose number of rows is chosen from the data."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory.estimators.base import RowEstimator
from markov_theory.solvers.selection import select_sparsity


class SelectedKLPursuit(RowEstimator):
    """KL pursuit whose s minimises the extended Bayesian information criterion (`select_sparsity`).

    Parameters
    ----------
    largest : int, optional
        The largest s considered; min(T, 32) by default.
    tolerance : float
        Accuracy of each fit, nats per sample.

    Attributes
    ----------
    sparsity_ : ndarray of int, shape () or (R,)
        The chosen s.

    Examples
    --------
    >>> from markov_theory.dictionary import Dictionary
    >>> rows = Dictionary([[.8, .1, .1], [.1, .8, .1], [.1, .1, .8]])
    >>> fit = SelectedKLPursuit().fit(rows, [450, 450, 100])
    >>> fit.support_.tolist(), int(fit.sparsity_)
    ([0, 1], 2)
    """

    name: ClassVar[str] = "selected-kl-pursuit"
    thinned: ClassVar[bool] = True

    sparsity_: IntArray

    def __init__(self, largest: int | None = None, tolerance: float = 1e-9) -> None:
        self.largest = largest
        self.tolerance = tolerance

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        chosen = select_sparsity(transitions, counts, largest=self.largest, tolerance=self.tolerance)
        fit = chosen.fit
        law = fit.alpha @ transitions
        return {
            "alpha": fit.alpha,
            "law": law,
            "gap": fit.gap,
            "status": fit.status,
            "sparsity": np.asarray(chosen.sparsity),
        }
