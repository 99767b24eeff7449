"""The command line of the five arms."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from markov_theory.dependence.__main__ import main
from markov_theory.dependence.arms import ARMS
from markov_theory.dependence.decision import Free

QUICK = ["--quick", "--jobs", "1"]


def test_two_arms_from_end_to_end(tmp_path, capsys):
    assert main(["--arms", "1,2", *QUICK, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "2 holds" in shown
    assert "refuted: 2 of 2" in shown
    assert {path.name for path in tmp_path.iterdir()} == {
        "dependence.csv", "claims.csv", "claims.json", "dependence.png", "dependence.pdf",
    }  # fmt: skip
    document = json.loads((tmp_path / "claims.json").read_text())
    assert [claim["verdict"] for claim in document["claims"]] == ["holds", "holds"]
    assert (document["effort"], document["seed"]) == ("quick", 0)
    assert set(pd.read_csv(tmp_path / "dependence.csv").measure) == {"packed", "near"}


def test_a_violated_prediction_is_the_exit_code(tmp_path, capsys, monkeypatch):
    arm = ARMS[1]
    monkeypatch.setitem(ARMS, 1, replace(arm, claims=(replace(arm.claims[0], rule=Free()),)))
    assert main(["--arms", "1", *QUICK, "--out", str(tmp_path)]) == 1
    assert "1 violated" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--arms", "6"], "--arms must be among"),
        (["--arms", "one"], "a range is written"),
        (["--jobs", "0"], "--jobs"),
        (["--seed", "-1"], "seed"),
    ],
)
def test_wrong_input_is_said_in_one_line(flags, said, tmp_path, capsys):
    assert main([*flags, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
