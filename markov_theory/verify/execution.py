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
    """By how much a bound, or the constant of an inequality, can be cut before the search notices.

    Attributes
    ----------
    slack : float
        Bound over N* (upper) or N* over bound (lower) at the tightest instance found, or the least factor killed if
        that is less; the slack of the true one is at most this. Below 1: the bound is refuted.
    survives, killed : float
        Largest factor found to survive, least found to be killed; below 1 for a bound that is refuted itself. NaN
        where an inequality's own slack is all that is known.
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
            bound = next((b for b in [*own, *BOUNDS.values()] if b.label == task.name), None)
            return _factor_of_claim(task.name, settings) if bound is None else _factor(bound, settings)
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
    if tightest is None:
        return Factor(math.nan, math.nan, math.nan)
    survives, killed = nearest_surviving(bound, settings, tightest)
    slack = killed if tightest.refuted_at is not None else min(math.exp(-tightest.score), killed)
    return Factor(slack, survives, killed)


def _factor_of_claim(label: str, settings: Settings) -> Factor:
    """The slack of a claim that is an inequality: cut by more than that, its constant is refuted."""
    finding = next(claim for claim in registry() if claim.label == label).check(settings)
    return Factor(finding.slack, math.nan, finding.slack)
