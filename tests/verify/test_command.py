"""The command: exit codes, what it stores, and that numbers depend neither on workers nor on how it is called."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from markov_theory.verify import execution, report
from markov_theory.verify.__main__ import main
from markov_theory.verify.claims import Claim, Finding, Settings
from markov_theory.verify.execution import Task, perform, perform_all
from markov_theory.verify.search import QUICK

EXAMPLE = """
import math
from markov_theory.bounds import Bound

class Mine(Bound):
    label, kind, origin, speaks_of, event = "Mine", "upper", "derived", ("one-to-one",), "row"
    statement = reason = "for the test"

    @staticmethod
    def n_samples(margin, log_ratio, n_tokens, delta):
        if margin == 0 or math.isinf(log_ratio):
            return math.inf
        return FACTOR * (2 + log_ratio) / margin * math.log(n_tokens / delta)

class Broken(Mine):
    label = "Broken"

    @staticmethod
    def n_samples(margin, delta):
        raise RuntimeError("not today")
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write a module with bounds of one's own, importable from the current folder."""

    def write(factor):
        name = f"own_bounds_{str(factor).replace('.', '_')}"
        (tmp_path / f"{name}.py").write_text(EXAMPLE.replace("FACTOR", str(factor)))
        monkeypatch.chdir(tmp_path)
        monkeypatch.syspath_prepend(str(tmp_path))
        return name

    return write


def run(*arguments, folder):
    return main([*arguments, "--jobs", "1", "--out", str(folder)])


class TestExitCodes:
    def test_what_holds_is_zero(self, tmp_path, capsys):
        assert run("--claims", "kappa,S6", folder=tmp_path) == 0
        shown = capsys.readouterr().out
        assert "2 holds" in shown
        assert "kappa" in shown

    def test_a_true_bound_of_ones_own(self, own, tmp_path, capsys):
        assert run("--bounds", f"{own(2.0)}:Mine", folder=tmp_path / "out") == 0
        assert "2 holds" in capsys.readouterr().out  # at small instances, and at scale

    def test_a_false_bound_of_ones_own(self, own, tmp_path, capsys):
        assert run("--bounds", f"{own(0.4)}:Mine", "--claims", "Mine", folder=tmp_path / "out") == 1
        assert "1 violated" in capsys.readouterr().out

    def test_a_bound_that_raises(self, own, tmp_path, capsys):
        assert run("--bounds", f"{own(3.0)}:Broken", "--claims", "Broken", folder=tmp_path / "out") == 1
        assert capsys.readouterr().err == "error: Broken: RuntimeError: not today\n"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--claims", "X9"), "no claim matches 'X9'"),
            (("--bounds", "nowhere:Bound"), "cannot be imported"),
            (("--bounds", "pathlib:Path"), "must be a subclass"),
            (("--seed", "-1"), "--seed must be >= 0"),
            (("--mutants", "--claims", "nonsense*"), "no claim matches"),
        ],
    )
    def test_wrong_input_is_two_and_one_line(self, arguments, message, tmp_path, capsys):
        assert run(*arguments, folder=tmp_path / "out") == 2
        said = capsys.readouterr().err
        assert message in said
        assert len(said.strip().splitlines()) == 1
        assert not (tmp_path / "out").exists()

    @pytest.mark.parametrize("arguments", [("--quick", "--full"), ("--effort",), ("--jobs", "many")])
    def test_wrong_flags(self, arguments, capsys):
        with pytest.raises(SystemExit) as stop:
            main(list(arguments))
        assert stop.value.code == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1

    def test_no_workers(self, tmp_path, capsys):
        assert main(["--jobs", "0", "--out", str(tmp_path)]) == 2
        assert "--jobs must be >= 1" in capsys.readouterr().err


class TestMutants:
    def test_they_are_refuted_and_the_factors_are_shown(self, tmp_path, capsys):
        assert run("--mutants", "--claims", "S6^1,kappa", folder=tmp_path) == 0
        shown = capsys.readouterr().out
        assert "4 of 4 false statements refuted" in shown
        stored = json.loads((tmp_path / "mutants.json").read_text())
        factor = stored["factors"]["S6^1"]
        assert 1 <= factor["survives"] < factor["killed"]
        assert factor["slack"] <= factor["killed"]
        assert stored["factors"]["kappa"]["killed"] == pytest.approx(1, abs=0.01)

    def test_a_refuted_bound_of_ones_own_is_told_by_how_much(self, own, tmp_path, capsys):
        name = f"{own(0.4)}:Mine"
        assert run("--mutants", "--bounds", name, folder=tmp_path / "out") == 1
        assert "1 of 1 bounds refuted" in capsys.readouterr().out
        factor = json.loads((tmp_path / "out" / "mutants.json").read_text())["factors"]["Mine"]
        assert 0 < factor["survives"] < factor["killed"] <= 1

    def test_a_true_bound_of_ones_own_is_too(self, own, tmp_path, capsys):
        assert run("--mutants", "--bounds", f"{own(2.0)}:Mine", folder=tmp_path / "out") == 0
        assert "0 of 1 bounds refuted" in capsys.readouterr().out

    def test_one_that_survives_is_told(self, tmp_path, capsys, monkeypatch):
        true = execution.mutants()[0]
        monkeypatch.setattr(
            "markov_theory.verify.execution.perform",
            lambda task, settings, own=(): (
                Finding("holds", "", "", 0.0, 0.0, 0.0) if task.kind == "mutant" else execution.Factor(2.0, 1.9, 2.0)
            ),
        )
        assert run("--mutants", "--claims", true.of, folder=tmp_path) == 1
        assert f"not refuted: {true.name}" in capsys.readouterr().out


class TestStore:
    def test_what_is_written_can_be_read(self, tmp_path):
        run("--claims", "S6,L1,kappa", "--seed", "3", folder=tmp_path)
        document = json.loads((tmp_path / "claims.json").read_text())
        assert (document["seed"], document["effort"]) == (3, "quick")
        assert set(document["versions"]) >= {"python", "numpy", "scipy", "markov-theory"}
        again = report.load(tmp_path / "claims.json")
        for label in ("S6", "L1", "kappa"):
            assert again[label] == perform(Task("claim", label), Settings(seed=3))
        table = pd.read_csv(tmp_path / "claims.csv")
        assert table.label.tolist() == ["S6", "L1", "kappa"]
        assert table.slack.tolist() == pytest.approx([again[label].slack for label in table.label])

    @pytest.mark.parametrize("value", [0.1 + 0.2, 1e-320, -math.inf, math.inf])
    def test_numbers_come_back_as_they_were(self, value, tmp_path):
        finding = Finding("holds", "é", "n", value, value, value, instance={"rows": [[0.5, 0.5]], "word": "inf"})
        path, _ = report.save([(Claim("C", "s", "derived", lambda s: finding), finding)], Settings(), tmp_path, "c")
        loaded = report.load(path)["C"]
        assert (loaded.value, loaded.instance, loaded.tested) == (value, finding.instance, "é")
        assert math.isnan(loaded.slack)

    def test_what_is_no_report_is_refused(self, tmp_path):
        (tmp_path / "other.json").write_text("[]")
        with pytest.raises(ValueError, match="no report"):
            report.load(tmp_path / "other.json")


def test_numbers_do_not_depend_on_the_workers(own):
    name = own(2.5)
    bound = __import__(name).Mine
    tasks = [Task("claim", "Mine"), Task("claim", "Mine@scale")]
    here = perform_all(tasks, Settings(), [bound], 1)
    seen = []
    there = perform_all(tasks, Settings(), [bound], 2, seen.append)
    assert repr(here) == repr(there)
    assert sorted(seen) == [1, 2]
    assert repr(perform_all(tasks, Settings(seed=1), [bound], 1)) != repr(here)


def test_the_example_is_refuted(tmp_path):
    """The bare rate s·log²c/ε asks for next to nothing where c is near 1."""
    command = [sys.executable, "-m", "markov_theory.verify", "--bounds", "examples.own_bound:PaperRate"]
    done = subprocess.run(
        [*command, "--claims", "paper-rate", "--jobs", "1", "--out", str(tmp_path)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    found = report.load(tmp_path / "claims.json")["paper-rate"]
    assert found.value > found.limit


def test_quick_is_what_one_gets():
    assert Settings().effort == QUICK
