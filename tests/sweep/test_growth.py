"""Fits of growth recover what was planted."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2

from markov_theory.randomness import named_generator
from markov_theory.sweep.axes import AXES
from markov_theory.sweep.growth import FALLS, LOG_T, T_FREE, UNDECIDED, fitted_curve, growth_fits, vocabulary_verdict

S = AXES["s"]


def table(n_star, s, small=True):
    return pd.DataFrame({"s": s, "n_star": n_star, "small_epsilon": small})


def test_a_wilks_law_is_recognised():
    s = np.arange(1, 33)
    n = np.where(s > 1, chi2.isf(0.05, np.maximum(s - 1, 1)) / 2e-4, 5.0)
    line, wilks, power = growth_fits(table(n, s), S, 1e-4, 0.05)
    assert wilks.parameters["2εb"][0] == pytest.approx(1, abs=1e-9)
    assert wilks.residual < 1e-9 < line.residual
    assert power.parameters["p"][0] == pytest.approx(0.86, abs=0.02)


def test_a_line_is_recognised_with_an_interval_that_covers():
    s = np.repeat(np.arange(1, 33), 5)
    noise = np.exp(0.05 * np.sin(np.arange(s.size) * 12.9898))
    line, *_ = growth_fits(table((100 + 30 * s) * noise, s), S, 1e-3, 0.05)
    for name, truth in (("a", 100), ("b", 30)):
        value, low, high = line.parameters[name]
        assert low <= truth <= high
        assert low < value < high


def test_cells_outside_the_regime_or_not_reached_are_left_out():
    s = np.arange(2, 12)
    good = table(10.0 * s, s)
    bad = pd.concat([table([1e9] * 10, s, small=False), table([np.inf] * 10, s)])
    assert growth_fits(pd.concat([good, bad]), S, 1e-3, 0.05) == growth_fits(good, S, 1e-3, 0.05)


def test_too_few_values_give_no_fit():
    assert growth_fits(table([1.0, 2.0, 3.0], [1, 2, 3]), S, 1e-3, 0.05) == []


@pytest.mark.statistical
def test_the_interval_of_the_wilks_fit_covers():
    """Nominal 95 %: of 300 seeds, more than 30 misses have probability below 1e-3 at coverage 0.95."""
    s = np.repeat(np.arange(2, 33), 5)
    exact = chi2.isf(0.05, s - 1) / 2e-4
    misses = 0
    for seed in range(300):
        noise = 1 + 0.06 * named_generator(seed, "growth").standard_normal(s.size)
        _, low, high = growth_fits(table(exact * noise, s), S, 1e-4, 0.05)[1].parameters["2εb"]
        misses += not low <= 1 <= high
    assert misses <= binom.isf(1e-3, 300, 0.05)


def along(axis, x, n_star, **columns):
    """Fits of one curve along an axis."""
    cells = pd.DataFrame({axis: x, "n_star": n_star, **columns})
    return cells, growth_fits(cells, AXES[axis], 1e-3, 0.05)


@pytest.mark.parametrize(("axis", "power"), [("epsilon", -1.0), ("gamma", -2.0), ("dim", 0.5), ("delta", -0.1)])
def test_a_power_law_is_recognised_along_every_other_axis(axis, power):
    x = np.array([0.01, 0.02, 0.05, 0.1, 0.2])
    cells, (fit,) = along(axis, x, 100 * x**power)
    assert fit.parameters["p"] == pytest.approx((power, power, power), abs=1e-9)
    drawn = fitted_curve(cells, AXES[axis], [fit])
    np.testing.assert_allclose(drawn.n, 100 * drawn[axis] ** power)


def test_values_at_zero_and_cells_not_reached_are_left_out_of_a_power_law():
    x = np.array([0.0, 0.1, 0.2, 0.4, 0.8])
    _, (fit,) = along("misfit", x, [7.0, 10.0, 20.0, 40.0, np.inf])
    assert fit.parameters["p"][0] == pytest.approx(1)
    assert fit.n_points == 3


def test_cells_of_the_small_epsilon_regime_alone_are_fitted_if_there_are_enough():
    x = np.array([1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
    n = np.where(x < 5e-4, 1 / x, 1.0)
    _, (fit,) = along("epsilon", x, n, small_epsilon=x < 5e-4)
    assert fit.parameters["p"][0] == pytest.approx(-1)
    _, (fit,) = along("epsilon", x, 1 / x, small_epsilon=False)
    assert fit.n_points == 5


def test_truths_that_share_their_rows_count_as_one_observation():
    x = np.repeat([64, 128, 256, 512], 5)
    shared = np.repeat([1.0, 1.2, 0.9, 1.1], 5)
    _, (line, power) = along("tokens", x, 100 * shared)
    assert (line.n_points, power.n_points) == (4, 4)
    assert line.parameters["b"][1] < 0 < line.parameters["b"][2]


T = np.array([32, 64, 128, 256, 512, 1024, 2048])
WOBBLE = 1 + 0.004 * np.sin(12.9898 * np.arange(T.size))


@pytest.mark.parametrize(
    ("n_star", "verdict"),
    [
        (1000 * WOBBLE, T_FREE),
        (10 + 2 * np.log(T) * WOBBLE, LOG_T),
        (900 - 80 * np.log(T) * WOBBLE, FALLS),
        (1000 * (1 + 40 * (WOBBLE - 1)), UNDECIDED),
    ],
)
def test_dependence_on_the_vocabulary_is_decided_by_the_interval_of_the_slope(n_star, verdict):
    _, (line, power) = along("tokens", T, n_star)
    assert line.verdict == verdict
    a, b = line.parameters["a"][0], line.parameters["b"]
    assert vocabulary_verdict(a, b[1], b[2]) == verdict
    assert power.verdict == ""
    assert line.told()["verdict"] == verdict
    assert "verdict" not in power.told()


def test_the_better_of_a_logarithm_and_a_power_is_drawn():
    cells, fits = along("tokens", T, 10 + 2 * np.log(T))
    assert fits[0].residual < 1e-9 < fits[1].residual
    assert "log T" in fitted_curve(cells, AXES["tokens"], fits).law.iloc[0]
    cells, fits = along("tokens", T, T**0.5)
    assert fits[1].residual < 1e-9 < fits[0].residual
    assert "∝ T^0.50" in fitted_curve(cells, AXES["tokens"], fits).law.iloc[0]
