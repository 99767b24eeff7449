"""Where enumeration cannot reach: sampled trials at N = bound, fitted by the project's certified solvers.

The verdict is on "failure probability at N = bound is at most δ". Trials are binomial, so the p-value is exact; over a
whole report the p-values are corrected by Holm's method, so that all its statistical verdicts together are wrongly
``violated`` with probability at most 5 %. The slack shown beside a verdict is no part of it: N over Wilks' prediction
where the support is known, over a measured N* elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from scipy.stats import binom

from markov_theory._checks import MAX_SAMPLES, IntArray
from markov_theory.bounds import BOUNDS
from markov_theory.bounds.base import Bound
from markov_theory.embedding_instance import EmbeddingInstance, plant_embedding
from markov_theory.families import make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.best_subset import best_subset
from markov_theory.solvers.result import OPTIMAL, MixtureFit
from markov_theory.solvers.simplex_mle import simplex_mle
from markov_theory.solvers.softmax_head import NO_MAXIMISER, softmax_mixture_mle
from markov_theory.success import failure_bounds
from markov_theory.verify.claims import LEVEL, Claim, Finding, Settings
from markov_theory.verify.exact import divergence_from
from markov_theory.verify.tables import Mask
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED

TOLERANCE = 1e-9  # certified gap asked of a fit, nats a sample
STAR_TRIALS, STAR_STEPS = 100, 5  # how N* is measured: about 20 % either way


@dataclass(frozen=True)
class Scale:
    """A planted instance, larger than enumeration allows.

    Attributes
    ----------
    tokens, outcomes, sparsity : int
        T, J, s.
    epsilon, delta : float
    trials : int
    """

    tokens: int
    outcomes: int
    sparsity: int
    epsilon: float
    delta: float
    trials: int


SMALL = {
    "one-to-one": (Scale(64, 32, 1, 1.0, 0.05, 400),),
    "oracle": (
        Scale(32, 64, 4, 1e-3, 0.05, 400),
        Scale(32, 64, 16, 1e-4, 0.05, 400),
        Scale(32, 64, 2, 1e-3, 0.05, 4000),
    ),
    "simplex": (Scale(16, 64, 4, 1e-2, 0.05, 300),),
    "l0": (Scale(16, 32, 2, 1e-2, 0.05, 300),),
    "embedding-oracle": (Scale(32, 64, 4, 1e-2, 0.05, 300),),
}
LARGE = {
    "one-to-one": tuple(Scale(T, 64, 1, 1.0, 0.05, 4000) for T in (64, 256)),
    "oracle": tuple(Scale(128, J, s, 1e-4, 0.05, 4000) for J in (64, 256) for s in (2, 4, 8, 16)),
    "simplex": (Scale(32, 256, 4, 1e-2, 0.05, 2000), Scale(32, 64, 16, 1e-2, 0.05, 2000)),
    "l0": (Scale(64, 128, 2, 1e-2, 0.05, 1000), Scale(32, 128, 4, 1e-2, 0.05, 1000)),
    "embedding-oracle": tuple(Scale(64, 128, s, 1e-2, 0.05, 2000) for s in (2, 8)),
}


def claims() -> list[Claim]:
    """One claim for each upper bound that the planted instances speak of, labelled ``<bound>@scale``."""
    return [claim_at_scale(bound) for bound in BOUNDS.values() if speaks_at_scale(bound)]


def speaks_at_scale(bound: type[Bound]) -> bool:
    """Whether a bound is about the failure of an estimator that is run at scale."""
    return bound.kind != "prediction" and bound.event in ("row", "kl") and bool(_estimators(bound))


def claim_at_scale(bound: type[Bound]) -> Claim:
    """The claim that a bound makes of itself, on planted instances of up to 256 outcomes and 16 rows mixed."""
    label = f"{bound.label}@scale"
    return Claim(label, bound.statement, bound.origin, lambda settings: check_at_scale(bound, settings))


def check_at_scale(bound: type[Bound], settings: Settings) -> Finding:
    """Fail how often at N = bound (lower bounds: one sample below)? The least favourable instance decides.

    An uncertified fit counts for neither side: as a success where the bound is to be refuted, as a failure where it
    is to be confirmed.
    """
    found: list[Finding] = []
    scales = LARGE if settings.effort.full else SMALL
    for estimator, scale in ((name, scale) for name in _estimators(bound) for scale in scales[name]):
        instance = _planted(estimator, scale, settings.seed)
        N = np.ceil(_number(bound, instance, estimator, scale)) - (bound.kind == "lower")
        if not 0 < N <= MAX_SAMPLES:
            continue
        name = f"{estimator} T={scale.tokens} J={scale.outcomes} s={scale.sparsity}"
        generator = named_generator(settings.seed, "at scale", bound.label, name)
        counts = sample_counts(instance.target, int(N), scale.trials, generator)
        failed, unsure = _failures(estimator, instance, counts, scale)
        tally = {"failed": int(failed.sum()), "uncertain": int((failed | unsure).sum())}
        finding = _judged(name, "<=" if bound.kind == "upper" else ">", {**scale.__dict__, "N": float(N), **tally})
        words, star = _reference(estimator, scale, settings.seed)
        slack = N / star if bound.kind == "upper" else star / (N + 1)
        found.append(replace(finding, tested=f"{finding.tested}, {words} = {star:,.0f}", slack=float(slack)))
    if not found:
        nothing = math.nan
        return Finding(INCONCLUSIVE, "no bound within reach", "", nothing, nothing, nothing, method="statistical")
    sign = 1 if bound.kind == "upper" else -1
    worst = min(found, key=lambda finding: (finding.p_value or 0.0, -sign * finding.value))
    p_value = min(1.0, (worst.p_value or 0.0) * len(found))  # the worst of several
    slack = min(finding.slack for finding in found)
    return replace(worst, tested="; ".join(finding.tested for finding in found), p_value=p_value, slack=slack)


def settle(findings: Sequence[Finding], level: float = LEVEL) -> list[Finding]:
    """Turn p-values into verdicts, with Holm's correction over all of them; other findings pass unchanged.

    ``violated`` is wrong for any of them with probability at most `level`. ``holds`` needs a confidence bound, at that
    level shared evenly, that keeps the failure probability on the right side of δ; else it is ``inconclusive``.

    Parameters
    ----------
    findings : sequence of Finding
    level : float
        Family-wise error probability.
    """
    places = [i for i, finding in enumerate(findings) if finding.p_value is not None]
    rejected = holm([float(findings[i].p_value or 0.0) for i in places], level)
    settled = list(findings)
    for i, reject in zip(places, rejected, strict=True):
        finding = findings[i]
        tally, share = finding.instance, level / (2 * len(places))
        low, _ = failure_bounds(tally["failed"], tally["trials"], share)
        _, high = failure_bounds(tally["uncertain"], tally["trials"], share)
        right = high <= finding.limit if finding.relation == "<=" else low > finding.limit
        verdict = VIOLATED if reject else (HOLDS if right else INCONCLUSIVE)
        settled[i] = replace(finding, verdict=verdict, low=low, high=high)
    return settled


def holm(p_values: Sequence[float], level: float) -> list[bool]:
    """Which hypotheses Holm's step-down method rejects at family-wise error `level`.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03, 0.005], 0.05)
    [True, False, False, True]
    """
    order = np.argsort(p_values, kind="stable")
    rejected = [False] * len(p_values)
    for rank, i in enumerate(order):
        if p_values[i] > level / (len(p_values) - rank):
            break
        rejected[i] = True
    return rejected


def _estimators(bound: type[Bound]) -> list[str]:
    """The classes of estimators that a bound is tried with."""
    return [name for name in SMALL if name in bound.speaks_of]


def _planted(estimator: str, scale: Scale, seed: int) -> Instance | EmbeddingInstance:
    if estimator == "embedding-oracle":
        return plant_embedding(scale.tokens, scale.outcomes, 16, scale.sparsity, radius=2.0, seed=seed)
    dictionary = make_dictionary(scale.tokens, scale.outcomes, density_ratio=20.0, seed=seed)
    return plant(dictionary, scale.sparsity, seed=seed)


def _number(bound: type[Bound], instance: Any, estimator: str, scale: Scale) -> float:
    given: dict[str, Any] = {"epsilon": scale.epsilon, "delta": scale.delta}
    if estimator == "simplex":
        given["sparsity"] = scale.tokens
    try:
        return float(bound.at(instance, **given))
    except (TypeError, ValueError, ArithmeticError):  # an input that planted instances do not have, or that is refused
        return math.nan


def _reference(estimator: str, scale: Scale, seed: int) -> tuple[str, float]:
    """What a bound's N is compared with, in words and samples."""
    label = {"oracle": "S3", "embedding-oracle": "E3"}.get(estimator)
    if label is None:
        return "measured N*", _measured_star(estimator, scale, seed)
    return label, float(BOUNDS[label].at(_planted(estimator, scale, seed), epsilon=scale.epsilon, delta=scale.delta))


@cache
def _measured_star(estimator: str, scale: Scale, seed: int) -> float:
    """Where the share of failures falls to δ, by doubling and bisection, as if it fell with N."""
    instance = _planted(estimator, scale, seed)
    generator = named_generator(seed, "measured N*", f"{estimator} {scale}")

    def fails(N: float) -> bool:
        counts = sample_counts(instance.target, int(N), STAR_TRIALS, generator)
        return bool(_failures(estimator, instance, counts, scale)[0].mean() > scale.delta)

    low, high = 1.0, 2.0
    while fails(high) and high < MAX_SAMPLES:
        low, high = high, 2 * high
    for _ in range(STAR_STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fails(middle) else (low, middle)
    return math.ceil(high)


def _failures(estimator: str, instance: Any, counts: IntArray, scale: Scale) -> tuple[Mask, Mask]:
    """Which trials fail, and which are uncertified, shape (R,)."""
    if estimator == "one-to-one":
        fit = best_subset(instance.transitions, counts, 1)
        right = (int(instance.support[0]),)
        failed = np.array([supports != (right,) for supports in fit.supports])
        return failed, np.zeros_like(failed)
    if estimator == "embedding-oracle":
        soft = softmax_mixture_mle(
            instance.embeddings, instance.weights, instance.bias, counts, support=instance.support, tolerance=TOLERANCE
        )
        missing = soft.status == NO_MAXIMISER
        far = divergence_from(instance.target, soft.law) > scale.epsilon
        return far | missing, ~missing & (soft.status != OPTIMAL)
    rows = instance.support_rows if estimator == "oracle" else instance.transitions
    mixture: MixtureFit
    if estimator == "l0":
        mixture = best_subset(rows, counts, scale.sparsity, TOLERANCE)
    else:
        mixture = simplex_mle(rows, counts, TOLERANCE)
    unsure = mixture.status != OPTIMAL
    return (divergence_from(instance.target, mixture.alpha @ rows) > scale.epsilon) & ~unsure, unsure


def _judged(name: str, relation: str, instance: dict[str, Any]) -> Finding:
    failed, trials = instance["failed"], instance["trials"]
    if relation == "<=":
        p_value = float(binom.sf(failed - 1, trials, instance["delta"]))
    else:
        p_value = float(binom.cdf(instance["uncertain"], trials, instance["delta"]))
    low, high = failure_bounds(failed, trials, LEVEL / 2)
    number = f"P(fail) at N = {instance['N']:,.0f}, " + ("the bound" if relation == "<=" else "the bound - 1")
    return Finding(
        INCONCLUSIVE,
        f"{name}: {failed}/{trials}",
        number,
        failed / trials,
        low,
        high,
        instance["delta"],
        relation,
        method="statistical",
        instance=instance,
        p_value=p_value,
    )
