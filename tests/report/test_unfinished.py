"""Sweeps that were stopped, killed or extended, and cells that failed, are told as what they are."""

import contextlib
import json
import shutil
import sqlite3
import subprocess
import sys

import pandas as pd
import pytest

from markov_theory.provenance import recorded, runs
from markov_theory.sweep.__main__ import main as sweep_main
from markov_theory.sweep.setup import set_up
from markov_theory.sweep.store import Store
from tests.report.conftest import FEW, SMALL, here

TABLES = ("cells.csv", "cells.parquet", "summary.csv", "summary.parquet", "growth.json")


def lines(text):
    return " ".join(text.split())


def remove_tables(folder):
    for name in TABLES:
        (folder / name).unlink()


def change(folder, statement):
    with sqlite3.connect(folder / "trials.sqlite") as connection:
        connection.execute(statement)
    connection.close()


def test_a_sweep_that_was_killed_shows_what_it_has(whole, page):
    remove_tables(whole)
    change(whole, "DELETE FROM batches WHERE estimator <> 'oracle' OR truth = 1")
    record = json.loads((whole / "provenance.json").read_text())
    record["runs"][-1] |= {"outcome": "under way", "seconds": None}
    del record["runs"][-1]["failed"]
    (whole / "provenance.json").write_text(json.dumps(record))
    seen = page(whole)
    said = lines(seen.text)
    assert "incomplete" in said
    assert "32 cells of 32 have no N* yet. No table has been written." in said
    assert "The last run has not ended: it was killed, or it goes on." in said
    table = seen.table("Cells without N*")
    assert [point.split(" ")[0] for point in table.column("point")] == ["s=1", "s=2", "s=3", "s=4"]
    assert set(table.column("estimator")) == {"oracle"}
    assert all(int(trials) > 0 for trials in table.column("trials"))
    assert not [tag for tag, _ in seen.tags if tag == "img"]


def test_tables_older_than_the_trials_are_incomplete(whole, page):
    table = pd.read_csv(whole / "cells.csv", dtype=str, keep_default_na=False)
    table[table.s != "3"].to_csv(whole / "cells.csv", index=False)
    seen = page(whole)
    assert "8 cells of 32 have no N* yet. The tables hold the others." in lines(seen.text)
    points = seen.table("Cells without N*").column("point")
    assert len(points) == 8
    assert all(point.startswith("s=3 ") for point in points)


def test_a_larger_sweep_that_has_not_begun_its_new_cells_is_incomplete(whole, page):
    record = json.loads((whole / "provenance.json").read_text())
    record["runs"].append(record["runs"][0] | {"cells": 40, "outcome": "interrupted"})
    (whole / "provenance.json").write_text(json.dumps(record))
    assert "8 cells of 40 have no N* yet" in lines(page(whole).text)


def test_what_a_killed_writer_left_in_its_journal_is_undone(whole, page):
    before = page(whole).table("Bounds, tried").rows
    killed = """
import os, signal, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
connection.execute("DELETE FROM batches")
connection.execute("CREATE TABLE more AS SELECT zeroblob(1 << 20) AS filling")
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", killed, str(whole / "trials.sqlite")], check=False)
    assert (whole / "trials.sqlite-journal").stat().st_size > 0
    seen = page(whole)
    assert seen.table("Bounds, tried").rows == before
    assert "N* located at 32 of 32 cells" in lines(seen.text)


def test_a_store_that_is_being_written_is_read(whole, page):
    with sqlite3.connect(whole / "trials.sqlite") as writer:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("DELETE FROM batches WHERE truth = 0")
        assert "N* located at 32 of 32 cells" in lines(page(whole).text)
        writer.rollback()
    writer.close()


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    """A sweep in which every cell of one estimator fails."""

    def broken(self, transitions, counts):
        raise ZeroDivisionError("planted <failure>")

    folder = tmp_path_factory.mktemp("failed") / "failed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("markov_theory.estimators.baselines.UniformMixture._fit", broken)
        patch.setattr("markov_theory.sweep.__main__.compile_estimators", lambda specification: None)
        patch.setattr("markov_theory.sweep.engine.local_processes", here)
        flags = ["--s", "2,3", *SMALL, "--truths", "2", *FEW, "--estimators", "oracle,uniform", "--out", str(folder)]
        assert sweep_main(flags) == 1
    return folder


def test_failed_cells_are_shown_with_their_errors(failed, page):
    seen = page(failed)
    said = lines(seen.text)
    assert "4 cells failed: ZeroDivisionError: planted <failure>." in said
    assert "N* located at 4 of 8 cells" in said
    table = seen.table("Cells without N*")
    assert set(table.column("estimator")) == {"uniform"}
    assert table.column("error") == ["ZeroDivisionError: planted <failure>"] * 4
    assert table.column("trials") == [""] * 4


def test_a_retry_that_succeeds_leaves_no_failure_behind(failed, swept, page, tmp_path):
    folder = shutil.copytree(failed, tmp_path / "retried")
    flags = ["--s", "2,3", *SMALL, "--truths", "2", *FEW, "--estimators", "oracle,uniform", "--out", folder]
    assert swept(*flags) == 0
    said = lines(page(folder).text)
    assert "failed" not in said.replace("P(failure)", "").split("Provenance")[0].replace(str(folder), "")
    assert "N* located at 8 of 8 cells" in said
    assert [run["failed"] != [] for run in runs(folder)] == [True, False]


def test_resuming_adds_a_run_and_leaves_the_tables_byte_for_byte(whole, swept):
    before = {name: (whole / name).read_bytes() for name in TABLES}
    (first,) = runs(whole)
    change(whole, "DELETE FROM batches WHERE truth = 1")
    remove_tables(whole)
    command = ["--s", "1..4", *SMALL, "--truths", "2", *FEW]
    names = ["--estimators", "oracle,kl-pursuit,constrained-kl,uniform"]
    assert swept(*command, *names, "--out", whole) == 0
    assert {name: (whole / name).read_bytes() for name in TABLES} == before
    kept, second = runs(whole)
    assert kept == first
    assert second["outcome"] == "finished"


def test_a_store_without_tables_or_record_is_incomplete(page, tmp_path):
    setup = set_up({"s": "2,3", "tokens": 12, "outcomes": 16, "ratio": 20.0, "trials": 128, "delta": 0.2})
    Store(tmp_path / "new", setup.specification).close()
    seen = page(tmp_path / "new")
    assert "incomplete" in seen.text
    assert "not recorded" in seen.text


@pytest.mark.parametrize(
    ("error", "told"), [(KeyboardInterrupt(), "interrupted"), (OSError("disk"), "OSError: disk"), (None, "finished")]
)
def test_a_run_is_recorded_from_its_start_and_however_it_ends(error, told, tmp_path):
    folder = tmp_path / "new"
    ends = contextlib.nullcontext() if error is None else pytest.raises(type(error))
    with ends, recorded(folder, "sweep", "the command", 2, cells=7) as run:
        (begun,) = runs(folder)
        assert (begun["outcome"], begun["seconds"], begun["cells"]) == ("under way", None, 7)
        run["failed"] = []
        if error is not None:
            raise error
    (ended,) = runs(folder)
    assert (ended["outcome"], ended["failed"], ended["jobs"]) == (told, [], 2)
    assert ended["seconds"] >= 0
    assert [path.name for path in folder.iterdir()] == ["provenance.json"]


def test_a_broken_record_stops_no_run(tmp_path):
    (tmp_path / "provenance.json").write_text('{"runs": [')
    with recorded(tmp_path, "claims", "the command", 1):
        pass
    assert [run["outcome"] for run in runs(tmp_path)] == ["finished"]
