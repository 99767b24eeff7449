"""The oracle of supports against every sequence of samples, a grid of weights, and the other oracles."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.verify.exact import one_to_one_failure
from markov_theory.verify.exact_support import support_failure
from markov_theory.verify.mixtures import mixture_failure
from tests.strategies import distinct_rows

TRIANGLE = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


def by_every_sequence(rows: np.ndarray, alpha: np.ndarray, n_samples: int) -> float:
    """The failure for s = 2, by products of probabilities over a fine grid of weights of every pair."""
    T, q, truth = rows.shape[0], alpha @ rows, set(np.flatnonzero(alpha).tolist())
    weights = np.linspace(0, 1, 20_001)[:, None]
    failure = 0.0
    for sequence in itertools.product(range(rows.shape[1]), repeat=n_samples):
        best = {True: 0.0, False: 0.0}
        for pair in [(v, v) for v in range(T)] + list(itertools.combinations(range(T), 2)):
            laws = (1 - weights) * rows[pair[0]] + weights * rows[pair[1]]
            right = truth <= set(pair)
            best[right] = max(best[right], float(np.prod(laws[:, list(sequence)], axis=1).max()))
        failure += np.prod(q[list(sequence)]) * (best[False] >= best[True] * (1 - 1e-7))  # the grid's own error
    return failure


@pytest.mark.parametrize("alpha", [[0.5, 0.5, 0], [0.2, 0, 0.8], [1, 0, 0]])
@pytest.mark.parametrize("n_samples", [0, 1, 3, 5])
def test_against_every_sequence(alpha, n_samples):
    rows = np.array([[0.7, 0.2, 0.1], [0.15, 0.6, 0.25], [0.2, 0.1, 0.7]])
    found = support_failure(rows, alpha, 2, n_samples)
    assert found.low == found.high  # nothing is left out
    assert found.low == pytest.approx(by_every_sequence(rows, np.array(alpha), n_samples), abs=1e-12)


@given(distinct_rows(st.integers(2, 5), st.integers(2, 3), zeros=True), st.integers(0, 20))
def test_a_single_row_is_named_as_in_one_to_one_mapping(rows, n_samples):
    expected = one_to_one_failure(rows, n_samples)
    for v, alpha in enumerate(np.eye(rows.shape[0])):
        assert support_failure(rows, alpha, 1, n_samples).low == pytest.approx(expected[v], abs=1e-12)


@given(distinct_rows(st.integers(3, 4), st.just(3)), st.floats(0.05, 0.95), st.integers(1, 30))
def test_a_wrong_support_that_cannot_come_near_is_a_law_that_is_far(rows, weight, n_samples):
    alpha = np.append([weight, 1 - weight], np.zeros(rows.shape[0] - 2))
    # Every maximiser without row 0 or row 1 is at least this far, so that a wrong support is a large divergence.
    grid = np.linspace(0, 1, 2001)[:, None]
    pairs = itertools.combinations(range(rows.shape[0]), 2)
    wrong = [(1 - grid) * rows[v] + grid * rows[w] for v, w in pairs if (v, w) != (0, 1)]
    q = alpha @ rows
    nearest = min(float((q * np.log(q / laws)).sum(axis=1).min()) for laws in wrong)
    if nearest > 1e-4:
        epsilon = nearest * 0.99  # below the minimum, which the grid may miss a little
        assert (
            support_failure(rows, alpha, 2, n_samples).low <= mixture_failure(rows, alpha, 2, n_samples, epsilon).high
        )


def test_two_rows_are_both_named_unless_one_alone_is_best():
    found = support_failure([[0.8, 0.2], [0.2, 0.8]], [0.5, 0.5], 2, 3)
    assert float(found.low) == pytest.approx(2 * 0.5**3)  # counts (3, 0), (0, 3) lie outside; (2, 1), (1, 2) inside


def test_an_end_of_a_pair_ties_with_the_row():
    # Both outcomes seen as often as row 0 gives them: the pair's maximum is row 0, which lacks row 1.
    assert support_failure([[0.5, 0.5], [0.2, 0.8]], [0.5, 0.5], 2, 2).low >= 2 * 0.35 * 0.65


def test_a_duplicate_of_a_row_always_ties():
    rows = np.vstack([TRIANGLE, TRIANGLE[0]])
    assert support_failure(rows, [0.5, 0.5, 0, 0], 2, 30).low == pytest.approx(1)


def test_failure_dies_out():
    values = [float(support_failure(TRIANGLE, [0.5, 0.5, 0], 2, n).high) for n in (10, 40, 160)]
    assert values[0] > values[1] > values[2]
    assert values[2] < 1e-3


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match=r"alpha must have shape \(3,\)"):
        support_failure(TRIANGLE, [0.5, 0.5], 2, 3)
    with pytest.raises(ValueError, match="at most 1 rows, got 2"):
        support_failure(TRIANGLE, [0.5, 0.5, 0], 1, 3)
    with pytest.raises(ValueError, match=r"sparsity must be in \[1, 2\], got 3"):
        support_failure(TRIANGLE, [0.5, 0.5, 0], 3, 3)
    with pytest.raises(ValueError, match="too many"):
        support_failure(TRIANGLE, [0.5, 0.5, 0], 2, 3000, most=1000)
