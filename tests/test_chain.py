"""Chains: stationary laws, trajectories, counts, and extension that forgets nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from markov_theory.chain import MarkovChain, count_transitions, estimate_transitions
from markov_theory.divergences import kl_divergence
from markov_theory.randomness import named_generator
from tests.strategies import laws

squares = st.integers(1, 6).flatmap(lambda T: st.lists(laws(T, zeros=True), min_size=T, max_size=T)).map(np.array)


@given(squares)
def test_stationary_laws_are_stationary_one_a_recurrent_class(P):
    chain = MarkovChain(P)
    pi = chain.stationary_laws
    assert len(pi) == len(chain.recurrent_classes) >= 1
    np.testing.assert_allclose(pi @ chain.transitions, pi, atol=1e-9)
    np.testing.assert_allclose(pi.sum(axis=1), 1)
    for law, members in zip(pi, chain.recurrent_classes, strict=True):
        assert set(np.flatnonzero(law > 1e-12)) <= set(members)


def test_a_chain_in_two_parts_has_two_stationary_laws():
    chain = MarkovChain([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    assert chain.recurrent_classes == ((0,), (1, 2))
    np.testing.assert_allclose(chain.stationary_laws, [[1, 0, 0], [0, 0.5, 0.5]])


@given(squares, st.integers(0, 200))
def test_a_trajectory_makes_only_possible_transitions(P, n_steps):
    path = MarkovChain(P).simulate(n_steps, named_generator(0, "path"))
    assert path.shape == (n_steps + 1,)
    assert (P[path[:-1], path[1:]] > 0).all()


@pytest.mark.statistical
def test_a_trajectory_follows_the_rows():
    """Pearson's statistic over the rows at level 1e-6, for the stated seed."""
    P = np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    counts = count_transitions([MarkovChain(P).simulate(50_000, named_generator(1, "path"))], 3)
    expected = counts.sum(axis=1, keepdims=True) * P
    assert ((counts - expected) ** 2 / expected).sum() < chi2.isf(1e-6, 6)


@given(squares, st.integers(1, 4), st.randoms(use_true_random=False))
def test_extension_keeps_every_old_float_and_is_undone_bit_for_bit(P, m, random):
    chain = MarkovChain(P)
    Q = np.array([[random.random() + 1e-3 for _ in range(len(P))] for _ in range(m)])
    extended = chain.extend(Q / Q.sum(axis=1, keepdims=True))
    assert extended.forgets_nothing()
    assert extended.retract() is chain
    again = extended.extend(np.full((1, len(P) + m), 1 / (len(P) + m)))
    assert again.forgets_nothing()
    assert again.transitions[: len(P), : len(P)].tobytes() == chain.transitions.tobytes()
    assert again.retract().retract().transitions.tobytes() == chain.transitions.tobytes()


def test_new_states_are_never_reached():
    extended = MarkovChain([[0.5, 0.5], [0.2, 0.8]]).extend([[0.3, 0.7]])
    assert list(extended.new_states) == [2]
    assert extended.simulate(500, named_generator(0, "reach"), start=2)[1:].max() == 1


@pytest.mark.parametrize(
    ("rows", "words"),
    [([[1.0]], "2 columns"), ([[0.5, 0.6]], "sum to 1"), ([0.5, 0.5], "matrix")],
)
def test_wrong_new_rows_are_refused(rows, words):
    with pytest.raises(ValueError, match=words):
        MarkovChain([[0.5, 0.5], [0.2, 0.8]]).extend(rows)


@given(squares, st.integers(1, 3), st.randoms(use_true_random=False))
def test_what_new_states_take_from_old_rows_costs_exactly_that(P, m, random):
    T = len(P)
    eta = np.array([[random.choice([0.0, 1e-18, 0.1, 0.9]) * random.random() / m for _ in range(m)] for _ in P])
    extended = MarkovChain(P).extend(np.full((m, T), 1 / T), into_new=eta)
    mass = eta.sum(axis=1)
    np.testing.assert_allclose(extended.forgetting, -np.log1p(-mass), rtol=1e-12)
    assert extended.forgets_nothing() == (not eta.any())
    untouched = mass == 0
    assert (extended.forgetting[untouched] == 0).all()
    assert extended.transitions[:T, :T][untouched].tobytes() == extended.base.transitions[untouched].tobytes()
    old = np.column_stack([extended.base.transitions, np.zeros((T, m))])
    np.testing.assert_allclose(kl_divergence(old, extended.transitions[:T]), extended.forgetting, atol=1e-15, rtol=1e-9)
    assert extended.retract().transitions.tobytes() == MarkovChain(P).transitions.tobytes()


@given(laws(4), laws(4), st.floats(0.01, 0.9), st.floats(0, 1))
def test_no_row_that_gives_mass_away_costs_less(row, other, eta, share):
    rival = (1 - share) * row + share * other
    cost = float(kl_divergence(np.append(row, 0.0), np.append((1 - eta) * rival, eta)))
    assert cost >= -np.log1p(-eta) - 1e-12


@given(squares, st.integers(1, 3), st.floats(0.01, 0.99))
def test_transitions_among_new_states_forget_nothing_and_hide_their_mass(P, m, mass):
    T = len(P)
    rows = np.full((m, T), 1 / T)
    extended = MarkovChain(P).extend(rows, among_new=np.full((m, m), mass / m))
    assert extended.forgets_nothing()
    assert (extended.forgetting == 0).all()
    np.testing.assert_allclose(extended.truncation, -np.log1p(-mass), rtol=1e-12)
    given_old = np.column_stack([rows, np.zeros((m, m))])
    np.testing.assert_allclose(kl_divergence(given_old, extended.transitions[T:]), extended.truncation, rtol=1e-9)
    assert (kl_divergence(extended.transitions[T:], given_old) == np.inf).all()
    np.testing.assert_allclose(extended.transitions.sum(axis=1), 1)


@pytest.mark.parametrize(
    ("masses", "words"),
    [
        ({"into_new": [[0.1]]}, r"into_new must have shape \(2, 1\)"),
        ({"into_new": [[1.0], [0]]}, "total 1"),
        ({"into_new": [[-0.1], [0]]}, "entry -0.1"),
        ({"among_new": [[np.nan]]}, "among_new must be non-negative"),
    ],
)
def test_wrong_masses_are_refused(masses, words):
    with pytest.raises(ValueError, match=words):
        MarkovChain([[0.5, 0.5], [0.2, 0.8]]).extend([[0.3, 0.7]], **masses)


def test_a_chain_is_square():
    with pytest.raises(ValueError, match="square"):
        MarkovChain([[0.5, 0.5]])


@pytest.mark.parametrize(
    ("paths", "error", "words"),
    [
        ([0, 1, 0], TypeError, "wrap a single one"),
        ([[0, 2]], ValueError, r"\[0, 1\], got 0 … 2"),
        ([[-1, 0]], ValueError, "got -1"),
        ([[0.5, 1.0]], TypeError, "whole numbers"),
    ],
)
def test_wrong_paths_are_refused(paths, error, words):
    with pytest.raises(error, match=words):
        count_transitions(paths, 2)


def test_rows_without_data_are_filled_only_on_request():
    counts = [[3, 1], [0, 0]]
    assert estimate_transitions(counts).mask.tolist() == [[False, False], [True, True]]
    for fill, row in {"uniform": [0.5, 0.5], "absorbing": [0, 1]}.items():
        filled = estimate_transitions(counts, fill)
        assert filled.tolist() == [[0.75, 0.25], row]
    with pytest.raises(ValueError, match="unvisited must be one of mask, uniform, absorbing, got 'zeros'"):
        estimate_transitions(counts, "zeros")
