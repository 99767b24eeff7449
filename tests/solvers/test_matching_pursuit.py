"""Orthogonal matching pursuit: defining equations, degenerate atoms, scikit-learn, and batches one by one."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls
from sklearn.linear_model import orthogonal_mp

from markov_theory.estimators import OMP
from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.matching_pursuit import orthogonal_matching_pursuit
from tests.certificates import assert_weights
from tests.strategies import dictionaries

KINDS = ("real", "non-negative", "simplex")


@st.composite
def atoms_and_targets(draw):
    """Small whole-number atoms with duplicates, multiples, zeros and atoms that are not finite, and targets."""
    T, d, R = draw(st.integers(1, 8)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    entry = st.integers(-3, 3)
    atoms = np.array(draw(st.lists(entry, min_size=T * d, max_size=T * d)), dtype=float).reshape(T, d)
    for row in range(T):
        kind = draw(st.sampled_from(["plain", "plain", "double", "near", "nan", "infinite", "tiny", "huge"]))
        if kind == "double":
            atoms[row] = -2 * atoms[draw(st.integers(0, T - 1))]
        if kind == "near":
            atoms[row] = atoms[draw(st.integers(0, T - 1))] + 10.0 ** -draw(st.integers(4, 12)) * atoms[row]
        atoms[row] *= {"tiny": 1e-150, "huge": 1e120}.get(kind, 1.0)
        if kind in ("nan", "infinite"):
            atoms[row, 0] = float(kind[:3])
    if not (np.isfinite(atoms).all(axis=1) & (atoms != 0).any(axis=1)).any():
        atoms[0] = 1.0
    targets = np.array(draw(st.lists(entry, min_size=R * d, max_size=R * d)), dtype=float).reshape(R, d)
    return atoms, targets


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


@given(atoms_and_targets(), st.sampled_from(KINDS), st.randoms(use_true_random=False))
def test_permuting_atoms_keeps_the_objective_of_one_atom(problem, weights, random):
    """Case 22. Ties of the first step may be broken otherwise, and from then on the paths differ: so k = 1."""
    atoms, targets = problem
    order = list(range(len(atoms)))
    random.shuffle(order)
    first = pursue(atoms, targets, 1, weights=weights)
    again = pursue(atoms[order], targets, 1, weights=weights)
    objectives = [fit.residual_norms**2 for fit in (first, again)]
    np.testing.assert_allclose(*objectives, atol=1e-10 * (1 + (targets**2).sum(axis=1).max()))
    assert sorted(first.excluded.tolist()) == sorted(order[i] for i in again.excluded)


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


@given(atoms_and_targets(), st.sampled_from(KINDS))
def test_more_atoms_are_never_worse(problem, weights):
    """Case 24."""
    atoms, targets = problem
    norms = np.array([pursue(atoms, targets, k, weights=weights).residual_norms for k in range(1, 6)])
    assert (np.diff(norms, axis=0) <= 1e-9 * (1 + norms[:-1])).all()


@given(atoms_and_targets(), st.integers(1, 5), st.sampled_from(KINDS))
def test_degenerate_atoms_are_excluded_and_the_answer_is_finite_and_says_what_it_is(problem, k, weights):
    atoms, targets = problem
    fit = pursue(atoms, targets, k, weights=weights)
    usable = np.isfinite(atoms).all(axis=1) & (atoms != 0).any(axis=1)
    assert fit.excluded.tolist() == np.flatnonzero(~usable).tolist()
    dense = fit.dense()
    assert np.isfinite(dense).all()
    assert not dense[:, ~usable].any()
    assert (fit.sizes <= min(k, usable.sum())).all()
    residuals = targets - dense[:, usable] @ atoms[usable]
    size = 1 + np.abs(dense[:, usable]) @ np.linalg.norm(atoms[usable], axis=1)
    assert (np.abs(np.linalg.norm(residuals, axis=1) - fit.residual_norms) <= 1e-9 * size).all()
    if weights != "real":
        assert (dense >= 0).all()
    if weights == "simplex":
        np.testing.assert_allclose(dense.sum(axis=1), 1, atol=1e-12)
    chosen = [set(row[row >= 0].tolist()) for row in fit.support]
    for members, classes in zip(chosen, fit.classes, strict=True):
        assert all(any(v in c for c in classes) for v in members)


@given(atoms_and_targets(), st.sampled_from(["real", "non-negative"]))
def test_a_stationary_pursuit_is_as_close_as_any_combination(problem, weights):
    """‖r‖² = r·x = r·(x − Aᵀw) + Σ w_v (a_v·r) for the best w, and no a_v·r exceeds 1e-9‖a_v‖‖r‖."""
    atoms, targets = problem
    fit = pursue(atoms, targets, len(atoms), weights=weights)
    usable = np.setdiff1d(np.arange(len(atoms)), fit.excluded)
    unit = atoms[usable] / np.abs(atoms[usable]).max(axis=1, keepdims=True)
    for i in np.flatnonzero(fit.status == "stationary"):
        solve = nnls if weights == "non-negative" else np.linalg.lstsq
        best = solve(unit.T, targets[i])[0]
        distance = np.linalg.norm(targets[i] - best @ unit)
        slack = 1e-9 * (np.abs(best) @ np.linalg.norm(unit, axis=1) + np.linalg.norm(targets[i]))
        assert fit.residual_norms[i] <= distance + 2 * slack


@given(dictionaries(single=False), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_residual_is_orthogonal_to_what_was_chosen(rows, s, random):
    target = np.array([random.random() for _ in range(rows.shape[1])])
    fit = pursue(rows, target, s)
    chosen = fit.support[0, : fit.sizes[0]]
    residual = target - fit.values[0, : chosen.size] @ rows[chosen]
    cosines = rows[chosen] @ residual / np.linalg.norm(rows[chosen], axis=1)
    assert chosen.size <= s
    assert np.abs(cosines).max(initial=0) <= 1e-6 * (1 + np.abs(fit.values).max())


def test_atoms_that_coincide_to_rounding_stop_the_pursuit_with_a_warning():
    atoms = [[1, 0, 0], [1, 1e-8, 0]]
    with pytest.warns(UserWarning, match="1 of 2 pursuits stopped early: the next atom depends"):
        fit = orthogonal_matching_pursuit(atoms, [[1, 1, 0], [1, 0, 0]], 2)
    assert fit.status.tolist() == ["dependent atoms", "exact"]
    assert fit.support.tolist() == [[1, -1], [0, -1]]


def test_equal_atoms_are_used_once():
    fit = orthogonal_matching_pursuit([[0.5, 0.5]] * 3, [0.3, 0.7], 3)
    assert fit.support[0, :1].tolist() == [0]
    assert fit.sizes.tolist() == [1]
    assert fit.status.tolist() == ["stationary"]


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


@pytest.mark.parametrize("weights", KINDS)
def test_zero_atoms_and_atoms_that_are_not_numbers_are_excluded_and_listed(weights):
    """Case 42."""
    atoms = np.float32([[0, 0], [1, 2], [np.nan, 1], [3, 1], [1, np.inf]])
    fit = orthogonal_matching_pursuit(atoms, [[1, 2], [2, 1.5]], 4, weights=weights)
    assert fit.excluded.tolist() == [0, 2, 4]
    assert fit.support.shape == (2, 2)
    assert fit.support[0].tolist() == [1, -1]
    assert np.isfinite(fit.dense()).all()


def test_a_zero_target_needs_no_atom():
    assert orthogonal_matching_pursuit(np.eye(3), np.zeros(3), 2).sizes.tolist() == [0]
    assert orthogonal_matching_pursuit(np.eye(3), np.zeros(3), 1, weights="simplex").support.tolist() == [[0]]


def test_the_estimator_takes_the_support_from_the_pursuit():
    dictionary = make_dictionary(12, 20, density_ratio=50.0)
    planted = plant(dictionary, 2)
    counts = sample_counts(planted.target, 100_000, 4, named_generator(0, "estimator"))
    fit = OMP(2).fit(dictionary, counts)
    assert_weights(fit.alpha_)
    support = orthogonal_matching_pursuit(dictionary.transitions, counts / 100_000, 2).support
    assert [np.flatnonzero(a).tolist() for a in fit.alpha_] == [sorted(s.tolist()) for s in support]
    assert np.isfinite(OMP(2).fit(dictionary, np.zeros(20)).law_).all()


@pytest.mark.parametrize(
    ("atoms", "targets", "options", "message"),
    [
        (np.eye(2), [1, 2, 3], {}, r"targets must have shape \(2,\) or \(R, 2\), got \(3,\)"),
        (np.eye(2), [1, np.nan], {}, "targets must be finite"),
        (np.eye(2), [1, 1e200], {}, "targets must be finite and below 1e[+]140"),
        (np.eye(2)[0], [1], {}, r"atoms must be a \(T, d\) matrix"),
        (np.zeros((2, 2)), [1, 1], {}, "at least one that is finite and not zero"),
        (np.eye(2), [1, 1], {"weights": "positive"}, "weights must be one of real, non-negative, simplex"),
        (np.eye(2), [1, 1], {"tolerance": -1.0}, "tolerance must be a finite number >= 0"),
        (np.eye(2), [1, 1], {"sparsity": 0}, "sparsity must be >= 1"),
    ],
)
def test_wrong_input_is_refused(atoms, targets, options, message):
    with pytest.raises(ValueError, match=message):
        orthogonal_matching_pursuit(atoms, targets, **{"sparsity": 1} | options)


def test_atoms_must_be_real_numbers():
    with pytest.raises(TypeError, match="atoms must be an array of real numbers, got complex128"):
        orthogonal_matching_pursuit(np.eye(2) * 1j, [1, 1], 1)
