"""The whole answer: JSON, what is refused, what the estimators are told apart by."""

import json
import math

import numpy as np
import pytest

from markov_theory.bounds import S3, S6Prime
from markov_theory.dictionary import Dictionary
from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.plan import nearest_mixture, plan_samples

KEYS = {
    "question", "dictionary", "truths", "requirements", "recommendation", "predicted", "corpus", "predicted_positions",
    "parts", "binding", "simulations",
}  # fmt: skip


def test_a_plan_survives_json(rows):
    plan = plan_samples(rows, 2, 1e-2, 0.1, new_tokens=2, exposure="zipf", n_truths=2, n_trials=32, n_samples=50)
    told = plan.to_dict()
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert set(told) == KEYS
    assert told["recommendation"]["n_samples"] == {"value": plan.recommendation.n_samples, "infinite": False}
    assert [run["at"] for run in told["simulations"]] == ["recommended", "predicted", "given"]
    assert told["corpus"]["rarest_share"] == pytest.approx(1 / 3)
    assert told["corpus"]["cost_of_exposure"] == plan.corpus.cost
    assert {len(r["n_samples"]) for r in told["requirements"]} == {2}


def test_infinity_is_null_with_a_flag():
    rows = Dictionary([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.3, 0.3, 0.4]])
    plan = plan_samples(rows, 2, 1e-3, 0.05, estimator="kl-pursuit", n_truths=1, n_trials=8)
    told = plan.to_dict()
    json.dumps(told, allow_nan=False)
    nothing = {"value": None, "infinite": True}
    assert told["dictionary"]["density_ratio"] == told["recommendation"]["n_samples"] == nothing
    assert told["corpus"]["n_positions"] == told["parts"]["accuracy"] == nothing
    assert plan.binding == "unbounded"
    assert plan.simulation("recommended").verdict == "not simulated"
    assert plan.simulation("predicted").outcomes


def test_each_estimator_has_its_own_answer(rows):
    def asked(estimator, **options):
        return plan_samples(rows, 3, 1e-3, 0.05, estimator=estimator, n_truths=1, n_trials=8, **options)

    oracle, exact, simplex = asked("oracle"), asked("exact-l0"), asked("constrained-kl")
    instance = plant(rows, 3)
    assert oracle.recommendation.n_samples == S6Prime.at(instance, epsilon=1e-3, delta=0.05)
    assert oracle.recommendation.n_samples <= exact.recommendation.n_samples < simplex.recommendation.n_samples
    assert oracle.predicted == exact.predicted == S3.at(instance, epsilon=1e-3, delta=0.05)
    assert simplex.predicted > oracle.predicted
    assert asked("constrained-kl", simulation=False).predicted is None


def test_nothing_is_needed_where_every_mixture_is_close(rows):
    plan = plan_samples(rows, 2, 10.0, 0.05, n_truths=1, simulation=False)
    assert (plan.recommendation.n_samples, plan.binding) == (0, "nothing")


def test_one_row_needs_no_data():
    plan = plan_samples(Dictionary([[0.5, 0.5]]), 1, 1e-3, 0.05, n_truths=1, n_trials=96, estimator="oracle")
    assert (plan.corpus.n_positions, plan.predicted) == (0, 0)
    assert plan.simulation("recommended").verdict == "confirmed"
    assert plan_samples(Dictionary([[0.5, 0.5]]), 1, simulation=False).predicted is None


def test_naming_a_row_binds_for_single_rows_and_finding_them_in_a_hard_dictionary(rows):
    assert plan_samples(rows, 1, simulation=False).binding == "support"
    close = make_dictionary(12, 16, density_ratio=1.5)
    plan = plan_samples(close, 3, 1e-3, 0.05, n_truths=1, simulation=False)
    assert plan.binding == "support"
    assert not plan.truths[0]["small_epsilon"]
    assert math.isfinite(plan.recommendation.n_samples)


def test_a_given_law_is_planned_for(rows):
    inside = plant(rows, 2)
    plan = plan_samples(rows, nearest_mixture(rows, inside.target, 1e-3), 1e-3, 0.05, simulation=False)
    direct = plan_samples(rows, inside, 1e-3, 0.05, simulation=False)
    assert plan.recommendation.n_samples == pytest.approx(direct.recommendation.n_samples, rel=1e-4)
    law = np.full(8, 1 / 8)
    outside = plan_samples(rows, nearest_mixture(rows, law, 1e-3), 1e-3, 0.05, estimator="constrained-kl", n_trials=8)
    assert outside.truths[0]["outside"]
    assert outside.recommendation.label in ("M1", "M2")


@pytest.mark.parametrize(
    ("wanted", "options", "words"),
    [
        (0, {}, "sparsity must be in [1, 6], got 0"),
        (9, {}, "sparsity must be in [1, 6], got 9"),
        (2.5, {}, "sparsity must be a whole number"),
        ([], {}, "at least one truth"),
        (2, {"epsilon": 0.0}, "epsilon must be a finite number > 0"),
        (2, {"delta": 1.0}, "delta must lie strictly"),
        (2, {"estimator": "omp"}, "estimator must be one of exact-l0, kl-pursuit, constrained-kl, oracle"),
        (2, {"exposure": "odd"}, "exposure must be one of uniform, zipf, coupled"),
        (2, {"rate": 0.0}, "rate must lie strictly"),
        (2, {"rate": 1.5}, "rate must lie strictly"),
        (2, {"share": 1.0}, "share must lie strictly"),
        (2, {"new_tokens": 0}, "new_tokens must be >= 1"),
        (2, {"n_truths": 0}, "truths must be >= 1"),
        (2, {"n_trials": 0}, "n_trials must be >= 1"),
        (2, {"n_samples": 0}, "n_samples must be in [1,"),
        (2, {"seed": -1}, "seed must be >= 0"),
    ],
)
def test_wrong_values_are_refused(rows, wanted, options, words):
    asked = {"epsilon": 1e-2, "delta": 0.1, **options}
    with pytest.raises((ValueError, TypeError)) as caught:
        plan_samples(rows, wanted, **asked)
    assert words in str(caught.value)


def test_another_dictionarys_truth_is_refused(rows):
    with pytest.raises(ValueError, match="another dictionary"):
        plan_samples(make_dictionary(6, 8, density_ratio=20.0), plant(rows, 2))
