"""Instances with a known or measurable truth, against which `figures/theory.py` sets every registered bound."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.special import softmax
from scipy.stats import binom, poisson

from markov_theory import BOUNDS, Dictionary, Instance, kl_divergence, named_generator, sample_counts
from markov_theory.bounds import greedy_packing
from markov_theory.divergences import density_ratio
from markov_theory.embedding_instance import plant_embedding
from markov_theory.solvers.simplex_mle import simplex_mle
from markov_theory.solvers.softmax_head import softmax_mixture_mle
from markov_theory.sweep.sample_complexity import BATCH, Design, Located, locate
from markov_theory.verify.exact import interval_failures, one_to_one_failure, packed_failure, row_failures
from markov_theory.verify.exact_support import support_failure
from markov_theory.verify.mixtures import mixture_failure

DELTA, CHUNK = 0.05, 16
TRIALS, SEARCHES, LEVEL = 8192, 9, 0.05
SIGNS = softmax(named_generator(0, "signs").choice([-1.0, 1.0], size=(32, 64)), axis=1)
COIN_A, COIN_B = np.array([[0.55, 0.45], [0.45, 0.55]]), np.array([[0.9, 0.1], [1.0, 0.0]])
OPPOSED = np.array([[0.2, 0.8], [0.8, 0.2]])
THREE = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
NAMED = np.array([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45], [0.3, 0.1, 0.6]])
MARGIN = 1.5  # N*_last is looked for up to this multiple of the least upper bound


@dataclass(frozen=True)
class Cell:
    """One instance: what bounds read off it, and its truth.

    `failures` gives exact failure probabilities for an array of N; without it, `trial` says which of many tables of
    counts, drawn from `target`, are failures.
    """

    family: str
    instance: str
    known: Any
    classes: tuple[str, ...] = ()
    event: str = "kl"
    epsilon: float = math.nan
    delta: float = DELTA
    failures: Callable[[np.ndarray], np.ndarray] | None = None
    target: np.ndarray | None = None
    trial: Callable[[np.ndarray], np.ndarray] | None = None
    given: dict[str, Any] = field(default_factory=dict)

    def speaks(self, label: str) -> bool:
        """Whether a bound is about this event and estimator."""
        speaks_of = {*BOUNDS[label].speaks_of}
        return BOUNDS[label].event == self.event and bool(not speaks_of or speaks_of & {*self.classes, "any"})

    def bounds(self) -> dict[str, float]:
        """N of every registered bound that speaks of this case and finds its inputs."""
        given = {"delta": self.delta, "epsilon": self.epsilon} | self.given
        found = {}
        for label in filter(self.speaks, BOUNDS):
            try:
                found[label] = float(BOUNDS[label].at(self.known, **given))
            except TypeError:  # an input that this instance has not
                continue
        return found

    def truth(self, bounds: dict[str, float]) -> tuple[float, float, float, str]:
        """N*_last, an interval of it, and whether it is exact (up to `MARGIN` times the least upper bound)."""
        if self.failures is None:
            located = measured(self)
            return located.n_star, located.low, located.high, "measured"
        top = math.ceil(MARGIN * min(n for label, n in bounds.items() if BOUNDS[label].kind == "upper"))
        n_star = last_failing(self.failures, top, self.delta) + 1.0
        return n_star, n_star, n_star, "exact"

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """A line a bound, in the order of `theory.COLUMNS`."""
        bounds = self.bounds()
        head = (self.family, self.instance, self.event, self.epsilon, self.delta, *self.truth(bounds))
        for label, value in bounds.items():
            yield (*head, label, BOUNDS[label].kind, value)


def last_failing(failures: Callable[[np.ndarray], np.ndarray], top: int, delta: float) -> int:
    """Largest N up to `top` with failure probability above δ; −1 if there is none."""
    for high in range(top, -1, -CHUNK):
        n = np.arange(max(0, high - CHUNK + 1), high + 1)
        bad = np.flatnonzero(failures(n) > delta)
        if bad.size:
            return int(n[bad[-1]])
    return -1


def measured(cell: Cell) -> Located:
    """N* of a cell by several independent searches: their median, and what all their intervals have in common."""
    found = [searched(cell, i) for i in range(SEARCHES)]
    middle = sorted(found, key=lambda one: one.n_star)[SEARCHES // 2]
    low, high = max(one.low for one in found), min(one.high for one in found)
    return replace(middle, n_star=min(max(middle.n_star, low + 1), high), low=low, high=high)


def searched(cell: Cell, number: int) -> Located:
    """N* of a cell by one search."""
    search = locate(Design(delta=cell.delta, max_trials=TRIALS, level=LEVEL / SEARCHES))
    outcomes = None
    while True:
        try:
            requests = search.send(outcomes)
        except StopIteration as end:
            return end.value
        outcomes = []
        for request in requests:
            key = ("theory", cell.instance, repr(cell.epsilon), number, request.n_samples)
            generators = [named_generator(0, *key, batch) for batch in request.batches]
            counts = [sample_counts(cell.target, request.n_samples, BATCH, one) for one in generators]
            fails = cell.trial(np.vstack(counts))
            outcomes.append((fails.size, int(fails.sum())))


def each(failure: Callable[[int], float]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda n_samples: np.array([failure(int(n)) for n in n_samples])


def interval(low: float, high: float, truth: float, epsilon: float, divergence: str = "kl"):
    return lambda n_samples: interval_failures(low, high, truth, n_samples, epsilon, divergence)


def peaked(n_tokens: int) -> Cell:
    rows = (np.ones((n_tokens, n_tokens)) + 3 * np.eye(n_tokens)) / (n_tokens + 3)
    failures = each(lambda n: packed_failure(n_tokens, 4.0, n))
    return Cell("naming the row", f"Peak({n_tokens})", Dictionary(rows), ("one-to-one",), "row", failures=failures)


def naming_cells() -> Iterator[Cell]:
    for name, rows in (("A", COIN_A), ("B", COIN_B)):
        first = rows[:, 0]
        yield Cell(
            "naming the row", name, Dictionary(rows), ("one-to-one",), "row", delta=0.01,
            failures=lambda n, first=first: row_failures(first, n).max(axis=1),
        )  # fmt: skip
    yield from map(peaked, (4, 8, 16, 32))
    failures = each(lambda n: float(one_to_one_failure(NAMED, n).max()))
    yield Cell("naming the row", "three rows", Dictionary(NAMED), ("one-to-one",), "row", failures=failures)


def hull_cell(name: str, rows: np.ndarray, epsilon: float, alpha: list[float] | None = None, **truth: Any) -> Cell:
    s = rows.shape[0]
    known = Instance(Dictionary(rows), alpha or np.full(s, 1 / s))
    given = {"laws": greedy_packing(rows, s, epsilon, n_candidates=64), "sparsity": s}
    return Cell("known support", name, known, ("oracle", "simplex"), epsilon=epsilon, given=given, **truth)


def sign_cell(r: int, epsilon: float) -> Cell:
    rows = SIGNS[: r + 1]
    q = rows.mean(axis=0)

    def trial(counts: np.ndarray) -> np.ndarray:
        return ~(kl_divergence(q, simplex_mle(rows, counts, 1e-12).alpha @ rows) <= epsilon)

    return hull_cell(f"signs, r = {r}", rows, epsilon, target=q, trial=trial)


def hull_cells() -> Iterator[Cell]:
    for epsilon in (1e-2, 1e-3, 1e-4):
        yield hull_cell("D", OPPOSED, epsilon, failures=interval(0.2, 0.8, 0.5, epsilon))
    for epsilon in (1e-2, 1e-3, 1e-4):
        yield hull_cell("rare outcome", np.eye(2), epsilon, [0.01, 0.99], failures=interval(0, 1, 0.01, epsilon))
    for r in (1, 3, 7, 15, 31):
        yield from (sign_cell(r, epsilon) for epsilon in (1e-2, 1e-3, 1e-4))


def support_cells(words: str, alpha: list[float], epsilon: float) -> Iterator[Cell]:
    known = Instance(Dictionary(THREE), alpha)
    finding = each(lambda n: float(support_failure(THREE, alpha, 2, n).high))
    yield Cell("finding the support", f"R, {words}", known, ("l0",), "support", failures=finding)
    learning = each(lambda n: float(mixture_failure(THREE, alpha, 2, n, epsilon).high))
    yield Cell("unknown support", f"R, {words}", known, ("l0",), epsilon=epsilon, failures=learning)


def head_cells(epsilon: float) -> Iterator[Cell]:
    classes = ("embedding-oracle", "embedding-l0")
    one = {"n_tokens": 1, "sparsity": 1, "logit_spread": 1.0, "radius": math.log(4), "degrees_of_freedom": 1}
    known = SimpleNamespace(**one, support_scores=[[0.5], [-0.5]], target=[0.5, 0.5])
    yield Cell("softmax head", "D", known, classes, epsilon=epsilon, failures=interval(0.2, 0.8, 0.5, epsilon))
    planted = plant_embedding(64, 64, 16, 4, radius=2.0)

    def trial(counts: np.ndarray) -> np.ndarray:
        head = (planted.embeddings, planted.weights, planted.bias)
        fit = softmax_mixture_mle(*head, counts, support=planted.support, radius=planted.radius)
        return ~(kl_divergence(planted.target, fit.law) <= epsilon)

    target = planted.target
    yield Cell("softmax head", "planted, s = 4", planted, classes, epsilon=epsilon, target=target, trial=trial)


def other_cells() -> Iterator[Cell]:
    yield from support_cells("equal weights", [0.5, 0.5, 0.0], 0.05)
    yield from support_cells("weights .8, .2", [0.8, 0.2, 0.0], 0.05)
    known = Instance(Dictionary(OPPOSED), [0.5, 0.5])
    for epsilon in (1e-2, 1e-3):
        failures = interval(0.2, 0.8, 0.5, epsilon, "hellinger")
        yield Cell("Hellinger distance", "D", known, ("simplex",), "hellinger", epsilon, failures=failures)
    for epsilon in (1e-2, 1e-3):
        yield from head_cells(epsilon)
    yield misspecified_cell(0.55)
    tokens = SimpleNamespace(samples_per_token=20, rates=[0.1] * 10)
    failures = each(lambda n: too_rarely_seen(n, 10, 20))
    yield Cell("exposure", "10 tokens, 20 times each", tokens, event="exposure", failures=failures)


def misspecified_cell(edge: float) -> Cell:
    """Truth (.62, .38), rows (.2, .8) and (.6, .4); ε is the excess risk of (edge, 1 − edge)."""
    q, nearest = [0.62, 0.38], [0.6, 0.4]
    known = SimpleNamespace(n_tokens=2, density_ratio=density_ratio([[0.2, 0.8], nearest]))
    epsilon = float(kl_divergence(q, [edge, 1 - edge]) - kl_divergence(q, nearest))
    failures = each(lambda n: float(binom.cdf(math.ceil(n * edge) - 1, n, q[0])) if n else 1.0)
    name = "rows (.2, .8), (.6, .4); q = (.62, .38)"
    given = {"sparsity": 2}
    return Cell("misspecified", name, known, ("simplex",), "excess", epsilon, given=given, failures=failures)


def too_rarely_seen(n: int, n_tokens: int, least: int) -> float:
    """Probability that some of m equally frequent tokens comes fewer than `least` times in n chances, exactly.

    Independent Poisson counts with the mean n/m each, all of them at least `least`, conditioned on their total.
    """
    one = np.where(np.arange(n + 1) >= least, poisson.pmf(np.arange(n + 1), n / n_tokens), 0.0)
    total = np.ones(1)
    for _ in range(n_tokens):
        total = np.convolve(total, one)[: n + 1]
    return float(1 - total[n] / poisson.pmf(n, n))
