"""S1, S2, S2H, S3: the nets do what their proofs say, the bounds hold exactly, false versions do not."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from markov_theory import divergences as dv
from markov_theory.bounds import S1, S2, S2H, S3, S6
from markov_theory.bounds.sparse import hull_directions, log_binomial, net_resolution
from markov_theory.verify.exact import interval_failure
from tests.strategies import distinct_rows, laws

OPPOSED = np.array([[0.2, 0.8], [0.8, 0.2]])
NEARLY_SURE = np.array([[0.9, 0.1], [1.0, 0.0]])


def largest_remainder(weights: np.ndarray, k: int) -> np.ndarray:
    """Weights rounded to multiples of 1/k with the sum kept; entries that are 0 stay 0."""
    whole = np.floor(weights * k + 1e-9)
    short = round(k - whole.sum())
    whole[np.argsort(whole - weights * k, kind="stable")[:short]] += 1
    return whole / k


class TestNets:
    @given(st.integers(1, 9).flatmap(lambda s: laws(s, zeros=True, top=99)), st.floats(0.005, 1.9))
    def test_largest_remainders_move_no_more_than_the_radius(self, weights, radius):
        k = net_resolution(weights.size, radius)
        rounded = largest_remainder(weights, int(k))
        assert np.abs(rounded - weights).sum() <= radius + 1e-9
        assert (rounded[weights == 0] == 0).all()

    def test_a_coarser_net_is_false(self):
        sparsity, radius = 2, 0.25
        weights = np.array([0.25, 0.75])
        coarse = math.ceil(sparsity / (4 * radius))
        assert np.abs(largest_remainder(weights, coarse) - weights).sum() == 0.5 > radius
        assert net_resolution(sparsity, radius) == 4

    def test_a_move_of_weights_moves_log_probabilities_by_half_c_minus_one(self):
        rows = np.array([[0.9, 0.1], [0.1, 0.9]])
        ratio = dv.density_ratio(rows)

        def move(radius: float) -> float:
            return float(np.abs(np.log((radius / 2 * rows[0] + (1 - radius / 2) * rows[1]) / rows[1])).max())

        assert move(0.2) == pytest.approx(0.588, abs=5e-4)
        assert move(0.2) > 0.2 * math.log(ratio) / 2 == pytest.approx(0.220, abs=5e-4)  # false: η log(c)/2
        assert move(0.02) == pytest.approx(0.077, abs=5e-4)
        assert move(0.02) > 0.02 * (ratio - 1) / 4 == pytest.approx(0.04)  # false: η(c−1)/4
        assert all(move(radius) <= radius * (ratio - 1) / 2 for radius in (0.02, 0.2, 1.0))

    @given(distinct_rows(st.integers(2, 4), st.integers(2, 4)), st.integers(1, 50), st.data())
    def test_rounding_up_keeps_the_ratio_of_laws(self, rows, k, data):
        alpha = data.draw(laws(rows.shape[0], zeros=True, top=99))
        s = np.count_nonzero(alpha)
        up = np.ceil(k * alpha - 1e-9)
        assert up.sum() <= k + s - 1
        up[np.argmax(alpha)] += k + s - 1 - up.sum()
        ratio = (alpha @ rows) / (up / up.sum() @ rows)
        assert ratio.max() <= (k + s - 1) / k * (1 + 1e-9)


class TestLogBinomial:
    @pytest.mark.parametrize(
        ("n", "k"),
        [
            *[(5, 0), (5, 5), (10, 3), (1000, 500), (4000, 2000), (10**6, 1001), (10**6, 5000), (10**12, 7)],
            *[(10**15, 1500), (10**300, 31), (10**12 + 1, 10**12 - 2), (2003, 1001)],
        ],
    )
    def test_against_whole_numbers(self, n, k):
        assert log_binomial(float(n), float(k)) == pytest.approx(math.log(math.comb(int(float(n)), k)), rel=1e-12)

    def test_out_of_range(self):
        with pytest.raises(ValueError, match="0 <= k <= n"):
            log_binomial(3, 4)
        assert (log_binomial(math.inf, 0), log_binomial(math.inf, 2)) == (0, math.inf)


def sparse_bounds(rows: np.ndarray, epsilon: float, delta: float) -> dict[str, float]:
    numbers = {"n_tokens": rows.shape[0], "sparsity": 2, "density_ratio": dv.density_ratio(rows)}
    return {bound.label: bound.n_samples(**numbers, epsilon=epsilon, delta=delta) for bound in (S1, S2)}


@pytest.mark.parametrize("epsilon", [0.1, 1e-2, 1e-3])
@pytest.mark.parametrize("truth", [0.2, 0.25, 0.5, 0.8])
def test_upper_bounds_suffice_on_opposed_rows(truth, epsilon):
    for n_samples in sparse_bounds(OPPOSED, epsilon, 0.05).values():
        if n_samples <= 2e6:
            assert interval_failure(0.2, 0.8, truth, int(n_samples), epsilon) <= 0.05


@given(
    distinct_rows(st.integers(2, 4), st.just(2)),
    st.floats(0, 1),
    st.sampled_from([0.1, 0.01]),
    st.sampled_from([0.05, 0.4]),
)
def test_upper_bounds_suffice_for_two_outcomes(rows, weight, epsilon, delta):
    low, high = rows[:, 0].min(), rows[:, 0].max()
    truth = min(high, low + weight * (high - low))
    for n_samples in sparse_bounds(rows, epsilon, delta).values():
        if n_samples <= 2e5:
            assert interval_failure(low, high, truth, int(n_samples), epsilon) <= delta


@pytest.mark.parametrize("rows", [OPPOSED, NEARLY_SURE])
@pytest.mark.parametrize("weight", [0.0, 0.02, 0.5, 1.0])
def test_hellinger_bound_suffices_also_for_an_infinite_ratio(rows, weight):
    epsilon, delta = 1e-2, 0.05
    n_samples = int(S2H.n_samples(n_tokens=2, sparsity=2, epsilon=epsilon, delta=delta))

    def failure(n: int) -> float:
        low, high = sorted(rows[:, 0])
        truth, estimate = low + weight * (high - low), np.clip(np.arange(n + 1) / n, low, high)
        h2 = (np.sqrt(estimate) - np.sqrt(truth)) ** 2 + (np.sqrt(1 - estimate) - np.sqrt(1 - truth)) ** 2
        return float(binom.pmf(np.arange(n + 1), n, truth)[h2 > epsilon].sum())

    assert failure(n_samples) <= delta
    if rows is OPPOSED and weight == 0.5:
        assert failure(math.ceil(n_samples / 100)) > delta  # the false version, divided by 100


class TestFalseVersions:
    def test_a_hundredth_of_s2(self):
        n_samples = math.ceil(sparse_bounds(OPPOSED, 1e-3, 0.05)["S2"] / 100)
        assert n_samples == 1386
        assert interval_failure(0.2, 0.8, 0.5, n_samples, 1e-3) == pytest.approx(0.1013, abs=5e-5)
        assert interval_failure(0.2, 0.8, 0.5, 1249, 1e-3) == pytest.approx(0.113, abs=5e-4)
        assert interval_failure(0.2, 0.8, 0.5, 2 * n_samples, 1e-3) <= 0.05  # a fiftieth is not refuted

    def test_s2_with_the_root_of_epsilon(self):
        epsilon = 1e-4
        n_samples = math.ceil(sparse_bounds(OPPOSED, epsilon, 0.05)["S2"] * math.sqrt(epsilon))
        assert interval_failure(0.2, 0.8, 0.5, n_samples, epsilon) == pytest.approx(0.0708, abs=5e-5)
        assert interval_failure(0.2, 0.8, 0.5, 14834, epsilon) == pytest.approx(0.086, abs=5e-4)

    def test_wilks_with_a_degree_of_freedom_too_many(self):
        epsilon = 1e-4
        n_samples = S3.n_samples(OPPOSED, epsilon, 0.05)
        assert n_samples == 19208
        assert interval_failure(0.2, 0.8, 0.5, int(n_samples), epsilon) == pytest.approx(0.0505, abs=5e-5)
        assert interval_failure(0.2, 0.8, 0.5, 29958, epsilon) == pytest.approx(0.0145, abs=5e-5)

    def test_known_support_bounds_for_an_unknown_support_that_is_smaller(self):
        rows = np.array([[0.5, 0.5], [0.2, 0.8]])
        margin = float(dv.kl_divergence(rows[0], rows[1]))
        assert S6.n_samples(rows[:1], rows[0], 1e-4, 0.025) == 0
        claimed = S2.n_samples(2, 2, dv.density_ratio(rows), margin, 0.025)
        assert interval_failure(0.2, 0.5, 0.5, int(claimed), 1e-4) > 0.3
        assert interval_failure(0.2, 0.5, 0.5, 371, 1e-4) == pytest.approx(0.378, abs=5e-4)


class TestEdges:
    @pytest.mark.parametrize("bound", [S1, S2])
    def test_nothing_to_learn(self, bound):
        assert bound.n_samples(1, 3, math.inf, 0.1, 0.05) == 0
        assert bound.n_samples(9, 3, 1.0, 0.1, 0.05) == 0
        assert bound.n_samples(9, 3, 4.0, dv.largest_kl(4.0), 0.05) == 0
        assert bound.n_samples(9, 3, 4.0, 0.999 * dv.largest_kl(4.0), 0.05) > 0
        assert S2H.n_samples(1, 3, 0.1, 0.05) == S2H.n_samples(9, 3, 2.0, 0.05) == 0

    @pytest.mark.parametrize("bound", [S1, S2])
    def test_infinite_ratio(self, bound):
        assert bound.n_samples(9, 3, math.inf, 0.1, 0.05) == math.inf
        assert math.isfinite(bound.n_samples(9, 3, 1e300, 0.1, 0.05))
        assert math.isfinite(S2H.n_samples(9, 3, 0.1, 0.05))

    @pytest.mark.parametrize("bound", [S1, S2])
    def test_sparsity_is_at_most_the_number_of_rows(self, bound):
        assert bound.n_samples(4, 40, 4.0, 0.1, 0.05) == bound.n_samples(4, 4, 4.0, 0.1, 0.05)
        assert S2H.n_samples(4, 40, 0.1, 0.05) == S2H.n_samples(4, 4, 0.1, 0.05)

    def test_one_row_mixtures_have_no_net(self):
        expected = 4 * dv.kappa(4.0) / 0.1 * math.log(9 / 0.05)
        assert S2.n_samples(9, 1, 4.0, 0.1, 0.05) == math.ceil(expected)
        assert S1.n_samples(9, 1, 4.0, 0.1, 0.05) == math.ceil(800 * math.log(4) ** 2 * math.log(180))

    def test_gap_of_the_solver(self):
        def needed(gap: float) -> float:
            return S2.n_samples(9, 3, 4.0, 0.1, 0.05, gap=gap)

        limit = 0.1 / (2 * dv.kappa(4.0))
        assert needed(0.0) == S2.n_samples(9, 3, 4.0, 0.1, 0.05)
        assert needed(limit / 2) == pytest.approx(2 * needed(0.0), abs=2)
        assert needed(limit) == math.inf
        with pytest.raises(ValueError, match="gap"):
            needed(-1e-9)

    def test_more_samples_than_doubles_count(self):
        assert 1e40 < S1.n_samples(9, 3, 4.0, 1e-20, 0.05) < math.inf
        assert S1.n_samples(9, 3, 1e308, 1e-200, 0.05) == math.inf
        assert S2.n_samples(9, 3, 1e308, 1e-200, 0.05) > 1e200

    @pytest.mark.parametrize("bound", [S1, S2])
    def test_wrong_input_is_refused(self, bound):
        for name, wrong in {"density_ratio": 0.5, "epsilon": 0.0, "delta": 0.0, "sparsity": 0}.items():
            right = {"n_tokens": 9, "sparsity": 3, "density_ratio": 4.0, "epsilon": 0.1, "delta": 0.05}
            with pytest.raises(ValueError, match=name.replace("_", " ") if "ratio" in name else name):
                bound.n_samples(**(right | {name: wrong}))


class TestWilks:
    def test_degrees_of_freedom(self):
        rows = np.array([[0.2, 0.3, 0.5], [0.5, 0.2, 0.3], [0.35, 0.25, 0.4]])  # collinear
        assert S3.n_samples(rows[:1], 1e-3, 0.05) == S3.n_samples(rows[[0, 0]], 1e-3, 0.05) == 0
        assert S3.n_samples(rows, 1e-3, 0.05) == S3.n_samples(rows[:2], 1e-3, 0.05) == 1921
        assert S3.n_samples(np.eye(3) / 2 + 1 / 6, 1e-3, 0.05) == 2996  # χ² with 2

    def test_rank_sees_rare_outcomes_but_not_rounding(self):
        rng = np.random.default_rng(1)
        rows = rng.dirichlet(np.ones(40), size=6)
        mixed = np.vstack([rows, rng.dirichlet(np.ones(6), size=9) @ rows])
        assert hull_directions(mixed, mixed.mean(axis=0)).shape == (40, 5)
        rare = np.array([[0.5, 0.5 - 2e-12, 2e-12], [0.5, 0.5 - 1e-12, 1e-12]])
        assert hull_directions(rare, rare.mean(axis=0)).shape == (3, 1)

    @given(distinct_rows(st.integers(2, 5), st.integers(2, 4)))
    def test_directions_are_orthonormal_and_tangent(self, rows):
        law = rows.mean(axis=0)
        basis = hull_directions(rows, law)
        assert basis.T @ basis == pytest.approx(np.eye(basis.shape[1]), abs=1e-10)
        assert np.sqrt(law) @ basis == pytest.approx(0, abs=1e-10)
        for v, w in itertools.combinations(range(rows.shape[0]), 2):
            direction = (rows[v] - rows[w]) / np.sqrt(law)
            assert basis @ (basis.T @ direction) == pytest.approx(direction, abs=1e-10)
