"""S6u: exact ℓ0 likelihood is ε-close at the bound, by enumeration; each half of the statement is needed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from markov_theory.bounds import S2, S3, S6
from markov_theory.bounds.known_support_sharp import S6One, S6Prime
from markov_theory.bounds.support import S5Plus, S5Prime
from markov_theory.bounds.unknown_support import UnknownSupport
from markov_theory.dictionary import Dictionary
from markov_theory.families import make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.verify.exact import interval_failure
from markov_theory.verify.mixtures import mixture_failure
from tests.strategies import distinct_rows, laws

TRIANGLE = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
CORNERS = np.array([[0.96, 0.02, 0.02], [0.02, 0.96, 0.02], [0.02, 0.02, 0.96]])
CLOSE_PAIR = np.array([[0.6, 0.3, 0.1], [0.6, 0.29, 0.11], [0.1, 0.3, 0.6]])


@pytest.mark.parametrize("epsilon", [0.3, 0.05, 0.01])
@pytest.mark.parametrize("delta", [0.05, 0.3])
@pytest.mark.parametrize("rows", [TRIANGLE, CORNERS])
def test_it_suffices_at_and_beyond_the_bound(rows, epsilon, delta):
    n_samples = UnknownSupport.n_samples(rows, [0.5, 0.5, 0], 2, epsilon, delta)
    for n in (n_samples, n_samples + 1, math.ceil(1.2 * n_samples)):
        assert float(mixture_failure(rows, [0.5, 0.5, 0], 2, int(n), epsilon).high) <= delta


@given(
    distinct_rows(st.integers(2, 4), st.just(3), zeros=True),
    st.data(),
    st.sampled_from([0.3, 0.1, 0.03]),
    st.sampled_from([0.05, 0.3]),
)
def test_it_suffices_on_drawn_truths(rows, data, epsilon, delta):
    s = data.draw(st.integers(1, 2))
    alpha = np.zeros(rows.shape[0])
    alpha[:s] = data.draw(laws(s, top=3))
    n_samples = UnknownSupport.n_samples(rows, alpha, s, epsilon, delta)
    assume(0 < n_samples <= 400)
    assert float(mixture_failure(rows, alpha, s, int(n_samples), epsilon).low) <= delta


@given(distinct_rows(st.just(2), st.just(2)), st.floats(0.05, 0.95), st.sampled_from([0.1, 0.01, 1e-3]))
def test_where_all_rows_are_mixed_it_is_the_bound_of_the_hull(rows, weight, epsilon):
    alpha = np.array([weight, 1 - weight])
    target = alpha @ rows
    n_samples = UnknownSupport.n_samples(rows, alpha, 2, epsilon, 0.05)
    known = min(bound.n_samples(rows, target, epsilon, 0.05) for bound in (S6Prime, S6One))
    assert known <= n_samples <= known * (1 + 1e-6) + 1
    if n_samples <= 1e5:
        low, high = sorted(rows[:, 0])
        assert interval_failure(low, high, min(max(target[0], low), high), int(n_samples), epsilon) <= 0.05


@pytest.mark.parametrize(("s", "epsilon"), [(1, 1e-2), (2, 1e-3), (4, 1e-4), (8, 1e-5)])
def test_between_what_each_half_asks_for(s, epsilon):
    truth = plant(make_dictionary(32, 64, density_ratio=50.0), s)
    n_samples = UnknownSupport.at(truth, epsilon=epsilon, delta=0.05)

    def halves(delta):
        found = min(bound.at(truth, delta=delta) for bound in (S5Plus, S5Prime))
        return max(found, min(bound.at(truth, epsilon=epsilon, delta=delta) for bound in (S6Prime, S6One)))

    assert halves(0.05) <= n_samples <= halves(0.025) + 1
    assert S3.at(truth, epsilon=epsilon, delta=0.05) <= n_samples <= S2.at(truth, epsilon=epsilon, delta=0.05) / 20


class TestFalseVersions:
    """Each false statement fails on the instance named, where the true one holds or is silent."""

    def test_for_supports_smaller_than_s(self):
        rows, alpha = np.array([[0.5, 0.5], [0.2, 0.8]]), [1.0, 0.0]
        truth = Instance(Dictionary(rows), alpha)
        assert S6.at(truth, epsilon=1e-4, delta=0.025) == 0
        false = S2.n_samples(2, 2, truth.density_ratio, truth.support_margin, 0.025)
        assert false == 371
        assert interval_failure(0.2, 0.5, 0.5, 371, 1e-4) == pytest.approx(0.378, abs=5e-4)
        assert float(mixture_failure(rows, alpha, 2, 371, 1e-4).low) > 0.05
        by_programs = int(S5Plus.n_samples(rows, alpha, 2, 0.05))
        assert float(mixture_failure(rows, alpha, 2, by_programs, 1e-4).low) > 0.05
        assert UnknownSupport.at(truth, sparsity=2, epsilon=1e-4, delta=0.05) == math.inf

    def test_without_finding_the_support(self):
        alpha, epsilon = np.array([0.5, 0.5, 0.0]), 0.05
        target = alpha @ CLOSE_PAIR
        assert S6Prime.n_samples(CLOSE_PAIR[:2], target, epsilon, 0.05) == 0  # all mixtures of the support are close
        assert float(mixture_failure(CLOSE_PAIR, alpha, 2, 5, epsilon).low) > 0.2
        assert UnknownSupport.n_samples(CLOSE_PAIR, alpha, 2, epsilon, 0.05) > 5

    def test_without_learning_on_the_support(self):
        alpha, epsilon = [0.5, 0.5, 0.0], 1e-3
        false = int(S5Plus.n_samples(CORNERS, alpha, 2, 0.05))
        assert float(mixture_failure(CORNERS, alpha, 2, false, epsilon).low) > 0.5


class TestEdges:
    def test_mixtures_that_are_all_close(self):
        assert UnknownSupport.n_samples(TRIANGLE, [0.5, 0.5, 0], 2, 5.0, 0.05) == 0
        assert UnknownSupport.n_samples([[0.3, 0.7]], [1.0], 1, 1e-9, 0.05) == 0

    def test_a_single_row_is_learned_once_it_is_named(self):
        truth = Instance(Dictionary(TRIANGLE), [1, 0, 0])
        named = min(bound.at(truth, delta=0.05) for bound in (S5Plus, S5Prime))
        assert UnknownSupport.at(truth, epsilon=1e-9, delta=0.05) == named

    def test_a_truth_that_other_rows_can_mix(self):
        rows = np.vstack([TRIANGLE, TRIANGLE[0]])
        assert UnknownSupport.n_samples(rows, [0.5, 0.5, 0, 0], 2, 1e-3, 0.05) == math.inf

    def test_sparsity_above_the_number_of_rows(self):
        given = {"transitions": TRIANGLE, "alpha": [0.2, 0.3, 0.5], "epsilon": 1e-2, "delta": 0.05}
        assert UnknownSupport.n_samples(sparsity=3, **given) == UnknownSupport.n_samples(sparsity=9, **given)

    def test_wrong_input_is_refused(self):
        with pytest.raises(ValueError, match="epsilon"):
            UnknownSupport.n_samples(TRIANGLE, [0.5, 0.5, 0], 2, 0.0, 0.05)
        with pytest.raises(ValueError, match="delta"):
            UnknownSupport.n_samples(TRIANGLE, [0.5, 0.5, 0], 2, 0.1, 0.0)
        with pytest.raises(TypeError, match="sparsity"):
            UnknownSupport.n_samples(TRIANGLE, [0.5, 0.5, 0], 2.5, 0.1, 0.05)

    def test_what_it_speaks_of(self):
        assert (UnknownSupport.event, UnknownSupport.kind, UnknownSupport.speaks_of) == ("kl", "upper", ("l0",))
