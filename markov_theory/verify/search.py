"""The search for a counterexample: small instances of a bound's families, from structured and random starts upward.

Only the bound's own number and the exact oracle enter. How tight a bound is at an instance is N*/N (upper) or N/N*
(lower), at most 1 where it holds; the search climbs it, and stops at the first N that refutes the bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from markov_theory._checks import Array
from markov_theory.bounds.base import Bound
from markov_theory.randomness import named_generator
from markov_theory.verify.cases import Case
from markov_theory.verify.families import Family
from markov_theory.verify.oracles import families_for
from markov_theory.verify.tightness import Trial, measured, try_bound


@dataclass(frozen=True)
class Effort:
    """How much a search may spend.

    Attributes
    ----------
    trials : int
        Random starts a family, for cases in closed form; others get fewer, by their cost.
    climbs : int
        Best starts that are improved.
    steps : int
        Trials of each climb.
    tables : int
        Tables of counts a failure probability may take.
    full : bool
        Whether the larger families take part.
    """

    trials: int
    climbs: int
    steps: int
    tables: int
    full: bool


QUICK = Effort(trials=48, climbs=2, steps=32, tables=20_000, full=False)
LEAST_STARTS, LEAST_STEPS = 8, 10  # however dear an evaluation is
FEW_BEST = 6  # points moved to a corner
MEASURED = 4  # of the tightest trials, where the search climbs an estimate
FULL = Effort(trials=1500, climbs=6, steps=300, tables=400_000, full=True)


@dataclass
class Found:
    """What a search saw.

    Attributes
    ----------
    tightest : Trial or None
        The counterexample if there is one; None if the bound was never decisive.
    tried : dict of str to int
        Decisive instances of each family.
    best : dict of str to Trial
        The tightest of each family.
    """

    tightest: Trial | None = None
    tried: dict[str, int] = field(default_factory=dict)
    best: dict[str, Trial] = field(default_factory=dict)

    @property
    def refuted(self) -> bool:
        """Whether a counterexample was found."""
        return self.tightest is not None and self.tightest.refuted_at is not None


def search(bound: type[Bound], effort: Effort, seed: int = 0, first: Iterable[Case] = ()) -> Found:
    """Look for an instance that refutes a bound; stop at the first.

    Parameters
    ----------
    bound : type of Bound
        Only its declared classes, event, kind and number are used.
    effort : Effort
    seed : int
    first : iterable of Case
        Cases to try before the families, say where a similar bound was tightest.

    Returns
    -------
    Found
    """
    found = Found()
    for case in first:
        known = try_bound(bound, case)
        if known is not None and known.refuted_at is not None:
            found.tightest = known
            return found
    for family in sorted(families_for(bound, effort.full), key=lambda f: f.cost):
        generator = named_generator(seed, "search", family.event, family.name)  # the same instances for every bound
        trial = _climb_family(bound, family, effort, generator, found)
        if trial is not None:
            found.tightest = trial
            return found
    found.tightest = max(found.best.values(), key=lambda trial: trial.score, default=None)
    return found


def maximise(
    value: Callable[[Array], float], dimension: int, effort: Effort, generator: np.random.Generator,
    starts: tuple[tuple[float, ...], ...] = (), until: float = math.inf, cost: float = 1.0,
    corners: tuple[tuple[int, float], ...] = (),
) -> tuple[float, Array]:  # fmt: skip
    """Climb a function of the unit cube from given and random starts; stop once it exceeds `until`.

    Steps are Gaussian on a random half of the coordinates, of a size that shrinks while they fail and grows while
    they succeed, so that plateaus and jumps do not matter. A second climb begins where the best points are once a
    coordinate, or all of them, is moved to its corner.

    Parameters
    ----------
    value : callable
        −∞ where there is nothing.
    dimension : int
    effort : Effort
    generator : numpy.random.Generator
    starts : tuple of points
    until : float
    cost : float
        Of one evaluation: the effort is divided by it.
    corners : tuple of (int, float)
        Coordinates and the values that are extreme for them.

    Returns
    -------
    (float, ndarray)
        The largest value seen, and where.
    """
    n_random = max(LEAST_STARTS, round(effort.trials / cost))
    fixed = np.array(starts).reshape(-1, dimension)
    most = max(12, round(2.5 * effort.trials / cost))
    if fixed.shape[0] > most:
        fixed = fixed[np.sort(generator.choice(fixed.shape[0], most, replace=False))]
    climb = _Climb(value, until, max(LEAST_STEPS, round(effort.steps / math.sqrt(cost))), generator)
    for x in np.vstack([fixed, generator.random((n_random, dimension))]):
        if climb.visit(x):
            return climb.best()
    order = np.argsort(climb.values, kind="stable")[::-1]
    points = [climb.points[i] for i in order[:FEW_BEST]]
    for i in order[: max(1, round(effort.climbs / math.sqrt(cost)))]:
        if climb.ascend(climb.points[i], climb.values[i]):
            return climb.best()
    for chosen in _corner_sets(corners):
        known = len(climb.values)
        for x in points:
            if climb.visit_corner(x, chosen):
                return climb.best()
        top = known + int(np.argmax(climb.values[known:]))
        if climb.ascend(climb.points[top], climb.values[top]):
            return climb.best()
    return climb.best()


def _corner_sets(corners: tuple[tuple[int, float], ...]) -> list[tuple[tuple[int, float], ...]]:
    """Each coordinate's corner, and that of all of them."""
    return [*((one,) for one in corners), *([corners] if len(corners) > 1 else [])]


@dataclass
class _Climb:
    """Points visited with their values; every method says whether the search may stop."""

    value: Callable[[Array], float]
    until: float
    n_steps: int
    generator: np.random.Generator
    points: list[Array] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def visit(self, x: Array) -> bool:
        self.points.append(x)
        self.values.append(self.value(x))
        return self.values[-1] > self.until

    def visit_corner(self, x: Array, corners: tuple[tuple[int, float], ...]) -> bool:
        """Visit a point moved to a corner or, where there is nothing, part of the way."""
        for share in (1.0, 0.7, 0.4):
            moved = x.copy()
            for place, extreme in corners:
                moved[place] += share * (extreme - moved[place])
            if self.visit(moved):
                return True
            if not math.isinf(self.values[-1]):
                return False
        return False

    def ascend(self, x: Array, now: float) -> bool:
        now, x = _ascent(self.value, x, now, self.n_steps, self.generator, self.until)
        self.points.append(x)
        self.values.append(now)
        return now > self.until

    def best(self) -> tuple[float, Array]:
        top = int(np.argmax(self.values))
        return self.values[top], self.points[top]


def _ascent(
    value: Callable[[Array], float], x: Array, now: float, n_steps: int, generator: np.random.Generator, until: float
) -> tuple[float, Array]:
    size = 0.15
    for _ in range(n_steps):
        if math.isinf(now) or now > until:
            break
        moved = generator.random(x.size) < 0.5
        moved[generator.integers(x.size)] = True
        step = np.clip(x + size * moved * generator.standard_normal(x.size), 0.0, 1.0)
        new = value(step)
        if new >= now:
            x, now, size = step, new, min(size * 1.5, 0.3)
        else:
            size = max(size * 0.85, 1e-3)
    return now, x


def _climb_family(
    bound: type[Bound], family: Family, effort: Effort, generator: np.random.Generator, found: Found
) -> Trial | None:
    """Look through one family; return a counterexample or None, noting the tightest instance."""
    seen: list[Trial] = []

    def value(x: Array) -> float:
        try:
            trial = try_bound(bound, family.build(x, effort.tables))
        except (ValueError, ArithmeticError):  # no instance there, or one that the bound refuses
            return -math.inf
        if trial is None:
            return -math.inf
        if trial.refuted_at is None and math.isinf(trial.score):  # true without a sample: nothing is decided there
            return -math.inf
        found.tried[family.name] = found.tried.get(family.name, 0) + 1
        if not seen or trial.refuted_at is not None or _more_telling(trial, seen[-1]):
            seen.append(trial)
        return math.inf if trial.refuted_at is not None else trial.score

    maximise(value, family.dimension, effort, generator, family.starts, 1e300, family.cost, family.corners)
    if seen and seen[-1].refuted_at is not None:
        found.best[family.name] = seen[-1]
        return seen[-1]
    known = [measured(trial, bound) for trial in seen[-MEASURED:]]
    known = [trial for trial in known if math.isfinite(trial.score)]
    if known:
        found.best[family.name] = max(known, key=lambda trial: trial.score)
    return None


def _more_telling(trial: Trial, best: Trial) -> bool:
    """Whether a trial is tighter, or as tight at a larger N, where rounding to whole samples matters less."""
    if abs(trial.score - best.score) < 1e-3:
        return trial.bound > best.bound
    return trial.score > best.score
