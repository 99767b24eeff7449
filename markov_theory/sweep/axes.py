"""What can be swept: the axes with their words and units, and the setting of one cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from markov_theory import _checks
from markov_theory.sweep.grid import parse_range

Value = int | float | None
LARGEST = "largest"  # how the margin that nobody asked for is written
MOST_TRUTHS = 1_000_000  # at a point


def _count(value: Any, name: str) -> int:
    """Admit a whole number from 1 on."""
    return _checks.whole(value, name, low=1)


def _portion(value: Any, name: str) -> float:
    """Admit a share in [0, 1)."""
    return float(value) if value == 0 else _checks.open_unit(value, name)


@dataclass(frozen=True)
class Axis:
    """A number that a sweep can vary.

    Attributes
    ----------
    name : str
        In tables and specifications; its flag has dashes for underscores.
    symbol, words, unit : str
        For labels; unit ``""``: a pure number.
    admit : callable
        Raises ValueError or TypeError, naming the value, unless a cell can have it.
    whole : bool
        Whole numbers; else real ones.
    log : bool
        Whether it is drawn on a logarithmic scale.
    shapes_rows : bool
        Whether the dictionary changes with it.
    """

    name: str
    symbol: str
    words: str
    unit: str = ""
    admit: Callable[[Any, str], Any] = _count
    whole: bool = True
    log: bool = False
    shapes_rows: bool = False

    @property
    def flag(self) -> str:
        """As on the command line."""
        return "--" + self.name.replace("_", "-")

    @property
    def label(self) -> str:
        """For a figure's axis, for example ``accuracy ε (nats)``."""
        return f"{self.words} {self.symbol}" + (f" ({self.unit})" if self.unit else "")

    @property
    def heading(self) -> str:
        """For a column, for example ``ε (nats)``."""
        return self.symbol + (f" ({self.unit})" if self.unit else "")

    def parse(self, text: str) -> tuple[Value, ...]:
        """Return the values that `text` names.  Raises ValueError or TypeError saying what is admissible."""
        try:
            values = parse_range(text, int if self.whole else float)
        except ValueError as error:
            raise ValueError(f"{self.flag}: {error}") from None
        for value in values:
            self.admit(value, self.name)
        return values


def _real(name: str, symbol: str, words: str, unit: str = "", **options: Any) -> Axis:
    usual: dict[str, Any] = {"admit": _checks.positive, "whole": False, "log": True}
    return Axis(name, symbol, words, unit, **usual | options)


AXES: dict[str, Axis] = {
    axis.name: axis
    for axis in (
        Axis("s", "s", "mixed rows"),
        _real("gamma", "γ", "margin", "nats", shapes_rows=True),
        _real("ratio", "c", "density ratio", shapes_rows=True),
        Axis("tokens", "T", "rows", log=True, shapes_rows=True),
        Axis("outcomes", "J", "outcomes", log=True, shapes_rows=True),
        _real("epsilon", "ε", "accuracy", "nats"),
        _real("delta", "δ", "failure probability", admit=_checks.open_unit),
        _real("misfit", "τ", "misfit", admit=_portion, log=False),
        Axis("new_tokens", "m", "new tokens", log=True),
        Axis("dim", "d", "dimension", log=True, shapes_rows=True),
        Axis("order", "K", "order", shapes_rows=True),
        Axis("branching", "b", "successors of a context", shapes_rows=True),
    )
}


@dataclass(frozen=True)
class Point:
    """The setting of one cell: a value for every axis that its kind of problem has.

    Examples
    --------
    >>> point = Point.of({"s": 4, "gamma": None, "epsilon": 1e-05})
    >>> str(point), point["s"]
    ('s=4 gamma=largest epsilon=1e-05', 4)
    """

    setting: tuple[tuple[str, Value], ...]

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> Point:
        """The point with these values, in the order of `AXES`."""
        return cls(tuple((name, values[name]) for name in AXES if name in values))

    def __getitem__(self, axis: str) -> Any:
        """The value on an axis.  Raises KeyError if the kind of problem has no such axis."""
        for name, value in self.setting:
            if name == axis:
                return value
        raise KeyError(axis)

    def __contains__(self, axis: str) -> bool:
        """Whether the point has a value on this axis."""
        return any(name == axis for name, _ in self.setting)

    def without(self, *axes: str) -> Point:
        """The point without its values on some axes."""
        return Point(tuple(pair for pair in self.setting if pair[0] not in axes))

    def __str__(self) -> str:
        """The key of the point: in the store, and on screen."""
        return " ".join(f"{name}={as_text(value)}" for name, value in self.setting)


def as_text(value: Value) -> str:
    """Write a value so that it can be read back exactly: 4, 1e-05, 100.

    Examples
    --------
    >>> as_text(4), as_text(1e-5), as_text(100.0), as_text(None)
    ('4', '1e-05', '100', 'largest')
    """
    plain = getattr(value, "item", lambda: value)()  # numbers from tables are numpy's
    return LARGEST if plain is None else repr(plain).removesuffix(".0")


def range_text(values: tuple[Value, ...]) -> str:
    """Write values as a range that `parse_range` reads.

    Examples
    --------
    >>> range_text((1, 2, 3, 4)), range_text((1, 2, 4)), range_text((1e-05,))
    ('1..4', '1,2,4', '1e-05')
    """
    whole = [value for value in values if isinstance(value, int)]
    if len(whole) == len(values) > 2 and whole == list(range(whole[0], whole[-1] + 1)):
        return f"{whole[0]}..{whole[-1]}"
    return ",".join(as_text(value) for value in values)
