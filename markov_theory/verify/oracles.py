"""Which exact oracle speaks of a bound: families chosen by its estimators, the event that it bounds, and its inputs."""

from __future__ import annotations

import inspect
from typing import Literal

import numpy as np

from markov_theory.bounds.base import Bound
from markov_theory.verify.families import Family, families

Target = Literal["last", "first"]
EVENTS = {"S2H": "hellinger", "M1": "excess", "M2": "excess", "X1": "exposure"}  # where ``event`` does not say it


def event_of(bound: type[Bound]) -> str:
    """What counts as failure in a bound's statement.

    ``"row"``: not the right row; ``"kl"`` or ``"hellinger"``: farther than ε from the truth; ``"excess"``: farther
    from the truth than the nearest law of the class by more than ε; ``"support"``; ``"exposure"``. A bound says so
    by its attribute ``event``; ``"kl"`` without an ε among its inputs is read as ``"row"``.

    Examples
    --------
    >>> from markov_theory.bounds import O4, S2, S2H, S4
    >>> [event_of(bound) for bound in (O4, S2, S2H, S4)]
    ['row', 'kl', 'hellinger', 'kl']
    """
    for ancestor in bound.__mro__:
        if ancestor.__dict__.get("label") in EVENTS:
            return EVENTS[ancestor.__dict__["label"]]
    said = str(getattr(bound, "event", "kl"))
    return "row" if said == "kl" and "epsilon" not in bound.inputs() else said


def target_of(bound: type[Bound]) -> Target:
    """What a bound is compared with: N*_first for a lower bound on every estimator, else the estimator's N*_last."""
    return "first" if bound.kind == "lower" and "any" in bound.speaks_of else "last"


def families_for(bound: type[Bound], full: bool = False) -> list[Family]:
    """Families on which a bound can be tried; none: no exact oracle speaks of it."""
    if bound.kind == "prediction":
        return []
    event, speaks_of = event_of(bound), set(bound.speaks_of)
    return [
        family
        for family in families(full)
        if family.event == event
        and (speaks_of & family.estimators or not family.estimators)
        and _has_inputs(bound, family)
    ]


def _has_inputs(bound: type[Bound], family: Family) -> bool:
    irregular = 0.2 + 0.6 * ((0.3 + 0.618034 * np.arange(family.dimension)) % 1)
    case = family.build(np.asarray(irregular, dtype=np.float64), 10_000)
    needed = [p.name for p in inspect.signature(bound.n_samples).parameters.values() if p.default is p.empty]
    return all(name in case.given or hasattr(case.instance, name) for name in needed)
