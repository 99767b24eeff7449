"""The decision rule on laws that are known: it must be able to say all three things."""

import math

import numpy as np
import pytest
from scipy.stats import t

from markov_theory.dependence.decision import Flat, Free, Grows, Growth, Observations
from markov_theory.randomness import named_generator
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED

X = np.array([4, 8, 16, 32, 64, 128, 256], dtype=float)
WOBBLE = 1 + 0.004 * np.sin(12.9898 * np.arange(X.size))


def seen(value, x=X):
    return Observations(x, value, value, value)


LAWS = {
    "flat": 1000 * WOBBLE,
    "log": 10 + 2 * np.log(X) * WOBBLE,
    "falling": 900 - 80 * np.log(X) * WOBBLE,
    "power": X**1.3 * WOBBLE,
    "scattered": 1000 * (1 + 40 * (WOBBLE - 1)),
}


@pytest.mark.parametrize(
    ("law", "free", "grows"),
    [
        ("flat", HOLDS, VIOLATED),
        ("log", VIOLATED, HOLDS),
        ("falling", VIOLATED, VIOLATED),
        ("scattered", INCONCLUSIVE, INCONCLUSIVE),
    ],
)
def test_each_law_gets_its_verdict(law, free, grows):
    assert Free().judge(seen(LAWS[law])) == free
    assert Grows().judge(seen(LAWS[law])) == grows


def test_a_power_law_is_judged_by_its_power():
    assert Grows(law="power").judge(seen(LAWS["power"])) == HOLDS
    assert Free(law="power").judge(seen(LAWS["power"])) == VIOLATED
    assert Grows(1.2, 1.4, law="power").judge(seen(LAWS["power"])) == HOLDS
    assert Grows(0.2, 0.4, law="power").judge(seen(LAWS["power"])) == VIOLATED
    fit = Growth.of(seen(LAWS["power"]))
    np.testing.assert_allclose(fit.at(X, "power"), LAWS["power"], rtol=0.02)


def test_limits_of_the_slope_are_part_of_the_prediction():
    y = seen(LAWS["log"])
    assert Grows(1.5, 2.5).judge(y) == HOLDS
    assert Grows(3.0, 4.0).judge(y) == VIOLATED
    assert Grows(0.5, 1.0).judge(y) == VIOLATED
    estimate, low, high = Growth.of(y).b
    assert low < estimate < high
    assert Grows(estimate, 4.0).judge(y) == Grows(0.5, estimate).judge(y) == INCONCLUSIVE


def test_a_level_is_part_of_the_prediction():
    y = seen(LAWS["flat"])
    assert Free(level=1000).judge(y) == HOLDS
    assert Free(level=1200).judge(y) == VIOLATED
    mean = Growth.of(y).mean[0]
    assert Free(level=mean / 0.9, within=0.1).judge(y) == INCONCLUSIVE  # the interval crosses the limit


def test_an_interval_across_the_band_is_inconclusive_and_one_beyond_is_a_violation():
    """The slope is 5 % of a: "T-free" is neither confirmed nor refuted, although 0 is excluded."""

    def rising(slope):
        return seen(100 + slope * np.log(X) * WOBBLE)

    fit = Growth.of(rising(5))
    edge = rising(5 * fit.band("log") / fit.b[0])
    moved = Growth.of(edge)
    assert moved.b[1] < moved.band("log") < moved.b[2]
    assert moved.b[1] > 0
    assert Free().judge(edge) == INCONCLUSIVE
    assert Grows().judge(edge) == HOLDS
    assert Free().judge(rising(6)) == VIOLATED


@pytest.mark.parametrize("law", ["flat", "log", "falling"])
def test_the_interval_is_that_of_weighted_least_squares(law):
    y = LAWS[law]
    design, weight = np.column_stack([np.ones_like(X), np.log(X)]), y
    for _ in range(50):
        theta = np.linalg.lstsq(design / weight[:, None], y / weight, rcond=None)[0]
        weight = design @ theta
    scaled = design / weight[:, None]
    spread = np.sqrt(((y / weight - 1) ** 2).sum() / (X.size - 2) * np.linalg.inv(scaled.T @ scaled)[1, 1])
    half = t.isf(0.025, X.size - 2) * spread
    assert Growth.of(seen(y)).b == pytest.approx((theta[1], theta[1] - half, theta[1] + half), abs=1e-8 * y.max())


def test_flat_needs_every_value_to_be_known():
    assert Flat().judge(Observations([2, 4], [7, 7], [7, 6], [7, 7])) == INCONCLUSIVE
    assert Flat().judge(Observations([2, 4], [7, 9], [6, 8], [7, 9])) == VIOLATED


@pytest.mark.parametrize("value", [[5.0, 5.0, math.inf], [5.0, 5.0, 0.0]])
def test_nothing_is_decided_where_a_value_was_not_reached(value):
    y = Observations([2, 4, 8], value, value, value)
    assert Growth.of(y) is None
    assert Free().judge(y) == Grows().judge(y) == INCONCLUSIVE


def test_two_values_of_x_decide_nothing():
    assert Free().judge(seen(np.array([5.0, 5.0]), np.array([2.0, 4.0]))) == INCONCLUSIVE


def test_repeats_at_one_x_are_one_observation():
    y = np.concatenate([LAWS["flat"] * 1.1, LAWS["flat"] / 1.1])
    fit = Growth.of(seen(y, np.concatenate([X, X])))
    assert fit.n_points == X.size
    assert fit.b == pytest.approx(Growth.of(seen(LAWS["flat"])).b, abs=1e-6)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="x must be > 0"):
        seen(np.array([1.0, 2.0]), np.array([0.0, 2.0]))
    with pytest.raises(ValueError, match="as many as"):
        Observations([1, 2], [1], [1], [1])


@pytest.mark.statistical
def test_a_true_statement_is_not_called_violated():
    """Five per cent of noise, four repeats: the slope's standard error is 0.8 % of a.

    To be called violated, free values need |b| beyond 5 % by half an interval, and growing ones a slope that is off by
    40 of its standard errors: six standard errors, below 1e-8 a seed, hence below 1e-6 over the 100 seeds.
    """
    x = np.repeat(X, 4)
    for seed in range(100):
        noise = np.exp(0.05 * named_generator(seed, "decision").standard_normal(x.size))
        assert Free().judge(seen(1000 * noise, x)) != VIOLATED
        assert Grows().judge(seen((2 + 2 * np.log(x)) * noise, x)) != VIOLATED
