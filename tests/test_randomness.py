"""Generators by name."""

import pytest

from markov_theory.randomness import named_generator


def test_the_same_name_gives_the_same_numbers_in_any_order():
    first = [named_generator(3, "a", k).random() for k in range(5)]
    again = [named_generator(3, "a", k).random() for k in reversed(range(5))]
    assert first == again[::-1]


def test_names_and_seeds_tell_streams_apart():
    keys = [(0, "a"), (1, "a"), (0, "b"), (0, "a", 0), (0, "a", "0"), (0, "a", 0, 0)]
    assert len({named_generator(*key).random() for key in keys}) == len(keys)


def test_a_negative_seed_is_refused():
    with pytest.raises(ValueError, match="seed must be >= 0, got -1"):
        named_generator(-1, "a")
