"""Chains of order K: contexts, trajectories, counts, and a new token that no old context notices."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from markov_theory import higher_order_families
from markov_theory.bounds.higher_order import K1, entry_size
from markov_theory.chain import count_transitions
from markov_theory.higher_order import HOLE, HigherOrderChain, path_contexts
from markov_theory.higher_order_families import grow_chain, make_higher_order_chain, plant_entry
from markov_theory.randomness import named_generator
from tests.certificates import assert_weights
from tests.strategies import laws

sizes = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 12))  # K, b, tokens to map to


def weights_on(planted, values):
    alpha = np.zeros(planted.chain.n_tokens)
    alpha[planted.tokens] = values
    return alpha


@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_every_context_has_the_branching_asked_for(T, K, data):
    b = data.draw(st.integers(1, T))
    chain = make_higher_order_chain(T, K, b, seed=data.draw(st.integers(0, 99)))
    assert (chain.order, chain.n_tokens) == (K, T)
    assert ((chain.transitions > 0).sum(axis=1) == b).all()
    assert chain.n_contexts <= T**K
    assert chain.reachable([(0,) * K]).tolist() == list(range(chain.n_contexts))


def test_a_seed_makes_one_chain():
    first, again, other = (make_higher_order_chain(5, 2, 2, seed=seed) for seed in (0, 0, 1))
    assert first.transitions.tobytes() == again.transitions.tobytes() != other.transitions.tobytes()


@given(st.integers(1, 3), st.integers(0, 60))
def test_trajectories_are_those_of_the_first_order_chain_on_contexts(K, n_steps):
    chain = make_higher_order_chain(3, K, 2)
    path = chain.simulate(n_steps, named_generator(0, "path"), chain.contexts[0])
    assert path.shape == (K + n_steps,)
    places = chain.places([path[i : i + K] for i in range(n_steps + 1)])
    assert (places >= 0).all()
    P = chain.on_contexts.transitions
    assert (P[places[:-1], places[1:]] > 0).all()
    if K == 1:
        assert chain.on_contexts.n_states == chain.n_contexts
    counts = chain.count([path])
    assert counts.sum() == n_steps
    on_contexts = count_transitions([places], chain.n_contexts)
    for i, j in np.argwhere(on_contexts):
        assert counts[i, chain.contexts[j, -1]] == on_contexts[i, j]


@pytest.mark.statistical
def test_a_trajectory_follows_the_rows():
    """Pearson's statistic over all contexts at level 1e-6, for the stated seed."""
    chain = make_higher_order_chain(3, 2, 2)
    counts = chain.count([chain.simulate(50_000, named_generator(0, "law"), chain.contexts[0])])
    expected = counts.sum(axis=1, keepdims=True) * chain.transitions
    live = expected > 0
    assert not counts[~live].any()
    assert ((counts - expected)[live] ** 2 / expected[live]).sum() < chi2.isf(1e-6, (counts.sum(axis=1) > 0).sum())


def test_counts_do_not_cross_the_end_of_a_trajectory():
    chain = grow_chain([[0, 0]], lambda context: [0.5, 0.5])
    counts = chain.count([[0, 0, 1], [1, 1, 0], [0, 1], []])
    assert counts.sum() == 2
    assert counts[chain.places([[0, 0]])[0]].tolist() == [0, 1]
    assert counts[chain.places([[1, 1]])[0]].tolist() == [1, 0]


def test_only_part_of_a_chain_may_be_reachable():
    chain = HigherOrderChain([[0], [1], [2]], [[1, 0, 0], [0, 0, 1], [0, 0, 1]])
    assert chain.reachable([[1]]).tolist() == [1, 2]
    assert chain.reachable([[0]]).tolist() == [0]


def test_new_contexts_of_a_path():
    assert path_contexts((7,), ()).tolist() == [[HOLE]]
    assert path_contexts((3, 4), (6,)).tolist() == [[4, HOLE], [HOLE, 6]]
    with pytest.raises(ValueError, match="K - 1 = 1 tokens"):
        path_contexts((3, 4), (6, 7))


@given(sizes, st.data())
def test_weights_can_be_made_sparse_without_moving_a_row(size, data):
    K, b, n = size
    planted = plant_entry(K, b, n, seed=data.draw(st.integers(0, 9)))
    chain, alpha = planted.chain, weights_on(planted, data.draw(laws(n, zeros=True)))
    assert chain.branching <= b
    for whole_entry in (False, True):
        holes = chain.entry(planted.context, alpha) if whole_entry else path_contexts(planted.context, planted.path)
        assert set(planted.tokens) <= set(chain.candidates(holes))
        reduced = chain.sparsify(holes, alpha)
        assert_weights(reduced.weights)
        assert len(reduced.support) <= K1.sparsity(K, b, whole_entry)
        assert set(reduced.support) <= set(np.flatnonzero(alpha))
        assert reduced.residual <= 1e-12
        before, after = chain.lifted_rows(holes, alpha), chain.lifted_rows(holes, reduced.weights)
        assert (before > 0).tolist() == (after > 0).tolist()
        np.testing.assert_allclose(after, before, rtol=1e-12)


def test_a_token_of_tiny_weight_that_alone_gives_an_outcome_keeps_it():
    rows = np.array([[0.5, 0.5, 0, 0], [0.4, 0.6, 0, 0], [0.3, 0.7, 0, 0], [0.25, 0.25, 0.25, 0.25]])
    chain = HigherOrderChain([[0], [1], [2], [3]], rows)
    for tiny in (1e-3, 1e-12, 1e-100):
        alpha = np.array([0.3, 0.3, 0.4 - tiny, tiny])
        reduced = chain.sparsify(path_contexts((0,), ()), alpha)
        assert len(reduced.support) <= 3
        assert reduced.weights[3] == pytest.approx(tiny, rel=1e-12, abs=0)
        assert reduced.residual <= 1e-12


@given(sizes, st.data())
def test_extension_keeps_every_old_float_and_is_undone(size, data):
    K, b, n = size
    planted = plant_entry(K, b, n)
    chain, alpha = planted.chain, weights_on(planted, data.draw(laws(n, zeros=True)))
    before = chain.transitions.tobytes()
    extended = chain.extend(planted.context, alpha)
    assert extended.forgets_nothing()
    assert extended.retract() is chain
    assert chain.transitions.tobytes() == before
    assert extended.branching <= b
    assert extended.n_contexts - chain.n_contexts == entry_size(K, b)
    new = (extended.contexts == chain.n_tokens).sum(axis=1)
    assert new[: chain.n_contexts].max() == 0
    assert (new[chain.n_contexts :] == 1).all()
    again = extended.extend(planted.context, np.append(alpha, 0.0))
    assert again.forgets_nothing()
    assert again.transitions[: extended.n_contexts, : extended.n_tokens].tobytes() == extended.transitions.tobytes()
    assert again.retract().retract() is chain


def test_a_later_token_may_be_mapped_to_an_earlier_one():
    planted = plant_entry(2, 2, 3)
    once = planted.chain.extend(planted.context, weights_on(planted, [0.2, 0.3, 0.5]))
    u = planted.chain.n_tokens
    twice = once.extend(planted.context, np.eye(once.n_tokens)[u])
    rows = [once.transitions[once.places([[0, u], [u, 0], [u, 1]])]]
    rows.append(twice.transitions[twice.places([[0, u + 1], [u + 1, 0], [u + 1, 1]]), : u + 1])
    np.testing.assert_array_equal(*rows)


def test_a_token_from_outside_leaves_no_count_of_its_coming():
    planted = plant_entry(2, 2, 3)
    extended = planted.chain.extend(planted.context, weights_on(planted, [0.2, 0.3, 0.5]))
    u = planted.chain.n_tokens
    counts = extended.count([[0, 0, u, 1, 0, 1]])
    assert counts.sum() == 3
    assert counts[extended.places([[0, u], [u, 1], [1, 0]]), [1, 0, 1]].tolist() == [1, 1, 1]
    path = extended.simulate(2000, named_generator(0, "once"), (0, u))
    assert (path == u).sum() == 1


def test_the_lifted_map_needs_every_context():
    chain = HigherOrderChain(
        [[0, 0], [0, 1], [1, 0], [0, 2], [2, 0]],
        [[0.5, 0.25, 0.25], [1, 0, 0], [1, 0, 0], [1, 0, 0], [1, 0, 0]],
    )
    holes = path_contexts((0, 0), (0,))
    assert chain.candidates(holes).tolist() == [0, 1, 2]
    assert chain.candidates(path_contexts((0, 1), (0,))).tolist() == [0]
    with pytest.raises(ValueError, match=r"\(1, 2\) is not a context"):
        chain.lifted_rows([[1, HOLE]], [0, 0, 1])
    with pytest.raises(ValueError, match=r"alpha must have shape \(3,\)"):
        chain.extend((0, 0), [0.5, 0.5])


def test_the_law_after_a_new_token_is_what_a_corpus_shows():
    """Exact: the chain run forward from the entry gives path probabilities that are products of lifted rows."""
    planted = plant_entry(3, 2, 4)
    alpha = weights_on(planted, [0.1, 0.2, 0.3, 0.4])
    extended = planted.chain.extend(planted.context, alpha)
    u = planted.chain.n_tokens
    total = 0.0
    for path in itertools.product(range(2), repeat=3):
        holes = path_contexts(planted.context, path[:2])
        by_rows = np.prod([planted.chain.lifted_rows(holes, alpha)[k, path[k]] for k in range(3)])
        context, by_chain = (0, 0, u), 1.0
        for token in path:
            by_chain *= extended.transitions[extended.places([context])[0], token]
            context = (*context[1:], token)
        assert by_chain == pytest.approx(by_rows, rel=1e-14)
        total += by_chain
    assert total == pytest.approx(1)


@pytest.mark.parametrize(
    ("contexts", "rows", "error", "words"),
    [
        ([[0], [1]], [[0.5, 0.5]], ValueError, "one row a context"),
        ([[0], [0]], [[1, 0], [1, 0]], ValueError, "distinct"),
        ([[0], [2]], [[1, 0], [1, 0]], ValueError, r"\[0, 1\]"),
        ([[0, 0]], [[0.5, 0.5]], ValueError, r"\(0, 0\) leads to \(0, 1\)"),
        ([[0.0]], [[1.0]], TypeError, "whole"),
        ([0], [[1.0]], ValueError, "shape"),
        ([[0]], [[0.9]], ValueError, "sum to 1"),
    ],
)
def test_wrong_chains_are_refused(contexts, rows, error, words):
    with pytest.raises(error, match=words):
        HigherOrderChain(contexts, rows)


def test_wrong_paths_and_starts_are_refused():
    chain = make_higher_order_chain(3, 2, 1)
    with pytest.raises(TypeError, match="wrap a single one"):
        chain.count([0, 1, 2])
    with pytest.raises(ValueError, match=r"\[0, 2\]"):
        chain.count([[0, 0, 3]])
    with pytest.raises(ValueError, match="is not a context"):
        chain.simulate(1, named_generator(0, "start"), (9, 9))


def test_too_many_contexts_are_refused(monkeypatch):
    monkeypatch.setattr(higher_order_families, "MAX_CONTEXTS", 15)
    assert grow_chain([[0, 0, 0]], lambda context: [0.5, 0.5]).n_contexts == 8
    with pytest.raises(ValueError, match="more than 15 contexts"):
        grow_chain([[0, 0, 0, 0]], lambda context: [0.5, 0.5])
