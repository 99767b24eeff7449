"""Sweeps in files: what is read, refused and written; a written file is the same sweep again."""

import shutil
import sqlite3
import tomllib
from pathlib import Path

import pytest

from markov_theory.sweep.__main__ import main
from markov_theory.sweep.setup import OPTIONS, set_up
from markov_theory.sweep.specfile import read_sweeps, write_sweep

EXAMPLES = Path(__file__).parents[2] / "examples"
SWEEPS = """\
tokens = 8
outcomes = 12
ratio = 20
epsilon = 1e-2
delta = 0.2
trials = 128
truths = 1
estimators = ["oracle"]

[[sweep]]
name = "mixed rows"
s = "1..3"

[[sweep]]
name = "misfit"
misfit = [0, 0.2]
estimators = ["constrained-kl"]
"""


def batches(folder):
    with sqlite3.connect(folder / "trials.sqlite") as connection:
        return connection.execute("SELECT point, truth, estimator, n_samples, batch, kl FROM batches").fetchall()


def test_one_file_runs_several_sweeps_and_each_can_be_run_again_from_its_own(inline, tmp_path, capsys):
    (tmp_path / "sweeps.toml").write_text(SWEEPS)
    assert main(["--spec", str(tmp_path / "sweeps.toml"), "--out", str(tmp_path / "out"), "--jobs", "1"]) == 0
    shown = capsys.readouterr().out
    assert "mixed rows" in shown
    assert "approximation error" in shown
    for name in ("mixed-rows", "misfit"):
        folder = tmp_path / "out" / name
        again = tmp_path / "again" / name
        assert main(["--spec", str(folder / "sweep.toml"), "--out", str(again), "--jobs", "1"]) == 0
        assert batches(again) == batches(folder) != []
        assert (again / "cells.csv").read_bytes() == (folder / "cells.csv").read_bytes()
        assert (again / "summary.csv").read_bytes() == (folder / "summary.csv").read_bytes()


@pytest.mark.parametrize(
    "options",
    [
        {"s": "1..8"},
        {"s": "2..4", "gamma": "0.02,0.05", "ratio": 20, "seed": 3, "family": "correlated", "name": "a \"b\" \\ ü"},
        {"epsilon": "1e-6..1e-3*10", "delta": 0.01, "trials": 8192},
        {"misfit": "0,0.1", "bounds": "M2"},
        {"new_tokens": "1,2", "exposure": "zipf", "truths": 2},
        {"dim": "4..16*2", "radius": 1.5, "estimators": "embedding-oracle"},
        {"order": "1..2", "branching": 3},
    ],
)  # fmt: skip
def test_what_is_written_is_the_same_sweep_again(options, tmp_path):
    one = set_up({"tokens": 8, "outcomes": 12, **options} if "order" not in options else options)
    (read,) = read_sweeps(write_sweep(one, tmp_path))
    again = set_up(read, tmp_path)
    assert again.specification == one.specification
    assert again.bound_names == one.bound_names
    assert again.name == one.name
    assert again.out == one.out


def test_files_are_found_beside_the_specification(tmp_path, monkeypatch):
    (tmp_path / "specs").mkdir()
    shutil.copy(EXAMPLES / "rows.csv", tmp_path / "specs")
    (tmp_path / "specs" / "mine.toml").write_text('dictionary = "rows.csv"\ns = 2\n')
    monkeypatch.chdir(tmp_path)
    (read,) = read_sweeps(Path("specs/mine.toml"))
    one = set_up(read, Path("specs"))
    (tmp_path / "results" / "deep").mkdir(parents=True)
    written = write_sweep(one, tmp_path / "results" / "deep")
    assert tomllib.loads(written.read_text())["dictionary"] == "../../specs/rows.csv"
    (again,) = read_sweeps(written)
    assert set_up(again, written.parent).specification == one.specification


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("s = 4\nsparsity = 3", "unknown key 'sparsity'; admissible: s, gamma, ratio,"),
        ("[[sweep]]\nepsilom = 1", "unknown key 'epsilom'"),
        ("s = ", "is not TOML"),
        ("sweep = 3", "sweep must be tables, each headed [[sweep]]"),
        ("s = true", "s must be a number, a text or a list of them"),
        ("truths = 1.5", "truths must be a whole number, got 1.5"),
        ("dictionary = 3", "dictionary must be a text"),
        ("s = [1, 0]", "s must be >= 1, got 0"),
        ("[[sweep]]\ns = 1\n[[sweep]]\ns = 999", "sweep 2 of 2: --s must lie in [1, 128]"),
        ('[[sweep]]\nname = "a"\n[[sweep]]\nname = "a"', "sweeps must have different names, got a, a"),
        ("[[sweep]]\ns = 1\n[[sweep]]\ns = 1", "two of its sweeps go to the same folder"),
    ],
)
def test_a_wrong_file_ends_with_one_clear_line(text, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.toml").write_text(text)
    assert main(["--spec", "wrong.toml", "--jobs", "1"]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("error: wrong.toml")
    assert error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.toml"]


def test_flags_that_a_file_says_are_refused_beside_it(capsys):
    assert main(["--spec", "any.toml", "--epsilon", "1e-3"]) == 2
    assert "--epsilon does not go with --spec" in capsys.readouterr().err
    assert main(["--spec", "nowhere.toml"]) == 2
    assert "no specification file nowhere.toml" in capsys.readouterr().err


def test_the_example_of_a_whole_paper_can_run():
    sweeps = read_sweeps(EXAMPLES / "paper.toml")
    plans = [set_up(options, EXAMPLES) for options in sweeps]
    assert {one.specification.kind for one in plans} == {
        "mixture", "misfit", "new-tokens", "embedding", "higher-order",
    }  # fmt: skip
    assert len({one.out for one in plans}) == len(plans)
    assert all(name in OPTIONS for options in sweeps for name in options)
