"""What a page holds: every verdict, every number of the tables, how it was made; escaped, and free of the network."""

import json
import math
import re
import shlex
from fractions import Fraction

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from markov_theory.bounds.higher_order import K1
from markov_theory.report.__main__ import main
from markov_theory.report.content import shown
from markov_theory.report.figures import sample_complexity
from markov_theory.report.stored_sweep import StoredSweep
from tests.report.conftest import FEW, PICTURE, SCRIPT

VERDICTS = ("holds", "violated", "inconclusive", "says nothing")


def texts(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def facts(page):
    """Terms and their texts, from the words of the page."""
    return " ".join(page.text.split())


@pytest.mark.parametrize("name", ["cells", "summary"])
def test_every_cell_of_the_tables_is_on_the_page(made, page, name):
    table = texts(made / f"{name}.csv")
    (found,) = [one for caption, (one,) in page(made).tables.items() if f"{name}.csv" in caption]
    assert found.columns == list(table.columns)
    assert found.exact() == table.to_numpy().tolist()


@given(st.floats(allow_nan=False))
def test_what_is_shown_is_the_number_in_four_digits(number):
    text = shown(number).replace(",", "").replace("−", "-").replace("∞", "inf")
    if math.isinf(number):
        assert float(text) == number
    else:
        assert abs(Fraction(text) - Fraction(number)) <= abs(Fraction(number)) / 1999


def test_every_verdict_of_the_sweep_is_counted(made, page):
    table = page(made).table("Bounds, tried")
    verdicts = " ".join(texts(made / "cells.csv").verdicts).split()
    assert verdicts
    for label, *counts in zip(table.column("bound"), *(table.column(v) for v in VERDICTS), strict=True):
        tallied = [str(verdicts.count(f"{label}:{v.replace(' ', '-')}")) for v in VERDICTS]
        assert counts == (tallied if label != "S3" else [""] * 4)
    assert set(table.column("verdict")) == {"holds", "promises nothing"}
    assert dict(zip(table.column("bound"), table.tones("verdict"), strict=True))["S6"] == "good"


def test_a_violated_bound_leads(hostile, page):
    seen = page(hostile)
    table = seen.table("Bounds, tried")
    row = dict(zip(table.columns, table.rows[table.column("bound").index("few+")], strict=True))
    assert row["verdict"] == ("violated", "violated", "bad")
    assert row["violated"][0] == "2"
    assert "violated: few+ at 2 truths" in seen.text.split("Bounds, tried")[0]


def test_a_violated_statement_that_is_no_bound_leads_too(swept, page, tmp_path, monkeypatch):
    order = ("--order", "2", "--branching", "3", "--tokens", "8", "--s", "2", "--epsilon", "1e-2", "--delta", "0.2")
    flags = (*order, *FEW, "--truths", "1", "--estimators", "oracle", "--out", tmp_path / "order")
    with monkeypatch.context() as patch:
        patch.setattr(K1, "sparsity", staticmethod(lambda order, branching, whole_entry=False: branching))
        assert swept(*flags) == 1
    seen = page(tmp_path / "order")
    table = seen.table("Statements, checked exactly")
    assert table.column("statement") == ["K1"]
    assert table.tones("verdict") == ["bad"]
    assert "violated: K1 at 1 truth" in seen.text.split("Statements, checked")[0]


def test_a_name_with_dollars_is_drawn_as_it_is(hostile, monkeypatch):
    titles = []
    monkeypatch.setattr(Figure, "suptitle", lambda self, text, **options: titles.append((text, options)))
    sample_complexity(StoredSweep.read(hostile))
    assert PICTURE in titles[0][0]
    assert titles[0][1]["parse_math"] is False


def test_error_probabilities_are_stated(made, verified, page):
    said = facts(page(made))
    judged = int((texts(made / "cells.csv").verdicts != "").sum())
    assert "wrong with probability at most 5%" in said
    assert f"{judged} judged cells: up to {0.05 * judged:.3g} may be expected" in said
    said = facts(page(verified))
    assert "Exact checks carry no error probability" in said
    assert "Holm's correction" in said
    assert "probability at most 5%" in said


def test_claims_are_all_there_with_their_verdicts(verified, page):
    seen, stored = page(verified), texts(verified / "claims.csv")
    table = seen.table("Claims")
    assert table.column("claim") == stored.label.tolist()
    assert table.column("verdict") == stored.verdict.tolist()
    whole = seen.table("Everything that was found: claims.csv")
    assert whole.columns == list(stored.columns)
    for row, record in zip(whole.exact(), stored.to_numpy().tolist(), strict=True):
        for exact, text in zip(row, record, strict=True):
            assert exact == text or float(exact) == float(text)


def test_a_false_statement_that_survives_is_bad_news(verified, page, tmp_path):
    table = page(verified).table("Planted false statements")
    assert set(table.column("verdict")) == {"refuted"}
    assert set(table.tones("verdict")) == {"good"}
    document = json.loads((verified / "mutants.json").read_text())
    document["claims"][0]["verdict"] = "holds"
    (tmp_path / "mutants.json").write_text(json.dumps(document))
    seen = page(tmp_path)
    assert seen.table("Planted false statements").tones("verdict")[0] == "bad"
    assert f"not refuted: {document['claims'][0]['label']}" in seen.text


def test_a_refuted_plan_is_bad_news_and_a_confirmed_one_good(planned, page, tmp_path):
    document = json.loads(planned.read_text())
    seen = page(planned)
    trials = seen.table("Trials of")
    assert set(trials.column("number")) == {run["at"] for run in document["simulations"]}
    for run in document["simulations"]:
        run["verdict"] = "refuted"
    (tmp_path / "refuted.json").write_text(json.dumps(document))
    assert set(page(tmp_path / "refuted.json").table("Trials of").tones("failure ≤ δ")) == {"bad"}
    labels = [requirement["label"] for requirement in document["requirements"]]
    assert seen.table("Samples of one new token").column("statement") == labels
    assert f"N = {document['recommendation']['n_samples']['value']:,.0f} samples" in facts(seen)


def test_fits_have_their_intervals(made, page):
    table = page(made).table("Growth")
    stored = json.loads((made / "growth.json").read_text())
    expected = [list(map(str, numbers)) for f in stored.values() for fit in f for numbers in fit["parameters"].values()]
    assert expected
    assert [list(row) for row in zip(*map(table.column, ("value", "low", "high")), strict=True)] == expected


def test_how_it_was_made_is_told(made, page):
    seen = page(made)
    (run,) = json.loads((made / "provenance.json").read_text())["runs"]
    said = facts(seen)
    for part in (*run["machine"].values(), *(f"{name} {number}" for name, number in run["versions"].items())):
        assert part in said
    assert float(seen.table("Runs").column("duration (s)")[0]) == run["seconds"]
    assert seen.table("Runs").column("command") == [run["command"]]
    assert run["started"][:10] in said
    assert (made / "sweep.toml").read_text() in seen.raw["pre"]


def test_the_command_of_the_page_makes_the_same_table(made, page, swept, tmp_path, monkeypatch):
    (line,) = re.findall("^python -m .* --spec .*$", page(made).raw["pre"], flags=re.MULTILINE)
    monkeypatch.chdir(tmp_path)
    assert swept(*shlex.split(line)[3:]) == 0
    assert (tmp_path / "results" / "again" / "cells.csv").read_bytes() == (made / "cells.csv").read_bytes()


def test_names_are_escaped(hostile, page):
    seen = page(hostile, flags=["--title", "<i>title</i> & more"])
    tags = [tag for tag, _ in seen.tags]
    assert tags.count("script") == 1
    assert tags.count("img") == 1
    assert not {"i", "b"} & set(tags)
    assert not [name for _, told in seen.tags for name in told if name.startswith("on")]
    assert SCRIPT in seen.text
    assert PICTURE in seen.text
    assert "<b>mine</b>" in seen.text
    assert seen.raw["title"] == "<i>title</i> & more"


def test_nothing_is_fetched(made, hostile, verified, planned, page):
    seen = page(made, hostile, verified, planned)
    for tag, told in seen.tags:
        for name in ("src", "href", "srcset", "data", "action", "poster", "background"):
            assert (told.get(name) or "#").startswith(("#", "data:image/svg+xml;base64,")), (tag, told)
        assert tag not in ("link", "iframe", "object", "embed", "base")
    assert not re.search(r"url\(|@import|fetch|XMLHttp|import\(|https?:", seen.raw["style"] + seen.raw["script"])
    (policy,) = [told["content"] for _, told in seen.tags if told.get("http-equiv") == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_verdicts_come_first_and_figures_have_words(made, page):
    seen = page(made)
    assert seen.order == ["verdicts", "figures", "fits", "tables", "provenance", "reproduce"]
    (picture,) = [told for tag, told in seen.tags if tag == "img"]
    for words in ("oracle", "mixed rows s", "summary.csv"):
        assert words in picture["alt"]


def test_the_same_results_give_the_same_page(made, tmp_path):
    for name in ("a.html", "b.html"):
        assert main([str(made), "--out", str(tmp_path / name)]) == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_the_page_lies_in_the_folder_and_a_folder_of_folders_is_one_page(whole, hostile, capsys, tmp_path):
    assert main([str(whole)]) == 0
    assert (whole / "report.html").is_file()
    (tmp_path / "whole").rename(tmp_path / "b")
    assert main([str(tmp_path)]) == 0
    assert (tmp_path / "report.html").is_file()
    said = capsys.readouterr().out
    assert said.count("written: ") == 2
    assert "b (sweep): holds" in said
