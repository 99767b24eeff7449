"""A new token whose law is an embedding mixture: q = softmax(W Eᵀα + b), few real weights α."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from markov_theory._checks import Array, IntArray, positive
from markov_theory.bounds.base import Bound
from markov_theory.bounds.embedding import E1, E2
from markov_theory.bounds.known_embedding import whitened
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.embedding_instance import EmbeddingInstance, plant_embedding
from markov_theory.estimators.embedding import EMBEDDING_ESTIMATORS, laws_of_tokens
from markov_theory.sampling import sample_counts
from markov_theory.sweep.axes import Point, Value, as_text
from markov_theory.sweep.problems.base import Kept, Problem, Truth

ROOM = 1 + 1e-9  # laws a little farther than ε are held too, whatever is rounded


class EmbeddingTruth(Truth):
    """One embedding mixture, learned to KL(q‖q̂) ≤ ε; a fit without a maximiser fails."""

    def __init__(self, instance: EmbeddingInstance, dictionary: Dictionary) -> None:
        self.instance, self.dictionary = instance, dictionary
        self.instances, self.name = (instance,), instance.name

    def draw(self, n_samples: int, n_trials: int, generator: np.random.Generator) -> Iterator[IntArray]:
        """See `Truth`."""
        yield sample_counts(self.instance.target, n_samples, n_trials, generator)

    def loss(self, instance: Any, law: Array) -> Array:
        """See `Truth`."""
        return kl_divergence(instance.target, law)

    def bound(self, bound: type[Bound], guarantee: str, epsilon: float, delta: float) -> float | None:
        """See `Truth`; bounds of a known support speak of unconstrained tuning with W in place of W E_Sᵀ.

        E1 and E2 speak of both through the ball of `nearby_laws`.
        """
        free = {"embedding-oracle": self.instance.support_scores, "embedding-dense": self.instance.weights}
        if bound in (E1, E2) and guarantee in free:
            rank, spread, radius = nearby_laws(free[guarantee], self.instance.target, epsilon)
            return bound.n_samples(rank, rank, spread, radius, epsilon, delta) if rank else 0.0
        given: dict[str, Any] = {"ball_active": False}  # both are fitted without the ball
        if guarantee == "embedding-dense":
            given |= {
                "support_scores": self.instance.weights,
                "degrees_of_freedom": self.instance.dense_degrees_of_freedom,
            }
        speaks = "embedding-oracle" if guarantee == "embedding-dense" else guarantee
        if speaks not in bound.speaks_of:
            return None
        return bound.at(self.instance, epsilon=epsilon, delta=delta, **given)

    def facts(self, epsilon: float) -> dict[str, float | bool | str]:
        """See `Truth`; ``log_ratio`` is the class's 2·G_s·B, which grows with s."""
        return {
            "degrees_of_freedom": self.instance.degrees_of_freedom,
            "dense_degrees_of_freedom": self.instance.dense_degrees_of_freedom,
            "log_ratio": self.instance.log_ratio,
        }


class Embedding(Problem):
    """Embedding mixtures of dimension d."""

    name = "embedding"
    words = (
        "embedding mixtures of dimension d: q = softmax(W E'alpha + b) with s real weights, random embeddings E and "
        "head W; estimators through the head"
    )
    main = "dim"
    selected_by: ClassVar[tuple[str, ...]] = ("dim",)
    axes: ClassVar[dict[str, Value]] = {
        "s": 4, "tokens": 128, "outcomes": 64, "epsilon": 1e-3, "delta": 0.05, "dim": 16,
    }  # fmt: skip
    options: ClassVar[dict[str, Any]] = {"radius": 2.0}
    estimators = EMBEDDING_ESTIMATORS
    default_estimators: ClassVar[tuple[str, ...]] = ("embedding-oracle", "embedding-tuning", "smoothed-empirical")
    default_bounds: ClassVar[tuple[str, ...]] = ("E1", "E2", "E4", "E3")
    kept_truths = 32

    def __init__(self, seed: int, options: Mapping[str, Any], given: Dictionary | None = None) -> None:
        super().__init__(seed, options, given)
        positive(self.chosen["radius"], "radius")
        self._laws = Kept(self._make, lambda rows: rows, self.kept_truths)

    def rows(self, point: Point) -> Dictionary:
        """See `Problem`: the next-token laws softmax(W e_v + b) of the old tokens."""
        return self._laws(point["tokens"], point["outcomes"], point["dim"])

    def _make(self, n_tokens: int, n_outcomes: int, dim: int) -> Dictionary:
        head = self._plant(n_tokens, n_outcomes, dim, 1, 0)
        return laws_of_tokens(head.embeddings, head.weights, head.bias, f"made: random head, seed {self.seed}")

    def _plant(self, n_tokens: int, n_outcomes: int, dim: int, s: int, index: int) -> EmbeddingInstance:
        radius = float(self.chosen["radius"])
        return plant_embedding(n_tokens, n_outcomes, dim, s, radius=radius, seed=self.seed, truth=index)

    def _truth(self, point: Point, index: int) -> Truth:
        planted = self._plant(point["tokens"], point["outcomes"], point["dim"], point["s"], index)
        shape = [axis for axis in ("tokens", "outcomes") if point[axis] != self.axes[axis]]
        name = planted.name + "".join(f"/{axis}={as_text(point[axis])}" for axis in shape)
        return EmbeddingTruth(replace(planted, name=name), self.rows(point))


def nearby_laws(scores: Array, law: Array, epsilon: float) -> tuple[int, float, float]:
    """A ball that holds every law ``∝ q_j·exp(x_j·θ)`` within ``KL(q‖·) ≤ ε``: its dimension, spread and radius.

    With φ the statistic of mean 0 and covariance 1 under q that spans the scores x, ω its diameter and v = θ in its
    coordinates, ``KL(q‖q_v) = log E_q e^{v·φ} ≥ (e^{−ω|v|} − 1 + ω|v|)/ω² ≥ |v|²/(2 + ω|v|)``, so that KL ≤ ε keeps
    |v| below ``D = [ωε + √(ω²ε² + 8ε)]/2``. Those laws are the mixtures of r tokens with scores φ and weights v in
    the ball of radius D, the truth v = 0: the class of E1 and E2. Without a ball, too, a fit farther than ε forces one
    of them to be exactly as far and no less likely than q, since log-likelihoods are concave in v.

    Parameters
    ----------
    scores : ndarray, shape (J, s)
    law : ndarray, shape (J,)
        q, positive.
    epsilon : float
        Nats.

    Returns
    -------
    rank, spread, radius : int, float, float
        r, ω and D.

    Examples
    --------
    >>> rank, spread, radius = nearby_laws(np.array([[1.0], [-1.0]]), np.array([0.5, 0.5]), 0.02)
    >>> rank, round(spread, 9), round(radius, 6)
    (1, 2.0, 0.220998)
    """
    statistics = whitened(scores, law)
    linear = statistics.diameter * epsilon * ROOM
    radius = (linear + math.sqrt(linear * linear + 8 * epsilon * ROOM)) / 2
    return statistics.phi.shape[1], statistics.diameter, radius
