"""Orthogonal matching pursuit on degenerate atoms: duplicates, multiples, zeros, and what is not a number."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from markov_theory.solvers.matching_pursuit import orthogonal_matching_pursuit
from tests.strategies import atoms_and_targets, dictionaries

KINDS = ("real", "non-negative", "simplex")


def pursue(*arguments, **options):
    """The pursuit, without its warning of dependent atoms."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped early")
        return orthogonal_matching_pursuit(*arguments, **options)


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
