"""The contract of a bound: what it declares about itself holds of its number."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.bounds import BOUNDS, S2, Bound
from markov_theory.bounds.base import least_integer, round_down, round_up
from tests.strategies import accuracies, failure_levels

ROWS = [[0.2, 0.3, 0.5], [0.5, 0.2, 0.3], [0.3, 0.4, 0.3]]
SCALARS = {
    "n_tokens": st.integers(1, 5000),
    "sparsity": st.integers(1, 40),
    "density_ratio": st.floats(0, 20).map(lambda exponent: 10.0**exponent),
    "log_ratio": st.floats(1e-6, 50),
    "margin": accuracies(),
    "support_margin": accuracies(),
    "epsilon": accuracies(),
    "delta": failure_levels(),
    "gap": st.floats(0, 1e-3),
    "logit_spread": st.floats(-3, 3).map(lambda exponent: 10.0**exponent),
    "radius": st.floats(-3, 3).map(lambda exponent: 10.0**exponent),
    "degrees_of_freedom": st.integers(0, 500),
    "ball_active": st.booleans(),
}
ARRAYS = {
    "transitions": ROWS,
    "support_rows": ROWS,
    "support_scores": [[1.0, 0.3], [-1.0, 0.5], [0.0, 1.0]],
    "target": np.mean(ROWS, axis=0),
    "laws": [[0.01, 0.99], [0.99, 0.01]],
    "alpha": [1.0, 0.0, 0.0],
    "rates": [0.1, 0.02, 0.3],
    "samples_per_token": [3, 1, 20],
}
CLASSES = {"one-to-one", "oracle", "l0", "simplex", "any", "embedding-l0", "embedding-oracle"}
DECLARED = [(label, name) for label, bound in BOUNDS.items() for name in bound.increasing + bound.decreasing]


@pytest.mark.parametrize(("label", "name"), DECLARED)
@given(data=st.data())
def test_declared_monotonicities_hold(label, name, data):
    bound = BOUNDS[label]
    fixed = {key: ARRAYS[key] for key in bound.inputs() if key in ARRAYS}
    drawn = {key: data.draw(SCALARS[key], key) for key in bound.inputs() if key in SCALARS and key != name}
    if label == "S4":  # its ε only admits or refuses the packing
        drawn["epsilon"] = 0.1
    low, high = sorted([data.draw(SCALARS[name], "low"), data.draw(SCALARS[name], "high")])
    below, above = (bound.n_samples(**fixed, **drawn, **{name: value}) for value in (low, high))
    rising = name in bound.increasing
    least, most = (below, above) if rising else (above, below)
    assert least <= most * (1 + 1e-9)  # beyond 2**53, neighbouring doubles
    assert least <= most or most > 1e6


@pytest.mark.parametrize("bound", BOUNDS.values(), ids=BOUNDS)
def test_a_bound_says_what_it_is(bound):
    assert bound.kind in ("upper", "lower", "prediction")
    assert bound.origin in ("paper", "derived")
    assert set(bound.speaks_of) <= CLASSES
    assert bound.statement
    assert bound.reason
    assert set(bound.increasing + bound.decreasing) <= set(bound.inputs())
    assert not set(bound.increasing) & set(bound.decreasing)
    assert "Loose" in bound.__doc__ or bound.kind == "prediction"


def test_labels_are_keys_in_the_order_of_the_theory():
    assert " ".join(BOUNDS) == (
        "O1 O2 O2+ O3 O3+ O4 O5 S1 S2 S2H S3 S4 S5 S5+ S5' S5L S6 S6' S6^1 S6u L1 L2 E1 E2 E3 E4 X1 M1 M2"
    )
    assert all(bound.label == label for label, bound in BOUNDS.items())


def test_at_reads_an_instance_and_lets_given_quantities_precede():
    instance = SimpleNamespace(n_tokens=128, sparsity=4, density_ratio=4.0, epsilon=0.5)
    assert S2.at(instance, epsilon=0.1, delta=0.05) == S2.n_samples(128, 4, 4.0, 0.1, 0.05)
    assert S2.at(instance, epsilon=0.1, delta=0.05, gap=1e-3) > S2.at(instance, epsilon=0.1, delta=0.05)
    with pytest.raises(TypeError, match="delta"):
        S2.at(instance)


def test_a_bound_of_ones_own_needs_one_method():
    class Mine(Bound):
        label, kind, origin, speaks_of = "Mine", "upper", "derived", ("any",)
        statement = reason = "for the test"

        @staticmethod
        def n_samples(epsilon: float, factor: float = 2.0) -> float:
            return round_up(factor / epsilon)

    assert Mine.inputs() == ("epsilon", "factor")
    assert Mine.at(SimpleNamespace(epsilon=0.3)) == 7
    assert Mine.at(SimpleNamespace(epsilon=0.3), factor=3) == 10


@pytest.mark.parametrize(
    ("value", "up", "down"), [(-1.5, 0, 0), (6.2, 7, 7), (7 + 1e-14, 8, 7), (math.inf, math.inf, math.inf)]
)
def test_rounding(value, up, down):
    assert (round_up(value), round_down(value)) == (up, down)


@given(st.integers(0, 10**40), st.integers(0, 50), st.floats(0, 1e40))
def test_least_integer(answer, low, guess):
    found = least_integer(lambda n: n >= answer, low=low, guess=guess)
    target = max(answer, low)
    assert target <= found <= target * (1 + 2**-50)
    assert found == target or target > 2**52


def test_least_integer_gives_up():
    assert least_integer(lambda n: False) == math.inf
