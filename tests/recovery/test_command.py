"""The command line of the phase diagrams."""

import json

import pandas as pd
import pytest

from markov_theory.recovery.__main__ import main

SMALL = ["--s", "1..2", "--n", "8..512*8", "--tokens", "6", "--outcomes", "8", "--ratio", "20", "--truths", "1",
         "--trials", "16", "--jobs", "1"]  # fmt: skip


def test_from_end_to_end(tmp_path, capsys):
    assert main([*SMALL, "--out", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "half of the supports" in shown
    assert "S5+ at delta = 0.5" in shown
    names = {path.name for path in tmp_path.iterdir()}
    assert {"recovery.csv", "recovery.parquet", "phase.csv", "recovery.png", "recovery.pdf", "recovery.json"} <= names
    assert pd.read_parquet(tmp_path / "recovery.parquet").equals(pd.read_csv(tmp_path / "recovery.csv"))
    assert json.loads((tmp_path / "recovery.json").read_text())["trials"] == 16


def test_a_violated_bound_is_the_exit_code(tmp_path, monkeypatch):
    """A planted false bound: one sample suffices for two rows."""
    from markov_theory.recovery import table

    class False1(table.S5Plus):
        label = "false"

        @staticmethod
        def n_samples(transitions, alpha, sparsity, delta):
            return 1.0

    monkeypatch.setattr(table, "BOUNDS", (False1,))
    assert main([*SMALL, "--trials", "200", "--out", str(tmp_path)]) == 1


@pytest.mark.parametrize(
    ("flags", "said"),
    [(["--s", "9"], "s must be"), (["--n", "0"], "n must be"), (["--jobs", "0"], "--jobs"), (["--s", "x"], "range")],
)
def test_wrong_input_is_said_in_one_line(flags, said, tmp_path, capsys):
    assert main([*SMALL, *flags, "--out", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
