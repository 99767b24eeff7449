"""How long a corpus must be for every one of m new tokens to be seen and learned, and what unequal exposure costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import chi2

from markov_theory._checks import Array, IntArray, open_unit
from markov_theory.bounds.base import least_integer, round_up
from markov_theory.bounds.exposure import Exposure, exposure_failure
from markov_theory.bounds.sparse import affine_dimension
from markov_theory.corpus import EXPOSURES, exposure_rates
from markov_theory.instance import Instance
from markov_theory.plan.truths import Truth


@dataclass(frozen=True, eq=False)
class Corpus:
    """Positions after which, with probability ≥ 1 − δ, all new tokens have been seen and learned.

    At each position new token u comes with probability ``rate·share_u``.

    Attributes
    ----------
    exposure : str
        ``"uniform"``, ``"zipf"`` (shares ∝ 1, 1/2, 1/3, …) or ``"coupled"`` (share of u ∝ Σ_v α_uv f_v with Zipf's
        frequencies f of the old rows in their order).
    rate : float
        Probability that a position is a new token.
    shares : ndarray, shape (m,)
        Of the new tokens among them.
    samples_per_token : ndarray, shape (m,)
        N_u.
    exposure_delta, learning_delta : float
        Failure probability left to exposure, and to the learning of each token; they add up to δ.
    n_positions : float
        ``inf`` if some N_u is. A position is a sample where the only new token comes at each.
    failure : tuple of float
        Bounds on the probability that some token is seen too rarely.
    under : dict of str to float
        Positions by exposure, N_u the same.
    """

    exposure: str
    rate: float
    shares: Array
    samples_per_token: Array
    exposure_delta: float
    learning_delta: float
    n_positions: float
    failure: tuple[float, float]
    under: dict[str, float]

    @property
    def rates(self) -> Array:
        """π_u."""
        return self.rate * self.shares

    @property
    def derived(self) -> dict[str, float]:
        """For the reader: what follows from the attributes."""
        return {"cost_of_exposure": self.cost, "rarest_share": float(self.shares.min())}

    @property
    def cost(self) -> float:
        """Positions relative to uniform exposure; 1 where either is 0 or infinite."""
        uniform = self.under["uniform"]
        return self.n_positions / uniform if 0 < uniform < math.inf and self.n_positions < math.inf else 1.0

    def parts(self, known_support: float) -> dict[str, float]:
        """What the occurrences of new tokens are spent on: accuracy, finding supports, exposure; by the worst token.

        Parameters
        ----------
        known_support : float
            N of one token whose support is known.
        """
        N = float(self.samples_per_token.max())
        if math.isinf(self.n_positions):
            return {"accuracy": math.inf, "support": math.inf, "exposure": math.inf}
        learned = float(self.samples_per_token.sum())
        accuracy = learned * (known_support / N if N else 0.0)
        spent = self.n_positions * self.rate
        return {"accuracy": accuracy, "support": learned - accuracy, "exposure": max(0.0, spent - learned)}


def is_alone(n_new: int, rate: float) -> bool:
    """Whether every position is a sample of the only new token, so that exposure is no matter."""
    return n_new == 1 and rate == 1


def learning_delta(n_new: int, rate: float, delta: float, share: float) -> float:
    """What is left of δ to each token: all to the only one, else ``(1 − share)·δ/m``."""
    return delta if is_alone(n_new, rate) else (1 - share) * delta / n_new


def plan_corpus(
    samples_per_token: Array, instances: Sequence[Instance], exposure: str, rate: float, delta: float, share: float
) -> Corpus:
    """Positions that suffice for N_u samples of each token, under the exposure asked for and under the others.

    Raises
    ------
    ValueError
        If the exposure is unknown, or a number is out of range.
    """
    m = len(instances)
    rate = 1.0 if rate == 1 else open_unit(rate, "rate")
    alone, share = is_alone(m, rate), open_unit(share, "share")
    alpha = np.array([instance.alpha for instance in instances])
    shares = {name: exposure_rates(name, alpha) for name in dict.fromkeys((exposure, *EXPOSURES))}
    under = {
        name: float(samples_per_token[0]) if alone else Exposure.n_samples(samples_per_token, rate * pi, share * delta)
        for name, pi in shares.items()
    }
    n = under[exposure]
    failure = (0.0, 0.0)
    if not alone and math.isfinite(n):
        failure = exposure_failure(n, samples_per_token, rate * shares[exposure])
    return Corpus(
        exposure=exposure,
        rate=rate,
        shares=shares[exposure],
        samples_per_token=samples_per_token,
        exposure_delta=0.0 if alone else share * delta,
        learning_delta=learning_delta(m, rate, delta, share),
        n_positions=n,
        failure=failure,
        under={name: under[name] for name in EXPOSURES},
    )


class Limit(NamedTuple):
    """The limit law of 2N·KL for one token: χ² with `df` degrees of freedom, or that of simulated values."""

    df: int
    draws: Array | None = None  # ascending

    @classmethod
    def wilks(cls, truth: Truth) -> Limit:
        """The law of `S3`."""
        rows = truth.instance.support_rows
        return cls(affine_dimension(rows))

    @property
    def is_zero(self) -> bool:
        """Whether the limit is 0: nothing has to be learned once the support is found."""
        return self.df == 0 if self.draws is None else not self.draws.any()

    def n_samples(self, epsilon: float, delta: float) -> float:
        """N at which the limit law misses ε with probability δ: of simulated values, the least such."""
        if self.draws is None:
            return round_up(float(chi2.isf(delta, self.df)) / (2 * epsilon)) if self.df else 0.0
        return round_up(float(np.quantile(self.draws, 1 - delta, method="inverted_cdf")) / (2 * epsilon))

    def tail(self, x: Array) -> Array:
        """P(limit > x)."""
        if self.draws is not None:
            return 1 - np.searchsorted(self.draws, x, side="right") / self.draws.size
        return chi2.sf(x, self.df) if self.df else np.zeros_like(x)


def predicted_positions(limits: Sequence[Limit], which: IntArray, rates: Array, epsilon: float, delta: float) -> float:
    """Least n with ``Π_u P(limit_u ≤ 2ε·n·π_u) ≥ 1 − δ``: each token at its expected number of occurrences.

    Parameters
    ----------
    limits : sequence of Limit
    which : ndarray of int, shape (m,)
        The limit that each token has.
    rates : ndarray, shape (m,)
        π_u.
    """
    if all(limit.is_zero for limit in limits):
        return 0.0

    def suffices(n: int) -> bool:
        total = 0.0
        for k, limit in enumerate(limits):
            with np.errstate(divide="ignore"):
                total += float(np.log1p(-limit.tail(2 * epsilon * n * rates[which == k])).sum())
        return total >= math.log1p(-delta)

    return least_integer(suffices, low=1, guess=1 / (epsilon * float(rates.min())))
