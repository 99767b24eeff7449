"""Counts: totals, types, sizes, law."""

import numpy as np
import pytest
from scipy.stats import chi2

from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts


def test_counts_are_whole_and_sum_to_n_even_when_huge():
    counts = sample_counts([0.5, 0.5], 10**10, 3, named_generator(0, "huge"))
    assert counts.dtype == np.int64
    assert (counts.sum(axis=1) == 10**10).all()


def test_no_samples_and_no_trials():
    assert sample_counts([0.5, 0.5], 0, 2, named_generator(0, "none")).tolist() == [[0, 0], [0, 0]]
    assert sample_counts([0.5, 0.5], 5, 0, named_generator(0, "none")).shape == (0, 2)


def test_outcomes_of_probability_zero_never_happen():
    assert sample_counts([0.5, 0.0, 0.5], 10_000, 5, named_generator(0, "zero"))[:, 1].sum() == 0


@pytest.mark.statistical
def test_counts_follow_the_law():
    """Pearson's statistic at level 1e-6: a correct sampler fails with about that probability over seeds."""
    law = np.array([0.5, 0.3, 0.15, 0.05])
    counts = sample_counts(law, 100_000, 1, named_generator(0, "pearson"))[0]
    assert ((counts - 1e5 * law) ** 2 / (1e5 * law)).sum() < chi2.isf(1e-6, 3)


@pytest.mark.parametrize("n", [-1, 2**53 + 1])
def test_sample_sizes_out_of_range_are_refused(n):
    with pytest.raises(ValueError, match="n_samples must be in"):
        sample_counts([1.0], n, 1, named_generator(0, "range"))


def test_several_laws_at_once_are_refused():
    with pytest.raises(ValueError, match="target must be one law"):
        sample_counts([[0.5, 0.5]], 1, 1, named_generator(0, "many"))
