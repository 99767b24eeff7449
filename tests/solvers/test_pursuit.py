"""KL pursuit against exact subsets."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.best_subset import best_subset
from markov_theory.solvers.pursuit import kl_pursuit
from markov_theory.solvers.simplex_mle import simplex_mle
from tests.certificates import assert_weights, mean_log_likelihood
from tests.strategies import dictionaries


@given(dictionaries(), st.integers(1, 4), st.data())
def test_kl_pursuit_never_beats_the_exact_answer_and_its_gap_covers_the_difference(rows, s, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 30), min_size=rows.shape[1], max_size=rows.shape[1])))
    counts[rows.max(axis=0) == 0] = 0
    if counts.sum() == 0:
        counts[rows.max(axis=0).argmax()] = 1
    found, exact = kl_pursuit(rows, counts, s), best_subset(rows, counts, s)
    assert_weights(found.alpha)
    assert (found.support_sizes <= s).all()
    best, reached = (
        mean_log_likelihood(rows, counts, exact.alpha),
        mean_log_likelihood(rows, counts, found.alpha),
    )
    assert (reached <= best + exact.gap + 1e-10).all()
    if np.isfinite(reached).all():
        assert (best - reached <= found.gap + 1e-9).all()


@pytest.mark.parametrize("s", [1, 2, 3])
def test_kl_pursuit_finds_the_exact_answer_on_well_conditioned_rows(s):
    """Deterministic: 60 stated problems, all of which must agree with enumeration to the tolerances."""
    dictionary = make_dictionary(16, 24, density_ratio=20.0)
    for truth in range(3):
        planted = plant(dictionary, s, truth=truth)
        counts = sample_counts(planted.target, 2000, 20, named_generator(0, "pursuit", s, truth))
        exact = mean_log_likelihood(
            dictionary.transitions, counts, best_subset(dictionary.transitions, counts, s).alpha
        )
        found = mean_log_likelihood(dictionary.transitions, counts, kl_pursuit(dictionary.transitions, counts, s).alpha)
        assert (exact - found <= 2e-9).mean() >= 0.95


def test_kl_pursuit_with_all_rows_is_constrained_kl():
    dictionary = make_dictionary(12, 20, density_ratio=20.0)
    counts = sample_counts(plant(dictionary, 4).target, 500, 10, named_generator(0, "all rows"))
    full, pursued = (
        simplex_mle(dictionary.transitions, counts),
        kl_pursuit(dictionary.transitions, counts, 12),
    )
    np.testing.assert_allclose(
        mean_log_likelihood(dictionary.transitions, counts, full.alpha),
        mean_log_likelihood(dictionary.transitions, counts, pursued.alpha),
        atol=2e-9,
    )


def test_kl_pursuit_with_one_row_is_the_likeliest_row():
    dictionary = make_dictionary(30, 8, density_ratio=5.0)
    counts = sample_counts(plant(dictionary, 1).target, 20, 50, named_generator(0, "one row"))
    likeliest = (counts @ np.log(dictionary.transitions).T).argmax(axis=1)
    assert (kl_pursuit(dictionary.transitions, counts, 1).alpha.argmax(axis=1) == likeliest).all()


@pytest.mark.parametrize("s", [0, -1])
def test_sparsity_must_be_positive(s):
    with pytest.raises(ValueError, match="sparsity must be >= 1"):
        kl_pursuit([[1.0]], [1], s)


def test_sparsity_must_be_whole():
    with pytest.raises(TypeError, match="sparsity must be a whole number, got 1.5"):
        kl_pursuit([[1.0]], [1], 1.5)
