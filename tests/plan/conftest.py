"""Small dictionaries whose plans take milliseconds."""

import pytest

from markov_theory.dictionary import Dictionary
from markov_theory.families import make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.plan.truths import Truth


@pytest.fixture(scope="session")
def rows():
    return make_dictionary(6, 8, density_ratio=20.0)


@pytest.fixture(scope="session")
def truths(rows):
    return [Truth.of(plant(rows, 2, truth=i)) for i in range(2)]


@pytest.fixture(scope="session")
def coin():
    """The mixture half and half of two coins: its failure probability is a sum of binomial ones."""
    return Instance(Dictionary([[0.2, 0.8], [0.8, 0.2]]), [0.5, 0.5], "coin")
