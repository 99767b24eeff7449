"""False bounds that are more than a factor: what the theory would say with a step of a proof left out."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from markov_theory.bounds import S2, S6
from markov_theory.bounds.base import Bound, Kind, least_integer
from markov_theory.bounds.exponents import pairwise_chernoff
from markov_theory.bounds.known_embedding import log_sphere_failure, whitened
from markov_theory.bounds.known_support import hull_geometry, require_mixture
from markov_theory.bounds.one_to_one import fano
from markov_theory.bounds.sparse import hull_directions
from markov_theory.divergences import pairwise_kl, squared_hellinger


class _False(Bound):
    """A bound that nobody claims."""

    kind: ClassVar[Kind] = "upper"
    origin = "derived"
    speaks_of = ("one-to-one",)
    statement = reason = "false on purpose"


class ChernoffByDivergence(_False):
    """O3 with KL in place of the Chernoff information."""

    label = "O3 with KL for C"
    event = "row"

    @staticmethod
    def n_samples(transitions: ArrayLike, delta: float) -> float:
        """Least N with Σ e^{−N·KL(p_v‖p_w)} ≤ δ for every v."""
        divergence = pairwise_kl(transitions)
        np.fill_diagonal(divergence, math.inf)
        if divergence.min() == 0:
            return math.inf
        return least_integer(lambda n: bool(logsumexp(-float(n) * divergence, axis=1).max() <= math.log(delta)), low=1)


class ChernoffOfOneRival(_False):
    """O3 without the number of rivals."""

    label = "O3 without log(T-1)"
    event = "row"

    @staticmethod
    def n_samples(transitions: ArrayLike, delta: float) -> float:
        """N of O3 for the nearest two rows alone."""
        information = pairwise_chernoff(transitions)
        np.fill_diagonal(information, math.inf)
        slowest = float(information.min())
        return (
            math.inf if slowest == 0 else float(math.ceil(math.log(1 / delta) / slowest)) if slowest < math.inf else 1.0
        )


class LowerTimes(_False):
    """The lower bound log(1/(4δ))/γ times a half more."""

    label = "log(1/(4 delta))/gamma x 1.5"
    kind = "lower"
    speaks_of = ("any",)
    event = "row"
    factor = 1.5

    @classmethod
    def at(cls, instance: object, **given: float) -> float:
        """See `Bound.at`."""
        return cls.factor * super().at(instance, **given)

    @staticmethod
    def n_samples(margin: float, delta: float) -> float:
        """The number log(1/(4δ))/γ."""
        return max(0.0, -math.log(4 * delta)) / margin if margin > 0 else math.inf


class LowerTimesFour(LowerTimes):
    """The same times four."""

    label = "log(1/(4 delta))/gamma x 4"
    factor = 4.0


class FanoUncorrected(_False):
    """O5 without h(δ) and δ·log(M−1)."""

    label = "O5 without its corrections"
    kind = "lower"
    speaks_of = ("any",)
    event = "row"

    @staticmethod
    def n_samples(transitions: ArrayLike, delta: float) -> float:
        """The ratio log M/JS."""
        rows = np.asarray(transitions)
        return fano(rows, 1e-300)


class HellingerPacking(_False):
    """S4 for laws with pairwise H² > ε only."""

    label = "S4 with H^2 > eps"
    kind = "lower"
    speaks_of = ("any",)

    @staticmethod
    def n_samples(laws: ArrayLike, epsilon: float, delta: float) -> float:
        """Fano's number; ValueError if two laws have H² ≤ ε."""
        packed = np.asarray(laws)
        for i in range(1, packed.shape[0]):
            if squared_hellinger(packed[i], packed[:i]).min() <= epsilon:
                raise ValueError("the laws are too near to each other")
        return fano(packed, delta)


class KnownSupportWithoutLeverage(_False):
    """S6 with Λ = 0."""

    label = "S6 without Lambda"
    speaks_of = ("oracle",)

    @staticmethod
    def n_samples(support_rows: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """(√r + √(2 log 1/δ))²/(2ε)."""
        rows, law = np.asarray(support_rows), np.asarray(target)
        require_mixture(rows, law)
        r = hull_geometry(rows, law).dimension
        return float(math.ceil((math.sqrt(r) + math.sqrt(2 * math.log(1 / delta))) ** 2 / (2 * epsilon))) if r else 0.0


class HalfExponent(_False):
    """S6¹ halved, where it is log(2/δ)/ε."""

    label = "S6^1 as log(2/delta)/(2 eps)"
    speaks_of = ("oracle",)

    @staticmethod
    def n_samples(support_rows: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """The number log(2/δ)/(2ε) for rows on a line, ``inf`` else."""
        if hull_directions(np.asarray(support_rows), np.asarray(target)).shape[1] != 1:
            return math.inf
        return float(math.ceil(math.log(2 / delta) / (2 * epsilon)))


class SmallerSupports(_False):
    """Finding the support and learning on it, for truths that mix fewer rows than the estimator may."""

    label = "unknown support, |S| < s"
    speaks_of = ("l0",)

    @staticmethod
    def n_samples(
        support_rows: ArrayLike, target: ArrayLike, n_tokens: int, sparsity: int, density_ratio: float,
        support_margin: float, epsilon: float, delta: float,
    ) -> float:  # fmt: skip
        """max(S6, S2 at ε = γ_s), each at δ/2."""
        if support_margin <= 0:
            return math.inf
        known = S6.n_samples(support_rows, target, epsilon, delta / 2)
        return max(known, S2.n_samples(n_tokens, sparsity, density_ratio, support_margin, delta / 2))


class ReversedDivergence(_False):
    """E4 with the divergence reversed."""

    label = "E4 with KL reversed"
    speaks_of = ("embedding-oracle",)

    @staticmethod
    def n_samples(epsilon: float, delta: float) -> float:
        """The number log(2/δ)/ε."""
        return float(math.ceil(math.log(2 / delta) / epsilon))


class WithoutDiameter(_False):
    """E4 with ω = 0: the Gaussian answer."""

    label = "E4 without omega"
    speaks_of = ("embedding-oracle",)

    @staticmethod
    def n_samples(support_scores: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """The N of E4 with D²/2 = ε and the mean statistic at D, for rank ≥ 2; ``inf`` else."""
        statistics = whitened(np.asarray(support_scores), np.asarray(target))
        rank, reach = statistics.phi.shape[1], math.sqrt(2 * epsilon)
        if rank < 2:
            return math.inf
        return least_integer(
            lambda n: log_sphere_failure(float(n), rank, statistics.leverage, reach) <= math.log(delta), low=1
        )


FALSE_BOUNDS: tuple[tuple[str, type[Bound]], ...] = (
    ("O3", ChernoffByDivergence),
    ("O3", ChernoffOfOneRival),
    ("O4", LowerTimes),
    ("O4", LowerTimesFour),
    ("O5", FanoUncorrected),
    ("S4", HellingerPacking),
    ("S6", KnownSupportWithoutLeverage),
    ("S6", HalfExponent),
    ("S6", SmallerSupports),
    ("E4", ReversedDivergence),
    ("E4", WithoutDiameter),
)
