"""Orthogonal matching pursuit: reported cases, scikit-learn, special atoms, and batches one by one."""

import warnings

import numpy as np
import pytest
from scipy.optimize import nnls
from sklearn.linear_model import orthogonal_mp

from markov_theory.estimators import OMP
from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.matching_pursuit import orthogonal_matching_pursuit
from tests.certificates import assert_weights

KINDS = ("real", "non-negative", "simplex")


def pursue(*arguments, **options):
    """The pursuit, without its warning of dependent atoms."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped early")
        return orthogonal_matching_pursuit(*arguments, **options)


def gaussian(T, d, R, k, name):
    """Atoms of many norms and targets that are sparse combinations of them with noise."""
    generator = named_generator(0, "matching pursuit", name)
    atoms = generator.standard_normal((T, d)) * generator.uniform(0.1, 10, (T, 1))
    weights = np.zeros((R, T))
    for row in weights:
        row[generator.choice(T, k, replace=False)] = generator.choice([-1, 1], k)
    return atoms, weights @ atoms / np.linalg.norm(atoms) + 1e-3 * generator.standard_normal((R, d))


def test_atoms_are_normalised_in_the_selection():
    """Case 18: raw products would take the first atom."""
    fit = orthogonal_matching_pursuit([[10, 10], [1, 0]], [1, 0], 1)
    assert fit.support.tolist() == [[1]]
    assert fit.residual_norms.tolist() == [0]
    assert fit.status.tolist() == ["exact"]


def test_law_atoms_are_normalised_in_the_selection():
    rows = [[0.1, 0.3, 0.3, 0.3], [0.25, 0.25, 0.25, 0.25], [0.2, 0.0, 0.0, 0.8]]
    np.testing.assert_allclose(
        orthogonal_matching_pursuit(rows, [0.1, 0.3, 0.3, 0.3], 1).dense(), [[1, 0, 0]], atol=1e-12
    )


@pytest.mark.parametrize("weights", ["real", "non-negative"])
def test_duplicate_atoms_make_the_support_not_unique_and_both_supports_are_listed(weights):
    """Case 19."""
    fit = orthogonal_matching_pursuit([[1, 0], [1, 0], [0, 1]], [1, 1], 2, weights=weights)
    assert fit.residual_norms[0] <= 1e-15
    assert fit.classes == (((0, 1), (2,)),)
    assert not fit.support_unique[0]
    assert list(fit.supports(0)) == [(0, 2), (1, 2)]


def test_what_is_interchangeable_depends_on_what_weights_may_be():
    atoms, target = [[1, 1], [2, 2], [-1, -1], [1, 1]], [1, 1]
    classes = {kind: pursue(atoms, target, 1, weights=kind).classes[0] for kind in KINDS}
    assert classes == {"real": ((0, 1, 2, 3),), "non-negative": ((0, 1, 3),), "simplex": ((0, 3),)}


@pytest.mark.parametrize("sparsity", [3, 5, 100])
@pytest.mark.parametrize("weights", ["real", "non-negative"])
def test_sparsity_above_what_can_be_independent_is_reduced_to_it(sparsity, weights):
    """Case 20."""
    fit = orthogonal_matching_pursuit([[1, 0], [0, 1], [1, 1]], [2, 1], sparsity, weights=weights)
    assert fit.support.tolist() == [[2, 0]]
    np.testing.assert_allclose(fit.values, [[1, 1]], atol=1e-14)
    assert fit.status.tolist() == ["exact"]
    assert orthogonal_matching_pursuit([[1, 0]], [2, 1], sparsity, weights=weights).support.shape == (1, 1)


@pytest.mark.parametrize("weights", ["real", "non-negative"])
def test_tolerance_is_the_norm_of_the_residual_and_not_its_square(weights):
    """Case 21: the residual of one atom is 0.3, its square 0.09."""
    fits = [
        orthogonal_matching_pursuit(np.eye(2), [1, 0.3], 2, tolerance=tolerance, weights=weights)
        for tolerance in (0.25, 0.35)
    ]
    assert [fit.sizes.tolist() for fit in fits] == [[2], [1]]
    assert [fit.status.tolist() for fit in fits] == [["exact"], ["tolerance"]]


@pytest.mark.parametrize("weights", KINDS)
def test_permuting_atoms_permutes_the_weights(weights):
    """Case 22."""
    atoms, targets = gaussian(200, 30, 8, 4, "permute")
    order = named_generator(0, "order").permutation(200)
    fit, permuted = (
        pursue(atoms, targets, 6, weights=weights),
        pursue(atoms[order], targets, 6, weights=weights),
    )
    np.testing.assert_allclose(permuted.dense(), fit.dense()[:, order], rtol=0, atol=1e-10)
    np.testing.assert_allclose(permuted.residual_norms, fit.residual_norms, rtol=0, atol=1e-10)


def test_ties_go_to_the_lowest_index():
    generator = named_generator(0, "ties")
    for _ in range(5):
        atoms = np.repeat(generator.standard_normal((7, 20)), 3, axis=0)[generator.permutation(21)]
        atoms *= generator.uniform(0.1, 10, (21, 1))
        fit = orthogonal_matching_pursuit(atoms, generator.standard_normal((6, 20)), 4)
        for support, classes in zip(fit.support, fit.classes, strict=True):
            assert [c[0] for c in classes] == support.tolist()
            assert all(len(c) == 3 for c in classes)


def test_a_weight_that_falls_to_zero_leaves_the_support_and_the_size_says_so():
    """Case 24: the first atom is useless once the other two are in; three were asked for."""
    atoms = [[1.0, 1.0, 0.35], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    two, three = (orthogonal_matching_pursuit(atoms, [1, 1, -0.05], k, weights="non-negative") for k in (2, 3))
    assert three.sizes.tolist() == [2]
    assert sorted(three.support[0, :2].tolist()) == [1, 2]
    assert (three.dense()[0] > 0).sum() == 2
    assert three.residual_norms[0] == pytest.approx(0.05, abs=1e-12)
    assert three.residual_norms[0] <= two.residual_norms[0]
    assert three.status.tolist() == ["stationary"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_supports_and_weights_agree_with_scikit_learn(dtype):
    atoms, targets = gaussian(512, 64, 24, 8, "scikit-learn")
    atoms, targets = atoms.astype(dtype), targets.astype(dtype)
    fit = orthogonal_matching_pursuit(atoms, targets, 8)
    norms = np.linalg.norm(atoms.astype(float), axis=1)
    theirs = orthogonal_mp((atoms.astype(float).T / norms), targets.astype(float).T, n_nonzero_coefs=8).T / norms
    assert ((theirs != 0) == (fit.dense() != 0)).all()
    np.testing.assert_allclose(fit.dense(), theirs, atol=1e-9)


@pytest.mark.parametrize("weights", KINDS)
def test_orthogonal_atoms_give_the_largest_coefficients(weights):
    generator = named_generator(0, "orthogonal")
    basis = np.linalg.qr(generator.standard_normal((40, 40)))[0]
    weight = generator.dirichlet(np.ones(40), size=5)
    fit = orthogonal_matching_pursuit(basis, weight @ basis, 6, weights=weights)
    assert [set(row.tolist()) for row in fit.support] == [set(np.argsort(-row)[:6].tolist()) for row in weight]
    if weights != "simplex":
        np.testing.assert_allclose(np.sort(fit.values), np.sort(weight)[:, -6:], atol=1e-12)
        np.testing.assert_allclose(fit.residual_norms, np.linalg.norm(np.sort(weight)[:, :-6], axis=1), atol=1e-12)


@pytest.mark.parametrize("weights", KINDS)
def test_a_batch_equals_its_problems_one_by_one(weights):
    atoms, targets = gaussian(300, 24, 12, 5, "batch")
    batch = pursue(atoms, targets, 7, weights=weights)
    for i, target in enumerate(targets):
        alone = pursue(atoms, target, 7, weights=weights)
        assert alone.support.tolist() == [batch.support[i].tolist()]
        assert alone.status[0] == batch.status[i]
        np.testing.assert_allclose(alone.values[0], batch.values[i], rtol=1e-10, atol=1e-14)


def test_simplex_weights_with_every_atom_reach_the_nearest_point_of_the_hull():
    """The nearest point y of a hull is the one with (a_v − y)·(x − y) <= 0 for every vertex."""
    generator = named_generator(0, "hull")
    atoms, targets = generator.standard_normal((9, 5)), 0.7 * generator.standard_normal((30, 5))
    fit = orthogonal_matching_pursuit(atoms, targets, 9, weights="simplex")
    assert set(fit.status.tolist()) <= {"stationary", "exact", "sparsity"}
    nearest = fit.dense() @ atoms
    residuals = targets - nearest
    done = fit.status != "sparsity"
    assert done.sum() >= 20
    progress = np.einsum("rvd,rd->rv", atoms[None] - nearest[:, None], residuals)
    assert progress[done].max() <= 1e-8


def test_non_negative_pursuit_with_every_atom_is_non_negative_least_squares():
    generator = named_generator(0, "cone")
    atoms, targets = generator.standard_normal((12, 12)), generator.standard_normal((20, 12))
    fit = orthogonal_matching_pursuit(atoms, targets, 12, weights="non-negative")
    assert set(fit.status.tolist()) <= {"stationary", "exact"}
    for target, weights in zip(targets, fit.dense(), strict=True):
        np.testing.assert_allclose(weights, nnls(atoms.T, target)[0], atol=1e-9)


def test_the_estimator_takes_the_support_from_the_pursuit():
    dictionary = make_dictionary(12, 20, density_ratio=50.0)
    planted = plant(dictionary, 2)
    counts = sample_counts(planted.target, 100_000, 4, named_generator(0, "estimator"))
    fit = OMP(2).fit(dictionary, counts)
    assert_weights(fit.alpha_)
    support = orthogonal_matching_pursuit(dictionary.transitions, counts / 100_000, 2).support
    assert [np.flatnonzero(a).tolist() for a in fit.alpha_] == [sorted(s.tolist()) for s in support]
    assert np.isfinite(OMP(2).fit(dictionary, np.zeros(20)).law_).all()
