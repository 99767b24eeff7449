"""Two outcomes in closed form, against sums over all counts."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import binom

from markov_theory.verify.two_outcomes import (
    binary_divergence,
    interval_failure,
    interval_failures,
    interval_window,
    last_possible,
    row_failures,
    row_window,
)

sizes = st.floats(0, 1).map(lambda p: p if p > 1e-12 else 0.0)  # scipy.stats.binom overflows at the least doubles
probabilities = st.one_of(sizes, st.sampled_from([0.0, 1.0, 1e-3, 0.5, 1 - 1e-6]))


@given(probabilities, probabilities, sizes, st.integers(1, 300), st.floats(1e-4, 0.6),
       st.sampled_from(["kl", "hellinger"]))  # fmt: skip
def test_intervals_by_summation(one, other, weight, n_samples, epsilon, divergence):
    low, high = min(one, other), max(one, other)
    truth = min(max(low + weight * (high - low), low), high)
    seen = np.arange(n_samples + 1)
    distance = binary_divergence(truth, np.clip(seen / n_samples, low, high), divergence)
    assume((np.abs(distance / epsilon - 1) > 1e-9).all())  # which side ε is on is not a matter of rounding
    summed = binom.pmf(seen, n_samples, truth)[distance > epsilon].sum()
    found = float(interval_failures(low, high, truth, n_samples, epsilon, divergence))
    assert found == pytest.approx(summed, abs=1e-10)


@given(st.lists(probabilities, min_size=1, max_size=5), st.integers(0, 60))
def test_rows_by_comparing_likelihoods(first, n_samples):
    p = np.array(first)
    found = row_failures(p, [n_samples])[0]
    assert found.shape == p.shape
    seen = np.arange(n_samples + 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_likelihood = np.where(seen[:, None] > 0, seen[:, None] * np.log(p), 0.0) + np.where(
            n_samples - seen[:, None] > 0, (n_samples - seen[:, None]) * np.log1p(-p), 0.0
        )
    scale = 1 + np.abs(np.where(np.isfinite(log_likelihood), log_likelihood, 0.0))
    for v in range(p.size):
        with np.errstate(invalid="ignore"):
            lead = np.delete(log_likelihood, v, axis=1) - log_likelihood[:, [v]]
            fails = (np.nan_to_num(lead, nan=0.0, posinf=1e9, neginf=-1e9) >= -1e-12 * scale[:, [v]]).any(axis=1)
        chance = binom.pmf(seen, n_samples, p[v])
        near = (np.abs(np.nan_to_num(lead, nan=9.0, posinf=9.0, neginf=9.0)) < 1e-9).any(axis=1)
        certain, possible = chance[fails & ~near].sum(), chance[fails | near].sum()
        assert certain - 1e-10 <= found[v] <= possible + 1e-10


def test_a_tie_is_a_failure():
    # Mirrored rows tie at N/2 of N: the exact probability of that count is part of the failure.
    failure = row_failures([0.55, 0.45], [230])[0]
    assert failure == pytest.approx(binom.cdf(115, 230, 0.55), rel=1e-10)


@given(probabilities, probabilities, sizes, st.floats(1e-3, 0.3), st.floats(1e-3, 0.5))
def test_chernoff_clears_every_n_beyond(one, other, weight, epsilon, delta):
    low, high = min(one, other), max(one, other)
    truth = min(max(low + weight * (high - low), low), high)
    last = last_possible(interval_window(low, high, truth, epsilon), delta)
    if last < 1e7:
        N = int(last) + np.arange(200)
        assert (interval_failures(low, high, truth, N, epsilon) <= delta).all()


def test_rows_that_coincide_are_never_cleared():
    assert last_possible(row_window(np.array([0.3, 0.3]), 0), 0.1) == math.inf
    assert row_failures([0.3, 0.3, 0.9], [50])[0, :2].tolist() == [1.0, 1.0]
    assert last_possible(row_window(np.array([1.0, 0.0]), 0), 0.1) == 1


@pytest.mark.parametrize("n_samples", [10**6, 10**9, 10**12, 2**50, 2**53])
@pytest.mark.parametrize("truth", [0.3, 0.5, 0.001])
def test_huge_numbers_of_samples(n_samples, truth):
    """Wilks: P(2N·KL > x) is the tail of chi-squared with one degree of freedom, and KL is 2H² near the truth."""
    epsilon = 3.841458820694124 / (2 * n_samples)
    one_count = 0.117 / math.sqrt(n_samples * truth * (1 - truth))  # its share of the failure probability, both sides
    for at, divergence in ((epsilon, "kl"), (epsilon / 2, "hellinger")):
        found = float(interval_failures(0, 1, truth, n_samples, at, divergence))
        assert found == pytest.approx(0.05, abs=one_count + 1e-6)


@pytest.mark.parametrize("n_samples", [2**53 + 2, 2**56, -1])
def test_more_samples_than_a_double_counts_are_refused(n_samples):
    with pytest.raises(ValueError, match="n_samples must"):
        interval_failure(0.2, 0.8, 0.5, n_samples, 1e-17)
    with pytest.raises(ValueError, match="n_samples must"):
        interval_failures(0.2, 0.8, 0.5, [10, n_samples], 1e-17)
    with pytest.raises(ValueError, match="n_samples must"):
        row_failures([0.2, 0.8], [n_samples])


@given(st.one_of(st.floats(1e-12, 1 - 1e-12), st.just(0.5)), st.floats(-16, 0), st.booleans())
def test_divergences_of_laws_however_near(truth, log_move, up):
    with localcontext() as context:
        context.prec = 80
        x = truth * (1 + 10**log_move * (1 if up else -1))
        assume(0 < x < 1)
        p, q = Decimal(truth), Decimal(x)
        kl = p * (p / q).ln() + (1 - p) * ((1 - p) / (1 - q)).ln()
        h2 = (p.sqrt() - q.sqrt()) ** 2 + ((1 - p).sqrt() - (1 - q).sqrt()) ** 2
    assert float(binary_divergence(truth, x)) == pytest.approx(float(kl), rel=1e-13, abs=0)
    assert float(binary_divergence(truth, x, "hellinger")) == pytest.approx(float(h2), rel=1e-13, abs=0)


def test_a_rare_outcome_on_either_side():
    for truth in (1e-12, 1 - 1e-12):
        assert interval_failure(0, 1, truth, 10, 1e-11) == pytest.approx(1, abs=1e-9)
    assert interval_failure(0, 1, 0.999, 60, 0.1) == pytest.approx(interval_failure(0, 1, 0.001, 60, 0.1), rel=1e-9)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="low <= truth <= high"):
        interval_failures(0.5, 0.4, 0.45, 3, 0.1)
