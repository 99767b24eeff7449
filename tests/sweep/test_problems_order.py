"""Sweeps over chains of higher order: the lifted map that is learned, and K1, checked exactly at every truth."""

import numpy as np
import pytest

from markov_theory.bounds import K1, S1, S2
from markov_theory.higher_order import HOLE, path_contexts
from markov_theory.higher_order_families import plant_entry
from markov_theory.sweep.setup import set_up


def test_the_rows_of_a_higher_order_problem_are_the_stacked_laws_of_one_path():
    planned = set_up({"order": 3, "branching": 2, "tokens": 5, "s": 2})
    rows = planned.problem.rows(planned.specification.points[0]).transitions
    assert rows.shape == (5, 6)
    entry = plant_entry(3, 2, 5)
    holes = path_contexts(entry.context, entry.path)
    for v, row in zip(entry.tokens, rows, strict=True):
        for age in range(3):
            context = np.where(holes[age] == HOLE, v, holes[age])
            law = entry.chain.transitions[entry.chain.places([context])[0]]
            np.testing.assert_allclose(row[2 * age : 2 * age + 2], law[:2] / 3, rtol=1e-12)


def test_the_lifted_map_of_a_truth_is_what_is_learned():
    planned = set_up({"order": 2, "branching": 3, "tokens": 6, "s": 2})
    truth = planned.problem.truth(planned.specification.points[0], 0)
    entry = plant_entry(2, 3, 6)
    alpha = np.zeros(entry.chain.n_tokens)
    alpha[entry.tokens] = truth.instances[0].alpha
    lifted = entry.chain.lifted_rows(path_contexts(entry.context, entry.path), alpha)[:, :3]
    np.testing.assert_allclose(truth.instances[0].target.reshape(2, 3), lifted / 2, rtol=1e-12)


def higher_order(**options):
    planned = set_up({"order": 2, "branching": 3, "tokens": 8, "s": 4, "truths": 2, "epsilon": 1e-2, **options})
    point = planned.specification.points[0]
    return planned, point, planned.problem.truth(point, 0)


def test_k1_is_checked_exactly_at_every_truth():
    planned, point, truth = higher_order()
    assert K1.sparsity(2, 3) == 5 < 8
    facts = planned.bounds.facts(point, 0)
    assert (facts["K1"], facts["K1_needed"], facts["K1_verdict"]) == (5, 5, "holds")
    assert truth.verdicts() == {"K1": "holds"}
    chain, holes = truth.path.chain, truth.path.contexts
    mean = np.zeros(chain.n_tokens)
    mean[truth.path.tokens] = 1 / 8
    reduced = chain.sparsify(holes, mean)
    assert reduced.support.size == 5
    np.testing.assert_allclose(
        chain.lifted_rows(holes, reduced.weights), chain.lifted_rows(holes, mean), rtol=1e-12, atol=1e-15
    )
    described = dict(planned.problem.rows(point).describe())
    assert described["K1: tokens that suffice, K(b-1)+1"] == "5" == described["tokens that the mean of all rows needs"]


@pytest.mark.parametrize(("order", "branching"), [(1, 2), (1, 4), (2, 2), (2, 3), (3, 2)])
def test_one_token_fewer_is_violated(order, branching):
    """Rows in general position: no set of K(b−1) of the 8 tokens has the mean's rows, and K(b−1)+1 of them have."""
    _, _, truth = higher_order(order=order, branching=branching, s=1)
    mean, enough = np.full(8, 1 / 8), K1.sparsity(order, branching)
    assert truth.path.representation(mean, enough) == (enough, "holds")
    assert truth.path.representation(mean, enough - 1) == (enough, "violated")


def test_a_false_k1_is_violated_and_one_out_of_reach_is_not_decided(monkeypatch):
    monkeypatch.setattr(K1, "sparsity", staticmethod(lambda order, branching, whole_entry=False: branching))
    _, _, truth = higher_order()
    assert truth.verdicts() == {"K1": "violated"}
    assert truth.facts(1e-2)["K1_verdict"] == "violated"
    monkeypatch.setattr("markov_theory.bounds.higher_order.MAX_SETS", 10)
    _, _, truth = higher_order()
    assert truth.verdicts() == {"K1": "inconclusive"}


def test_what_all_rows_mix_few_can_so_the_net_bounds_need_no_more():
    _, _, truth = higher_order()
    T, c = 8, truth.dictionary.density_ratio
    for bound in (S1, S2):
        assert truth.bound(bound, "simplex", 1e-2, 0.05) == bound.n_samples(T, 5, c, 1e-2, 0.05)
        assert truth.bound(bound, "simplex", 1e-2, 0.05) < bound.n_samples(T, T, c, 1e-2, 0.05)
        assert truth.bound(bound, "l0", 1e-2, 0.05) == bound.n_samples(T, 4, c, 1e-2, 0.05)
    _, _, wide = higher_order(branching=8)
    assert wide.bound(S2, "simplex", 1e-2, 0.05) == S2.n_samples(T, T, wide.dictionary.density_ratio, 1e-2, 0.05)
