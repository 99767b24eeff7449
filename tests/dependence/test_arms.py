"""What is claimed of each arm holds on the exact ones, and planted false claims come out violated."""

import numpy as np
import pandas as pd
import pytest

from markov_theory.dependence.arms import ARMS, LOG2, MEASURES
from markov_theory.dependence.decision import Flat, Free, Grows
from markov_theory.dependence.run import Task, judge, judge_all, measure_all, points_of, records, tasks_of
from markov_theory.dependence.series import EFFORTS, Setting
from markov_theory.verify.verdict import HOLDS, VIOLATED

QUICK = Setting("quick")
CLAIMS = {claim.label: claim for arm in ARMS.values() for claim in arm.claims}
EXACT = ("packed", "near", "pair", "spare")


@pytest.fixture(scope="module")
def table():
    return measure_all([task for task in tasks_of(ARMS, QUICK) if task.measure in EXACT], QUICK)


@pytest.mark.parametrize("label", ["1", "2", "4a", "4c"])
def test_exact_predictions_hold_and_their_rivals_are_refuted(table, label):
    judged = {one.claim.label: one for one in judge_all(table)}[label]
    assert judged.verdict == HOLDS
    assert judged.refuted


@pytest.mark.parametrize(
    ("label", "false"),
    [
        ("1", Free()),
        ("1", Flat()),
        ("1", Grows(3.6 / LOG2, 4.4 / LOG2)),  # 4 per doubling
        ("1", Grows(0.6 / LOG2, 1.4 / LOG2)),  # 1 per doubling
        ("2", Grows()),
        ("2", Free(level=400)),
        ("4a", Grows()),
        ("4a", Free(level=5.99)),  # two degrees of freedom
        ("4c", Free()),
        ("4c", Grows(0.8, 1.2)),  # +1 log T
        ("4c", Grows(3.0, 5.0)),
    ],
)
def test_planted_false_predictions_are_violated(table, label, false):
    claim = CLAIMS[label]
    assert judge(claim, points_of(claim, table), false) == VIOLATED


def test_nothing_was_sampled_on_the_exact_arms(table):
    assert (table.n_trials == 0).all()
    assert (table.low <= table.n_star).all()
    assert (table.n_star <= table.high).all()


def test_every_claim_speaks_of_a_measurement_of_its_arm():
    for arm in ARMS.values():
        keys = {measure.key for measure in arm.measures}
        assert {claim.measure for claim in arm.claims} == keys
        assert all(claim.label.startswith(str(arm.number)) for claim in arm.claims)
    assert len(MEASURES) == sum(len(arm.measures) for arm in ARMS.values())


def test_a_smaller_effort_is_part_of_a_larger_one():
    for measure in MEASURES.values():
        grids = [set(measure.grids[effort]) if measure.repeats[effort] else set() for effort in EFFORTS]
        assert grids[0] <= grids[1] <= grids[2]
        repeats = [measure.repeats[effort] for effort in EFFORTS]
        assert repeats == sorted(repeats)


def test_numbers_do_not_depend_on_the_workers():
    tasks = [Task("near", x, 0) for x in (4, 8)] + [Task("natural", 16, 0)]
    pd.testing.assert_frame_equal(measure_all(tasks, QUICK, 1), measure_all(tasks, QUICK, 2))


def test_what_is_fitted_is_what_the_claim_says(table):
    claim = CLAIMS["1"]
    points = points_of(claim, table)
    T = points.x.to_numpy(float)
    measured = table[table.measure == "packed"].n_star.to_numpy(float)
    np.testing.assert_allclose(points.value, measured * 3 * np.log(4) / (T + 3))
    (record,) = records([one for one in judge_all(table) if one.claim is claim])
    assert record["b_low"] < record["b"] < record["b_high"]


@pytest.mark.parametrize(
    ("options", "said"), [({"effort": "hasty"}, "effort"), ({"seed": -1}, "seed"), ({"delta": 1.0}, "delta")]
)
def test_settings_out_of_range_are_refused(options, said):
    with pytest.raises(ValueError, match=said):
        Setting(**options)
