"""The choice of the number of rows: the criterion, the bound that spares fits, and how often it is right."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.dictionary import Dictionary
from markov_theory.estimators.selected import SelectedKLPursuit
from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.pursuit import kl_pursuit
from markov_theory.solvers.selection import select_sparsity
from markov_theory.solvers.simplex_mle import simplex_mle
from markov_theory.success import failure_bounds
from tests.certificates import assert_weights, mean_log_likelihood
from tests.strategies import dictionaries

ERROR = 1e-6


def brute_criterion(rows, counts, s):
    """The criterion at s with the likelihood maximised over all sets of s rows."""
    best = -math.inf
    for support in itertools.combinations(range(len(rows)), s):
        chosen = rows[list(support)]
        if (counts[chosen.max(axis=0) == 0] > 0).any():
            continue
        alpha = simplex_mle(chosen, counts).alpha
        best = max(best, float(counts.sum() * mean_log_likelihood(chosen, counts, alpha)[0]))
    return -2 * best + (s - 1) * math.log(counts.sum()) + 2 * math.log(math.comb(len(rows), s))


@given(dictionaries(), st.data())
def test_the_chosen_fit_has_the_criterion_that_is_reported_and_at_most_so_many_rows(rows, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 50), min_size=rows.shape[1], max_size=rows.shape[1])))
    counts[rows.max(axis=0) == 0] = 0
    if counts.sum() == 0:
        counts[rows.max(axis=0).argmax()] = 1
    chosen = select_sparsity(rows, counts)
    s = int(chosen.sparsity[0])
    assert_weights(chosen.fit.alpha)
    assert chosen.fit.support_sizes[0] <= s
    reached = counts.sum() * mean_log_likelihood(rows, counts, chosen.fit.alpha)[0]
    penalty = (s - 1) * math.log(counts.sum()) + 2 * math.log(math.comb(len(rows), s))
    assert chosen.criterion[0, s - 1] == pytest.approx(penalty - 2 * reached, rel=1e-9, abs=1e-7)
    assert np.nanmin(chosen.criterion[0]) == chosen.criterion[0, s - 1]


def test_no_number_of_rows_that_was_spared_is_better():
    """16 stated problems: against pursuits of every s, and against enumeration of all sets of rows."""
    dictionary = make_dictionary(7, 9, density_ratio=20.0)
    rows = dictionary.transitions
    for truth, n_samples, s in itertools.product(range(2), (30, 300, 3000, 30_000), (1, 3)):
        planted = plant(dictionary, s, truth=truth)
        counts = sample_counts(planted.target, n_samples, 1, named_generator(0, "spared", truth, n_samples, s))[0]
        chosen = select_sparsity(rows, counts, largest=5)
        best = chosen.criterion[0, chosen.sparsity[0] - 1]
        pursued = [kl_pursuit(rows, counts, size).alpha for size in range(1, 6)]
        reached = [n_samples * mean_log_likelihood(rows, counts, alpha)[0] for alpha in pursued]
        penalties = [i * math.log(n_samples) + 2 * math.log(math.comb(7, i + 1)) for i in range(5)]
        assert best == pytest.approx(min(np.array(penalties) - 2 * np.array(reached)), abs=1e-5)
        exact = min(brute_criterion(rows, counts, size) for size in range(1, 6))
        assert best >= exact - 1e-5
        if n_samples >= 300:
            assert best == pytest.approx(exact, abs=1e-3)


def test_a_batch_equals_its_problems_one_by_one():
    dictionary = make_dictionary(20, 16, density_ratio=20.0)
    counts = np.vstack(
        [sample_counts(plant(dictionary, s).target, 2000, 3, named_generator(0, "batch", s)) for s in (1, 2, 5)]
        + [np.zeros((1, 16), dtype=int)]
    )
    batch = select_sparsity(dictionary.transitions, counts)
    for i, n in enumerate(counts):
        alone = select_sparsity(dictionary.transitions, n)
        assert alone.sparsity[0] == batch.sparsity[i]
        np.testing.assert_allclose(alone.fit.alpha[0], batch.fit.alpha[i], atol=1e-6)
    assert batch.fit.status[-1] == "no data"
    assert batch.sparsity[-1] == 1


@pytest.mark.statistical
@pytest.mark.parametrize(("s", "n_samples"), [(1, 1000), (2, 3000), (4, 10_000), (8, 100_000)])
def test_the_planted_number_of_rows_is_chosen_with_probability_at_least_nine_tenths(s, n_samples):
    """If it is, this fails with probability at most 1e-6 (Clopper-Pearson); measured: 0.985 to 1."""
    planted = plant(make_dictionary(64, 64, density_ratio=20.0), s)
    counts = sample_counts(planted.target, n_samples, 200, named_generator(0, "right", s))
    chosen = select_sparsity(planted.transitions, counts)
    wrong = int((chosen.sparsity != s).sum())
    assert failure_bounds(wrong, 200, ERROR)[0] <= 0.1
    assert failure_bounds(int((chosen.sparsity > s).sum()), 200, ERROR)[0] <= 0.05


@pytest.mark.statistical
def test_the_probability_of_too_many_rows_falls_with_the_samples_and_not_with_the_rows_of_the_dictionary():
    """Of s = 1 and any T and N: at most 2/√N by the union bound of the rule's notes; fails with probability 1e-6."""
    for T, n_samples in itertools.product((16, 256), (100, 1000)):
        planted = plant(make_dictionary(T, 32, density_ratio=20.0), 1)
        counts = sample_counts(planted.target, n_samples, 300, named_generator(0, "many", T, n_samples))
        many = int((select_sparsity(planted.transitions, counts).sparsity > 1).sum())
        assert failure_bounds(many, 300, ERROR / 4)[0] <= 2 / math.sqrt(n_samples)


@pytest.mark.statistical
def test_too_few_samples_for_many_rows_choose_fewer():
    """The rule's price. If P(fewer) >= 0.9, this fails with probability at most 1e-6; measured: 1."""
    planted = plant(make_dictionary(64, 64, density_ratio=20.0), 8)
    counts = sample_counts(planted.target, 100, 100, named_generator(0, "few"))
    many = int((select_sparsity(planted.transitions, counts).sparsity >= 8).sum())
    assert failure_bounds(many, 100, ERROR)[0] <= 0.1


def test_the_estimator_is_the_pursuit_of_the_chosen_number_of_rows():
    dictionary = make_dictionary(20, 16, density_ratio=20.0)
    counts = sample_counts(plant(dictionary, 3).target, 20_000, 2, named_generator(0, "estimator"))
    fit = SelectedKLPursuit().fit(dictionary, counts)
    assert fit.sparsity_.tolist() == [3, 3]
    np.testing.assert_allclose(fit.alpha_, kl_pursuit(dictionary.transitions, counts, 3).alpha, atol=1e-12)
    np.testing.assert_allclose(fit.law_, fit.alpha_ @ dictionary.transitions)


def test_duplicate_rows_do_not_count_twice():
    rows = make_dictionary(6, 8, density_ratio=20.0).transitions
    twice = Dictionary(np.vstack([rows, rows]))
    counts = sample_counts(rows[0], 1000, 1, named_generator(0, "duplicates"))[0]
    assert SelectedKLPursuit().fit(twice, counts).support_.tolist() == [0]


@pytest.mark.parametrize("largest", [0, -1])
def test_the_largest_number_must_be_positive(largest):
    with pytest.raises(ValueError, match="largest must be >= 1"):
        select_sparsity([[1.0]], [1], largest=largest)
