"""The engine: numbers do not depend on workers, order or interruption; what fails is said and retried."""

import io
import math
import sqlite3
from concurrent.futures import Executor, Future

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from threadpoolctl import threadpool_info

from markov_theory.bounds import S6
from markov_theory.sweep import results, table
from markov_theory.sweep.engine import local_processes, run_sweep
from markov_theory.sweep.screen import effort_line
from markov_theory.sweep.store import Store
from markov_theory.sweep.table import cell_table, summary_table
from markov_theory.sweep.trials import Trials


def stored(folder):
    """All batches but for the seconds that they took."""
    with sqlite3.connect(folder / "trials.sqlite") as connection:
        columns = "point, truth, estimator, n_samples, batch, kl, gap, inaccurate"
        return connection.execute(f"SELECT {columns} FROM batches ORDER BY 1, 2, 3, 4, 5").fetchall()


def test_every_cell_is_located_and_more_samples_are_better(whole, specification, point):
    _, outcome, _ = whole
    assert set(outcome.located) == set(specification.cells())
    assert outcome.errors == {}
    oracle = {cell: found for cell, found in outcome.located.items() if cell[2] == "oracle"}
    assert all(found.n_star == 0 for (at, _, _), found in oracle.items() if at["s"] == 1)
    assert all(10 < found.n_star < 10**5 for (at, _, _), found in oracle.items() if at["s"] > 1)
    assert all(np.isinf(outcome.located[point(s), t, "uniform"].n_star) for s in (1, 2) for t in (0, 1))


def test_processes_give_the_same_numbers_as_this_one(whole, specification, tmp_path):
    folder, here, _ = whole
    store = Store(tmp_path, specification)
    with local_processes(specification, 2) as executor:
        pools = executor.submit(threadpool_info).result()
        there = run_sweep(specification, store, executor)
    store.close()
    assert there == here
    assert stored(tmp_path) == stored(folder)
    assert pools
    assert {pool["num_threads"] for pool in pools} == {1}  # one thread for linear algebra


@pytest.mark.parametrize("stop_after", [1, 40])
def test_a_stopped_sweep_resumes_to_the_same_table(sweep, whole, tmp_path, stop_after):
    class Stop(BaseException):
        pass

    calls = iter(range(10**6))

    def stop(*arguments):
        if next(calls) >= stop_after:
            raise Stop

    with pytest.raises(Stop):
        sweep(tmp_path, before=stop)
    kept = len(stored(tmp_path))
    resumed, second = sweep(tmp_path)
    folder, outcome, n_batches = whole
    assert resumed == outcome
    assert stored(tmp_path) == stored(folder)
    assert second.n_batches == n_batches - kept


def test_a_finished_sweep_runs_nothing_again(sweep, whole):
    folder, outcome, _ = whole
    again, executor = sweep(folder)
    assert again == outcome
    assert executor.n_batches == 0


def test_a_cell_that_fails_is_recorded_and_alone_retried(sweep, whole, specification, point, tmp_path):
    cell = (point(2), 1, "oracle")

    def fail(*arguments):
        if arguments[:3] == cell:
            raise ZeroDivisionError("planted")

    failed, _ = sweep(tmp_path, before=fail)
    assert failed.errors == {cell: "ZeroDivisionError: planted"}
    assert len(failed.located) == len(specification.cells()) - 1
    retried, executor = sweep(tmp_path)
    assert retried == whole[1]
    assert executor.n_batches == sum(row[:3] == (str(cell[0]), *cell[1:]) for row in stored(whole[0]))


def test_an_engine_that_drops_its_tasks_ends_the_sweep(sweep, specification, tmp_path):
    class Dropping(Executor):
        def submit(self, function, /, *arguments, **keywords):
            future = Future()
            future.cancel()
            return future

    store = Store(tmp_path, specification)
    with pytest.raises(RuntimeError, match="the engine dropped trials that it was to run"):
        run_sweep(specification, store, Dropping())
    store.close()


def test_the_effort_is_what_was_run_now(sweep, whole, specification, tmp_path):
    first, executor = sweep(tmp_path)
    assert first.effort.n_trials == 32 * executor.n_batches
    assert 0 < first.effort.work < first.effort.duration
    store = Store(tmp_path, specification)
    assert math.isclose(store.totals()[2], first.effort.work)
    store.close()
    again, _ = sweep(tmp_path)
    assert (again.effort.n_trials, again.effort.work) == (0, 0.0)
    assert "% of 1" in effort_line(first.effort, 1)


def test_failing_fast_stops_at_the_first_failure_and_keeps_what_came_before(sweep, specification, tmp_path):
    calls = iter(range(10**6))

    def fail(*arguments):
        if next(calls) >= 20:
            raise ZeroDivisionError("planted")

    outcome, executor = sweep(tmp_path, before=fail, fail_fast=True)
    assert len(outcome.located) < len(specification.cells())
    assert set(outcome.errors.values()) == {"ZeroDivisionError: planted"}
    assert len(stored(tmp_path)) == executor.n_batches > 0


def test_estimators_of_a_cell_see_the_same_samples(specification, point, monkeypatch):
    seen = []

    def record(target, n_samples, n_trials, generator):
        counts = generator.multinomial(n_samples, target, size=n_trials)
        seen.append(counts.tobytes())
        return counts

    monkeypatch.setattr("markov_theory.sweep.problems.mixture.sample_counts", record)
    trials = Trials(specification)
    for name in specification.estimators:
        trials.run(point(2), 0, name, 100, 3)
    trials.run(point(2), 0, "oracle", 100, 4)
    assert len(set(seen[:3])) == 1
    assert seen[3] != seen[0]


def test_tables_hold_what_was_measured_beside_the_bounds_that_speak_of_it(checked, bounds, specification, point):
    cells = cell_table(checked.located, bounds, {})
    assert len(cells) == len(specification.cells())
    oracle = cells[(cells.estimator == "oracle") & (cells.s > 1)]
    assert oracle.S3.notna().all()
    assert (oracle.high <= oracle.S6).all()
    assert (oracle.verdicts == "S6:holds").all()
    for cell in [(point(2), 0, "oracle"), (point(3), 1, "oracle")]:
        assert checked.located[cell].was_tried(bounds.of(cell)["S6"])
    pursuit = cells[(cells.estimator == "kl-pursuit") & (cells.s > 1)]
    assert pursuit[["S1", "S2", "S6", "S3"]].isna().all().all()
    single = cells[(cells.estimator == "kl-pursuit") & (cells.s == 1)]
    assert (single.verdicts == "O1:holds O2:holds").all()
    summary = summary_table(cells, ["s"], list(bounds.shown))
    assert (summary.median_n_star <= summary.worst_n_star).all()
    assert (summary.truths == 2).all()
    assert (summary.violated == 0).all()


def test_a_verdict_needs_trials_at_the_bound_and_certified_fits(whole, checked, bounds, point):
    cell = (point(2), 0, "oracle")
    assert bounds.verdicts(cell, whole[1].located[cell], 0) == {"S6": "inconclusive"}
    assert bounds.verdicts(cell, checked.located[cell], 0) == {"S6": "holds"}
    assert bounds.verdicts(cell, checked.located[cell], 1) == {"S6": "inconclusive"}


def test_a_planted_false_bound_is_violated(sweep, small, tmp_path, monkeypatch):
    class FalseS6(S6):
        @staticmethod
        def n_samples(support_rows, target, epsilon, delta):
            return math.ceil(S6.n_samples(support_rows, target, epsilon, delta) / 20)

    monkeypatch.setitem(table.BOUNDS, "S6", FalseS6)
    false = small(s="2..3", estimators="oracle", bounds="S6")
    outcome, _ = sweep(tmp_path, false.specification, checks=false.bounds.checks)
    cells = cell_table(outcome.located, false.bounds, {})
    assert (cells.verdicts == "S6:violated").all()
    assert summary_table(cells, ["s"], ["S6"]).violated.sum() == 4


def test_bounds_for_single_rows_do_not_speak_of_mixtures(small, point):
    bounds = small(estimators="nearest-row").bounds
    assert set(bounds.of((point(1), 0, "nearest-row"))) == {"O1", "O2"}
    assert bounds.of((point(2), 0, "nearest-row")) == {}


def test_verdicts_on_screen_count_infinite_bounds_as_saying_nothing():
    cells = {"s": [1, 2], "n_star": [5.0, 7.0], "verdicts": ["S2:says-nothing", "S2:holds"], "S1": [float("nan")] * 2}
    console = Console(file=io.StringIO(), width=200)
    assert results._verdicts(console, pd.DataFrame({**cells, "S2": [math.inf, 70.0]}), ["S1", "S2"]) == 0
    shown = console.file.getvalue()
    assert "holds at 1, says nothing at 1 of 2 truths; median bound/N* = 10" in shown
