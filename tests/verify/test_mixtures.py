"""Unions of supports: against the certified solvers table by table, on ties, and where maximisers are not unique."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import rel_entr

from markov_theory.solvers.simplex_mle import simplex_mle
from markov_theory.verify._union import fit_hulls
from markov_theory.verify.exact import segment_failure
from markov_theory.verify.hulls import best_weights, hull_fit, mean_log, value_range
from markov_theory.verify.mixtures import mixture_failure, supports
from markov_theory.verify.tables import compositions, multinomial_log_pmf
from tests.strategies import distinct_rows, laws


def worst_divergence(rows, law, seen, truth):
    """Greatest KL(q‖·) over mixtures of rows that give the outcomes seen what `law` gives them, by vertices."""
    if seen.size >= rows.shape[1] - 1 or len(rows) == 1:
        return rel_entr(truth, law).sum()  # the law is unique
    k = len(rows)
    equations = np.vstack([rows[:, seen].T, np.ones(k)])
    goal = np.append(law[seen], 1.0)
    worst = 0.0
    rng = np.random.default_rng(0)
    for direction in [*np.eye(k), *-np.eye(k), *rng.standard_normal((12, k))]:
        found = linprog(direction, A_eq=equations, b_eq=goal, method="highs")
        if found.status == 0:
            worst = max(worst, rel_entr(truth, found.x @ rows).sum())
    return worst


def by_every_support(rows, alpha, sparsity, n_samples, epsilon):
    """Failure probability by a certified fit of every support at every table; ε-close calls counted both ways."""
    truth = alpha @ rows
    counts = compositions(n_samples, rows.shape[1])
    chance = np.exp(multinomial_log_pmf(counts, truth[None, :]))[:, 0]
    certain = possible = 0.0
    for n, p in zip(counts, chance, strict=True):
        if p == 0:
            continue
        seen = np.flatnonzero(n)
        fits = []
        for S in itertools.combinations(range(len(rows)), min(sparsity, len(rows))):
            block = rows[list(S)]
            if seen.size and (block[:, seen].max(axis=0) == 0).any():
                continue
            law = simplex_mle(block, n, 1e-13).alpha[0] @ block
            value = (n[seen] * np.log(law[seen])).sum()
            fits.append((value, worst_divergence(block, law, seen, truth)))
        best = max(value for value, _ in fits)
        at_top = [d for value, d in fits if value >= best - 1e-9]
        certain += p * (max(at_top) > epsilon * (1 + 1e-4) + 1e-6)
        possible += p * (max(at_top) > epsilon * (1 - 1e-4) - 1e-6)
    return certain, possible


@settings(max_examples=10)
@given(distinct_rows(st.integers(2, 4), st.just(3), zeros=True), st.integers(1, 3), st.integers(0, 7), st.data())
def test_three_outcomes_by_every_support(rows, sparsity, n_samples, data):
    s = min(sparsity, len(rows))
    alpha = np.zeros(len(rows))
    alpha[:s] = data.draw(laws(s))
    epsilon = data.draw(st.sampled_from([0.02, 0.1, 0.4]))
    certain, possible = by_every_support(rows, alpha, s, n_samples, epsilon)
    found = mixture_failure(rows, alpha, s, n_samples, epsilon)
    assert certain - 1e-9 <= found.high
    assert found.low <= possible + 1e-9
    assert found.low <= found.high


@settings(max_examples=4)
@given(distinct_rows(st.integers(3, 4), st.just(4), zeros=True), st.integers(2, 4), st.integers(0, 4), st.data())
def test_four_outcomes_by_every_support(rows, sparsity, n_samples, data):
    s = min(sparsity, len(rows))
    alpha = np.zeros(len(rows))
    alpha[:s] = data.draw(laws(s))
    certain, possible = by_every_support(rows, alpha, s, n_samples, 0.1)
    found = mixture_failure(rows, alpha, s, n_samples, 0.1)
    assert certain - 1e-9 <= found.high
    assert found.low <= possible + 1e-9


def test_a_segment_beside_a_copy_of_itself():
    """The hull of a segment and of its middle is the segment: unions, hulls and segments agree."""
    rows = np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    with_middle = np.vstack([rows, rows.mean(axis=0)])
    plain = segment_failure(rows, 0.5, 200, 0.01)
    alpha = np.array([0.5, 0.5, 0.0])
    assert mixture_failure(with_middle, alpha, 2, 200, 0.01).low == pytest.approx(plain, abs=1e-9)
    assert mixture_failure(with_middle, alpha, 3, 200, 0.01).low == pytest.approx(plain, abs=1e-9)


def test_supports_that_tie_count_as_failures():
    """Two segments that mirror each other at the truth: tables on the axis tie, and one answer of the two is far."""
    rows = np.array([[0.5, 0.4, 0.1], [0.5, 0.1, 0.4], [0.7, 0.15, 0.15]])
    alpha = np.array([1.0, 0.0, 0.0])
    found = mixture_failure(rows, alpha, 1, 2, 0.05).low
    chance = {(2, 0, 0): 0.25, (1, 1, 0): 0.4, (1, 0, 1): 0.1, (0, 2, 0): 0.16, (0, 1, 1): 0.08, (0, 0, 2): 0.01}
    right = {(1, 1, 0), (0, 2, 0)}  # (0, 1, 1) is as likely under rows 0 and 1
    assert found == pytest.approx(1 - sum(p for table, p in chance.items() if table in right))


def test_flat_likelihoods_count_the_worst_mixture():
    rows = np.array([[0.5, 0.3, 0.2], [0.5, 0.2, 0.3], [0.5, 0.25, 0.25]])
    alpha = np.array([0.0, 0.0, 1.0])
    assert mixture_failure(rows, alpha, 3, 0, 1e-3).low == 1.0
    assert mixture_failure(rows, alpha, 3, 2, 0.004).low >= 0.25  # only the first outcome seen: any mixture


def test_by_hellinger_distance_at_an_infinite_ratio():
    rows, alpha = np.array([[0.9, 0.1, 0.0], [0.8, 0.0, 0.2]]), np.array([0.9, 0.1])
    by_kl = mixture_failure(rows, alpha, 2, 20, 0.1).low
    assert mixture_failure(rows, alpha, 2, 20, 0.1, "hellinger").low <= by_kl


def test_the_hull_of_many_rows_is_one_piece():
    assert supports(5, 3, 3) == [(0, 1, 2, 3, 4)]
    assert supports(5, 3, 4) == [(0, 1, 2, 3, 4)]
    assert len(supports(5, 4, 3)) == 10


def test_a_truth_outside_the_class_is_refused():
    with pytest.raises(ValueError, match="one row"):
        mixture_failure([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]], [0.5, 0.5], 1, 5, 0.1)


@given(distinct_rows(st.integers(2, 4), st.integers(3, 4)), st.integers(1, 40), st.integers(0, 10**6))
def test_certified_ranges_hold_the_greatest_likelihood(rows, n_samples, seed):
    counts = np.random.default_rng(seed).multinomial(n_samples, rows.mean(axis=0), size=6)
    counts = counts[(counts > 0).sum(axis=1) >= rows.shape[1] - 1]
    if counts.size == 0:
        return
    frequencies = counts / n_samples
    low, high = value_range(frequencies, rows)
    value = mean_log(frequencies, simplex_mle(rows, counts, 1e-12).alpha @ rows)
    assert (low <= value + 1e-9).all()
    assert (value <= high + 1e-9).all()
    laws_found, _ = hull_fit(frequencies, rows)
    assert mean_log(frequencies, laws_found) == pytest.approx(value, abs=1e-10)


@given(distinct_rows(st.just(2), st.integers(2, 4), zeros=True), st.integers(1, 60), st.integers(0, 10**6))
def test_weights_of_segments_solve_the_first_order_condition(pair, n_samples, seed):
    counts = np.random.default_rng(seed).multinomial(n_samples, pair.mean(axis=0), size=8)
    weight = best_weights(counts / n_samples, pair)
    assert ((weight >= 0) & (weight <= 1)).all()
    for n, w in zip(counts, weight, strict=True):
        live = (n > 0) & (pair[0] != pair[1])
        slope = (n[live] * (pair[1] - pair[0])[live] / ((1 - w) * pair[0] + w * pair[1])[live]).sum() / n_samples
        if 0 < w < 1:
            assert abs(slope) <= 1e-7 * (1 + 1 / min(w, 1 - w))
        else:
            assert slope <= 1e-9 if w == 0 else slope >= -1e-9


@given(st.sampled_from([(3, 4, 2), (4, 4, 3), (5, 4, 3)]), st.integers(1, 12), st.data())
@settings(max_examples=10)
def test_unions_do_not_depend_on_the_compiler(sizes, n_samples, data):
    T, J, s = sizes
    rows = data.draw(distinct_rows(st.just(T), st.just(J), zeros=True))
    alpha = np.append(data.draw(laws(s)), np.zeros(T - s))
    fast = mixture_failure(rows, alpha, s, n_samples, 0.05)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("markov_theory.verify.mixtures.COMPILED", False)
        plain = mixture_failure(rows, alpha, s, n_samples, 0.05)
    assert fast.low <= plain.high + 1e-12
    assert plain.low <= fast.high + 1e-12


@given(distinct_rows(st.just(5), st.integers(4, 5)), st.integers(2, 5), st.integers(1, 60), st.integers(0, 10**6))
def test_hulls_fitted_together_hold_the_most_likely_law(rows, size, n_samples, seed):
    counts = np.random.default_rng(seed).multinomial(n_samples, rows.mean(axis=0), size=6)
    counts = counts[(counts > 0).sum(axis=1) >= rows.shape[1] - 1]
    if counts.size == 0:
        return
    hulls = np.array([rows[list(S)] for S in itertools.combinations(range(5), size)])
    found, value, gaps = fit_hulls(counts / n_samples, hulls, 1e-12, 1e-11)
    certified = np.array([mean_log(counts / n_samples, simplex_mle(h, counts, 1e-13).alpha @ h) for h in hulls])
    assert value.max(axis=0) == pytest.approx(certified.max(axis=0), abs=1e-10)
    assert (value <= certified + 1e-10).all()
    assert (certified <= value + gaps + 1e-10).all()
    assert found == pytest.approx(np.clip(found, hulls.min(axis=1)[:, None], hulls.max(axis=1)[:, None]), abs=1e-12)
