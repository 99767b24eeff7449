"""Intervals of weights and the test of the hull: equations, degenerate cases, measured coverage and level."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from markov_theory.estimators.inference import hull_test, profile_ratio, weight_intervals
from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.relaxation import information_projection
from markov_theory.success import failure_bounds
from tests.strategies import positive_dictionaries

ERROR = 1e-6
QUANTILE = float(chi2.ppf(0.95, 1))


def log_likelihood(rows, counts, alpha):
    seen = counts > 0
    return float(counts[seen] @ np.log((alpha @ rows)[seen]))


@given(positive_dictionaries(), st.data())
def test_intervals_are_ordered_stay_in_the_unit_interval_and_end_where_the_ratio_is_the_quantile(rows, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 60), min_size=rows.shape[1], max_size=rows.shape[1])))
    counts[0] += 1
    fit = weight_intervals(rows, counts, np.arange(len(rows)))
    assert (fit.lower >= 0).all()
    assert (fit.lower <= fit.estimates + 1e-12).all()
    assert (fit.estimates <= fit.upper + 1e-12).all()
    assert (fit.upper <= 1).all()
    if len(rows) == 1:
        return
    v = data.draw(st.integers(0, len(rows) - 1))
    for end, step in ((fit.lower[v], 2e-6), (fit.upper[v], -2e-6)):
        if 1e-5 < end < 1 - 1e-5:
            inside, outside = profile_ratio(rows, counts, v, end + step), profile_ratio(rows, counts, v, end - step)
            assert inside <= QUANTILE + 1e-5
            assert outside >= QUANTILE - 1e-5


def test_the_profile_of_one_of_two_weights_is_the_likelihood_itself():
    rows, counts = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]), np.array([40, 22, 38])
    best = -minimize_scalar(
        lambda a: -log_likelihood(rows, counts, np.array([a, 1 - a])), bounds=(0, 1), method="bounded"
    ).fun
    for a in (0.0, 0.2, 0.5, 1.0):
        expected = 2 * (best - log_likelihood(rows, counts, np.array([a, 1 - a])))
        assert profile_ratio(rows, counts, 0, a) == pytest.approx(expected, abs=1e-6)
        assert profile_ratio(rows, counts, 1, 1 - a) == pytest.approx(expected, abs=1e-6)


def test_orthogonal_rows_give_the_interval_of_a_binomial_probability():
    """Rows with disjoint outcomes: the profile likelihood of a weight is that of its share of the counts."""
    rows = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.2, 0.8]])
    counts = np.array([10, 14, 20, 56])
    fit = weight_intervals(rows, counts, [0, 1])
    for end in (fit.lower[0], fit.upper[0]):
        ratio = 2 * (24 * np.log(0.24 / end) + 76 * np.log(0.76 / (1 - end)))
        assert ratio == pytest.approx(QUANTILE, abs=1e-3)
    np.testing.assert_allclose(fit.lower, 1 - fit.upper[::-1], atol=3e-6)


def test_duplicate_rows_leave_their_weights_unknown():
    rows = np.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    fit = weight_intervals(rows, [50, 30, 20], [0, 1])
    assert fit.lower.tolist() == [0, 0]
    assert fit.upper.tolist() == [1, 1]


def test_an_impossible_outcome_excludes_the_ends():
    fit = weight_intervals([[1.0, 0.0], [0.0, 1.0]], [9, 1], [0, 1])
    assert (fit.lower > 0).all()
    assert (fit.upper < 1).all()
    assert profile_ratio([[1.0, 0.0], [0.0, 1.0]], [9, 1], 0, 1.0) == np.inf


def test_one_row_has_weight_one():
    fit = weight_intervals([[0.5, 0.5], [0.1, 0.9]], [3, 4], [1])
    assert (fit.lower.tolist(), fit.estimates.tolist(), fit.upper.tolist()) == ([1], [1], [1])


@pytest.mark.statistical
@pytest.mark.parametrize("n_samples", [100, 3000])
def test_intervals_cover_interior_weights_about_as_often_as_stated(n_samples):
    """If each coverage lies in [0.91, 0.99], this fails with probability at most 6e-6; measured: 0.93 to 0.97."""
    planted = plant(make_dictionary(32, 64, density_ratio=20.0), 3)
    truth = planted.alpha[planted.support]
    counts = sample_counts(planted.target, n_samples, 150, named_generator(0, "coverage", n_samples))
    fits = [weight_intervals(planted.transitions, n, planted.support) for n in counts]
    missed = np.array([(fit.lower > truth) | (truth > fit.upper) for fit in fits]).sum(axis=0)
    for number in missed.tolist():
        low, high = failure_bounds(number, 150, ERROR)
        assert low <= 0.09
        assert high >= 0.01


@pytest.mark.statistical
def test_a_weight_of_zero_is_covered_at_least_as_often_as_stated_and_the_interval_keeps_zero():
    """The ratio is half a χ²₁: asymptotic coverage 0.975; if it is >= 0.95, this fails with probability 1e-6."""
    planted = plant(make_dictionary(32, 64, density_ratio=20.0), 2)
    outside = int(np.flatnonzero(planted.alpha == 0)[0])
    support = [*planted.support.tolist(), outside]
    counts = sample_counts(planted.target, 2000, 150, named_generator(0, "zero"))
    lower = np.array([weight_intervals(planted.transitions, n, support).lower[-1] for n in counts])
    assert failure_bounds(int((lower > 0).sum()), 150, ERROR)[0] <= 0.05


def p_values(rows, law, n_samples, trials, name):
    counts = sample_counts(law, n_samples, trials, named_generator(0, "hull", name))
    return np.array([hull_test(rows, n, n_bootstrap=59, seed=i).p_value for i, n in enumerate(counts)])


@pytest.mark.statistical
@pytest.mark.parametrize("s", [1, 4])
@pytest.mark.parametrize("n_samples", [100, 3000])
def test_laws_in_the_hull_are_rejected_about_as_often_as_stated(s, n_samples):
    """If P(p <= 0.1) <= 0.13, this fails with probability at most 1e-6; measured: see benchmarks/inference.csv."""
    planted = plant(make_dictionary(32, 64, density_ratio=20.0), s)
    rejected = int((p_values(planted.transitions, planted.target, n_samples, 200, f"{s} {n_samples}") <= 0.1).sum())
    assert failure_bounds(rejected, 200, ERROR)[0] <= 0.13


@pytest.mark.statistical
def test_a_law_outside_the_hull_is_found_out():
    """If P(p <= 0.05) >= 0.9, this fails with probability at most 1e-6; measured: 1."""
    planted = plant(make_dictionary(32, 64, density_ratio=20.0), 4)
    law = 0.7 * planted.target + 0.3 * named_generator(0, "outside").dirichlet(np.ones(64))
    assert information_projection(planted.transitions, law) > 0.01
    accepted = int((p_values(planted.transitions, law, 3000, 60, "outside") > 0.05).sum())
    assert failure_bounds(accepted, 60, ERROR)[0] <= 0.1


def test_the_statistic_is_the_divergence_from_the_hull():
    rows = make_dictionary(6, 12, density_ratio=20.0).transitions
    counts = named_generator(0, "statistic").integers(1, 40, 12)
    n = counts.sum()
    assert hull_test(rows, counts, n_bootstrap=1).statistic == pytest.approx(
        2 * n * information_projection(rows, counts / n), rel=0.06
    )


def test_counts_in_the_hull_itself_have_statistic_zero_and_p_value_one():
    result = hull_test(np.eye(4), [5, 0, 3, 9], n_bootstrap=19)
    assert result.statistic <= 1e-6
    assert result.p_value == 1


def test_the_p_value_never_is_zero_and_repeats():
    rows = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
    results = [hull_test(rows, [10, 10, 1000], n_bootstrap=9, seed=5) for _ in range(2)]
    assert results[0].p_value == results[1].p_value == 0.1
    assert results[0].bootstrap.tolist() == results[1].bootstrap.tolist()


@pytest.mark.parametrize(
    ("counts", "support", "message"),
    [
        ([0, 0], [0], "at least one sample"),
        ([1, 2], [], "support must be distinct row indices, at least one"),
        ([1, 2], [0, 0], "support must be distinct"),
        ([1, 2], [2], "support must lie in 0 … 1, got 2 … 2"),
    ],
)
def test_wrong_input_is_refused(counts, support, message):
    with pytest.raises(ValueError, match=message):
        weight_intervals([[0.5, 0.5], [0.1, 0.9]], counts, np.array(support, dtype=int))


def test_a_weight_outside_the_unit_interval_is_refused():
    with pytest.raises(ValueError, match=r"weight must lie in \[0, 1\], got 1.5"):
        profile_ratio([[0.5, 0.5]], [1, 1], 0, 1.5)
