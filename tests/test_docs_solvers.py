"""docs/solvers.md: its tables are those of the benchmarks, it names what exists, and says what the code does."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pandas as pd
import pytest

from markov_theory import solvers
from markov_theory.solvers import _descent

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
PAGE = (ROOT / "docs" / "solvers.md").read_text()


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("solver_tables")


def rows(heading):
    """Cells of the table below a heading, without its first two lines."""
    section = PAGE.split(f"### {heading}")[1].split("\n### ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def agrees(printed, value, digits=2):
    """Whether `printed` is `value` to so many significant digits."""
    return float(printed.replace(",", "")) == pytest.approx(value, rel=0.5 * 10.0 ** (1 - digits) * 1.001)


def test_the_page_shows_the_tables(tables):
    assert tables.with_tables(PAGE) == PAGE


def test_passes_and_gaps_are_those_measured():
    table = pd.read_csv(BENCHMARKS / "constrained_kl.csv").set_index(["problem", "solver"])
    shown = rows("Constrained KL")
    assert len(shown) == len(table.index.unique("problem"))
    for cells, problem in zip(shown, table.index.unique("problem"), strict=True):
        assert cells[0] == problem.replace("e+0", "e")
        of = table.loc[problem]
        assert agrees(cells[2], of.ms["kernel"] / of.ms["matrix-vector"])
        assert agrees(cells[3], of.ms["simplex_mle"] / of.ms["matrix-vector"])
        assert agrees(cells[4], of.worst_gap["simplex_mle"], digits=1)
        assert of.worst_gap["simplex_mle"] <= 1e-9


def test_ratios_of_exact_subsets_are_those_of_the_times():
    table = pd.read_csv(BENCHMARKS / "best_subset.csv", dtype=str, keep_default_na=False)
    assert len(rows("Exact ℓ0")) == len(table)
    for cells, row in zip(rows("Exact ℓ0"), table.to_dict("records"), strict=True):
        assert cells[:5] == [row[key] for key in ("T", "J", "N", "truth", "s")]
        if cells[8]:
            assert float(cells[8].lstrip(">")) == pytest.approx(
                float(row["SCIP ms"].lstrip(">")) / float(cells[5]), rel=0.02
            )


def test_ratios_of_matching_pursuit_lie_in_their_range():
    table = pd.read_csv(BENCHMARKS / "matching_pursuit.csv")
    assert len(rows("Matching pursuit")) == len(table)
    assert (table["same supports"].str.split("/").str[0] == table["same supports"].str.split("/").str[1]).all()
    assert (table.k == 8).all()
    for cells in rows("Matching pursuit"):
        ratio, least, most, with_preparation = (float(cell) for cell in cells[6:10])
        assert with_preparation <= ratio
        assert least <= ratio <= most


def test_what_the_page_names_exists():
    folder = Path(solvers.__file__).parent
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    for name in re.findall(r"`(\w+)`", PAGE.split("## Constrained KL, step by step")[0]):
        assert f"def {name}(" in text, name
    for name in re.findall(r"`(_\w+\.py)`", PAGE):
        assert (folder / name).exists() or (folder.parent / name).exists(), name
    for name in re.findall(r"`(benchmarks/\w+\.(?:py|csv))`", PAGE):
        assert (ROOT / name).exists(), name


def test_the_threshold_of_single_precision_is_the_code_s():
    assert _descent.ROUGH == 1e-5
    assert "10⁻⁵ of" in PAGE


def test_lines_are_short():
    assert [line for line in PAGE.splitlines() if len(line) > 120 and not line.startswith("|")] == []
