"""S4: what is certified is necessary, and what is not certified is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory import divergences as dv
from markov_theory.bounds import S4, greedy_packing
from markov_theory.bounds.known_support import require_mixture
from markov_theory.bounds.one_to_one import fano
from markov_theory.bounds.packing import halfway_divergence
from markov_theory.verify.exact import first_and_last, interval_failure
from tests.strategies import accuracies, distinct_rows

OPPOSED = np.array([[0.2, 0.8], [0.8, 0.2]])


def in_class(law: np.ndarray, rows: np.ndarray, sparsity: int) -> bool:
    for support in itertools.combinations(range(rows.shape[0]), min(sparsity, rows.shape[0])):
        try:
            require_mixture(rows[list(support)], law)
        except ValueError:
            continue
        return True
    return False


@given(distinct_rows(st.integers(1, 5), st.integers(2, 4)), st.integers(1, 4), accuracies())
def test_packings_lie_in_the_class_and_are_certified(rows, sparsity, epsilon):
    packed = greedy_packing(rows, sparsity, epsilon, n_candidates=12)
    assert all(in_class(law, rows, sparsity) for law in packed)
    assert S4.n_samples(packed, epsilon, 0.05) >= 0  # certified: it raises otherwise
    again = greedy_packing(rows, sparsity, epsilon, n_candidates=12)
    assert (packed == again).all()


@pytest.mark.parametrize("epsilon", [1e-2, 3e-3])
def test_lower_bound_is_below_the_exact_number(epsilon):
    packed = greedy_packing(OPPOSED, 2, epsilon)
    lower = S4.n_samples(packed, epsilon, 0.05)
    worst = [
        max(interval_failure(0.2, 0.8, min(max(law[0], 0.2), 0.8), n, epsilon) for law in packed)
        for n in range(int(lower) + 1)
    ]
    assert lower > 0.1 / epsilon
    assert first_and_last(worst, 0.05)[0] >= lower


def test_hellinger_distance_does_not_certify():
    rows = np.full((4, 4), 0.2) + 0.2 * np.eye(4)
    epsilon = 0.0542
    distances = [float(dv.squared_hellinger(*rows[list(pair)])) for pair in itertools.combinations(range(4), 2)]
    assert min(distances) == pytest.approx(0.0686, abs=5e-5)
    assert min(distances) > epsilon
    assert fano(rows, 0.05) > 4.5  # what Fano would claim, though the uniform law serves all four without a sample:
    assert float(dv.kl_divergence(rows, np.full(4, 0.25)).max()) <= epsilon
    with pytest.raises(ValueError, match="JS_1/2"):
        S4.n_samples(rows, epsilon, 0.05)


def test_halfway_divergence_is_the_jensen_shannon_divergence_of_two():
    rng = np.random.default_rng(0)
    pair = rng.dirichlet(np.ones(5), size=2)
    pair[0, 0], pair[0, 1] = 0.0, pair[0, :2].sum()
    assert halfway_divergence(pair[0], pair[1:])[0] == pytest.approx(dv.jensen_shannon(pair), rel=1e-12)
    assert halfway_divergence(np.array([1.0, 0]), np.array([[0, 1.0]]))[0] == pytest.approx(np.log(2))


def test_one_law_needs_nothing():
    assert S4.n_samples([[0.5, 0.5]], 0.1, 0.05) == 0
    assert greedy_packing(OPPOSED, 2, 10.0).shape == (1, 2)
