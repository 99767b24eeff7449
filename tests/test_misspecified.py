"""Truths outside the hull: certified, and estimators go to the projection, not to the truth."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import ConstrainedKL, ExactL0, NearestRow, SmoothedEmpirical
from markov_theory.families import make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.misspecified import MisspecifiedInstance, misspecify, project, project_sparse
from tests.certificates import assert_weights
from tests.strategies import laws, ordinary

TRUTH = misspecify(plant(make_dictionary(6, 9, density_ratio=8.0), 3), 0.3)


@given(ordinary(), st.data())
def test_the_projection_is_certified_by_first_order_optimality(rows, data):
    q = data.draw(laws(rows.shape[1], zeros=True))
    nearest = project(rows, q)
    assert_weights(nearest.alpha)
    assert nearest.divergence == pytest.approx(float(kl_divergence(q, nearest.law)))
    # E_q[q'/q*] <= 1 for every mixture q', the rows first; the gap is what is missing from that.
    assert math.log((rows @ (q / nearest.law)).max()) <= nearest.gap + 1e-12 <= 1e-10
    others = np.vstack([rows, rows.mean(axis=0), data.draw(laws(len(rows), zeros=True)) @ rows])
    assert (kl_divergence(q, others) >= nearest.divergence - nearest.gap - 1e-12).all()


@given(ordinary(), st.data())
def test_a_mixture_is_its_own_projection(rows, data):
    law = data.draw(laws(len(rows), zeros=True)) @ rows
    assert project(rows, law).divergence < 1e-9
    assert project_sparse(rows, rows[0], 1).divergence < 1e-9


@given(ordinary(), st.integers(1, 3), st.data())
def test_the_sparse_projection_is_the_best_of_all_supports(rows, s, data):
    q = data.draw(laws(rows.shape[1]))
    nearest = project_sparse(rows, q, s)
    supports = itertools.combinations(range(len(rows)), min(s, len(rows)))
    best = min(project(rows[list(support)], q).divergence for support in supports)
    assert len(nearest.support) <= s
    assert best - 1e-12 <= nearest.divergence <= best + nearest.gap + 1e-12
    assert nearest.gap <= 1e-8


@given(st.integers(1, 5), st.floats(0.01, 1), st.integers(0, 5))
def test_planting_defaults(s, tau, draw):
    planted = plant(make_dictionary(6, 9, density_ratio=8.0), s)
    truth = misspecify(planted, tau, draw=draw)
    np.testing.assert_allclose(truth.target, (1 - tau) * planted.target + tau * truth.stray)
    assert truth.target.sum() == pytest.approx(1)
    assert (truth.sparsity, truth.n_tokens, truth.n_outcomes) == (s, 6, 9)
    assert truth.stray_distance > 0
    best = float(kl_divergence(truth.stray, truth.transitions).min())
    assert truth.stray_distance <= best
    again = misspecify(planted, tau, draw=draw)
    assert again.stray.tobytes() == truth.stray.tobytes()
    assert misspecify(planted, tau, draw=draw + 1).stray.tobytes() != truth.stray.tobytes()
    assert misspecify(planted, tau, seed=1, draw=draw).stray.tobytes() != truth.stray.tobytes()


def test_the_error_grows_with_the_share_of_the_stray_law():
    planted = plant(make_dictionary(6, 9, density_ratio=8.0), 3)
    errors = [misspecify(planted, tau).approximation_error for tau in (0.01, 0.1, 0.3, 1.0)]
    assert errors == sorted(errors)
    assert 0 < errors[0] < 1e-3 < errors[-1]
    assert all(misspecify(planted, tau).is_outside for tau in (0.1, 1.0))


def test_a_stray_law_outside_need_not_take_the_truth_outside():
    rows = Dictionary([[0.2, 0.8], [0.8, 0.2]])
    inside, outside = (MisspecifiedInstance(rows, [0.5, 0.5], [1, 0], tau) for tau in (0.1, 0.7))
    assert inside.stray_distance > 0.2
    assert inside.approximation_error < 1e-12
    assert not inside.is_outside
    assert outside.is_outside
    assert outside.approximation_error == pytest.approx(0.85 * math.log(0.85 / 0.8) + 0.15 * math.log(0.15 / 0.2))


def test_approximation_and_estimation_add_up():
    laws_ = np.random.default_rng(0).dirichlet(np.ones(9), size=5)
    np.testing.assert_allclose(
        TRUTH.approximation_error + TRUTH.excess_risk(laws_), kl_divergence(TRUTH.target, laws_), rtol=1e-12
    )
    assert (TRUTH.excess_risk(TRUTH.transitions) >= -TRUTH.projection.gap).all()
    sparse = TRUTH.sparse_projection(1)
    assert TRUTH.excess_risk(sparse.law, sparse) == 0 < TRUTH.excess_risk(sparse.law)


def test_estimators_go_to_the_projection_of_their_class_and_not_to_the_truth():
    counts = np.rint(1e13 * TRUTH.target)  # the frequencies of an endless sample
    dictionary = TRUTH.dictionary
    for estimator, s in ((ConstrainedKL(1e-12), 6), (ExactL0(2, 1e-12), 2), (NearestRow(), 1)):
        nearest = TRUTH.sparse_projection(s)
        law = estimator.fit(dictionary, counts).law_
        np.testing.assert_allclose(law, nearest.law, atol=1e-5)
        assert abs(float(TRUTH.excess_risk(law, nearest))) < 1e-9
    planted = TRUTH.alpha @ TRUTH.transitions
    assert TRUTH.excess_risk(planted) > 1e-3  # the mixture that the truth was made from is not the limit
    assert TRUTH.sparse_projection(1).divergence > TRUTH.sparse_projection(2).divergence > TRUTH.approximation_error


def test_an_estimator_without_the_dictionary_goes_to_the_truth():
    law = SmoothedEmpirical().fit(TRUTH.dictionary, np.rint(1e13 * TRUTH.target)).law_
    assert float(kl_divergence(TRUTH.target, law)) < 1e-9
    assert TRUTH.excess_risk(law) == pytest.approx(-TRUTH.approximation_error, abs=1e-9)


@pytest.mark.parametrize(
    ("alpha", "stray", "tau", "words"),
    [
        ([1, 0], [0.5, 0.5, 0], 0.5, "must lie outside the hull"),
        ([1, 0], [0.4, 0.4, 0.2], 0.5, "no row can give"),
        ([1, 0], [1, 0, 0], 0.0, r"tau must lie in \(0, 1\]"),
        ([1, 0], [1, 0], 0.5, "shapes"),
        ([1], [1, 0, 0], 0.5, "shapes"),
    ],
)
def test_wrong_instances_are_refused(alpha, stray, tau, words):
    with pytest.raises(ValueError, match=words):
        MisspecifiedInstance(Dictionary([[0.2, 0.8, 0], [0.8, 0.2, 0]]), alpha, stray, tau)


def test_where_every_law_is_a_mixture_nothing_can_be_planted():
    with pytest.raises(ValueError, match="every law"):
        misspecify(Instance(Dictionary(np.eye(3)), [0.2, 0.3, 0.5]), 0.5)


def test_a_hull_that_misses_a_corner_only():
    corner = np.array([[1 - 1e-5, 5e-6, 5e-6], [0, 1, 0], [0, 0, 1]])
    truth = misspecify(Instance(Dictionary(corner), [0.2, 0.3, 0.5]), 1.0)
    assert truth.target.tolist() == [1, 0, 0]
    assert truth.approximation_error == pytest.approx(-math.log(1 - 1e-5))


def test_a_truth_that_no_mixture_reaches_is_refused():
    with pytest.raises(ValueError, match="infinitely far"):
        project([[1.0, 0.0]], [0.5, 0.5])
    with pytest.raises(ValueError, match="shape"):
        project([[1.0, 0.0]], [0.5, 0.25, 0.25])
