"""Hypothesis strategies, all of the suite: laws, dictionaries, planted truths and problems, with degenerate corners."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from markov_theory.dictionary import Dictionary
from markov_theory.divergences import largest_kl
from markov_theory.instance import Instance

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Whole = st.SearchStrategy[int]
OUTCOMES, FEW_OUTCOMES = st.integers(2, 5), st.integers(2, 4)
MANY_OR_ONE, THREE_OR_FOUR = st.integers(1, 5), st.integers(3, 4)


@st.composite
def laws(draw: st.DrawFn, n_outcomes: int, zeros: bool = False, top: int = 9) -> Array:
    """A law with small whole-number odds, so that exact ties between laws happen."""
    odds = draw(st.lists(st.integers(0 if zeros else 1, top), min_size=n_outcomes, max_size=n_outcomes))
    if not any(odds):
        odds[draw(st.integers(0, n_outcomes - 1))] = 1
    return np.array(odds) / sum(odds)


@st.composite
def distinct_rows(
    draw: st.DrawFn, n_tokens: st.SearchStrategy[int], n_outcomes: st.SearchStrategy[int], zeros: bool = False
) -> Array:
    """Rows no two of which are equal, shape (T, J)."""
    T, J = draw(n_tokens), draw(n_outcomes)
    rows = draw(st.lists(laws(J, zeros), min_size=T, max_size=T, unique_by=lambda law: tuple(np.round(law, 9))))
    return np.array(rows)


@st.composite
def ordinary(draw: st.DrawFn, n_outcomes: Whole = OUTCOMES) -> Array:
    """Positive rows with real odds, T up to 6 and J up to 5."""
    T, J = draw(st.integers(2, 6)), draw(n_outcomes)
    odds = draw(st.lists(st.floats(0.05, 20), min_size=T * J, max_size=T * J))
    return _normalised(np.reshape(odds, (T, J)))


@st.composite
def near_duplicates(draw: st.DrawFn, n_outcomes: Whole = OUTCOMES) -> Array:
    """Rows of which two differ by a relative 1e-7 … 1e-2."""
    rows = draw(ordinary(n_outcomes))
    size = 10.0 ** -draw(st.integers(2, 7))
    twist = np.where(np.arange(rows.shape[1]) % 2 == 0, 1 + size, 1 - size / 2)
    return _normalised(np.vstack([rows, rows[0] * twist]))


@st.composite
def duplicates(draw: st.DrawFn, n_outcomes: Whole = OUTCOMES) -> Array:
    """Rows of which two are the same, and perhaps all: then c = 1."""
    rows = draw(ordinary(n_outcomes))
    return rows[[0] * len(rows)] if draw(st.booleans()) else np.vstack([rows, rows[0]])


@st.composite
def redundant(draw: st.DrawFn, n_outcomes: Whole = OUTCOMES) -> Array:
    """Rows of which one is a mixture of two others: weights are not identifiable."""
    rows = draw(ordinary(n_outcomes))
    share = draw(st.sampled_from([0.5, 0.25]))
    return np.vstack([rows, share * rows[0] + (1 - share) * rows[1]])


@st.composite
def with_zeros(draw: st.DrawFn, n_outcomes: Whole = THREE_OR_FOUR) -> Array:
    """Rows with outcomes that only some of them can give, so that c = ∞ (or a column is dead)."""
    return draw(distinct_rows(st.integers(2, 5), n_outcomes, zeros=True))


@st.composite
def nearly_flat(draw: st.DrawFn, n_outcomes: Whole = OUTCOMES) -> Array:
    """Density ratio c within 1e-7 … 1e-3 of one."""
    size = 10.0 ** -draw(st.integers(3, 7))
    return _normalised(1 + size * draw(ordinary(n_outcomes)))


@st.composite
def huge_ratio(draw: st.DrawFn, n_outcomes: Whole = OUTCOMES) -> Array:
    """A finite density ratio of up to 1e300."""
    rows = draw(ordinary(n_outcomes))
    rows[0, 0] = 10.0 ** -draw(st.integers(9, 300))
    return _normalised(rows)


@st.composite
def more_rows_than_outcomes(draw: st.DrawFn) -> Array:
    """T > J = 2."""
    return draw(distinct_rows(st.integers(3, 7), st.just(2)))


def single_row(n_outcomes: Whole = MANY_OR_ONE) -> st.SearchStrategy[Array]:
    """T = 1."""
    return n_outcomes.flatmap(laws).map(lambda law: law[None, :])


def dictionaries(single: bool = True) -> st.SearchStrategy[Array]:
    """Any of the above, shape (T, J)."""
    kinds = [
        ordinary(),
        near_duplicates(),
        with_zeros(),
        nearly_flat(),
        huge_ratio(),
        more_rows_than_outcomes(),
    ]
    return st.one_of(*kinds, single_row()) if single else st.one_of(*kinds)


def positive_dictionaries() -> st.SearchStrategy[Array]:
    """Those whose density ratio is finite."""
    return st.one_of(ordinary(), near_duplicates(), nearly_flat(), huge_ratio(), more_rows_than_outcomes())


def failure_levels(high: float = 0.99) -> st.SearchStrategy[float]:
    """A failure probability δ, small or not."""
    return st.one_of(st.floats(1e-12, high), st.sampled_from([1e-6, 0.01, 0.05, 0.2]))


def accuracies() -> st.SearchStrategy[float]:
    """An accuracy ε in nats, over ten decades."""
    return st.floats(-9, 1).map(lambda exponent: 10.0**exponent)


class Planted(NamedTuple):
    """A truth, with the class and the accuracy that a statement is tried at."""

    instance: Instance
    sparsity: int  # s of the class, at least that of the truth
    epsilon: float
    delta: float


def corners(n_outcomes: Whole = FEW_OUTCOMES) -> dict[str, st.SearchStrategy[Array]]:
    """Rows by what is special about them; every corner on which a statement about rows may break."""
    return {
        "ordinary": ordinary(n_outcomes),
        "near-duplicates": near_duplicates(n_outcomes),
        "duplicates": duplicates(n_outcomes),
        "not identifiable": redundant(n_outcomes),
        "c near 1": nearly_flat(n_outcomes),
        "c huge": huge_ratio(n_outcomes),
        "c infinite": with_zeros(n_outcomes),
        "T > J": more_rows_than_outcomes(),
        "one row": single_row(n_outcomes),
    }


@st.composite
def weights(draw: st.DrawFn, n_tokens: int) -> Array:
    """Weights of T rows: one row, some, all; equal, by small odds, or next to a face (down to 1e-300)."""
    s = draw(st.one_of(st.sampled_from([1, n_tokens]), st.integers(1, n_tokens)))
    used = draw(st.permutations(range(n_tokens)))[:s]
    given = draw(st.one_of(st.just(np.full(s, 1 / s)), laws(s)))
    if s > 1 and draw(st.booleans()):
        given = np.append(given[:-1], 10.0 ** -draw(st.sampled_from([2, 5, 9, 16, 300])))
    alpha = np.zeros(n_tokens)
    alpha[used] = given
    return alpha / alpha.sum()


@st.composite
def planted(draw: st.DrawFn, rows: st.SearchStrategy[Array]) -> Planted:
    """A truth over `rows`; s from its own up to T + 1; ε over ten decades, or at the largest KL that c allows."""
    P = draw(rows)
    instance = Instance(Dictionary(P), draw(weights(len(P))))
    s = draw(st.one_of(st.just(instance.sparsity), st.integers(instance.sparsity, len(P) + 1)))
    epsilon, largest = draw(accuracies()), largest_kl(instance.density_ratio)
    if 1e-12 < largest < math.inf and draw(st.integers(0, 3)) == 0:
        epsilon = largest * draw(st.sampled_from([0.5, 1 - 1e-9, 1.0, 1.5]))
    return Planted(instance, s, epsilon, draw(failure_levels(0.6)))


def instances(n_outcomes: Whole = FEW_OUTCOMES) -> st.SearchStrategy[Planted]:
    """Planted truths over all corners: also α on a face, s = 1, s = T, and ε for which N = 0."""
    return st.one_of([planted(rows) for rows in corners(n_outcomes).values()])


@st.composite
def sparse_truths(draw: st.DrawFn, n_tokens: int = 4) -> tuple[Array, Array, int]:
    """Rows over three outcomes, weights of one or two of them, and s = 1 or 2 at least as large."""
    rows = draw(distinct_rows(st.integers(2, n_tokens), st.just(3), zeros=True))
    s = draw(st.integers(1, 2))
    alpha = np.zeros(rows.shape[0])
    mixed = draw(st.integers(1, s))
    alpha[:mixed] = draw(laws(mixed, top=3))
    return rows, alpha, s


@st.composite
def exposures(draw: st.DrawFn) -> tuple[Array, IntArray]:
    """Rates of one to four new tokens, some of them 0, and how often each is to be seen."""
    m = draw(st.integers(1, 4))
    rates = draw(laws(m + 1, zeros=True))[:m]  # the last share is that of old tokens
    return rates, np.array(draw(st.lists(st.integers(0, 6), min_size=m, max_size=m)))


@st.composite
def counted_dictionaries(draw: st.DrawFn) -> tuple[Array, IntArray, int]:
    """Any rows, counts of outcomes that they can give, and s."""
    rows = draw(dictionaries())
    counts = draw(st.lists(st.integers(0, 20), min_size=rows.shape[1], max_size=rows.shape[1]))
    possible = np.array(counts) * (rows.max(axis=0) > 0)
    if not possible.any():
        possible = (rows.max(axis=0) > 0).astype(int)
    return rows, possible, draw(st.integers(1, len(rows)))


@st.composite
def point_mixtures(draw: st.DrawFn) -> tuple[Array, Array]:
    """Small whole-number points, so that they are often dependent, and weights that may be 0."""
    n, d = draw(st.integers(1, 9)), draw(st.integers(0, 4))
    points = draw(st.lists(st.lists(st.integers(-2, 2), min_size=d, max_size=d), min_size=n, max_size=n))
    return np.array(points, dtype=float).reshape(n, d), draw(laws(n, zeros=True))


@st.composite
def atoms_and_targets(draw: st.DrawFn) -> tuple[Array, Array]:
    """Small whole-number atoms with duplicates, multiples, zeros and atoms that are not finite, and targets."""
    T, d, R = draw(st.integers(1, 8)), draw(st.integers(1, 4)), draw(st.integers(1, 3))
    entry = st.integers(-3, 3)
    atoms = np.array(draw(st.lists(entry, min_size=T * d, max_size=T * d)), dtype=float).reshape(T, d)
    for row in range(T):
        kind = draw(st.sampled_from(["plain", "plain", "double", "near", "nan", "infinite", "tiny", "huge"]))
        if kind == "double":
            atoms[row] = -2 * atoms[draw(st.integers(0, T - 1))]
        if kind == "near":
            atoms[row] = atoms[draw(st.integers(0, T - 1))] + 10.0 ** -draw(st.integers(4, 12)) * atoms[row]
        atoms[row] *= {"tiny": 1e-150, "huge": 1e120}.get(kind, 1.0)
        if kind in ("nan", "infinite"):
            atoms[row, 0] = float(kind[:3])
    if not (np.isfinite(atoms).all(axis=1) & (atoms != 0).any(axis=1)).any():
        atoms[0] = 1.0
    targets = np.array(draw(st.lists(entry, min_size=R * d, max_size=R * d)), dtype=float).reshape(R, d)
    return atoms, targets


def _normalised(rows: Array) -> Array:
    return rows / rows.sum(axis=1, keepdims=True)
