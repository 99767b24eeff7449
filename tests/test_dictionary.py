"""Dictionaries: quantities, files, names."""

import math

import numpy as np
import pytest
from hypothesis import given

from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from tests.strategies import dictionaries


@given(dictionaries(single=False))
def test_margin_and_ratio_are_extremes_over_pairs_and_never_nan(rows):
    dictionary = Dictionary(rows)
    P = dictionary.transitions
    pairs = [(v, w) for v in range(len(P)) for w in range(len(P)) if v != w]
    assert dictionary.margin == pytest.approx(
        min(float(kl_divergence(P[v], P[w])) for v, w in pairs), rel=1e-9, abs=1e-14
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [np.nanmax(P[v] / P[w]) for v, w in pairs]
    assert dictionary.density_ratio == pytest.approx(max(1.0, *ratios))
    assert not math.isnan(dictionary.coherence)
    assert 0 <= dictionary.coherence <= 1


def test_duplicate_rows_have_margin_zero():
    assert Dictionary([[0.5, 0.5], [0.5, 0.5]]).margin == 0


def test_one_row_has_infinite_margin_and_ratio_one():
    single = Dictionary([[0.5, 0.5]])
    assert (single.margin, single.density_ratio, single.coherence) == (math.inf, 1.0, 0.0)


def test_a_column_that_no_row_gives_is_dropped_from_the_ratio():
    assert Dictionary([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0]]).density_ratio == 2.0
    assert Dictionary([[0.5, 0.5, 0.0], [0.25, 0.7, 0.05]]).density_ratio == math.inf


def test_rows_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        Dictionary([[0.5, 0.5]]).transitions[0, 0] = 1


def test_npz_round_trip_keeps_every_bit(tmp_path):
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    saved = Dictionary(rows, tokens=["a", "b", "ç", "d"], outcomes=["x", "y", "z"], origin="test", notes={"rest": 0.25})
    saved.save(tmp_path / "rows.npz")
    loaded = Dictionary.load(tmp_path / "rows.npz")
    assert (loaded.transitions == saved.transitions).all()
    assert (loaded.tokens, loaded.outcomes, loaded.origin, loaded.notes) == (
        saved.tokens,
        saved.outcomes,
        "test",
        {"rest": 0.25},
    )
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npz"]


def test_csv_and_bare_npz_are_read(tmp_path):
    (tmp_path / "rows.csv").write_text("0.5,0.5\n0.1,0.9\n")
    np.savez(tmp_path / "rows.npz", transitions=[[0.5, 0.5], [0.1, 0.9]])
    for name in ("rows.csv", "rows.npz"):
        assert Dictionary.load(tmp_path / name).transitions[1].tolist() == [0.1, 0.9]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rows.csv", "a,b\n", "not a table of numbers"),
        ("rows.csv", "0.5,0.6\n", "must sum to 1"),
        ("rows.npz", "junk", "not a readable .npz"),
        ("rows.txt", "0.5 0.5", "ends in .npz or .csv"),
    ],
)
def test_wrong_files_are_named(tmp_path, name, content, words):
    (tmp_path / name).write_text(content)
    with pytest.raises(ValueError, match=words):
        Dictionary.load(tmp_path / name)


def test_a_pickle_is_refused(tmp_path):
    np.savez(tmp_path / "rows.npz", transitions=np.array([[0.5, 0.5]], dtype=object))
    with pytest.raises(ValueError, match="not a readable .npz"):
        Dictionary.load(tmp_path / "rows.npz")


def test_missing_files_and_arrays_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no dictionary file"):
        Dictionary.load(tmp_path / "rows.npz")
    np.savez(tmp_path / "rows.npz", P=[[1.0]])
    with pytest.raises(ValueError, match="no array 'transitions' \\(found: P\\)"):
        Dictionary.load(tmp_path / "rows.npz")


def test_names_must_fit():
    with pytest.raises(ValueError, match="tokens must have 1 names, got 2"):
        Dictionary([[0.5, 0.5]], tokens=["a", "b"])
