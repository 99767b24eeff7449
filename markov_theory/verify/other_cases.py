"""Small instances of the other events: supports found, excess risk of a truth outside the class, exposure of tokens."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlogy
from scipy.stats import poisson

from markov_theory._checks import Array, IntArray
from markov_theory.dictionary import Dictionary
from markov_theory.instance import Instance
from markov_theory.verify.cases import Case, RowsCase, table_reach
from markov_theory.verify.exact_support import support_failure
from markov_theory.verify.tables import Bracket
from markov_theory.verify.two_outcomes import (
    Window,
    binary_divergence,
    even_odds,
    interval_window,
    last_possible,
    window_failure,
)


class SupportCase(Case):
    """Naming the rows mixed: exact ℓ0 maximum likelihood with s ≤ 2 gives weight to every row of the truth.

    Parameters
    ----------
    rows : ndarray, shape (T, J)
    alpha : ndarray, shape (T,)
        At most s rows.
    sparsity : int
        s, 1 or 2.
    delta : float
    most : int
        Tables of counts to list at most.
    """

    fast = False

    def __init__(self, rows: Array, alpha: Array, sparsity: int, delta: float, most: int) -> None:
        self.rows, self.alpha, self.sparsity = rows, alpha, sparsity
        self.instance = Instance(Dictionary(rows), alpha)
        self.given = {"delta": delta, "sparsity": sparsity}
        self.reach = table_reach(self.instance.target[None, :], most)

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        found = [support_failure(self.rows, self.alpha, self.sparsity, int(n)) for n in n_samples]
        return Bracket(np.array([float(b.low) for b in found]), np.array([float(b.high) for b in found]))

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {"rows": self.rows.tolist(), "alpha": self.alpha.tolist(), **self.given}


class SupportPairCase(Case):
    """Telling the truth from a mixture of another pair of rows: for the hardest of a few such mixtures.

    On each other pair the mixtures nearest in KL, either way, and in Hellinger distance are tried.

    Parameters
    ----------
    rows : ndarray, shape (T, J)
    alpha : ndarray, shape (T,)
        Two rows mixed.
    delta : float
    most : int
        Tables of counts to list at most.
    """

    fast = False

    def __init__(self, rows: Array, alpha: Array, delta: float, most: int) -> None:
        self.rows, self.alpha = rows, alpha
        self.instance = Instance(Dictionary(rows), alpha)
        self.given = {"delta": delta, "sparsity": 2}
        truth, support = self.instance.target, set(self.instance.support.tolist())
        pairs = [(v, w) for v in range(len(rows)) for w in range(v) if {v, w} != support]
        rivals = [law for pair in pairs for law in _nearest_mixtures(truth, rows[list(pair)])]
        self.pairs = [RowsCase(np.array([truth, law]), delta, most) for law in rivals]
        self.reach = min(pair.reach for pair in self.pairs)

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        found = [pair.failures(n_samples) for pair in self.pairs]
        return Bracket(np.max([b.low for b in found], axis=0), np.max([b.high for b in found], axis=0))

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {"rows": self.rows.tolist(), "alpha": self.alpha.tolist(), **self.given}


class MisspecifiedCase(Case):
    """Two outcomes, any truth: excess of KL(q‖q̂) over that of the nearest law, for s = 1 or all mixtures.

    Parameters
    ----------
    first : ndarray, shape (T,)
        Probability of the first outcome in each row.
    truth : float
        The same under q.
    single : bool
        Whether the class is the rows (s = 1), or all their mixtures (s = T).
    epsilon, delta : float
    """

    def __init__(self, first: Array, truth: float, single: bool, epsilon: float, delta: float) -> None:
        rows = Dictionary(np.column_stack([first, 1 - first]))
        self.instance = SimpleNamespace(
            n_tokens=first.size, density_ratio=rows.density_ratio, transitions=rows.transitions,
            target=np.array([truth, 1 - truth]),
        )  # fmt: skip
        self.given = {"epsilon": epsilon, "delta": delta, "sparsity": 1 if single else first.size}
        self.window = self._single(first, truth, epsilon) if single else self._hull(first, truth, epsilon)
        self._described = {"first": first.tolist(), "truth": truth, **self.given}

    @staticmethod
    def _hull(first: Array, truth: float, epsilon: float) -> Window:
        nearest = np.clip(truth, first.min(), first.max())
        allowed = epsilon + float(binary_divergence(truth, np.array(nearest)))
        return interval_window(float(first.min()), float(first.max()), truth, allowed)

    @staticmethod
    def _single(first: Array, truth: float, epsilon: float) -> Window:
        ordered = np.unique(first)
        risk = binary_divergence(truth, ordered)
        good = np.flatnonzero(risk <= risk.min() + epsilon)
        low = high = -1.0
        if good[0] > 0:
            low = even_odds(float(ordered[good[0]]), float(ordered[good[0] - 1]))
        if good[-1] < ordered.size - 1:
            high = even_odds(float(1 - ordered[good[-1]]), float(1 - ordered[good[-1] + 1]))
        return Window(truth, low, high, ties_fail=True)

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`; without a sample some maximiser fails unless none can."""
        never = self.window.first < 0 and self.window.second < 0
        value = window_failure(self.window, np.maximum(n_samples, 1))
        return Bracket.exact(np.where(n_samples == 0, 0.0 if never else 1.0, value))

    def last_possible(self) -> float:
        """See `Case`."""
        return last_possible(self.window, self.delta)

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return self._described


class ExposureCase(Case):
    """Seeing each of m tokens N_u times in n chances: exact, by convolution of Poisson counts of a given total.

    Parameters
    ----------
    rates : ndarray, shape (m,)
        π_u, of total at most 1.
    samples_per_token : int
        N_u.
    delta : float
    """

    fast = False
    reach = 20_000.0

    def __init__(self, rates: Array, samples_per_token: int, delta: float) -> None:
        self.rates, self.needed = rates, samples_per_token
        self.instance = SimpleNamespace(rates=rates, samples_per_token=samples_per_token)
        self.given = {"delta": delta}

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        return Bracket.exact([min(1.0, max(0.0, 1 - self._all_seen(int(n)))) for n in n_samples])

    def _all_seen(self, n: int) -> float:
        if n < self.needed * self.rates.size:
            return 0.0
        counts = np.arange(n + 1)
        rest = max(0.0, 1 - float(self.rates.sum()))
        total = np.exp(xlogy(counts, n * rest) - n * rest - gammaln(counts + 1.0))
        for rate in self.rates:
            power = np.exp(xlogy(counts, n * rate) - n * rate - gammaln(counts + 1.0))
            power[: self.needed] = 0.0
            total = np.convolve(total, power)[: n + 1]
        return float(total[n] / poisson.pmf(n, n))

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {"rates": self.rates.tolist(), "samples per token": self.needed, **self.given}


def _nearest_mixtures(truth: Array, pair: Array) -> list[Array]:
    """Mixtures of two rows nearest to a law: by KL from it, KL to it, and affinity."""

    def law(weight: float) -> Array:
        return np.asarray((1 - weight) * pair[0] + weight * pair[1])

    def kl(p: Array, q: Array) -> float:
        live = p > 0
        return math.inf if (q[live] <= 0).any() else float(p[live] @ np.log(p[live] / q[live]))

    distances = (
        lambda w: kl(truth, law(w)),
        lambda w: kl(law(w), truth),
        lambda w: -float(np.sqrt(truth * law(w)).sum()),
    )
    return [law(float(minimize_scalar(d, bounds=(0, 1), method="bounded").x)) for d in distances]
