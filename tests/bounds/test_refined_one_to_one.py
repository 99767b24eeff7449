"""O3+ against exact enumeration and O3: the prefactor holds at every N, and cannot be had for less."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from markov_theory.bounds import O3
from markov_theory.bounds import refined_one_to_one as refined
from markov_theory.bounds.exponents import best_on_grid, pairs_of_rows, pairwise_chernoff
from markov_theory.bounds.refined_one_to_one import O3Plus, PairTerms, pair_terms
from markov_theory.divergences import chernoff_information
from markov_theory.randomness import named_generator
from markov_theory.verify.exact import one_to_one_failure, packed_failure
from tests.strategies import dictionaries, distinct_rows, failure_levels

MIRRORED = np.array([[0.55, 0.45], [0.45, 0.55]])
OPPOSED = np.array([[0.9, 0.1], [0.1, 0.9]])
NEARLY_SURE = np.array([[0.9, 0.1], [1.0, 0.0]])
SKEWED = np.array([[0.5, 0.3, 0.2], [0.2, 0.35, 0.45]])


def peak(n_tokens: int, ratio: float = 4.0) -> np.ndarray:
    """T rows over T outcomes: a at the own outcome, b elsewhere, a = ratio·b."""
    return (np.ones((n_tokens, n_tokens)) + (ratio - 1) * np.eye(n_tokens)) / (n_tokens + ratio - 1)


def terms_of(rows: np.ndarray) -> PairTerms:
    first, second = pairs_of_rows(rows.shape[0])
    return pair_terms(rows[first], rows[second], best_on_grid(rows)[first, second])


def failure_bounds(rows: np.ndarray, n_samples: int) -> np.ndarray:
    """For every truth, the sum in the statement at N, written out pair by pair."""
    terms, bound = terms_of(rows), np.zeros(rows.shape[0])
    for k, (v, w) in enumerate(zip(*pairs_of_rows(rows.shape[0]), strict=True)):
        for truth, prefactor in ((v, terms.under_first[k]), (w, terms.under_second[k])):
            plain = math.exp(-n_samples * terms.information[k])
            factor = math.exp(prefactor) / math.sqrt(n_samples)
            bound[truth] += min(plain, factor * math.exp(-n_samples * terms.tilted[k]))
    return bound


@pytest.mark.parametrize("delta", [1e-6, 0.01, 0.05, 0.2])
@pytest.mark.parametrize("rows", [MIRRORED, OPPOSED, NEARLY_SURE, SKEWED, peak(3), peak(4)])
def test_it_suffices_at_and_beyond_the_bound(rows, delta):
    n_samples = int(O3Plus.n_samples(rows, delta))
    for n in (n_samples, n_samples + 1, n_samples + 2, n_samples + n_samples // 3):
        if n <= 4000 / rows.shape[1] ** 2:
            assert one_to_one_failure(rows, n).max() <= delta


@pytest.mark.parametrize("n_tokens", [16, 128])
def test_it_suffices_on_many_packed_rows(n_tokens):
    n_samples = int(O3Plus.n_samples(peak(n_tokens), 0.05))
    assert n_samples < O3.n_samples(peak(n_tokens), 0.05)
    assert packed_failure(n_tokens, 4.0, n_samples) <= 0.05


@given(distinct_rows(st.integers(2, 4), st.integers(2, 3), zeros=True), st.sampled_from([1, 2, 3, 7, 20, 40]))
def test_every_truth_is_covered_at_every_n(rows, n_samples):
    assert (one_to_one_failure(rows, n_samples) <= failure_bounds(rows, n_samples) * (1 + 1e-9)).all()


@given(dictionaries(single=False), failure_levels())
def test_it_is_the_least_n_of_the_statement(rows, delta):
    n_samples = O3Plus.n_samples(rows, delta)
    if n_samples < 1e5:  # beyond, λ is found to fewer digits, and not the same ones each time
        assert failure_bounds(rows, int(n_samples)).max() <= delta * (1 + 1e-9)
        if n_samples > 1:
            assert failure_bounds(rows, int(n_samples) - 1).max() >= delta * (1 - 1e-9)


@given(dictionaries(), failure_levels())
def test_it_is_never_above_chernoff(rows, delta):
    plain, better = O3.n_samples(rows, delta), O3Plus.n_samples(rows, delta)
    assert better <= plain or better <= plain * (1 + 2**-50)  # beyond 2**53, neighbouring doubles
    assert better <= plain or plain > 2**52


@given(distinct_rows(st.just(2), st.integers(2, 5)))
def test_moments_are_those_of_the_tilted_law(rows):
    terms = terms_of(rows)
    assert terms.tilted[0] == pytest.approx(chernoff_information(*rows), rel=1e-9)
    for (p, q), prefactor in ((rows, terms.under_first[0]), (rows[::-1], terms.under_second[0])):
        ratio = np.log(q / p)
        tilt = brentq(lambda x, p=p, q=q, ratio=ratio: p ** (1 - x) * q**x @ ratio, 0, 1, xtol=1e-14)
        weight = p ** (1 - tilt) * q**tilt
        weight /= weight.sum()
        sigma, third = math.sqrt(weight @ ratio**2), weight @ np.abs(ratio) ** 3  # the tilted mean is 0
        expected = 1 / (tilt * sigma * math.sqrt(2 * math.pi)) + 2 * 0.4748 * third / sigma**3
        assert math.exp(prefactor) == pytest.approx(expected, rel=1e-4)  # the minimum is flat in λ


def test_the_prefactor_lies_between_the_asymptotic_one_and_one():
    terms = terms_of(SKEWED)
    plain = math.exp(-150 * terms.information[0])
    exact = one_to_one_failure(SKEWED, 150)[0]
    berry_esseen, refined.BERRY_ESSEEN = refined.BERRY_ESSEEN, 0.0
    try:
        asymptotic = plain * math.exp(terms_of(SKEWED).under_first[0]) / math.sqrt(150)
    finally:
        refined.BERRY_ESSEEN = berry_esseen
    bound = plain * math.exp(terms.under_first[0]) / math.sqrt(150)
    assert (exact, asymptotic, plain) == pytest.approx((8.64e-6, 9.06e-6, 9.70e-5), rel=1e-3)
    assert exact < asymptotic < bound < plain / 5


class TestFalseVersions:
    """Each false statement fails on the instance named, where the true one holds."""

    def test_without_the_berry_esseen_term(self, monkeypatch):
        monkeypatch.setattr(refined, "BERRY_ESSEEN", 0.0)
        false = int(O3Plus.n_samples(OPPOSED, 0.03))
        monkeypatch.undo()
        true = int(O3Plus.n_samples(OPPOSED, 0.03))
        assert one_to_one_failure(OPPOSED, false).max() == pytest.approx(0.0523)  # on a lattice, ties weigh more
        assert one_to_one_failure(OPPOSED, true).max() <= 0.03 < 0.0523

    def test_with_n_for_its_root(self):
        information, prefactor = terms_of(MIRRORED)[0][0], math.exp(terms_of(MIRRORED).under_first[0])
        false = next(n for n in range(1, 2000) if math.exp(-n * information) * min(1, prefactor / n) <= 0.01)
        assert one_to_one_failure(MIRRORED, false).max() > 0.015
        assert one_to_one_failure(MIRRORED, int(O3Plus.n_samples(MIRRORED, 0.01))).max() <= 0.01

    def test_without_the_number_of_rivals(self):
        pair = peak(128)[:2]
        false = int(O3Plus.n_samples(pair, 0.05))  # the exponent and moments are those of any two rows
        assert packed_failure(128, 4.0, false) > 0.3
        assert packed_failure(128, 4.0, int(O3Plus.n_samples(peak(128), 0.05))) <= 0.05


class TestEdges:
    def test_a_single_row_and_duplicates(self):
        assert O3Plus.n_samples([[0.5, 0.5]], 0.05) == 0
        assert O3Plus.n_samples([[0.5, 0.5], [0.2, 0.8], [0.5, 0.5]], 0.05) == math.inf

    def test_where_no_tilt_is_inside_chernoff_is_all(self):
        assert O3Plus.n_samples(NEARLY_SURE, 0.01) == O3.n_samples(NEARLY_SURE, 0.01) == 44
        assert O3Plus.n_samples([[1, 0], [0, 1]], 0.01) == 1
        assert O3Plus.n_samples([[0.5, 0.5, 0], [0.4, 0.4, 0.2]], 0.01) == O3.n_samples(
            [[0.5, 0.5, 0], [0.4, 0.4, 0.2]], 0.01
        )

    @pytest.mark.parametrize("gap", [1e-7, 1e-9, 1e-11])
    def test_more_samples_than_doubles_count(self, gap):
        rows = np.array([[0.5, 0.5], [0.5 + gap, 0.5 - gap]])
        n_samples, z = O3Plus.n_samples(rows, 0.05), 2 * (rows[1, 0] - 0.5)
        information, sigma = z * z / 8, z  # to leading order; λ = 1/2
        level = math.exp(-n_samples * information) * 2 / (sigma * math.sqrt(2 * math.pi * n_samples))
        assert level == pytest.approx(0.05, rel=1e-3)

    def test_wrong_input_is_refused(self):
        with pytest.raises(ValueError, match="delta"):
            O3Plus.n_samples(MIRRORED, 0.0)
        with pytest.raises(ValueError, match="sum to 1"):
            O3Plus.n_samples([[0.5, 0.4]], 0.1)


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_refining_the_pairs_that_matter_gives_what_refining_all_gives(spread):
    rows = named_generator(0, "rows of all sizes", str(spread)).dirichlet(np.full(12, spread), size=40)
    rows = np.vstack([rows, 0.97 * rows[0] + 0.03 * rows[1]])  # one near pair, which matters most
    for delta in (0.05, 1e-9):
        n_samples = int(O3Plus.n_samples(rows, delta))
        assert failure_bounds(rows, n_samples).max() <= delta * (1 + 1e-9)
        assert failure_bounds(rows, n_samples - 1).max() > delta * (1 - 1e-9)


def test_the_exponent_is_chernoffs():
    rows = named_generator(0, "exponents").dirichlet(np.ones(9), size=12)
    first, second = pairs_of_rows(12)
    terms = terms_of(rows)
    np.testing.assert_allclose(terms.information, pairwise_chernoff(rows)[first, second], rtol=1e-12)
    np.testing.assert_allclose(terms.tilted, terms.information, rtol=1e-9)


def test_what_it_speaks_of():
    for bound in (O3Plus, O3):
        assert (bound.event, bound.kind, bound.speaks_of) == ("row", "upper", ("one-to-one",))
