"""Made dictionaries have the margin and the ratio that were asked for, or say what is feasible."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.families import make_dictionary


@given(
    T=st.integers(2, 40),
    J=st.integers(3, 60),
    log10_ratio=st.floats(0.05, 4),
    share=st.floats(1e-3, 1),
    family=st.sampled_from(["well-conditioned", "correlated"]),
    seed=st.integers(0, 99),
)
def test_margin_and_ratio_are_as_asked(T, J, log10_ratio, share, family, seed):
    ratio = 10**log10_ratio
    widest = make_dictionary(T, J, density_ratio=ratio, family=family, seed=seed)
    margin = share * widest.margin
    if margin < 1e-9:
        return
    made = make_dictionary(T, J, density_ratio=ratio, margin=margin, family=family, seed=seed)
    assert made.margin == pytest.approx(margin, rel=1e-3)
    assert made.density_ratio <= ratio


@pytest.mark.parametrize("family", ["well-conditioned", "correlated"])
@pytest.mark.parametrize("ratio", [2.0, 100.0])
@pytest.mark.parametrize("share", [1, 0.1, 0.01])
def test_the_ratio_is_reached_whatever_the_margin(family, ratio, share):
    margin = share * make_dictionary(64, 128, density_ratio=ratio, family=family).margin
    made = make_dictionary(64, 128, density_ratio=ratio, margin=margin, family=family)
    assert made.density_ratio == pytest.approx(ratio, rel=1e-6)
    assert made.margin == pytest.approx(margin, rel=1e-3)


def test_too_large_a_margin_names_the_feasible_range():
    with pytest.raises(ValueError, match=r"margin must be at most .* nats .* got 5") as caught:
        make_dictionary(16, 32, density_ratio=10.0, margin=5.0)
    largest = float(re.search(r"at most ([\d.]+)", str(caught.value))[1])
    assert make_dictionary(16, 32, density_ratio=10.0, margin=0.999 * largest).margin < largest


def test_the_same_seed_gives_the_same_rows_and_another_seed_others():
    first, again, other = (make_dictionary(5, 6, density_ratio=3.0, seed=seed).transitions for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).any()


def test_correlated_rows_have_low_rank_logits_and_higher_coherence():
    free = make_dictionary(40, 60, density_ratio=50.0)
    tied = make_dictionary(40, 60, density_ratio=50.0, family="correlated")
    assert tied.margin < free.margin / 3
    assert tied.coherence > free.coherence


def test_too_small_a_margin_names_the_feasible_range():
    with pytest.raises(ValueError, match=r"margin must be at least .* nats .* got 1e-30"):
        make_dictionary(2, 2, density_ratio=3.0, margin=1e-30)


@pytest.mark.parametrize("ratio", [1.0, 0.5, 1e300, float("inf"), float("nan")])
def test_ratio_must_exceed_one(ratio):
    with pytest.raises(ValueError, match=r"density_ratio must be a number > 1 and at most 1e\+100"):
        make_dictionary(3, 3, density_ratio=ratio)


def test_unknown_families_are_refused():
    with pytest.raises(ValueError, match="family must be one of well-conditioned, correlated, got 'odd'"):
        make_dictionary(3, 3, density_ratio=2.0, family="odd")
