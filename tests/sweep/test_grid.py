"""Ranges on the command line, and the setting of a cell."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.sweep.axes import AXES, Point, as_text, range_text
from markov_theory.sweep.grid import parse_range, thinned

REALS = st.floats(1e-12, 1e12, allow_nan=False)


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 50))
def test_ranges_are_python_ranges_with_both_ends(first, extent, step):
    assert parse_range(f"{first}..{first + extent}:{step}") == tuple(range(first, first + extent + 1, step))


def test_lists_are_sorted_and_without_doubles():
    assert parse_range("4, 1..2,2") == (1, 2, 4)


@given(st.integers(-12, 3), st.integers(0, 12))
def test_powers_of_ten_are_the_numbers_that_python_reads(first, decades):
    values = parse_range(f"1e{first}..1e{first + decades}*10", float)
    assert values == tuple(float(f"1e{first + i}") for i in range(decades + 1))


def test_steps_of_a_tenth_do_not_drift():
    assert parse_range("0.1..0.9:0.1", float) == tuple(float(f"0.{i}") for i in range(1, 10))


@given(st.lists(REALS, min_size=1, unique=True))
def test_real_numbers_are_read_back_exactly(values):
    assert parse_range(",".join(map(as_text, values)), float) == tuple(sorted(values))


@given(st.lists(st.integers(1, 60), min_size=1, unique=True))
def test_whole_numbers_are_read_back(values):
    values = tuple(sorted(values))
    assert parse_range(range_text(values)) == values


@pytest.mark.parametrize(
    "text", ["", "a", "1..", "3..1", "1..9:0", "1-4", "1.5", "1,,2", "1..10000000", "0..8*2", "2..8*1"]
)
def test_what_is_not_a_range_is_refused(text):
    with pytest.raises(ValueError, match="range"):
        parse_range(text)


@pytest.mark.parametrize("text", ["0.1..0.5", "1e-9..1:1e-9", "-1"])
def test_what_is_not_a_range_of_real_numbers_is_refused(text):
    with pytest.raises(ValueError, match="range"):
        parse_range(text, float)


@given(st.lists(st.integers(1, 1000), min_size=1, unique=True))
def test_thinning_keeps_the_ends_and_the_order(values):
    values = tuple(sorted(values))
    kept = thinned(values)
    assert set(kept) <= set(values)
    assert (kept[0], kept[-1]) == (values[0], values[-1])
    assert list(kept) == sorted(set(kept))


@pytest.mark.parametrize(
    ("axis", "text", "words"),
    [
        ("s", "0..4", "s must be >= 1, got 0"),
        ("epsilon", "0,1", "epsilon must be a finite number > 0, got 0"),
        ("delta", "0.5,1", "delta must lie strictly between 0 and 1, got 1"),
        ("misfit", "1", "misfit must lie strictly between 0 and 1, got 1"),
        ("new_tokens", "1..4*", "--new-tokens: a range is written"),
    ],
)
def test_an_axis_says_what_it_admits(axis, text, words):
    with pytest.raises(ValueError, match=words):
        AXES[axis].parse(text)


def test_points_of_different_settings_have_different_keys(point):
    keys = [str(point(2)), str(point(3)), str(point(2, epsilon=1e-4)), str(point(2, gamma=0.1))]
    assert len(set(keys)) == len(keys)
    assert keys[0] == "s=2 gamma=largest ratio=20 tokens=12 outcomes=16 epsilon=0.001 delta=0.2"
    assert point(2) == Point.of(dict(point(2).setting))
    with pytest.raises(KeyError):
        point(2)["dim"]
