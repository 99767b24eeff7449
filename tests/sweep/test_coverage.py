"""The interval of N* covers at its nominal rate where N* is exactly known, however failure depends on N.

Trials are drawn from exact failure probabilities (benchmarks/known_n_star.py); nothing is solved. What the search
promises, all at once with probability at least 0.95: N*_last > low, N*_first <= high, and the least N tried from which
every N tried fails with probability at most delta lies in (low, high]. An answer that does not decide counts as it is
stated: it errs if one of these is false of it, and is told from a settled one.
"""

import importlib
import math
from pathlib import Path

import pandas as pd
import pytest
from scipy.stats import binom

from markov_theory.randomness import named_generator
from markov_theory.success import failure_bounds
from markov_theory.sweep.sample_complexity import STEPS_PER_OCTAVE, WITHIN, Design

ROOT = Path(__file__).parents[2]
RARE = 1e-6  # probability with which a true statement may fail a test here
SAW_TOOTHED = ("two rows, rare outcome", "rarer outcome, first row", "mixed, rare outcome")
PLATEAU = "planted plateau"


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("sample_complexity")


@pytest.fixture(scope="module")
def instances(benchmark):
    return {known.name: known for known in benchmark.INSTANCES}


@pytest.fixture(scope="module")
def measured():
    return pd.read_csv(ROOT / "benchmarks" / "sample_complexity.csv")


def most_errors(n_runs, level=0.05):
    """Errors that a nominal interval exceeds in so many searches with probability at most `RARE`."""
    return binom.isf(RARE, n_runs, level)


def errs(known, low, high, tried):
    """Whether anything that the search promises is false of an interval."""
    first, last = known.n_star
    return not (low < known.last_tried(tried) <= high and low < last and first <= high)


def searches(benchmark, known, n_runs, **options):
    for seed in range(n_runs):
        generator = named_generator(seed, "coverage", known.name)
        yield benchmark.search(known, Design(known.delta, **options), generator)


def errors(benchmark, known, n_runs, **options):
    found = [answer for answer, _ in searches(benchmark, known, n_runs, **options)]
    return sum(errs(known, one.low, one.high, [n for n, _, _ in one.curve]) for one in found)


def test_failure_is_not_monotone_on_most_of_the_instances(instances):
    """Exact, whatever is drawn: without such curves nothing here would be hard."""
    returns = {name for name, known in instances.items() if known.n_star[0] < known.n_star[1]}
    assert {*SAW_TOOTHED, "two near rows", "two rows mixed evenly", "mixed, three outcomes"} <= returns
    first, last = instances["rarer outcome, first row"].n_star
    assert last > 3 * first


@pytest.mark.statistical
def test_intervals_cover_at_the_nominal_rate(benchmark, instances):
    """Each of 200 searches errs with probability at most 0.05: more than 27 errors have probability below 1e-6."""
    n_runs = 25
    named = [known for name, known in instances.items() if name != PLATEAU]
    found = {known.name: errors(benchmark, known, n_runs) for known in named}
    assert sum(found.values()) <= most_errors(n_runs * len(named)), found
    assert max(found.values()) <= most_errors(n_runs), found


@pytest.mark.statistical
@pytest.mark.parametrize("options", [{"max_trials": 256}, {"max_trials": 2048}, {"max_trials": 2048, "reach": 2.0}])
def test_they_cover_on_a_plateau_just_above_delta_and_say_that_nothing_is_decided(benchmark, instances, options):
    """Each of 12 searches errs with probability at most 0.05: more than 6 errors have probability below 1e-6.

    At N < 1000 failure is 1.02 times delta, so that every point but the last is a chance to err.
    """
    known = instances[PLATEAU]
    found = [answer for answer, _ in searches(benchmark, known, 12, **options)]
    wrong = [errs(known, one.low, one.high, [n for n, _, _ in one.curve]) for one in found]
    assert sum(wrong) <= most_errors(12)
    assert not any(one.settled for one, mistaken in zip(found, wrong, strict=True) if not mistaken)


@pytest.mark.statistical
def test_certificates_that_ignore_how_often_they_are_tried_are_caught(benchmark, instances, monkeypatch):
    """The count of errors can fail: with bounds of level 0.2 at each look the plateau passes more often than not."""
    monkeypatch.setattr(Design, "look_level", 0.2)
    assert errors(benchmark, instances[PLATEAU], 25, max_trials=2048) > most_errors(25)


@pytest.mark.statistical
@pytest.mark.parametrize("name", SAW_TOOTHED)
def test_bisection_does_not_cover_where_failure_comes_back(benchmark, instances, name):
    """Even with certified points: at coverage 0.95, more than 20 of 120 are missed with probability below 1e-6."""
    known = instances[name]
    _, last = known.n_star
    missed = 0
    for seed in range(120):
        answer = benchmark.certified_bisection(known, named_generator(seed, "bisection", name))
        missed += not answer.low < last <= answer.high
    assert missed > most_errors(120)


@pytest.mark.statistical
@pytest.mark.parametrize("name", SAW_TOOTHED)
def test_within_reach_n_star_on_the_fine_grid_is_covered(benchmark, instances, name):
    """Each of 12 searches errs with probability at most 0.05: more than 7 errors have probability below 1e-6.

    A settled interval holds the least point of the fine grid from which each point of it, up to four times the
    interval's upper end, fails with probability at most delta.
    """
    known = instances[name]
    wrong = 0
    for answer, _ in searches(benchmark, known, 12, reach=4.0):
        grid = {round(2 ** (k / STEPS_PER_OCTAVE)) for k in range(STEPS_PER_OCTAVE * 20)}
        tried = {n for n, _, _ in answer.curve}
        within = {n for n in grid if answer.high <= n < 4 * answer.high}
        assert within <= tried or not answer.settled
        wrong += not answer.low < known.last_tried(tried | within) <= answer.high
    assert wrong <= most_errors(12)


def test_an_answer_is_settled_if_and_only_if_its_interval_is_narrow(benchmark, instances):
    for known in instances.values():
        for answer, _ in searches(benchmark, known, 3, max_trials=512 if known.delta < 0.1 else 128):
            narrow = answer.high <= WITHIN**2 * answer.low or answer.high - answer.low <= 1
            assert answer.settled == narrow
            assert answer.low < answer.n_star <= answer.high or math.isinf(answer.n_star)


def test_points_that_were_not_tried_within_reach_leave_an_answer_unsettled(benchmark, instances, monkeypatch):
    known = instances["two rows mixed evenly"]
    monkeypatch.setattr("markov_theory.sweep.sample_complexity.Design.max_points", 16)
    answers = [answer for answer, _ in searches(benchmark, known, 3, reach=4.0)]
    assert not any(answer.settled for answer in answers)


@pytest.mark.long
@pytest.mark.statistical
@pytest.mark.parametrize("options", [{}, {"max_trials": 512}, {"reach": 4.0}], ids=["default", "few trials", "reach"])
def test_intervals_cover_at_the_nominal_rate_in_many_searches(benchmark, instances, options):
    """Each of 4800 searches errs with probability at most 0.05: more than 315 have probability below 1e-6."""
    n_runs = 600
    named = [known for name, known in instances.items() if name != PLATEAU]
    found = {known.name: errors(benchmark, known, n_runs, **options) for known in named}
    assert sum(found.values()) <= most_errors(n_runs * len(named)), found
    assert max(found.values()) <= most_errors(n_runs), found


class TestMeasured:
    def test_the_table_has_every_instance_and_method(self, benchmark, instances, measured):
        assert list(measured.columns) == benchmark.COLUMNS
        expected = [(name, method) for name in instances for method in benchmark.METHODS]
        assert list(zip(measured.instance, measured.method, strict=True)) == expected

    def test_n_star_is_the_exact_one(self, instances, measured):
        for row in measured.drop_duplicates("instance").itertuples():
            known = instances[row.instance]
            assert (known.delta, *known.n_star) == (row.delta, *measured.loc[row.Index, ["N* first", "N* last"]])

    def test_intervals_of_coverage_are_what_the_counts_say(self, measured):
        for kind in ("coverage", "coverage of tried"):
            for _, row in measured.iterrows():
                bounds = failure_bounds(round(row[kind] * row.runs), row.runs, 0.025)
                assert (row[f"{kind} low"], row[f"{kind} high"]) == pytest.approx(bounds, abs=1e-4)

    def test_a_row_is_what_its_seeds_give(self, benchmark, instances, measured):
        row = measured[
            (measured.instance == "sixteen packed rows") & (measured.method == "bisection, 256 trials")
        ].iloc[0]
        again = benchmark.measure(instances["sixteen packed rows"], "bisection, 256 trials", int(row.runs))
        assert [str(value) for value in again[5:7]] == [str(row.runs), str(row.trials)]
        assert float(again[7]) == row.coverage

    def test_the_page_shows_the_table(self, benchmark, measured):
        page = benchmark.PAGE.read_text()
        assert benchmark.with_tables(page, measured) == page

    def test_what_the_page_says_of_the_table_is_true(self, benchmark, measured):
        by = {method: rows.set_index("instance") for method, rows in measured.groupby("method")}
        for method in ("sweep", "sweep, reach 4", "sweep, 256 trials"):
            assert (by[method]["coverage of tried"] >= 0.95).all()
        smooth = [name for name in by["sweep"].index if name not in SAW_TOOTHED]
        assert (by["sweep"].loc[smooth, "coverage"] >= 0.95).all()
        assert (by["sweep"].loc[list(SAW_TOOTHED), "coverage high"] < 0.95).all()
        assert (by["sweep, reach 4"].coverage >= 0.95).all()
        assert by["sweep"].open[PLATEAU] > 0.8
        plain, certified = by["bisection, 2048 trials"], by["bisection, certified"]
        assert ((plain["coverage of tried"] < 0.95).sum(), plain.undecided.max()) == (7, 0)
        assert plain.trials.median() == pytest.approx(by["sweep"].trials.median(), rel=0.1)
        assert plain.coverage[PLATEAU] < 0.01
        assert (certified["coverage of tried"] >= 0.95).all()
        assert certified.trials.median() < by["sweep"].trials.median()
        assert certified.undecided.mean() > by["sweep"].undecided.mean()
        missed = 1 - certified.coverage[list(SAW_TOOTHED)]
        assert sorted(missed.round(1)) == [0.3, 0.7, 0.8]
        cost = (by["sweep, reach 4"].trials / by["sweep"].trials).drop(PLATEAU)
        assert f"{cost.min():.1f} to {cost.max():.1f} times the trials" in " ".join(benchmark.PAGE.read_text().split())
