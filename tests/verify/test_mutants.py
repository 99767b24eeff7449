"""False statements are refuted: the planted ones, and fresh ones by the documented extension."""

from __future__ import annotations

import math

import numpy as np
import pytest

from markov_theory.bounds import BOUNDS, O2, O3, O4, S2, S2H, S6
from markov_theory.verify.cases import MixtureCase
from markov_theory.verify.claims import Settings, check_bound
from markov_theory.verify.mutants import FINER, altered, mutants, nearest_surviving, scaled
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


def _power(bound, name, exponent):
    """A bound with another power of ε."""
    return altered(bound, f"fresh: {name}", lambda N, **inputs: N * inputs["epsilon"] ** exponent)


FRESH = {
    "log c": LogForKappa,
    "S6 / 4": scaled(S6, 1 / 4),
    "O4 x 3": scaled(O4, 3),
    "S2H / 9": scaled(S2H, 1 / 9),
    "S2 eps^(1/4)": _power(S2, "S2 eps^(1/4)", 1 / 4),  # at rows (.9,.1), (.1,.9), delta = .05 from epsilon = 1e-9 on
    "S2 eps^(1/3)": _power(S2, "S2 eps^(1/3)", 1 / 3),  # there from epsilon = 1e-7 on
    "S6 log(1/delta)^(3/5)": altered(S6, "fresh: delta", lambda N, **x: N * math.log(1 / x["delta"]) ** -0.4),
    "L1 eps^(-1/10)": _power(BOUNDS["L1"], "L1 eps^(-1/10)", -1 / 10),
}


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("fresh", FRESH.values(), ids=FRESH)
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


@pytest.mark.parametrize(("exponent", "epsilon"), [(1 / 4, 1e-9), (1 / 3, 1e-7)], ids=["eps^(1/4)", "eps^(1/3)"])
def test_a_wrong_power_of_epsilon_fails_where_epsilon_is_small(exponent, epsilon):
    """Not at ε = 1e-4, which is why the search goes further; the true bound is right at both."""
    rows = np.array([[0.9, 0.1], [0.1, 0.9]])
    false = _power(S2, "false", exponent)
    for at, expected in ((1e-4, False), (epsilon, True)):
        case = MixtureCase(rows, np.full(2, 0.5), 2, at, 0.05)
        N, true = int(case.bound(false)), int(case.bound(S2))
        chance, safe = (float(x) for x in case.failures(np.array([N, true])).low)
        assert (chance > 0.05) == expected
        assert safe <= 0.05


def test_a_wrong_power_of_log_delta_fails_where_delta_is_small():
    """S6 with (log 1/δ)^(3/5) for its log(1/δ): right at δ = 0.05, wrong at 1e-12."""
    rows = np.array([[0.2, 0.8], [0.8, 0.2]])
    for delta, expected in ((0.05, False), (1e-12, True)):
        case = MixtureCase(rows, np.full(2, 0.5), 2, 1e-8, delta)
        N = int(case.bound(FRESH["S6 log(1/delta)^(3/5)"]))
        assert (float(case.failures(np.array([N])).low[0]) > delta) == expected


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


@pytest.mark.parametrize("bound", [scaled(O3, 0.4), scaled(O4, 3)], ids=["O3 x 0.4", "O4 x 3"])
def test_a_refuted_bound_is_told_by_how_much(bound):
    """What survives is a weaker bound, by about as much as the true one is stronger."""
    tightest = search(bound, QUICK).tightest
    assert tightest.refuted_at is not None
    survives, killed = nearest_surviving(bound, Settings(), tightest)
    assert 0 < survives < killed <= 1
    assert killed / survives <= FINER
    weaker = scaled(bound, 1 / survives if bound.kind == "upper" else survives)
    assert check_bound(weaker, Settings()).verdict == HOLDS
    assert survives == pytest.approx(0.4 if bound.kind == "upper" else 1 / 3, rel=0.05)


def test_nothing_survives_of_a_bound_that_asks_for_nothing():
    nothing = altered(O3, "nothing", lambda N, **_: 0.0)
    tightest = search(nothing, QUICK).tightest
    survives, killed = nearest_surviving(nothing, Settings(), tightest)
    assert survives == 0
    assert killed < 1e-3
