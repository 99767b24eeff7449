"""The programs behind S5+ and S5': affinities bounded by whatever law, the regret of an average, sums that fall."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from markov_theory.bounds.support import S5, S5Plus, without_a_row
from markov_theory.bounds.support_programs import closest_affinity_bounds, log_affinity_bounds, log_regret
from markov_theory.dictionary import Dictionary
from markov_theory.instance import Instance
from markov_theory.randomness import named_generator
from markov_theory.solvers.relaxation import projection_weights
from tests.strategies import dictionaries, distinct_rows, failure_levels, laws


@given(distinct_rows(st.just(2), st.integers(2, 5), zeros=True), st.data())
def test_affinities_of_segments(rows, data):
    q = data.draw(laws(rows.shape[1], zeros=True))
    tilts = np.array([0.05, 0.3, 0.5, 0.8])
    weight = data.draw(st.floats(0.001, 0.999))
    anyhow = log_affinity_bounds(rows, q, ((1 - weight) * rows[0] + weight * rows[1])[None, :], tilts)
    closely = closest_affinity_bounds(rows, q, tilts)
    for tilt, rough, close in zip(tilts, anyhow, closely, strict=True):

        def affinity(w: float, tilt: float = tilt) -> float:
            return -float((q ** (1 - tilt) * ((1 - w) * rows[0] + w * rows[1]) ** tilt).sum())

        inner = minimize_scalar(affinity, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
        largest = -min(inner.fun, affinity(0.0), affinity(1.0))
        if largest == 0:
            assert close == -math.inf  # the rows reach nothing that q can give
        else:
            assert math.log(largest) <= min(rough, close) + 1e-12
            assert close <= 0.998 * math.log(largest) + 1e-9


@given(dictionaries(single=False), st.data())
def test_any_law_bounds_every_mixture(rows, data):
    T, J = rows.shape
    q, reference, alpha = (data.draw(laws(n)) for n in (J, J, T))
    tilts = np.array([0.1, 0.5, 0.9])
    bound = log_affinity_bounds(rows, q, reference[None, :], tilts)
    for tilt, value in zip(tilts, bound, strict=True):
        assert math.log((q ** (1 - tilt) * (alpha @ rows) ** tilt).sum()) <= value + 1e-12


def test_a_reference_that_misses_an_outcome_bounds_nothing():
    rows, q = np.array([[0.5, 0.5, 0], [0, 0.5, 0.5]]), np.array([0.4, 0.3, 0.3])
    assert log_affinity_bounds(rows, q, rows[:1], np.array([0.5])) == math.inf


def test_tiny_ratios_are_not_lost():
    # q/q' = 1e-30 at one outcome, where q'/q − 1 is −1 to the last digit.
    rows, q = np.array([[0.5, 0.5]]), np.array([1e-30, 1.0])
    exact = math.log(0.5**0.95 * (1 + 1e-30**0.05))
    assert log_affinity_bounds(rows, q, rows, np.array([0.95]))[0] == pytest.approx(exact, rel=1e-9)


@given(st.integers(1, 40), st.integers(1, 4))
def test_regret_is_that_of_the_most_favourable_choice_of_rows(n_samples, n_parts):
    counts = [n_samples] + [0] * (n_parts - 1)
    spread = [n_samples // n_parts] * (n_parts - 1)
    spread.append(n_samples - sum(spread))

    def regret(n):
        n = np.array(n, dtype=float)
        log_average = (gammaln(n + 0.5) - gammaln(0.5)).sum() + gammaln(n_parts / 2) - gammaln(n.sum() + n_parts / 2)
        return float((n[n > 0] * np.log(n[n > 0] / n.sum())).sum() - log_average)

    assert regret(counts) <= log_regret(n_samples, n_parts) <= regret(counts) + 2e-7
    assert regret(spread) <= log_regret(n_samples, n_parts)
    assert log_regret(n_samples, n_parts) <= math.log(2) + (n_parts - 1) / 2 * math.log(n_samples + 1)
    assert log_regret(n_samples, n_parts) <= math.log(math.comb(n_samples + n_parts - 1, n_parts - 1)) + 2e-7


@given(distinct_rows(st.integers(2, 4), st.just(3), zeros=True), st.integers(1, 4), failure_levels())
def test_failure_falls_beyond_the_bound(rows, s, delta):
    alpha = np.eye(rows.shape[0])[:2].mean(axis=0) if s > 1 else np.eye(rows.shape[0])[0]
    found = without_a_row(rows, alpha, min(s, rows.shape[0]))
    n_samples = found.n_samples(delta)
    assume(n_samples < 1e12)
    values = [found.log_failure(int(n)) for n in n_samples + np.array([0, 1, 2, 5, 20, 1000])]
    assert values[0] <= math.log(delta)
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(values))
    if n_samples > 1:
        assert found.log_failure(int(n_samples) - 1) > math.log(delta)


@given(distinct_rows(st.integers(1, 5), st.integers(2, 4), zeros=True), st.data())
def test_projections_are_certified(rows, data):
    q = data.draw(laws(rows.shape[1], zeros=True))
    weights = projection_weights(rows, q[None, :])[0]
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    within = np.where(rows.max(axis=0) > 0, q, 0)
    if within.any():
        nearest = weights @ rows
        ratio = np.divide(within / within.sum(), nearest, out=np.zeros_like(q), where=within > 0)
        assert math.log((rows @ ratio).max()) <= 1e-11  # no mixture is nearer by more


def test_the_plainer_argument_is_never_better():
    # Chernoff below a threshold and Markov above it, at the best threshold and tilt, with the coarser regret.
    signs = named_generator(0, "signs").choice([-1.0, 1.0], size=(64, 128))
    rows = np.exp(signs) / np.exp(signs).sum(axis=1, keepdims=True)
    for s in (2, 4, 8):
        alpha = np.append(np.full(s, 1 / s), np.zeros(64 - s))
        n_samples = S5Plus.n_samples(rows, alpha, s, 0.05)
        plain = plainer(rows, alpha, s, int(n_samples))
        assert plain > math.log(0.05)
        assert plainer(rows, alpha, s, int(1.35 * n_samples)) < math.log(0.05)
        truth = Instance(Dictionary(rows), alpha)
        assert S5.at(truth, delta=0.05) > 5 * n_samples


def plainer(rows, alpha, s, n_samples):
    """Log of ``Σ_v min_θ e^{h(θ)}·(C(T−1,s)·2(N+1)^{(s−1)/2})^θ·(E_q(q*_v/q)^{θ/(1−θ)})^{N(1−θ)}``, q*_v exact."""
    T, q = rows.shape[0], alpha @ rows
    price = math.log(math.comb(T - 1, s)) + (s - 1) / 2 * math.log(n_samples + 1) + math.log(2)
    total = -math.inf
    for v in np.flatnonzero(alpha):
        others = np.delete(rows, v, axis=0)
        ratio = np.log(projection_weights(others, q[None, :])[0] @ others / q)

        def term(t: float, ratio: np.ndarray = ratio) -> float:
            entropy = -t * math.log(t) - (1 - t) * math.log1p(-t)
            return (1 - t) * n_samples * math.log(q @ np.exp(t / (1 - t) * ratio)) + t * price + entropy

        total = np.logaddexp(total, minimize_scalar(term, bounds=(1e-4, 0.6), method="bounded").fun)
    return float(total)
