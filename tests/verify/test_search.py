"""The search: it climbs, it is chosen by what a bound declares, and it says when it has nothing to say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from markov_theory.bounds import BOUNDS, O2, O4, S2, S2H, S6, Bound
from markov_theory.randomness import named_generator
from markov_theory.verify.cases import MixtureCase, RowsCase
from markov_theory.verify.exact import failure_curve, first_and_last
from markov_theory.verify.oracles import families_for, target_of
from markov_theory.verify.search import FULL, QUICK, Effort, maximise, search
from markov_theory.verify.tightness import exactly_first, exactly_last, roughly_first, roughly_last, try_bound

SMALL = Effort(trials=20, climbs=1, steps=20, tables=3000, full=False)
OPPOSED = np.array([[0.2, 0.8], [0.8, 0.2]])
LOPSIDED = np.array([[0.94025802, 0.05974198], [0.98820274, 0.01179726]])


def test_it_climbs_past_its_starts():
    def hill(x):
        return -float(((x - 0.77) ** 2).sum())

    generator = named_generator(0, "hill")
    best, where = maximise(hill, 4, Effort(10, 2, 200, 0, False), generator)
    assert best > -0.02
    assert where == pytest.approx(0.77, abs=0.15)


def test_it_stops_at_the_first_value_that_will_do():
    calls = []

    def value(x):
        calls.append(1)
        return float(len(calls))

    best, _ = maximise(value, 2, SMALL, named_generator(0, "stop"), until=4.5)
    assert best == 5.0
    assert len(calls) == 5


def test_it_looks_where_small_quantities_are_least():
    """What is best only beyond a valley too wide for a step, and too narrow for a random start to fall into."""

    def value(x):
        return 2.0 if x[0] < 1e-3 else float(x[0])

    few = Effort(trials=8, climbs=1, steps=20, tables=0, full=False)
    without, _ = maximise(value, 2, few, named_generator(0, "valley"))
    best, where = maximise(value, 2, few, named_generator(0, "valley"), corners=((0, 0.0),))
    assert without <= 1
    assert (best, where[0]) == (2.0, pytest.approx(0, abs=1e-3))


def test_a_corner_without_an_instance_is_approached():
    def value(x):
        return -float(x[0]) if x[0] > 0.2 else -math.inf

    few = Effort(trials=8, climbs=1, steps=1, tables=0, full=False)
    _, where = maximise(value, 1, few, named_generator(0, "approach"), corners=((0, 0.0),))
    assert 0.2 < where[0] < 0.35


def test_nothing_is_nothing():
    best, _ = maximise(lambda x: -math.inf, 2, SMALL, named_generator(0, "nothing"))
    assert best == -math.inf


class TestExactNumbers:
    """On the rows whose failure probability is not monotone: at most 0.2 from 50 to 67 and from 71 on."""

    def test_first_and_last(self):
        case = RowsCase(LOPSIDED, 0.2)
        assert (exactly_first(case), exactly_last(case)) == (50, 71)
        assert roughly_first(case, 0.0) >= 50
        assert roughly_last(case, case.last_possible()) <= 71
        assert first_and_last(failure_curve(LOPSIDED, 400), 0.2) == (50, 71)

    def test_a_last_number_below_a_limit(self):
        assert exactly_last(RowsCase(LOPSIDED, 0.2), 60.0) <= 50
        case = MixtureCase(OPPOSED, np.full(2, 0.5), 2, 1e-3, 0.05)
        assert exactly_last(case) == 1946  # the largest N at which failure exceeds δ, plus one
        assert roughly_last(case, case.last_possible()) <= 1946

    def test_enumerated_cases_give_witnesses(self):
        rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
        case = RowsCase(rows, 0.05, 5000)
        first, last = first_and_last(failure_curve(rows, 80), 0.05)
        assert exactly_first(case) == first
        assert roughly_last(case, 80) <= last

    @pytest.mark.parametrize("delta", [0.3, 0.05, 0.004])
    def test_enumerated_rows_are_scanned_up_to_the_chernoff_number(self, delta):
        rows = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.3, 0.4, 0.3]])
        case = RowsCase(rows, delta, 100_000)
        limit = int(case.last_possible())
        assert limit <= case.reach
        _, last = first_and_last(failure_curve(rows, limit), delta)
        assert exactly_last(case) == last


class TestNothingNeeded:
    """Where ε exceeds every KL nothing is learned and nothing shown: N*_last is 0."""

    @pytest.mark.parametrize("epsilon", [0.9, 5.0])
    def test_such_an_instance_is_not_decisive(self, epsilon):
        class Ten(Bound):
            label, kind, origin, speaks_of, event = "Ten", "upper", "derived", ("simplex",), "kl"
            statement = reason = "says ten"

            @staticmethod
            def n_samples(epsilon):
                return 10.0

        trial = try_bound(Ten, MixtureCase(OPPOSED, np.full(2, 0.5), 2, epsilon, 0.05))
        assert trial.refuted_at is None
        assert trial.score == -math.inf

    def test_nor_is_it_counted(self):
        class Vacuous(Bound):
            label, kind, origin, speaks_of, event = "Vacuous", "upper", "derived", ("one-to-one",), "kl"
            statement = reason = "of single rows within nothing"

            @staticmethod
            def n_samples(margin):
                return math.inf

        found = search(Vacuous, SMALL)
        assert found.tightest is None
        assert sum(found.tried.values()) == 0


def test_an_open_tail_refutes_no_lower_bound(monkeypatch):
    """Where not every N up to Chernoff's can be looked at, N*_last may be larger than what was seen."""
    monkeypatch.setattr("markov_theory.verify.tightness.MOST_SCANNED", 10)

    class Much(Bound):
        label, kind, origin, speaks_of, event = "Much", "lower", "derived", ("oracle",), "kl"
        statement = reason = "too much"

        @staticmethod
        def n_samples(epsilon):
            return 2000.0

    case = MixtureCase(OPPOSED, np.full(2, 0.5), 2, 1e-3, 0.05)
    assert try_bound(Much, case) is None
    monkeypatch.undo()
    assert try_bound(Much, case).refuted_at is not None


class TestOneTrial:
    def test_an_upper_bound_is_tried_at_its_number_and_beyond(self):
        case = MixtureCase(OPPOSED, np.full(2, 0.5), 2, 1e-3, 0.05)
        trial = try_bound(S6, case)
        assert trial.bound == 8540
        assert trial.refuted_at is None
        assert math.exp(-trial.score) == pytest.approx(8540 / 1946, rel=0.01)

    def test_a_number_that_works_does_not_excuse_a_larger_one_that_does_not(self):
        class Fifty(Bound):
            label, kind, origin, speaks_of, event = "Fifty", "upper", "derived", ("one-to-one",), "row"
            statement = reason = "true at N = 50, false at 68"

            @staticmethod
            def n_samples(delta):
                return 50.0

        trial = try_bound(Fifty, RowsCase(LOPSIDED, 0.2))
        assert 68 <= trial.refuted_at <= 70

    def test_a_lower_bound_is_compared_with_the_first_number(self):
        trial = try_bound(O4, RowsCase(LOPSIDED, 0.2))
        assert trial.refuted_at is None
        assert math.exp(trial.score) == pytest.approx(trial.bound / 50, rel=0.05)

    def test_what_says_nothing_is_no_trial(self):
        duplicates = np.array([[0.5, 0.5], [0.5, 0.5]])
        assert try_bound(O2, RowsCase(duplicates, 0.05)) is None  # infinite
        assert try_bound(O4, RowsCase(OPPOSED, 0.5)) is None  # zero


class TestDispatch:
    @pytest.mark.parametrize("label", [label for label, bound in BOUNDS.items() if bound.kind != "prediction"])
    def test_every_bound_has_an_exact_oracle(self, label):
        assert families_for(BOUNDS[label])
        assert len(families_for(BOUNDS[label], full=True)) >= len(families_for(BOUNDS[label]))

    def test_events(self):
        assert [b.event for b in (O2, S2, S2H)] == ["row", "kl", "hellinger"]
        assert {f.event for f in families_for(S2H)} == {"hellinger"}

    def test_targets(self):
        assert target_of(O4) == "first"
        assert target_of(BOUNDS["L1"]) == "last"

    def test_a_bound_without_an_oracle(self):
        class Elsewhere(Bound):
            label, kind, origin, speaks_of = "Elsewhere", "upper", "derived", ("somebody",)
            statement = reason = "of an estimator that nobody knows"

            @staticmethod
            def n_samples(epsilon):
                return 1.0

        assert families_for(Elsewhere) == []
        assert search(Elsewhere, SMALL).tightest is None

    def test_an_input_that_no_instance_has(self):
        class Strange(Bound):
            label, kind, origin, speaks_of = "Strange", "upper", "derived", ("oracle",)
            statement = reason = "asks for the weather"

            @staticmethod
            def n_samples(weather, epsilon):
                return 1.0

        assert families_for(Strange) == []


def test_every_bound_sees_the_same_instances():
    """A bound and a fresh one with the same number get the same verdict whatever their labels."""

    class Renamed(S6):
        label = "something else"

    one, two = search(S6, SMALL, 3), search(Renamed, SMALL, 3)
    assert one.tightest.case.describe() == two.tightest.case.describe()


def test_the_same_seed_finds_the_same():
    one, two = search(S6, SMALL, 3), search(S6, SMALL, 3)
    assert one.tightest.case.describe() == two.tightest.case.describe()
    assert one.tried == two.tried


def test_efforts_are_ordered():
    assert QUICK.trials < FULL.trials
    assert QUICK.tables < FULL.tables
