"""S5, S5+, S5', S5L: exact failures stay below their sums at every N, each factor is needed, the order is right."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from markov_theory import divergences as dv
from markov_theory.bounds import O3, O4, S2
from markov_theory.bounds import support as families
from markov_theory.bounds.support import S5, S5L, S5Plus, S5Prime, other_supports, without_a_row
from markov_theory.bounds.support_programs import closest_affinity_bounds, log_regret, wrong_supports
from markov_theory.dictionary import Dictionary
from markov_theory.families import make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.verify.exact import first_and_last, one_to_one_failure, packed_failure
from markov_theory.verify.exact_support import support_failure
from tests.strategies import dictionaries, distinct_rows, failure_levels, laws, sparse_truths

TRIANGLE = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
CORNERS = np.array([[0.97, 0.02, 0.01], [0.0, 0.96, 0.04], [0.03, 0.0, 0.97], [0.2, 0.05, 0.75]])
FLAT = np.array([[1 / 3, 1 / 3, 1 / 3], [0.5, 0.4, 0.1], [0.4, 0.1, 0.5]])
MIRRORED = np.array([[0.55, 0.45], [0.45, 0.55]])
OPPOSED = np.array([[0.9, 0.1], [0.1, 0.9]])
NAMED = [
    (TRIANGLE, (0.5, 0.5, 0), 2),
    (TRIANGLE, (1, 0, 0), 2),
    (TRIANGLE, (0, 1, 0), 1),
    (CORNERS, (0.5, 0.5, 0, 0), 2),
    (CORNERS, (0.3, 0.7, 0, 0), 2),
    (OPPOSED, (0.4, 0.6), 2),
    (OPPOSED, (0, 1), 1),
    (np.array([[0.95, 0.05], [0.3, 0.7], [0.1, 0.9]]), (1, 0, 0), 1),
    (np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.4, 0.0, 0.6]]), (0.5, 0.5, 0), 2),
]


def peak(n_tokens: int, ratio: float = 4.0) -> np.ndarray:
    """T rows over T outcomes: a at the own outcome, b elsewhere, a = ratio·b."""
    return (np.ones((n_tokens, n_tokens)) + (ratio - 1) * np.eye(n_tokens)) / (n_tokens + ratio - 1)


def sums(rows, alpha, s):
    """The sums of S5+ and, where |S| = s, of S5'."""
    found = {"S5+": without_a_row(rows, alpha, s)}
    return found | ({"S5'": other_supports(rows, alpha)} if np.count_nonzero(alpha) == s else {})


def uppers(rows, alpha, s, delta, margin=None):
    truth = Instance(Dictionary(rows), alpha)
    given = {"sparsity": s, "delta": delta}
    margin = {} if margin is None else {"support_margin": margin}
    return {bound.label: bound.at(truth, **given, **margin) for bound in (S5, S5Plus, S5Prime)}


class TestExactly:
    """Against enumeration of all tables of counts."""

    @pytest.mark.parametrize("delta", [1e-6, 0.05, 0.3])
    @pytest.mark.parametrize(("rows", "alpha", "s"), NAMED)
    def test_each_bound_suffices_at_and_beyond_itself(self, rows, alpha, s, delta):
        tried = 0
        for label, n_samples in uppers(rows, np.array(alpha), s, delta).items():
            for n in {n_samples, n_samples + 1, math.ceil(1.3 * n_samples)} if n_samples < 800 else ():
                tried += 1
                assert float(support_failure(rows, alpha, s, int(n)).high) <= delta, label
        assert tried > 0

    @given(sparse_truths(), st.sampled_from([1, 2, 3, 5, 8, 13, 30, 60]))
    def test_the_sums_hold_at_every_n(self, truth, n_samples):
        rows, alpha, s = truth
        exact = float(support_failure(rows, alpha, s, n_samples).low)
        for label, found in sums(rows, alpha, s).items():
            assert exact <= math.exp(min(0.0, found.log_failure(n_samples))) * (1 + 1e-9), label

    @given(sparse_truths(), st.sampled_from([0.01, 0.1, 0.5]))
    def test_the_order_of_bounds_and_exact_numbers(self, truth, delta):
        rows, alpha, s = truth
        upper = min(uppers(rows, alpha, s, delta).values())
        assume(upper <= 120)
        curve = [float(support_failure(rows, alpha, s, n).low) for n in range(int(upper) + 1)]
        assert first_and_last(curve, delta)[1] <= upper

    @given(sparse_truths(), st.sampled_from([0.05, 0.2]))
    def test_lower_bound_is_below_what_two_truths_need(self, truth, delta):
        rows, alpha, s = truth
        lower = S5L.n_samples(rows, alpha, s, delta)
        assume(0 < lower <= 150)
        q = alpha @ rows
        worst = 0.0
        for rival in families._rivals(rows, alpha):
            pair = np.array([q, rival])
            assert O4.n_samples(pair, dv.margin(pair), delta) <= lower + 1
            worst = max(worst, one_to_one_failure(pair, int(lower) - 1).max())
        assert worst > delta  # the best test between the two laws still fails one sample below


class TestFalseVersions:
    """Each false statement fails on the instance named, where the true one holds."""

    def test_prime_without_the_regret(self):
        q, others = FLAT[0], FLAT[1:]
        tilts = np.linspace(0.05, 0.95, 19)
        false = math.exp(closest_affinity_bounds(others, q, tilts).min())
        assert false == pytest.approx(0.9923, abs=5e-5)
        assert (others.max(axis=0) > q).all()  # whatever is seen at N = 1, some law of S' gives it more than q: P = 1
        true = closest_affinity_bounds(others, q, tilts) + tilts * log_regret(1, 2)
        assert math.exp(true.min()) >= 1

    def test_plus_without_the_regret(self):
        found = without_a_row(FLAT, np.array([1.0, 0, 0]), 2)
        assert float(support_failure(FLAT, [1, 0, 0], 2, 1).low) == pytest.approx(1)
        assert math.exp(replace(found, n_parts=1).log_failure(1)) < 0.9925
        rows = np.array([[0.48, 0.26, 0.26], [0.5, 0.01, 0.49], [0.37, 0.43, 0.2]])
        found = without_a_row(rows, np.array([1.0, 0, 0]), 2)
        assert float(support_failure(rows, [1, 0, 0], 2, 2).low) == pytest.approx(1)
        assert math.exp(replace(found, n_parts=1).log_failure(2)) < 0.997

    def test_plus_without_the_number_of_supports(self):
        rows = np.array([[0.01, 0.84, 0.15], [0.13, 0.87, 0.0], [0.88, 0.01, 0.11], [0.1, 0.2, 0.7]])
        found = without_a_row(rows, np.eye(4)[0], 1)
        for n_samples, false in ((1, 0.97), (2, 0.94)):
            assert math.exp(replace(found, log_count=0.0).log_failure(n_samples)) < false
            assert float(support_failure(rows, np.eye(4)[0], 1, n_samples).low) == pytest.approx(1)

    def test_plus_with_the_margin_for_the_exponent(self):
        false = math.ceil(math.log(100) / Instance(Dictionary(MIRRORED), [1, 0]).support_margin)
        assert false <= 231
        assert float(support_failure(MIRRORED, [1, 0], 1, false).low) > 0.05
        assert float(support_failure(MIRRORED, [1, 0], 1, int(S5Plus.n_samples(MIRRORED, [1, 0], 1, 0.01))).low) <= 0.01

    def test_prime_for_the_nearest_support_alone(self):
        found = other_supports(peak(16), np.eye(16)[0])
        one = replace(found, log_affinities=found.log_affinities[:1])
        assert packed_failure(16, 4.0, int(one.n_samples(0.05))) == pytest.approx(0.0726, abs=6e-4)
        assert packed_failure(16, 4.0, int(found.n_samples(0.05))) <= 0.05

    def test_prime_for_supports_of_size_s_alone(self):
        # With s = T there is no other support of size s, and one row alone is the best at N = 1 all the same.
        alpha = np.array([0.5, 0.5])
        false = wrong_supports(OPPOSED, alpha @ OPPOSED, [], 0.0, 2).n_samples(0.05)
        assert false == 0
        assert float(support_failure(OPPOSED, alpha, 2, 1).low) == 1
        true = S5Prime.at(Instance(Dictionary(OPPOSED), alpha), delta=0.05)
        assert float(support_failure(OPPOSED, alpha, 2, int(true)).low) <= 0.05

    def test_s5_as_s2_at_the_margin(self):
        gamma = float(dv.kl_divergence(*OPPOSED))
        assert S2.n_samples(2, 1, 9.0, gamma, 0.05) == 0  # no KL is above it, but a wrong row's is equal to it
        assert one_to_one_failure(OPPOSED, 1).max() == pytest.approx(0.1)
        assert one_to_one_failure(OPPOSED, int(S5.n_samples(2, 1, 9.0, gamma, 0.05))).max() <= 0.05

    def test_a_sixth_of_s5(self):
        n_samples = S5.n_samples(2, 1, dv.density_ratio(MIRRORED), dv.margin(MIRRORED), 0.01)
        assert one_to_one_failure(MIRRORED, math.ceil(n_samples / 6)).max() > 0.027
        assert one_to_one_failure(MIRRORED, int(n_samples)).max() <= 0.01

    def test_s5_without_the_number_of_supports(self):
        gamma = dv.margin(peak(256))
        false = math.ceil(4 * dv.kappa(4.0) / gamma * math.log(1 / 0.5))
        assert packed_failure(256, 4.0, false) > 0.53
        assert packed_failure(256, 4.0, int(S5.n_samples(256, 1, 4.0, gamma, 0.5))) <= 0.5


class TestAgainstEachOther:
    @given(dictionaries(single=False), st.data(), failure_levels())
    def test_programs_are_never_above_nets(self, rows, data, delta):
        s = data.draw(st.integers(1, rows.shape[0]))
        alpha = np.zeros(rows.shape[0])
        alpha[:s] = 0.5 / s + 0.5 * data.draw(laws(s))
        assume(Instance(Dictionary(rows), alpha).support_margin > 1e-9)
        found = uppers(rows, alpha, s, delta)
        assert max(found["S5+"], found["S5'"]) <= found["S5"]

    @given(distinct_rows(st.integers(2, 6), st.integers(2, 5), zeros=True), failure_levels())
    def test_for_single_rows_the_worst_truth_needs_what_chernoff_says(self, rows, delta):
        T = rows.shape[0]
        chernoff = O3.n_samples(rows, delta)
        worst = max(other_supports(rows, alpha).n_samples(delta) for alpha in np.eye(T))
        assert chernoff <= worst <= 1.02 * chernoff + 1  # the grid of λ

    def test_prime_is_the_better_one_where_supports_can_be_listed(self):
        truth = plant(make_dictionary(24, 48, density_ratio=50.0), 2)
        assert S5L.at(truth, delta=0.05) < S5Prime.at(truth, delta=0.05) < S5Plus.at(truth, delta=0.05)

    def test_the_closed_form_where_there_are_too_many(self, monkeypatch):
        truth = plant(make_dictionary(12, 24, density_ratio=50.0), 3)
        listed = S5Prime.at(truth, delta=0.05)
        monkeypatch.setattr(families, "MAX_SUPPORTS", 100)
        closed = S5Prime.at(truth, delta=0.05)
        assert listed < closed < S5.at(truth, delta=0.05)
        rate = truth.support_margin / (2 * dv.kappa(truth.density_ratio))
        excess = [rate * n - math.log(220 / 0.05) - log_regret(int(n), 3) / 2 for n in (closed, closed - 1)]
        assert excess[0] >= 0 > excess[1]


class TestEdges:
    def test_a_single_row_needs_no_samples(self):
        alone = Instance(Dictionary([[0.3, 0.7]]), [1.0])
        assert {bound.at(alone, delta=0.05) for bound in (S5, S5Plus, S5Prime, S5L)} == {0.0}
        assert support_failure([[0.3, 0.7]], [1], 1, 0).high == 0

    def test_duplicates_and_representations_without_a_row(self):
        rows = np.vstack([TRIANGLE, TRIANGLE[0]])
        assert set(uppers(rows, np.array([0.5, 0.5, 0, 0]), 2, 0.05).values()) == {math.inf}
        inside = np.vstack([TRIANGLE, TRIANGLE.mean(axis=0)])
        assert S5Plus.n_samples(inside, [0, 0, 0, 1], 3, 0.05) == math.inf

    def test_rows_with_outcomes_of_their_own(self):
        rows = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0], [0.0, 0.5, 0.0, 0.5]])
        alpha = np.array([0.5, 0.5, 0])
        found = uppers(rows, alpha, 2, 0.05)
        assert found["S5"] == math.inf  # c = ∞
        for n_samples in (found["S5+"], found["S5'"]):
            # S is named once outcomes 0 and 2 have both been seen.
            assert 0.75**n_samples <= 0.05 < 0.75 ** (n_samples / 4)
        assert S5Plus.n_samples([[1, 0], [0, 1]], [1, 0], 1, 0.05) == 1

    def test_more_samples_than_doubles_count(self):
        rows = np.array([[0.5, 0.5], [0.5 + 1e-9, 0.5 - 1e-9]])
        n_samples = S5Plus.n_samples(rows, [1, 0], 1, 0.05)
        assert n_samples == pytest.approx(O3.n_samples(rows, 0.05), rel=1e-4)
        assert 0.1 * n_samples < S5L.n_samples(rows, [1, 0], 1, 0.05) < n_samples

    def test_truths_that_a_statement_does_not_speak_of(self):
        truth = Instance(Dictionary(TRIANGLE), [1, 0, 0])
        assert S5Prime.at(truth, sparsity=2, delta=0.05) == math.inf
        assert S5L.at(truth, sparsity=2, delta=0.05) == 0
        assert math.isfinite(S5Plus.at(truth, sparsity=2, delta=0.05))
        with pytest.raises(ValueError, match="sparsity must be at least the 2 rows of alpha, got 1"):
            S5Plus.n_samples(TRIANGLE, [0.5, 0.5, 0], 1, 0.05)

    def test_a_larger_class_needs_no_fewer(self):
        needed = [S5Plus.n_samples(CORNERS, [1, 0, 0, 0], s, 0.05) for s in (1, 2, 3, 4, 9)]
        assert needed[0] <= needed[1] <= needed[2]
        assert needed[3] == needed[4]  # s := min(s, T)

    def test_a_solver_with_a_gap(self):
        plain = S5.n_samples(10, 2, 4.0, 0.1, 0.05)
        assert plain < S5.n_samples(10, 2, 4.0, 0.1, 0.05, gap=1e-3) < math.inf
        assert S5.n_samples(10, 2, 4.0, 0.1, 0.05, gap=0.1) == math.inf

    def test_no_lower_bound_at_large_failure_levels_or_for_all_rows(self):
        assert S5L.n_samples(TRIANGLE, [0.5, 0.5, 0], 2, 0.5) == 0
        assert S5L.n_samples(OPPOSED, [0.5, 0.5], 2, 0.05) == 0

    @pytest.mark.parametrize("alpha", [(0.3, 0.7, 0, 0), (0, 0.7, 0.3, 0), (0.5, 0, 0.5, 0)])
    def test_duplicates_of_mixed_rows_cannot_be_told_apart(self, alpha):
        rows = np.vstack([TRIANGLE[:2], TRIANGLE[0], TRIANGLE[2]])
        assert S5L.n_samples(rows, alpha, 2, 0.05) == math.inf
        assert S5L.n_samples(rows, [0, 0.6, 0, 0.4], 2, 0.05) < 1e3  # other rows' duplicates are no matter
        assert S5L.n_samples(rows, alpha, 2, 0.5) == 0

    def test_rows_that_rounding_may_have_moved_give_a_large_number(self):
        rows = np.vstack([TRIANGLE, TRIANGLE[0] * [1 - 2**-52, 1, 1]])
        assert 1e24 < S5L.n_samples(rows, [0.3, 0.7, 0, 0], 2, 0.05) < math.inf

    def test_wrong_input_is_refused(self):
        with pytest.raises(ValueError, match=r"alpha must have shape \(3,\)"):
            S5Plus.n_samples(TRIANGLE, [0.5, 0.5], 2, 0.05)
        with pytest.raises(ValueError, match="delta"):
            S5Plus.n_samples(TRIANGLE, [0.5, 0.5, 0], 2, 1.0)
        with pytest.raises(ValueError, match="support_margin must be >= 0"):
            S5.n_samples(10, 2, 4.0, -0.1, 0.05)
        with pytest.raises(ValueError, match="gap must be >= 0"):
            S5.n_samples(10, 2, 4.0, 0.1, 0.05, gap=-1.0)

    def test_what_they_speak_of(self):
        assert {bound.event for bound in (S5, S5Plus, S5Prime, S5L)} == {"support"}
        assert {bound.speaks_of for bound in (S5, S5Plus, S5Prime)} == {("l0",)}
        assert (S5L.kind, S5L.speaks_of) == ("lower", ("any",))
