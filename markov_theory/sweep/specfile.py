"""Sweeps in a file (TOML): one at the top level, or several as ``[[sweep]]`` tables, which share what stands above."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

from markov_theory.sweep.axes import range_text
from markov_theory.sweep.setup import OPTIONS, Setup

HEADER = """\
# A sweep. To run it again, or to go on with it: python -m markov_theory.sweep --spec THIS_FILE --out {out}
"""


def read_sweeps(path: Path) -> list[dict[str, Any]]:
    """Return the options of each sweep in a file.

    Parameters
    ----------
    path : Path
        TOML. Keys are the flags' names, with underscores or dashes; a range is a number, a list, or a text such as
        ``"1..32"``. Tables ``[[sweep]]`` are sweeps of their own, for which the keys at the top level are defaults.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is no TOML, or it has a key that is not an option.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no specification file {path}")
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    sweeps = read.pop("sweep", None)
    if sweeps is not None and not (isinstance(sweeps, list) and all(isinstance(one, dict) for one in sweeps)):
        raise ValueError(f"{path}: sweep must be tables, each headed [[sweep]]")
    shared = _options(read, path)
    options = [shared | _options(one, path) for one in sweeps] if sweeps is not None else [shared]
    names = [one["name"] for one in options if "name" in one]
    if len(set(names)) < len(names):
        raise ValueError(f"{path}: sweeps must have different names, got {', '.join(map(str, names))}")
    return options


def _options(table: dict[str, Any], path: Path) -> dict[str, Any]:
    options = {name.replace("-", "_"): value for name, value in table.items()}
    for name in options:
        if name not in OPTIONS:
            raise ValueError(f"{path}: unknown key {name!r}; admissible: {', '.join(OPTIONS)}, or [[sweep]] tables")
    return options


def write_sweep(setup: Setup, folder: Path) -> Path:
    """Write ``sweep.toml``: everything that the sweep was, defaults included, so that it can be run again."""
    specification = setup.specification
    told: dict[str, Any] = {"name": setup.name} if setup.name else {}
    for name, values in specification.grid:
        if values != (None,):
            told[name] = values[0] if len(values) == 1 else range_text(values)
    told |= {name: _relative(value, folder) for name, value in setup.source.items() if value is not None}
    told |= dict(specification.options)
    told |= {"estimators": list(specification.estimators), "bounds": list(setup.bound_names)}
    told |= {name: getattr(specification, name) for name in ("truths", "trials", "reach", "seed")}
    path = folder / "sweep.toml"
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in told.items()]
    path.write_text(HEADER.format(out=folder) + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def _relative(value: Any, folder: Path) -> Any:
    """A file as seen from the folder of the specification; anything else as it is."""
    return Path(os.path.relpath(value, folder)).as_posix() if isinstance(value, Path) else value
