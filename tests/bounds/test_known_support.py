"""S6: its inequality holds exactly, its constants cannot be cut, its geometry is what the proof uses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from markov_theory.bounds import S3, S6
from markov_theory.bounds.known_support import _chernoff_loss, hull_geometry
from markov_theory.bounds.sparse import hull_directions
from markov_theory.verify.exact import interval_failure, segment_failure
from tests.strategies import accuracies, distinct_rows, laws

OPPOSED = np.array([[0.2, 0.8], [0.8, 0.2]])


@pytest.mark.parametrize(("epsilon", "n_samples"), [(1e-2, 1264), (1e-3, 8540), (1e-4, 74046)])
def test_on_opposed_rows(epsilon, n_samples):
    assert S6.n_samples(OPPOSED, [0.5, 0.5], epsilon, 0.05) == n_samples
    assert interval_failure(0.2, 0.8, 0.5, n_samples, epsilon) <= 0.05
    assert n_samples > S3.n_samples(OPPOSED, epsilon, 0.05)


def test_a_sixth_is_false():
    n_samples = math.floor(S6.n_samples(OPPOSED, [0.5, 0.5], 1e-3, 0.05) / 6)
    assert n_samples == 1423
    assert interval_failure(0.2, 0.8, 0.5, n_samples, 1e-3) == pytest.approx(0.0897, abs=5e-5)


def test_without_leverage_it_is_false():
    rows, target = np.array([[0.0, 1.0], [1.0, 0.0]]), [0.001, 0.999]
    n_samples = math.ceil((1 + math.sqrt(2 * math.log(1 / 0.05))) ** 2 / (2 * 0.1))
    assert n_samples == 60
    assert interval_failure(0, 1, 0.001, n_samples, 0.1) == pytest.approx(0.942, abs=5e-4)
    true = S6.n_samples(rows, target, 0.1, 0.05)
    assert interval_failure(0, 1, 0.001, int(true), 0.1) <= 0.05


@given(
    distinct_rows(st.integers(2, 4), st.just(2), zeros=True),
    st.floats(0.01, 0.99),
    st.sampled_from([0.1, 0.01, 1e-3]),
    st.sampled_from([1e-3, 0.05, 0.5]),
)
def test_suffices_for_two_outcomes(rows, weight, epsilon, delta):
    low, high = rows[:, 0].min(), rows[:, 0].max()
    truth = low + weight * (high - low)
    n_samples = S6.n_samples(rows, [truth, 1 - truth], epsilon, delta)
    assume(n_samples <= 3e5)
    for n in {int(n_samples), int(1.01 * n_samples)}:
        assert interval_failure(low, high, truth, n, epsilon) <= delta


@given(distinct_rows(st.just(2), st.just(3)), st.floats(0, 1), st.sampled_from([0.3, 0.1, 0.05]))
def test_suffices_on_a_segment_of_laws_on_three_outcomes(rows, weight, epsilon):
    target = (1 - weight) * rows[0] + weight * rows[1]
    n_samples = S6.n_samples(rows, target, epsilon, 0.2)
    assume(n_samples <= 250)
    assert segment_failure(rows, weight, int(n_samples), epsilon) <= 0.2


@given(distinct_rows(st.integers(2, 5), st.integers(2, 5)), st.data())
def test_leverage_is_the_largest_relative_move(rows, data):
    alpha = data.draw(laws(rows.shape[0]))
    law = alpha @ rows
    geometry, basis = hull_geometry(rows, law), hull_directions(rows, law)
    moves = np.sqrt(law)[:, None] * basis / np.linalg.norm(basis, axis=0)  # Δ with ‖Δ/√q‖ = 1
    assert (np.abs(moves / law[:, None]) <= geometry.leverage * (1 + 1e-9)).all()
    worst = int(np.argmax((basis**2).sum(axis=1) / law))
    move = np.sqrt(law) * (basis @ basis[worst]) / np.linalg.norm(basis[worst])
    assert move[worst] / law[worst] == pytest.approx(geometry.leverage)
    assert geometry.leverage**2 >= geometry.dimension * (1 - 1e-9)


@given(st.floats(1e-18, 0.999999))
def test_the_matrix_chernoff_equation_is_solved_from_above(exponent):
    theta = _chernoff_loss(exponent)
    assert 0 < theta <= 1
    series = sum(theta**k / (k * (k - 1)) for k in range(2, 40))
    value = series if theta < 0.3 else theta + (1 - theta) * math.log1p(-theta)
    assert value == pytest.approx(exponent, rel=1e-9)


@given(accuracies())
def test_small_accuracies_approach_the_leading_term(epsilon):
    n_samples = S6.n_samples(OPPOSED, [0.5, 0.5], epsilon, 0.05)
    leading = (1 + math.sqrt(2 * math.log(40))) ** 2 / (2 * epsilon)
    if n_samples:
        assert n_samples >= leading
    if epsilon < 1e-7:
        assert n_samples <= 1.02 * leading


class TestEdges:
    def test_a_hull_that_is_a_point(self):
        assert S6.n_samples([[0.3, 0.7]], [0.3, 0.7], 1e-9, 0.05) == 0
        assert S6.n_samples([[0.3, 0.7], [0.3, 0.7]], [0.3, 0.7], 1e-9, 0.05) == 0

    def test_a_hull_within_the_accuracy(self):
        assert S6.n_samples(OPPOSED, [0.5, 0.5], 0.3, 0.05) == 0
        assert S6.n_samples(OPPOSED, [0.5, 0.5], 0.2, 0.05) > 0

    def test_an_outcome_that_the_truth_cannot_give(self):
        rows = [[0.5, 0.5, 0.0], [0.5, 0.4, 0.1]]
        assert S6.n_samples(rows, rows[0], 1e-3, 0.05) == math.inf
        assert math.isfinite(S6.n_samples(rows, np.mean(rows, axis=0), 1e-3, 0.05))

    def test_an_outcome_that_nobody_can_give(self):
        padded = np.column_stack([OPPOSED, np.zeros(2)])
        assert S6.n_samples(padded, [0.5, 0.5, 0], 1e-3, 0.05) == 8540

    def test_more_samples_than_doubles_count(self):
        n_samples = S6.n_samples(OPPOSED, [0.5, 0.5], 1e-20, 0.05)
        assert n_samples == pytest.approx((1 + math.sqrt(2 * math.log(40))) ** 2 / 2e-20, rel=1e-6)

    def test_a_truth_outside_the_hull_is_refused(self):
        with pytest.raises(ValueError, match="mixture"):
            S6.n_samples(OPPOSED, [0.1, 0.9], 1e-3, 0.05)
        with pytest.raises(ValueError, match="shape"):
            S6.n_samples(OPPOSED, [0.1, 0.8, 0.1], 1e-3, 0.05)
