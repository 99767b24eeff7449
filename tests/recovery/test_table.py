"""Tables of recovery: intervals, the 50 % line, and bounds that can come out violated."""

import numpy as np
import pandas as pd
import pytest

from markov_theory.recovery.table import DELTAS, half_line, judge_bounds, phase_table
from markov_theory.success import failure_bounds
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, SILENT, VIOLATED


def cells(successes, n, trials=1000, uncertified=0, uncertified_failures=0, truth=0):
    return pd.DataFrame(
        {
            "s": 2, "truth": truth, "n": n, "estimator": "exact-l0", "trials": trials, "successes": successes,
            "uncertified": uncertified, "uncertified_failures": uncertified_failures,
        }
    )  # fmt: skip


def bound(n_samples, truth=0):
    return pd.DataFrame([{"s": 2, "truth": truth, "bound": "S5", "delta": d, "n_samples": n_samples} for d in DELTAS])


def verdicts(*arguments):
    return judge_bounds(*arguments).set_index("delta").verdict.to_dict()


def test_success_is_pooled_over_truths_with_its_interval():
    table = phase_table(pd.concat([cells([10, 90], [8, 64], 100), cells([30, 100], [8, 64], 100, truth=1)]))
    assert table.success.tolist() == [0.2, 0.95]
    low, high = failure_bounds(40, 200, 0.025)
    assert (table.low[0], table.high[0]) == (low, high)


def test_the_half_line_is_interpolated_in_log_n():
    phase = phase_table(cells([0, 250, 750, 1000], [10, 100, 1000, 10_000]))
    assert half_line(phase).n_half.iloc[0] == pytest.approx(10**2.5)


@pytest.mark.parametrize("successes", [[0, 1, 2], [600, 700, 900]])
def test_there_is_no_half_line_where_one_half_is_not_passed(successes):
    assert np.isnan(half_line(phase_table(cells(successes, [10, 100, 1000]))).n_half.iloc[0])


def test_a_true_bound_holds_and_one_that_is_too_small_is_violated():
    measured = cells([100, 800, 1000, 1000], [10, 100, 1000, 10_000])
    assert verdicts(measured, bound(1000)) == {0.5: HOLDS, 0.05: HOLDS}
    assert verdicts(measured, bound(100)) == {0.5: HOLDS, 0.05: VIOLATED}
    assert verdicts(measured, bound(10)) == {0.5: VIOLATED, 0.05: VIOLATED}


def test_a_bound_that_was_not_tried_says_nothing():
    assert verdicts(cells([1000], [10]), bound(np.inf)) == {0.5: SILENT, 0.05: SILENT}


def test_too_few_trials_decide_nothing():
    assert verdicts(cells([20], [10], trials=20), bound(5)) == {0.5: HOLDS, 0.05: INCONCLUSIVE}


def test_fits_without_a_certificate_count_against_every_verdict():
    """All failures are uncertified, so that none proves a violation; all successes are, so that none proves success."""
    assert verdicts(cells([0], [10], 1000, 1000, 1000), bound(5)) == {0.5: INCONCLUSIVE, 0.05: INCONCLUSIVE}
    assert verdicts(cells([1000], [10], 1000, 1000, 0), bound(5)) == {0.5: INCONCLUSIVE, 0.05: INCONCLUSIVE}
