"""X1: exact where counts can be enumerated, sharp, false for the wrong frequencies, and right for huge corpora."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from markov_theory.bounds import O3
from markov_theory.bounds.exposure import Exposure, corpus_size, exposure_failure
from markov_theory.corpus import coupled_rates, uniform_rates, zipf_rates
from markov_theory.verify.exact import compositions, multinomial_log_pmf
from tests.strategies import exposures, failure_levels


def exact_failure(n, N, rates):
    """P(some count < N_u) of a multinomial: one token after the other, each binomial given those before."""
    pi, N = np.asarray(rates, dtype=float), np.broadcast_to(N, np.shape(rates))
    left = np.zeros(n + 1)  # probability that all tokens so far are seen enough, by chances left
    left[n] = 1
    rest = 1.0
    for p, needed in zip(pi, N, strict=True):
        share = min(1.0, p / rest) if rest > 0 else 0.0
        following = np.zeros(n + 1)
        for chances in np.flatnonzero(left):
            seen = np.arange(int(needed), chances + 1)
            np.add.at(following, chances - seen, left[chances] * binom.pmf(seen, chances, share))
        left, rest = following, rest - p
    return 1 - left.sum()


def exact_tail(n, N, p):
    """P(Bin(n, p) < N) in rational arithmetic, of the double p as it is."""
    p = Fraction(float(p))
    return sum(math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(min(N, n + 1)))


@given(exposures(), st.integers(0, 25))
def test_the_oracle_is_right(exposure, n):
    rates, N = exposure
    counts = compositions(min(n, 12), rates.size + 1)
    law = np.append(rates, max(0.0, 1 - rates.sum()))
    fails = (counts[:, :-1] < N).any(axis=1)
    probability = np.exp(multinomial_log_pmf(counts, law[None]))[:, 0]
    assert exact_failure(min(n, 12), N, rates) == pytest.approx(probability[fails].sum(), abs=1e-12)


@given(exposures(), st.integers(0, 60))
def test_failure_lies_between_its_bounds_and_those_within_bonferroni(exposure, n):
    rates, N = exposure
    lower, upper = exposure_failure(n, N, rates)
    exact = exact_failure(n, N, rates)
    assert lower - 1e-12 <= exact <= upper + 1e-12
    total = binom.cdf(N - 1, n, rates).sum()
    assert lower >= total - total**2 / 2 - 1e-12
    assert upper == pytest.approx(min(1, total), abs=1e-12)


@given(exposures(), failure_levels())
def test_it_suffices_and_hardly_less_does(exposure, delta):
    rates, N = exposure
    n = Exposure.n_samples(N, rates, delta)
    if (rates[N > 0] == 0).any():
        assert n == math.inf
        return
    if n <= 300:
        assert exact_failure(int(n), N, rates) <= delta + 1e-12
    if 0 < n <= 150:
        by_fractions = [sum(exact_tail(int(k), int(N[u]), rates[u]) for u in range(N.size)) for k in (n, n - 1)]
        assert by_fractions[0] <= delta < by_fractions[1] * Fraction(1 + 1e-11)
    if n > 0:
        assert exposure_failure(n, N, rates)[1] <= delta
        lower, upper = exposure_failure(n - 1, N, rates)
        assert upper > delta * (1 - 1e-9)
        assert lower > delta * (1 - delta / 2) * (1 - 1e-9)


class TestUniformUnderZipf:
    """Ten tokens, 20 samples each, δ = .05: n = 327 for uniform frequencies, and for them alone."""

    def test_it_holds_for_uniform_frequencies(self):
        assert Exposure.n_samples(20, uniform_rates(10), 0.05) == 327
        assert 0.04 < exact_failure(327, 20, uniform_rates(10)) <= 0.05
        assert exact_failure(326, 20, uniform_rates(10)) > 0.0495

    def test_it_is_false_for_zipf(self):
        assert binom.cdf(19, 327, zipf_rates(10)[-1]) >= 0.990  # the rarest token alone
        assert exact_failure(327, 20, zipf_rates(10)) > 0.9999
        assert exposure_failure(327, 20, zipf_rates(10))[0] > 0.9999
        assert Exposure.n_samples(20, zipf_rates(10), 0.05) == 833

    def test_it_is_false_for_frequencies_of_the_tokens_mapped_to(self):
        rates = coupled_rates(np.eye(10), zipf_rates(10, 0.5))
        assert exact_failure(327, 20, rates) > 0.7

    def test_bonferroni_says_nothing_where_many_tokens_fail(self):
        total = binom.cdf(19, 327, zipf_rates(10)).sum()
        assert total - total**2 / 2 < 0

    def test_false_versions(self):
        rates = uniform_rates(10)
        assert exact_failure(int(20 / 0.1), 20, rates) > 0.9  # expectations
        one = Exposure.n_samples(20, rates[:1], 0.05)  # no union
        assert exact_failure(int(one), 20, rates) > 0.3


class TestHugeCorpora:
    @pytest.mark.parametrize("rate", [1e-3, 1e-9, 1e-14])
    @pytest.mark.parametrize("N", [1, 5, 40])
    def test_rare_tokens_are_poisson(self, rate, N):
        n = Exposure.n_samples(N, [rate], 0.05)
        mean = n * rate
        poisson = sum(math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(N))
        # Le Cam: the binomial is within n·π² of its Poisson law in total variation; one chance moves it by less.
        assert poisson == pytest.approx(0.05, abs=2 * mean * rate + 2 * rate + 1e-9)

    def test_one_sample_in_closed_form(self):
        for rate in (0.3, 1e-5, 1e-12, 3e-15):
            n = Exposure.n_samples(1, [rate], 1e-6)
            assert n == pytest.approx(math.log(1e-6) / math.log1p(-rate), abs=1, rel=1e-11)

    @pytest.mark.parametrize(("N", "rate"), [(10**6, 1e-9), (10**12, 1e-3), (10**9, 0.5)])
    def test_many_samples_are_gaussian(self, N, rate):
        n = Exposure.n_samples(N, [rate], 0.05)
        z = (N - n * rate) / math.sqrt(n * rate * (1 - rate))
        # Berry-Esseen, constant 0.56: |P - Φ| ≤ .56(1-2π(1-π))/√(nπ(1-π)), and the density at the point is 0.103.
        error = 0.56 / math.sqrt(n * rate * (1 - rate))
        assert z == pytest.approx(-1.6448536269514722, abs=1.2 * error / 0.103 + 1e-6)

    def test_failure_probabilities_below_the_range_of_doubles_in_the_tail(self):
        n = Exposure.n_samples(3, [0.5], 1e-300)
        by_hand = next(k for k in range(900, 1200) if 1 + k + math.comb(k, 2) <= Fraction(1e-300) * 2**k)
        assert by_hand <= n <= by_hand + 2
        assert Exposure.n_samples([3, 3], [0.9, 0.01], 1e-305) < math.inf

    def test_beyond_whole_doubles(self):
        assert Exposure.n_samples(100, [1e-20], 0.05) == pytest.approx(1.17e22, rel=0.01)


class TestBothDeltas:
    def test_each_part_gets_its_share(self):
        rows = [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]]
        bound = partial(O3.n_samples, rows)
        rates = zipf_rates(3, 1.0, 0.3)
        size = corpus_size(bound, rates, 0.1, share=0.2)
        assert size.exposure_delta + 3 * size.learning_delta == pytest.approx(0.1)
        assert (size.n_samples == bound(0.8 * 0.1 / 3)).all()
        assert size.n_chances == Exposure.n_samples(size.n_samples, rates, 0.02)

    @given(exposures(), st.floats(0.01, 0.5), st.floats(0.05, 0.95))
    def test_a_bound_for_each_token(self, exposure, delta, share):
        rates, N = exposure
        bounds = [lambda d, N=N: N * math.ceil(math.log(1 / d)) for N in N.tolist()]
        size = corpus_size(bounds, rates, delta, share)
        assert size.n_samples.tolist() == [bound(size.learning_delta) for bound in bounds]
        assert (size.n_chances == math.inf) == bool((rates[N > 0] == 0).any())

    def test_a_token_that_cannot_be_learned_needs_an_endless_corpus(self):
        assert corpus_size(lambda delta: math.inf, [0.1], 0.1).n_chances == math.inf

    def test_wrong_numbers_of_bounds_are_refused(self):
        with pytest.raises(ValueError, match="one bound or one a token, 2, got 1"):
            corpus_size([lambda delta: 1], [0.1, 0.2], 0.1)
        with pytest.raises(ValueError, match="share must lie strictly between"):
            corpus_size(lambda delta: 1, [0.1, 0.2], 0.1, share=1.0)


@pytest.mark.parametrize(
    ("N", "rates", "words"),
    [
        (20, [0.6, 0.6], "total of 1.2"),
        (20, [-0.1], "non-negative"),
        (20, [np.nan], "non-negative"),
        (20, [], "at least one"),
        ([20, 20], [0.1], r"one number or have shape \(1,\)"),
        (2.5, [0.1], "whole numbers"),
        (-1, [0.1], "whole numbers"),
    ],
)
def test_wrong_exposures_are_refused(N, rates, words):
    with pytest.raises(ValueError, match=words):
        Exposure.n_samples(N, rates, 0.05)


def test_edges():
    assert Exposure.n_samples(0, [0.0, 0.5], 0.05) == 0
    assert Exposure.n_samples(7, [1.0], 0.05) == 7
    assert Exposure.n_samples([0, 1], [0.0, 0.5], 0.05) == 5
    assert exposure_failure(0, 1, [0.5]) == (1.0, 1.0)
    assert exposure_failure(1e300, 1, [0.5]) == (0.0, 0.0)
    with pytest.raises(ValueError, match="n_chances must be a whole number"):
        exposure_failure(1.5, 1, [0.5])
    with pytest.raises(ValueError, match="n_chances must be a whole number"):
        exposure_failure(math.inf, 1, [0.5])
