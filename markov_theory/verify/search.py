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
        generator = named_generator(seed, "search", bound.label, family.name)
        trial = _climb_family(bound, family, effort, generator, found)
        if trial is not None:
            found.tightest = trial
            return found
    decisive = [measured(trial, bound) for trial in found.best.values() if math.isfinite(trial.score)]
    decisive = [trial for trial in decisive if math.isfinite(trial.score)]
    found.tightest = max(decisive, key=lambda trial: trial.score, default=None)
    return found


def maximise(
    value: Callable[[Array], float], dimension: int, effort: Effort, generator: np.random.Generator,
    starts: tuple[tuple[float, ...], ...] = (), until: float = math.inf, cost: float = 1.0,
) -> tuple[float, Array]:  # fmt: skip
    """Climb a function of the unit cube from given and random starts; stop once it exceeds `until`.

    Steps are Gaussian on a random half of the coordinates, of a size that shrinks while they fail and grows while
    they succeed, so that plateaus and jumps do not matter.

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

    Returns
    -------
    (float, ndarray)
        The largest value seen, and where.
    """
    n_random = max(4, round(effort.trials / cost))
    fixed = np.array(starts).reshape(-1, dimension)
    most = max(12, round(2 * effort.trials / cost))
    if fixed.shape[0] > most:
        fixed = fixed[np.sort(generator.choice(fixed.shape[0], most, replace=False))]
    points = np.vstack([fixed, generator.random((n_random, dimension))])
    values = []
    for x in points:
        values.append(value(x))
        if values[-1] > until:
            return values[-1], x
    order = np.argsort(values)[::-1][: max(1, round(effort.climbs / math.sqrt(cost)))]
    best, where = values[order[0]], points[order[0]]
    for start in order:
        top, x = _ascent(
            value, points[start], values[start], max(6, round(effort.steps / math.sqrt(cost))), generator, until
        )
        if top > best:
            best, where = top, x
        if best > until:
            break
    return best, where


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
        found.tried[family.name] = found.tried.get(family.name, 0) + (trial.bound > 0)
        if not seen or trial.refuted_at is not None or _more_telling(trial, seen[-1]):
            seen.append(trial)
        return math.inf if trial.refuted_at is not None else trial.score

    maximise(value, family.dimension, effort, generator, family.starts, 1e300, family.cost)
    if not seen:
        return None
    found.best[family.name] = seen[-1]
    return seen[-1] if seen[-1].refuted_at is not None else None


def _more_telling(trial: Trial, best: Trial) -> bool:
    """Whether a trial is tighter, or as tight at a larger N, where rounding to whole samples matters less."""
    if abs(trial.score - best.score) < 1e-3:
        return trial.bound > best.bound
    return trial.score > best.score
