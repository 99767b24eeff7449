"""Several new tokens learned from one corpus: the rarest decides."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from markov_theory._checks import Array, IntArray
from markov_theory.bounds.base import Bound, round_up
from markov_theory.bounds.exposure import corpus_size
from markov_theory.bounds.sparse import S3, affine_dimension
from markov_theory.corpus import EXPOSURES, exposure_rates
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import RowEstimator
from markov_theory.instance import Instance
from markov_theory.sweep.axes import MOST_TRUTHS, Point, Value
from markov_theory.sweep.problems.base import Truth
from markov_theory.sweep.problems.mixture import Mixture, MixtureTruth, mixture_bound


class CorpusTruth(Truth):
    """M transition mixtures; N is the number of occurrences of new tokens in the corpus, shared out by chance.

    A trial fails if some new token has KL(q‖q̂) > ε; one that never occurs has uniform weights.

    Parameters
    ----------
    planted : sequence of Instance
        m of them, over one dictionary.
    rates : array_like, shape (m,)
        π, the probability that an occurrence is of each token.
    name : str
    """

    def __init__(self, planted: list[Instance], rates: Array, name: str) -> None:
        self.instances, self.dictionary, self.name = tuple(planted), planted[0].dictionary, name
        self.rates = rates

    def draw(self, n_samples: int, n_trials: int, generator: np.random.Generator) -> Iterator[IntArray]:
        """See `Truth`."""
        occurrences = generator.multinomial(n_samples, self.rates, size=n_trials)  # (R, m)
        for u, instance in enumerate(self.instances):
            yield generator.multinomial(occurrences[:, u], instance.target).astype(np.int64)

    def loss(self, instance: Any, law: Array) -> Array:
        """See `Truth`."""
        return kl_divergence(instance.target, law)

    def guarantee(self, estimator: RowEstimator) -> str:
        """See `Truth`."""
        return MixtureTruth(self.instances[0]).guarantee(estimator)

    def bound(self, bound: type[Bound], guarantee: str, epsilon: float, delta: float) -> float | None:
        """See `Truth`: half of δ for exposure, the other half shared by the tokens; of predictions S3 alone."""
        alone = mixture_bound(self.instances[0], bound, guarantee, epsilon, delta)
        if alone is None or len(self.instances) == 1:
            return alone
        if bound is S3:
            return self._wilks(epsilon, delta)
        if bound.kind != "upper":
            return None
        each = [partial(_needed, instance, bound, guarantee, epsilon) for instance in self.instances]
        return corpus_size(each, self.rates, delta).n_chances

    def _wilks(self, epsilon: float, delta: float) -> float:
        """N at which ``1 − Π_u P(χ²_df ≤ 2ε·N·π_u) = δ``: each token at its expected number of occurrences."""
        df = np.array([affine_dimension(i.support_rows) for i in self.instances])
        if not df.any():
            return 0.0

        def excess(log_n: float) -> float:
            learned = chi2.logcdf(2 * epsilon * math.exp(log_n) * self.rates[df > 0], df[df > 0])
            return float(np.sum(learned)) - math.log1p(-delta)

        high = math.log(chi2.isf(delta / df.size, df.max()) / (2 * epsilon * self.rates.min())) + 1
        return round_up(math.exp(brentq(excess, high - 40, high)))

    def facts(self, epsilon: float) -> dict[str, float | bool | str]:
        """See `Truth`."""
        margin = min(instance.support_margin for instance in self.instances)
        return {
            "support_margin": margin,
            "small_epsilon": epsilon <= margin / 10,
            "rarest_rate": float(self.rates.min()),
        }


def _needed(instance: Instance, bound: type[Bound], guarantee: str, epsilon: float, delta: float) -> float:
    n_samples = mixture_bound(instance, bound, guarantee, epsilon, delta)
    assert n_samples is not None
    return n_samples


class NewTokens(Mixture):
    """M new tokens in one corpus."""

    name = "new-tokens"
    words = (
        "m new tokens, each a mixture of s rows, learned from one corpus: N counts the occurrences of new tokens in "
        "it, and a trial fails if some token has KL > epsilon (see --exposure)"
    )
    loss = "largest KL(q‖q̂)"
    main = "new_tokens"
    selected_by: ClassVar[tuple[str, ...]] = ("new_tokens",)
    axes: ClassVar[dict[str, Value]] = {**Mixture.axes, "new_tokens": 1}
    options: ClassVar[dict[str, Any]] = {**Mixture.options, "exposure": "uniform"}
    default_estimators: ClassVar[tuple[str, ...]] = ("oracle", "kl-pursuit", "smoothed-empirical")
    default_bounds: ClassVar[tuple[str, ...]] = ("O1", "O2", "S1", "S2", "S6", "S3")

    def __init__(self, seed: int, options: Mapping[str, Any], given: Dictionary | None = None) -> None:
        super().__init__(seed, options, given)
        if self.chosen["exposure"] not in EXPOSURES:
            raise ValueError(f"exposure must be one of {', '.join(EXPOSURES)}, got {self.chosen['exposure']!r}")

    def _truth(self, point: Point, index: int) -> Truth:
        m = point["new_tokens"]
        planted = [self.planted(point, index + u * MOST_TRUTHS) for u in range(m)]
        name = planted[0].name + (f"/new_tokens={m}" if m > 1 else "")
        return CorpusTruth(planted, exposure_rates(self.chosen["exposure"], [i.alpha for i in planted]), name)
