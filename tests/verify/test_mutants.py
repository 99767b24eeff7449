"""False statements are refuted: the planted ones, and fresh ones by the documented extension."""

from __future__ import annotations

import math

import pytest

from markov_theory.bounds import BOUNDS, O2, O4, S6
from markov_theory.verify.claims import Settings, check_bound
from markov_theory.verify.mutants import altered, mutants, nearest_surviving, scaled
from markov_theory.verify.search import QUICK, search
from markov_theory.verify.verdict import HOLDS, VIOLATED

PLANTED = mutants()


@pytest.mark.parametrize("mutant", PLANTED, ids=[mutant.name for mutant in PLANTED])
def test_every_planted_falsehood_is_refuted(mutant):
    finding = mutant.check(Settings())
    assert finding.verdict == VIOLATED, finding
    assert finding.instance
    broken = {
        "<=": finding.value > finding.limit,
        ">": finding.value <= finding.limit,
        ">=": finding.value < finding.limit,
    }
    assert broken[finding.relation]


def test_every_bound_has_a_false_version():
    assert {mutant.of for mutant in PLANTED} >= set(BOUNDS)


class LogForKappa(O2):
    """O2 with log c in place of κ(c), and a smaller constant."""

    label = "fresh: log c"

    @staticmethod
    def n_samples(n_tokens: int, density_ratio: float, margin: float, delta: float) -> float:
        if margin == 0 or math.isinf(density_ratio) or n_tokens == 1:
            return math.inf
        return float(math.ceil(0.3 * 2 * math.log(density_ratio) / margin * math.log((n_tokens - 1) / delta)))


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("fresh", [LogForKappa, scaled(S6, 1 / 4), scaled(O4, 3)], ids=["log c", "S6 / 4", "O4 x 3"])
def test_a_fresh_falsehood_is_refuted(fresh, seed):
    finding = check_bound(fresh, Settings(seed=seed))
    assert finding.verdict == VIOLATED
    assert finding.slack < 1


def test_the_true_statements_hold_where_the_false_ones_fail():
    """At the counterexample to a quarter of S6 the whole of S6 is still right."""
    found = search(scaled(S6, 1 / 4), QUICK)
    case = found.tightest.case
    N = int(case.bound(S6))
    assert found.refuted
    assert float(case.failures([N])[1][0]) <= case.delta


def test_alterations_see_the_inputs():
    doubled = altered(O2, "twice", lambda N, delta, **_: N * (2 if delta < 0.1 else 1))
    assert doubled.n_samples(2, 1.2, 0.02, delta=0.05) == 2 * O2.n_samples(2, 1.2, 0.02, 0.05)
    assert doubled.n_samples(2, 1.2, 0.02, 0.5) == O2.n_samples(2, 1.2, 0.02, 0.5)
    assert doubled.inputs() == O2.inputs()
    assert (doubled.kind, doubled.speaks_of, doubled.event) == (O2.kind, O2.speaks_of, O2.event)


def test_the_nearest_surviving_factor_brackets_the_slack():
    bound = BOUNDS["S6^1"]
    tightest = search(bound, QUICK).tightest
    survives, killed = nearest_surviving(bound, Settings(), tightest)
    assert 1 <= survives < killed <= max(1.1, 1.06 * math.exp(-tightest.score))
    assert check_bound(scaled(bound, 1 / killed), Settings()).verdict == VIOLATED
    assert check_bound(bound, Settings()).verdict == HOLDS
