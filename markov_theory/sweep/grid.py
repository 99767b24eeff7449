"""Ranges on the command line: ``1..32``, ``1,2,4``, ``1..32:4``, ``1e-5,1e-4``, ``1e-6..1e-3*10``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import overload

NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
PART = re.compile(rf"({NUMBER})(?:\.\.({NUMBER})(?:([:*])({NUMBER}))?)?")
MOST_VALUES = 10_000
WRITTEN = "a range is written 1..32, 1,2,4, 1..32:4 (step), 1e-5,1e-4 or 1e-6..1e-3*10 (factor)"


@overload
def parse_range(text: str) -> tuple[int, ...]: ...
@overload
def parse_range(text: str, kind: type[int]) -> tuple[int, ...]: ...
@overload
def parse_range(text: str, kind: type[float]) -> tuple[float, ...]: ...
def parse_range(text: str, kind: type[int] | type[float] = int) -> tuple[int | float, ...]:
    """Return the increasing numbers that `text` names.

    Parameters
    ----------
    text : str
        Parts separated by commas: a number; ``a..b``, whole numbers, both ends included; ``a..b:step``;
        ``a..b*factor``, geometric. The last value is the largest one that is at most b.
    kind : {int, float}
        Whole numbers or real ones. A range of real numbers needs its step or factor.

    Raises
    ------
    ValueError
        If a part is none of these, a range is empty, or there are more than 10,000 values.

    Examples
    --------
    >>> parse_range("1..4"), parse_range("1,2,4"), parse_range("1..9:4"), parse_range("64..512*2")
    ((1, 2, 3, 4), (1, 2, 4), (1, 5, 9), (64, 128, 256, 512))
    >>> parse_range("1e-6..1e-3*10", float), parse_range("0.1..0.3:0.1", float)
    ((1e-06, 1e-05, 0.0001, 0.001), (0.1, 0.2, 0.3))
    """
    values: set[Decimal] = set()
    for part in text.split(","):
        match = PART.fullmatch(part.strip())
        if not match:
            raise ValueError(f"{WRITTEN}, got {text!r}")
        values.update(_part(part.strip(), match, kind))
        if len(values) > MOST_VALUES:
            raise ValueError(f"the range {text!r} has more than {MOST_VALUES:,} values")
    if kind is int and any(value != int(value) for value in values):
        raise ValueError(f"whole numbers are wanted here: {WRITTEN}, got {text!r}")
    return tuple(sorted(kind(value) for value in values))


def _part(part: str, match: re.Match[str], kind: type) -> list[Decimal]:
    """Values of one part, in exact decimal arithmetic, so that 0.1..0.3:0.1 ends at 0.3."""
    first, last, sign, step = match.groups()
    low = Decimal(first)
    if last is None:
        return [low]
    if step is None and kind is float:
        raise ValueError(f"the range {part!r} of real numbers needs a step (0.1..0.5:0.1) or a factor (1e-6..1e-3*10)")
    high, by, geometric = Decimal(last), Decimal(step or 1), sign == "*"
    if high < low or (by <= 1 if geometric else by <= 0) or (geometric and low == 0):
        raise ValueError(
            f"the range {part!r} is empty: write the smaller number first, a step > 0, a factor > 1 from above 0"
        )
    values = [low]
    while (following := values[-1] * by if geometric else values[-1] + by) <= high:
        values.append(following)
        if len(values) > MOST_VALUES:
            raise ValueError(f"the range {part!r} has more than {MOST_VALUES:,} values")
    return values


def thinned(values: Sequence[float], ratio: float = 1.4) -> tuple[float, ...]:
    """Keep the first and the last value and, between them, steps of at least `ratio`.

    Examples
    --------
    >>> thinned(tuple(range(1, 33)))
    (1, 2, 3, 5, 7, 10, 14, 20, 32)
    """
    kept = [values[0]]
    for value in values[1:-1]:
        if value >= ratio * kept[-1] and values[-1] >= 1.15 * value:
            kept.append(value)
    return tuple(dict.fromkeys([*kept, values[-1]]))
