"""Fits of growth recover what was planted."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2

from markov_theory.randomness import named_generator
from markov_theory.sweep.growth import growth_fits


def table(n_star, s, small=True):
    return pd.DataFrame({"s": s, "n_star": n_star, "small_epsilon": small})


def test_a_wilks_law_is_recognised():
    s = np.arange(1, 33)
    n = np.where(s > 1, chi2.isf(0.05, np.maximum(s - 1, 1)) / 2e-4, 5.0)
    line, wilks, power = growth_fits(table(n, s), 1e-4, 0.05)
    assert wilks.parameters["2εb"][0] == pytest.approx(1, abs=1e-9)
    assert wilks.residual < 1e-9 < line.residual
    assert power.parameters["p"][0] == pytest.approx(0.86, abs=0.02)


def test_a_line_is_recognised_with_an_interval_that_covers():
    s = np.repeat(np.arange(1, 33), 5)
    noise = np.exp(0.05 * np.sin(np.arange(s.size) * 12.9898))
    line, *_ = growth_fits(table((100 + 30 * s) * noise, s), 1e-3, 0.05)
    for name, truth in (("a", 100), ("b", 30)):
        value, low, high = line.parameters[name]
        assert low <= truth <= high
        assert low < value < high


def test_cells_outside_the_regime_or_not_reached_are_left_out():
    s = np.arange(2, 12)
    good = table(10.0 * s, s)
    bad = pd.concat([table([1e9] * 10, s, small=False), table([np.inf] * 10, s)])
    assert growth_fits(pd.concat([good, bad]), 1e-3, 0.05) == growth_fits(good, 1e-3, 0.05)


def test_too_few_values_give_no_fit():
    assert growth_fits(table([1.0, 2.0, 3.0], [1, 2, 3]), 1e-3, 0.05) == []


@pytest.mark.statistical
def test_the_interval_of_the_wilks_fit_covers():
    """Nominal 95 %: of 300 seeds, more than 30 misses have probability below 1e-3 at coverage 0.95."""
    s = np.repeat(np.arange(2, 33), 5)
    exact = chi2.isf(0.05, s - 1) / 2e-4
    misses = 0
    for seed in range(300):
        noise = 1 + 0.06 * named_generator(seed, "growth").standard_normal(s.size)
        _, low, high = growth_fits(table(exact * noise, s), 1e-4, 0.05)[1].parameters["2εb"]
        misses += not low <= 1 <= high
    assert misses <= binom.isf(1e-3, 300, 0.05)
