"""Wrong input ends with one clear line and exit code 2, and leaves nothing behind."""

import json
import os
import sqlite3

import pytest

from markov_theory.report.__main__ import main


def store(folder, statement):
    with sqlite3.connect(folder / "trials.sqlite") as connection:
        connection.execute(statement)
    connection.close()


def cut(path, share=0.6):
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


BROKEN = {
    "other version": (
        lambda f: store(f, "UPDATE specification SET value = '9.9' WHERE name = 'version of markov-theory'"),
        "was written by version 9.9 of markov-theory",
    ),
    "other layout": (lambda f: store(f, "ALTER TABLE batches RENAME COLUMN point TO s"), "of another version"),
    "no trials": (lambda f: store(f, "DROP TABLE batches"), "half-written or of another version"),
    "no specification": (lambda f: store(f, "DELETE FROM specification"), "is half-written"),
    "empty store": (lambda f: (f / "trials.sqlite").write_bytes(b""), "is half-written"),
    "cut store": (lambda f: cut(f / "trials.sqlite"), "cannot be read as a store of trials"),
    "no store": (lambda f: (f / "trials.sqlite").write_text("no database at all, but a text"), "cannot be read"),
    "no store any more": (lambda f: (f / "trials.sqlite").unlink(), "not its trials.sqlite"),
    "cut cells": (lambda f: cut(f / "cells.csv"), "half-written"),
    "empty cells": (lambda f: (f / "cells.csv").write_text(""), "is no table"),
    "other cells": (lambda f: edit(f / "cells.csv", "n_star", "N"), "lacks the column n_star"),
    "other value": (lambda f: edit(f / "cells.csv", "2,oracle", "two,oracle"), "--s: a range is written"),
    "one table": (lambda f: (f / "summary.csv").unlink(), "only one of cells.csv and summary.csv"),
    "cut fits": (lambda f: cut(f / "growth.json"), "growth.json is half-written"),
    "cut record": (lambda f: cut(f / "provenance.json"), "provenance.json holds no record of runs"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_sweep(case, whole, capsys):
    damage, words = BROKEN[case]
    damage(whole)
    refused([whole], words, capsys)
    assert not (whole / "report.html").exists()


def refused(arguments, words, capsys):
    assert main([*map(str, arguments)]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert said.out == ""


@pytest.mark.parametrize("damage", [lambda d: d["versions"].update({"markov-theory": "0"}), lambda d: d.pop("seed"),
                                    lambda d: d["claims"][0].pop("slack"), lambda d: d.update(claims=3)])  # fmt: skip
def test_a_broken_verification(damage, verified, tmp_path, capsys):
    document = json.loads((verified / "claims.json").read_text())
    damage(document)
    (tmp_path / "claims.json").write_text(json.dumps(document))
    refused([tmp_path], "version", capsys)
    assert os.listdir(tmp_path) == ["claims.json"]


@pytest.mark.parametrize("name", ["claims.json", "mutants.json"])
def test_a_verification_that_is_cut_off(name, verified, tmp_path, capsys):
    (tmp_path / name).write_bytes((verified / name).read_bytes()[:1000])
    refused([tmp_path], "half-written", capsys)


@pytest.mark.parametrize("damage", [lambda d: d.pop("question"), lambda d: d["requirements"][0].pop("kind"),
                                    lambda d: d["recommendation"]["each"].pop()])  # fmt: skip
def test_a_broken_plan(damage, planned, tmp_path, capsys):
    document = json.loads(planned.read_text())
    damage(document)
    (tmp_path / "plan.json").write_text(json.dumps(document))
    refused([tmp_path / "plan.json"], "holds no plan of this version", capsys)


def test_what_is_no_result(tmp_path, capsys):
    refused([tmp_path / "nowhere"], "there is no folder or file", capsys)
    refused([tmp_path], "holds no results", capsys)
    (tmp_path / "notes.txt").write_text("notes")
    refused([tmp_path / "notes.txt"], "holds no plan", capsys)
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_one_broken_result_of_two_makes_no_page(whole, verified, tmp_path, capsys):
    (whole / "cells.csv").write_text("")
    refused([verified, whole, "--out", tmp_path / "page.html"], "is no table", capsys)
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("out", ["page.txt", "trials.sqlite", "no/such/folder/page.html", "folder.html"])
def test_where_a_page_cannot_go(out, verified, tmp_path, capsys):
    (tmp_path / "folder.html").mkdir()
    refused([verified, "--out", tmp_path / out], "--out must be a file .html in a folder that exists", capsys)


def test_a_page_that_cannot_be_written_leaves_the_old_one(verified, tmp_path, capsys, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    out = tmp_path / "page.html"
    out.write_text("old")
    monkeypatch.setattr("markov_theory.report.page.os.replace", full)
    assert main([str(verified), "--out", str(out)]) == 1
    assert "No space left" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["page.html"]
    assert out.read_text() == "old"


@pytest.mark.parametrize("flags", [[], ["--nonsense", "x"]])
def test_the_parser_refuses_in_one_line(flags, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(flags)
    assert capsys.readouterr().err.count("\n") == 1
