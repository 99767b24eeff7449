"""The theory's pages: a section for each bound, examples that run, tables from their data, sound links and formulas."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from markov_theory import bounds
from markov_theory.bounds import BOUNDS
from markov_theory.bounds.base import Bound
from markov_theory.verify.registry import registry

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "theory").glob("*.md"))
TEXTS = {page.name: page.read_text() for page in PAGES}
HEADING = re.compile(r"^#{1,6} (.+)$", flags=re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
DISPLAY = re.compile(r"\$\$(.+?)\$\$", flags=re.DOTALL)
INLINE = re.compile(r"\$([^$]+)\$")
# Every bound of the package, registered or not.
MODULES = [
    importlib.import_module(f"{bounds.__name__}.{module.name}") for module in pkgutil.iter_modules(bounds.__path__)
]
STATED = {
    thing.label: thing
    for module in MODULES
    for thing in vars(module).values()
    if inspect.isclass(thing) and issubclass(thing, Bound) and hasattr(thing, "label")
} | BOUNDS
REPRESENTATIONS = {"K1": ("upper", "derived")}  # statements on a sparsity, which BOUNDS does not hold


@pytest.fixture
def theory(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "figures"))
    return importlib.import_module("theory")


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE))


def slug(heading: str) -> str:
    """The anchor that GitHub, and MyST after it, gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def slugs(name: str) -> list[str]:
    return [slug(heading) for heading in HEADING.findall(without_code(TEXTS[name]))]


def index_rows() -> dict[str, list[str]]:
    """Label to the cells of its row in the index's table of statements."""
    rows = re.findall(r"^\| \[([^\]]+)\]\(([^)]+)\) \| (.+) \|$", TEXTS["index.md"], flags=re.MULTILINE)
    return {label: [link, *rest.split(" | ")] for label, link, rest in rows}


@pytest.mark.parametrize("label", sorted({*STATED, *REPRESENTATIONS}))
def test_every_bound_has_a_section_and_a_row(label):
    kind, origin = REPRESENTATIONS.get(label) or (STATED[label].kind, STATED[label].origin)
    places = [name for name, text in TEXTS.items() if re.search(rf"^## {re.escape(label)}: ", text, flags=re.MULTILINE)]
    assert len(places) == 1
    link, stated_kind, stated_origin, _ = index_rows()[label]
    assert link.startswith(f"{places[0]}#{slug(label)}-")
    assert stated_kind == kind
    assert stated_origin.split()[0] == origin


def test_no_row_is_about_an_unknown_statement():
    assert not {label for label in index_rows() if label[0].isupper()} - {*STATED, *REPRESENTATIONS}


def who_states_what() -> dict[str, set[str]]:
    """Origin to labels, as the index lists them."""
    section = TEXTS["index.md"].split("## Who states what")[1].split("\n## ")[0]
    items = re.findall(r"^- \*([^*]+)\*,(.+?):\s(.+?)(?:\.$|;)", section, flags=re.MULTILINE | re.DOTALL)
    labels = {*STATED, *REPRESENTATIONS, *(claim.label for claim in registry())}
    return {origin: {word.strip(" []") for word in re.split(r"[,\n]|\(", told)} & labels for origin, _, told in items}


def test_the_index_says_who_states_what():
    told = who_states_what()
    assert list(told) == ["paper", "derived, form: paper", "derived"]
    origins = {label: bound.origin for label, bound in STATED.items()}
    origins |= {label: origin for label, (_, origin) in REPRESENTATIONS.items()}
    origins |= {claim.label: claim.origin for claim in registry() if claim.origin == "paper"}
    by_origin = {label: origin.split(",")[0] for origin, labels in told.items() for label in labels}
    assert by_origin == origins
    assert sum(map(len, told.values())) == len(by_origin)  # none twice
    of_form = {label for label, cells in index_rows().items() if "form: paper" in "".join(cells)}
    assert told["derived, form: paper"] == of_form
    for label in {*STATED, *REPRESENTATIONS}:
        (head,) = re.findall(rf"^## {re.escape(label)}: .+?\*\*Statement", "\n".join(TEXTS.values()), flags=re.M | re.S)
        assert "derived here" in " ".join(head.split())
        assert ("the paper's" in " ".join(head.split())) == (label in of_form)


@pytest.mark.parametrize("label", ["S3", "E3"])
def test_a_prediction_says_so(label):
    page = next(text for text in TEXTS.values() if f"## {label}: " in text)
    head = page.split(f"## {label}: ")[1].split("**Statement.**")[0]
    assert "**Status.** A prediction and not a bound" in head


@pytest.mark.parametrize("name", TEXTS)
def test_links_resolve(name):
    anchors = slugs(name)
    assert len(anchors) == len(set(anchors))
    for target in LINK.findall(without_code(TEXTS[name])):
        path, _, fragment = target.partition("#")
        place = (ROOT / "docs" / "theory" / path).resolve() if path else ROOT / "docs" / "theory" / name
        assert place.is_file(), target
        if fragment:
            assert fragment in slugs(place.name), target


@pytest.mark.parametrize("name", TEXTS)
def test_mathematics_survives_markdown(name):
    """Nothing in a formula that a Markdown parser may take for its own: escapes, emphasis, tags, lists, table cells."""
    text = without_code(TEXTS[name])
    for line in text.splitlines():
        if line.startswith("|"):
            assert "|" not in "".join(INLINE.findall(line)), line
    formulas = DISPLAY.findall(text)
    rest = DISPLAY.sub("", text)
    for match in INLINE.finditer(rest):
        around = rest[max(0, match.start() - 1) : match.start()] + rest[match.end() : match.end() + 1]
        assert not any(c.isalnum() for c in around), match.group()
        assert "\n" not in match.group(1), match.group()
        assert match.group(1) == match.group(1).strip(), match.group()
        formulas.append(match.group(1))
    for formula in formulas:
        assert not re.search(r"\\[!-/:-@\[-`{-~ ]", formula), formula  # a backslash before punctuation is an escape
        assert not re.search(r"(?<![A-Za-z0-9])_", formula), formula
        assert not re.search(r"<[A-Za-z/!?]|[*~`]", formula), formula
        assert not re.search(r"^\s*([-+]\s|[#>]|\d+[.)]\s)", formula, flags=re.MULTILINE) or "\n" not in formula, (
            formula
        )
        assert formula.count("{") == formula.count("}"), formula


@pytest.mark.parametrize("name", TEXTS)
def test_examples_say_what_they_print(name):
    lines, inside = [], False
    for line in TEXTS[name].splitlines():
        fence = line.startswith("```")
        lines.append(line if inside and not fence else "")
        inside = (line == "```python") if fence else inside
    test = doctest.DocTestParser().get_doctest("\n".join(lines) + "\n", {}, name, name, 0)
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert not said, "".join(said)


def test_references_are_cited_and_citations_have_a_reference():
    lines = re.split(r"^- ", TEXTS["index.md"].split("## References")[1], flags=re.MULTILINE)[1:]
    brackets = [found for text in TEXTS.values() for found in re.findall(r"\[([^\]$]+)\](?!\()", without_code(text))]
    cited = {pair for found in brackets for pair in re.findall(r"([A-Z][\w-]+)[^\d,]* ((?:19|20)\d\d)\b", found)}
    assert cited
    for name, year in cited:
        assert any(name in line and year in line for line in lines), (name, year)
    for line in lines:
        assert any(name in line and year in line for name, year in cited), line


class TestRatios:
    ratios = pd.read_csv(ROOT / "figures" / "bound_ratios.csv")
    figure = pd.read_csv(ROOT / "figures" / "all_bounds.csv")

    def test_the_page_shows_the_table(self, theory):
        assert theory.with_tables(TEXTS["constants.md"], self.ratios) == TEXTS["constants.md"]

    def test_every_bound_is_in_it(self):
        assert set(BOUNDS) <= set(self.ratios.bound)

    def test_values_are_what_the_bounds_say(self):
        """Nothing is stale, as far as numbers of one instance tell."""
        opposed = self.ratios[(self.ratios.instance == "D") & (self.ratios.family == "known support")]
        D, q = [[0.2, 0.8], [0.8, 0.2]], [0.5, 0.5]
        for label in ("S6", "S6'", "S6^1", "L1", "L2"):
            for row in opposed[opposed.bound == label].itertuples():
                assert row.value == BOUNDS[label].n_samples(D, q, row.epsilon, row.delta)

    @pytest.mark.parametrize("table", ["ratios", "figure"])
    def test_truth_lies_between_the_bounds(self, table):
        """Exact where N* is exact; where it was measured, up to its interval (wrong with probability ≤ 5 %)."""
        frame = getattr(self, table)
        one_law = frame.family != "naming the row"  # where a bound on the worst of several laws says nothing of N*
        of_the_worst = one_law & frame.bound.map(lambda label: "any" in STATED[label].speaks_of)
        upper, lower = frame[frame.kind == "upper"], frame[(frame.kind == "lower") & ~of_the_worst]
        assert len(upper) > 5
        assert len(lower) > 5
        assert (upper.value >= np.where(upper.how == "exact", upper.n_star, upper.low + 1)).all()
        assert (lower.value <= lower.high).all()
        assert (frame.low <= frame.n_star).all()
        assert (frame.n_star <= frame.high).all()
        np.testing.assert_allclose(frame.ratio, frame.value / frame.n_star, rtol=1e-12)

    def test_a_new_bound_is_picked_up(self, theory, monkeypatch):
        class Half(Bound):
            label, kind, origin, speaks_of = "half", "lower", "derived", ("oracle",)
            statement = reason = ""

            @staticmethod
            def n_samples(sparsity, epsilon):
                return sparsity / epsilon

        monkeypatch.setitem(BOUNDS, "half", Half)
        cell = theory.Cell("known support", "one", None, ("oracle",), epsilon=0.5, given={"sparsity": 3})
        assert cell.bounds()["half"] == 6.0
        assert (
            "half"
            not in theory.Cell("known support", "one", None, ("l0",), epsilon=0.5, given={"sparsity": 3}).bounds()
        )

    def test_the_figure_is_drawn_from_its_table(self, theory, tmp_path):
        theory.draw_again(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {"all_bounds.png", "all_bounds.pdf"}
