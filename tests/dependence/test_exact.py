"""The exact arms against direct enumeration, where there are few rows and few samples."""

import numpy as np
import pytest

from markov_theory.dependence import mixtures, near, packed
from markov_theory.dependence.series import BLOCK, Setting, least_from_where
from markov_theory.verify.exact import (
    failure_curve,
    first_and_last,
    one_to_one_failure,
    packed_failure,
    segment_failure,
)
from markov_theory.verify.exact_support import support_failure
from markov_theory.verify.mixtures import mixture_failure

SETTING = Setting("quick")


def peak_rows(T, ratio=4.0):
    return (np.ones((T, T)) + (ratio - 1) * np.eye(T)) / (T + ratio - 1)


@pytest.mark.parametrize(("T", "first"), [(2, 0), (3, 0), (8, 25), (64, 280)])
def test_packed_failures_at_many_n_are_those_at_each(T, first):
    n = np.arange(first, first + 8)
    np.testing.assert_allclose(
        packed.packed_failures(T, 4.0, n), [packed_failure(T, 4.0, int(k)) for k in n], atol=1e-11
    )


@pytest.mark.parametrize(("T", "n_max"), [(2, 40), (3, 30), (4, 22)])
def test_packed_n_star_is_that_of_the_enumeration(T, n_max):
    """Failure stays below δ beyond n_max: there the union bound is."""
    found = packed.measure(T, 0, SETTING)
    assert first_and_last(failure_curve(peak_rows(T), n_max), 0.05)[1] == found.n_star == found.low == found.high
    b = 1 / (T + 3)
    assert found.facts["gamma"] == pytest.approx(3 * b * np.log(4))


@pytest.mark.parametrize("n", [np.array([], dtype=int), np.arange(BLOCK + 1)])
def test_packed_failures_refuse_other_than_a_block(n):
    with pytest.raises(ValueError, match="consecutive"):
        packed.packed_failures(4, 4.0, n)


@pytest.mark.parametrize("n", [1, 4, 8, 11])
def test_the_near_pair_decides_between_its_limits(n):
    """J = 8 outcomes; coins so far apart that few samples matter, and the far rows with them."""
    rows = near.near_pair_rows(4, 4, shift=0.3, depth=0.95)
    np.testing.assert_allclose(rows.sum(axis=1), 1)
    pair = one_to_one_failure([[0.8, 0.2], [0.2, 0.8]], n).max()
    affinity = np.sqrt(rows) @ np.sqrt(rows).T
    far = max(sum(affinity[v, w] ** n for w in range(4) if {v, w} != {0, 1} and v != w) for v in range(4))
    exact = one_to_one_failure(rows, n).max()
    assert pair - 1e-10 <= exact <= pair + far + 1e-10


def test_near_pair_limits_hold_n_star_of_the_enumeration():
    found = near.measure_pair(4, SETTING, 4, 0.3, 0.95)
    curve = failure_curve(near.near_pair_rows(4, 4, 0.3, 0.95), 12)
    assert found.low <= first_and_last(curve, 0.05)[1] <= found.high


@pytest.mark.parametrize("T", [3, 64, 512])
def test_the_far_rows_are_as_far_as_the_arm_supposes(T):
    found = near.measure(T, 0, SETTING)
    assert found.facts["far"] >= 60 * found.facts["near"]
    assert found.facts["far_failure"] < 0.01 * SETTING.delta
    assert found.low == found.high


@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_two_mixed_rows_alone_against_the_segment(n):
    rows = mixtures.walsh_rows(2, 4)
    found = mixtures.known_pair_failures(np.array([n]), 0.02)[0]
    assert found == pytest.approx(segment_failure(rows, 0.5, n, 0.02), abs=1e-10)


@pytest.mark.parametrize("n", [4, 12, 24])
def test_exact_l0_lies_between_the_limits_of_the_right_size(n):
    rows, epsilon = mixtures.walsh_rows(3, 4), 0.02
    alpha = np.array([0.5, 0.5, 0])
    exact = mixture_failure(rows, alpha, 2, n, epsilon)
    wrong = np.exp(min(0.0, mixtures.other_pairs(rows).log_failure(n)))
    assert support_failure(rows, alpha, 2, n).low <= wrong + 1e-12
    known = mixtures.known_pair_failures(np.array([n]), epsilon)[0]
    assert known - 1e-9 <= exact.high
    assert exact.low <= known + wrong + 1e-9


@pytest.mark.parametrize("n", [6, 20, 30])
def test_exact_l0_lies_between_bonferronis_limits(n):
    """The uniform row and the three Walsh rows over four outcomes."""
    rows = np.vstack([np.full((1, 4), 0.25), mixtures.walsh_rows(3, 4)])
    exact = mixture_failure(rows, np.array([1, 0, 0, 0]), 2, n, 0.05)
    low, independent, high = (float(part[0]) for part in mixtures.spare_failure(np.array([n]), 3, 0.05))
    assert low - 1e-9 <= exact.high
    assert exact.low <= high + 1e-9
    assert low <= independent <= high


def test_bonferronis_limits_say_something_where_n_star_is():
    found = mixtures.measure_spare(32, 0, SETTING)
    assert found.low <= found.n_star <= found.high <= 1.02 * found.low


def test_an_epsilon_beyond_the_spare_rows_is_refused():
    with pytest.raises(ValueError, match="epsilon"):
        mixtures.spare_failure(np.array([5]), 3, 1.0)


@pytest.mark.parametrize("last", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_the_last_failing_n_is_found_across_blocks(last):
    """Failure comes down, and up again at one N."""

    def failures(n):
        return np.where((n < last // 2) | (n == last), 1.0, 0.0)

    assert least_from_where(failures, 1000, 0.05) == last + 1
