"""The numbers of a plan are those of the bounds, each read as its class of estimators needs it."""

import math
from functools import cache

import numpy as np
import pytest

from markov_theory.bounds import M1, M2, O3, S1, S2, S2H, S3, S4, S6, S6Prime, greedy_packing
from markov_theory.bounds.refined_one_to_one import O3Plus
from markov_theory.bounds.support import S5, S5L, S5Plus, S5Prime
from markov_theory.bounds.unknown_support import UnknownSupport
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kappa
from markov_theory.instance import Instance, plant
from markov_theory.plan import requirements as module
from markov_theory.plan.requirements import ESTIMATOR_NAMES, GROUPS, PACKED, recommend, requirements
from markov_theory.plan.truths import Truth, nearest_mixture

ASKED = {"epsilon": 1e-3, "delta": 0.05}


@pytest.fixture(scope="module")
def evaluated(truths):
    """The requirements at the usual truths for an estimator, evaluated once."""
    return cache(lambda estimator: requirements(truths, estimator, **ASKED))


def of(found, group, label):
    (one,) = [r for r in found if r.estimators == group and r.label == label]
    return one


@pytest.mark.parametrize("estimator", ESTIMATOR_NAMES)
def test_every_number_is_its_bounds(evaluated, truths, estimator):
    found = evaluated(estimator)
    rows, T = truths[0].instance.transitions, truths[0].instance.n_tokens
    given = {
        "simplex": {"sparsity": T, "support_rows": rows},
        "kl-pursuit": {"gap": 1e-3 / (4 * kappa(truths[0].instance.density_ratio))},
    }
    expected = {group for group in GROUPS if group not in ("one-to-one", "kl-pursuit")}
    assert {r.estimators for r in found} == expected | ({"kl-pursuit"} if estimator == "kl-pursuit" else set())
    for requirement in found:
        (bound,) = {b for b in GROUPS[requirement.estimators] if b.label == requirement.label}
        assert (requirement.kind, requirement.event) == (bound.kind, bound.event)
        for truth, n_samples in zip(truths, requirement.n_samples, strict=True):
            known = {k: v for k, v in given.get(requirement.estimators, {}).items() if k in bound.inputs()}
            if bound is S4:
                known["laws"] = greedy_packing(rows, 2, 1e-3, n_candidates=PACKED)
            assert n_samples == bound.at(truth.instance, **ASKED, **known)


def test_statements_on_single_rows_are_asked_only_of_single_rows(rows):
    truths = [Truth.of(plant(rows, 1)), Truth.of(plant(rows, 2))]
    found = requirements(truths, "exact-l0", **ASKED)
    assert of(found, "one-to-one", "O3").n_samples == (O3.at(truths[0].instance, **ASKED), None)
    assert of(found, "l0", "S5+").n_samples == (None, S5Plus.at(truths[1].instance, **ASKED))
    assert of(found, "one-to-one", "O3+").known == [O3Plus.at(truths[0].instance, **ASKED)]


def test_a_statement_on_the_class_is_told_from_one_on_a_truth(evaluated, truths):
    found = evaluated("exact-l0")
    everywhere = {r.label for r in found if r.estimators == "l0" and r.every_truth}
    assert everywhere == {bound.label for bound in (S1, S2, S2H)}
    alone = {bound.label for bound in (S3, S5, S5Plus, S5Prime, UnknownSupport)}
    assert {r.label for r in found if r.estimators == "l0" and not r.every_truth} == alone
    assert not of(found, "any", S5L.label).every_truth


@pytest.mark.parametrize(("estimator", "group"), [("exact-l0", "l0"), ("constrained-kl", "simplex"), ("oracle",) * 2])
def test_the_least_that_is_vouched_for_is_recommended(evaluated, truths, estimator, group):
    found = evaluated(estimator)
    advice = recommend(found, truths, estimator, **ASKED)
    each = [min(r.n_samples[i] for r in found if r.estimators == group and r.suffices) for i in range(2)]
    assert advice.each == tuple(each)
    assert advice.n_samples == max(each) == each[advice.truth]
    assert advice.n_samples in of(found, group, advice.label).n_samples
    served = [r.n_samples[0] for r in found if r.estimators == group and r.suffices and r.every_truth]
    assert advice.for_every_truth == min(served, default=math.inf)


def test_neither_another_event_nor_a_prediction_is_recommended(evaluated, truths):
    """H² ≤ ε, the support and a limit law are promised for fewer samples than KL ≤ ε is."""
    found = evaluated("exact-l0")
    advice = recommend(found, truths, "exact-l0", **ASKED)
    assert all(of(found, "l0", label).known[-1] < advice.n_samples for label in ("S3", "S5+"))
    assert not any(of(found, "l0", label).suffices for label in ("S3", "S5+", "S2H"))
    assert advice.label == "S6u"


def test_a_pursuit_is_vouched_for_by_its_gap_alone_unless_it_compares_all_rows(evaluated, rows, truths):
    advice = recommend(evaluated("kl-pursuit"), truths, "kl-pursuit", **ASKED)
    gap = 1e-3 / (4 * kappa(rows.density_ratio))
    assert advice.n_samples == S2.at(truths[0].instance, **ASKED, gap=gap)
    assert f"{gap:.3g}" in advice.condition
    single = [Truth.of(plant(rows, 1))]
    advice = recommend(requirements(single, "kl-pursuit", **ASKED), single, "kl-pursuit", **ASKED)
    assert advice.n_samples <= O3.at(single[0].instance, **ASKED)
    assert advice.condition == ""


def test_what_accuracy_alone_asks_for(evaluated, rows, truths):
    def advised(estimator):
        return recommend(evaluated(estimator), truths, estimator, **ASKED)

    advice = advised("exact-l0")
    instance = truths[advice.truth].instance
    assert advice.known_support <= min(b.at(instance, **ASKED) for b in (S6, S6Prime))
    assert advised("constrained-kl").known_support == advised("constrained-kl").n_samples
    single = [Truth.of(plant(rows, 1))]
    assert recommend(requirements(single, "exact-l0", **ASKED), single, "exact-l0", **ASKED).known_support == 0
    pursuit = advised("kl-pursuit")
    assert 0 < pursuit.known_support < pursuit.n_samples


def test_without_a_density_ratio_a_pursuit_has_no_guarantee():
    rows = Dictionary([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.3, 0.3, 0.4]])
    truths = [Truth.of(plant(rows, 2))]
    advice = recommend(requirements(truths, "kl-pursuit", **ASKED), truths, "kl-pursuit", **ASKED)
    assert (advice.n_samples, advice.label, advice.for_every_truth_label) == (math.inf, "", "")


def test_what_is_slow_is_left_out_and_says_so(truths, monkeypatch):
    monkeypatch.setitem(module.LIMITS, S5Plus, 1)
    found = requirements(truths[:1], "exact-l0", **ASKED)
    assert of(found, "l0", "S5+").left_out
    assert of(found, "l0", "S5+").n_samples == (None,)
    assert of(requirements(truths[:1], "exact-l0", **ASKED, thorough=True), "l0", "S5+").known


@pytest.fixture(scope="module")
def outside(rows):
    law = 0.8 * rows.transitions[:2].mean(axis=0) + 0.2 * np.eye(8)[0]
    return nearest_mixture(rows, law, 1e-2, 2)


def test_outside_the_hull_only_statements_on_the_excess_are_made(outside, rows):
    assert outside.is_outside(1e-2)
    found = requirements([outside], "constrained-kl", epsilon=1e-2, delta=0.05)
    assert {r.label for r in found} == {"M1", "M2", "S3"}
    c = rows.density_ratio
    assert of(found, "simplex", "M2").n_samples == (M2.n_samples(6, c, 1e-2, 0.05),)
    assert of(found, "l0", "M1").n_samples == (M1.n_samples(6, 2, c, 1e-2, 0.05),)
    assert of(found, "oracle", "M2").n_samples == (M2.n_samples(2, c, 1e-2, 0.05),)
    advice = recommend(found, [outside], "constrained-kl", 1e-2, 0.05)
    assert advice.label == "M2"


def test_the_nearest_mixture_and_what_remains(outside, rows):
    assert 0 <= outside.misfit - outside.hull_misfit <= outside.gap + 1e-12
    assert outside.unavoidable("simplex", 1e-2) == outside.hull_misfit
    assert outside.unavoidable("l0", 1e-2) == outside.misfit
    planted = plant(rows, 3)
    found = nearest_mixture(rows, planted.target, 1e-4)
    assert found.instance.support.tolist() == planted.support.tolist()
    np.testing.assert_allclose(found.instance.alpha, planted.alpha, atol=1e-5)
    assert not found.is_outside(1e-4)
    assert found.unavoidable("l0", 1e-4) == 0


def test_an_impossible_outcome_is_refused():
    rows = Dictionary([[0.5, 0.5, 0], [0.2, 0.8, 0]])
    with pytest.raises(ValueError, match="no row can give"):
        nearest_mixture(rows, [0.2, 0.3, 0.5], 1e-3)
    with pytest.raises(ValueError, match="sparsity must be in"):
        nearest_mixture(rows, [0.3, 0.7, 0], 1e-3, 3)


def test_the_margin_belongs_to_the_description(rows):
    truth = Truth.of(Instance(rows, np.eye(6)[3], "row 3"))
    told = truth.describe(1e-3)
    assert (told["sparsity"], told["rows"], told["weights"]) == (1, ["3"], [1.0])
    assert told["small_epsilon"] is (told["support_margin"] >= 1e-2)
