"""K1: the sparsity that a path of K contexts needs, attained; and the looser readings, which are false."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from markov_theory.bounds.higher_order import K1, entry_size, needs_more_tokens, tight_entry
from markov_theory.higher_order import path_contexts
from markov_theory.higher_order_families import plant_entry


def stacked(planted, alpha, whole_entry):
    """Rows of the candidates in all new contexts, (A, n·T), duplicates dropped, and their mixture."""
    chain = planted.chain
    holes = chain.entry(planted.context, alpha) if whole_entry else path_contexts(planted.context, planted.path)
    tokens = chain.candidates(holes)
    rows = np.array([chain.lifted_rows(holes, np.eye(chain.n_tokens)[v]).ravel() for v in tokens])
    return np.unique(rows, axis=0), chain.lifted_rows(holes, alpha).ravel()


def least_number_of_atoms(points, target):
    """By every support in turn: a linear program says whether it holds the target."""
    for size in range(1, len(points) + 1):
        for support in itertools.combinations(range(len(points)), size):
            equations = np.vstack([points[list(support)].T, np.ones(size)])
            if linprog(np.zeros(size), A_eq=equations, b_eq=np.append(target, 1.0), method="highs").status == 0:
                return size
    raise AssertionError("the target is no mixture of the points")


def exact_rank(matrix):
    """Rank in rational arithmetic of the doubles as they are."""
    rows = [[Fraction(float(x)) for x in row] for row in matrix]
    rank = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(rank, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for i in range(rank + 1, len(rows)):
            factor = rows[i][column] / rows[rank][column]
            rows[i] = [x - factor * y for x, y in zip(rows[i], rows[rank], strict=True)]
        rank += 1
    return rank


@pytest.mark.parametrize("whole_entry", [False, True])
@pytest.mark.parametrize(("K", "b"), [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 2), (4, 2)])
def test_it_is_attained(K, b, whole_entry):
    planted, alpha = tight_entry(K, b, whole_entry)
    s = K1.sparsity(K, b, whole_entry)
    assert planted.chain.branching <= b
    assert planted.chain.extend(planted.context, alpha).branching <= b
    points, target = stacked(planted, alpha, whole_entry)
    usable = points[~(points[:, target == 0] > 0).any(axis=1)]  # weights are non-negative
    assert len(usable) == s
    # Affinely independent points have one representation, and it has no zero weight here.
    assert exact_rank(usable[1:] - usable[0]) == s - 1 if s > 1 else len(usable) == 1
    np.testing.assert_allclose(usable.mean(axis=0), target, rtol=1e-14)
    if s <= 8:
        assert least_number_of_atoms(usable, target) == s


def test_b_old_tokens_are_not_enough_at_order_two():
    planted, alpha = tight_entry(2, 2)
    points, target = stacked(planted, alpha, whole_entry=False)
    assert least_number_of_atoms(points, target) == 3 > 2


def test_an_entry_with_seven_contexts_needs_eight():
    assert entry_size(3, 2) == 7
    planted, alpha = tight_entry(3, 2, whole_entry=True)
    points, target = stacked(planted, alpha, whole_entry=True)
    usable = points[~(points[:, target == 0] > 0).any(axis=1)]
    assert least_number_of_atoms(usable, target) == 8 > 3 * 2  # K·b = 6 does not do
    assert len(planted.chain.sparsify(path_contexts(planted.context, planted.path), alpha).support) <= 4


def test_branching_of_old_contexts_alone_bounds_nothing():
    T = 7  # a cycle: b = 1, K = 1, so K(b-1)+1 = 1; but the new row is to be uniform
    rows = np.roll(np.eye(T), 1, axis=1)
    assert least_number_of_atoms(rows, np.full(T, 1 / T)) == T > K1.sparsity(1, 1)


@pytest.mark.parametrize(("K", "b", "n"), [(1, 3, 9), (2, 2, 8), (2, 3, 7), (3, 2, 9)])
def test_no_planted_entry_needs_more(K, b, n):
    planted = plant_entry(K, b, n, seed=3)
    alpha = np.zeros(planted.chain.n_tokens)
    alpha[planted.tokens] = 1 / n
    holes = path_contexts(planted.context, planted.path)
    reduced = planted.chain.sparsify(holes, alpha)
    assert len(reduced.support) <= K1.sparsity(K, b) < n
    rows = planted.chain.lifted_rows(holes, reduced.weights)
    np.testing.assert_allclose(rows, planted.chain.lifted_rows(holes, alpha), rtol=1e-13)


@pytest.mark.parametrize(("K", "b", "n"), [(1, 3, 6), (2, 2, 6), (2, 3, 5)])
def test_how_many_tokens_do_not_do_is_what_linear_programs_say(K, b, n):
    planned = plant_entry(K, b, n, seed=5)
    chain, holes = planned.chain, path_contexts(planned.context, planned.path)
    alpha = np.zeros(chain.n_tokens)
    alpha[planned.tokens] = 1 / n
    points, target = stacked(planned, alpha, whole_entry=False)
    needed = least_number_of_atoms(points, target)
    assert [needs_more_tokens(chain, holes, alpha, k) for k in range(1, n + 1)] == [k < needed for k in range(1, n + 1)]


def test_nothing_is_known_of_more_sets_than_can_be_tried(monkeypatch):
    planned, alpha = tight_entry(2, 3)
    holes = path_contexts(planned.context, planned.path)
    assert needs_more_tokens(planned.chain, holes, alpha, 4)
    monkeypatch.setattr("markov_theory.bounds.higher_order.MAX_SETS", 3)
    assert not needs_more_tokens(planned.chain, holes, alpha, 4)
    with pytest.raises(ValueError, match="n_tokens must be >= 1, got 0"):
        needs_more_tokens(planned.chain, holes, alpha, 0)


def test_it_says_what_it_is():
    assert K1.origin == "derived"
    assert K1.statement
    assert K1.reason
    assert all(K1.sparsity(K, b) <= K * b for K in range(1, 6) for b in range(1, 6))
    assert [entry_size(4, b) for b in (1, 2, 3)] == [4, 15, 40]
    with pytest.raises(ValueError, match="branching must be >= 1, got 0"):
        K1.sparsity(2, 0)
