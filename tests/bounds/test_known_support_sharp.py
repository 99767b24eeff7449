"""S6' and S6^1: exact at N = bound and beyond, false versions refuted, and the inequalities that the proofs rest on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import rel_entr
from scipy.stats import binom

from markov_theory.bounds.known_embedding import log_sphere_mean, second_order
from markov_theory.bounds.known_support import S6
from markov_theory.bounds.known_support_sharp import S6One, S6Prime, _rates, _Sphere
from markov_theory.bounds.sparse import S3
from markov_theory.bounds.whitened_hull import KnownSupport, log_curvature
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.simplex_mle import simplex_mle
from markov_theory.verify.exact import compositions, interval_failure, multinomial_log_pmf, segment_failure
from tests.strategies import distinct_rows, laws

OPPOSED = np.array([[0.2, 0.8], [0.8, 0.2]])
CENTRE = [0.5, 0.5]
FREE = np.eye(2)
BOTH = pytest.mark.parametrize("bound", [S6Prime, S6One], ids=["S6'", "S6^1"])


def signed_rows(s: int, n_outcomes: int, amplitude: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows proportional to 1 ± `amplitude` with random signs, and a truth among their mixtures, no weight small."""
    generator = named_generator(seed, "signed rows", s, n_outcomes)
    rows = 1 + amplitude * generator.choice([-1, 1], (s, n_outcomes))
    rows /= rows.sum(axis=1, keepdims=True)
    return rows, (0.5 / s + 0.5 * generator.dirichlet(np.ones(s))) @ rows


def saturated_failure(law: np.ndarray, n_samples: int, epsilon: float) -> float:
    """All laws on J outcomes: the maximiser is the table itself."""
    counts = compositions(n_samples, law.size)
    kl = rel_entr(law, counts / n_samples).sum(axis=1)
    return float(np.exp(multinomial_log_pmf(counts, law[None, :]))[kl > epsilon, 0].sum())


def between(rows: np.ndarray, weight: float) -> tuple[float, float, float]:
    """Least and greatest probability of the first of two outcomes, and the truth's, in their interval."""
    low, high = float(rows[:, 0].min()), float(rows[:, 0].max())
    return low, high, min(low + weight * (high - low), high)


class TestExactly:
    @pytest.mark.parametrize(("epsilon", "prime", "one"), [(1e-2, 719, 372), (1e-3, 4714, 3692), (1e-4, 40118, 36892)])
    def test_on_opposed_rows(self, epsilon, prime, one):
        assert S6Prime.n_samples(OPPOSED, CENTRE, epsilon, 0.05) == prime
        assert S6One.n_samples(OPPOSED, CENTRE, epsilon, 0.05) == one
        for n_samples in (one, one + 1, prime, 2 * prime):
            assert interval_failure(0.2, 0.8, 0.5, n_samples, epsilon) <= 0.05
        assert S3.n_samples(OPPOSED, epsilon, 0.05) < one < prime < S6.n_samples(OPPOSED, CENTRE, epsilon, 0.05)

    @BOTH
    @given(
        distinct_rows(st.integers(2, 4), st.just(2), zeros=True),
        st.floats(0, 1),
        st.sampled_from([0.1, 0.01, 1e-3]),
        st.sampled_from([1e-3, 0.05, 0.5]),
        st.data(),
    )
    def test_two_outcomes(self, bound, rows, weight, epsilon, delta, data):
        low, high, truth = between(rows, weight)
        target = [truth, 1 - truth]
        n_samples = bound.n_samples(rows, target, epsilon, delta)
        assume(0 < n_samples <= 3e5)
        for factor in (1, 1.001, 1.03, 1.3, 3):
            assert interval_failure(low, high, truth, math.ceil(factor * n_samples), epsilon) <= delta
        anywhere = data.draw(st.integers(1, int(n_samples)))
        assert interval_failure(low, high, truth, anywhere, epsilon) <= bound.failure(anywhere, rows, target, epsilon)

    @BOTH
    @given(
        distinct_rows(st.just(2), st.just(3)),
        st.floats(0, 1),
        st.sampled_from([0.3, 0.1, 0.05, 0.02]),
        st.sampled_from([1, 2, 5, 20, 60]),
    )
    def test_a_segment_of_laws_on_three_outcomes(self, bound, rows, weight, epsilon, n_samples):
        target = (1 - weight) * rows[0] + weight * rows[1]
        allowed = bound.failure(n_samples, rows, target, epsilon)
        assert segment_failure(rows, weight, n_samples, epsilon) <= allowed
        least = bound.n_samples(rows, target, epsilon, 0.2)
        if 0 < least <= 250:
            assert segment_failure(rows, weight, int(least), epsilon) <= 0.2

    @pytest.mark.parametrize("law", [[1 / 3] * 3, [0.6, 0.3, 0.1]])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.05), (0.05, 0.5), (0.02, 0.05)])
    def test_all_laws_on_three_outcomes(self, law, epsilon, delta):
        law = np.array(law)
        n_samples = int(S6Prime.n_samples(np.eye(3), law, epsilon, delta))
        for n in (n_samples, n_samples + 1, int(1.2 * n_samples)):
            assert saturated_failure(law, n, epsilon) <= delta
        for n in (n_samples // 4, n_samples // 2, (3 * n_samples) // 4):
            assert saturated_failure(law, n, epsilon) <= S6Prime.failure(n, np.eye(3), law, epsilon)

    @pytest.mark.statistical
    @pytest.mark.parametrize("s", [4, 13])
    def test_many_directions(self, s):
        """Ranks 3 and 12 on 32 outcomes: 1,000 trials at N = S6' for δ = 0.05, and 1,000 where the bound is 0.9.

        A true statement fails a comparison with probability at most 1e-7 (binomial tail at the bound itself).
        """
        epsilon, trials = 1e-3, 1000
        rows, target = signed_rows(s, 32, 0.9, seed=0)
        assert KnownSupport.of(rows, target, epsilon).rank == s - 1
        for delta in (0.05, 0.9):
            n_samples = int(S6Prime.n_samples(rows, target, epsilon, delta))
            counts = sample_counts(target, n_samples, trials, named_generator(0, "S6'", s, n_samples))
            fit = simplex_mle(rows, counts, tolerance=1e-11)
            assert (fit.status == "optimal").all()
            fails = int((rel_entr(target, fit.alpha @ rows).sum(axis=1) > epsilon).sum())
            assert fails <= binom.isf(1e-7, trials, delta)


class TestFalseVersions:
    def test_half_of_s6_one(self):
        n_samples = math.ceil(math.log(2 / 0.05) / (2 * 1e-3))
        assert n_samples == 1845
        assert interval_failure(0.2, 0.8, 0.5, n_samples, 1e-3) == pytest.approx(0.0562, abs=5e-5)

    def test_s6_prime_divided_by_two_and_a_half(self):
        quotient = S6Prime.n_samples(OPPOSED, CENTRE, 1e-3, 0.05) / 2.5
        for n_samples in (math.floor(quotient), math.ceil(quotient)):
            assert interval_failure(0.2, 0.8, 0.5, n_samples, 1e-3) > 0.05

    @BOTH
    def test_without_curvature(self, bound):
        """D = √(2ε) and Gaussian moments, or the exponent ε in place of C_±: 2e^{−Nε}, false for a rare outcome."""
        n_samples, target = math.ceil(math.log(2 / 0.05) / 0.1), [0.001, 0.999]
        assert n_samples == 37
        assert interval_failure(0, 1, 0.001, n_samples, 0.1) == pytest.approx(0.964, abs=5e-4)
        true = bound.n_samples(FREE, target, 0.1, 0.05)
        assert interval_failure(0, 1, 0.001, int(true), 0.1) <= 0.05


class TestSteps:
    @given(distinct_rows(st.integers(2, 5), st.integers(2, 5)), st.floats(-6, 0), st.data())
    def test_every_inequality_of_the_proof(self, rows, exponent, data):
        epsilon, law = 10.0**exponent, data.draw(laws(rows.shape[0])) @ rows
        hull, generator = KnownSupport.of(rows, law, epsilon), named_generator(data.draw(st.integers(0, 999)), "steps")
        phi, n, r = hull.phi, hull.norms, hull.rank
        assert law @ phi == pytest.approx(np.zeros(r), abs=1e-9)
        assert phi.T @ (law[:, None] * phi) == pytest.approx(np.eye(r), abs=1e-9)
        assert law * (1 + phi @ hull.vertices[0]) == pytest.approx(rows[0], abs=1e-9)
        _, D, m, variance, knots, heights = _Sphere.of(hull)
        assert D * n.max() < 1
        for v in generator.standard_normal((10, r)):
            u = v / np.linalg.norm(v)
            x, drawn = D * phi @ u, generator.multinomial(9, law)
            assert law @ (x - np.log1p(x)) <= epsilon * (1 + 1e-9)  # (1)
            A = (phi * (drawn / (1 + D * n))[:, None]).T @ phi
            assert drawn @ x >= drawn @ (x / (1 + x)) + D**2 * np.linalg.eigvalsh(A)[0] - 1e-9  # (2)
            h = knots[-1] * generator.random()  # (4)
            assert law @ np.exp(h * phi @ u) <= 1 + h * h * np.interp(h, knots, heights) + 1e-12
        for theta in (0.1, 1.0, 10.0):  # (3): e^{−θX} for X = φφᵀ/(1+Dn) is I − (1−e^{−θn²/(1+Dn)})φφᵀ/n²
            decay = hull.moment(-np.expm1(-theta * n**2 / (1 + D * n)) / np.maximum(n, 1e-9) ** 2)
            assert 1 - np.linalg.eigvalsh(decay)[0] <= math.exp(-theta * m + theta**2 * variance / 2) + 1e-9

    @given(st.floats(-0.999, 0.999))
    def test_log_curvature(self, b):
        exact = sum(b**k / (k + 2) for k in range(30_000))
        assert float(log_curvature(np.array(b))) == pytest.approx(exact, rel=1e-12)

    @pytest.mark.parametrize("s", [2, 3, 6])
    @pytest.mark.parametrize("n_samples", [4000, 8000])
    def test_the_minimum_over_t_and_h_is_found(self, s, n_samples):
        """Against a dense search over t and h; what is missed are the chords of λ and the steps of the grid."""
        rows, target = signed_rows(s, 8, 0.7, seed=1)
        hull = KnownSupport.of(rows, target, 2e-3)
        r, D, m, variance, _, _ = _Sphere.of(hull)
        steps = m * np.linspace(0.001, 0.999, 2000)[:, None]
        tilts = D * np.linspace(0.3, 1, 200)
        heights = np.array([np.linalg.eigvalsh(hull.moment(second_order(h * hull.norms)))[-1] for h in tilts])
        markov = n_samples * np.log1p(tilts**2 * heights) - log_sphere_mean(r, tilts * n_samples * D * (m - steps))
        dense = np.logaddexp(math.log(r) - n_samples * steps**2 / (2 * variance), markov).min()
        assert dense < 0
        assert dense - 0.002 <= math.log(S6Prime.failure(n_samples, rows, target, 2e-3)) <= dense + 0.005

    @given(distinct_rows(st.integers(2, 4), st.integers(2, 4)), st.data())
    def test_more_samples_never_raise_the_bound(self, rows, data):
        law, n_samples = data.draw(laws(rows.shape[0])) @ rows, data.draw(st.integers(1, 10**6))
        for bound in (S6Prime, S6One):
            fewer, more = (bound.failure(n, rows, law, 1e-2) for n in (n_samples, math.ceil(1.05 * n_samples)))
            assert more <= fewer

    @given(st.floats(0.001, 0.999), st.sampled_from([0.1, 0.01, 1e-4, 1e-8]))
    def test_rates_for_two_outcomes_are_divergences(self, truth, epsilon):
        """The samples' frequency is beyond q_±: the exponent is KL(q_±‖q), with KL(q‖q_±) = ε."""
        hull = KnownSupport.of(FREE, [truth, 1 - truth], epsilon)
        for rate, x in zip(_rates(hull), hull.sides(outward=False), strict=True):
            other = hull.law * (1 + x)
            if other.min() > 1e-9:
                assert hull.law @ (x - np.log1p(x)) == pytest.approx(epsilon, rel=1e-7)
            assert rate == pytest.approx(rel_entr(other, hull.law).sum(), rel=1e-6 if epsilon > 1e-6 else 1e-3)

    @given(distinct_rows(st.just(2), st.integers(3, 5)), st.floats(0.1, 0.9))
    def test_rates_are_the_least_over_all_tilts(self, rows, weight):
        hull = KnownSupport.of(rows, (1 - weight) * rows[0] + weight * rows[1], 1e-3)
        assume(not hull.cannot_fail)
        for rate, x in zip(_rates(hull), hull.sides(outward=False), strict=True):
            y = x / (1 + x)
            least = minimize_scalar(
                lambda s, y=y: math.log(hull.law @ np.exp(s * y)),
                bounds=(0, 50),
                method="bounded",
                options={"xatol": 1e-9},
            )
            assert rate == pytest.approx(-least.fun, rel=1e-6)


class TestSize:
    @pytest.mark.parametrize("s", [4, 8, 16, 32])
    def test_against_wilks_on_random_signs(self, s):
        """Where S6 needs 2.2 to 5.5 times Wilks' prediction, S6' needs less; see also `S3`."""
        rows, target = signed_rows(s, 64, 0.5, seed=0)
        for epsilon, most in [(1e-3, 3.5), (1e-4, 2.0)]:
            wilks = S3.n_samples(rows, epsilon, 0.05)
            n_samples = S6Prime.n_samples(rows, target, epsilon, 0.05)
            assert wilks < n_samples <= most * wilks
            assert n_samples < S6.n_samples(rows, target, epsilon, 0.05)

    def test_more_samples_than_doubles_count(self):
        one = S6One.n_samples(OPPOSED, CENTRE, 1e-20, 0.05)
        assert one == pytest.approx(math.log(2 / 0.05) / 1e-20, rel=1e-6)
        assert S6Prime.n_samples(OPPOSED, CENTRE, 1e-20, 0.05) == pytest.approx(one, rel=0.01)
        rows, target = signed_rows(9, 32, 0.5, seed=0)
        wilks = S3.n_samples(rows, 1e-200, 0.05)
        assert wilks < S6Prime.n_samples(rows, target, 1e-200, 0.05) < 1.5 * wilks


class TestEdges:
    @BOTH
    def test_nothing_to_learn(self, bound):
        assert bound.n_samples([[0.3, 0.7]], [0.3, 0.7], 1e-9, 0.05) == 0
        assert bound.n_samples([[0.3, 0.7], [0.3, 0.7]], [0.3, 0.7], 1e-9, 0.05) == 0
        assert bound.n_samples(OPPOSED, CENTRE, 0.3, 0.05) == 0
        assert bound.failure(0, OPPOSED, CENTRE, 0.3) == 0
        assert bound.n_samples(OPPOSED, CENTRE, 0.2, 0.05) > 0
        assert bound.failure(0, OPPOSED, CENTRE, 0.2) == 1

    @BOTH
    def test_an_outcome_that_the_truth_cannot_give(self, bound):
        rows = [[0.5, 0.5, 0.0], [0.5, 0.4, 0.1]]
        assert bound.n_samples(rows, rows[0], 1e-3, 0.05) == math.inf
        assert bound.failure(10**6, rows, rows[0], 1e-3) == 1
        assert math.isfinite(bound.n_samples(rows, np.mean(rows, axis=0), 1e-3, 0.05))

    @BOTH
    def test_an_outcome_that_nobody_can_give(self, bound):
        padded, plain = np.column_stack([OPPOSED, np.zeros(2)]), bound.n_samples(OPPOSED, CENTRE, 1e-3, 0.05)
        assert bound.n_samples(padded, [0.5, 0.5, 0], 1e-3, 0.05) == plain
        inner = np.vstack([OPPOSED, [[0.4, 0.6]], OPPOSED])
        assert bound.n_samples(inner, CENTRE, 1e-3, 0.05) == pytest.approx(plain, abs=1)

    @BOTH
    @pytest.mark.parametrize("truth", [0.2, 0.2001, 0.8])
    def test_a_truth_on_a_face_of_the_hull(self, bound, truth):
        n_samples = int(bound.n_samples(OPPOSED, [truth, 1 - truth], 1e-3, 0.05))
        for n in (n_samples, n_samples + 1, 2 * n_samples):
            assert interval_failure(0.2, 0.8, truth, n, 1e-3) <= 0.05

    def test_only_sides_within_the_hull_count(self):
        (inward,), both = (_rates(KnownSupport.of(rows, [0.2, 0.8], 1e-3)) for rows in (OPPOSED, FREE))
        assert np.abs(both / inward - 1).min() < 1e-9
        assert S6One.n_samples(OPPOSED, [0.2, 0.8], 1e-3, 0.05) == math.ceil(math.log(20) / inward)

    def test_more_than_a_line(self):
        rows, target = signed_rows(3, 8, 0.5, seed=0)
        assert S6One.n_samples(rows, target, 1e-3, 0.05) == math.inf
        assert S6One.failure(10**9, rows, target, 1e-3) == 1

    @BOTH
    def test_wrong_input_is_refused(self, bound):
        with pytest.raises(ValueError, match="mixture"):
            bound.n_samples(OPPOSED, [0.1, 0.9], 1e-3, 0.05)
        with pytest.raises(ValueError, match="shape"):
            bound.n_samples(OPPOSED, [0.1, 0.8, 0.1], 1e-3, 0.05)
        with pytest.raises(ValueError, match="n_samples"):
            bound.failure(-1, OPPOSED, CENTRE, 1e-3)
