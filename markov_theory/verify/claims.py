"""What is claimed: every statement of the theory as a small object that can be checked, and what a check finds.

A claim is a label, a sentence, who stated it, and a function from `Settings` to a `Finding`. Every registered bound
is a claim of itself; `statements`, `predictions` and `statistical` add theirs, and `registry` lists them all. To add
one, write such a function and append the claim to one of their lists, or name a `Bound` on the command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from markov_theory.bounds.base import Bound
from markov_theory.verify.oracles import families_for, target_of
from markov_theory.verify.search import QUICK, Effort, Found, search
from markov_theory.verify.tightness import Trial, exactly_first, exactly_last, roughly_first, roughly_last
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED

LEVEL = 0.05  # error probability of all statistical verdicts of a report together


@dataclass(frozen=True)
class Settings:
    """How a report is made: the effort of its searches and the seed of everything random."""

    effort: Effort = QUICK
    seed: int = 0


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Attributes
    ----------
    verdict : str
        ``"holds"``, ``"violated"`` or ``"inconclusive"``.
    tested : str
        Instances, in words.
    number : str
        What the decisive number is.
    value, low, high : float
        The decisive number, and an interval that contains it: exact up to rounding, or of confidence.
    limit : float
        What the claim compares it with.
    relation : str
        What the claim says of value and limit: ``"<="``, ``">"`` or ``">="``.
    slack : float
        Bound over N* for an upper bound, N* over bound for a lower one, at the tightest instance found, so that the
        least slack is at most this; NaN if it has none.
    method : str
        ``"exact"`` or ``"statistical"``.
    instance : dict
        The decisive instance.
    p_value : float or None
        Of "the claim is true", for a statistical check; its verdict waits for the correction over the report.
    """

    verdict: str
    tested: str
    number: str
    value: float
    low: float
    high: float
    limit: float = math.nan
    relation: str = "<="
    slack: float = math.nan
    method: str = "exact"
    instance: dict[str, Any] = field(default_factory=dict)
    p_value: float | None = None


@dataclass(frozen=True)
class Claim:
    """A statement that can be checked.

    Attributes
    ----------
    label : str
        As in the theory; what ``--claims`` is matched with.
    statement : str
        One sentence, in symbols and units.
    origin : str
        ``"paper"`` or ``"derived"``.
    check : callable
        `Settings` to `Finding`.
    """

    label: str
    statement: str
    origin: str
    check: Callable[[Settings], Finding]


def claim_of(bound: type[Bound]) -> Claim:
    """The claim that a bound makes of itself, checked by the search for a counterexample.

    Parameters
    ----------
    bound : type of Bound

    Returns
    -------
    Claim
    """
    return Claim(bound.label, bound.statement, bound.origin, lambda settings: check_bound(bound, settings))


def check_bound(bound: type[Bound], settings: Settings) -> Finding:
    """Search for a counterexample; ``holds`` if there is none and the bound was decisive somewhere."""
    if not families_for(bound, settings.effort.full):
        return Finding(INCONCLUSIVE, "no exact oracle", "", math.nan, math.nan, math.nan)
    found = search(bound, settings.effort, settings.seed)
    trial = found.tightest
    if trial is None:
        return Finding(INCONCLUSIVE, "nothing decisive within reach", "", math.nan, math.nan, math.nan)
    if trial.refuted_at is not None:
        return _refutation(bound, trial, _tested(found))
    return _survival(bound, trial, _tested(found))


def select(claims: Iterable[Claim], patterns: str | None) -> list[Claim]:
    """Claims whose label matches one of the comma-separated shell patterns; all without patterns.

    Raises
    ------
    ValueError
        If a pattern matches nothing.
    """
    available = list(claims)
    if patterns is None:
        return available
    chosen: list[Claim] = []
    for pattern in (p.strip() for p in patterns.split(",")):
        matched = [claim for claim in available if fnmatchcase(claim.label, pattern)]
        if not matched:
            raise ValueError(f"no claim matches {pattern!r}; there are {', '.join(c.label for c in available)}")
        chosen += [claim for claim in matched if claim not in chosen]
    return [claim for claim in available if claim in chosen]


def _tested(found: Found) -> str:
    total, n_families = sum(found.tried.values()), sum(n > 0 for n in found.tried.values())
    return f"{total:,} instance{'s' * (total != 1)} of {n_families} famil{'ies' if n_families != 1 else 'y'}"


def _refutation(bound: type[Bound], trial: Trial, tested: str) -> Finding:
    """Say at which N a bound is wrong."""
    at = int(trial.refuted_at or 0)
    failure = trial.case.failures(np.array([at]))
    low, high = float(failure.low[0]), float(failure.high[0])
    if bound.kind == "upper":
        number = f"P(fail) at N = {at:,}, bound {trial.bound:,.0f}"
        slack = trial.bound / max(at + 1, roughly_last(trial.case, min(trial.case.last_possible(), trial.case.reach)))
    elif target_of(bound) == "first":
        number = f"P(fail) at N = {at:,}, bound {trial.bound:,.6g}"
        slack = roughly_first(trial.case, 0.0) / trial.bound
    else:
        number = f"P(fail) from N = {at:,} on, bound {trial.bound:,.6g}"
        slack = roughly_last(trial.case, min(trial.case.last_possible(), trial.case.reach)) / trial.bound
    relation = "<=" if bound.kind == "upper" else ">"
    return Finding(
        VIOLATED, tested, number, low, low, high, trial.case.delta, relation, slack, instance=_instance(trial)
    )


def _survival(bound: type[Bound], trial: Trial, tested: str) -> Finding:
    """Failure at N = bound (upper) or just below it (lower), and the slack, at the tightest instance."""
    case, N = trial.case, trial.bound
    if bound.kind == "upper":
        at, relation = math.ceil(N), "<="
        last = exactly_last(case, N)
        slack = N / last if last > 0 else math.nan
    else:
        at, relation = math.ceil(N) - 1, ">"
        star = exactly_first(case) if target_of(bound) == "first" else exactly_last(case, case.reach)
        slack = star / N
    failure = case.failures(np.array([at]))
    low, high = float(failure.low[0]), float(failure.high[0])
    decided = high <= case.admissible() if bound.kind == "upper" else True
    verdict = HOLDS if decided else INCONCLUSIVE
    number = f"P(fail) at N = {at:,}, bound {N:,.0f}"
    return Finding(verdict, tested, number, low, low, high, case.delta, relation, slack, instance=_instance(trial))


def _instance(trial: Trial) -> dict[str, Any]:
    return {**trial.case.describe(), "bound": trial.bound}
