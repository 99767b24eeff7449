"""A sweep as its folder holds it: tables, trials, fits and specification, read and never changed."""

from __future__ import annotations

import contextlib
import io
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from markov_theory.provenance import runs
from markov_theory.report.provenance import same_version
from markov_theory.sweep.axes import AXES, LARGEST, Axis, as_text
from markov_theory.sweep.store import SEPARATOR

STORE = "trials.sqlite"
TRIED = (
    "SELECT point, truth, estimator, COUNT(DISTINCT n_samples), SUM(LENGTH(kl) / 8), SUM(inaccurate), SUM(seconds)"
    " FROM batches GROUP BY 1, 2, 3"
)
SHARED = {"estimator", "truth", "n_star", "low", "high", "settled", "trials", "uncertified", "guarantee", "verdicts"}
SUMMARISED = {"estimator", "truths", "median_n_star", "worst_n_star", "guarantee", "violated"}
CellKey = tuple[str, int, str]  # point, truth, estimator


@dataclass(frozen=True)
class Tried:
    """The stored trials of a cell: how many N, how many trials, uncertified fits, and seconds of work."""

    values: int
    trials: int
    uncertified: int
    seconds: float


@dataclass(frozen=True, eq=False)
class StoredSweep:
    """What a folder holds of a sweep.

    Attributes
    ----------
    folder : Path
    settings : dict of str to str
        Settings, versions and fingerprints, as stored.
    tried : dict of (point, truth, estimator) to Tried
        Every cell that has trials.
    cells, summary : DataFrame or None
        The tables, every value the text that the file has; None before the sweep has ended once.
    growth : dict
        Fits by curve.
    specification : str
        ``sweep.toml``; ``""`` if there is none.
    runs : list of dict
        See `markov_theory.provenance.recorded`.
    """

    folder: Path
    settings: Mapping[str, str]
    tried: Mapping[CellKey, Tried]
    cells: pd.DataFrame | None
    summary: pd.DataFrame | None
    growth: Mapping[str, list[dict[str, Any]]]
    specification: str
    runs: list[dict[str, Any]]

    @classmethod
    def read(cls, folder: Path) -> StoredSweep:
        """Read a folder.  Raises ValueError if what it holds is damaged or of another version."""
        settings, tried = _read_store(folder / STORE)
        same_version(settings.get("version of markov-theory", "unknown"), folder / STORE)
        cells = _read_table(folder / "cells.csv", SHARED)
        summary = _read_table(folder / "summary.csv", SUMMARISED)
        if (cells is None) != (summary is None):
            raise ValueError(f"{folder} has only one of cells.csv and summary.csv: run the sweep again to write both")
        specification = folder / "sweep.toml"
        told = specification.read_text(encoding="utf-8") if specification.is_file() else ""
        made = [run for run in runs(folder) if run["result"] == "sweep"]
        return cls(folder, settings, tried, cells, summary, _read_growth(folder / "growth.json"), told, made)

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The axes that results are shown against: columns of the tables, before the estimator's."""
        names = [] if self.summary is None else list(self.summary.columns)
        return tuple(AXES[name] for name in names[: names.index("estimator")] if name in AXES) if names else ()

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the bounds: columns of the cells, between the guarantee and the verdicts."""
        if self.cells is None:
            return tuple(self.bounds)
        names = list(self.cells.columns)
        return tuple(names[names.index("guarantee") + 1 : names.index("verdicts")])

    @cached_property
    def statements(self) -> tuple[str, ...]:
        """Labels of what is judged at the truths themselves and is no bound."""
        told = [] if self.cells is None else [word for text in self.cells["verdicts"] for word in text.split()]
        return tuple(
            label for label in dict.fromkeys(word.partition(":")[0] for word in told) if label not in self.labels
        )

    @cached_property
    def bounds(self) -> Mapping[str, dict[str, Any]]:
        """What each bound states, as far as a run recorded it."""
        return dict(self.last("bounds", {}))

    @cached_property
    def failed(self) -> dict[CellKey, str]:
        """The error of each cell that failed in the last run that came to its end."""
        ended = [run["failed"] for run in self.runs if "failed" in run]
        return {(point, truth, name): error for point, truth, name, error in (ended[-1] if ended else [])}

    @cached_property
    def lacking(self) -> list[CellKey]:
        """Cells that have trials, or an error, and no N*."""
        known = dict.fromkeys([*self.tried, *self.failed])
        located = set() if self.cells is None else {self._key(row) for row in self.cells.to_dict("records")}
        return [key for key in known if self._key_of(key) not in located]

    @property
    def n_cells(self) -> int:
        """Cells that the sweep has: as recorded, or at least those that have trials."""
        return max(int(self.last("cells", 0)), len(self.tried))

    @property
    def n_located(self) -> int:
        """Cells whose N* is in the table."""
        return 0 if self.cells is None else len(self.cells)

    def last(self, name: str, default: Any) -> Any:
        """What the last run recorded under a name."""
        return next((run[name] for run in reversed(self.runs) if name in run), default)

    def setting(self, name: str) -> str:
        """A setting as text, ``""`` if there is none."""
        return self.settings.get(name, "")

    def only(self, axis: str) -> float | None:
        """The value of an axis, None where it is swept, or unknown."""
        text = self.setting(axis)
        return None if not text or SEPARATOR in text or text == LARGEST else float(text)

    def typed(self, table: pd.DataFrame) -> pd.DataFrame:
        """One of the tables with numbers in place of text."""
        return pd.read_csv(io.StringIO(table.to_csv(index=False)))

    def _key(self, row: Mapping[Any, str]) -> tuple[str, ...]:
        texts = [(axis, row[axis.name]) for axis in self.axes]
        values = [as_text(axis.parse(text)[0]) if text else LARGEST for axis, text in texts]
        return (*values, str(row["truth"]), row["estimator"])

    def _key_of(self, key: CellKey) -> tuple[str, ...]:
        """The same key from the text of a point."""
        point, truth, name = key
        setting = dict(part.partition("=")[::2] for part in point.split(" "))
        return (*(setting.get(axis.name, "") for axis in self.axes), str(truth), name)


def _read_store(path: Path) -> tuple[dict[str, str], dict[CellKey, Tried]]:
    """Settings and cells of a store. A writer that was killed is undone, as by any reader; nothing else changes."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True)) as connection:
            connection.execute("PRAGMA query_only = 1")
            settings = dict(connection.execute("SELECT name, value FROM specification"))
            rows = connection.execute(TRIED).fetchall()
    except sqlite3.OperationalError as error:
        if str(error).startswith("no such"):
            raise ValueError(f"{path} is half-written or of another version ({error}): run the sweep again") from None
        raise ValueError(f"{path} cannot be read as a store of trials ({error})") from None
    except sqlite3.Error as error:
        raise ValueError(f"{path} cannot be read as a store of trials ({error})") from None
    if not settings:
        raise ValueError(f"{path} is half-written, it holds no specification: run the sweep again")
    return settings, {(point, truth, name): Tried(*tried) for point, truth, name, *tried in rows}


def _read_table(path: Path, needed: set[str]) -> pd.DataFrame | None:
    """Read a table as text, None if there is none.  Raises ValueError if it is cut off or of another version."""
    if not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8")
        read = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    except (UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise ValueError(f"{path} is no table ({' '.join(str(error).split())}): run the sweep again") from None
    if not text.endswith("\n"):
        raise ValueError(f"{path} is half-written: run the sweep again")
    if lacking := needed - set(read.columns):
        raise ValueError(f"{path} lacks the column {min(lacking)}, it is of another version: run the sweep again")
    return read


def _read_growth(path: Path) -> dict[str, list[dict[str, Any]]]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if all({"law", "parameters", "residual", "n_points"} <= set(fit) for fits in found.values() for fit in fits):
            return dict(found)
    except (ValueError, TypeError, AttributeError):
        pass
    raise ValueError(f"{path} is half-written or of another version: run the sweep again")
