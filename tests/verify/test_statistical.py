"""Bounds at scale: Holm's correction, and verdicts that planted failures cannot escape."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from markov_theory.bounds import BOUNDS
from markov_theory.randomness import named_generator
from markov_theory.verify.claims import Finding, Settings
from markov_theory.verify.mutants import scaled
from markov_theory.verify.registry import claims_of
from markov_theory.verify.statistical import check_at_scale, claims, holm, settle, speaks_at_scale
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED

p_values = st.lists(st.floats(0, 1), max_size=6)


def tally(failed, trials, delta=0.05, relation="<=", uncertain=None):
    """A finding as a check at scale makes it."""
    uncertain = failed if uncertain is None else uncertain
    p_value = binom.sf(failed - 1, trials, delta) if relation == "<=" else binom.cdf(uncertain, trials, delta)
    instance = {"failed": failed, "uncertain": uncertain, "trials": trials}
    share = failed / trials
    return Finding(INCONCLUSIVE, "", "", share, 0, 1, delta, relation, instance=instance, p_value=float(p_value))


class TestHolm:
    @given(p_values, st.floats(0.001, 0.5))
    def test_it_is_the_closure_of_bonferroni(self, values, level):
        """A hypothesis is rejected if and only if Bonferroni rejects every intersection that it is part of."""
        rejected = holm(values, level)
        for i in range(len(values)):
            others = [j for j in range(len(values)) if j != i]
            subsets = [s for k in range(len(others) + 1) for s in itertools.combinations(others, k)]
            closed = all(min(values[j] for j in (*s, i)) * (len(s) + 1) <= level for s in subsets)
            margin = [abs(min(values[j] for j in (*s, i)) * (len(s) + 1) - level) for s in subsets]
            assert rejected[i] == closed or min(margin) < 1e-12

    @given(p_values, st.floats(0.001, 0.5), st.randoms())
    def test_order_does_not_matter(self, values, level, random):
        order = list(range(len(values)))
        random.shuffle(order)
        shuffled = holm([values[i] for i in order], level)
        assert [shuffled[order.index(i)] for i in range(len(values))] == holm(values, level)

    def test_nothing_to_correct(self):
        assert holm([], 0.05) == []
        assert holm([0.05], 0.05) == [True]

    @pytest.mark.statistical
    def test_family_wise_error(self):
        """Twelve true claims at the edge: so many wrong reports have probability <= 1e-6 if each is at most 5 %."""
        generator = named_generator(0, "holm")
        reports = 1500
        wrong = sum(
            any(f.verdict == VIOLATED for f in settle([tally(int(k), 200) for k in generator.binomial(200, 0.05, 12)]))
            for _ in range(reports)
        )
        assert binom.sf(wrong - 1, reports, 0.05) > 1e-6


class TestVerdicts:
    def test_by_the_number_of_failures(self):
        verdicts = [f.verdict for f in settle([tally(0, 400), tally(20, 400), tally(60, 400)])]
        assert verdicts == [HOLDS, INCONCLUSIVE, VIOLATED]

    def test_of_lower_bounds(self):
        found = [tally(k, 400, relation=">") for k in (60, 20, 0)]
        assert [f.verdict for f in settle(found)] == [HOLDS, INCONCLUSIVE, VIOLATED]

    def test_uncertified_fits_count_for_neither_side(self):
        assert settle([tally(0, 400, uncertain=60)])[0].verdict == INCONCLUSIVE
        assert settle([tally(0, 400, relation=">", uncertain=60)])[0].verdict == INCONCLUSIVE

    def test_a_correction_over_more_claims_is_stricter(self):
        alone = settle([tally(33, 400)])[0]
        among_many = settle([tally(33, 400)] + [tally(0, 400)] * 40)[0]
        assert alone.verdict == VIOLATED
        assert among_many.verdict == INCONCLUSIVE
        assert among_many.low < alone.low

    def test_exact_findings_pass(self):
        exact = Finding(HOLDS, "", "", 0.0, 0.0, 0.0)
        assert settle([exact, tally(60, 400)])[0] is exact


@pytest.mark.statistical
@pytest.mark.parametrize("label", ["S6", "O3", "E4"])
def test_a_bound_cut_far_below_what_is_needed_is_violated(label):
    """If failure is then above 0.25, the 300 trials show too few for a verdict (30) with probability < 1e-9."""
    cut = scaled(BOUNDS[label], {"S6": 0.08, "O3": 0.15, "E4": 0.1}[label])
    finding = settle([check_at_scale(cut, Settings())])[0]
    assert finding.verdict == VIOLATED
    assert finding.low > finding.limit


def test_a_lower_bound_raised_far_above_is_violated():
    """At 40 times L2 nothing fails; were failure above 0.1 %, 400 trials might show enough for another verdict."""
    finding = settle([check_at_scale(scaled(BOUNDS["L2"], 40), Settings())])[0]
    assert finding.verdict == VIOLATED
    assert finding.high < finding.limit


def test_the_same_seed_gives_the_same_counts():
    one, two = (check_at_scale(BOUNDS["S6"], Settings(seed=5)) for _ in range(2))
    assert one == two
    assert check_at_scale(BOUNDS["S6"], Settings(seed=6)).instance["N"] != one.instance["N"]


def test_which_bounds_are_tried():
    assert {"O3@scale", "S1@scale", "S6@scale", "E4@scale", "L2@scale"} <= {claim.label for claim in claims()}
    assert not speaks_at_scale(BOUNDS["S2H"])  # another distance
    assert not speaks_at_scale(BOUNDS["O4"])  # of no estimator in particular
    assert [claim.label for claim in claims_of(BOUNDS["S6"])] == ["S6", "S6@scale"]
    assert [claim.label for claim in claims_of(BOUNDS["S3"])] == ["S3"]


def test_nothing_within_reach_is_inconclusive():
    finding = check_at_scale(scaled(BOUNDS["S6"], math.inf), Settings())
    assert finding.verdict == INCONCLUSIVE
    assert finding.p_value is None
    assert np.isnan(finding.value)
