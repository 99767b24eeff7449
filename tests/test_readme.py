"""README's commands run, and its Python does what it says."""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
FAST = ("python -m markov_theory.sweep --dictionary examples/rows.csv", "python -m markov_theory.llm table")
TESTED_BY_CALLING_THE_TESTS = ("make test",)  # this very run, in continuous integration


def commands():
    blocks = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    lines = [line.split("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(TESTED_BY_CALLING_THE_TESTS)]


def run(command, folder):
    """Run a command of README with this interpreter and its environment, results in `folder`."""
    words = shlex.split(command)
    if words[0] == "python":
        words[0] = sys.executable
        option, name = {"markov_theory.llm": ("--out", "table.npz"), "markov_theory.plan": ("--json", "plan.json")}.get(
            words[2], ("--out", "out")
        )
        words += [option, str(folder / name)]
    else:
        words += [f"VENV={sys.prefix}"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env={**os.environ}, check=False)


def test_readme_shows_the_two_commands():
    assert "make sweep" in README
    assert "make test" in README
    assert commands()


@pytest.mark.real_model
@pytest.mark.parametrize("command", [c for c in commands() if c.startswith(FAST)])
def test_fast_commands_run(command, tmp_path):
    finished = run(command, tmp_path)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.long
@pytest.mark.parametrize("command", [c for c in commands() if not c.startswith(FAST)])
def test_long_commands_run(command, tmp_path):
    finished = run(command, tmp_path)
    assert finished.returncode == 0, finished.stderr


def test_the_python_example_finds_the_planted_rows():
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert sum(bool(line.strip()) for line in code.splitlines()) <= 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README", "exec"), {})
    rows, kl, gap, bound = printed.getvalue().splitlines()
    found, planted = re.findall(r"\[[\d ]+\]", rows)
    assert found == planted
    assert 0 < float(kl) < 1e-3
    assert 0 < float(gap) < 0.01
    assert float(bound) > 1000


def test_pictures_and_links_exist():
    for target in re.findall(r"\]\(([^)]+)\)", README):
        assert (ROOT / target.partition("#")[0]).exists(), target


def test_figures_are_drawn_from_their_tables(tmp_path):
    subprocess.run([sys.executable, "-c", f"import pathlib, sys; sys.path.insert(0, 'figures'); import make; "
                    f"make.main(pathlib.Path({str(tmp_path)!r}))"], cwd=ROOT, check=True)  # fmt: skip
    drawn = {path.name for path in tmp_path.iterdir()}
    names = ("n_star_made", "n_star_llm", "dependence", "recovery")
    assert drawn == {f"{name}.{end}" for name in names for end in ("png", "pdf")}


def test_the_table_of_speed_is_that_of_the_benchmarks():
    script = [sys.executable, str(ROOT / "benchmarks" / "readme_table.py")]
    assert subprocess.run(script, capture_output=True, text=True, check=True).stdout in README
