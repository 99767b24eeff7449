"""Bounds, one statement a class: samples that suffice, that are needed, that are to be expected; `BOUNDS` by label."""

from __future__ import annotations

from markov_theory.bounds.base import Bound
from markov_theory.bounds.embedding import E1, E2, E3
from markov_theory.bounds.exposure import Exposure, corpus_size, exposure_failure
from markov_theory.bounds.higher_order import K1
from markov_theory.bounds.known_embedding import E4
from markov_theory.bounds.known_support import S6
from markov_theory.bounds.known_support_lower import L1, L2
from markov_theory.bounds.known_support_sharp import S6One, S6Prime
from markov_theory.bounds.misspecification import M1, M2
from markov_theory.bounds.one_to_one import O1, O2, O3, O4, O5, O2Plus
from markov_theory.bounds.packing import S4, greedy_packing
from markov_theory.bounds.refined_one_to_one import O3Plus
from markov_theory.bounds.sparse import S1, S2, S2H, S3
from markov_theory.bounds.support import S5, S5L, S5Plus, S5Prime
from markov_theory.bounds.unknown_support import UnknownSupport

# fmt: off
_IN_ORDER: tuple[type[Bound], ...] = (
    O1, O2, O2Plus, O3, O3Plus, O4, O5,
    S1, S2, S2H, S3, S4, S5, S5Plus, S5Prime, S5L, S6, S6Prime, S6One, UnknownSupport, L1, L2,
    E1, E2, E3, E4, Exposure, M1, M2,
)
# fmt: on
BOUNDS: dict[str, type[Bound]] = {bound.label: bound for bound in _IN_ORDER}

__all__ = [
    "BOUNDS",
    "E1",
    "E2",
    "E3",
    "E4",
    "K1",
    "L1",
    "L2",
    "M1",
    "M2",
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
    "S5",
    "S5L",
    "S6",
    "Bound",
    "Exposure",
    "O2Plus",
    "O3Plus",
    "S5Plus",
    "S5Prime",
    "S6One",
    "S6Prime",
    "UnknownSupport",
    "corpus_size",
    "exposure_failure",
    "greedy_packing",
]
