"""Instances whose failure probability, and with it N*, is exactly known: what the search for N* is tried on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from markov_theory.bounds import BOUNDS
from markov_theory.verify.cases import Case, MixtureCase, PackedCase, RowsCase
from markov_theory.verify.exact import first_and_last
from markov_theory.verify.tables import Bracket
from markov_theory.verify.two_outcomes import last_possible, row_window


class FirstRow(RowsCase):
    """Naming the row where the first one is the truth, as a sweep does truth by truth; two outcomes."""

    def failures(self, n_samples: np.ndarray) -> Bracket:
        return Bracket.exact(self.by_truth(n_samples)[:, 0])

    def last_possible(self) -> float:
        return last_possible(row_window(self.rows[:, 0], 0), self.delta)


class Plateau(Case):
    """A planted curve: failure 1.02·δ for N < `end`, δ/2 from there. No estimator's; the hardest for any design."""

    def __init__(self, end: int, delta: float) -> None:
        self.end, self.given = end, {"delta": delta}

    def failures(self, n_samples: np.ndarray) -> Bracket:
        return Bracket.exact(np.where(n_samples < self.end, 1.02, 0.5) * self.delta)

    def last_possible(self) -> float:
        return float(self.end)

    def describe(self) -> dict[str, float]:
        return {"end": self.end, **self.given}


@dataclass(frozen=True, eq=False)
class Known:
    """An instance whose failure probability, and so N*, is exactly known.

    Attributes
    ----------
    name : str
    case : Case
    clears : str
        Label of the bound from which failure is at most δ, where no Chernoff bound of the case's own says it.
    """

    name: str
    case: Case
    clears: str = ""

    @property
    def delta(self) -> float:
        """Admissible probability of failure."""
        return self.case.delta

    @cached_property
    def _known(self) -> dict[int, float]:
        return {}

    def failure(self, n_samples: int) -> float:
        """Exact failure probability at N."""
        if n_samples not in self._known:
            self._known[n_samples] = float(np.ravel(self.case.failures(np.array([n_samples])).low)[0])
        return self._known[n_samples]

    def fails(self, n_samples: int) -> bool:
        """Whether failure exceeds δ at N."""
        return self.failure(n_samples) > self.case.admissible()

    @cached_property
    def n_star(self) -> tuple[float, float]:
        """N*_first and N*_last, by a scan of every N up to one from which failure is at most δ for certain."""
        end = self.case.bound(BOUNDS[self.clears]) if self.clears else self.case.last_possible()
        N = np.arange(int(end) + 1)
        failures = self.case.failures(N).low if self.case.fast else [self.failure(int(n)) for n in N]
        return first_and_last(failures, self.delta)

    def last_tried(self, tried: Iterable[int]) -> float:
        """The least N tried from which every N tried fails with probability at most δ."""
        points = sorted(tried)
        bad = max((n for n in points if self.fails(n)), default=-1)
        return next((float(n) for n in points if n > bad), math.inf)


THREE = np.array([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.5, 0.2]])
LINE = np.array([[0.85, 0.14, 0.01], [0.05, 0.15, 0.8]])
ENDS = np.array([[0.0, 1.0], [1.0, 0.0]])
INSTANCES = [
    Known("two near rows", RowsCase(np.array([[0.55, 0.45], [0.45, 0.55]]), 0.05)),
    Known("sixteen packed rows", PackedCase(16, 4.0, 0.05), "O3"),
    Known("three rows, three outcomes", RowsCase(THREE, 0.05, most=2_000_000), "O3"),
    Known("two rows, rare outcome", RowsCase(np.array([[0.94025802, 0.05974198], [0.98820274, 0.01179726]]), 0.2)),
    Known("rarer outcome, first row", FirstRow(np.array([[0.01, 0.99], [0.00417, 0.99583]]), 0.3)),
    Known("two rows mixed evenly", MixtureCase(np.array([[0.2, 0.8], [0.8, 0.2]]), np.full(2, 0.5), 2, 1e-3, 0.05)),
    Known("mixed, three outcomes", MixtureCase(LINE, np.array([0.97, 0.03]), 2, 0.01, 0.05, most=2_000_000), "S6^1"),
    Known("mixed, rare outcome", MixtureCase(ENDS, np.array([0.99, 0.01]), 2, 1e-3, 0.2)),
    Known("planted plateau", Plateau(1000, 0.05)),
]  # fmt: skip
