"""Small instances: what a bound reads off them, and the exact failure probability of an estimator there.

A case belongs to a class of estimators and to an event (when an estimator has failed); `families` make cases, `oracles`
choose the families that a bound speaks of, `search` looks among them for a counterexample.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory.bounds import O3
from markov_theory.bounds.base import Bound
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_of
from markov_theory.instance import Instance
from markov_theory.verify.exact import ROUNDING, row_failure
from markov_theory.verify.mixtures import mixture_failure
from markov_theory.verify.packed import packed_failure
from markov_theory.verify.tables import Bracket
from markov_theory.verify.two_outcomes import (
    Divergence,
    binary_divergence,
    interval_window,
    last_possible,
    row_failures,
    row_window,
    window_failure,
)

CLOSED_FORM = 2.0**53
NEARLY = 1e-6  # relative: what rounding may take off a divergence of laws that agree to eight digits
_GRID = np.floor(np.geomspace(4, 1e6, 120))


class Case(ABC):
    """One small instance with ε and δ.

    Attributes
    ----------
    instance : object
        What `Bound.at` reads the bound's inputs from.
    given : dict
        Inputs that take precedence: ``delta``, and ``epsilon``, ``sparsity``, ``laws`` where they matter.
    fast : bool
        Whether many N cost no more than one, so that N*_first and N*_last can be scanned for.
    reach : float
        Largest N at which the failure probability can be had.
    """

    instance: Any
    given: dict[str, Any]
    fast: bool = True
    reach: float = CLOSED_FORM

    @property
    def delta(self) -> float:
        """δ."""
        return float(self.given["delta"])

    def bound(self, bound: type[Bound]) -> float:
        """N that a bound gives here; ValueError or ArithmeticError where it refuses the instance."""
        return float(bound.at(self.instance, **self.given))

    @abstractmethod
    def failures(self, n_samples: IntArray) -> Bracket:
        """Exact failure probability (of the worst truth, where the class has several) at every N ≤ `reach`."""

    def last_possible(self) -> float:
        """N from which failure is at most δ for certain, by Chernoff's inequality; ``inf`` where unknown."""
        return math.inf

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Numbers that define the case, for the report."""

    def admissible(self) -> float:
        """δ, and what rounding may add to a failure probability that equals it."""
        return self.delta * (1 + ROUNDING)


class IntervalOracle:
    """`interval_failures` of two outcomes, for case after case of N: what does not depend on N is computed once."""

    def __init__(self, low: float, high: float, truth: float, epsilon: float, divergence: Divergence = "kl") -> None:
        self.window = interval_window(low, high, truth, epsilon, divergence)
        self.without_samples = float(binary_divergence(truth, np.array([low, high]), divergence).max() > epsilon)

    def failures(self, n_samples: IntArray) -> Array:
        """Failure probability at every N ≥ 0."""
        return np.where(n_samples == 0, self.without_samples, window_failure(self.window, np.maximum(n_samples, 1)))

    def last_possible(self, delta: float) -> float:
        """N from which failure is at most δ for certain."""
        return last_possible(self.window, delta)


class RowsCase(Case):
    """Naming the row, one-to-one: the worst of T truths; two outcomes in closed form, more by enumeration.

    Parameters
    ----------
    rows : ndarray, shape (T, J)
    delta : float
    most : int
        Tables of counts to list at most, where they are listed.
    """

    def __init__(self, rows: Array, delta: float, most: int = 0) -> None:
        self.rows = rows
        self.instance = Instance(Dictionary(rows), np.eye(rows.shape[0])[0])
        self.given = {"delta": delta}
        if rows.shape[1] > 2:
            self.fast = False
            self.reach = table_reach(rows, most)

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`; guessing a row, which fails with probability 1 − 1/T, is allowed too."""
        guess = 1 - 1 / self.rows.shape[0]
        if self.rows.shape[1] == 2:
            return Bracket.exact(np.minimum(self.by_truth(n_samples).max(axis=1), guess))
        found = [[row_failure(self.rows, v, int(n)) for v in range(self.rows.shape[0])] for n in n_samples]
        low = [max(float(b.low) for b in brackets) for brackets in found]
        high = [max(float(b.high) for b in brackets) for brackets in found]
        return Bracket(np.minimum(low, guess), np.minimum(high, guess))

    def by_truth(self, n_samples: IntArray) -> Array:
        """Failure probability of each truth, shape (n, T); two outcomes only."""
        return row_failures(self.rows[:, 0], n_samples)

    def last_possible(self) -> float:
        """See `Case`; with more outcomes, O3's number."""
        if self.rows.shape[1] > 2:
            return self.bound(O3)
        first = self.rows[:, 0]
        return max(last_possible(row_window(first, v), self.delta) for v in range(first.size))

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {"rows": self.rows.tolist(), **self.given}


class PackedCase(Case):
    """T rows over T outcomes, a at the own outcome and b elsewhere, a/b = ratio: any T.

    Parameters
    ----------
    n_tokens : int
    ratio : float
    delta : float
    epsilon : float, optional
        For the criterion KL ≤ ε with ε below the margin: then it is met by the right row alone.
    reach : float
        Largest N.
    """

    fast = False

    def __init__(
        self, n_tokens: int, ratio: float, delta: float, epsilon: float | None = None, reach: float = 1000.0
    ) -> None:
        self.n_tokens, self.ratio, self.reach = n_tokens, ratio, reach
        T = n_tokens
        rows = (np.ones((T, T)) + (ratio - 1) * np.eye(T)) / (T + ratio - 1)
        self.instance = Instance(Dictionary(rows), np.eye(T)[0])
        self.given = {"delta": delta} if epsilon is None else {"delta": delta, "epsilon": epsilon, "sparsity": 1}

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        guess = 1 - 1 / self.n_tokens
        return Bracket.exact([min(packed_failure(self.n_tokens, self.ratio, int(n)), guess) for n in n_samples])

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {"packed rows": self.n_tokens, "ratio": self.ratio, **self.given}


class MixtureCase(Case):
    """A planted mixture: maximum likelihood over all mixtures of at most s of T rows, in closed form for two outcomes.

    Parameters
    ----------
    rows : ndarray, shape (T, J)
    alpha : ndarray, shape (T,)
    sparsity : int
        s of the class, not of the truth.
    epsilon, delta : float
    divergence : {"kl", "hellinger"}
    most : int
        Tables of counts to list at most, where they are listed.
    """

    def __init__(
        self,
        rows: Array,
        alpha: Array,
        sparsity: int,
        epsilon: float,
        delta: float,
        divergence: Divergence = "kl",
        most: int = 0,
    ) -> None:
        self.rows, self.alpha, self.divergence = rows, alpha, divergence
        self.instance = Instance(Dictionary(rows), alpha)
        self.given = {"epsilon": epsilon, "delta": delta, "sparsity": sparsity}
        if rows.shape[1] > 2:
            self.fast = False
            self.reach = table_reach(self.instance.target[None, :], most)

    @cached_property
    def _on_interval(self) -> IntervalOracle:
        low, high = float(self.rows[:, 0].min()), float(self.rows[:, 0].max())
        truth = float(np.clip(self.instance.target[0], low, high))
        return IntervalOracle(low, high, truth, self.given["epsilon"], self.divergence)

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        epsilon, s = self.given["epsilon"], self.given["sparsity"]
        if self.rows.shape[1] == 2:
            return Bracket.exact(self._on_interval.failures(n_samples))
        found = [mixture_failure(self.rows, self.alpha, s, int(n), epsilon, self.divergence) for n in n_samples]
        return Bracket(np.array([float(b.low) for b in found]), np.array([float(b.high) for b in found]))

    def last_possible(self) -> float:
        """See `Case`."""
        if self.rows.shape[1] > 2:
            return math.inf
        return self._on_interval.last_possible(self.delta)

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {"rows": self.rows.tolist(), "alpha": self.alpha.tolist(), **self.given}


class PackingCase(Case):
    """Laws that no answer may serve two of: the best of a few estimators, for the worst of the laws.

    The estimators: maximum likelihood over the laws, one law always (the one whose greatest KL from the laws is least,
    nearly), and, for two outcomes, maximum likelihood over the interval that the laws span.

    Parameters
    ----------
    laws : ndarray, shape (M, J)
    epsilon, delta : float
    most : int
        Tables of counts to list at most, where they are listed.
    """

    def __init__(self, laws: Array, epsilon: float, delta: float, most: int = 0) -> None:
        self.laws = laws
        self.rows = RowsCase(laws, delta, most)
        self.instance = Instance(Dictionary(laws), np.eye(laws.shape[0])[0])
        self.given = {"laws": laws, "epsilon": epsilon, "delta": delta}
        self.fast, self.reach = self.rows.fast, self.rows.reach

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        found = self.rows.failures(n_samples)
        if self._one_serves_all:
            return Bracket.exact(np.zeros(len(n_samples)))
        if self.laws.shape[1] > 2:
            return found
        by_interval = np.max([oracle.failures(n_samples) for oracle in self._on_interval], axis=0)
        return Bracket.exact(np.minimum(by_interval, found.high))

    @cached_property
    def _on_interval(self) -> list[IntervalOracle]:
        first = self.laws[:, 0].tolist()
        return [IntervalOracle(min(first), max(first), x, self.given["epsilon"]) for x in first]

    @cached_property
    def _one_serves_all(self) -> bool:
        return float(kl_of(self.laws, centre(self.laws)).max()) <= self.given["epsilon"] * (1 - NEARLY)

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {**self.given, "laws": self.laws.tolist()}


def centre(laws: Array, n_steps: int = 60) -> Array:
    """Law whose greatest KL from the given laws is nearly least (Blahut and Arimoto)."""
    weights = np.full(laws.shape[0], 1 / laws.shape[0])
    for _ in range(n_steps):
        weights = weights * np.exp(kl_of(laws, weights @ laws))
        weights /= weights.sum()
    return np.asarray(weights @ laws)


def table_reach(laws: Array, most: int) -> float:
    """Largest N, on a grid, whose likely tables are not too many for any of the laws: widths of about 14 deviations."""
    spread = np.sqrt(laws * (1 - laws))  # (T, J)
    widths = np.minimum(14 * np.sqrt(_GRID)[:, None, None] * spread + 12, _GRID[:, None, None] + 1) * (laws > 0)
    free = np.prod(np.maximum(np.sort(widths, axis=2)[:, :, :-1], 1.0), axis=2).max(axis=1)
    return float(np.max(_GRID, where=free <= most, initial=1.0))
