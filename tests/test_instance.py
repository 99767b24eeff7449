"""Planted truths know their numbers; the support margin bounds every wrong support from below."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.families import make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.solvers.relaxation import information_projection


@given(st.integers(1, 12), st.integers(0, 50))
def test_planting_defaults(s, truth):
    planted = plant(make_dictionary(12, 9, density_ratio=5.0), s, truth=truth)
    assert planted.sparsity == s
    assert planted.alpha[planted.support].min() >= 0.5 / s - 1e-15
    assert planted.alpha.sum() == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(planted.target, planted.alpha @ planted.transitions)


def test_truths_and_seeds_differ():
    dictionary = make_dictionary(12, 9, density_ratio=5.0)
    planted = [plant(dictionary, 3, seed=seed, truth=truth).alpha for seed in (0, 1) for truth in (0, 1)]
    assert len({alpha.tobytes() for alpha in planted}) == 4


@pytest.mark.parametrize("s", [1, 2, 3])
def test_support_margin_is_below_every_wrong_support(s):
    planted = plant(make_dictionary(7, 9, density_ratio=30.0), s)
    truth = set(planted.support.tolist())
    wrong = [
        information_projection(planted.transitions[list(S)], planted.target)
        for size in range(1, s + 1)
        for S in combinations(range(7), size)
        if not truth <= set(S)
    ]
    assert 0 < planted.support_margin <= min(wrong) + 1e-12


def test_support_margin_of_one_row_is_the_projection_on_the_others():
    rows = [[0.9, 0.1], [0.3, 0.7], [0.1, 0.9]]
    planted = Instance(Dictionary(rows), [1, 0, 0])
    assert planted.support_margin == pytest.approx(float(kl_divergence(rows[0], rows[1])), abs=1e-9)


def test_more_rows_than_outcomes_leave_no_margin_inside_the_hull():
    planted = plant(make_dictionary(30, 4, density_ratio=5.0), 4)
    assert planted.support_margin < 1e-9
    assert not planted.in_small_epsilon_regime(1e-6)


def test_projection_is_infinite_where_no_row_reaches():
    assert information_projection([[1.0, 0.0]], [0.5, 0.5]) == np.inf


def test_weights_must_fit_the_dictionary():
    with pytest.raises(ValueError, match=r"alpha must have shape \(2,\), got \(3,\)"):
        Instance(Dictionary([[0.5, 0.5], [0.1, 0.9]]), [0.2, 0.3, 0.5])
    with pytest.raises(ValueError, match=r"sparsity must be in \[1, 2\], got 3"):
        plant(Dictionary([[0.5, 0.5], [0.1, 0.9]]), 3)
