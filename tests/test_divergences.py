"""Divergences: their defining numbers, directions and zeros; the lemma that compares KL with Hellinger."""

from __future__ import annotations

import decimal
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory import divergences as dv
from markov_theory.bounds.exponents import middle_exponents, pairs_of_rows, pairwise_chernoff
from tests.strategies import dictionaries, nearly_flat, positive_dictionaries


def kappa_exactly(ratio: float) -> float:
    """κ(c) = (c log c − c + 1)/(√c − 1)² in 400 digits."""
    with decimal.localcontext(prec=400):
        c = decimal.Decimal(ratio)
        return float((c * c.ln() - c + 1) / (c.sqrt() - 1) ** 2)


def test_kl_is_averaged_over_its_first_argument():
    assert float(dv.kl_divergence([0.5, 0.5], [0.9, 0.1])) == pytest.approx(0.510826, abs=5e-7)
    assert float(dv.kl_divergence([0.9, 0.1], [0.5, 0.5])) == pytest.approx(0.368064, abs=5e-7)


def test_kl_refuses_what_is_no_law():
    with pytest.raises(ValueError, match="sum to 1"):
        dv.kl_divergence([0.5, 0.5], [0.3, 0.3])
    with pytest.raises(ValueError, match="as many outcomes"):
        dv.kl_divergence([0.5, 0.5], [0.3, 0.3, 0.4])


def test_kl_at_zeros():
    assert float(dv.kl_divergence([0.5, 0.5, 0], [0.25, 0.25, 0.5])) == pytest.approx(math.log(2))
    assert float(dv.kl_divergence([0.5, 0.5, 0], [1, 0, 0])) == math.inf


@pytest.mark.parametrize(
    ("rows", "margin"),
    [
        ([[1, 0], [0, 1]], math.inf),
        ([[1, 0, 0], [0, 1, 0], [0, 0, 1]], math.inf),
        ([[1, 0, 0], [0.5, 0.5, 0]], math.log(2)),
        ([[0.5, 0.5, 0], [0.5, 0.5, 0]], 0.0),
        ([[1.0]], math.inf),
    ],
)
def test_margins_pass_infinities_and_never_nan(rows, margin):
    assert dv.margin(rows) == pytest.approx(margin, abs=1e-15)
    assert not np.isnan(dv.pairwise_kl(rows)).any()


@given(positive_dictionaries())
def test_hellinger_and_kl_are_within_kappa(rows):
    constant = dv.kappa(dv.density_ratio(rows))
    kl = dv.kl_divergence(rows[:, None], rows[None])
    h2 = dv.squared_hellinger(rows[:, None], rows[None])
    rounding = 1e-15 * rows.shape[1]  # of the sums, whose terms are of order one
    assert (h2 <= kl + rounding).all()
    assert (kl <= constant * h2 * (1 + 1e-12) + rounding).all()


def test_kappa_of_two_is_false():
    p, q = [0.9, 0.1], [0.1, 0.9]
    assert float(dv.kl_divergence(p, q)) == pytest.approx(1.758, abs=5e-4)
    assert float(dv.kl_divergence(p, q)) > 2 * float(dv.squared_hellinger(p, q)) == pytest.approx(1.6)


def test_kl_above_twice_hellinger_is_false():
    p, q = [1, 0], [0.5, 0.5]
    assert float(dv.kl_divergence(p, q)) == pytest.approx(0.693, abs=5e-4)
    assert 2 * float(dv.squared_hellinger(p, q)) == pytest.approx(1.17, abs=5e-3)


def test_kappa_is_attained_in_the_limit():
    ratio, rare = 9.0, 1e-7  # p/q = c on a rare outcome, almost 1 elsewhere
    p = np.array([ratio * rare, 1 - ratio * rare])
    q = np.array([rare, 1 - rare])
    quotient = float(dv.kl_divergence(p, q)) / float(dv.squared_hellinger(p, q))
    assert quotient == pytest.approx(dv.kappa(ratio), rel=1e-5)


@pytest.mark.parametrize("above_one", [10.0**k for k in range(-12, 3)] + [0.0202, 0.0201, 3.0, 7.5])
def test_kappa_near_one_and_beyond(above_one):
    ratio = 1 + above_one
    assert dv.kappa(ratio) == pytest.approx(kappa_exactly(ratio), rel=1e-12)


@pytest.mark.parametrize("ratio", [1.5, 10.0, 1e5, 1e16, 1e100, 1e200, 1e300])
def test_kappa_of_large_ratios(ratio):
    assert dv.kappa(ratio) == pytest.approx(kappa_exactly(ratio), rel=1e-13)
    assert dv.kappa(ratio) <= 2 + math.log(ratio)


@given(st.floats(0, 300), st.floats(0, 300))
def test_kappa_rises(first, second):
    low, high = sorted([first, second])
    assert 2 <= dv.kappa(10**low) <= dv.kappa(10**high) * (1 + 1e-13)


def test_kappa_at_its_ends():
    assert (dv.kappa(1.0), dv.kappa(math.inf)) == (2.0, math.inf)
    with pytest.raises(ValueError, match=">= 1"):
        dv.kappa(0.5)


@given(dictionaries(single=False))
def test_chernoff_information_lies_between_its_bounds(rows):
    information = pairwise_chernoff(rows)
    first, second = pairs_of_rows(rows.shape[0])
    kl = np.minimum(dv.pairwise_kl(rows), dv.pairwise_kl(rows).T)[first, second]
    assert not np.isnan(information).any()
    assert (information == information.T).all()
    values = information[first, second]
    assert (values >= middle_exponents(rows)).all()
    assert (values <= kl + 1e-14).all()


@given(dictionaries(single=False))
def test_all_chernoff_informations_at_once_agree_with_one_by_one(rows):
    information = pairwise_chernoff(rows)
    for v, w in zip(*pairs_of_rows(rows.shape[0]), strict=True):
        alone = dv.chernoff_information(rows[v], rows[w])
        # One by one, a sum near 1 is rounded to 1e-16; the location of the optimum costs less.
        assert information[v, w] == pytest.approx(alone, rel=1e-6, abs=1e-15 * rows.shape[1])


def test_chernoff_information_of_near_duplicates_keeps_its_digits():
    gap = 1e-9
    rows = [[0.3, 0.7], [0.3 + gap, 0.7 - gap]]
    expected = gap**2 / 8 * (1 / 0.3 + 1 / 0.7)
    assert pairwise_chernoff(rows)[0, 1] == pytest.approx(expected, rel=1e-6)


def test_chernoff_information_without_common_support_is_infinite():
    assert dv.chernoff_information([1, 0, 0], [0, 0.5, 0.5]) == math.inf
    assert pairwise_chernoff([[1, 0, 0], [0, 0.5, 0.5]])[0, 1] == math.inf


def test_chernoff_information_may_be_attained_at_an_end():
    # The log-affinity falls up to λ = 1, where it is log q(p > 0).
    assert pairwise_chernoff([[0.9, 0.1], [1, 0]])[0, 1] == pytest.approx(-math.log(0.9))


@given(nearly_flat())
def test_kl_of_nearly_equal_laws_keeps_its_digits(rows):
    def exactly(p, q):
        pairs = [(decimal.Decimal(x), decimal.Decimal(y)) for x, y in zip(p, q, strict=True)]
        return float(sum(x * (x / y).ln() - x + y for x, y in pairs))

    with decimal.localcontext(prec=60):
        assert float(dv.kl_of(rows[0], rows[1])) == pytest.approx(exactly(rows[0], rows[1]), rel=1e-11)


@given(st.floats(1.0001, 1e6))
def test_largest_kl_is_attained(ratio):
    high = ratio / (1 + ratio)
    p, q = [high, 1 - high], [1 - high, high]
    assert dv.density_ratio([p, q]) <= ratio * (1 + 1e-6)
    assert float(dv.kl_divergence(p, q)) == pytest.approx(dv.largest_kl(ratio), rel=1e-6, abs=1e-15)
