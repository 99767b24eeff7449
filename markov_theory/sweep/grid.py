"""Ranges on the command line: ``1..32``, ``1,2,4``, ``1..32:4``."""

from __future__ import annotations

import re

PATTERN = re.compile(r"(\d+)(?:\.\.(\d+)(?::(\d+))?)?")
MOST_VALUES = 10_000


def parse_range(text: str) -> tuple[int, ...]:
    """Return the increasing whole numbers that `text` names.

    Parameters
    ----------
    text : str
        Parts separated by commas: a number; ``a..b``, both ends included; ``a..b:step``.

    Raises
    ------
    ValueError
        If a part is none of these, a range is empty, or there are more than 10,000 values.

    Examples
    --------
    >>> parse_range("1..4"), parse_range("1,2,4"), parse_range("1..9:4")
    ((1, 2, 3, 4), (1, 2, 4), (1, 5, 9))
    """
    values: set[int] = set()
    for part in text.split(","):
        match = PATTERN.fullmatch(part.strip())
        if not match:
            raise ValueError(f"a range is written 1..32, 1,2,4 or 1..32:4, got {text!r}")
        first = int(match[1])
        last = int(match[2]) if match[2] else first
        step = int(match[3]) if match[3] else 1
        if last < first or step < 1:
            raise ValueError(f"the range {part.strip()!r} is empty: write the smaller number first and a step >= 1")
        if (last - first) // step >= MOST_VALUES:
            raise ValueError(f"the range {part.strip()!r} has more than {MOST_VALUES:,} values")
        values.update(range(first, last + 1, step))
    return tuple(sorted(values))


def thinned(values: tuple[int, ...], ratio: float = 1.4) -> tuple[int, ...]:
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
