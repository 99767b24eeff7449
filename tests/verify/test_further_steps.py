"""Claims beside the numbers of bounds: their oracle by summation, and false versions of each refuted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import binom

from markov_theory.verify.claims import Settings
from markov_theory.verify.further_steps import CLAIMS, FALSE, NearMaximumCase
from markov_theory.verify.verdict import HOLDS, VIOLATED


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(("of", "name", "check"), FALSE, ids=[name for _, name, _ in FALSE])
def test_every_false_version_is_refuted(of, name, check, seed):
    finding = check(Settings(seed=seed))
    assert finding.verdict == VIOLATED, finding
    assert finding.instance


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("claim", CLAIMS, ids=[claim.label for claim in CLAIMS])
def test_the_claims_hold_for_other_seeds(claim, seed):
    assert claim.check(Settings(seed=seed)).verdict == HOLDS


def test_each_claim_has_a_false_version():
    assert {of for of, _, _ in FALSE} == {claim.label for claim in CLAIMS}


probabilities = st.one_of(st.floats(1e-3, 1 - 1e-3), st.sampled_from([0.0, 1.0]))


def divergence(truth, x):
    return rel_entr(truth, x) + rel_entr(1 - truth, 1 - x)


def farther(truth, end, epsilon):
    """The law between the truth and an end, and beyond ε, that is nearest to the truth; none if the end is not."""
    if divergence(truth, end) <= epsilon:
        return []
    near, far = truth, end
    for _ in range(200):
        middle = (near + far) / 2
        near, far = (near, middle) if divergence(truth, middle) > epsilon else (middle, far)
    return [far]


def log_likelihood(k, n, x):
    with np.errstate(divide="ignore"):
        return (k * np.log(x) if k else 0.0) + ((n - k) * np.log1p(-x) if k < n else 0.0)


@given(probabilities, probabilities, st.floats(0, 1), st.integers(1, 120), st.floats(1e-3, 0.3), st.floats(1e-6, 2))
def test_fits_near_the_maximum_by_summation(one, other, weight, n_samples, epsilon, gap):
    """Of the laws beyond ε on either side the nearest to the truth is the likeliest, or lies beyond the best law."""
    low, high = min(one, other), max(one, other)
    try:
        case = NearMaximumCase(np.array([one, other]), weight, epsilon, 0.1, gap)
    except ValueError:  # a law at distance ε next to 0
        return
    truth = min(max((1 - weight) * one + weight * other, low), high)
    edges = [(x, end) for end in (low, high) for x in farther(truth, end, epsilon)]
    certain = possible = 0.0
    for k in range(n_samples + 1):
        best = min(max(k / n_samples, low), high)
        leads = [
            -np.inf
            if (best - x) * (end - x) > 0
            else (log_likelihood(k, n_samples, best) - log_likelihood(k, n_samples, x)) / n_samples
            for x, end in edges
        ]
        chance = binom.pmf(k, n_samples, truth)
        certain += chance * any(lead < gap * (1 - 1e-6) for lead in leads)
        possible += chance * any(lead < gap * (1 + 1e-6) for lead in leads)
    assert certain - 1e-9 <= float(case.failures(np.array([n_samples])).low[0]) <= possible + 1e-9


def test_without_a_sample_every_fit_is_a_maximiser():
    near, far = (NearMaximumCase(np.array([0.2, 0.8]), 0.5, epsilon, 0.1, 0.01) for epsilon in (0.3, 0.1))
    assert [float(case.failures(np.array([0])).low[0]) for case in (near, far)] == [0.0, 1.0]
