"""Which exact oracle speaks of a bound: families chosen by its estimators, the event that it bounds, and its inputs."""

from __future__ import annotations

import inspect
from typing import Literal

import numpy as np

from markov_theory.bounds.base import Bound
from markov_theory.verify.families import Family, families

Target = Literal["last", "first"]


def target_of(bound: type[Bound]) -> Target:
    """What a bound is compared with: N*_first for a lower bound on every estimator, else the estimator's N*_last."""
    return "first" if bound.kind == "lower" and "any" in bound.speaks_of else "last"


def families_for(bound: type[Bound], full: bool = False) -> list[Family]:
    """Families on which a bound can be tried; none: no exact oracle speaks of it."""
    if bound.kind == "prediction":
        return []
    speaks_of = set(bound.speaks_of)
    return [
        family
        for family in families(full)
        if family.event == bound.event
        and (speaks_of & family.estimators or not family.estimators)
        and _has_inputs(bound, family)
    ]


def _has_inputs(bound: type[Bound], family: Family) -> bool:
    irregular = 0.2 + 0.6 * ((0.3 + 0.618034 * np.arange(family.dimension)) % 1)
    case = family.build(np.asarray(irregular, dtype=np.float64), 10_000)
    needed = [p.name for p in inspect.signature(bound.n_samples).parameters.values() if p.default is p.empty]
    return all(name in case.given or hasattr(case.instance, name) for name in needed)
