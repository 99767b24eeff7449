"""The store: another sweep is refused by name, a larger one is extended on request, and nothing stored runs again."""

import sqlite3

import pytest

from markov_theory.sweep.setup import set_up
from markov_theory.sweep.store import Store

FAST = {"s": "2,3", "estimators": "oracle", "truths": 1}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": 1}, "its seed is 0, this one's is 1"),
        ({"trials": 256}, "its trials is 128, this one's is 256"),
        ({"epsilon": 2e-3}, "its epsilon is 0.001, this one's is 0.002; --extend only adds"),
        ({"s": "2..4"}, "its s is 2, 3, this one's is 2, 3, 4; with --extend it is added to"),
        ({"truths": 2}, "its truths is 0, this one's is 0, 1; with --extend it is added to"),
        ({"estimators": "uniform"}, "its estimators is oracle, this one's is uniform; --extend only adds"),
        ({"misfit": 0.1}, 'its kind is "mixture", this one\'s is "misfit"'),
        ({"family": "correlated"}, 'its family is "well-conditioned", this one\'s is "correlated"'),
    ],
)
def test_another_sweep_in_the_folder_is_refused_by_name(small, tmp_path, change, words):
    Store(tmp_path, small(**FAST).specification).close()
    with pytest.raises(ValueError, match="holds another sweep") as refused:
        Store(tmp_path, small(**{**FAST, **change}).specification)
    assert words in str(refused.value)


@pytest.mark.parametrize("change", [{"seed": 1}, {"s": "3,4"}, {"epsilon": 2e-3}, {"estimators": "uniform"}])
def test_extending_never_leaves_anything_out(small, tmp_path, change):
    Store(tmp_path, small(**FAST).specification).close()
    with pytest.raises(ValueError, match="holds another sweep"):
        Store(tmp_path, small(**{**FAST, **change}).specification, extend=True)
    Store(tmp_path, small(**FAST).specification).close()  # as it was


@pytest.mark.parametrize(
    "larger", [{"s": "1..3"}, {"truths": 2}, {"estimators": "oracle,kl-pursuit"}, {"epsilon": "1e-3,2e-3"}]
)
def test_a_larger_sweep_reuses_all_that_is_stored(sweep, small, tmp_path, larger):
    larger = small(**{**FAST, **larger}).specification
    before, first = sweep(tmp_path / "grown", small(**FAST).specification)
    grown, second = sweep(tmp_path / "grown", larger, extend=True)
    at_once, executor = sweep(tmp_path / "at once", larger)
    assert grown == at_once
    assert before.located.items() <= grown.located.items()
    assert first.n_batches + second.n_batches == executor.n_batches > first.n_batches > 0


def test_what_was_extended_is_known_by_its_new_extent(small, tmp_path):
    Store(tmp_path, small(**FAST).specification).close()
    Store(tmp_path, small(**{**FAST, "s": "2..4"}).specification, extend=True).close()
    Store(tmp_path, small(**{**FAST, "s": "2..4"}).specification).close()
    with pytest.raises(ValueError, match="its s is 2, 3, 4, this one's is 2, 3;"):
        Store(tmp_path, small(**FAST).specification)


def test_a_file_that_is_no_store_is_refused_and_kept(specification, tmp_path):
    (tmp_path / "trials.sqlite").write_text("not a database, but somebody's notes" * 100)
    with pytest.raises(ValueError, match="cannot be used as a store of trials"):
        Store(tmp_path, specification)
    assert (tmp_path / "trials.sqlite").read_text().startswith("not a database")


def test_points_are_stored_under_keys_that_a_person_can_read(whole):
    with sqlite3.connect(whole[0] / "trials.sqlite") as connection:
        keys = {key for (key,) in connection.execute("SELECT DISTINCT point FROM batches")}
    assert "s=2 gamma=largest ratio=20 tokens=12 outcomes=16 epsilon=0.001 delta=0.2" in keys
    assert len(keys) == 3


def test_given_rows_are_known_by_their_numbers_and_not_by_their_file(dictionary, small, tmp_path):
    paths = [tmp_path / "here.npz", tmp_path / "there.npz"]
    for path in paths:
        dictionary.save(path)
    options = {"s": 2, "estimators": "oracle", "truths": 1}
    one, other = (set_up({**options, "dictionary": str(path)}).specification for path in paths)
    assert one == other
    Store(tmp_path / "out", one).close()
    Store(tmp_path / "out", other).close()
