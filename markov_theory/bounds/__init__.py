"""Bounds: samples that suffice (O1–O3, S1, S2, S2H, S6, E1, E2, E4), are needed (O4, O5, S4), to expect (S3, E3)."""

from markov_theory.bounds.base import Bound
from markov_theory.bounds.embedding import E1, E2, E3
from markov_theory.bounds.known_embedding import E4
from markov_theory.bounds.known_support import S6
from markov_theory.bounds.one_to_one import O1, O2, O3, O4, O5
from markov_theory.bounds.packing import S4, greedy_packing
from markov_theory.bounds.sparse import S1, S2, S2H, S3

BOUNDS: dict[str, type[Bound]] = {
    bound.label: bound for bound in (O1, O2, O3, O4, O5, S1, S2, S2H, S3, S4, S6, E1, E2, E3, E4)
}

__all__ = [
    "BOUNDS",
    "E1",
    "E2",
    "E3",
    "E4",
    "O1",
    "O2",
    "O3",
    "O4",
    "O5",
    "S1",
    "S2",
    "S2H",
    "S3",
    "S4",
    "S6",
    "Bound",
    "greedy_packing",
]
