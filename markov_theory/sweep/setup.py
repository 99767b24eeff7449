"""From options, as flags or a file give them, to a sweep that can run: defaults, ranges, rows, and every check."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markov_theory.dictionary import Dictionary
from markov_theory.sweep import source
from markov_theory.sweep.axes import AXES, Value
from markov_theory.sweep.problems import PROBLEMS, Problem
from markov_theory.sweep.specification import Specification, fingerprint
from markov_theory.sweep.table import CellBounds

MEASUREMENT: dict[str, str] = {
    "estimators": "names", "bounds": "names", "truths": "whole", "trials": "whole", "reach": "real", "seed": "whole",
}  # fmt: skip
SOURCE: dict[str, str] = {"dictionary": "text", "context": "text", "model": "text", "text": "text"}
KIND_OPTIONS: dict[str, str] = {"family": "text", "exposure": "text", "radius": "real"}
MOST_MIXED = 32  # of the sweep over s that is made when nothing else is asked for
DESTINATION: dict[str, str] = {"name": "text", "out": "text"}
OPTIONS = {**dict.fromkeys(AXES, "range"), **MEASUREMENT, **SOURCE, **KIND_OPTIONS, **DESTINATION}


@dataclass(frozen=True, eq=False)
class Setup:
    """A sweep that was checked: what it measures, and where it goes.

    Attributes
    ----------
    specification : Specification
    problem : Problem
        The sweep's problem, with what the checks made of it.
    given : Dictionary or None
        Rows from a file or a model.
    bounds : CellBounds
    bound_names : tuple of str
    source : dict
        Options that say where given rows come from, files as paths: for a specification file.
    name : str
    out : Path
        Folder of the results.
    """

    specification: Specification
    problem: Problem
    given: Dictionary | None
    bounds: CellBounds
    bound_names: tuple[str, ...]
    source: dict[str, Any]
    name: str
    out: Path

    @property
    def slug(self) -> str:
        """The name as a folder can have it."""
        return _slug(self.name)


def set_up(options: Mapping[str, Any], folder: Path | None = None) -> Setup:
    """Turn options into a sweep that can run.

    Parameters
    ----------
    options : mapping
        Values by name, among `OPTIONS`; None and missing ones take their defaults.
    folder : Path, optional
        What relative paths of files of rows or text are relative to; by default the current folder.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        If anything is wrong; nothing is written before.
    """
    asked = {name: _typed(name, value) for name, value in options.items() if value is not None}
    kind = _kind(asked)
    origin = asked.get("dictionary", source.MADE)
    _refuse_what_does_not_apply(asked, kind, origin)
    ranges = {name: AXES[name].parse(asked[name]) for name in AXES if name in asked}
    given = None
    told: dict[str, Any] = {}
    if origin != source.MADE:
        model = {name: asked[name] for name in source.LLM_OPTIONS if name in asked}
        given = _given(origin, model, ranges, folder or Path())
        told = _told(origin, model, given, folder or Path())
    specification = _specification(kind, asked, ranges, given, origin)
    problem = specification.problem(given)
    for point in specification.points:
        problem.check(point)
    bound_names = asked.get("bounds", kind.default_bounds)
    bounds = CellBounds(specification, problem, bound_names)
    _try_once(bounds)
    name = asked.get("name", "")
    out = Path(asked.get("out") or Path("results") / f"{_slug(name) or 'sweep'}-{specification.short_name()}")
    return Setup(specification, problem, given, bounds, bound_names, told, name, out)


def _slug(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")


def _typed(name: str, value: Any) -> Any:
    """A value as its option wants it; lists stand for commas."""
    wanted = OPTIONS[name]
    if wanted in ("range", "names"):
        parts = value if isinstance(value, list | tuple) else [value]
        if not all(isinstance(part, str | int | float) and not isinstance(part, bool) for part in parts):
            raise TypeError(f"{name} must be a number, a text or a list of them, got {value!r}")
        text = ",".join(map(str, parts))
        return text if wanted == "range" else tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    kinds: dict[str, tuple[type, ...]] = {"whole": (int,), "real": (int, float), "text": (str, Path)}
    if not isinstance(value, kinds[wanted]) or isinstance(value, bool):
        raise TypeError(f"{name} must be a {'text' if wanted == 'text' else f'{wanted} number'}, got {value!r}")
    return value


def _kind(asked: Mapping[str, Any]) -> type[Problem]:
    """The kind of problem that the axes ask for; without any that does, the mixture."""
    chosen = {problem for problem in PROBLEMS.values() if any(axis in asked for axis in problem.selected_by)}
    if len(chosen) > 1:
        flags = sorted(AXES[axis].flag for problem in chosen for axis in problem.selected_by if axis in asked)
        raise ValueError(f"{' and '.join(flags)} are different kinds of problem: make a sweep of each")
    return chosen.pop() if chosen else PROBLEMS["mixture"]


def _refuse_what_does_not_apply(asked: Mapping[str, Any], kind: type[Problem], origin: str) -> None:
    made = origin == source.MADE or not kind.takes_rows
    axes = kind.axes if made else {name: 0 for name in kind.axes if name == "tokens" or not AXES[name].shapes_rows}
    own = kind.options if made else {name: 0 for name in kind.options if name != "family"}
    llm = {**source.LLM_OPTIONS, "outcomes": None} if origin == source.LLM else {}
    rows = {"dictionary"} if kind.takes_rows or origin == source.MADE else set()
    admissible = {*axes, *own, *llm, *rows, *MEASUREMENT, *DESTINATION}
    for name in asked:
        if name not in admissible:
            flag = "--" + name.replace("_", "-")
            if not kind.takes_rows or (made and name not in source.LLM_OPTIONS):
                raise ValueError(f"{flag} does not apply to {_words(kind)}")
            raise ValueError(f"{flag} does not apply to --dictionary {origin}: its rows are what they are")


def _words(kind: type[Problem]) -> str:
    return f"a sweep with {AXES[kind.selected_by[0]].flag}" if kind.selected_by else "a sweep of mixtures of rows"


def _given(origin: str, model: Mapping[str, Any], ranges: Mapping[str, tuple[Value, ...]], folder: Path) -> Dictionary:
    """The rows of a file, or of a language model's table with as many rows as the largest point has."""
    tokens, outcomes = ranges.get("tokens", (source.LLM_TOKENS,)), ranges.get("outcomes", (source.LLM_OUTCOMES,))
    if len(outcomes) > 1:
        raise ValueError("--outcomes takes one value with --dictionary llm: the model's rows are what they are")
    return source.given_rows(origin, model, int(tokens[-1] or 0), int(outcomes[0] or 0), folder)


def _told(origin: str, model: Mapping[str, Any], given: Dictionary, folder: Path) -> dict[str, Any]:
    """Where given rows come from, in full."""
    if origin != source.LLM:
        return {"dictionary": folder / origin}
    told = {"dictionary": origin, **source.LLM_OPTIONS, **model, "outcomes": given.n_outcomes}
    return told | ({"text": folder / told["text"]} if told["text"] is not None else {})


def _try_once(bounds: CellBounds) -> None:
    """Make every estimator and evaluate every bound at the first truth, so that what cannot work is said at once."""
    specification = bounds.specification
    for name in specification.estimators:
        try:
            bounds.of((specification.points[0], 0, name))
        except RuntimeError as error:
            raise ValueError(str(error)) from None


def _specification(
    kind: type[Problem],
    asked: Mapping[str, Any],
    ranges: Mapping[str, tuple[Value, ...]],
    given: Dictionary | None,
    origin: str,
) -> Specification:
    axes: dict[str, tuple[Value, ...]] = {name: (value,) for name, value in kind.axes.items()}
    if given is not None:
        axes = {name: values for name, values in axes.items() if not AXES[name].shapes_rows}
        axes["tokens"] = (given.n_tokens,)
    if kind is PROBLEMS["mixture"] and all(len(values) == 1 for name, values in ranges.items() if name != "s"):
        axes["s"] = tuple(range(1, min(MOST_MIXED, int(ranges.get("tokens", axes["tokens"])[0] or 0)) + 1))
    grid = {name: ranges.get(name, axes[name]) for name in AXES if name in axes}
    own = {name: asked.get(name, default) for name, default in kind.options.items()}
    if given is not None:
        own.pop("family", None)
    truths, trials = (3, 256) if origin == source.LLM else (5, 16384)
    return Specification(
        kind=kind.name,
        grid=tuple(grid.items()),
        options=tuple(own.items()),
        rows="" if given is None else fingerprint(given),
        estimators=asked.get("estimators", kind.default_estimators),
        truths=asked.get("truths", truths),
        trials=asked.get("trials", trials),
        seed=asked.get("seed", 0),
        reach=float(asked.get("reach", 1.0)),
    )
