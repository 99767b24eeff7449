"""Exact subsets: as enumeration finds, with certificates; ties listed; limits leave a proven gap."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.randomness import named_generator
from markov_theory.solvers.best_subset import best_subset
from markov_theory.solvers.pursuit import kl_pursuit
from markov_theory.solvers.simplex_mle import simplex_mle
from tests.certificates import assert_weights, jensen_gap, mean_log_likelihood
from tests.strategies import counted_dictionaries


def enumerated(rows, counts, s, slack=0.5e-9):
    """The largest mean log-likelihood over supports of at most s rows, and the minimal supports within `slack`."""
    rows, counts = np.asarray(rows, dtype=float), np.asarray(counts)
    values = {}
    for size in range(1, min(s, len(rows)) + 1):
        for support in combinations(range(len(rows)), size):
            part = rows[list(support)]
            if (part.max(axis=0)[counts > 0] > 0).all():
                alpha = simplex_mle(part, counts, 1e-11).alpha
                values[support] = mean_log_likelihood(part, counts, alpha)[0]
    best = max(values.values(), default=-np.inf)
    attaining = [set(support) for support, value in values.items() if value >= best - slack]
    minimal = sorted(tuple(sorted(a)) for a in attaining if not any(b < a for b in attaining))
    return best, tuple(minimal)


def planted(name, n_rows, n_outcomes, s, n_samples):
    generator = named_generator(0, "best subset", name)
    rows = generator.dirichlet(np.full(n_outcomes, 0.3), size=n_rows)
    law = generator.dirichlet(np.full(s, 5.0)) @ rows[generator.choice(n_rows, s, replace=False)]
    return rows, generator.multinomial(n_samples, law)


@given(counted_dictionaries())
def test_it_is_the_best_of_all_supports(problem):
    rows, counts, s = problem
    fit = best_subset(rows, counts, s)
    best, _ = enumerated(rows, counts, s)
    assert_weights(fit.alpha)
    assert fit.support_sizes[0] <= s
    if best == -np.inf:
        assert fit.supports[0][0] == (0,)
        return
    value = mean_log_likelihood(rows, counts, fit.alpha)[0]
    assert fit.status[0] == "optimal"
    assert best - value <= fit.gap[0] + 1e-10
    assert fit.gap[0] <= 1e-9


@given(counted_dictionaries())
def test_every_listed_support_attains_the_maximum(problem):
    rows, counts, s = problem
    fit = best_subset(rows, counts, s, max_ties=5)
    best, _ = enumerated(rows, counts, s)
    assert tuple(np.flatnonzero(fit.alpha[0])) == fit.supports[0][0]
    assert 1 <= len(fit.supports[0]) <= 5
    for support in fit.supports[0]:
        part = rows[list(support)]
        if best > -np.inf:
            assert best - mean_log_likelihood(part, counts, simplex_mle(part, counts).alpha)[0] <= 2e-9


@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_all_ties_are_listed(n_rows, s, seed):
    generator = np.random.default_rng(seed)
    odds = generator.integers(1, 4, size=(n_rows, 2))
    rows = odds / odds.sum(axis=1, keepdims=True)
    counts = generator.integers(1, 9, size=2)
    fit = best_subset(rows, counts, s)
    assert fit.complete[0]
    assert fit.supports[0] == enumerated(rows, counts, s)[1]


@given(counted_dictionaries(), st.integers(1, 12))
def test_the_gap_at_a_node_limit_covers_the_optimum(problem, max_nodes):
    rows, counts, s = problem
    fit = best_subset(rows, counts, s, max_nodes=max_nodes)
    best, _ = enumerated(rows, counts, s)
    if best > -np.inf:
        assert best - mean_log_likelihood(rows, counts, fit.alpha)[0] <= fit.gap[0] + 1e-10
    assert (fit.status[0] == "optimal") == (fit.gap[0] <= 1e-9)


def test_a_node_limit_gives_the_best_found_with_its_gap():
    rows, counts = planted("limit", 24, 12, 12, 60)
    exact, limited = best_subset(rows, counts, 3), best_subset(rows, counts, 3, max_nodes=2)
    assert exact.status[0] == "optimal"
    assert comb(24, 3) > exact.nodes[0] > 2
    assert limited.status[0] == "feasible"
    assert 1e-9 < limited.gap[0] < 1
    assert not limited.complete[0]
    missing = mean_log_likelihood(rows, counts, np.vstack([exact.alpha, limited.alpha]))
    assert missing[0] - missing[1] <= limited.gap[0] + 1e-10


def test_a_time_limit_gives_the_best_found_with_its_gap():
    rows, counts = planted("limit", 24, 12, 12, 60)
    fit = best_subset(rows, counts, 3, time_limit=1e-9)
    assert fit.status[0] == "feasible"
    assert fit.gap[0] > 1e-9
    pursued = kl_pursuit(rows, counts, 3)
    assert mean_log_likelihood(rows, counts, fit.alpha) >= mean_log_likelihood(rows, counts, pursued.alpha) - 1e-9


@pytest.mark.parametrize(("n_rows", "s", "n_samples"), [(12, 3, 50), (14, 3, 20), (10, 5, 100), (9, 4, 4)])
def test_noise_does_not_mislead_it(n_rows, s, n_samples):
    rows, counts = planted(f"{n_rows} {s} {n_samples}", n_rows, 15, 3, n_samples)
    fit = best_subset(rows, counts, s)
    best, ties = enumerated(rows, counts, s)
    assert abs(best - mean_log_likelihood(rows, counts, fit.alpha)[0]) <= 1e-9
    assert fit.supports[0] == ties


def scip_maximum(pyscipopt, rows, counts, s):
    """The largest mean log-likelihood according to SCIP, a mixed-integer nonlinear programme (to about 1e-6)."""
    model = pyscipopt.Model()
    model.hideOutput()
    alpha = [model.addVar(lb=0, ub=1) for _ in rows]
    used = [model.addVar(vtype="B") for _ in rows]
    for a, z in zip(alpha, used, strict=True):
        model.addCons(a <= z)
    model.addCons(pyscipopt.quicksum(alpha) == 1)
    model.addCons(pyscipopt.quicksum(used) <= s)
    terms = []
    for j in np.flatnonzero(counts):
        q, t = model.addVar(lb=1e-9, ub=1), model.addVar(lb=np.log(1e-9), ub=0)
        model.addCons(pyscipopt.quicksum(float(rows[v, j]) * alpha[v] for v in range(len(rows))) == q)
        model.addCons(pyscipopt.log(q) >= t)
        terms.append(float(counts[j] / counts.sum()) * t)
    model.setObjective(pyscipopt.quicksum(terms), "maximize")
    model.optimize()
    assert model.getStatus() == "optimal"
    return model.getObjVal()


@pytest.mark.parametrize(("n_rows", "s", "n_samples"), [(24, 4, 300), (32, 4, 200), (40, 5, 1000)])
def test_scip_finds_the_same_maximum(n_rows, s, n_samples):
    pyscipopt = pytest.importorskip("pyscipopt")
    rows, counts = planted(f"scip {n_rows} {s} {n_samples}", n_rows, 16, s, n_samples)
    fit = best_subset(rows, counts, s)
    assert fit.status[0] == "optimal"
    assert abs(scip_maximum(pyscipopt, rows, counts, s) - mean_log_likelihood(rows, counts, fit.alpha)[0]) <= 2e-5


def test_a_sparse_truth_in_many_rows_is_certified_in_few_nodes():
    rows, counts = planted("many rows", 1024, 128, 4, 100_000)
    fit = best_subset(rows, counts, 4)
    assert fit.status[0] == "optimal"
    assert fit.nodes[0] <= 30


def test_problems_of_a_batch_do_not_influence_each_other():
    rows, counts = planted("batch", 10, 6, 2, 40)
    batch = np.vstack([counts, np.zeros_like(counts), counts[::-1]])
    together = best_subset(rows, batch, 2)
    for i, alone in enumerate(batch):
        fit = best_subset(rows, alone, 2)
        np.testing.assert_array_equal(fit.alpha[0], together.alpha[i])
        assert (fit.supports[0], fit.gap[0], fit.status[0]) == (
            together.supports[i],
            together.gap[i],
            together.status[i],
        )


def test_all_rows_is_constrained_kl():
    rows, counts = planted("all rows", 4, 5, 1, 50)
    for s in (4, 9):  # above T means T
        fit = best_subset(rows, counts, s)
        np.testing.assert_allclose(fit.alpha @ rows, simplex_mle(rows, counts).alpha @ rows, atol=1e-4)
        assert jensen_gap(rows, counts, fit.alpha)[0] <= 1e-9


def test_duplicate_rows_are_listed_as_ties():
    fit = best_subset([[0.9, 0.1], [0.9, 0.1], [0.2, 0.8]], [55, 45], 2)
    assert fit.supports == (((0, 2), (1, 2)),)
    assert fit.complete[0]


def test_duplicate_atoms_of_an_exact_fit_are_both_listed():
    fit = best_subset([[1, 0], [1, 0], [0, 1]], [1, 1], 2)
    assert fit.supports == (((0, 2), (1, 2)),)
    np.testing.assert_allclose(fit.alpha[0], [0.5, 0, 0.5], atol=1e-6)


def test_rows_that_differ_on_unobserved_outcomes_only_are_ties():
    fit = best_subset([[0.5, 0.1, 0.4, 0], [0.5, 0.1, 0, 0.4], [0.1, 0.5, 0.4, 0]], [5, 4, 0, 0], 2)
    assert fit.supports == (((0, 2), (1, 2)),)


def test_many_ties_are_cut_at_the_stated_limit():
    fit = best_subset(np.tile([[0.9, 0.1], [0.2, 0.8]], (40, 1)), [55, 45], 2, max_ties=7)
    assert len(fit.supports[0]) == 7
    assert not fit.complete[0]
    assert fit.status[0] == "optimal"
    assert fit.supports[0][0] == (0, 1)
    rows = named_generator(2, "best subset").dirichlet([1, 1], size=60)  # hundreds of pairs around the data
    fit = best_subset(rows, [55, 45], 4)
    assert len(fit.supports[0]) <= 100
    assert not fit.complete[0]
    assert fit.status[0] == "optimal"
    assert fit.nodes[0] < 1000


def test_without_data_every_row_ties():
    fit = best_subset([[0.9, 0.1], [0.2, 0.8]], [0, 0], 2)
    assert fit.supports == (((0,), (1,)),)
    assert fit.status[0] == "no data"


def test_when_no_support_is_possible_all_tie():
    fit = best_subset(np.eye(3), [1, 1, 1], 2)
    assert_weights(fit.alpha)
    assert fit.supports == (((0,), (1,), (2,)),)


def test_permuted_rows_permute_the_answer():
    rows, counts = planted("permuted", 20, 15, 4, 200)
    fit = best_subset(rows, counts, 3)
    order = named_generator(3, "best subset").permutation(20)
    permuted = best_subset(rows[order], counts, 3)
    values = [mean_log_likelihood(rows, counts, fit.alpha), mean_log_likelihood(rows[order], counts, permuted.alpha)]
    assert abs(values[0] - values[1]) <= 1e-10
    np.testing.assert_allclose(fit.alpha[0][order], permuted.alpha[0], atol=1e-5)
    assert [sorted(order[list(t)].tolist()) for t in permuted.supports[0]] == [list(t) for t in fit.supports[0]]


def test_ties_go_to_the_lowest_rows():
    rows = np.array([[0.2, 0.8], [0.9, 0.1], [0.9, 0.1], [0.2, 0.8]])
    for order in ([0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 1, 0]):
        assert np.flatnonzero(best_subset(rows[order], [55, 45], 3).alpha[0]).tolist() == [0, 1]
    assert np.flatnonzero(best_subset(rows[[1, 2, 0]], [9, 1], 1).alpha[0]).tolist() == [0]


def test_the_reported_size_is_that_after_clean_up():
    fit = best_subset([[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]], [9, 1], 3)  # row 0 alone is best
    assert fit.support_sizes.tolist() == [1]
    assert fit.supports == (((0,),),)


def test_more_rows_are_never_worse():
    rows, counts = planted("more rows", 12, 10, 5, 80)
    values = [mean_log_likelihood(rows, counts, best_subset(rows, counts, s).alpha)[0] for s in range(1, 13)]
    assert (np.diff(values) >= -1e-9).all()


def test_wrong_limits_are_refused():
    with pytest.raises(ValueError, match="max_nodes must be >= 1, got 0"):
        best_subset([[1.0]], [1], 1, max_nodes=0)
    with pytest.raises(ValueError, match="time_limit must be a finite number > 0, got 0"):
        best_subset([[1.0]], [1], 1, time_limit=0)
    with pytest.raises(ValueError, match="max_ties must be >= 1, got 0"):
        best_subset([[1.0]], [1], 1, max_ties=0)
