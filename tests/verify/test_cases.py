"""Families and cases: every family makes instances, and their failure probabilities are those of plain enumeration."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import binom, multinomial

from markov_theory.divergences import kl_of
from markov_theory.randomness import named_generator
from markov_theory.solvers.softmax_head import embedding_mle
from markov_theory.verify.cases import MixtureCase, PackedCase, PackingCase, RowsCase, centre
from markov_theory.verify.embedding_cases import CoinCase, ExponentialCase, LogisticCase
from markov_theory.verify.exact import one_to_one_failure
from markov_theory.verify.families import families
from markov_theory.verify.mixtures import mixture_failure
from markov_theory.verify.other_cases import ExposureCase, MisspecifiedCase, SupportCase
from markov_theory.verify.tables import compositions
from tests.strategies import distinct_rows, laws

ALL = families(full=True)


@pytest.mark.parametrize("family", ALL, ids=[f"{f.event}: {f.name}" for f in ALL])
def test_every_family_makes_cases_with_probabilities(family):
    generator = named_generator(0, "test of families", family.name)
    points = [np.array(start) for start in family.starts[:3]] + [*generator.random((6, family.dimension))]
    made = 0
    for x in points:
        assert x.shape == (family.dimension,)
        try:
            case = family.build(x, 3000)
        except ValueError:
            continue
        N = np.array([n for n in (0, 1, 5, 9) if n <= case.reach])
        low, high = case.failures(N)
        assert ((low >= 0) & (low <= high) & (high <= 1)).all()
        assert high - low == pytest.approx(0, abs=1e-6)
        assert 0 < case.delta < 1
        assert case.describe()
        made += 1
    assert made >= 3


@given(distinct_rows(st.integers(2, 4), st.just(3), zeros=True), st.integers(1, 12))
def test_rows_of_three_outcomes(rows, n_samples):
    case = RowsCase(rows, 0.1, most=10_000)
    expected = min(one_to_one_failure(rows, n_samples).max(), 1 - 1 / len(rows))  # guessing is allowed
    assert case.failures(np.array([n_samples])).low == pytest.approx(expected, abs=1e-9)


@given(st.integers(2, 5), st.floats(1.3, 9), st.integers(0, 12))
def test_packed_rows(n_tokens, ratio, n_samples):
    case = PackedCase(n_tokens, ratio, 0.1)
    expected = min(one_to_one_failure(case.instance.transitions, n_samples).max(), 1 - 1 / n_tokens)
    assert case.failures(np.array([n_samples])).low == pytest.approx(expected, abs=1e-9)


@settings(max_examples=16)
@given(laws(3), st.integers(1, 40), st.floats(0.02, 0.5), st.sampled_from(["curve", "all laws"]))
def test_exponential_families_by_the_certified_solver(law, n_samples, epsilon, kind):
    statistic = np.array([0.0, 1.0, 0.4]) if kind == "curve" else None
    case = ExponentialCase(law, statistic, epsilon, 0.1, 10_000)
    assert case.instance.target == pytest.approx(law, abs=1e-12)
    scores = case.instance.support_scores
    counts = compositions(n_samples, 3)
    chance = multinomial.pmf(counts, n_samples, law)
    fit = embedding_mle(scores, np.log(law) - scores @ case.instance.alpha, counts, tolerance=1e-12)
    distance = rel_entr(law, fit.law).sum(axis=1)
    distance[fit.status == "no maximiser"] = np.inf
    certain = chance[distance > epsilon * (1 + 1e-4)].sum()
    possible = chance[distance > epsilon * (1 - 1e-4)].sum()
    assert certain - 1e-9 <= float(case.failures(np.array([n_samples])).low[0]) <= possible + 1e-9


@given(st.floats(-6, 6), st.floats(0.1, 3), st.floats(-1, 1), st.integers(1, 3), st.integers(1, 60))
def test_tokens_in_a_ball_by_the_frequency(bias, radius, position, sparsity, n_samples):
    steps = np.array([1.0, -0.5, 0.3])
    case = LogisticCase(steps, bias, radius, position, sparsity, 0.05, 0.1)
    reach = radius * np.linalg.norm(steps[:sparsity])
    truth = case.instance.target[0]
    assert case.instance.logit_spread <= np.linalg.norm(steps[:sparsity]) * (1 + 1e-12)
    odds = np.clip(truth, 1 / (1 + math.exp(reach - bias)), 1 / (1 + math.exp(-reach - bias)))
    assert odds == pytest.approx(truth, rel=1e-9)
    seen = np.arange(n_samples + 1)
    with np.errstate(divide="ignore"):
        logits = np.clip(np.log(seen / (n_samples - seen + 1e-300)), bias - reach, bias + reach)
    estimate = 1 / (1 + np.exp(-logits))
    distance = rel_entr(truth, estimate) + rel_entr(1 - truth, 1 - estimate)
    chance = binom.pmf(seen, n_samples, truth)
    low, high = chance[distance > 0.05 * (1 + 1e-6)].sum(), chance[distance > 0.05 * (1 - 1e-6)].sum()
    assert low - 1e-9 <= float(case.failures(np.array([n_samples])).low[0]) <= high + 1e-9


def test_a_coin_without_a_maximiser_fails():
    case = CoinCase(0.3, 0.5, 0.05)
    assert float(case.failures(np.array([1])).low[0]) == pytest.approx(1)
    assert float(case.failures(np.array([2])).low[0]) >= 0.3**2 + 0.7**2


@given(st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.floats(0.01, 0.99), st.floats(1e-3, 0.3), st.integers(1, 80),
       st.booleans())  # fmt: skip
def test_excess_risk_by_summation(one, other, truth, epsilon, n_samples, single):
    if abs(one - other) < 1e-3:
        return
    first = np.array([one, other])
    case = MisspecifiedCase(first, truth, single, epsilon, 0.1)
    seen = np.arange(n_samples + 1)
    risk = rel_entr(truth, first) + rel_entr(1 - truth, 1 - first)
    chance = binom.pmf(seen, n_samples, truth)
    if single:
        likelihood = seen[:, None] * np.log(first) + (n_samples - seen[:, None]) * np.log1p(-first)
        bad = risk > risk.min() + epsilon
        if bad.sum() != 1 or abs(abs(risk[0] - risk[1]) / epsilon - 1) < 1e-9:
            return
        lead = likelihood[:, bad] - likelihood[:, ~bad]
        low, high = chance[lead[:, 0] > 1e-9].sum(), chance[lead[:, 0] > -1e-9].sum()
    else:
        estimate = np.clip(seen / n_samples, first.min(), first.max())
        nearest = np.clip(truth, first.min(), first.max())
        best = rel_entr(truth, nearest) + rel_entr(1 - truth, 1 - nearest)
        excess = rel_entr(truth, estimate) + rel_entr(1 - truth, 1 - estimate) - best
        low, high = chance[excess > epsilon * (1 + 1e-6)].sum(), chance[excess > epsilon * (1 - 1e-6)].sum()
    assert low - 1e-9 <= float(case.failures(np.array([n_samples])).low[0]) <= high + 1e-9


@settings(max_examples=20)
@given(laws(3), st.integers(1, 3), st.integers(0, 14), st.floats(0.3, 1))
def test_exposure_by_enumeration(odds, needed, n_chances, total):
    rates = odds * total
    case = ExposureCase(rates, needed, 0.1)
    counts = compositions(n_chances, 4)
    chance = multinomial.pmf(counts, n_chances, np.append(rates, max(0.0, 1 - rates.sum())))
    short = (counts[:, :3] < needed).any(axis=1)
    assert case.failures(np.array([n_chances])).low == pytest.approx(chance[short].sum(), abs=1e-9)


def test_laws_that_one_answer_serves_need_no_sample():
    packed = np.full((4, 4), 0.2) + 0.2 * np.eye(4)
    assert kl_of(packed, centre(packed)) == pytest.approx(0.0541, abs=1e-3)
    served = PackingCase(packed, 0.0542, 0.05, 10_000)
    assert served.failures(np.array([0, 3])).low.tolist() == [0, 0]
    apart = PackingCase(packed, 0.03, 0.05, 10_000)
    assert apart.failures(np.array([0])).low == pytest.approx(0.75)


def test_laws_that_agree_to_eight_digits_are_not_taken_for_served():
    first = np.array([0.9985297932753533, 0.9985298079774205])
    case = PackingCase(np.column_stack([first, 1 - first]), 1.8386329800797052e-14, 0.15)
    assert case.failures(np.array([0])).low == pytest.approx(0.5)
    assert kl_of(case.laws, case.laws[0])[1] == pytest.approx(
        (first[1] - first[0]) ** 2 / (2 * first[0] * (1 - first[0])), rel=1e-4
    )


def test_packings_allow_the_best_of_several_estimators():
    laws_apart = np.array([[0.2, 0.8], [0.8, 0.2]])
    case = PackingCase(laws_apart, 0.15, 0.05)
    named = RowsCase(laws_apart, 0.05)
    N = np.arange(1, 40)
    assert (case.failures(N).low <= named.failures(N).low + 1e-12).all()


def test_supports_and_mixtures_share_a_truth():
    rows = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    alpha = np.array([0.5, 0.5, 0.0])
    support = SupportCase(rows, alpha, 2, 0.05, 10_000)
    near = MixtureCase(rows, alpha, 2, 0.3, 0.05, most=10_000)
    N = np.array([5, 20, 60])
    assert (np.diff(support.failures(N).low) < 0).all()
    assert near.failures(N).low == pytest.approx([float(mixture_failure(rows, alpha, 2, int(n), 0.3).low) for n in N])


def test_the_mean_statistic_decides_on_a_curve():
    law, statistic = np.array([0.5, 0.3, 0.2]), np.array([0.0, 1.0, 0.5])
    case = ExponentialCase(law, statistic, 0.1, 0.05, 10_000)
    for mean, sign in zip(case._means, (-1, 1), strict=True):
        tilts = np.linspace(0, 40, 40_001) * sign
        laws_on_curve = law * np.exp(tilts[:, None] * statistic)
        laws_on_curve /= laws_on_curve.sum(axis=1, keepdims=True)
        far = rel_entr(law, laws_on_curve).sum(axis=1) > 0.1
        assert mean == pytest.approx(laws_on_curve[far.argmax()] @ statistic, abs=1e-3)


def test_a_guess_among_rows_is_allowed_where_the_failure_level_is_large():
    rows = np.array([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]])
    assert RowsCase(rows, 0.7, 1000).failures(np.array([0])).low == pytest.approx(2 / 3)
