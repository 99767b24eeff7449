"""The boundary: what is admitted, and that what is refused is named."""

import numpy as np
import pytest

from markov_theory import _checks


def test_single_precision_rows_are_admitted_and_sum_to_one_in_double():
    rows = np.array([[0.6, 0.4, 0.0]], dtype=np.float32)
    assert rows.astype(float).sum() > 1
    assert _checks.as_transitions(rows).sum() == 1.0


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.6, 0.5, 0.0], "must sum to 1 .* got 1.1"),
        ([0.3, 0.3], "must sum to 1"),
        ([1.5, -0.5], "non-negative, got -0.5 at index 1"),
        ([np.nan, 1.0], "finite, got nan at index 0"),
        ([], "at least one outcome"),
    ],
)
def test_what_is_not_a_law_is_refused(values, words):
    with pytest.raises(ValueError, match=words):
        _checks.as_laws(values)


@pytest.mark.parametrize("values", [[1.0], np.ones((0, 3)), np.ones((2, 0))])
def test_transitions_are_a_matrix(values):
    with pytest.raises(ValueError, match="matrix|outcome"):
        _checks.as_transitions(values)


def test_text_is_no_law():
    with pytest.raises(TypeError, match="array of numbers, got list"):
        _checks.as_laws(["half", "half"])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([1, 2], r"shape \(3,\) or \(R, 3\).* got \(2,\)"),
        ([1.5, 0, 0], "whole numbers >= 0, got 1.5 at index 0"),
        ([-1, 0, 0], "whole numbers"),
        ([np.nan, 0, 0], "whole numbers"),
        ([2.0**53, 2, 0], "at most 2"),
    ],
)
def test_what_are_not_counts_is_refused(values, words):
    with pytest.raises(ValueError, match=words):
        _checks.as_counts(values, 3)


@pytest.mark.parametrize("value", [0, 1, -0.1, 2, float("nan")])
def test_probabilities_lie_strictly_between_0_and_1(value):
    with pytest.raises(ValueError, match="delta must lie strictly between 0 and 1"):
        _checks.open_unit(value, "delta")


@pytest.mark.parametrize("value", [True, 1.0, "3", None])
def test_whole_numbers_are_whole(value):
    with pytest.raises(TypeError, match="n must be a whole number"):
        _checks.whole(value, "n")


@pytest.mark.parametrize("check", [_checks.positive, _checks.open_unit])
@pytest.mark.parametrize("value", [True, "1", None])
def test_numbers_are_numbers(check, value):
    with pytest.raises(TypeError, match="x must be a number"):
        check(value, "x")
