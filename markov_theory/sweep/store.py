"""Results on disk: SQLite, one row a batch of trials, written by the parent process alone."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from markov_theory._checks import Array
from markov_theory.sweep.axes import Point
from markov_theory.sweep.specification import Specification

SCHEMA = """
CREATE TABLE IF NOT EXISTS specification (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    point TEXT,                -- the setting: a value for every axis, as in "s=4 epsilon=1e-05"
    truth INTEGER, estimator TEXT, n_samples INTEGER, batch INTEGER,
    kl BLOB NOT NULL,          -- what must be <= epsilon, of each trial: KL(q‖q̂) in nats, little-endian float64
    gap BLOB NOT NULL,         -- certified gap of each trial, nats per sample; NaN where there is none
    inaccurate INTEGER NOT NULL,  -- trials without the certificate that the estimator's bounds ask for
    seconds REAL NOT NULL,
    PRIMARY KEY (point, truth, estimator, n_samples, batch)
) WITHOUT ROWID;
"""
SEPARATOR = ", "

BatchKey = tuple[Point, int, str, int, int]


@dataclass(frozen=True, eq=False)
class Batch:
    """The trials of one batch: KL(q‖q̂) (nats), gaps (nats per sample), uncertified fits, seconds taken."""

    kl: Array
    gap: Array
    inaccurate: int
    seconds: float


class Store:
    """Batches by (point, truth, estimator, N, batch) in ``<folder>/trials.sqlite``.

    Parameters
    ----------
    folder : Path
    specification : Specification
    extend : bool
        Whether a sweep in the folder may be extended: points, truths and estimators added, none left out.

    Raises
    ------
    ValueError
        If the folder holds another sweep (the message names the first difference), or its file is not a store.
    """

    def __init__(self, folder: Path, specification: Specification, extend: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "trials.sqlite"
        try:
            self._connection = sqlite3.connect(self.path)
            tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
            if tables and "specification" not in tables:
                raise sqlite3.DatabaseError("it holds other tables")
            self._connection.executescript(SCHEMA)
            self._claim(folder, specification, extend)
        except sqlite3.Error as error:
            raise ValueError(
                f"{self.path} cannot be used as a store of trials ({error}): choose another folder"
            ) from None

    def _claim(self, folder: Path, specification: Specification, extend: bool) -> None:
        extent = {name: SEPARATOR.join(values) for name, values in specification.extent().items()}
        asked = specification.identity() | specification.own_code() | extent
        stored = dict(self._connection.execute("SELECT name, value FROM specification"))
        if stored:
            self._compare(folder, stored, asked, set(extent), extend)
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO specification VALUES (?, ?)", asked.items())

    def _compare(
        self, folder: Path, stored: dict[str, str], asked: dict[str, str], extent: set[str], extend: bool
    ) -> None:
        """Refuse a sweep that differs from the stored one in more than what may be added."""
        for name, value in asked.items():
            known = stored.get(name)
            if known == value or (known is None and name.startswith("code of ")):
                continue
            if name not in extent or known is None:
                raise ValueError(
                    f"{folder} holds another sweep: its {name} is {known}, this one's is {value}; "
                    "choose another folder with --out"
                )
            larger = set(known.split(SEPARATOR)) <= set(value.split(SEPARATOR))
            if not (extend and larger):
                advice = "with --extend it is added to" if larger else "--extend only adds; choose another folder"
                raise ValueError(
                    f"{folder} holds another sweep: its {name} is {known}, this one's is {value}; {advice}"
                )

    def note(self, name: str, value: str) -> None:
        """Write something about the sweep that no trial depends on beside its specification."""
        with self._connection:
            self._connection.execute("INSERT OR REPLACE INTO specification VALUES (?, ?)", (name, value))

    def load(self, point: Point, truth: int, estimator: str) -> dict[tuple[int, int], Batch]:
        """All stored batches of a cell, by (N, batch)."""
        rows = self._connection.execute(
            "SELECT n_samples, batch, kl, gap, inaccurate, seconds FROM batches"
            " WHERE point = ? AND truth = ? AND estimator = ?",
            (str(point), truth, estimator),
        )
        return {
            (n, batch): Batch(np.frombuffer(kl, "<f8"), np.frombuffer(gap, "<f8"), inaccurate, seconds)
            for n, batch, kl, gap, inaccurate, seconds in rows
        }

    def save(self, results: list[tuple[BatchKey, Batch]]) -> None:
        """Write batches in one transaction."""
        rows = [
            (str(point), *key, b.kl.astype("<f8").tobytes(), b.gap.astype("<f8").tobytes(), b.inaccurate, b.seconds)
            for (point, *key), b in results
        ]
        with self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO batches VALUES (?,?,?,?,?,?,?,?,?)", rows)

    def totals(self) -> tuple[int, int, float]:
        """Trials stored, uncertified fits among them, and seconds of work that they took."""
        row = self._connection.execute(
            "SELECT COALESCE(SUM(LENGTH(kl) / 8), 0), COALESCE(SUM(inaccurate), 0), COALESCE(SUM(seconds), 0.0)"
            " FROM batches"
        ).fetchone()
        return int(row[0]), int(row[1]), float(row[2])

    def uncertified(self) -> dict[tuple[str, int, str], int]:
        """Fits of each cell (point's key, truth, estimator) without the certificate that its bounds ask for."""
        rows = self._connection.execute("SELECT point, truth, estimator, SUM(inaccurate) FROM batches GROUP BY 1, 2, 3")
        return {(point, truth, estimator): count for point, truth, estimator, count in rows}

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
