"""Running checks on worker processes: what is found depends on the seed and the effort alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from markov_theory._processes import apply_all
from markov_theory.bounds import BOUNDS
from markov_theory.bounds.base import Bound
from markov_theory.verify.claims import Finding, Settings
from markov_theory.verify.mutants import mutants, nearest_surviving
from markov_theory.verify.registry import registry
from markov_theory.verify.search import search
from markov_theory.verify.verdict import FAILED

Kind = Literal["claim", "mutant", "factor"]


@dataclass(frozen=True)
class Task:
    """One check, by its name: a claim, a mutant, or how much of a bound the search does not miss."""

    kind: Kind
    name: str


@dataclass(frozen=True)
class Factor:
    """By how much a bound can be cut before the search notices.

    Attributes
    ----------
    slack : float
        Bound over N* (upper) or N* over bound (lower) at the tightest instance found.
    survives, killed : float
        Largest factor found to survive, least found to be killed.
    """

    slack: float
    survives: float
    killed: float


def perform(task: Task, settings: Settings, own: Sequence[type[Bound]] = ()) -> Finding | Factor:
    """Make one check; an error that a check raises becomes a finding of its own.

    Parameters
    ----------
    task : Task
    settings : Settings
    own : sequence of Bound types
        A user's bounds, checked in place of the package's claims.
    """
    try:
        if task.kind == "factor":
            return _factor(next(b for b in [*own, *BOUNDS.values()] if b.label == task.name), settings)
        checks: list[Any] = registry(own) if task.kind == "claim" else mutants()
        return next(c for c in checks if (c.label if task.kind == "claim" else c.name) == task.name).check(settings)
    except Exception as error:  # whatever somebody's bound raises is said in one line
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return Finding(FAILED, reason, "", math.nan, math.nan, math.nan)


def perform_all(
    tasks: Sequence[Task],
    settings: Settings,
    own: Sequence[type[Bound]] = (),
    n_jobs: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[Finding | Factor]:
    """Make checks on `n_jobs` processes (in this one if it is 1); results in the order of the tasks."""
    return apply_all(partial(perform, settings=settings, own=tuple(own)), tasks, n_jobs, on_progress)


def _factor(bound: type[Bound], settings: Settings) -> Factor:
    tightest = search(bound, settings.effort, settings.seed).tightest
    if tightest is None or tightest.refuted_at is not None:
        return Factor(math.nan, math.nan, math.nan)
    return Factor(math.exp(-tightest.score), *nearest_surviving(bound, settings, tightest))
