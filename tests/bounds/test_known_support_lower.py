"""L1 and L2: exact failure is never below them, false versions refuted, and what the proofs rest on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import nnls
from scipy.spatial import ConvexHull
from scipy.special import ndtr, rel_entr
from scipy.stats import binom

from markov_theory.bounds import known_support_lower as lower
from markov_theory.bounds.known_support_lower import L1, L2, inner_radius
from markov_theory.bounds.known_support_sharp import S6One, S6Prime
from markov_theory.bounds.whitened_hull import KnownSupport
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.simplex_mle import simplex_mle
from markov_theory.verify import exact as oracle
from markov_theory.verify.exact import compositions, interval_failure, multinomial_log_pmf, segment_failure
from tests.strategies import distinct_rows, laws

OPPOSED = np.array([[0.2, 0.8], [0.8, 0.2]])
CENTRE = [0.5, 0.5]
FREE = np.eye(2)
BOTH = pytest.mark.parametrize("bound", [L1, L2], ids=["L1", "L2"])


def last_needed(low: float, high: float, truth: float, epsilon: float, delta: float) -> tuple[float, float]:
    """N*_first and N*_last for two outcomes, exactly: failure is at most δ from S6^1 on."""
    ends = [[low, 1 - low], [high, 1 - high]]
    enough = int(S6One.n_samples(ends, [truth, 1 - truth], epsilon, delta))
    return oracle.first_and_last([interval_failure(low, high, truth, n, epsilon) for n in range(enough + 1)], delta)


def hull_failure(rows: np.ndarray, law: np.ndarray, n_samples: int, epsilon: float) -> tuple[float, float]:
    """Failure over all mixtures by enumeration, from below and from above.

    A fit within 1e-4 of ε, relative, counts above only, far beyond the solver's gap; so does a table whose outcomes
    leave the maximiser open (their φ do not span).
    """
    counts = compositions(n_samples, rows.shape[1])
    fit = simplex_mle(rows, counts, tolerance=1e-11)
    assert (fit.status == "optimal").all()
    kl = rel_entr(law, fit.alpha @ rows).sum(axis=1)
    phi = KnownSupport.of(rows, law, epsilon).phi
    patterns, which = np.unique(counts > 0, axis=0, return_inverse=True)
    seen = np.array([np.linalg.matrix_rank(phi[pattern]) for pattern in patterns])[which.ravel()]
    probability = np.exp(multinomial_log_pmf(counts, law[None, :]))[:, 0]
    surely = kl > epsilon * (1 + 1e-4)
    can_fail = rel_entr(law, rows).sum(axis=1).max() > epsilon
    maybe = (kl > epsilon * (1 - 1e-4)) | ((seen < phi.shape[1]) & can_fail)
    return min(1.0, float(probability[surely].sum())), min(1.0, float(probability[maybe].sum()))


class TestExactly:
    def test_on_opposed_rows(self):
        least = L1.n_samples(OPPOSED, CENTRE, 1e-3, 0.05)
        first, last = last_needed(0.2, 0.8, 0.5, 1e-3, 0.05)
        assert (least, first, last) == (1601, 1880, 1946)
        assert 0 < L2.n_samples(OPPOSED, CENTRE, 1e-3, 0.05) < least
        assert last <= S6One.n_samples(OPPOSED, CENTRE, 1e-3, 0.05)
        assert L1.failure(1600, OPPOSED, CENTRE, 1e-3) > 0.05 >= L1.failure(1601, OPPOSED, CENTRE, 1e-3)

    @BOTH
    @given(
        distinct_rows(st.integers(2, 4), st.just(2), zeros=True),
        st.floats(0, 1),
        st.sampled_from([0.1, 0.01, 1e-3, 1e-4]),
        st.sampled_from([1e-3, 0.05, 0.3, 0.8]),
        st.data(),
    )
    def test_two_outcomes(self, bound, rows, weight, epsilon, delta, data):
        low, high = float(rows[:, 0].min()), float(rows[:, 0].max())
        truth = min(low + weight * (high - low), high)
        target = [truth, 1 - truth]
        n_samples = bound.n_samples(rows, target, epsilon, delta)
        assume(0 < n_samples <= 3e5)
        assert interval_failure(low, high, truth, int(n_samples) - 1, epsilon) > delta
        for n in (int(n_samples) // 2, data.draw(st.integers(0, 2 * int(n_samples)))):
            exact = interval_failure(low, high, truth, n, epsilon)
            assert exact >= bound.failure(n, rows, target, epsilon)

    @given(
        distinct_rows(st.just(2), st.just(3)),
        st.floats(0, 1),
        st.sampled_from([0.01, 1e-3, 1e-4]),
        st.sampled_from([1, 5, 20, 60, 120]),
    )
    def test_a_segment_of_laws_on_three_outcomes(self, rows, weight, epsilon, n_samples):
        target = (1 - weight) * rows[0] + weight * rows[1]
        exact = segment_failure(rows, weight, n_samples, epsilon)
        for bound in (L1, L2):
            assert exact >= bound.failure(n_samples, rows, target, epsilon)
            least = bound.n_samples(rows, target, epsilon, 0.3)
            if 0 < least <= 150:
                assert segment_failure(rows, weight, int(least) - 1, epsilon) > 0.3

    @given(
        distinct_rows(st.integers(3, 4), st.just(3)),
        st.sampled_from([0.01, 1e-3, 1e-4, 1e-5]),
        st.sampled_from([2, 10, 40]),
        st.data(),
    )
    def test_a_polygon_of_laws_between_l2_and_s6_prime(self, rows, epsilon, n_samples, data):
        target = data.draw(laws(rows.shape[0])) @ rows
        assume(KnownSupport.of(rows, target, epsilon).rank == 2)
        below, above = hull_failure(rows, target, n_samples, epsilon)
        assert below >= L2.failure(n_samples, rows, target, epsilon)
        assert above <= S6Prime.failure(n_samples, rows, target, epsilon)

    @pytest.mark.parametrize("delta", [0.9, 0.5])
    def test_a_triangle_at_s6_prime(self, delta):
        rows, law, epsilon = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.2, 0.5]]), np.full(3, 1 / 3), 0.03
        n_samples = int(S6Prime.n_samples(rows, law, epsilon, delta))
        assert n_samples < 500
        assert hull_failure(rows, law, n_samples, epsilon)[1] <= delta

    @pytest.mark.parametrize("delta", [0.05, 0.3])
    def test_all_laws_on_four_outcomes(self, delta):
        law, epsilon = np.full(4, 0.25), 6e-3
        n_samples = int(L2.n_samples(np.eye(4), law, epsilon, delta))
        assert 5 < n_samples < 60
        assert hull_failure(np.eye(4), law, n_samples - 1, epsilon)[0] > delta

    @pytest.mark.statistical
    @pytest.mark.parametrize("s", [4, 12])
    def test_many_directions(self, s):
        """Ranks 3 and 11 on 32 outcomes: of 1,000 trials at N = L2 − 1, failures are not too few for δ = 0.05 and 0.5.

        A true statement fails a comparison with probability at most 1e-7 (binomial tail at δ).
        """
        epsilon, trials, generator = 1e-5, 1000, named_generator(0, "L2", s)
        rows = 1 + 0.5 * generator.choice([-1, 1], (s, 32))
        rows /= rows.sum(axis=1, keepdims=True)
        target = (0.5 / s + 0.5 * generator.dirichlet(np.ones(s))) @ rows
        for delta in (0.05, 0.5):
            n_samples = int(L2.n_samples(rows, target, epsilon, delta)) - 1
            assert n_samples > 1000
            counts = sample_counts(target, n_samples, trials, named_generator(0, "L2", s, n_samples))
            fit = simplex_mle(rows, counts, tolerance=1e-12)
            assert (fit.status == "optimal").all()
            fails = int((rel_entr(target, fit.alpha @ rows).sum(axis=1) > epsilon * (1 + 1e-3)).sum())
            assert fails >= binom.ppf(1e-7, trials, delta)


class TestFalseVersions:
    def test_l1_doubled(self):
        assert 2 * L1.n_samples(OPPOSED, CENTRE, 1e-3, 0.05) > last_needed(0.2, 0.8, 0.5, 1e-3, 0.05)[1]
        assert interval_failure(0.2, 0.8, 0.5, 3200, 1e-3) == pytest.approx(0.0115, abs=5e-5)

    def test_l1_without_the_berry_esseen_error(self):
        sides = lower._Side.both(KnownSupport.of(FREE, [0.1, 0.9], 0.01))
        n_samples = 368  # where the two normal tails still exceed δ
        assert sum(ndtr(-math.sqrt(n_samples / side.scale)) for side in sides) > 0.01
        assert last_needed(0, 1, 0.1, 0.01, 0.01)[1] == 355
        assert L1.n_samples(FREE, [0.1, 0.9], 0.01, 0.01) <= 355

    def test_l1_with_sides_that_the_hull_does_not_reach(self):
        """The truth is a row: only one side can fail."""
        last = last_needed(0.2, 0.8, 0.2, 1e-3, 0.05)[1]
        assert L1.n_samples(OPPOSED, [0.2, 0.8], 1e-3, 0.05) <= last < L1.n_samples(FREE, [0.2, 0.8], 1e-3, 0.05)

    def test_l2_without_cantelli(self):
        """K > 0, that is N·D̄²m̄² < r, does not make a failure more likely than not: e^{−1} = 0.37 of χ²₂ is above 2."""
        law, epsilon = np.full(3, 1 / 3), 1e-3
        ball = lower._Ball.of(KnownSupport.of(np.eye(3), law, epsilon))
        n_samples = math.ceil(2 / (ball.reach * ball.most) ** 2) - 1
        assert n_samples * (ball.reach * ball.most) ** 2 < 2
        counts = compositions(n_samples, 3)
        fails = rel_entr(law, counts / n_samples).sum(axis=1) > epsilon
        assert np.exp(multinomial_log_pmf(counts, law[None, :]))[fails, 0].sum() < 0.5
        assert L2.n_samples(np.eye(3), law, epsilon, 0.5) < n_samples

    def test_l2_where_the_ball_leaves_the_hull(self, monkeypatch):
        """A thin cone with the truth near its apex fails less often than a whole ball."""
        rows = thin_cone()
        law, epsilon = np.full(4, 0.25), 4e-3
        for n_samples in (8, 12):
            exact = hull_failure(rows, law, n_samples, epsilon)[1]
            assert L2.failure(n_samples, rows, law, epsilon) == 0
            with monkeypatch.context() as patch:
                patch.setattr(lower, "inner_radius", lambda vertices: math.inf)
                assert L2.failure(n_samples, rows, law, epsilon) > exact


def thin_cone() -> np.ndarray:
    """Four rows on four outcomes: an apex just behind the uniform law, and three far off in one direction."""
    axis = np.array([3, -1, -1, -1]) / math.sqrt(12)
    across = np.array([[0, 1, -1, 0], [0, 1, 1, -2]]) / np.array([[math.sqrt(2)], [math.sqrt(6)]])
    corners = np.array([[1, 0], [0, 1], [-0.5, -0.5]])
    return np.vstack([0.25 - 1e-4 * axis, 0.25 + 0.45 * axis + 0.04 * corners @ across])


class TestSteps:
    @given(distinct_rows(st.integers(2, 4), st.integers(2, 4)), st.floats(-7, -2), st.data())
    def test_every_inequality_of_l2(self, rows, exponent, data):
        epsilon, law = 10.0**exponent, data.draw(laws(rows.shape[0])) @ rows
        hull = KnownSupport.of(rows, law, epsilon)
        ball = lower._Ball.of(hull)
        assume(ball is not None)
        phi, n, r = hull.phi, hull.norms, hull.rank
        generator = named_generator(data.draw(st.integers(0, 999)), "steps of L2")
        for v in generator.standard_normal((10, r)):
            u = v / np.linalg.norm(v)
            x, drawn = ball.reach * phi @ u, generator.multinomial(9, law)
            assert law @ (x - np.log1p(x)) >= epsilon * (1 - 1e-9)  # (1)
            _, left = nnls(np.vstack([hull.vertices.T, np.ones(len(rows))]), np.append(ball.reach * u, 1.0))
            assert left < 1e-9  # in the hull
            score = np.linalg.eigvalsh((phi * (drawn / (1 + x))[:, None]).T @ phi)[-1]
            mean = np.linalg.eigvalsh((phi * (drawn / (1 - ball.reach * n))[:, None]).T @ phi)[-1]
            assert score <= mean * (1 + 1e-9)  # (2)
        M = hull.moment(1 / (1 - ball.reach * n))
        assert np.linalg.eigvalsh(M)[-1] == pytest.approx(ball.most)
        outer = phi[:, :, None] * phi[:, None, :] / (1 - ball.reach * n)[:, None, None] - M
        assert np.linalg.eigvalsh(outer)[:, -1].max() <= ball.largest * (1 + 1e-9) + 1e-9  # (3)
        variance = np.einsum("j,jkl,jlm->km", law, outer, outer)
        assert np.linalg.eigvalsh(variance)[-1] == pytest.approx(ball.spread, rel=1e-6, abs=1e-9)

    @given(distinct_rows(st.just(3), st.just(3)), st.integers(1, 12))
    def test_mean_and_variance_of_the_squared_score(self, rows, n_samples):
        """Of X = ‖Σφ_i‖²/N, over all tables of counts."""
        law = rows.mean(axis=0)
        hull = KnownSupport.of(rows, law, 1e-9)
        counts, r = compositions(n_samples, 3), hull.rank
        probability = np.exp(multinomial_log_pmf(counts, law[None, :]))[:, 0]
        X = ((counts @ hull.phi) ** 2).sum(axis=1) / n_samples
        variance = 2 * r * (1 - 1 / n_samples) + (law @ hull.norms**4 - r * r) / n_samples
        assert probability @ X == pytest.approx(r)
        assert probability @ (X - r) ** 2 == pytest.approx(variance, rel=1e-7, abs=1e-9)

    @given(distinct_rows(st.just(2), st.integers(2, 4)), st.floats(0.05, 0.95), st.floats(-6, -2))
    def test_moments_of_l1(self, rows, weight, exponent):
        epsilon = 10.0**exponent
        hull = KnownSupport.of(rows, (1 - weight) * rows[0] + weight * rows[1], epsilon)
        assume(not hull.cannot_fail)
        points = hull.sides(outward=True)
        for side, x in zip(lower._Side.both(hull), points, strict=True):
            assert hull.law @ (x - np.log1p(x)) >= epsilon * (1 - 1e-9)
            y = 1 / (1 + x) - 1  # (q − q_±)/q_±
            mean = hull.law @ y
            spread = hull.law @ (y - mean) ** 2
            assert side.scale == pytest.approx(spread / mean**2, rel=1e-4)
            assert side.skewness == pytest.approx(hull.law @ np.abs(y - mean) ** 3 / spread**1.5, rel=1e-6)


class TestInnerRadius:
    @given(st.integers(1, 4), st.integers(0, 4), st.integers(0, 10**6))
    def test_against_the_facets(self, r, spare, seed):
        generator = named_generator(seed, "inner radius", r, spare)
        points = generator.standard_normal((r + 1 + spare, r))
        points -= generator.dirichlet(np.ones(len(points))) @ points  # 0 is inside
        largest = -ConvexHull(points).equations[:, -1].max() if r > 1 else min(points.max(), -points.min())
        radius = inner_radius(points)
        assert radius <= largest * (1 + 1e-9)
        assert radius > 0 or largest < 1e-6
        if spare == 0:
            assert radius == pytest.approx(largest, rel=1e-6, abs=1e-9)

    def test_outside_and_on_the_boundary(self):
        assert inner_radius(np.array([[1.0], [2.0]])) == 0
        assert inner_radius(np.array([[0.0], [2.0]])) == pytest.approx(0, abs=1e-12)
        assert inner_radius(np.array([[0.0], [2.0], [0.0], [1.0]])) == pytest.approx(0, abs=1e-9)


class TestEdges:
    @BOTH
    def test_nothing_to_learn(self, bound):
        assert bound.n_samples([[0.3, 0.7]], [0.3, 0.7], 1e-9, 0.05) == 0
        assert bound.n_samples([[0.3, 0.7], [0.3, 0.7]], [0.3, 0.7], 1e-9, 0.05) == 0
        assert bound.n_samples(OPPOSED, CENTRE, 0.3, 0.05) == 0
        assert bound.failure(0, OPPOSED, CENTRE, 0.3) == 0
        assert bound.failure(0, OPPOSED, CENTRE, 0.2) == 1

    @BOTH
    def test_an_outcome_that_the_truth_cannot_give(self, bound):
        rows = [[0.5, 0.5, 0.0], [0.5, 0.4, 0.1]]
        assert bound.n_samples(rows, rows[0], 1e-3, 0.05) == 0
        assert bound.failure(10, rows, rows[0], 1e-3) == 0

    @BOTH
    def test_duplicates_and_dead_outcomes_change_nothing(self, bound):
        plain = bound.n_samples(OPPOSED, CENTRE, 1e-3, 0.05)
        more = np.column_stack([np.vstack([OPPOSED, OPPOSED]), np.zeros(4)])
        assert bound.n_samples(more, [0.5, 0.5, 0], 1e-3, 0.05) == pytest.approx(plain, abs=1)

    def test_more_than_a_line(self):
        assert L1.n_samples(np.eye(3), np.full(3, 1 / 3), 1e-3, 0.05) == 0
        assert L1.failure(10, np.eye(3), np.full(3, 1 / 3), 1e-3) == 0

    def test_a_truth_on_a_face_of_the_hull(self):
        assert L2.n_samples(OPPOSED, OPPOSED[0], 1e-3, 0.05) == 0
        first, last = last_needed(0.2, 0.8, 0.2, 1e-3, 0.05)
        assert 0 < L1.n_samples(OPPOSED, OPPOSED[0], 1e-3, 0.05) <= first <= last

    @BOTH
    def test_more_samples_than_doubles_count(self, bound):
        for epsilon in (1e-20, 1e-200):
            enough = S6One.n_samples(OPPOSED, CENTRE, epsilon, 0.05)
            assert enough / 20 < bound.n_samples(OPPOSED, CENTRE, epsilon, 0.05) < enough

    @BOTH
    @given(st.floats(1e-12, 0.99), st.floats(1e-12, 0.99))
    def test_a_larger_failure_probability_needs_fewer(self, bound, low, high):
        low, high = sorted([low, high])
        assert bound.n_samples(OPPOSED, CENTRE, 1e-3, low) >= bound.n_samples(OPPOSED, CENTRE, 1e-3, high)

    @BOTH
    def test_wrong_input_is_refused(self, bound):
        with pytest.raises(ValueError, match="mixture"):
            bound.n_samples(OPPOSED, [0.1, 0.9], 1e-3, 0.05)
        with pytest.raises(ValueError, match="n_samples"):
            bound.failure(-1, OPPOSED, CENTRE, 1e-3)
