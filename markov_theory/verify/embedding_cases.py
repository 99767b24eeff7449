"""Small embedding mixtures with exact failure probabilities; a missing maximiser is a failure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logsumexp

from markov_theory._checks import Array, IntArray
from markov_theory.embedding_instance import EmbeddingInstance
from markov_theory.verify.cases import Case, IntervalOracle, table_reach
from markov_theory.verify.exact import divergence_from
from markov_theory.verify.tables import Bracket, Tables, likely_tables


class LogisticCase(Case):
    """Two outcomes: log-odds ``b + Σ_v α_v x_v``, so that the s-sparse ball is an interval of laws.

    Parameters
    ----------
    steps : ndarray, shape (T,)
        x: what one unit of weight on each token adds to the log-odds.
    bias : float
        b.
    radius : float
        B.
    position : float
        Of the truth, in [−1, 1]: α is this share of B on the s tokens of largest \\|x\\|, along their x.
    sparsity : int
        s.
    epsilon, delta : float
    """

    def __init__(
        self, steps: Array, bias: float, radius: float, position: float, sparsity: int, epsilon: float, delta: float
    ) -> None:
        top = np.argsort(-np.abs(steps), kind="stable")[:sparsity]
        spread = float(np.linalg.norm(steps[top]))
        alpha = np.zeros(steps.size)
        share = math.copysign(max(abs(position), 1e-6), position)
        alpha[top] = share * radius * (1 - 1e-12) * steps[top] / spread
        self.instance = EmbeddingInstance(
            steps[:, None], [[0.5], [-0.5]], [bias / 2, -bias / 2], alpha, radius, "logistic"
        )
        self.given = {"epsilon": epsilon, "delta": delta, "sparsity": sparsity}
        odds = np.array([bias - spread * radius, bias + share * spread * radius, bias + spread * radius])
        low, truth, high = expit(odds).tolist()
        self._on_interval = IntervalOracle(low, min(high, 1.0), min(max(truth, low), high), epsilon)
        self._described = {"steps": steps.tolist(), "bias": bias, "radius": radius, "position": share, **self.given}

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        return Bracket.exact(self._on_interval.failures(n_samples))

    def last_possible(self) -> float:
        """See `Case`."""
        return self._on_interval.last_possible(self.delta)

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return self._described


class CoinCase(Case):
    """Two outcomes, every law in the class: the free maximum likelihood of one log-odds.

    Parameters
    ----------
    truth : float
        Probability of the first outcome, in (0, 1).
    epsilon, delta : float
    """

    def __init__(self, truth: float, epsilon: float, delta: float) -> None:
        self.truth = truth
        odds = math.log(truth / (1 - truth))
        self.instance = EmbeddingInstance(
            [[1.0]], [[0.5], [-0.5]], [(odds - 1) / 2, (1 - odds) / 2], [1.0], 2.0, "coin"
        )
        self.given = {"epsilon": epsilon, "delta": delta}
        self._on_interval = IntervalOracle(0.0, 1.0, truth, epsilon)

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        return Bracket.exact(self._on_interval.failures(n_samples))

    def last_possible(self) -> float:
        """See `Case`."""
        return self._on_interval.last_possible(self.delta)

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {"truth": self.truth, **self.given}


class ExponentialCase(Case):
    """Three outcomes or more: a curve of laws (one token), or every law (as many tokens as it takes).

    Parameters
    ----------
    law : ndarray, shape (J,)
        The truth, positive.
    statistic : ndarray, shape (J,) or None
        What one unit of weight adds to each logit; None: every law is in the class.
    epsilon, delta : float
    most : int
        Tables of counts to list at most.
    """

    fast = False

    def __init__(self, law: Array, statistic: Array | None, epsilon: float, delta: float, most: int) -> None:
        J = law.size
        self.law, self.statistic = law, statistic
        scores = np.eye(J)[:, 1:] if statistic is None else statistic[:, None]
        k = scores.shape[1]
        alpha = np.full(k, 1.0)
        self.instance = EmbeddingInstance(np.eye(k), scores, np.log(law) - scores @ alpha, alpha, 2.0 * k, "curve")
        self.given = {"epsilon": epsilon, "delta": delta}
        self.reach = table_reach(law[None, :], most)
        if statistic is not None:
            self._means = tuple(_mean_at_distance(law, statistic, epsilon, sign) for sign in (-1.0, 1.0))

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        found = [self._failure(likely_tables(self.law, int(n))) for n in n_samples]
        return Bracket(np.array([float(b.low) for b in found]), np.array([float(b.high) for b in found]))

    def _failure(self, tables: Tables) -> Bracket:
        N = int(tables.counts[0].sum())
        if N == 0:
            return Bracket.exact(1.0)
        if self.statistic is not None:
            # The maximiser is beyond q_± if and only if the mean statistic is beyond its mean there.
            mean = tables.counts @ self.statistic / N
            return Bracket.of(tables, (mean < self._means[0]) | (mean > self._means[1]))
        distance = divergence_from(self.law, tables.counts / N)
        return Bracket.of(tables, distance > self.given["epsilon"])

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        statistic = None if self.statistic is None else self.statistic.tolist()
        return {"law": self.law.tolist(), "statistic": statistic, **self.given}


def _mean_at_distance(law: Array, statistic: Array, epsilon: float, sign: float) -> float:
    """Mean of the statistic at the law of the curve, on one side, with KL(q‖·) = ε; its limit where KL stays below."""
    centred = sign * (statistic - law @ statistic)

    def excess(log_t: float) -> float:
        return float(logsumexp(math.exp(log_t) * centred, b=law)) / epsilon - 1

    high = 0.0
    while excess(high) < 0:
        high += 1.0
    low = min(high, 0.0) - 1.0
    while excess(low) > 0:
        low -= 2.0
    t = math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    tilted = law * np.exp(t * centred - logsumexp(t * centred, b=law))
    return float(tilted @ statistic)
