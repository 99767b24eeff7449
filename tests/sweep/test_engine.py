"""The engine: numbers do not depend on workers, order or interruption; what fails is said and retried."""

import dataclasses
import io
import math
import sqlite3

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from threadpoolctl import threadpool_info

from markov_theory.bounds import BOUNDS, S6
from markov_theory.sweep import results
from markov_theory.sweep.engine import local_processes, run_sweep
from markov_theory.sweep.store import Store
from markov_theory.sweep.table import SHOWN_BOUNDS, CellBounds, cell_table, summary_table
from markov_theory.sweep.trials import Trials


def test_every_cell_is_located_and_more_samples_are_better(sweep, specification, tmp_path):
    outcome, _ = sweep(tmp_path)
    assert set(outcome.located) == set(specification.cells())
    assert outcome.errors == {}
    oracle = {cell: found for cell, found in outcome.located.items() if cell[2] == "oracle"}
    assert all(found.n_star == 0 for (s, _, _), found in oracle.items() if s == 1)
    assert all(10 < found.n_star < 10**5 for (s, _, _), found in oracle.items() if s > 1)
    assert all(np.isinf(outcome.located[s, t, "uniform"].n_star) for s in (1, 2) for t in (0, 1))


def test_processes_give_the_same_numbers_as_this_one(sweep, dictionary, specification, tmp_path):
    here, _ = sweep(tmp_path / "here")
    store = Store(tmp_path / "there", specification)
    with local_processes(dictionary, specification, 2) as executor:
        there = run_sweep(specification, store, executor)
    store.close()
    assert there == here
    assert stored(tmp_path / "here") == stored(tmp_path / "there")


def stored(folder):
    """All batches but for the seconds that they took."""
    with sqlite3.connect(folder / "trials.sqlite") as connection:
        columns = "s, truth, estimator, n_samples, batch, kl, gap, inaccurate"
        return connection.execute(f"SELECT {columns} FROM batches ORDER BY 1, 2, 3, 4, 5").fetchall()


def test_a_worker_has_one_thread_for_linear_algebra(dictionary, specification):
    with local_processes(dictionary, specification, 2) as executor:
        pools = executor.submit(threadpool_info).result()
    assert pools
    assert {pool["num_threads"] for pool in pools} == {1}


@pytest.mark.parametrize("stop_after", [0, 1, 7, 40])
def test_a_stopped_sweep_resumes_to_the_same_table(sweep, tmp_path, stop_after):
    whole, executor = sweep(tmp_path / "whole")

    class Stop(BaseException):
        pass

    calls = iter(range(10**6))

    def stop(*arguments):
        if next(calls) >= stop_after:
            raise Stop

    with pytest.raises(Stop):
        sweep(tmp_path / "stopped", before=stop)
    kept = len(stored(tmp_path / "stopped"))
    resumed, second = sweep(tmp_path / "stopped")
    assert resumed == whole
    assert stored(tmp_path / "stopped") == stored(tmp_path / "whole")
    assert second.n_batches == executor.n_batches - kept


def test_a_finished_sweep_runs_nothing_again(sweep, tmp_path):
    first, _ = sweep(tmp_path)
    again, executor = sweep(tmp_path)
    assert again == first
    assert executor.n_batches == 0


def test_a_cell_that_fails_is_recorded_and_alone_retried(sweep, specification, tmp_path):
    def fail(s, truth, estimator, n_samples, batches):
        if (s, truth, estimator) == (2, 1, "oracle"):
            raise ZeroDivisionError("planted")

    outcome, _ = sweep(tmp_path, before=fail)
    assert outcome.errors == {(2, 1, "oracle"): "ZeroDivisionError: planted"}
    assert len(outcome.located) == len(specification.cells()) - 1
    retried, _ = sweep(tmp_path)
    assert retried == sweep(tmp_path.parent / "untroubled")[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [({"seed": 1}, "its seed is 0, this one's is 1"), ({"epsilon": 2e-3}, "its epsilon is 0.001, this one's is 0.002")],
)
def test_another_sweep_in_the_folder_is_refused_by_name(sweep, specification, tmp_path, change, words):
    sweep(tmp_path)
    with pytest.raises(ValueError, match=words):
        Store(tmp_path, dataclasses.replace(specification, **change))


def test_a_file_that_is_no_store_is_refused_and_kept(specification, tmp_path):
    (tmp_path / "trials.sqlite").write_text("not a database, but somebody's notes" * 100)
    with pytest.raises(ValueError, match="cannot be used as a store of trials"):
        Store(tmp_path, specification)
    assert (tmp_path / "trials.sqlite").read_text().startswith("not a database")


def test_estimators_of_a_cell_see_the_same_samples(dictionary, specification, monkeypatch):
    seen = []

    def record(target, n_samples, n_trials, generator):
        counts = generator.multinomial(n_samples, target, size=n_trials)
        seen.append(counts.tobytes())
        return counts

    monkeypatch.setattr("markov_theory.sweep.trials.sample_counts", record)
    trials = Trials(dictionary, specification)
    for name in specification.estimators:
        trials.run(2, 0, name, 100, 3)
    trials.run(2, 0, "oracle", 100, 4)
    assert len(set(seen[:3])) == 1
    assert seen[3] != seen[0]


def test_tables_hold_what_was_measured_beside_the_bounds_that_speak_of_it(sweep, dictionary, specification, tmp_path):
    bounds = CellBounds(specification, Trials(dictionary, specification).instance)
    outcome, _ = sweep(tmp_path, checks=bounds.checks)
    cells = cell_table(outcome.located, bounds, {})
    assert len(cells) == len(specification.cells())
    oracle = cells[(cells.estimator == "oracle") & (cells.s > 1)]
    assert oracle.S3.notna().all()
    assert (oracle.high <= oracle.S6).all()
    assert (oracle.verdicts == "S6:holds").all()
    assert all(
        outcome.located[s, t, "oracle"].was_tried(bounds.of((s, t, "oracle"))["S6"]) for s, t in [(2, 0), (3, 1)]
    )
    pursuit = cells[(cells.estimator == "kl-pursuit") & (cells.s > 1)]
    assert pursuit[["S1", "S2", "S6", "S3"]].isna().all().all()
    single = cells[(cells.estimator == "kl-pursuit") & (cells.s == 1)]
    assert (single.verdicts == "O1:holds O2:holds").all()
    summary = summary_table(cells)
    assert (summary.median_n_star <= summary.worst_n_star).all()
    assert (summary.truths == 2).all()
    assert (summary.violated == 0).all()


def test_a_verdict_needs_trials_at_the_bound_and_certified_fits(sweep, dictionary, specification, tmp_path):
    bounds = CellBounds(specification, Trials(dictionary, specification).instance)
    untried, _ = sweep(tmp_path / "untried")
    tried, _ = sweep(tmp_path / "tried", checks=bounds.checks)
    cell = (2, 0, "oracle")
    assert bounds.verdicts(cell, untried.located[cell], 0) == {"S6": "inconclusive"}
    assert bounds.verdicts(cell, tried.located[cell], 0) == {"S6": "holds"}
    assert bounds.verdicts(cell, tried.located[cell], 1) == {"S6": "inconclusive"}


def test_a_planted_false_bound_is_violated(sweep, dictionary, specification, tmp_path, monkeypatch):
    class FalseS6(S6):
        @staticmethod
        def n_samples(support_rows, target, epsilon, delta):
            return math.ceil(S6.n_samples(support_rows, target, epsilon, delta) / 20)

    monkeypatch.setitem(BOUNDS, "S6", FalseS6)
    bounds = CellBounds(specification, Trials(dictionary, specification).instance)
    outcome, _ = sweep(tmp_path, checks=bounds.checks)
    cells = cell_table(outcome.located, bounds, {})
    assert (cells[(cells.estimator == "oracle") & (cells.s > 1)].verdicts == "S6:violated").all()
    assert summary_table(cells).violated.sum() == 4


def test_bounds_for_single_rows_do_not_speak_of_mixtures(dictionary, specification):
    bounds = CellBounds(specification, Trials(dictionary, specification).instance)
    assert set(bounds.of((1, 0, "nearest-row"))) == {"O1", "O2"}
    assert bounds.of((2, 0, "nearest-row")) == {}


def test_verdicts_on_screen_count_infinite_bounds_as_saying_nothing():
    table = {"s": [1, 2], "n_star": [5.0, 7.0], "verdicts": ["S2:says-nothing", "S2:holds"]}
    table |= {label: [float("nan")] * 2 for label in SHOWN_BOUNDS} | {"S2": [math.inf, 70.0]}
    console = Console(file=io.StringIO(), width=200)
    assert results._verdicts(console, pd.DataFrame(table)) == 0
    shown = console.file.getvalue()
    assert "holds at 1, says nothing at 1 of 2 truths; median bound/N* = 10" in shown
