"""The one protocol of estimators: options in the constructor, ``fit(dictionary, counts)``, results ending in ``_``."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from markov_theory._checks import Array, as_counts
from markov_theory.dictionary import Dictionary

TOLD = ("sparsity", "support", "embeddings", "weights", "bias", "radius")


def tolerance_for(epsilon: float) -> float:
    """Certified gap to ask of a solver for an accuracy ε, nats per sample: ε/10⁶ moves KL(q‖q̂) by about 0.2 %."""
    return float(np.clip(1e-6 * epsilon, 1e-13, 1e-9))


class RowEstimator(BaseEstimator):
    """Base of estimators of a new token's row.

    Subclasses store their options in the constructor and implement ``_fit(transitions, counts)``, which receives
    counts of shape (R, J) and returns a mapping from fitted attribute (without the final underscore) to an array
    whose first axis is R; ``law`` is required, ``alpha``, ``gap`` and ``status`` are customary.

    Attributes
    ----------
    name : str
        On the command line and in tables.
    bound_class : str
        The class of estimators whose bounds speak of it (see `markov_theory.bounds.base.Bound.speaks_of`).
    thinned : bool
        Whether a sweep runs it on a thinned axis: slow estimators, and baselines that do not change with s.
    law_ : ndarray, shape (J,) or (R, J)
        The estimated row q̂.
    alpha_ : ndarray, shape (T,) or (R, T)
        Weights, where the estimate is a mixture of rows.
    gap_ : ndarray, shape () or (R,)
        Certificate, nats per sample (see `markov_theory.solvers.result.MixtureFit`).
    status_ : ndarray of str, shape () or (R,)
    """

    name: ClassVar[str]
    thinned: ClassVar[bool] = False

    law_: Array
    alpha_: Array
    gap_: Array
    status_: NDArray[np.str_]

    def fit(self, dictionary: Dictionary, counts: ArrayLike) -> RowEstimator:
        """Estimate the row from counts of shape (J,) or, for R independent problems, (R, J)."""
        n = as_counts(counts, dictionary.n_outcomes)
        fitted = self._fit(dictionary.transitions, np.atleast_2d(n))
        for name, values in fitted.items():
            setattr(self, f"{name}_", values if n.ndim == 2 else values[0])
        return self

    def _fit(self, transitions: Array, counts: Array) -> dict[str, Any]:
        raise NotImplementedError

    @property
    def bound_class(self) -> str:
        """The class of estimators whose bounds speak of this one; ``"none"``: no guarantee."""
        return "none"

    @property
    def support_(self) -> NDArray[np.int64]:
        """Indices of the non-zero weights of a single fit."""
        if self.alpha_.ndim != 1:
            raise ValueError("support_ is of one problem; for a batch read the non-zeros of alpha_")
        return np.flatnonzero(self.alpha_)

    @classmethod
    def for_instance(cls, instance: Any, tolerance: float) -> RowEstimator:
        """Make the estimator with what a sweep lets it know.

        That is ``tolerance``, ``sparsity`` and ``support``; of an embedding mixture also ``embeddings``, ``weights``,
        ``bias`` and ``radius``. Only options that the constructor has are set, so an oracle is one that asks for the
        support.
        """
        options = set(cls._get_param_names())
        known = {name: getattr(instance, name) for name in TOLD if name in options and hasattr(instance, name)}
        if "support" in known:
            known["support"] = tuple(known["support"].tolist())
        if "tolerance" in options:
            known["tolerance"] = tolerance
        return cls(**known)
