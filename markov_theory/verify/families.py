"""Families of small instances, each parametrised by a point of the unit cube: where a counterexample is looked for.

A family knows nothing of any bound. ε and δ are coordinates too, so that a statement is tried where it is tightest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markov_theory.verify.builders import (
    USUAL,
    Builder,
    coin,
    curve,
    exposure,
    hull,
    interval,
    logistic,
    mirrored_rows,
    misspecified,
    packed,
    packing,
    peaked_packing,
    saturated,
    several_outcomes,
    several_rows,
    supports_found,
    two_rows,
)
from markov_theory.verify.two_outcomes import Divergence


@dataclass(frozen=True)
class Family:
    """Cases made from points of the unit cube.

    Attributes
    ----------
    name : str
        In words, for the report; randomness is keyed by it.
    estimators : frozenset of str
        Classes of estimators whose failure the cases know (see `markov_theory.bounds.base.Bound.speaks_of`).
    event : str
        What failure is: ``"row"``, the wrong row; ``"kl"`` or ``"hellinger"``, farther than ε from the truth.
    dimension : int
        Coordinates of a point.
    build : callable
        (point, tables to list at most) to a case; ValueError where there is none.
    starts : tuple of points
        Symmetric and extreme places, worth a look before random ones.
    corners : tuple of (int, float)
        Coordinates with the value at which a small quantity, ε, δ or a margin, is least: what grows without limit
        there, as a wrong exponent lets it, shows there.
    cost : float
        Of a trial, relative to one in closed form: the search looks that much less often.
    """

    name: str
    estimators: frozenset[str]
    event: str
    dimension: int
    build: Builder
    starts: tuple[tuple[float, ...], ...] = ()
    corners: tuple[tuple[int, float], ...] = ()
    cost: float = 1.0


def _grid(*axes: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    mesh = np.meshgrid(*axes, indexing="ij")
    return tuple(tuple(float(v) for v in point) for point in np.column_stack([m.ravel() for m in mesh]))


def _usual(*places: float) -> tuple[float, ...]:
    """Places in the usual range of a graded coordinate."""
    return tuple(USUAL + (1 - USUAL) * place for place in places)


_DELTAS = _usual(0.2, 0.55, 0.85)
_PACKED_STARTS = _grid((0.6, 1.0), (0.2, 0.45), (0.5, 0.85, 1.0))
_MIXED_STARTS = (
    *_grid((0.1, 0.5, 0.9), (0.1, 0.5, 0.9), (0.0, 0.3, 0.5), _usual(0.1, 0.6), _usual(0.2, 0.7)),
    *_grid(
        (0.2, 0.3), (0.03, 0.045), (0.0,), _usual(0.85, 0.98), _usual(0.0)
    ),  # an outcome that one row all but excludes
)
_MIXED_CORNERS = ((3, 0.0), (4, 0.0))


def families(full: bool = False) -> tuple[Family, ...]:
    """All families; those with more outcomes or rows only on request."""
    return (
        *_row_families(full),
        *_packing_families(),
        *_oracle_families(full),
        *_sparse_families("kl", full),
        *_sparse_families("hellinger", full),
        *_embedding_families(full),
        *_support_families(full),
        *_other_families(),
    )


def _row_families(full: bool) -> list[Family]:
    row = frozenset({"one-to-one", "any"})
    two = _grid((0.0, 0.3, 0.5), (0.0, 0.3, 0.7, 1.0), _DELTAS)
    mirrored = _grid(_usual(0.5, 0.9), _DELTAS)
    most = 512 if full else 64
    found = [
        Family("two rows, two outcomes", row, "row", 3, two_rows, two, ((1, 0.5), (2, 0.0))),
        Family("mirrored rows, two outcomes", row, "row", 2, mirrored_rows, mirrored, ((0, 0.0), (1, 0.0))),
        Family("several rows, two outcomes", row, "row", 7, several_rows, corners=((6, 0.0),)),
        Family("packed rows", row, "row", 3, packed(most, criterion=False), _PACKED_STARTS, cost=10),
        Family("3 rows, 3 outcomes", row, "row", 10, several_outcomes(3, 3), cost=8),
    ]
    return [*found, Family("4 rows, 4 outcomes", row, "row", 17, several_outcomes(4, 4), cost=30)] if full else found


def _packing_families() -> list[Family]:
    anyone = frozenset({"any"})
    on_two = _grid((0.0, 0.9), (0.3, 0.5), (0.0, 1.0), (0.5,), _usual(0.3, 0.6))
    packed = _grid((0.0, 0.5, 0.9), (0.2, 0.6), (0.5, 0.8), (0.3, 0.7))
    return [
        Family("packings, two outcomes", anyone, "kl", 5, packing, on_two, ((2, 0.5), (4, 0.0))),
        Family("packed laws", anyone, "kl", 4, peaked_packing, packed, cost=4),
    ]


def _oracle_families(full: bool) -> list[Family]:
    oracle = frozenset({"oracle"})
    apart = [(ε, δ, *(0.5,) * 3, *np.where(np.eye(3), 0.9, 0.35).ravel()) for ε in (0.5, 0.8) for δ in (0.9, 1.0)]
    along = [(ε, 0.7, w, 0.5, *np.where(np.eye(3), 0.9, 0.35)[:2].ravel()) for ε in (0.3, 0.7) for w in (0.3, 0.5)]
    found = [
        Family("two rows mixed, two outcomes", oracle, "kl", 5, interval("kl", 0, 1e-3), _MIXED_STARTS, _MIXED_CORNERS),
        Family("segments, 3 outcomes", oracle, "kl", 10, hull(2, 3, 2, 2, "kl"), tuple(along), cost=6),
        Family("triangles, 3 outcomes", oracle, "kl", 14, hull(3, 3, 3, 3, "kl"), tuple(apart), cost=16),
    ]
    if full:
        found += [
            Family("segments, 4 outcomes", oracle, "kl", 12, hull(2, 4, 2, 2, "kl"), cost=20),
            Family("tetrahedra, 4 outcomes", oracle, "kl", 22, hull(4, 4, 4, 4, "kl"), cost=60),
        ]
    return found


def _sparse_families(by: Divergence, full: bool) -> list[Family]:
    both, sparse = frozenset({"simplex", "l0"}), frozenset({"l0"})
    found = [
        Family("two rows, two outcomes", both, by, 5, interval(by, 0, 0.0), _MIXED_STARTS, _MIXED_CORNERS),
        Family("three rows, two outcomes", both, by, 6, interval(by, 1, 0.0), corners=_MIXED_CORNERS),
        Family("segments of 3 rows, 3 outcomes", sparse, by, 13, hull(3, 3, 2, 2, by), cost=24),
    ]
    if by == "kl":
        margin = packed(512 if full else 128, criterion=True)
        found.append(Family("packed rows, ε below the margin", sparse, by, 3, margin, _PACKED_STARTS, cost=10))
    if full:
        found += [
            Family("hull of 4 rows, 3 outcomes", both, by, 17, hull(4, 3, 4, 3, by), cost=30),
            Family("segments of 5 rows, 3 outcomes", sparse, by, 19, hull(5, 3, 2, 2, by), cost=60),
            Family("triangles of 4 rows, 4 outcomes", sparse, by, 21, hull(4, 4, 3, 3, by), cost=120),
        ]
    return found


def _embedding_families(full: bool) -> list[Family]:
    oracle = frozenset({"embedding-oracle"})
    coins = _grid((0.0, 0.1, 0.5), _usual(0.0, 0.5, 0.9), _DELTAS)
    balls = _grid(
        (0.5,), (0.3, 0.6, 0.9), (0.5, 0.9), _usual(0.1, 0.5, 0.9), _usual(0.2, 0.6), (0.0,), (0.0, 0.9), (0.0, 0.9)
    )
    found = [
        Family(
            "tokens in a ball, two outcomes", oracle | {"embedding-l0"}, "kl", 8, logistic, balls, ((3, 0.0), (4, 0.0))
        ),
        Family("coin", oracle, "kl", 3, coin, coins, ((1, 0.0), (2, 0.0))),
        Family("curve, 3 outcomes", oracle, "kl", 8, curve(3), cost=6),
        Family("all laws, 3 outcomes", oracle, "kl", 5, saturated, cost=6),
    ]
    if full:
        found += [
            Family("curve, 4 outcomes", oracle, "kl", 10, curve(4), cost=20),
            Family("all laws, 4 outcomes", oracle, "kl", 6, saturated, cost=20),
        ]
    return found


def _support_families(full: bool) -> list[Family]:
    sparse, anyone = frozenset({"l0"}), frozenset({"any"})
    corners = tuple(
        (d, w, *pattern)
        for d in (0.4, 0.8)
        for w in (0.3, 0.5)
        for pattern in ((0.9, 0.4, 0.3, 0.3, 0.9, 0.4, 0.4, 0.3, 0.9),)
    )
    found = [
        Family("two of 3 rows, 3 outcomes", sparse, "support", 11, supports_found(3, 2, False), corners, cost=12),
        Family("one of 3 rows, 3 outcomes", sparse, "support", 11, supports_found(3, 1, False), corners, cost=12),
        Family(
            "two of 3 rows against nearest others", anyone, "support", 11, supports_found(3, 2, True), corners, cost=12
        ),
    ]
    return (
        [*found, Family("two of 5 rows, 3 outcomes", sparse, "support", 17, supports_found(5, 2, False), cost=40)]
        if full
        else found
    )


def _other_families() -> list[Family]:
    both, sparse = frozenset({"simplex", "l0"}), frozenset({"l0"})
    return [
        Family("truths outside two rows' mixtures", both, "excess", 6, misspecified(False), corners=_MIXED_CORNERS),
        Family("truths between two rows", sparse, "excess", 6, misspecified(True), corners=_MIXED_CORNERS),
        Family("exposure of a few tokens", frozenset(), "exposure", 5, exposure, cost=4),
    ]
