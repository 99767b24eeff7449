"""The command line of a plan: what it prints and writes, and what it refuses."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from markov_theory.plan import planning
from markov_theory.plan.__main__ import main
from markov_theory.plan.arguments import read_numbers
from markov_theory.plan.planning import recommend

QUICK = ["--tokens", "6", "--outcomes", "8", "--ratio", "20", "--s", "2", "--truths", "2", "--epsilon", "1e-2"]
FLAGS = (
    "--s --weights --target --epsilon --delta --estimator --truths --seed --new-tokens --exposure --rate --dictionary "
    "--tokens --outcomes --ratio --gamma --family --context --model --text --no-simulation --trials --samples "
    "--thorough --json"
)
ROWS = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    np.savez(tmp_path / "rows.npz", transitions=ROWS)
    (tmp_path / "alpha.csv").write_text("0.5, 0.5, 0\n")
    (tmp_path / "bad.csv").write_text("0.5,0.6,0\n")
    (tmp_path / "two.txt").write_text("# two tokens\n0.5 0.5 0\n0 0 1\n")
    (tmp_path / "law.txt").write_text("0.9\n0.05\n0.05\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_plan_is_printed_and_written(tmp_path):
    command = [sys.executable, "-m", "markov_theory.plan", *QUICK, "--json", str(tmp_path / "plan.json")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    for words in ("S6u", "S2", "oracle", "any estimator", "recommended for exact-l0", "regime", "what asks for most",
                  "at the recommended number", "says nothing", "for every truth"):  # fmt: skip
        assert words in ran.stdout
    told = json.loads((tmp_path / "plan.json").read_text())
    assert f"N = {told['recommendation']['n_samples']['value']:,.0f} samples" in ran.stdout


def test_new_tokens_show_the_corpus(capsys):
    flags = ["--new-tokens", "3", "--exposure", "zipf", "--rate", "0.1", "--no-simulation"]
    assert main([*QUICK, *flags]) == 0
    shown = capsys.readouterr().out
    for words in ("corpus under zipf exposure", "relative to uniform", "rarest token", "is shared", "coupled"):
        assert words in shown
    assert "trials of" not in shown


def test_given_weights_and_laws(folder, capsys):
    given = ["--dictionary", "rows.npz", "--trials", "32"]
    assert main([*given, "--weights", "alpha.csv"]) == 0
    assert "3,692" in capsys.readouterr().out
    assert main([*given, "--weights", "two.txt"]) == 0
    assert "all 2 tokens" in capsys.readouterr().out
    assert main([*given, "--target", "law.txt", "--estimator", "constrained-kl"]) == 0
    shown = capsys.readouterr().out
    for words in ("nats stays", "M2", "excess"):
        assert words in shown


def test_beyond_what_can_be_drawn_is_said_in_words(capsys):
    assert main([*QUICK, "--ratio", "1e8", "--truths", "1", "--epsilon", "1e-9", "--no-simulation"]) == 0
    assert "beyond 2^53" in capsys.readouterr().out


def test_a_refuted_recommendation_ends_with_1(folder, capsys, monkeypatch):
    """A false bound, N = 20, is refuted but for a probability below 1e-12 (see the test of simulations)."""

    def too_few(*arguments):
        return replace(recommend(*arguments), n_samples=20.0, each=(20.0,))

    monkeypatch.setattr(planning, "recommend", too_few)
    assert main(["--dictionary", "rows.npz", "--weights", "alpha.csv"]) == 1
    assert "recommended number, 20: refuted" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--s", "0"], "sparsity must be in [1, 128], got 0"),
        (["--epsilon", "0"], "epsilon must be a finite number > 0"),
        (["--delta", "1"], "delta must lie strictly between 0 and 1"),
        (["--ratio", "1"], "density_ratio must be a number > 1"),
        (["--estimator", "guess"], "estimator must be one of"),
        (["--exposure", "odd"], "exposure must be one of"),
        (["--family", "odd"], "family must be one of"),
        (["--trials", "0"], "n_trials must be >= 1"),
        (["--dictionary", "nowhere.npz"], "no dictionary file"),
        (["--dictionary", "rows.npz", "--ratio", "3"], "--ratio does not apply"),
        (["--dictionary", "rows.npz", "--outcomes", "3"], "--outcomes does not apply"),
        (["--dictionary", "made", "--context", "x"], "--context does not apply"),
        (["--dictionary", "rows.npz", "--tokens", "2", "--weights", "alpha.csv"], "--tokens takes random rows"),
        (["--dictionary", "rows.npz", "--tokens", "9"], "tokens must be in [1, 3], got 9"),
        (["--dictionary", "rows.npz", "--weights", "alpha.csv", "--s", "2"], "--weights goes neither"),
        (["--dictionary", "rows.npz", "--weights", "nowhere.csv"], "no file nowhere.csv"),
        (["--dictionary", "rows.npz", "--weights", "bad.csv"], "alpha must sum to 1"),
        (["--weights", "alpha.csv"], "alpha.csv must hold 128 weights of the rows"),
        (["--json", "nowhere/plan.json"], "--json: there is no folder"),
    ],
)
def test_wrong_values_end_with_one_clear_line(flags, words, folder, capsys):
    assert main(flags) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.startswith("error: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("flags", [["--s", "1..4"], ["--unknown"], ["--eps", "1e-3"], ["--epsilon", "small"]])
def test_the_parser_refuses_in_one_line_too(flags, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(flags)
    assert capsys.readouterr().err.count("\n") == 1


def test_help_teaches_every_flag(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    for flag in FLAGS.split():
        assert f"{flag} " in shown
    assert "examples:" in shown
    assert "NATS" in shown


def test_numbers_are_read_from_arrays_and_text(tmp_path):
    np.save(tmp_path / "a.npy", [0.25, 0.75])
    np.savez(tmp_path / "a.npz", alpha=[0.25, 0.75])
    (tmp_path / "column.txt").write_text("0.25\n0.75\n")
    (tmp_path / "comma.csv").write_text("0.25,0.75\n")
    for name in ("a.npy", "a.npz", "column.txt", "comma.csv"):
        assert read_numbers(tmp_path / name, 2, "weights").tolist() == [[0.25, 0.75]]
    np.savez(tmp_path / "b.npz", alpha=[1.0], beta=[1.0])
    (tmp_path / "words.txt").write_text("a b\n")
    (tmp_path / "empty.txt").write_text("# nothing\n")
    (tmp_path / "bad.npz").write_bytes(b"PK no")
    for name in ("b.npz", "words.txt", "empty.txt", "bad.npz"):
        with pytest.raises(ValueError, match=name.split(".")[0]):
            read_numbers(tmp_path / name, 2, "weights")
