"""One new token whose law is a mixture of s rows: the paper's transition mixture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from markov_theory._checks import Array, IntArray, whole
from markov_theory.bounds.base import Bound
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import ESTIMATORS, RowEstimator
from markov_theory.families import Family, make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.misspecified import MisspecifiedInstance
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.sweep.axes import AXES, Point, Value, as_text
from markov_theory.sweep.problems.base import Kept, Problem, Truth

KEPT_DICTIONARIES = 64


class MixtureTruth(Truth):
    """One transition mixture, learned to KL(q‖q̂) ≤ ε."""

    def __init__(self, instance: Instance) -> None:
        self.instances, self.name, self.dictionary = (instance,), instance.name, instance.dictionary

    @property
    def instance(self) -> Instance:
        """The only one."""
        (only,) = self.instances
        return only

    def draw(self, n_samples: int, n_trials: int, generator: np.random.Generator) -> Iterator[IntArray]:
        """See `Truth`."""
        yield sample_counts(self.instance.target, n_samples, n_trials, generator)

    def loss(self, instance: Any, law: Array) -> Array:
        """See `Truth`."""
        return kl_divergence(instance.target, law)

    def guarantee(self, estimator: RowEstimator) -> str:
        """See `Truth`; the bounds of the one-to-one class suppose that the truth is a single row."""
        one_to_one = estimator.bound_class == "one-to-one"
        return "none" if one_to_one and self.instance.sparsity > 1 else estimator.bound_class

    def bound(self, bound: type[Bound], guarantee: str, epsilon: float, delta: float) -> float | None:
        """See `Truth`."""
        return mixture_bound(self.instance, bound, guarantee, epsilon, delta)

    def facts(self, epsilon: float) -> dict[str, float | bool | str]:
        """See `Truth`."""
        return {
            "support_margin": self.instance.support_margin,
            "small_epsilon": self.instance.in_small_epsilon_regime(epsilon),
            "kl_of_uniform_mixture": self.instance.kl_of_uniform_mixture,
        }


def mixture_bound(
    instance: Instance | MisspecifiedInstance,
    bound: type[Bound],
    guarantee: str,
    epsilon: float,
    delta: float,
    enough: int | None = None,
) -> float | None:
    """A bound at a transition mixture; those of sparse mixtures are read with s = T for all mixtures.

    Where `enough` rows are known to mix whatever all T can, with s = `enough`. Success here is KL(q‖q̂) <= ε: a bound of
    another event is left out, but for an upper bound that names the true row.
    """
    counts = bound.event in ("kl", "excess") or (bound.event == "row" and bound.kind == "upper")
    if not counts or (guarantee not in bound.speaks_of and "any" not in bound.speaks_of):
        return None
    size = {"sparsity": min(instance.n_tokens, enough or instance.n_tokens)} if guarantee == "simplex" else {}
    return bound.at(instance, epsilon=epsilon, delta=delta, **size)


class Mixture(Problem):
    """A new token's law is a mixture of s rows: q = Σ α_v p_v."""

    name = "mixture"
    words = "a mixture of s rows of a dictionary is learned to KL(q||q_hat) <= epsilon"
    main = "s"
    axes: ClassVar[dict[str, Value]] = {
        "s": 4, "gamma": None, "ratio": 100.0, "tokens": 128, "outcomes": 256, "epsilon": 1e-5, "delta": 0.05,
    }  # fmt: skip
    options: ClassVar[dict[str, Any]] = {"family": "well-conditioned"}
    estimators = ESTIMATORS
    default_estimators: ClassVar[tuple[str, ...]] = (
        "oracle",
        "constrained-kl",
        "kl-pursuit",
        "uniform",
        "smoothed-empirical",
    )
    default_bounds: ClassVar[tuple[str, ...]] = ("O1", "O2", "S1", "S2", "S6", "S3")
    takes_rows = True

    def __init__(self, seed: int, options: Mapping[str, Any], given: Dictionary | None = None) -> None:
        super().__init__(seed, options, given)
        self._dictionary = Kept(self._make if given is None else self._subset, lambda rows: rows, KEPT_DICTIONARIES)

    def _truth(self, point: Point, index: int) -> Truth:
        return MixtureTruth(self.planted(point, index))

    def rows(self, point: Point) -> Dictionary:
        """See `Problem`."""
        shape = ("tokens", "outcomes", "ratio", "gamma") if self.given is None else ("tokens",)
        return self._dictionary(*(point[axis] for axis in shape))

    def planted(self, point: Point, index: int) -> Instance:
        """Truth number `index`, named after s, its number and every shape of the rows that is not the default."""
        instance = plant(self.rows(point), point["s"], seed=self.seed, truth=index)
        return Instance(instance.dictionary, instance.alpha, instance.name + self._shape(point))

    def _shape(self, point: Point) -> str:
        usual = self.axes if self.given is None else {"tokens": self.given.n_tokens}
        shaping = [axis for axis, value in point.setting if AXES[axis].shapes_rows and value != usual[axis]]
        return "".join(f"/{axis}={as_text(point[axis])}" for axis in shaping)

    def _make(self, n_tokens: int, n_outcomes: int, ratio: float, gamma: float | None) -> Dictionary:
        family: Family = self.chosen["family"]
        with threadpool_limits(1):  # as in a worker: the number of threads may change last bits
            return make_dictionary(
                n_tokens, n_outcomes, density_ratio=ratio, margin=gamma, family=family, seed=self.seed
            )

    def _subset(self, n_tokens: int) -> Dictionary:
        """The given rows, or so many of them at random; a smaller choice is part of every larger one."""
        given = self.given
        assert given is not None
        whole(n_tokens, "tokens", low=1, high=given.n_tokens)
        if n_tokens == given.n_tokens:
            return given
        order = named_generator(self.seed, "rows", given.n_tokens).permutation(given.n_tokens)
        chosen = np.sort(order[:n_tokens])
        return Dictionary(
            given.transitions[chosen],
            [given.tokens[v] for v in chosen],
            given.outcomes,
            f"{n_tokens:,} random rows of: {given.origin}",
            given.notes,
        )
