"""O1–O5 and O2+ against exact enumeration: the bounds hold, and their planted false versions do not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from markov_theory import divergences as dv
from markov_theory.bounds import O1, O2, O3, O4, O5, O2Plus
from markov_theory.bounds.exponents import pairwise_chernoff
from markov_theory.bounds.one_to_one import mean_kappa
from markov_theory.verify.exact import failure_curve, first_and_last, one_to_one_failure, packed_failure
from tests.strategies import dictionaries, distinct_rows, failure_levels, positive_dictionaries

MIRRORED = np.array([[0.55, 0.45], [0.45, 0.55]])
NEARLY_SURE = np.array([[0.9, 0.1], [1.0, 0.0]])
LOPSIDED = np.array([[0.94025802, 0.05974198], [0.98820274, 0.01179726]])


def peak(n_tokens: int, ratio: float = 4.0) -> np.ndarray:
    """T rows over T outcomes: a at the own outcome, b elsewhere, a = ratio·b."""
    return (np.ones((n_tokens, n_tokens)) + (ratio - 1) * np.eye(n_tokens)) / (n_tokens + ratio - 1)


def upper_bounds(rows: np.ndarray, delta: float) -> dict[str, float]:
    T, c, gamma = rows.shape[0], dv.density_ratio(rows), dv.margin(rows)
    return {
        "O1": O1.n_samples(n_tokens=T, log_ratio=math.log(c), margin=gamma, delta=delta),
        "O2": O2.n_samples(n_tokens=T, density_ratio=c, margin=gamma, delta=delta),
        "O2+": O2Plus.n_samples(n_tokens=T, density_ratio=c, margin=gamma, delta=delta),
        "O3": O3.n_samples(transitions=rows, delta=delta),
    }


def lower_bounds(rows: np.ndarray, delta: float) -> dict[str, float]:
    return {
        "O4": O4.n_samples(transitions=rows, margin=dv.margin(rows), delta=delta),
        "O5": O5.n_samples(transitions=rows, delta=delta),
    }


@pytest.mark.parametrize("delta", [0.01, 0.05, 0.2])
@pytest.mark.parametrize("rows", [MIRRORED, NEARLY_SURE, LOPSIDED, peak(3), peak(4)])
def test_upper_bounds_suffice(rows, delta):
    for label, n_samples in upper_bounds(rows, delta).items():
        if math.isfinite(n_samples) and n_samples <= 2000 / rows.shape[1] ** 2:
            assert one_to_one_failure(rows, int(n_samples)).max() <= delta, label


@pytest.mark.parametrize("n_tokens", [16, 32, 128])
def test_upper_bounds_suffice_on_many_packed_rows(n_tokens):
    for label, n_samples in upper_bounds(peak(n_tokens), 0.05).items():
        if n_samples < 2000:
            assert packed_failure(n_tokens, 4.0, int(n_samples)) <= 0.05, label


class TestFalseVersions:
    """Each false statement fails on the instance named, where the true one holds."""

    def test_half_of_o1(self):
        n_samples = math.ceil(upper_bounds(MIRRORED, 0.01)["O1"] / 2)
        failure = one_to_one_failure(MIRRORED, n_samples).max()
        assert (n_samples, round(failure, 4)) == (461, 0.0156)
        assert failure > 0.01

    def test_half_of_o2(self):
        n_samples = math.ceil(upper_bounds(MIRRORED, 0.01)["O2"] / 2)
        failure = one_to_one_failure(MIRRORED, n_samples).max()
        assert (n_samples, round(failure, 4)) == (475, 0.0144)
        assert failure > 0.01

    def test_half_of_o2_plus(self):
        n_samples = math.ceil(upper_bounds(MIRRORED, 0.01)["O2+"] / 2)
        failure = one_to_one_failure(MIRRORED, n_samples).max()
        assert n_samples == 460
        assert failure > 0.015

    def test_o2_plus_with_the_margin_in_one_direction(self):
        """One order alone can cost more than κ_J(c)·H²: KL(p‖q) = 2.94 H² here, against κ_J(9) = 2.20."""
        p, q = np.array([9e-6, 1 - 9e-6]), np.array([1e-6, 1 - 1e-6])
        hellinger = float(dv.squared_hellinger(p, q))
        c = dv.density_ratio([p, q])
        mean = (dv.kl_divergence(p, q) + dv.kl_divergence(q, p)) / 2
        assert float(dv.kl_divergence(p, q)) > 1.3 * mean_kappa(c) * hellinger
        assert float(mean) <= mean_kappa(c) * hellinger

    def test_o2_plus_with_the_whole_log_ratio_in_the_cotangent(self):
        """With (L/2)·coth(L/2), half of κ_J for small L, the bound falls below N* on the mirrored rows."""
        L, gamma = math.log(dv.density_ratio(MIRRORED)), dv.margin(MIRRORED)
        false = math.ceil(2 * (L / 2 / math.tanh(L / 2)) / gamma * math.log(1 / 0.01))
        failure = one_to_one_failure(MIRRORED, false).max()
        assert failure > 0.01 >= one_to_one_failure(MIRRORED, int(upper_bounds(MIRRORED, 0.01)["O2+"])).max()

    def test_o3_with_twice_the_exponent(self):
        n_samples = math.ceil(math.log(100) / (2 * dv.chernoff_information(*MIRRORED)))
        failure = one_to_one_failure(MIRRORED, n_samples).max()
        assert (n_samples, round(failure, 4)) == (459, 0.0158)
        assert failure > 0.01

    def test_o3_with_kl_for_the_exponent(self):
        n_samples = math.ceil(math.log(100) / dv.margin(MIRRORED))
        failure = one_to_one_failure(MIRRORED, n_samples).max()
        assert (n_samples, round(failure, 4)) == (230, 0.0727)  # .064 if a tie were half a failure
        assert failure > 0.01

    @pytest.mark.parametrize(("n_tokens", "n_samples", "failure"), [(16, 56, 0.0726), (128, 391, 0.194)])
    def test_o3_without_the_number_of_rivals(self, n_tokens, n_samples, failure):
        information = pairwise_chernoff(peak(n_tokens))[0, 1]
        assert math.ceil(math.log(1 / 0.05) / information) == n_samples
        assert packed_failure(n_tokens, 4.0, n_samples) == pytest.approx(failure, abs=6e-4)
        assert failure > 0.05

    def test_o2_without_the_number_of_rivals(self):
        def without(n_tokens: int) -> int:
            rows = peak(n_tokens)
            return int(O2.n_samples(2, dv.density_ratio(rows), dv.margin(rows), 0.05))

        assert without(32) == 129
        assert packed_failure(32, 4.0, 129) == pytest.approx(0.0567, abs=5e-5)
        assert packed_failure(16, 4.0, without(16)) == pytest.approx(0.0355, abs=5e-5)  # survives there

    def test_lower_bound_times_a_half_more(self):
        false = 1.5 * math.log(1 / 0.04) / dv.margin(NEARLY_SURE)
        first, _ = first_and_last(failure_curve(NEARLY_SURE, 60), 0.01)
        assert false == pytest.approx(45.8, abs=0.05)
        assert lower_bounds(NEARLY_SURE, 0.01)["O4"] <= first == 44 < false

    def test_lower_bound_times_four(self):
        rows = np.array([[0.5, 0.5], [0.4, 0.6]])
        false = 4 * math.log(1 / 0.04) / dv.margin(rows)
        first, _ = first_and_last(failure_curve(rows, int(O3.n_samples(rows, 0.01))), 0.01)
        assert false == pytest.approx(639.4, abs=0.1)
        assert lower_bounds(rows, 0.01)["O4"] <= first == 535 < false

    def test_lower_bound_for_each_truth_apart(self):
        curve = failure_curve(LOPSIDED, int(O3.n_samples(LOPSIDED, 0.2)))
        per_truth = [first_and_last(curve[:, v], 0.2)[0] for v in (0, 1)]
        assert per_truth == [27, 1]
        assert 0.6 * math.log(4) / dv.kl_divergence(*LOPSIDED[::-1]) > per_truth[1]
        assert lower_bounds(LOPSIDED, 0.2)["O4"] <= first_and_last(curve, 0.2)[0]

    def test_fano_without_its_corrections(self):
        rows = peak(3, 16.0)
        delta = 0.6
        false = math.log(3) / dv.jensen_shannon(rows)
        first, _ = first_and_last(failure_curve(rows, 12), delta)
        assert O5.n_samples(rows, delta) <= first == 1 < false

    def test_failure_is_not_monotone(self):
        worst = failure_curve(LOPSIDED, 90).max(axis=1)
        assert (worst[50:68] <= 0.2).all()
        assert worst[68] == pytest.approx(0.2201, abs=5e-5)
        assert (worst[68:71] > 0.2).all()
        assert (worst[71:] <= 0.2).all()
        assert first_and_last(worst, 0.2) == (50, 71)


@given(positive_dictionaries(), failure_levels())
def test_chernoff_is_never_above_hoeffding_and_hellinger(rows, delta):
    gamma = dv.margin(rows)
    assume(gamma > 1e-11)  # below, γ itself is off by more than a relative 1e-5
    bounds = upper_bounds(rows, delta)
    assert bounds["O3"] <= bounds["O2+"] * (1 + 1e-5)
    assert bounds["O2+"] <= bounds["O1"] * (1 + 1e-5)  # γ ≤ L·tanh(L/2), up to the rounding of γ
    assert bounds["O2+"] <= bounds["O2"]


@given(st.floats(0, 700), st.floats(1e-12, 1.0), failure_levels())
def test_both_orders_of_a_pair_cost_less_than_the_worse_one(log_ratio, margin, delta):
    c = math.exp(log_ratio)
    constant = mean_kappa(c)
    assert 2 <= constant <= dv.kappa(c)
    assert constant <= 2 + log_ratio / 2
    assert O2Plus.n_samples(3, c, margin, delta) <= O2.n_samples(3, c, margin, delta)


@given(dictionaries(single=False))
def test_the_mean_of_both_divergences_is_at_most_kappa_j_times_hellinger(rows):
    c = dv.density_ratio(rows)
    assume(math.isfinite(c))
    p, q = rows[0], rows[1]
    hellinger = float(dv.squared_hellinger(p, q))
    assume(hellinger > 1e-10)  # below, the distance itself is rounding
    mean = float(dv.kl_divergence(p, q) + dv.kl_divergence(q, p)) / 2
    assert mean <= mean_kappa(c) * hellinger * (1 + 1e-5)


@pytest.mark.parametrize("ratio", [1 + 1e-3, 2.0, 100.0, 1e8, 1e300])
def test_kappa_j_is_attained_by_swapped_laws_and_has_its_limits(ratio):
    low, high = 1 / (1 + ratio), ratio / (1 + ratio)
    log_ratio = math.log(ratio)
    attained = log_ratio * (high - low) / (2 * (math.sqrt(high) - math.sqrt(low)) ** 2)
    assert mean_kappa(ratio) == pytest.approx(attained, rel=1e-9)
    assert mean_kappa(1.0) == 2.0 == mean_kappa(math.nextafter(1, 2))
    assert mean_kappa(1 + 1e-6) == pytest.approx(2 + (1e-6) ** 2 / 24, rel=1e-15)
    assert mean_kappa(1e300) == pytest.approx(math.log(1e300) / 2, rel=1e-15)
    assert mean_kappa(math.inf) == math.inf
    with pytest.raises(ValueError, match="density ratio must be >= 1, got 0.5"):
        mean_kappa(0.5)


def test_for_a_large_ratio_it_halves_o2_and_still_suffices():
    c = 1e6
    rows = np.array([[c, 1.0], [1.0, c]]) / (1 + c)
    bounds = upper_bounds(rows, 1e-12)
    assert bounds["O2"] > 1.8 * bounds["O2+"]
    assert one_to_one_failure(rows, int(bounds["O2+"])).max() <= 1e-12


@given(dictionaries(single=False), failure_levels())
def test_no_lower_bound_is_above_an_upper_bound(rows, delta):
    assume(dv.margin(rows) > 1e-11)
    assert max(lower_bounds(rows, delta).values()) <= O3.n_samples(rows, delta) * (1 + 1e-5)


@given(distinct_rows(st.integers(2, 4), st.integers(2, 3), zeros=True), st.sampled_from([0.01, 0.05, 0.2, 0.4]))
def test_the_order_of_bounds_and_exact_numbers(rows, delta):
    uppers, lowers = upper_bounds(rows, delta), lower_bounds(rows, delta)
    n_max = int(min(uppers["O3"], 250 if rows.shape[1] == 2 else 60))
    first, last = first_and_last(failure_curve(rows, n_max), delta)
    assert first <= last
    assert all(lower <= first for lower in lowers.values())
    if uppers["O3"] <= n_max:
        assert all(last <= upper for upper in uppers.values())


@pytest.mark.parametrize("delta", [0.05, 1e-12])
def test_a_single_row_needs_no_samples(delta):
    alone = np.array([[0.5, 0.5]])
    assert set((upper_bounds(alone, delta) | lower_bounds(alone, delta)).values()) == {0.0}


def test_duplicates_cannot_be_told_apart():
    rows = np.array([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5]])
    assert set((upper_bounds(rows, 0.05) | lower_bounds(rows, 0.05)).values()) == {math.inf}
    assert one_to_one_failure(rows, 5).tolist()[::2] == [1.0, 1.0]
    assert O1.n_samples(n_tokens=2, log_ratio=0.0, margin=0.0, delta=0.05) == math.inf
    for bound in (O2, O2Plus):
        assert bound.n_samples(n_tokens=2, density_ratio=1.0, margin=0.0, delta=0.05) == math.inf


def test_an_infinite_density_ratio_leaves_the_bounds_without_it():
    bounds = upper_bounds(NEARLY_SURE, 0.01)
    assert [bounds[label] for label in ("O1", "O2", "O2+")] == [math.inf] * 3
    assert bounds["O3"] == math.ceil(math.log(100) / -math.log(0.9)) == 44
    assert O3.n_samples([[1, 0], [0, 1]], 0.01) == 1


@pytest.mark.parametrize("gap", [1e-9, 1e-11])
def test_chernoff_with_more_samples_than_doubles_count(gap):
    rows = [[0.5, 0.5], [0.5 + gap, 0.5 - gap]]
    n_samples = O3.n_samples(rows, 0.05)
    assert n_samples > 2**53
    gap = rows[1][0] - 0.5  # as rounded
    assert n_samples == pytest.approx(2 * math.log(20) / gap**2, rel=1e-4)


def test_lower_bounds_say_nothing_of_large_failure_levels():
    assert O4.n_samples(MIRRORED, dv.margin(MIRRORED), 0.5) == 0
    assert O5.n_samples(MIRRORED, 0.5) == 0
    assert O5.n_samples(peak(4), 0.75) == 0 < O5.n_samples(peak(4), 0.74)


def test_chernoff_of_hundreds_of_rows_in_seconds():
    rows = np.random.default_rng(0).dirichlet(np.ones(40), size=200)
    n_samples, exponent = O3.n_samples(rows, 0.05), pairwise_chernoff(rows)
    np.fill_diagonal(exponent, math.inf)
    assert np.exp(-n_samples * exponent).sum(axis=1).max() <= 0.05
    assert np.exp(-(n_samples - 1) * exponent).sum(axis=1).max() > 0.05


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="delta"):
        O1.n_samples(n_tokens=2, log_ratio=1.0, margin=0.1, delta=1.0)
    for bound in (O2, O2Plus):
        with pytest.raises(ValueError, match="margin"):
            bound.n_samples(n_tokens=2, density_ratio=2.0, margin=-0.1, delta=0.1)
        with pytest.raises(ValueError, match="density ratio must be >= 1, got 0.5"):
            bound.n_samples(n_tokens=2, density_ratio=0.5, margin=0.1, delta=0.1)
    with pytest.raises(ValueError, match="margin"):
        O1.n_samples(n_tokens=2, log_ratio=1.0, margin=math.nan, delta=0.1)
    with pytest.raises(ValueError, match="log density ratio"):
        O1.n_samples(n_tokens=2, log_ratio=-1.0, margin=0.1, delta=0.1)
    with pytest.raises(TypeError, match="n_tokens"):
        O1.n_samples(n_tokens=2.5, log_ratio=1.0, margin=0.1, delta=0.1)
    with pytest.raises(ValueError, match="sum to 1"):
        O3.n_samples(transitions=[[0.5, 0.4]], delta=0.1)
