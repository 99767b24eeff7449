"""Validation at the boundary: what comes in is a law, a row-stochastic matrix or a count, or an error says why not.

Nothing is clipped, and nothing is renormalised beyond rounding: rows whose sum is within ``SUM_TOLERANCE``
of one (as single-precision softmax rows are) are divided by it in double precision; any other sum is refused.
"""

from __future__ import annotations

import operator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]

SUM_TOLERANCE = 1e-6
MAX_SAMPLES = 2**53  # beyond it a count is not exact in double precision


def as_laws(values: ArrayLike, name: str = "law") -> Array:
    """Return `values` as float64 laws along the last axis, shape (..., J), each summing to one.

    Raises
    ------
    ValueError
        If an entry is negative or not finite, there is no outcome, or a sum is off by more than 1e-6.
    TypeError
        If `values` is not numeric.
    """
    laws = _as_float(values, name)
    if laws.ndim == 0 or laws.shape[-1] == 0:
        raise ValueError(f"{name} must have at least one outcome, got shape {laws.shape}")
    if not np.isfinite(laws).all():
        raise ValueError(f"{name} must be finite, got {_first(laws, ~np.isfinite(laws))}")
    if (laws < 0).any():
        raise ValueError(f"{name} must be non-negative, got {_first(laws, laws < 0)}")
    sums = laws.sum(axis=-1, keepdims=True)
    off = np.abs(sums - 1) > SUM_TOLERANCE
    if off.any():
        raise ValueError(
            f"{name} must sum to 1 (within {SUM_TOLERANCE:g}), got {_first(sums, off)}; "
            "divide by the sum yourself if that is what you mean"
        )
    return np.ascontiguousarray(laws / sums)


def as_transitions(values: ArrayLike, name: str = "transitions") -> Array:
    """Return `values` as a row-stochastic (T, J) float64 matrix; T, J ≥ 1.  Raises as `as_laws` does."""
    rows = _as_float(values, name)
    if rows.ndim != 2 or rows.shape[0] == 0:
        raise ValueError(f"{name} must be a (T, J) matrix with T, J >= 1, got shape {rows.shape}")
    return as_laws(rows, name)


def as_counts(values: ArrayLike, n_outcomes: int, name: str = "counts") -> Array:
    """Return whole, non-negative counts as float64, shape (J,) or (R, J) with J = `n_outcomes`.

    Raises
    ------
    ValueError
        If the shape does not fit, an entry is negative, fractional or not finite, or a total exceeds 2**53.
    """
    counts = _as_float(values, name)
    if counts.ndim not in (1, 2) or counts.shape[-1] != n_outcomes:
        raise ValueError(
            f"{name} must have shape ({n_outcomes},) or (R, {n_outcomes}) to match the dictionary's "
            f"{n_outcomes} outcomes, got {counts.shape}"
        )
    bad = ~np.isfinite(counts) | (counts < 0) | (counts != np.floor(counts))
    if bad.any():
        raise ValueError(f"{name} must be whole numbers >= 0, got {_first(counts, bad)}")
    if (counts.sum(axis=-1) > MAX_SAMPLES).any():
        raise ValueError(f"{name} must total at most 2**53, got {counts.sum(axis=-1).max():g}")
    return counts


def whole(value: Any, name: str, *, low: int = 0, high: int | None = None) -> int:
    """Return `value` as an int in [low, high].  Raises TypeError (not whole) or ValueError (out of range)."""
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if number < low or (high is not None and number > high):
        limit = f"in [{low}, {high}]" if high is not None else f">= {low}"
        raise ValueError(f"{name} must be {limit}, got {number}")
    return number


def positive(value: Any, name: str) -> float:
    """Return `value` as a finite float > 0.  Raises TypeError or ValueError."""
    number = _real(value, name)
    if not (np.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {number:g}")
    return number


def open_unit(value: Any, name: str) -> float:
    """Return `value` as a float strictly between 0 and 1.  Raises TypeError or ValueError."""
    number = _real(value, name)
    if not 0 < number < 1:
        raise ValueError(f"{name} must lie strictly between 0 and 1, got {number:g}")
    return number


def _real(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    return float(value)


def _as_float(values: ArrayLike, name: str) -> Array:
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers, got {type(values).__name__}") from None


def _first(values: Array, bad: NDArray[np.bool_]) -> str:
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    place = ", ".join(map(str, where))
    return f"{values[where]:g} at index {place}"
