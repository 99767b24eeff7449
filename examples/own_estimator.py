"""An estimator of one's own.

From the folder above:

    python -m markov_theory.sweep --s 2..6 --estimators oracle,examples.own_estimator:LeastSquaresMixture

Its options, if it had any, would be arguments of ``__init__``; a sweep sets those named ``sparsity``, ``support`` and
``tolerance``. With ``bound_class`` it would say which bounds speak of it.
"""

import numpy as np
from scipy.optimize import nnls

from markov_theory.estimators import RowEstimator


class LeastSquaresMixture(RowEstimator):
    """The mixture nearest to the empirical row in least squares, its weights scaled to sum 1."""

    name = "least-squares"

    def _fit(self, transitions, counts):
        frequencies = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        weights = np.array([nnls(transitions.T, row)[0] for row in frequencies])
        weights[~weights.any(axis=1)] = 1  # no counts: all rows alike
        alpha = weights / weights.sum(axis=1, keepdims=True)
        return {"alpha": alpha, "law": alpha @ transitions}
