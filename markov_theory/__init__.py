"""Simulate, estimate and verify the Markov-matrix theory of learning new tokens from old ones.

The names below are the ones that most scripts need; everything else is imported from its module.
"""

from markov_theory.bounds import BOUNDS
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import ESTIMATORS, ConstrainedKL, ExactL0, KLPursuit, NearestRow, Oracle
from markov_theory.families import make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts

__all__ = [
    "BOUNDS",
    "ESTIMATORS",
    "ConstrainedKL",
    "Dictionary",
    "ExactL0",
    "Instance",
    "KLPursuit",
    "NearestRow",
    "Oracle",
    "kl_divergence",
    "make_dictionary",
    "named_generator",
    "plant",
    "sample_counts",
]
