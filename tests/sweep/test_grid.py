"""Ranges on the command line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.sweep.grid import parse_range, thinned


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 50))
def test_ranges_are_python_ranges_with_both_ends(first, extent, step):
    assert parse_range(f"{first}..{first + extent}:{step}") == tuple(range(first, first + extent + 1, step))


def test_lists_are_sorted_and_without_doubles():
    assert parse_range("4, 1..2,2") == (1, 2, 4)


@pytest.mark.parametrize("text", ["", "a", "1..", "3..1", "1..9:0", "1-4", "1.5", "1,,2", "1..10000000"])
def test_what_is_not_a_range_is_refused(text):
    with pytest.raises(ValueError, match="range"):
        parse_range(text)


@given(st.lists(st.integers(1, 1000), min_size=1, unique=True))
def test_thinning_keeps_the_ends_and_the_order(values):
    values = tuple(sorted(values))
    kept = thinned(values)
    assert set(kept) <= set(values)
    assert (kept[0], kept[-1]) == (values[0], values[-1])
    assert list(kept) == sorted(set(kept))
