"""Exact subsets: the best of all supports, ties listed, sizes refused."""

from itertools import combinations

import numpy as np
import pytest

from markov_theory.randomness import named_generator
from markov_theory.solvers.best_subset import best_subset
from markov_theory.solvers.simplex_mle import simplex_mle
from tests.certificates import assert_weights, mean_log_likelihood


def test_it_is_the_best_of_separate_fits():
    generator = named_generator(0, "best subset")
    rows = generator.dirichlet(np.ones(6), size=7)
    counts = generator.multinomial(200, rows[2] * 0.5 + rows[4] * 0.5)
    fit = best_subset(rows, counts, 2)
    assert_weights(fit.alpha)
    others = []
    for support in combinations(range(7), 2):
        alpha = np.zeros(7)
        alpha[list(support)] = simplex_mle(rows[list(support)], counts).alpha[0]
        others.append(mean_log_likelihood(rows, counts, alpha)[0])
    assert abs(max(others) - mean_log_likelihood(rows, counts, fit.alpha)[0]) <= 2e-9


def test_duplicate_rows_are_listed_as_ties():
    rows = [[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]]
    fit = best_subset(rows, [55, 45], 2)
    assert fit.supports == (((0, 2), (1, 2)),)


def test_without_data_every_support_ties():
    assert best_subset([[0.9, 0.1], [0.2, 0.8]], [0, 0], 1).supports == (((0,), (1,)),)


def test_all_rows_is_constrained_kl():
    generator = named_generator(1, "best subset")
    rows = generator.dirichlet(np.ones(5), size=4)
    counts = generator.multinomial(50, rows[0])
    np.testing.assert_allclose(best_subset(rows, counts, 9).alpha, simplex_mle(rows, counts).alpha, atol=1e-4)


def test_too_many_supports_are_refused():
    with pytest.raises(ValueError, match=r"enumeration of 1,028,790 supports \(C\(72, 4\)\) exceeds 200,000"):
        best_subset(np.full((72, 2), 0.5), [1, 1], 4)
