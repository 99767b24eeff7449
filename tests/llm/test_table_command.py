"""The command ``python -m markov_theory.llm table``: one file, made once; one line for each mistake."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from markov_theory.dictionary import Dictionary
from markov_theory.llm.__main__ import main
from markov_theory.llm.cache import cache_folder

pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture
def folder(tmp_path: Path, tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MARKOV_THEORY_CACHE", str(tmp_path / "cache"))
    known = tiny.tokenizer()
    tiny.llama(len(known)).save_pretrained(tmp_path / "model")
    known.save_pretrained(tmp_path / "model")
    (tmp_path / "text.txt").write_text(tiny.text, encoding="utf-8")
    return tmp_path


def arguments(folder: Path, *more: str) -> list[str]:
    fixed = ["table", "--model", str(folder / "model"), "--text", str(folder / "text.txt")]
    return [*fixed, "--tokens", "8", "--outcomes", "30", *more]


def test_the_same_arguments_find_the_table_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "new" / "rows.npz"
    assert main(arguments(folder, "--out", str(out))) == 0
    first = capsys.readouterr()
    assert "written: " in first.out
    assert first.err == ""
    made = Dictionary.load(out)
    assert made.transitions.shape == (8, 30)
    assert main(arguments(folder, "--print-path")) == 0
    path = Path(capsys.readouterr().out.strip())
    assert path.read_bytes() == out.read_bytes()
    stamp = path.stat().st_mtime_ns
    assert main(arguments(folder)) == 0
    second = capsys.readouterr().out
    assert f"reused: {path}" in second
    assert path.stat().st_mtime_ns == stamp
    assert {file.name for file in path.parent.iterdir()} == {path.name}


def test_a_damaged_table_is_made_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(folder, "--print-path")) == 0
    path = Path(capsys.readouterr().out.strip())
    before = Dictionary.load(path)
    path.write_bytes(path.read_bytes()[:100])
    assert main(arguments(folder)) == 0
    assert "making the table again" in capsys.readouterr().err
    np.testing.assert_array_equal(Dictionary.load(path).transitions, before.transitions)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--tokens", "none"], "--tokens: must be a whole number >= 1, got 'none'"),
        (["--tokens", "500"], "n_tokens is 500, but the text has only"),
        (["--outcomes", "1"], "--outcomes: must be a whole number >= 2 or 'all', got '1'"),
        (["--outcomes", "9999"], "n_outcomes"),
        (["--context", ""], "context must have at least one token"),
        (["--text", "missing.txt"], "--text missing.txt cannot be read"),
        (["--out", "rows.csv"], "--out must end in .npz"),
        (["--model", "nobody/nothing"], "no model 'nobody/nothing'"),
        (["--dtype", "int8"], "dtype must be one of"),
        (["--device", "abacus"], "device 'abacus' is not usable"),
        (["--batch-size", "0"], "--batch-size: must be a whole number >= 1"),
    ],
)
def test_a_wrong_value_is_one_line_and_status_2(
    folder: Path, wrong: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status = main(arguments(folder, *wrong))
    except SystemExit as stop:
        status = stop.code
    printed = capsys.readouterr()
    assert status == 2
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_failure_is_one_line_and_status_1(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MARKOV_THEORY_CACHE", str(folder / "text.txt"))
    assert main(arguments(folder)) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "table" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["table", "--help"])
    shown = capsys.readouterr().out
    for word in ("p(. | context, v)", "--out", "MARKOV_THEORY_CACHE", "position 0"):
        assert word in shown


@pytest.mark.real_model
def test_the_packaged_model_gives_a_table_with_a_margin(
    packaged_model: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "models").symlink_to(cache_folder("models"))  # converted already; no table is
    monkeypatch.setenv("MARKOV_THEORY_CACHE", str(tmp_path / "cache"))
    out = tmp_path / "rows.npz"
    command = [sys.executable, "-m", "markov_theory.llm", "table", "--tokens", "64", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = Dictionary.load(out)
    assert made.transitions.shape == (64, 2048)
    assert made.margin > 0
    assert np.isfinite(made.density_ratio)
    assert made.notes["mean KL to the mean row (nats)"] > 1
    assert 0 < made.notes["rest mass, mean"] < made.notes["rest mass, max"] < 1
