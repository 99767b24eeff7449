"""What every statement of the theory asks for at given truths, and the least that a statement vouches for.

Statements are grouped by the class of estimators that they speak of. Each is read as that class needs it: those on
sparse mixtures with s = T for all mixtures; those on a known support with all rows for its support, since they hold
for every convex set of mixtures; those on exact maximisers with an admissible gap for a pursuit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markov_theory._checks import MAX_SAMPLES
from markov_theory.bounds.base import Bound
from markov_theory.bounds.known_support import S6
from markov_theory.bounds.known_support_lower import L1, L2
from markov_theory.bounds.known_support_sharp import S6One, S6Prime
from markov_theory.bounds.misspecification import M1, M2
from markov_theory.bounds.one_to_one import O1, O2, O3, O4, O5, O2Plus
from markov_theory.bounds.packing import S4, greedy_packing
from markov_theory.bounds.refined_one_to_one import O3Plus
from markov_theory.bounds.sparse import S1, S2, S2H, S3
from markov_theory.bounds.support import S5, S5L, S5Plus, S5Prime
from markov_theory.bounds.unknown_support import UnknownSupport
from markov_theory.divergences import kappa
from markov_theory.plan.truths import Truth

ESTIMATOR_NAMES = ("exact-l0", "kl-pursuit", "constrained-kl", "oracle")
ONE, ORACLE, L0, PURSUIT, SIMPLEX, ANY = "one-to-one", "oracle", "l0", "kl-pursuit", "simplex", "any"
GROUPS: dict[str, tuple[type[Bound], ...]] = {
    ONE: (O1, O2, O2Plus, O3, O3Plus),
    L0: (S1, S2, UnknownSupport, S3, S2H, S5, S5Plus, S5Prime),
    PURSUIT: (S2,),
    SIMPLEX: (S1, S2, S6, S6Prime, S6One, S2H),
    ORACLE: (S6, S6Prime, S6One, S3, L1, L2),
    ANY: (O4, O5, S4, S5L),
}
OUTSIDE: dict[str, tuple[type[Bound], ...]] = {
    L0: (M1, S3), PURSUIT: (M1,), SIMPLEX: (M1, M2), ORACLE: (M1, M2, S3),
}  # fmt: skip
OF_SINGLE_ROWS, OF_MIXTURES = (O4, O5), (S4, S5, S5Plus, S5Prime, S5L)
KNOWN_SUPPORT = (S6, S6Prime, S6One)
OF_ONE_TRUTH = {"alpha", "target", "support_rows", "support_margin"}
PACKED = 24  # candidates of a packing: a second or two, and two thirds of what 256 give
# Largest T²J at which what takes long is evaluated: some seconds.
PAIRS, HULLS = 2**22, 2**27
LIMITS: dict[type[Bound], int] = {O3: PAIRS, O3Plus: PAIRS, O4: HULLS, S5Plus: HULLS}


@dataclass(frozen=True)
class Requirement:
    """What one statement asks for at each truth.

    Attributes
    ----------
    label, kind, origin, event, statement : str
        Of the `Bound`.
    estimators : str
        The class of estimators that it is read for here.
    every_truth : bool
        Whether N is that of every truth of the class, planted or not; else of this truth alone.
    n_samples : tuple of float or None
        N at each truth; None where the statement does not apply.
    condition : str
        What else it supposes; empty if nothing.
    left_out : bool
        Whether it was not evaluated since that takes minutes.
    """

    label: str
    kind: str
    origin: str
    event: str
    statement: str
    estimators: str
    every_truth: bool
    n_samples: tuple[float | None, ...]
    condition: str = ""
    left_out: bool = False

    @property
    def known(self) -> list[float]:
        """N at the truths where there is one, ascending."""
        return sorted(value for value in self.n_samples if value is not None)

    @property
    def suffices(self) -> bool:
        """Whether it vouches for KL(q‖q̂) ≤ ε, outside the hull for that of the excess."""
        return self.kind == "upper" and self.event in ("kl", "row", "excess")


@dataclass(frozen=True)
class Recommendation:
    """The least number of samples that a statement on the chosen estimator vouches for.

    Attributes
    ----------
    n_samples : float
        Largest over the truths of the least at each; ``inf`` if no statement vouches for any number.
    label, estimators, condition : str
        The statement that this N comes from, the class it is read for, and what else it supposes.
    truth : int
        The truth that asks for most.
    each : tuple of float
        The least at each truth.
    known_support : float
        N of that kind of statement if the support were known: what accuracy alone asks for.
    for_every_truth : float
        The least that serves every truth of the class, planted or not.
    for_every_truth_label : str
    """

    n_samples: float
    label: str
    estimators: str
    condition: str
    truth: int
    each: tuple[float, ...]
    known_support: float
    for_every_truth: float
    for_every_truth_label: str


def guarantees(estimator: str, sparsity: int) -> tuple[str, ...]:
    """The classes whose statements vouch for an estimator; a pursuit of one row compares all, so it is exact."""
    if estimator == "constrained-kl":
        return (SIMPLEX,)
    if estimator == "oracle":
        return (ORACLE,)
    if sparsity == 1:
        return (ONE, L0)
    return (PURSUIT,) if estimator == "kl-pursuit" else (L0,)


def admissible_gap(density_ratio: float, epsilon: float, outside: bool) -> float:
    """The certified gap (nats a sample) for which `S2`, or `M1` outside the hull, asks for twice and four times N."""
    return epsilon / 4 if outside else epsilon / (4 * kappa(density_ratio))


def requirements(
    truths: Sequence[Truth],
    estimator: str,
    epsilon: float,
    delta: float,
    *,
    thorough: bool = False,
    update: Callable[[int], None] = lambda done: None,
) -> tuple[Requirement, ...]:
    """Evaluate every applicable statement at every truth.

    Parameters
    ----------
    truths : sequence of Truth
        Over one dictionary.
    estimator : str
        The one asked for: whether a pursuit's or an oracle's class is worth a row depends on it.
    epsilon, delta : float
        ε (nats) and δ, of each truth.
    thorough : bool
        Also what takes minutes at this size of the dictionary.
    update : callable
        Called after each statement with the number of those evaluated.
    """
    packed: list[float] = []
    kept: dict[tuple[Any, ...], float] = {}

    def value(group: str, bound: type[Bound], truth: Truth) -> float:
        if bound is S4:
            if not packed:
                laws = greedy_packing(truth.instance.transitions, truth.instance.sparsity, epsilon, n_candidates=PACKED)
                packed.append(S4.n_samples(laws, epsilon, delta))
            return packed[0]
        given = reading(group, bound, truth, epsilon)
        key = (group, bound.label, truth.instance.sparsity, truth.is_outside(epsilon))
        if not serves_every_truth(bound):
            return bound.at(truth.instance, epsilon=epsilon, delta=delta, **given)
        if key not in kept:
            kept[key] = bound.at(truth.instance, epsilon=epsilon, delta=delta, **given)
        return kept[key]

    found = []
    for group in GROUPS:
        for bound in dict.fromkeys((*GROUPS[group], *OUTSIDE.get(group, ()))):
            applies = [_applies(group, bound, truth, estimator, epsilon) for truth in truths]
            if not any(applies):
                continue
            left_out = not thorough and _slow(group, bound, truths[0])
            values = [
                value(group, bound, truth) if here and not left_out else None
                for here, truth in zip(applies, truths, strict=True)
            ]
            found.append(_requirement(group, bound, values, _condition(group, bound, truths, epsilon), left_out))
            update(len(found))
    return tuple(found)


def serves_every_truth(bound: type[Bound]) -> bool:
    """Whether N depends on the dictionary and on s alone."""
    return not OF_ONE_TRUTH & set(bound.inputs())


def reading(group: str, bound: type[Bound], truth: Truth, epsilon: float) -> dict[str, Any]:
    """What a bound is given in place of the instance's own numbers."""
    instance, inputs = truth.instance, bound.inputs()
    given: dict[str, Any] = {}
    if group == SIMPLEX:
        given = {"sparsity": instance.n_tokens, "support_rows": instance.transitions}
    if group == ORACLE and bound in (M1, M2):
        given = {"n_tokens": instance.sparsity}
    if group == PURSUIT:
        given = {"gap": admissible_gap(instance.density_ratio, epsilon, truth.is_outside(epsilon))}
    return {name: value for name, value in given.items() if name in inputs}


def recommend(
    found: Sequence[Requirement], truths: Sequence[Truth], estimator: str, epsilon: float, delta: float
) -> Recommendation:
    """The largest over the truths of the least N that suffices at each."""
    least: list[tuple[float, Requirement | None]] = []
    uniform: list[tuple[float, str]] = []
    for i, truth in enumerate(truths):
        groups = guarantees(estimator, truth.instance.sparsity)
        here = [(n, r) for r in found if r.suffices and r.estimators in groups and (n := r.n_samples[i]) is not None]
        least.append(min(here, key=lambda pair: pair[0], default=(math.inf, None)))
        everywhere = [(n, r.label) for n, r in here if r.every_truth]
        uniform.append(min(everywhere, default=(math.inf, "")))
    worst = max(range(len(truths)), key=lambda i: least[i][0])
    n_samples, chosen = least[worst]
    known = n_samples if chosen is None else _known_support(chosen, truths[worst], epsilon, delta)
    serves, serves_label = max(uniform)
    told = ("", "", "")
    if chosen is not None and math.isfinite(n_samples):
        told = (chosen.label, chosen.estimators, chosen.condition)
    label = "" if math.isinf(serves) else serves_label
    each = tuple(n for n, _ in least)
    return Recommendation(n_samples, *told, worst, each, min(n_samples, known), serves, label)


def can_be_drawn(n_samples: float) -> bool:
    """Whether a count of that size is exact."""
    return n_samples <= MAX_SAMPLES


def _known_support(chosen: Requirement, truth: Truth, epsilon: float, delta: float) -> float:
    """N of the same statement where the support is known, so that no supports have to be told apart."""
    instance = truth.instance
    if chosen.estimators == ONE or instance.sparsity == 1:
        return 0.0 if chosen.estimators in (ONE, L0) else math.inf
    if chosen.estimators not in (L0, PURSUIT):
        return math.inf
    if chosen.label == UnknownSupport.label:
        return min(bound.at(instance, epsilon=epsilon, delta=delta) for bound in KNOWN_SUPPORT)
    bound = next(b for b in (S1, S2, M1) if b.label == chosen.label)
    given = {**reading(chosen.estimators, bound, truth, epsilon), "n_tokens": instance.sparsity}
    return bound.at(instance, epsilon=epsilon, delta=delta, **given)


def _applies(group: str, bound: type[Bound], truth: Truth, estimator: str, epsilon: float) -> bool:
    single = truth.instance.sparsity == 1
    if group == ONE and not single:
        return False
    if group == PURSUIT and (single or estimator != "kl-pursuit"):
        return False
    if group == ORACLE and single and estimator != "oracle":
        return False
    if bound in OF_SINGLE_ROWS:
        return single and not truth.is_outside(epsilon)
    if single and (bound in OF_MIXTURES or (group == L0 and bound is S3)):
        return False
    return bound in (OUTSIDE.get(group, ()) if truth.is_outside(epsilon) else GROUPS[group])


def _slow(group: str, bound: type[Bound], truth: Truth) -> bool:
    limit = HULLS if group == SIMPLEX and bound in KNOWN_SUPPORT else LIMITS.get(bound, math.inf)
    return truth.instance.n_tokens**2 * truth.instance.n_outcomes > limit


def _condition(group: str, bound: type[Bound], truths: Sequence[Truth], epsilon: float) -> str:
    if group == PURSUIT:
        gap = min(admissible_gap(t.instance.density_ratio, epsilon, t.is_outside(epsilon)) for t in truths)
        return f"only of fits whose certified gap is at most {gap:.3g} nats a sample"
    if bound is S3:
        beside = any(truth.is_outside(epsilon) for truth in truths)
        support = ", once the support is found" if group == L0 else ""
        return "as ε → 0" + support + (", as if the law were the mixture next to it" if beside else "")
    return ""


def _requirement(
    group: str, bound: type[Bound], values: Sequence[float | None], condition: str, left_out: bool
) -> Requirement:
    texts = (bound.label, bound.kind, bound.origin, bound.event, bound.statement, group)
    return Requirement(*texts, serves_every_truth(bound), tuple(values), condition, left_out)
