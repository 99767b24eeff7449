"""N*_first and N*_last of the worst truth, against plain enumeration of every truth of the grid."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.bounds import L1
from markov_theory.verify.cases import MixtureCase
from markov_theory.verify.exact import first_and_last, segment_failure
from markov_theory.verify.tightness import exactly_last
from markov_theory.verify.worst_truth import worst_truth

OPPOSED = [[0.2, 0.8], [0.8, 0.2]]


@pytest.mark.parametrize(
    ("rows", "epsilon", "delta"),
    [(OPPOSED, 0.05, 0.05), ([[0.0, 1.0], [1.0, 0.0]], 0.1, 0.1), ([[0.97, 0.03], [0.5, 0.5]], 0.04, 0.2)],
)
def test_against_enumeration(rows, epsilon, delta):
    found = worst_truth(rows, epsilon, delta, n_weights=5)
    top = int(found.last) + 40
    each = [[segment_failure(rows, w, N, epsilon) for w in np.linspace(0, 1, 5)] for N in range(top)]
    assert first_and_last(each, delta) == (found.first, found.last)
    for N, weight in ((found.first - 1, found.weight_before_first), (found.last - 1, found.weight_before_last)):
        failure = each[int(N)]
        assert failure[round(4 * weight)] == pytest.approx(max(failure), rel=1e-9)


probabilities = st.integers(0, 40).map(lambda k: k / 40)  # tiny ones ask for more samples than can be looked at


@given(probabilities, probabilities, st.floats(0.02, 0.4), st.floats(0.02, 0.4))
def test_it_is_the_worst(one, other, epsilon, delta):
    rows = np.array([[one, 1 - one], [other, 1 - other]])
    found = worst_truth(rows, epsilon, delta, n_weights=4)
    assert 0 <= found.first <= found.last
    if one == other:
        assert found.last == 0
        return
    lasts = [exactly_last(MixtureCase(rows, np.array([1 - w, w]), 2, epsilon, delta)) for w in np.linspace(0, 1, 4)]
    assert found.last == max(lasts)


def test_a_finer_grid_of_truths_asks_for_no_less():
    coarse, fine = (worst_truth(OPPOSED, 1e-3, 0.05, n) for n in (5, 9))
    assert coarse.first <= fine.first
    assert coarse.last <= fine.last
    assert L1.n_samples(OPPOSED, [0.5, 0.5], 1e-3, 0.05) <= coarse.last
    assert coarse.last >= 1946  # of the middle truth alone


def test_nothing_is_needed_where_every_law_is_near():
    found = worst_truth(OPPOSED, 2.0, 0.05)
    assert (found.first, found.last) == (0, 0)
    assert math.isnan(found.weight_before_first)


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="two rows on two outcomes"):
        worst_truth(np.eye(3), 0.1, 0.1)
    with pytest.raises(ValueError, match="would have to be looked at"):
        worst_truth(OPPOSED, 1e-9, 0.1)
    with pytest.raises(ValueError, match="n_weights must be"):
        worst_truth(OPPOSED, 0.1, 0.1, n_weights=1)
