"""What went wrong in neighbouring tools' sweeps and plots, each as a small case; and sweeps killed at random moments.

The report is linked at each case. These are tests elsewhere: https://github.com/joblib/joblib/issues/834 (threads that
multiply workers) in test_processes.py and test_engine.py, https://github.com/joblib/joblib/issues/181 (Ctrl-C) in
test_command.py, https://github.com/hydra-ecosystem/hydra/issues/3328 (no identity on resume) in test_extend.py,
https://github.com/matplotlib/matplotlib/issues/6739 (no display) in test_command.py.
"""

import contextlib
import multiprocessing
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd
import pytest

from markov_theory.plots import FLOOR, sample_complexity_figure
from markov_theory.randomness import named_generator
from markov_theory.sweep.__main__ import main
from markov_theory.sweep.trials import Trials, prepare, run_batches

DICTIONARY = ["--tokens", "12", "--outcomes", "16", "--ratio", "20"]
SMALL = [*DICTIONARY, "--epsilon", "1e-4", "--trials", "128", "--delta", "0.2"]
SWEEP = [*SMALL, "--s", "2..4", "--truths", "1", "--estimators", "oracle,kl-pursuit"]


def asked(folder, query):
    """What a store answers; nothing before it has its table."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{folder}/trials.sqlite?mode=ro", uri=True)) as connection:
            return connection.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def batches(folder):
    """All batches of a store, sorted, but for the seconds that they took."""
    columns = "point, truth, estimator, n_samples, batch, kl, gap, inaccurate"
    return asked(folder, f"SELECT {columns} FROM batches ORDER BY 1, 2, 3, 4, 5")


def n_kept(folder):
    return sum(count for (count,) in asked(folder, "SELECT COUNT(*) FROM batches"))


def tables(folder):
    """Bytes of all that a sweep says of its trials."""
    return {name: (folder / name).read_bytes() for name in ("cells.csv", "summary.csv", "growth.json")}


def run_command(flags, folder, jobs=1):
    flags = ["-m", "markov_theory.sweep", *flags, "--jobs", str(jobs), "--out", str(folder)]
    return subprocess.Popen([sys.executable, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def first_losses(cell):
    (batch,) = run_batches(*cell, 200, range(1))
    return batch.kl.tobytes()


def test_forked_workers_draw_what_their_cells_say_and_not_the_same(small):
    # https://github.com/joblib/joblib/issues/36, https://github.com/numpy/numpy/issues/9650
    specification = small(s=2, truths=8, estimators="oracle").specification
    cells = specification.cells()
    prepare(specification)
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("fork")) as executor:
        drawn = list(executor.map(first_losses, cells))
    assert len(cells) == len(set(drawn)) == 8
    assert drawn == [first_losses(cell) for cell in cells]


@pytest.mark.long
def test_one_two_and_four_workers_write_the_same_table(tmp_path):
    # https://github.com/scverse/squidpy/issues/1233; interrupted and resumed: see below
    for jobs in (1, 2, 4):
        assert run_command(SWEEP, tmp_path / str(jobs), jobs).wait() == 0
    first = tmp_path / "1"
    for jobs in ("2", "4"):
        assert tables(tmp_path / jobs) == tables(first)
        assert batches(tmp_path / jobs) == batches(first)


def test_one_failed_cell_of_three_leaves_two_results_and_a_rerun_retries_it_alone(
    inline, tmp_path, capsys, monkeypatch
):
    # https://github.com/hydra-ecosystem/hydra/issues/2551; failing fast: see test_command.py
    run, broken = Trials.run, []

    def fail(self, point, truth, estimator, n_samples, batch):
        if truth == 1 and broken:
            raise ZeroDivisionError("planted")
        return run(self, point, truth, estimator, n_samples, batch)

    monkeypatch.setattr(Trials, "run", fail)
    flags = [*SMALL, "--s", "2", "--truths", "3", "--estimators", "oracle", "--jobs", "1"]
    assert main([*flags, "--out", str(tmp_path / "whole")]) == 0
    broken.append(True)
    assert main([*flags, "--out", str(tmp_path / "broken")]) == 1
    assert "truth 1, oracle: ZeroDivisionError: planted; run the command again to retry" in capsys.readouterr().err
    assert pd.read_csv(tmp_path / "broken" / "cells.csv").truth.tolist() == [0, 2]
    before = set(batches(tmp_path / "broken"))
    broken.clear()
    assert main([*flags, "--out", str(tmp_path / "broken")]) == 0
    assert {row[1] for row in set(batches(tmp_path / "broken")) - before} == {1}
    assert batches(tmp_path / "broken") == batches(tmp_path / "whole")
    assert tables(tmp_path / "broken") == tables(tmp_path / "whole")


def summary(**columns):
    rows = {"s": [2, 3, 4, 5], "estimator": "oracle", "median_n_star": [1.0, 0.0, 7.0, np.inf]}
    rows |= {"median_low": [-1.0, -1.0, 5.0, 9.0], "median_high": [3.0, 0.0, 9.0, np.inf]}
    rows |= {"worst_n_star": rows["median_n_star"], "S6": [10.0, 0.0, 90.0, np.inf]}
    return pd.DataFrame(rows | columns)


def drawn(table):
    figure = sample_complexity_figure(table, 1e-3, 0.05, "rows")
    figure.canvas.draw()
    (axis,) = figure.axes
    return axis


def test_a_bar_that_reaches_zero_ends_at_a_positive_floor_of_a_logarithmic_axis():
    # https://github.com/matplotlib/matplotlib/issues/163
    axis = drawn(summary())
    assert axis.get_yscale() == "log"
    assert axis.get_ylim()[0] > 0
    bars = [path.vertices for collection in axis.containers[0][2] for path in collection.get_paths()]
    assert [bar[:, 1].tolist() for bar in bars] == [[FLOOR, 3.0], [5.0, 9.0]]


def marked(axis):
    """Where the edge of the axes is marked: (value, 0 below or 1 above)."""
    edge = axis.get_xaxis_transform()
    found = [one.get_offsets().tolist() for one in axis.collections if one.get_offset_transform() == edge]
    return {(x, y) for offsets in found for x, y in offsets}


def test_what_a_logarithmic_axis_cannot_show_is_marked_and_counted():
    # https://github.com/matplotlib/matplotlib/issues/8623
    axis = drawn(summary())
    assert marked(axis) == {(3.0, 0.0), (5.0, 1.0)}
    assert "N* of oracle (0 at 1 s) (not reached at 1 s)" in [text.get_text() for text in axis.get_legend().get_texts()]


@pytest.mark.parametrize(("n_star", "edge"), [(0.0, 0.0), (np.inf, 1.0)])
def test_a_figure_without_a_number_of_samples_is_drawn(n_star, edge):
    axis = drawn(summary(median_n_star=n_star, worst_n_star=n_star, S6=np.nan))
    assert marked(axis) == {(s, edge) for s in (2.0, 3.0, 4.0, 5.0)}


def kill_at_random(process, folder, generator, n_batches):
    """Kill −9 once a random number of batches is stored, a random moment later; return whether it was still running."""
    wanted = generator.integers(n_batches + 1)
    while process.poll() is None and n_kept(folder) < wanted:
        time.sleep(0.005)
    time.sleep(generator.exponential(0.05))
    running = process.poll() is None
    process.kill()
    process.wait()
    return running


class Forked:
    """The sweep of a function in a forked process, with the face of a subprocess."""

    def __init__(self, function):
        self.process = multiprocessing.get_context("fork").Process(target=function)
        self.process.start()

    def poll(self):
        return self.process.exitcode

    def kill(self):
        self.process.kill()

    def wait(self):
        self.process.join()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_sweep_killed_at_ten_random_moments_ends_with_the_same_trials(sweep, whole, tmp_path, seed):
    # https://github.com/scverse/squidpy/issues/1233
    folder, outcome, _ = whole
    generator = named_generator(seed, "moments of death")
    deaths = sum(
        kill_at_random(Forked(lambda: sweep(tmp_path)), tmp_path, generator, n_kept(folder)) for _ in range(10)
    )
    assert deaths > 0
    resumed, _ = sweep(tmp_path)
    assert resumed == outcome
    assert batches(tmp_path) == batches(folder)


LONG = [pytest.param(seed, 8, 2, marks=pytest.mark.long) for seed in (1, 2, 3)]


@pytest.mark.parametrize(("seed", "n_moments", "jobs"), [(0, 2, 1), *LONG])
def test_a_command_killed_at_random_moments_ends_with_the_same_table_byte_for_byte(
    inline, tmp_path, seed, n_moments, jobs
):
    undisturbed, folder = tmp_path / "undisturbed", tmp_path / "killed"
    assert main([*SWEEP, "--jobs", "1", "--out", str(undisturbed)]) == 0
    n_batches, generator = n_kept(undisturbed), named_generator(seed, "moments of death", "command")
    deaths = 0
    for _ in range(n_moments):
        deaths += kill_at_random(run_command(SWEEP, folder, jobs), folder, generator, n_batches)
    assert deaths > 0
    assert main([*SWEEP, "--jobs", "1", "--out", str(folder)]) == 0
    assert tables(folder) == tables(undisturbed)
    assert batches(folder) == batches(undisturbed)
