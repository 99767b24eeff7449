"""Tables of counts: what is listed, what is left out, and that it is counted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multinomial

from markov_theory.verify import tables
from markov_theory.verify.tables import Bracket, likely_tables
from tests.strategies import laws


@given(st.integers(1, 4).flatmap(lambda J: laws(J, zeros=True)), st.integers(0, 12))
def test_few_tables_are_all_listed(law, n_samples):
    listed = likely_tables(law, n_samples)
    assert listed.lost == 0
    assert listed.probability.sum() == pytest.approx(1)
    assert (listed.counts[:, law == 0] == 0).all()
    assert listed.probability == pytest.approx(multinomial.pmf(listed.counts, n_samples, law), abs=1e-12)


@settings(max_examples=12)
@given(laws(3), st.integers(100, 900), st.sampled_from([1e-3, 1e-6, 1e-11]))
def test_what_is_left_out_is_bounded(law, n_samples, tail):
    listed = likely_tables(law, n_samples, tail)
    everything = tables.compositions(n_samples, 3)
    chance = multinomial.pmf(everything, n_samples, law)
    assert listed.lost <= tail
    assert len({tuple(row) for row in listed.counts.tolist()}) == listed.counts.shape[0]
    assert (listed.counts.sum(axis=1) == n_samples).all()
    assert chance.sum() - listed.probability.sum() <= listed.lost + 1e-12
    key = everything[:, 0] * (n_samples + 1) + everything[:, 1]
    mine = listed.counts[:, 0] * (n_samples + 1) + listed.counts[:, 1]
    assert listed.probability == pytest.approx(chance[np.searchsorted(key, mine)], rel=1e-9)


@settings(max_examples=12)
@given(laws(4), st.integers(20, 120))
def test_the_number_of_tables_is_known_beforehand(law, n_samples):
    listed = likely_tables(law, n_samples)
    assert listed.counts.shape[0] <= tables.n_likely_tables(law, n_samples)


def test_too_many_are_refused():
    with pytest.raises(ValueError, match="too many"):
        likely_tables(np.full(6, 1 / 6), 400, most=1000)


def test_brackets_hold_what_is_undecided_and_what_is_lost():
    listed = tables.Tables(np.zeros((3, 2), np.int64), np.array([0.5, 0.2, 0.2]), 0.1)
    found = Bracket.of(listed, np.array([True, False, False]), np.array([True, True, False]))
    assert (found.low, found.high) == (pytest.approx(0.5), pytest.approx(0.8))
    assert Bracket.exact([0.3, 1.0 + 1e-15]).high.tolist() == [0.3, 1.0]
