"""Results on disk: SQLite, one row a batch of trials, written by the parent process alone."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from markov_theory._checks import Array
from markov_theory.sweep.specification import Specification

SCHEMA = """
CREATE TABLE IF NOT EXISTS specification (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    s INTEGER, truth INTEGER, estimator TEXT, n_samples INTEGER, batch INTEGER,
    kl BLOB NOT NULL,          -- KL(q‖q̂) of each trial, nats, little-endian float64
    gap BLOB NOT NULL,         -- certified gap of each trial, nats per sample; NaN where there is none
    inaccurate INTEGER NOT NULL,  -- trials without the certificate that the estimator's bounds ask for
    seconds REAL NOT NULL,
    PRIMARY KEY (s, truth, estimator, n_samples, batch)
) WITHOUT ROWID;
"""

BatchKey = tuple[int, int, str, int, int]


@dataclass(frozen=True, eq=False)
class Batch:
    """The trials of one batch: KL(q‖q̂) (nats), gaps (nats per sample), uncertified fits, seconds taken."""

    kl: Array
    gap: Array
    inaccurate: int
    seconds: float


class Store:
    """Batches by (s, truth, estimator, N, batch) in ``<folder>/trials.sqlite``.

    Raises
    ------
    ValueError
        If the folder holds another sweep (the message names the first difference), or its file is not a store.
    """

    def __init__(self, folder: Path, specification: Specification) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "trials.sqlite"
        try:
            self._connection = sqlite3.connect(self.path)
            tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master")}
            if tables and "specification" not in tables:
                raise sqlite3.DatabaseError("it holds other tables")
            self._connection.executescript(SCHEMA)
            self._claim(folder, specification)
        except sqlite3.Error as error:
            raise ValueError(
                f"{self.path} cannot be used as a store of trials ({error}): choose another folder"
            ) from None

    def _claim(self, folder: Path, specification: Specification) -> None:
        asked = specification.identity()
        stored = dict(self._connection.execute("SELECT name, value FROM specification"))
        if not stored:
            with self._connection:
                self._connection.executemany("INSERT INTO specification VALUES (?, ?)", asked.items())
            return
        for name in asked:
            if stored.get(name) != asked[name]:
                raise ValueError(
                    f"{folder} holds another sweep: its {name} is {stored.get(name)}, this one's is {asked[name]}; "
                    "choose another folder with --out"
                )

    def load(self, s: int, truth: int, estimator: str) -> dict[tuple[int, int], Batch]:
        """All stored batches of a cell, by (N, batch)."""
        rows = self._connection.execute(
            "SELECT n_samples, batch, kl, gap, inaccurate, seconds FROM batches"
            " WHERE s = ? AND truth = ? AND estimator = ?",
            (s, truth, estimator),
        )
        return {
            (n, batch): Batch(np.frombuffer(kl, "<f8"), np.frombuffer(gap, "<f8"), inaccurate, seconds)
            for n, batch, kl, gap, inaccurate, seconds in rows
        }

    def save(self, results: list[tuple[BatchKey, Batch]]) -> None:
        """Write batches in one transaction."""
        rows = [
            (*key, b.kl.astype("<f8").tobytes(), b.gap.astype("<f8").tobytes(), b.inaccurate, b.seconds)
            for key, b in results
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

    def uncertified(self) -> dict[tuple[int, int, str], int]:
        """Fits of each cell (s, truth, estimator) without the certificate that its bounds ask for."""
        rows = self._connection.execute("SELECT s, truth, estimator, SUM(inaccurate) FROM batches GROUP BY 1, 2, 3")
        return {(s, truth, estimator): count for s, truth, estimator, count in rows}

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
