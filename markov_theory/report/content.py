"""What a page is made of: parts, one a result, with their verdicts, figures and tables. Nothing here knows HTML."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markov_theory.plan.simulation import CONFIRMED, NOT_SIMULATED, REFUTED
from markov_theory.verify.verdict import FAILED, HOLDS, SILENT, VIOLATED

GOOD, BAD, UNSURE, NEUTRAL = "good", "bad", "unsure", "neutral"
UNJUDGED, UNTRIED = "promises nothing", "speaks of none"
TONES = {
    **dict.fromkeys((HOLDS, CONFIRMED), GOOD),
    **dict.fromkeys((VIOLATED, FAILED, REFUTED), BAD),
    **dict.fromkeys((SILENT, UNJUDGED, UNTRIED, NOT_SIMULATED), NEUTRAL),
}
WRITTEN_OUT = 1e9  # from here on only whole numbers are
EXACT = 1e15  # from here on they are not either


class Cell(NamedTuple):
    """One cell: what is shown, the exact text (what it is sorted by), and whether it is a verdict of some tone."""

    text: str
    exact: str
    tone: str = ""


class Column(NamedTuple):
    """A heading, what it means, and whether the column holds numbers."""

    name: str
    meaning: str = ""
    numeric: bool = False


@dataclass(frozen=True)
class Table:
    """A table that the page lets its reader sort.

    Attributes
    ----------
    caption : str
    columns : tuple of Column
    rows : tuple of tuple of Cell
    folded : bool
        Whether it is long, and unfolded on request.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    folded: bool = False


@dataclass(frozen=True)
class Figure:
    """A picture as a data URI, its width (CSS pixels), and the words for those who do not see it."""

    uri: str
    width: int
    alt: str
    caption: str


@dataclass(frozen=True)
class Part:
    """What a page tells of one result.

    Attributes
    ----------
    name, kind : str
        The heading, and what made the result.
    verdict : Cell
        Of the whole.
    summary : str
        In a sentence.
    date : str
        When it was made, ``""`` if that was not recorded.
    warnings : tuple of str
        What is not as it should be: an unfinished sweep, failed cells.
    verdicts : tuple of Table
    errors : tuple of str
        With which probability the verdicts are wrong.
    figures : tuple of Figure
    fits, tables, runs : tuple of Table
    facts : tuple of (term, text)
        Provenance.
    files : tuple of (name, text)
        Specifications, word for word.
    commands : tuple of (words, command)
        How to make it again.
    """

    name: str
    kind: str
    verdict: Cell
    summary: str
    date: str = ""
    warnings: tuple[str, ...] = ()
    verdicts: tuple[Table, ...] = ()
    errors: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    fits: tuple[Table, ...] = ()
    tables: tuple[Table, ...] = ()
    runs: tuple[Table, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    commands: tuple[tuple[str, str], ...] = ()


def verdict_cell(verdict: str) -> Cell:
    """A verdict with its tone; what is not known to be good, bad or neither is unsure."""
    return Cell(verdict, verdict, TONES.get(verdict, UNSURE))


def plain(value: Any) -> Cell:
    """A value as text: numbers in short, lists by their parts, nothing for None and NaN.

    Examples
    --------
    >>> plain(1234567.0).text, plain(0.123456).text, plain("inf").text, plain(True).text, plain(None).text
    ('1,234,567', '0.1235', '∞', 'yes', '')
    >>> plain("0.123456").exact
    '0.123456'
    """
    if value is None:
        return Cell("", "")
    if isinstance(value, list | tuple):
        value = ", ".join(map(str, value))
    exact = str(value)
    if exact in ("True", "False"):
        return Cell("yes" if exact == "True" else "no", exact)
    number = as_number(exact)
    if number is None:
        return Cell(exact, exact)
    return Cell("", "") if math.isnan(number) else Cell(shown(number), exact)


def as_number(text: str) -> float | None:
    """The number that a text is, None if it is none."""
    if "_" in text:  # which Python's own reading admits
        return None
    try:
        return float(text)
    except ValueError:
        return None


def shown(number: float) -> str:
    """Write a number for a reader: large ones to the unit, as long as that is short, others in four digits.

    Examples
    --------
    >>> shown(-1.0), shown(12345.6), shown(1e18), shown(1e-05), shown(2.0 / 3)
    ('−1', '12,346', '1e+18', '1e-05', '0.6667')
    """
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    whole = number == int(number) and abs(number) < EXACT
    text = f"{number:,.0f}" if whole or 1000 <= abs(number) < WRITTEN_OUT else f"{number:.4g}"
    return text.replace("-", "−", 1) if text.startswith("-") else text


def table(
    caption: str,
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    meanings: Mapping[str, str] | None = None,
    folded: bool = False,
) -> Table:
    """Make a table; a column whose every value is a number, or missing, is one of numbers.

    Parameters
    ----------
    caption : str
    names : sequence of str
        Headings.
    rows : iterable of sequences
        Values, or `Cell`.
    meanings : mapping of str to str, optional
        Of headings.
    folded : bool
    """
    cells = tuple(tuple(v if isinstance(v, Cell) else plain(v) for v in row) for row in rows)
    columns = []
    for i, name in enumerate(names):
        held = [row[i].exact for row in cells if row[i].exact]
        numeric = bool(held) and all(as_number(text) is not None for text in held)
        columns.append(Column(name, (meanings or {}).get(name, ""), numeric))
    return Table(caption, tuple(columns), cells, folded)


def count(number: int, noun: str) -> str:
    """A number of things.

    Examples
    --------
    >>> count(1, "cell"), count(2000, "cell")
    ('1 cell', '2,000 cells')
    """
    return f"{number:,} {noun}{'s' * (number != 1)}"
