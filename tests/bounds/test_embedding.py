"""E1–E4: exact at N = bound, false versions refuted, steps of the proofs, and Wilks' degrees of freedom."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import logsumexp, rel_entr
from scipy.stats import chi2

from markov_theory import divergences as dv
from markov_theory.bounds import E1, E2, E3, E4
from markov_theory.bounds.base import least_integer
from markov_theory.bounds.embedding import _half_space_quantile, largest_kl_of_range
from markov_theory.bounds.known_embedding import _reach, log_sphere_failure, log_sphere_mean, second_order, whitened
from markov_theory.embedding_instance import plant_embedding
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.softmax_head import embedding_mle, softmax_mixture_mle
from markov_theory.verify.exact import compositions, interval_failure, multinomial_log_pmf
from tests.strategies import laws

COIN = [[0.5], [-0.5]]  # the statistic is the log-odds
CENTRED = {"n_tokens": 1, "sparsity": 1, "logit_spread": 1.0}


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def failure_in_ball(truth: float, reach: float, n_samples: int, epsilon: float) -> float:
    """Two outcomes, log-odds in [−reach, reach]: the maximiser is the frequency moved into the interval."""
    return interval_failure(sigmoid(-reach), sigmoid(reach), sigmoid(truth), n_samples, epsilon)


def saturated_failure(law: np.ndarray, n_samples: int, epsilon: float) -> float:
    """All laws on J outcomes: the maximiser is the table itself, and there is none where a count is 0."""
    counts = compositions(n_samples, law.size)
    kl = np.where((counts == 0).any(axis=1), np.inf, rel_entr(law, counts / max(n_samples, 1)).sum(axis=1))
    return float(np.exp(multinomial_log_pmf(counts, law[None, :]))[kl > epsilon, 0].sum())


def curve_failure(statistic: np.ndarray, law: np.ndarray, n_samples: int, epsilon: float) -> float:
    """One parameter, any J: the maximiser is beyond q_± if and only if the mean statistic is beyond its mean there."""
    counts = compositions(n_samples, law.size)
    mean = counts @ statistic / n_samples

    def divergence(t: float) -> float:
        return float(logsumexp(t * statistic, b=law) - t * (law @ statistic)) - epsilon

    def mean_at(t: float) -> float:
        return float(law * np.exp(t * statistic - logsumexp(t * statistic, b=law)) @ statistic)

    high = mean_at(brentq(divergence, 0, 1e3 / np.ptp(statistic)))
    low = mean_at(brentq(divergence, -1e3 / np.ptp(statistic), 0))
    fails = (mean > high) | (mean < low)
    return float(np.exp(multinomial_log_pmf(counts, law[None, :]))[fails, 0].sum())


class TestNets:
    @pytest.mark.parametrize("bound", [E1, E2])
    @pytest.mark.parametrize("radius", [0.5, 2.0, 4.0])
    @pytest.mark.parametrize("epsilon", [0.1, 0.01])
    def test_suffice_for_two_outcomes(self, bound, radius, epsilon):
        n_samples = bound.n_samples(**CENTRED, radius=radius, epsilon=epsilon, delta=0.05)
        if n_samples <= 3e5:
            for truth in (0.0, 0.4 * radius, radius):
                assert failure_in_ball(truth, radius, int(n_samples), epsilon) <= 0.05

    @pytest.mark.parametrize("bound", [E1, E2])
    def test_no_two_laws_apart(self, bound):
        least = largest_kl_of_range(1.0)
        assert bound.n_samples(9, 3, 0.5, 1.0, least * (1 + 1e-9), 0.05) == 0
        assert bound.n_samples(9, 3, 0.5, 1.0, least * (1 - 1e-9), 0.05) > 0
        assert bound.n_samples(9, 3, 0.0, 1.0, 1e-9, 0.05) == 0

    @given(st.floats(1e-3, 20), st.integers(2, 5), st.data())
    def test_largest_divergence_of_a_range(self, log_range, J, data):
        law = data.draw(laws(J))
        tilt = np.array(data.draw(st.lists(st.floats(0, 1), min_size=J, max_size=J))) * log_range
        other = law * np.exp(tilt) / (law @ np.exp(tilt))
        assert dv.kl_divergence(other, law) <= largest_kl_of_range(log_range) * (1 + 1e-9)
        share = np.linspace(1e-4, 1 - 1e-4, 20_001)  # two outcomes whose log-ratios are R apart
        reached = (share * log_range + np.log(share * np.exp(-log_range) + 1 - share)).max()
        assert largest_kl_of_range(log_range) * (1 - 1e-6) <= reached <= largest_kl_of_range(log_range) * (1 + 1e-9)

    def test_solver_gap(self):
        given = {"n_tokens": 9, "sparsity": 3, "logit_spread": 1.0, "radius": 1.0, "epsilon": 0.1, "delta": 0.05}
        limit = 0.1 / (2 * dv.kappa(math.exp(2)))
        assert E2.n_samples(**given, gap=limit / 2) == pytest.approx(2 * E2.n_samples(**given), abs=2)
        assert E2.n_samples(**given, gap=limit) == math.inf
        with pytest.raises(ValueError, match="gap"):
            E2.n_samples(**given, gap=-1.0)

    def test_huge_ratios_stay_finite(self):
        for bound in (E1, E2):
            assert 1e4 < bound.n_samples(9, 3, 1e3, 1e3, 0.1, 0.05) < math.inf
        with pytest.raises(ValueError, match="logit_spread"):
            E1.n_samples(9, 3, math.inf, 1.0, 0.1, 0.05)

    def test_one_unit_of_weight_moves_log_probabilities_by_the_spread(self):
        """A move of α by η on one support moves every log-probability by at most G_s·η, and its range too."""
        planted = plant_embedding(10, 8, 6, 3, radius=1.0)
        generator = named_generator(0, "moves")
        for _ in range(200):
            alpha, move = np.zeros(10), np.zeros(10)
            support = generator.choice(10, 3, replace=False)
            alpha[support], move[support] = generator.standard_normal((2, 3))
            before, after = (
                logits - logsumexp(logits)
                for logits in (planted.scores @ a + planted.bias for a in (alpha, alpha + move))
            )
            assert np.ptp(after - before) <= planted.logit_spread * np.linalg.norm(move) * (1 + 1e-12)
            assert np.abs(after - before).max() <= planted.logit_spread * np.linalg.norm(move) * (1 + 1e-12)


class TestFalseNets:
    def test_a_hundredth_of_e2(self):
        n_samples = math.ceil(E2.n_samples(**CENTRED, radius=0.5, epsilon=0.01, delta=0.05) / 100)
        assert n_samples == 91
        assert failure_in_ball(0.0, 0.5, n_samples, 0.01) > 0.1

    def test_e1_with_the_accuracy_not_squared(self):
        """N = (2L²/ε)[…] asks for less than Wilks where L is small."""
        radius, epsilon = 0.025, 5e-5
        true = E1.n_samples(**CENTRED, radius=radius, epsilon=epsilon, delta=0.05)
        n_samples = math.ceil(true * epsilon)
        assert n_samples == 1130
        assert failure_in_ball(0.0, radius, n_samples, epsilon) > 0.5


class TestKnownSupport:
    @pytest.mark.parametrize(("epsilon", "n_samples"), [(0.1, 40), (1e-2, 372), (1e-3, 3692), (1e-4, 36892)])
    def test_on_a_fair_coin(self, epsilon, n_samples):
        assert E4.n_samples(COIN, [0.5, 0.5], epsilon, 0.05) == n_samples
        assert interval_failure(0, 1, 0.5, n_samples, epsilon) <= 0.05

    @given(st.floats(0.001, 0.999), st.sampled_from([0.2, 0.05, 0.01, 1e-3]), st.sampled_from([1e-3, 0.05, 0.5]))
    def test_suffices_for_two_outcomes(self, truth, epsilon, delta):
        n_samples = E4.n_samples(COIN, [truth, 1 - truth], epsilon, delta)
        assume(n_samples <= 1e6)
        for n in {int(n_samples), int(n_samples) + 1, int(1.1 * n_samples)}:
            assert interval_failure(0, 1, truth, n, epsilon) <= delta

    @given(laws(3), st.floats(-3, 3), st.sampled_from([0.3, 0.1, 0.05]), st.sampled_from([0.05, 0.3]))
    def test_suffices_on_a_curve_through_three_outcomes(self, law, middle, epsilon, delta):
        statistic = np.array([0.0, 1.0, middle])
        n_samples = E4.n_samples(statistic[:, None], law, epsilon, delta)
        assume(n_samples <= 600)
        assert curve_failure(statistic, law, int(n_samples), epsilon) <= delta

    @pytest.mark.parametrize("law", [[1 / 3] * 3, [0.6, 0.3, 0.1], [0.9, 0.09, 0.01]])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.05), (0.05, 0.5), (0.05, 0.05)])
    def test_suffices_when_every_law_is_in_the_class(self, law, epsilon, delta):
        n_samples = E4.n_samples(np.eye(3), law, epsilon, delta)
        if n_samples <= 1500:
            assert saturated_failure(np.array(law), int(n_samples), epsilon) <= delta

    def test_suffices_with_three_parameters(self):
        n_samples = E4.n_samples(np.eye(4), [0.25] * 4, 0.2, 0.3)
        assert n_samples <= 250
        assert saturated_failure(np.full(4, 0.25), int(n_samples), 0.2) <= 0.3

    def test_a_ball_and_redundant_tokens_change_nothing(self):
        assert E4.n_samples([[1.0, 2.0], [-1.0, -2.0]], [0.5, 0.5], 1e-3, 0.05) == 3692

    @pytest.mark.parametrize("s", [2, 4, 8])
    def test_within_a_small_factor_of_wilks(self, s):
        planted = plant_embedding(64, 128, 16, s, radius=2.0)
        for epsilon, most in [(1e-3, 3.0), (1e-4, 2.0)]:
            wilks = E3.at(planted, epsilon=epsilon, delta=0.05)
            assert wilks < E4.at(planted, epsilon=epsilon, delta=0.05) <= most * wilks


class TestFalseKnownSupport:
    def test_half(self):
        n_samples = math.floor(E4.n_samples(COIN, [0.5, 0.5], 1e-3, 0.05) / 2)
        assert n_samples == 1846
        assert interval_failure(0, 1, 0.5, n_samples, 1e-3) > 0.05

    def test_divergence_reversed(self):
        """exp(−N·KL(q‖q_±)) in place of exp(−N·KL(q_±‖q)): a rare outcome is mostly not seen at all."""
        n_samples = math.ceil(math.log(2 / 0.05) / 0.1)
        assert n_samples == 37
        assert interval_failure(0, 1, 0.001, n_samples, 0.1) == pytest.approx(0.964, abs=5e-4)
        true = E4.n_samples(COIN, [0.001, 0.999], 0.1, 0.05)
        assert interval_failure(0, 1, 0.001, int(true), 0.1) <= 0.05

    def test_without_the_diameter(self):
        """ω = 0, D²/2 = ε and the mean statistic at D: the Gaussian answer, false for a rare outcome."""
        law, epsilon = np.array([0.9, 0.09, 0.01]), 0.2
        statistics = whitened(np.eye(3), law)
        reach = math.sqrt(2 * epsilon)
        n_samples = least_integer(
            lambda n: log_sphere_failure(float(n), 2, statistics.leverage, reach) <= math.log(0.05), low=1
        )
        assert n_samples == 59
        assert saturated_failure(law, int(n_samples), epsilon) == pytest.approx(0.5545, abs=5e-5)


class TestGeometry:
    @given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 10**6))
    def test_whitening(self, J, s, seed):
        generator = named_generator(seed, "whitening", J, s)
        scores, law = generator.standard_normal((J, s)), generator.dirichlet(np.ones(J)) * 0.9 + 0.1 / J
        phi, _, diameter, leverage = whitened(scores, law)
        rank = min(s, J - 1)
        assert law @ phi == pytest.approx(np.zeros(rank), abs=1e-10)
        assert phi.T @ (law[:, None] * phi) == pytest.approx(np.eye(rank), abs=1e-10)
        assert leverage >= math.sqrt(rank) * (1 - 1e-9)
        assert leverage <= diameter * (1 + 1e-9) <= 2 * leverage * (1 + 1e-8)
        # Inside the radius D the divergence is at most ε; on its sphere the mean statistic is at least `reach`.
        epsilon = 10.0 ** generator.uniform(-4, 0)
        reach = _reach(diameter, epsilon)
        D = -math.log1p(-reach * diameter) / diameter
        for direction in generator.standard_normal((20, rank)):
            tilt = D * phi @ direction / np.linalg.norm(direction)
            assert logsumexp(tilt, b=law) <= epsilon * (1 + 1e-9)
            mean = law * np.exp(tilt - logsumexp(tilt, b=law)) @ tilt / D
            assert mean >= reach * (1 - 1e-9)

    @given(st.integers(2, 700), st.floats(-6, 5).map(lambda x: 10.0**x))
    def test_sphere_mean_is_never_overestimated(self, rank, z):
        value = float(log_sphere_mean(rank, np.array([z]))[0])
        assert value <= z * (1 + 1e-12) + 1e-9
        assert value <= z * z / (2 * rank) * (1 + 1e-9) + 1e-9  # sub-Gaussian
        if z < 50:
            k = np.arange(400.0)
            terms = 2 * k * math.log(z / 2) - np.cumsum(np.log(np.maximum(k, 1))) - np.cumsum(_rising(rank / 2, 400))
            assert value <= logsumexp(terms) + 1e-9
            assert value >= logsumexp(terms) * (1 - 0.02) - 1e-9

    @given(st.floats(-3, 3))
    def test_second_order(self, b):
        exact = sum(b**k / math.factorial(k + 2) for k in range(40))
        assert float(second_order(np.array(b))) == pytest.approx(exact, rel=1e-9)


class TestEdges:
    def test_a_statistic_that_is_constant(self):
        assert E4.n_samples([[1.0], [1.0]], [0.3, 0.7], 1e-9, 0.05) == 0
        assert E4.n_samples([[1.0], [1.0]], [0.0, 1.0], 1e-9, 0.05) == 0

    def test_an_outcome_without_probability(self):
        assert E4.n_samples(COIN, [0.0, 1.0], 1e-3, 0.05) == math.inf

    def test_more_samples_than_doubles_count(self):
        assert E4.n_samples(COIN, [0.5, 0.5], 1e-20, 0.05) == pytest.approx(math.log(40) / 1e-20, rel=1e-6)
        high = E4.n_samples(np.eye(3), [0.2, 0.3, 0.5], 1e-18, 0.05)
        assert high / E3.n_samples(2, 1e-18, 0.05) == pytest.approx(1.5, abs=0.2)

    def test_wrong_input_is_refused(self):
        with pytest.raises(ValueError, match="support_scores must have shape"):
            E4.n_samples([[1.0], [2.0], [3.0]], [0.5, 0.5], 1e-3, 0.05)
        with pytest.raises(ValueError, match="support_scores must be finite"):
            E4.n_samples([[math.nan], [2.0]], [0.5, 0.5], 1e-3, 0.05)
        with pytest.raises(ValueError, match="degrees_of_freedom"):
            E3.n_samples(-1, 1e-3, 0.05)


class TestWilks:
    def test_quantiles(self):
        assert E3.n_samples(0, 1e-3, 0.05) == 0
        assert E3.n_samples(1, 1e-3, 0.05) == 1921
        for df in (1, 2, 7):
            x = _half_space_quantile(df, 0.05)
            smaller = chi2.sf(x, df - 1) if df > 1 else 0.0
            assert (smaller + chi2.sf(x, df)) / 2 == pytest.approx(0.05)
        assert _half_space_quantile(1, 0.6) == 0

    def test_it_is_right_for_a_coin_and_df_equal_to_s_is_not(self):
        """Two tokens along one direction: df = 1, not s = 2."""
        right, wrong = (int(E3.n_samples(df, 1e-4, 0.05)) for df in (1, 2))
        assert interval_failure(0, 1, 0.5, right, 1e-4) == pytest.approx(0.05, abs=2e-3)
        assert interval_failure(0, 1, 0.5, wrong, 1e-4) == pytest.approx(0.0145, abs=1e-3)

    def test_on_the_sphere(self):
        """The truth is the end of the interval: half of the tables fit exactly, the others as for df = 1."""
        n_samples = int(E3.n_samples(1, 1e-4, 0.05, ball_active=True))
        assert failure_in_ball(1.0, 1.0, n_samples, 1e-4) == pytest.approx(0.05, abs=2e-3)

    def test_for_three_outcomes_exactly(self):
        n_samples = 300
        epsilon = float(chi2.isf(0.05, 2)) / (2 * n_samples)
        assert saturated_failure(np.full(3, 1 / 3), n_samples, epsilon) == pytest.approx(0.05, abs=5e-3)

    @pytest.mark.statistical
    @pytest.mark.parametrize("s", [2, 5])
    def test_degrees_of_freedom(self, s):
        """2N·KL has mean df and exceeds its 95 % point in 5 % of trials: df = s on the known support, d if free.

        At N = 200,000 Wilks' law is taken to hold to 0.05 in the mean, a tenth in the variance and 0.005 in the
        probability. Over 8,000 trials the deviations are then at most √(1.1·16/8000) = 0.047 and 0.0026, so that a true
        statement leaves the windows ±0.4 and ±0.02 with probability below 1e-7 (7 and 5.7 deviations).
        """
        n_samples = 200_000
        planted = plant_embedding(20, 24, 8, s, radius=1.0)
        counts = sample_counts(planted.target, n_samples, 8000, named_generator(0, "wilks", s))
        known = softmax_mixture_mle(planted.embeddings, planted.weights, planted.bias, counts, support=planted.support)
        dense = embedding_mle(planted.weights, planted.bias, counts)
        assert (planted.degrees_of_freedom, planted.dense_degrees_of_freedom) == (s, 8)
        for fit, df in [(known, s), (dense, 8)]:
            assert (fit.status == "optimal").all()
            statistic = 2 * n_samples * rel_entr(planted.target, fit.law).sum(axis=1)
            assert abs(statistic.mean() - df) < 0.4
            assert abs((statistic > chi2.isf(0.05, df)).mean() - 0.05) < 0.02


def _rising(start: float, n: int) -> np.ndarray:
    """Logs of the factors of the rising factorial: 0, log a, log (a+1) and so on."""
    return np.concatenate([[0.0], np.log(start + np.arange(n - 1))])
