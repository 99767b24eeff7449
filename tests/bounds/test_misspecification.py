"""M1, M2: the excess risk is bounded whatever the truth; S1 and S2 as they stand do not bound it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from markov_theory import divergences as dv
from markov_theory.bounds import S1, S2
from markov_theory.bounds.misspecification import M1, M2
from markov_theory.misspecified import project
from tests.strategies import distinct_rows, failure_levels, laws, ordinary

OPPOSED = np.array([[0.2, 0.8], [0.8, 0.2]])
FAR = np.array([[0.9, 0.1], [0.1, 0.9]])


def kl(q, first):
    """KL of the law (q, 1-q) to laws with these probabilities of the first outcome."""
    return dv.kl_divergence([q, 1 - q], np.column_stack([first, 1 - np.asarray(first)]))


def row_failure(rows, q, n, epsilon):
    """P(some likeliest row has an excess risk above ε) for n draws from (q, 1-q): s = 1, J = 2."""
    seen = np.arange(n + 1)[:, None]
    likelihood = seen * np.log(rows[:, 0]) + (n - seen) * np.log(rows[:, 1])
    best = likelihood >= likelihood.max(axis=1, keepdims=True) - 1e-12 * (1 + np.abs(likelihood))
    excess = kl(q, rows[:, 0]) - kl(q, rows[:, 0]).min()
    fails = (best & (excess > epsilon)).any(axis=1)
    return float(binom.pmf(seen[:, 0], n, q)[fails].sum())


def hull_failure(rows, q, n, epsilon):
    """The same over all mixtures of the rows: the frequency, moved into the interval."""
    low, high = rows[:, 0].min(), rows[:, 0].max()
    least = float(kl(q, [min(max(q, low), high)])[0])
    estimate = np.clip(np.arange(n + 1) / n, low, high) if n else np.array([low, high])
    fails = kl(q, estimate) - least > epsilon
    return float(binom.pmf(np.arange(n + 1), n, q)[fails].sum()) if n else float(fails.any())


truths = st.sampled_from([0.0, 0.02, 0.3, 0.49, 0.5, 0.51, 0.75, 1.0])


@given(
    distinct_rows(st.integers(2, 4), st.just(2)),
    truths,
    st.sampled_from([0.7, 0.2, 0.05]),
    st.sampled_from([0.05, 0.4]),
)
def test_upper_bounds_suffice_for_any_truth(rows, q, epsilon, delta):
    T, c = rows.shape[0], dv.density_ratio(rows)
    n_rows = M1.n_samples(T, 1, c, epsilon, delta)
    if n_rows <= 2e5:
        assert row_failure(rows, q, int(n_rows), epsilon) <= delta
    for n in (M1.n_samples(T, T, c, epsilon, delta), M2.n_samples(T, c, epsilon, delta)):
        if n <= 2e5:
            assert hull_failure(rows, q, int(n), epsilon) <= delta


class TestFalseVersions:
    """Two rows that are almost equally far from the truth."""

    ratio, delta = 4.0, 0.05

    def excess(self, shift):
        return 2 * shift * math.log(4)

    @pytest.mark.parametrize("shift", [0.02, 0.005, 0.002])
    def test_s2_for_sparse_mixtures(self, shift):
        epsilon = 0.999 * self.excess(shift)
        n = int(S2.n_samples(2, 1, self.ratio, epsilon, self.delta))
        assert row_failure(OPPOSED, 0.5 + shift, n, epsilon) > 3 * self.delta
        enough = int(M1.n_samples(2, 1, self.ratio, epsilon, self.delta))
        assert row_failure(OPPOSED, 0.5 + shift, enough, epsilon) <= self.delta

    def test_m1_with_epsilon_in_place_of_its_square(self):
        epsilon = 0.999 * self.excess(0.002)
        n = math.ceil(M1.n_samples(2, 1, self.ratio, epsilon, self.delta) * epsilon)
        assert row_failure(OPPOSED, 0.502, n, epsilon) > 0.3

    def test_m1_divided_by_sixteen(self):
        epsilon = 0.999 * self.excess(0.002)
        n = math.ceil(M1.n_samples(2, 1, self.ratio, epsilon, self.delta) / 16)
        assert row_failure(OPPOSED, 0.502, n, epsilon) > self.delta

    def test_m2_divided_by_a_hundred(self):
        n = math.ceil(M2.n_samples(2, self.ratio, 1e-3, self.delta) / 100)
        assert hull_failure(OPPOSED, 0.5, n, 1e-3) > self.delta

    @pytest.mark.parametrize("s", [1, 2])
    def test_nothing_to_learn_from_the_largest_divergence_of_two_mixtures_on(self, s):
        epsilon = 1.8
        assert dv.largest_kl(9.0) < epsilon < math.log(9)
        assert S1.n_samples(2, s, 9.0, epsilon, 0.05) == S2.n_samples(2, s, 9.0, epsilon, 0.05) == 0
        # The truth is the first outcome for sure: row 1 is log 9 worse than row 0, and nothing rules it out.
        assert row_failure(FAR, 1.0, 0, epsilon) == hull_failure(FAR, 1.0, 0, epsilon) == 1
        for n in (M1.n_samples(2, s, 9.0, epsilon, 0.05), M2.n_samples(2, 9.0, epsilon, 0.05)):
            assert n > 0
            assert row_failure(FAR, 1.0, int(n), epsilon) == hull_failure(FAR, 1.0, int(n), epsilon) == 0
        assert M1.n_samples(2, s, 9.0, math.log(9), 0.05) == M2.n_samples(2, 9.0, math.log(9), 0.05) == 0


@given(ordinary(), st.data())
def test_the_step_of_m2_that_convexity_pays_for(rows, data):
    """2 − 2E_q √(q'/q*) ≥ (a − √t)², a² = excess/κ, for the rounded-up net law q' of any mixture."""
    q = data.draw(laws(rows.shape[1], zeros=True))
    alpha = data.draw(laws(len(rows), zeros=True, top=99))
    s, constant = np.count_nonzero(alpha), dv.kappa(dv.density_ratio(rows))
    nearest, law = project(rows, q), alpha @ rows
    excess = float(dv.kl_divergence(q, law)) - nearest.divergence
    if excess < 1e-6:
        return
    k = math.ceil(16 * constant * (s - 1) / excess) or 1
    up = np.ceil(k * alpha - 1e-9)
    up[np.argmax(alpha)] += k + s - 1 - up.sum()
    net = up / up.sum() @ rows
    t = math.log((k + s - 1) / k)
    a = math.sqrt(excess / constant)
    exponent = 2 - 2 * float(q @ np.sqrt(net / nearest.law))
    assert exponent >= (a - math.sqrt(t)) ** 2 - 1e-9
    assert exponent - t >= a * a / 2 - 1e-9


@given(ordinary(), st.data())
def test_no_excess_is_above_the_log_ratio_and_it_can_be_reached(rows, data):
    q = data.draw(laws(rows.shape[1], zeros=True))
    divergences = dv.kl_divergence(q, rows)
    assert divergences.max() - project(rows, q).divergence <= math.log(dv.density_ratio(rows)) + 1e-12
    assert divergences.max() - divergences.min() <= math.log(dv.density_ratio(rows)) + 1e-12


@given(st.integers(1, 300), st.integers(1, 20), st.floats(1.001, 1e6), st.floats(1e-6, 0.999), failure_levels())
def test_they_are_s1_and_s2_where_those_speak(T, s, c, share, delta):
    epsilon = share * dv.largest_kl(c)
    assert M1.n_samples(T, s, c, epsilon, delta) == S1.n_samples(T, s, c, epsilon, delta)
    assert M2.n_samples(T, c, epsilon, delta) == S2.n_samples(T, T, c, epsilon, delta)
    assert M1.n_samples(T, s, c, epsilon, delta, gap=0.1 * epsilon) >= M1.n_samples(T, s, c, epsilon, delta)


def test_a_gap_counts_on_both_sides():
    assert M1.n_samples(2, 1, 4.0, 0.1, 0.05, gap=0.025) == pytest.approx(4 * M1.n_samples(2, 1, 4.0, 0.1, 0.05), abs=4)
    assert M1.n_samples(2, 1, 4.0, 0.1, 0.05, gap=0.05) == math.inf
    epsilon, gap = 0.05, 0.01
    n = int(M1.n_samples(2, 1, 4.0, epsilon, 0.05, gap))
    shift = 1.001 * epsilon / (2 * math.log(4))
    # A solver may return the worse row wherever it is less than the gap behind, per sample.
    seen = np.arange(n + 1)
    behind = (2 * seen / n - 1) * math.log(4)
    assert binom.pmf(seen, n, 0.5 + shift)[behind <= gap].sum() <= 0.05


def test_edges():
    assert M1.n_samples(1, 1, 4.0, 0.1, 0.05) == 0
    assert M1.n_samples(5, 2, 1.0, 0.1, 0.05) == M2.n_samples(5, 1.0, 0.1, 0.05) == 0
    assert M1.n_samples(5, 2, math.inf, 0.1, 0.05) == M2.n_samples(5, math.inf, 0.1, 0.05) == math.inf
    for call in (lambda: M1.n_samples(5, 2, 0.5, 0.1, 0.05), lambda: M2.n_samples(5, 0.5, 0.1, 0.05)):
        with pytest.raises(ValueError, match="density ratio must be >= 1"):
            call()
    with pytest.raises(ValueError, match="gap must be >= 0"):
        M2.n_samples(5, 2.0, 0.1, 0.05, gap=-1.0)
