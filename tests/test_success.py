"""Clopper-Pearson bounds cover, exactly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from markov_theory.success import failure_bounds, failures


@given(st.floats(0.001, 0.999), st.integers(1, 60), st.sampled_from([0.2, 0.05, 1e-3]))
def test_each_side_errs_with_at_most_its_level(p, n, level):
    bounds = np.array([failure_bounds(k, n, level) for k in range(n + 1)])
    mass = binom.pmf(np.arange(n + 1), n, p)
    assert mass[bounds[:, 0] > p].sum() <= level + 1e-12
    assert mass[bounds[:, 1] < p].sum() <= level + 1e-12


def test_failures_are_strict_and_count_what_is_not_a_number():
    assert failures([0.1, 0.2, 0.3, np.inf, np.nan], 0.2) == 3


def test_without_trials_nothing_is_known():
    assert failure_bounds(0, 0, 0.05) == (0.0, 1.0)


def test_more_failures_than_trials_are_refused():
    with pytest.raises(ValueError, match=r"n_failures must be in \[0, 3\], got 4"):
        failure_bounds(4, 3, 0.05)
