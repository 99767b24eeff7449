"""A new token whose law is no mixture of the rows: q = (1−τ)·q_α + τ·r, r outside their hull."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory.bounds.base import Bound
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import RowEstimator
from markov_theory.instance import Instance
from markov_theory.misspecified import MisspecifiedInstance, misspecify
from markov_theory.sampling import sample_counts
from markov_theory.sweep.axes import Point, Value, as_text
from markov_theory.sweep.problems.base import Truth
from markov_theory.sweep.problems.mixture import Mixture, mixture_bound


class MisfitTruth(Truth):
    """A law beside the hull; success is an excess risk KL(q‖q̂) − min over *all* mixtures of KL(q‖·) of at most ε.

    Estimators know what they would of the mixture q_α. Those whose own class is smaller than the hull (a support, s
    rows) can fail at every N; those that need no mixture can have a negative excess, counted as 0.
    """

    def __init__(self, planted: Instance, misfit: float, seed: int) -> None:
        self.misspecified = misspecify(planted, misfit, seed=seed) if misfit > 0 else None
        self.instances, self.dictionary = (planted,), planted.dictionary
        self.name = planted.name + (f"/misfit={as_text(misfit)}" if misfit > 0 else "")

    @property
    def instance(self) -> Instance | MisspecifiedInstance:
        """What is learned."""
        return self.instances[0] if self.misspecified is None else self.misspecified

    def draw(self, n_samples: int, n_trials: int, generator: np.random.Generator) -> Iterator[IntArray]:
        """See `Truth`."""
        yield sample_counts(self.instance.target, n_samples, n_trials, generator)

    def loss(self, instance: Any, law: Array) -> Array:
        """See `Truth`."""
        if self.misspecified is None:
            return kl_divergence(instance.target, law)
        return np.maximum(self.misspecified.excess_risk(law), 0.0)

    def guarantee(self, estimator: RowEstimator) -> str:
        """See `Truth`: the excess over all mixtures is what bounds of maximum likelihood over them speak of."""
        return "simplex" if estimator.bound_class == "simplex" else "none"

    def bound(self, bound: type[Bound], guarantee: str, epsilon: float, delta: float) -> float | None:
        """See `Truth`; bounds that suppose a truth in the hull are silent outside it."""
        if self.misspecified is not None and bound.label not in Misfit.default_bounds:
            return None
        return mixture_bound(self.instance, bound, guarantee, epsilon, delta)

    def facts(self, epsilon: float) -> dict[str, float | bool | str]:
        """See `Truth`."""
        outside = self.misspecified
        return {
            "approximation_error": 0.0 if outside is None else outside.approximation_error,
            "outside_hull": outside is not None and outside.is_outside,
        }


class Misfit(Mixture):
    """Misspecification at share τ."""

    name = "misfit"
    words = (
        "misspecification: share tau in [0, 1) of the law comes from outside all mixtures; success is an excess risk "
        "KL(q||q_hat) - min KL(q||mixture) <= epsilon"
    )
    loss = "excess risk"
    main = "misfit"
    selected_by: ClassVar[tuple[str, ...]] = ("misfit",)
    axes: ClassVar[dict[str, Value]] = {**Mixture.axes, "misfit": 0.0}
    default_estimators: ClassVar[tuple[str, ...]] = ("constrained-kl", "kl-pursuit", "smoothed-empirical")
    default_bounds: ClassVar[tuple[str, ...]] = ("M1", "M2")

    def _truth(self, point: Point, index: int) -> Truth:
        return MisfitTruth(self.planted(point, index), point["misfit"], self.seed)
