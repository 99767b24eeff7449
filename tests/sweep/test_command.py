"""The command line of the sweep: what it writes, what it refuses, how it stops."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from markov_theory.dictionary import Dictionary
from markov_theory.sweep.__main__ import main
from markov_theory.sweep.setup import set_up

DICTIONARY = ["--tokens", "12", "--outcomes", "16", "--ratio", "20"]
SMALL = ["--s", "1..3", *DICTIONARY, "--epsilon", "1e-3", "--truths", "2", "--trials", "256"]
QUICK = ["--truths", "1", "--trials", "128", "--delta", "0.2"]
SLOW = """
import os, time
from markov_theory.estimators.baselines import SmoothedEmpirical

class Slow(SmoothedEmpirical):
    name = "slow"

    def _fit(self, transitions, counts):
        if not os.path.exists("hurry"):
            time.sleep(1)
        return super()._fit(transitions, counts)
"""
FLAGS = (
    "--s --gamma --ratio --tokens --outcomes --epsilon --delta --misfit --new-tokens --dim --order --branching",
    "--exposure --radius --estimators --bounds --trials --truths --seed --dictionary --family --context --model --text",
    "--reach --spec --preset --out --extend --fail-fast --jobs",
)


def kept(store):
    """Number of batches in a store, 0 before it has its table."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT COUNT(*) FROM batches").fetchone()[0]
    except sqlite3.OperationalError:
        return 0


def gone(group, seconds=20):
    """Whether no process of the group is left, after waiting for those that are on their way out."""
    for _ in range(10 * seconds):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def command(*flags):
    return [sys.executable, "-m", "markov_theory.sweep", *flags]


def test_a_sweep_writes_tables_figures_and_trials(tmp_path):
    environment = {**os.environ, "MPLBACKEND": "TkAgg"}
    environment.pop("DISPLAY", None)
    ran = subprocess.run(
        command(*SMALL, *QUICK, "--jobs", "1", "--out", str(tmp_path)),
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    names = {path.name for path in tmp_path.iterdir()}
    for stem, ends in {"cells": "csv parquet", "summary": "csv parquet", "n_star_against_s": "png pdf"}.items():
        assert {f"{stem}.{end}" for end in ends.split()} <= names
    assert {"trials.sqlite", "growth.json", "sweep.toml"} <= names
    csv, parquet = pd.read_csv(tmp_path / "cells.csv"), pd.read_parquet(tmp_path / "cells.parquet")
    assert len(csv) == len(parquet) > 0
    for words in ("small-ε", "S6", "no guarantee", "trials"):
        assert words in ran.stdout


def test_rows_from_a_file_are_swept(inline, tmp_path, capsys):
    rows = np.random.default_rng(0).dirichlet(np.ones(6), size=8)
    np.savez(tmp_path / "rows.npz", transitions=rows)
    flags = ["--dictionary", str(tmp_path / "rows.npz"), "--s", "1,2", "--epsilon", "1e-2"]
    few = [*QUICK, "--estimators", "oracle,kl-pursuit", "--jobs", "1"]
    assert main([*flags, *few, "--out", str(tmp_path / "out")]) == 0
    assert "rows.npz" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--s", "0..4"], "s must be >= 1, got 0"),
        (["--s", "1..129"], "--s must lie in [1, 128]"),
        (["--s", "4..1"], "is empty"),
        (["--epsilon", "0"], "epsilon must be a finite number > 0, got 0"),
        (["--delta", "1"], "delta must lie strictly between 0 and 1, got 1"),
        (["--ratio", "1"], "density_ratio must be a number > 1 and at most 1e+100, got 1"),
        (["--gamma", "50"], "margin must be at most"),
        (["--tokens", "1"], "n_tokens must be >= 2"),
        (["--truths", "0"], "truths must be in [1, 1000000], got 0"),
        (["--trials", "1"], "trials must be >= 32"),
        (["--trials", "100"], "trials must be at least"),
        (["--jobs", "0"], "--jobs must be >= 1"),
        (["--seed", "-1"], "seed must be >= 0"),
        (["--estimators", "oracle,guess"], "estimators must be among"),
        (["--family", "odd"], "family must be one of"),
        (["--dictionary", "nowhere.npz"], "no dictionary file"),
        (["--dictionary", "nowhere.npz", "--ratio", "3"], "--ratio does not apply"),
        (["--dictionary", "made", "--context", "x"], "--context does not apply"),
        (
            ["--s", "1..3", "--ratio", "5,10", "--delta", "0.1,0.2"],
            "at most two axes may be ranges, got --s, --ratio, --delta",
        ),
        (["--tokens", "16,32", "--s", "20"], "--s must lie in [1, 16] (the dictionary's rows), got 20"),
        (["--epsilon", "small"], "--epsilon: a range is written"),
        (["--epsilon", "1e-5..1e-3"], "needs a step"),
        (["--dim", "4", "--misfit", "0.1"], "--dim and --misfit are different kinds of problem"),
        (["--dim", "4", "--gamma", "0.1"], "--gamma does not apply to a sweep with --dim"),
        (["--exposure", "zipf"], "--exposure does not apply to a sweep of mixtures of rows"),
        (["--dim", "4", "--dictionary", "rows.csv"], "--dictionary does not apply to a sweep with --dim"),
        (["--dim", "4", "--radius", "-1"], "radius must be a finite number > 0, got -1"),
        (["--new-tokens", "2", "--exposure", "odd"], "exposure must be one of uniform, zipf, coupled"),
        (["--misfit", "1"], "misfit must lie strictly between 0 and 1"),
        (["--dim", "4", "--estimators", "oracle"], "estimators must be among embedding-oracle"),
        (["--bounds", "S9"], "bounds must be among"),
    ],
)
def test_wrong_values_end_with_one_clear_line(flags, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(flags) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flags", [["--truths", "few"], ["--unknown"], ["--eps", "1e-3"]])
def test_the_parser_refuses_in_one_line_too(flags, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(flags)
    assert capsys.readouterr().err.count("\n") == 1


def test_help_explains_every_flag_with_its_unit(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    for flag in " ".join(FLAGS).split():
        assert f"{flag} " in shown
    assert "NATS" in shown


def test_a_sweep_is_refused_in_anothers_folder_and_extended_on_request(inline, tmp_path, capsys):
    def run(s, *flags):
        small = [*DICTIONARY, "--epsilon", "1e-2", "--delta", "0.2", "--truths", "1", "--trials", "128"]
        return main(["--s", s, *small, "--estimators", "oracle", "--jobs", "1", "--out", str(tmp_path), *flags])

    assert run("2,3") == 0
    assert run("2,3", "--seed", "1") == 2
    assert "holds another sweep: its seed" in capsys.readouterr().err
    assert run("2..4") == 2
    assert "with --extend it is added to" in capsys.readouterr().err
    kept_before = kept(tmp_path / "trials.sqlite")
    assert run("2..4", "--extend") == 0
    assert kept(tmp_path / "trials.sqlite") > kept_before
    assert pd.read_csv(tmp_path / "cells.csv").s.tolist() == [2, 3, 4]
    assert 's = "2..4"' in (tmp_path / "sweep.toml").read_text()


def test_two_axes_make_a_curve_for_each_value_of_the_shorter_one(inline, tmp_path, capsys):
    few = [*QUICK, "--estimators", "oracle,uniform", "--jobs", "1"]
    axes = ["--epsilon", "1e-3..1e-1*10", "--s", "2,3"]
    assert main([*axes, *DICTIONARY, *few, "--out", str(tmp_path)]) == 0
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert list(summary.columns[:3]) == ["epsilon", "s", "estimator"]
    oracle = summary[summary.estimator == "oracle"]
    assert oracle[["s", "epsilon"]].to_numpy().tolist() == [[s, e] for s in (2, 3) for e in (1e-3, 1e-2, 1e-1)]
    assert (oracle.median_n_star <= oracle.S6).all()
    fits = json.loads((tmp_path / "growth.json").read_text())
    assert set(fits) == {f"{name}, s = {s}" for name in ("oracle", "uniform") for s in (2, 3)}
    assert -1.6 < fits["oracle, s = 2"][0]["parameters"]["p"][0] < -0.5
    assert "ε (nats)" in capsys.readouterr().out
    assert (tmp_path / "n_star_against_epsilon.png").exists()


def test_smaller_dictionaries_are_random_rows_of_a_file(tmp_path):
    rows = np.random.default_rng(0).dirichlet(np.ones(6), size=20)
    np.savez(tmp_path / "rows.npz", transitions=rows)
    planned = set_up({"dictionary": str(tmp_path / "rows.npz"), "tokens": "5,10,20", "s": 2})
    few, more, every = (planned.problem.rows(point) for point in planned.specification.points)
    np.testing.assert_array_equal(every.transitions, Dictionary(rows).transitions)
    np.testing.assert_allclose(few.transitions, rows[[int(v) for v in few.tokens]], rtol=1e-15)
    assert len(few.tokens) == 5
    assert {*few.tokens} < {*more.tokens} < {*every.tokens}
    with pytest.raises(ValueError, match=r"tokens must be in \[1, 20\], got 21"):
        set_up({"dictionary": str(tmp_path / "rows.npz"), "tokens": 21, "s": 2})


def test_failing_fast_ends_with_one_error_and_no_tables(inline, tmp_path, capsys, monkeypatch):
    def broken(self, transitions, counts):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("markov_theory.estimators.baselines.UniformMixture._fit", broken)
    monkeypatch.setattr("markov_theory.sweep.__main__.compile_estimators", lambda specification: None)
    small = ["--s", "2", *DICTIONARY, "--truths", "2", "--trials", "128", "--delta", "0.2", "--epsilon", "1e-2"]
    flags = [*small, "--estimators", "uniform,oracle", "--jobs", "1", "--out", str(tmp_path)]
    assert main([*flags, "--fail-fast"]) == 1
    error = capsys.readouterr().err
    assert "truth 0, uniform: ZeroDivisionError: planted; run the command again to retry" in error
    assert not (tmp_path / "cells.csv").exists()
    assert main(flags) == 1
    assert capsys.readouterr().err.count("ZeroDivisionError: planted") == 2
    assert set(pd.read_csv(tmp_path / "cells.csv").estimator) == {"oracle"}


def test_a_preset_is_a_command_of_its_own(monkeypatch, capsys):
    told = []
    monkeypatch.setattr("markov_theory.dependence.__main__.main", lambda flags: told.append(flags) or 1)
    assert main(["--preset", "t-independence", "--seed", "3", "--out", "there"]) == 1
    assert told == [["--seed", "3", "--out", "there"]]
    assert main(["--preset", "t-independence", "--s", "4"]) == 2
    assert capsys.readouterr().err == "error: --s does not go with --preset t-independence\n"


@contextlib.contextmanager
def under_way(folder):
    """A sweep in a process of its own that takes long, from its first batch of trials on; and its flags."""
    (folder / "slow_estimator.py").write_text(SLOW)
    slow = ["--estimators", "oracle,slow_estimator:Slow", "--jobs", "2", "--out", "out"]
    flags = [*SMALL, *QUICK, "--s", "2..3", *slow]
    started = subprocess.Popen(
        command(*flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True, cwd=folder
    )
    while started.poll() is None and not kept(folder / "out" / "trials.sqlite"):
        time.sleep(0.05)
    assert started.poll() is None, started.stderr.read()
    yield started, flags


def test_a_killed_sweep_leaves_no_worker_behind(tmp_path):
    with under_way(tmp_path) as (started, _):
        started.kill()
        started.communicate()
        assert gone(started.pid)


@pytest.mark.parametrize("presses", [1, 3])
def test_an_interrupt_ends_with_130_and_the_sweep_goes_on_later(tmp_path, presses, monkeypatch):
    with under_way(tmp_path) as (started, flags):
        for _ in range(presses):
            os.killpg(started.pid, signal.SIGINT)
            time.sleep(0.02)
        _, error = started.communicate(timeout=120)
    assert started.returncode == 130, error
    assert error == "stopped; the same command goes on from here\n"
    assert gone(started.pid)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hurry").touch()
    assert main(flags) == 0


@pytest.mark.real_model
def test_the_rows_of_a_language_model_are_swept(inline, tmp_path, capsys):
    flags = ["--dictionary", "llm", "--tokens", "64", "--outcomes", "128", "--s", "1,2", "--epsilon", "1e-3"]
    small = [*QUICK, "--estimators", "oracle,kl-pursuit", "--jobs", "1"]
    assert main([*flags, *small, "--out", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    for words in ("smollm2-135m", "rest mass, mean", "the density ratio is huge", "coherence"):
        assert words in shown
    cells = pd.read_csv(tmp_path / "out" / "cells.csv")
    assert np.isfinite(cells.n_star).all()


def test_wrong_options_for_the_language_model_are_refused_in_its_own_words(capfd):
    assert main(["--dictionary", "llm", "--tokens", "0", "--s", "1"]) == 2
    assert "tokens" in capfd.readouterr().err
