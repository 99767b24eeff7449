"""Hypothesis strategies for laws and dictionaries of rows, degenerate corners included."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
def ordinary(draw: st.DrawFn) -> Array:
    """Positive rows with real odds, T up to 6 and J up to 5."""
    T, J = draw(st.integers(2, 6)), draw(st.integers(2, 5))
    odds = draw(st.lists(st.floats(0.05, 20), min_size=T * J, max_size=T * J))
    return _normalised(np.reshape(odds, (T, J)))


@st.composite
def near_duplicates(draw: st.DrawFn) -> Array:
    """Rows of which two differ by a relative 1e-7 … 1e-2."""
    rows = draw(ordinary())
    size = 10.0 ** -draw(st.integers(2, 7))
    twist = np.where(np.arange(rows.shape[1]) % 2 == 0, 1 + size, 1 - size / 2)
    return _normalised(np.vstack([rows, rows[0] * twist]))


@st.composite
def with_zeros(draw: st.DrawFn) -> Array:
    """Rows with outcomes that only some of them can give, so that c = ∞ (or a column is dead)."""
    return draw(distinct_rows(st.integers(2, 5), st.integers(3, 4), zeros=True))


@st.composite
def nearly_flat(draw: st.DrawFn) -> Array:
    """Density ratio c within 1e-7 … 1e-3 of one."""
    size = 10.0 ** -draw(st.integers(3, 7))
    return _normalised(1 + size * draw(ordinary()))


@st.composite
def huge_ratio(draw: st.DrawFn) -> Array:
    """A finite density ratio of up to 1e300."""
    rows = draw(ordinary())
    rows[0, 0] = 10.0 ** -draw(st.integers(9, 300))
    return _normalised(rows)


@st.composite
def more_rows_than_outcomes(draw: st.DrawFn) -> Array:
    """T > J = 2."""
    return draw(distinct_rows(st.integers(3, 7), st.just(2)))


def single_row() -> st.SearchStrategy[Array]:
    """T = 1."""
    return st.integers(1, 5).flatmap(laws).map(lambda law: law[None, :])


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


def _normalised(rows: Array) -> Array:
    return rows / rows.sum(axis=1, keepdims=True)
