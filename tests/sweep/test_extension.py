"""Estimators and bounds of one's own sweep like built-in ones, and their code is part of the sweep's identity."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from markov_theory.bounds import Bound
from markov_theory.estimators import ESTIMATORS, RowEstimator
from markov_theory.sweep import extension
from markov_theory.sweep.__main__ import main

ROOT = Path(__file__).parents[2]
SMALL = ["--s", "2", "--tokens", "8", "--outcomes", "12", "--ratio", "20", "--epsilon", "1e-2", "--delta", "0.2"]
FEW = ["--truths", "1", "--trials", "128", "--jobs", "1"]
OWN = """\
import numpy as np
from markov_theory.bounds import Bound
from markov_theory.estimators import RowEstimator

class Mine(RowEstimator):
    name = "mine"
    def _fit(self, transitions, counts):
        alpha = np.full((len(counts), len(transitions)), 1 / len(transitions))
        return {"alpha": alpha, "law": alpha @ transitions}

class Greedy(Mine):
    def __init__(self, wish):
        self.wish = wish

class Few(Bound):
    label, kind, origin, speaks_of, statement, reason = "few+", "upper", "derived", ("oracle",), "", ""
    @staticmethod
    def n_samples(epsilon):
        return 1.5

class Blind(Few):
    label = "blind"
    @staticmethod
    def n_samples(colour):
        return 1.0

class Broken(Few):
    label = "broken"
    @staticmethod
    def n_samples(epsilon):
        raise ZeroDivisionError("planted")

class Twin(Few):
    label = "S6"

thing = 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with a module of one's own, under a name that no other test has imported."""
    module = f"own_{abs(hash(tmp_path)):x}"
    (tmp_path / f"{module}.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return module


def test_the_documented_examples_sweep_like_built_in_ones(tmp_path):
    flags = ["--estimators", "oracle,examples.own_estimator:LeastSquaresMixture"]
    bounds = ["--bounds", "S6,examples.own_bound:PaperRate"]
    ran = subprocess.run(
        [sys.executable, "-m", "markov_theory.sweep", *SMALL, *FEW, *flags, *bounds, "--out", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ}, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    cells = pd.read_csv(tmp_path / "cells.csv").set_index("estimator")
    assert cells.loc["oracle", "verdicts"] == "S6:holds paper-rate:holds"
    own = cells.loc["examples.own_estimator:LeastSquaresMixture"]
    assert own.n_star > 0
    assert pd.isna(own["paper-rate"])
    assert "paper-rate, tried at N = bound: holds at 1 of 1 truths" in ran.stdout
    with sqlite3.connect(tmp_path / "trials.sqlite") as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM specification")}
    assert "code of examples.own_estimator:LeastSquaresMixture" in names
    assert "code of bound examples.own_bound:PaperRate" in names


def test_a_false_bound_of_ones_own_is_violated(own, inline, tmp_path, capsys):
    flags = ["--estimators", "oracle", "--bounds", f"{own}:Few", "--out", str(tmp_path / "out")]
    assert main([*SMALL, *FEW, *flags]) == 1
    assert "few+, tried at N = bound: violated at 1 of 1 truths" in capsys.readouterr().out
    assert pd.read_csv(tmp_path / "out" / "cells.csv")["few+"].tolist() == [2.0]


def test_changed_code_is_another_sweep(own, inline, tmp_path, capsys):
    flags = [*SMALL, *FEW, "--estimators", f"{own}:Mine", "--out", str(tmp_path / "out")]
    assert main(flags) == 0
    code = extension.own_code((f"{own}:Mine",))
    (tmp_path / f"{own}.py").write_text(OWN + "\n# changed\n")
    changed = extension.own_code((f"{own}:Mine",))
    assert code.keys() == changed.keys()
    assert code != changed
    assert main(flags) == 2
    assert f"its code of {own}:Mine is {code[f'{own}:Mine']}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "name", "words"),
    [
        ("--estimators", "nowhere:Mine", "'nowhere:Mine' cannot be imported from"),
        ("--estimators", "{own}:Nobody", "has no attribute 'Nobody'"),
        ("--estimators", "{own}:thing", "must be a subclass of markov_theory.estimators.base.RowEstimator"),
        ("--estimators", "{own}:Greedy", "missing 1 required positional argument: 'wish'"),
        ("--estimators", "guess", "estimators must be among oracle, constrained-kl"),
        ("--bounds", "{own}:Mine", "must be a subclass of markov_theory.bounds.base.Bound"),
        ("--bounds", "S9", "bounds must be among O1, O2"),
        ("--bounds", "{own}:Blind", "blind needs colour: neither given nor known to the instance"),
        ("--bounds", "{own}:Broken", "ZeroDivisionError: planted"),
        ("--bounds", "S6,{own}:Twin", "has the label 'S6', which another bound has already"),
    ],
)
def test_what_cannot_work_ends_with_one_clear_line(own, flag, name, words, tmp_path, capsys):
    assert main([*SMALL, *FEW, "--estimators", "oracle", flag, name.format(own=own)]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_built_in_names_stay_as_they_are():
    assert extension.resolve("oracle", ESTIMATORS, RowEstimator, "estimators") is ESTIMATORS["oracle"]
    assert extension.own_code(("oracle", "S6")) == {}
    with pytest.raises(TypeError, match="must be a subclass"):
        extension.resolve("markov_theory.estimators:Oracle", {}, Bound, "bounds")
