"""The exact oracle against closed forms, brute force and itself."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multinomial

from markov_theory.verify import exact
from tests.strategies import distinct_rows, laws


@given(st.integers(0, 7), st.integers(1, 4))
def test_compositions_are_all_and_once(n_samples, n_outcomes):
    tables = exact.compositions(n_samples, n_outcomes)
    assert tables.shape == (math.comb(n_samples + n_outcomes - 1, n_outcomes - 1), n_outcomes)
    assert (tables.sum(axis=1) == n_samples).all()
    assert tables.min() >= 0
    assert len({tuple(row) for row in tables.tolist()}) == tables.shape[0]


def test_too_many_tables_are_refused():
    with pytest.raises(ValueError, match="too many"):
        exact.compositions(56, 16)


@given(st.integers(1, 4).flatmap(lambda J: laws(J, zeros=True)), st.integers(0, 8))
def test_probabilities_of_tables(law, n_samples):
    tables = exact.compositions(n_samples, law.size)
    probability = np.exp(exact.multinomial_log_pmf(tables, law[None, :]))[:, 0]
    assert probability == pytest.approx(multinomial.pmf(tables, n_samples, law), abs=1e-12)
    assert probability.sum() == pytest.approx(1)


@given(distinct_rows(st.integers(2, 4), st.integers(2, 3), zeros=True), st.integers(0, 5))
def test_one_to_one_failure_against_every_sequence(rows, n_samples):
    failure = np.zeros(rows.shape[0])
    for sequence in itertools.product(range(rows.shape[1]), repeat=n_samples):
        likelihood = np.prod(rows[:, list(sequence)], axis=1)
        for truth in range(rows.shape[0]):
            rivals = np.delete(likelihood, truth)
            if rivals.max() >= likelihood[truth] * (1 - 1e-12):
                failure[truth] += likelihood[truth]
    assert exact.one_to_one_failure(rows, n_samples) == pytest.approx(failure, abs=1e-12)


def test_ties_of_log_likelihoods_count_as_failures():
    # Mathematically equal likelihoods whose logarithms are summed in another order.
    rows = np.array([[0.1, 0.3, 0.6], [0.6, 0.1, 0.3], [0.3, 0.6, 0.1]])
    for n_samples in (3, 30, 60):
        tied = np.full((1, 3), n_samples // 3)
        chance = np.exp(exact.multinomial_log_pmf(tied, rows))[0]
        counts = exact.compositions(n_samples, 3)
        likelihood = counts @ np.log(rows).T
        beaten = (likelihood[:, [1, 2]].max(axis=1) >= likelihood[:, 0] + 1e-6) @ np.exp(
            exact.multinomial_log_pmf(counts, rows)
        )[:, 0]
        assert exact.one_to_one_failure(rows, n_samples)[0] >= beaten + chance[0] - 1e-12


def test_without_samples_everything_ties():
    assert exact.one_to_one_failure([[0.5, 0.5], [0.2, 0.8]], 0).tolist() == [1.0, 1.0]
    assert exact.one_to_one_failure([[0.5, 0.5]], 3).tolist() == [0.0]


@pytest.mark.parametrize(("n_tokens", "ratio"), [(2, 3.0), (3, 4.0), (4, 1.5), (5, 10.0)])
@pytest.mark.parametrize("n_samples", [0, 1, 2, 7, 12])
def test_packed_rows_by_generating_function(n_tokens, ratio, n_samples):
    rows = (np.ones((n_tokens, n_tokens)) + (ratio - 1) * np.eye(n_tokens)) / (n_tokens + ratio - 1)
    expected = exact.one_to_one_failure(rows, n_samples)
    assert expected == pytest.approx(exact.packed_failure(n_tokens, ratio, n_samples), abs=1e-12)


@given(distinct_rows(st.just(2), st.just(2)), st.floats(0, 1), st.integers(0, 30), st.floats(1e-3, 0.5))
def test_interval_and_segment_agree_on_two_outcomes(rows, weight, n_samples, epsilon):
    rows = rows[np.argsort(rows[:, 0])]
    truth = min(max((1 - weight) * rows[0, 0] + weight * rows[1, 0], rows[0, 0]), rows[1, 0])
    by_interval = exact.interval_failure(rows[0, 0], rows[1, 0], truth, n_samples, epsilon)
    by_segment = exact.segment_failure(rows, weight, n_samples, epsilon)
    # An estimate exactly ε away may fall on either side of ε by rounding.
    nearby = [
        exact.interval_failure(rows[0, 0], rows[1, 0], truth, n_samples, e * epsilon) for e in (1 - 1e-9, 1 + 1e-9)
    ]
    assert nearby[1] - 1e-9 <= by_interval <= nearby[0] + 1e-9
    assert nearby[1] - 1e-9 <= by_segment <= nearby[0] + 1e-9


def test_an_outcome_not_seen_can_cost_everything():
    # The estimate gives the rare outcome probability zero whenever it is not seen.
    assert exact.interval_failure(0, 1, 0.001, 60, 0.1) == pytest.approx(0.999**60, abs=1e-3)
    assert exact.segment_failure([[0, 1], [1, 0]], 0.001, 60, 0.1) == pytest.approx(0.999**60, abs=1e-3)


def test_flat_likelihoods_count_the_worst_mixture():
    rows = [[0.5, 0.3, 0.2], [0.5, 0.2, 0.3]]  # the first outcome says nothing
    assert exact.segment_failure(rows, 0.5, 0, 1e-3) == 1.0
    only_first = 0.5**2
    assert exact.segment_failure(rows, 0.5, 2, 0.0101) >= only_first
    assert exact.segment_failure(rows, 0.5, 2, 0.02) == 0.0


def test_upper_points_of_a_segment_on_three_outcomes_follow_wilks():
    rows, weight, n_samples = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]]), 0.5, 300
    assert exact.segment_failure(rows, weight, n_samples, 3.84 / (2 * n_samples)) == pytest.approx(0.05, abs=0.01)


def test_first_and_last():
    assert exact.first_and_last([0.5, 0.04, 0.06, 0.01, 0.02], 0.05) == (1, 3)
    assert exact.first_and_last([[0.5, 0], [0.04, 0.2], [0.01, 0.01]], 0.05) == (2, 2)
    assert exact.first_and_last([0.5, 0.01, 0.5], 0.05) == (1, math.inf)
    assert exact.first_and_last([0.5, 0.5], 0.05) == (math.inf, math.inf)
    assert exact.first_and_last([0.0, 0.0], 0.05) == (0, 0)


def test_a_failure_equal_to_delta_within_rounding_qualifies():
    curve = exact.failure_curve([[0.0, 1.0], [0.9, 0.1]], 3)
    assert curve[2].max() == pytest.approx(0.01, rel=1e-12)
    assert exact.first_and_last(curve, 0.01) == (2, 2)
