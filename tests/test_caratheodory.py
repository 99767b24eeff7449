"""Carathéodory: the same mixture, on no more points than the dimension asks for, whatever the points."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.caratheodory import reduce_support
from tests.certificates import assert_weights
from tests.strategies import dictionaries, laws, point_mixtures


def affine_dimension(points):
    return 0 if len(points) < 2 else int(np.linalg.matrix_rank(points[1:] - points[0], tol=1e-9))


@given(point_mixtures())
def test_the_mixture_is_kept_on_affinely_independent_points(problem):
    points, weights = problem
    reduced = reduce_support(points, weights)
    assert_weights(reduced.weights)
    assert set(reduced.support) <= set(np.flatnonzero(weights))
    assert reduced.residual <= 1e-12
    np.testing.assert_allclose(reduced.weights @ points, weights @ points, atol=1e-12)
    assert len(reduced.support) <= affine_dimension(points[weights > 0]) + 1
    assert affine_dimension(points[reduced.support]) == len(reduced.support) - 1


@given(dictionaries(), st.data())
def test_rows_of_any_dictionary(rows, data):
    weights = data.draw(laws(len(rows), zeros=True))
    reduced = reduce_support(rows, weights)
    assert len(reduced.support) <= min(np.count_nonzero(weights), rows.shape[1])
    np.testing.assert_allclose(reduced.weights @ rows, weights @ rows, atol=1e-13)


def test_many_points_in_a_plane():
    rng = np.random.default_rng(0)
    points, weights = rng.standard_normal((3000, 2)), rng.dirichlet(np.ones(3000))
    reduced = reduce_support(points, weights)
    assert len(reduced.support) <= 3
    np.testing.assert_allclose(reduced.weights @ points, weights @ points, atol=1e-12)


@pytest.mark.parametrize(
    ("points", "weights", "words"),
    [
        ([[0.0], [1.0]], [1.0], "shapes"),
        ([0.0, 1.0], [0.5, 0.5], "shapes"),
        ([[np.nan], [1.0]], [0.5, 0.5], "finite"),
        ([[0.0], [1.0]], [0.5, 0.6], "sum to 1"),
    ],
)
def test_wrong_problems_are_refused(points, weights, words):
    with pytest.raises(ValueError, match=words):
        reduce_support(points, weights)
