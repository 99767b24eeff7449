"""The order of the theory on planted truths in every corner: lower bounds <= N*_first <= N*_last <= upper bounds.

An upper bound takes part only where its conditions hold and for its own event and estimator: elsewhere it is no bound.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from markov_theory.bounds import BOUNDS, O1, O2, O3, O4, O5, S1, S2, S2H, S4, S5, S6, Bound, greedy_packing
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kappa, kl_divergence, largest_kl
from markov_theory.verify.cases import MixtureCase, PackingCase, RowsCase
from markov_theory.verify.exact import ROUNDING, one_to_one_failure
from markov_theory.verify.exact_support import support_failure
from markov_theory.verify.mixtures import mixture_failure
from markov_theory.verify.tables import Bracket
from markov_theory.verify.tightness import exactly_first, exactly_last, try_bound
from tests.strategies import Planted, corners, instances, planted

O2Plus, O3Plus, S5L, S5Plus, S5Prime = (BOUNDS[label] for label in ("O2+", "O3+", "S5L", "S5+", "S5'"))
L1, L2, S6Prime, S6One, UnknownSupport = (BOUNDS[label] for label in ("L1", "L2", "S6'", "S6^1", "S6u"))
TWO = st.just(2)
SCANNED = 3e4  # N*_last is scanned for up to here
LISTED = 40  # tables are listed up to here
FEW = max(1, settings.default.max_examples // 4)


def at_most(small: float, large: float) -> bool:
    """Whether small <= large: whole numbers, but for what rounding of the rows does to numbers about 1/γ.

    Rows in doubles are laws up to 1e-16, and so the γ of rows that nearly agree is known up to about 1e-16/√γ of it.
    """
    return small <= large or small <= large * (1 + min(1e-3, 1e-14 * math.sqrt(large)))


def numbers(instance: Planted, *chosen: type[Bound]) -> dict[str, float]:
    """N of several bounds at a truth."""
    given = {"sparsity": instance.sparsity, "epsilon": instance.epsilon, "delta": instance.delta}
    return {bound.label: bound.at(instance.instance, **given) for bound in chosen}


def oracle_numbers(truth: Planted) -> tuple[dict[str, float], dict[str, float]]:
    """Lower and upper bounds on N*_last of maximum likelihood on the known support, by KL."""
    rows, q = truth.instance.support_rows, truth.instance.target
    known = (rows, q, truth.epsilon, truth.delta)
    lower = {bound.label: bound.n_samples(*known) for bound in (L1, L2)}
    upper = {bound.label: bound.n_samples(*known) for bound in (S6, S6Prime, S6One)}
    s, c = len(rows), Dictionary(rows).density_ratio
    upper |= {bound.label: bound.n_samples(s, s, c, truth.epsilon, truth.delta) for bound in (S1, S2)}
    return lower, upper


def small(found: dict[str, float]) -> set[int]:
    """Numbers of samples whose tables of counts can be listed in no time."""
    return {int(N) for N in found.values() if N <= LISTED}


def failed(bracket: Bracket) -> float:
    """The failure probability that is certain, less what rounding may add."""
    return float(bracket.low) * (1 - ROUNDING)


def occurs(strategy, special):
    """Whether hypothesis comes upon such an example; the same examples every time."""
    find(strategy, special, settings=settings(max_examples=2000, derandomize=True, phases=[Phase.generate]))


class TestCorners:
    @pytest.mark.parametrize("name", corners())
    def test_every_corner_is_what_it_is_called(self, name):
        seen = {
            "near-duplicates": lambda x: 0 < x.instance.margin < 1e-3,
            "duplicates": lambda x: x.instance.margin == 0 and x.instance.density_ratio == 1,
            "not identifiable": lambda x: x.instance.support_margin < 1e-12,
            "c near 1": lambda x: 1 < x.instance.density_ratio < 1.001,
            "c huge": lambda x: 1e9 < x.instance.density_ratio < math.inf,
            "c infinite": lambda x: math.isinf(x.instance.density_ratio),
            "T > J": lambda x: x.instance.n_tokens > x.instance.n_outcomes,
            "one row": lambda x: x.instance.n_tokens == 1,
        }.get(name, lambda x: True)
        occurs(planted(corners()[name]), seen)

    @pytest.mark.parametrize(
        "special",
        [
            lambda x: x.instance.sparsity == 1 < x.sparsity,
            lambda x: x.instance.sparsity == x.instance.n_tokens > 2,
            lambda x: x.sparsity > x.instance.n_tokens,
            lambda x: 0 < x.instance.alpha[x.instance.support].min() < 1e-12,
            lambda x: x.epsilon == largest_kl(x.instance.density_ratio),
            lambda x: numbers(x, S2)["S2"] == 0 and x.instance.n_tokens > 1,
        ],
        ids=["one row of a larger class", "all rows", "s > T", "next to a face", "largest KL", "N = 0"],
    )
    def test_every_truth_that_is_special_occurs(self, special):
        occurs(instances(), special)


class TestBetweenBounds:
    @given(instances())
    def test_naming_the_row(self, truth):
        lower = numbers(truth, O4, O5)
        upper = numbers(truth, O1, O2, O2Plus, O3, O3Plus)
        assert all(at_most(N, M) for N in lower.values() for M in upper.values())
        assert at_most(upper["O3+"], upper["O3"])
        assert at_most(upper["O3"], upper["O2+"])
        assert at_most(upper["O2+"], min(upper["O1"], upper["O2"]))

    @given(instances())
    def test_on_a_known_support(self, truth):
        """That S6' sharpens S6, and S6^1 sharpens S6' at the usual δ, has no proof; at δ = 0.95 S6^1 is above S6'."""
        lower, upper = oracle_numbers(truth)
        assert all(at_most(N, M) for N in lower.values() for M in upper.values()), (lower, upper)
        assert at_most(upper["S6'"], upper["S6"])
        if truth.delta <= 0.2 and math.isfinite(upper["S6^1"]):  # infinite for rows that are not on a line
            assert at_most(upper["S6^1"], upper["S6'"])

    @given(instances())
    def test_hellinger_distance_needs_no_more_than_divergence(self, truth):
        """H² ≤ KL ≤ κ·H²: S2 is S2H at ε/κ, and where it does not say 0 it is at least S2H at ε."""
        found = numbers(truth, S2, S2H)
        constant = kappa(truth.instance.density_ratio)
        if 0 < found["S2"] < math.inf:
            assert at_most(found["S2H"], found["S2"])
            closer = numbers(truth._replace(epsilon=truth.epsilon / constant), S2H)["S2H"]
            assert closer == pytest.approx(found["S2"], rel=1e-9, abs=1)

    @settings(max_examples=FEW)
    @given(instances())
    def test_every_estimator_over_a_class(self, truth):
        """S4's packing lies in the class, of which S1 and S2 speak; and S6 of each law of a packing of all."""
        rows, s = truth.instance.transitions, min(truth.sparsity, truth.instance.n_tokens)
        packed = greedy_packing(rows, s, truth.epsilon, n_candidates=24)
        needed = S4.n_samples(packed, truth.epsilon, truth.delta)
        assert all(at_most(needed, N) for N in numbers(truth, S1, S2).values())
        over_all = greedy_packing(rows, len(rows), truth.epsilon, n_candidates=24)
        needed = S4.n_samples(over_all, truth.epsilon, truth.delta)
        assert at_most(needed, max(S6.n_samples(rows, law, truth.epsilon, truth.delta) for law in over_all))

    @given(instances())
    def test_finding_the_support(self, truth):
        found = numbers(truth, S5, S5Plus, S5L)
        uppers = [found["S5"], found["S5+"]]
        if truth.instance.sparsity == min(truth.sparsity, truth.instance.n_tokens):
            uppers.append(numbers(truth, S5Prime)["S5'"])
            assert at_most(uppers[2], found["S5"])
        assert at_most(found["S5+"], found["S5"])
        assert all(at_most(found["S5L"], N) for N in uppers)

    @given(instances())
    def test_an_unknown_support_costs_both(self, truth):
        s, alpha = min(truth.sparsity, truth.instance.n_tokens), truth.instance.alpha
        N = numbers(truth, UnknownSupport)["S6u"]
        if truth.instance.sparsity < s:
            assert math.isinf(N)
            return
        q, rows = truth.instance.target, truth.instance.transitions
        if (kl_divergence(q, rows) <= truth.epsilon).all():
            assert N == 0
            return
        lower, upper = oracle_numbers(truth)
        fitting = min(upper["S6'"], upper["S6^1"])
        assert at_most(fitting, N)
        assert all(at_most(M, N) for M in lower.values())
        if s == truth.instance.n_tokens:
            assert fitting == N
        else:
            finding = numbers(truth, S5Plus, S5Prime, S5L)
            assert at_most(min(finding["S5+"], finding["S5'"]), N)
            assert at_most(finding["S5L"], N)
        assert np.count_nonzero(alpha) == s


class TestExactly:
    """N* itself in the chain: closed forms for two outcomes, enumeration for three."""

    @given(instances(TWO))
    def test_naming_the_row(self, truth):
        case = RowsCase(truth.instance.transitions, truth.delta)
        lower, upper = numbers(truth, O4, O5), numbers(truth, O1, O2, O2Plus, O3, O3Plus)
        last = exactly_last(case, SCANNED)
        assert all(at_most(last, N) for N in upper.values())
        if case.last_possible() <= SCANNED:
            first = exactly_first(case)
            assert first <= last
            assert max(lower.values()) <= max(first, 1)  # these assume a sample

    @given(instances(TWO))
    def test_learning_on_a_known_support(self, truth):
        rows, alpha = truth.instance.support_rows, truth.instance.alpha[truth.instance.support]
        case = MixtureCase(rows, alpha, len(rows), truth.epsilon, truth.delta)
        lower, upper = oracle_numbers(truth)
        last = exactly_last(case, SCANNED)
        assert all(at_most(last, N) for N in upper.values()), (last, upper)
        if case.last_possible() <= SCANNED:
            assert max(lower.values()) <= last, (lower, last)

    @given(instances(TWO))
    def test_learning_over_a_class(self, truth):
        """With two outcomes every class of s ≥ 2 is an interval: two rows reach as far as all."""
        s = min(truth.sparsity, truth.instance.n_tokens)
        if s == 1 < truth.instance.n_tokens:
            return
        for bounds, divergence in (((S1, S2, UnknownSupport), "kl"), ((S2H,), "hellinger")):
            given = (truth.instance.transitions, truth.instance.alpha, s, truth.epsilon, truth.delta)
            last = exactly_last(MixtureCase(*given, divergence), SCANNED)
            upper = numbers(truth._replace(sparsity=s), *bounds)
            assert all(at_most(last, N) for N in upper.values()), (last, upper)

    @settings(max_examples=FEW)
    @given(instances(TWO))
    def test_every_estimator_over_a_packing(self, truth):
        laws = greedy_packing(truth.instance.transitions, truth.sparsity, truth.epsilon, n_candidates=24)
        trial = try_bound(S4, PackingCase(laws, truth.epsilon, truth.delta))
        assert trial is None or trial.refuted_at is None

    @settings(max_examples=FEW)
    @given(instances(st.just(3)))
    def test_at_an_upper_bound_the_failure_is_at_most_delta(self, truth):
        """By enumeration of all counts, where an upper bound is small enough."""
        instance, s, (rows, alpha) = truth.instance, truth.sparsity, (truth.instance.transitions, truth.instance.alpha)
        S = instance.support
        for N in small(numbers(truth, O3, O3Plus)):
            assert one_to_one_failure(rows, N).max() <= truth.delta * (1 + ROUNDING)
        for N in small(oracle_numbers(truth)[1]):
            assert failed(mixture_failure(rows[S], alpha[S], S.size, N, truth.epsilon)) <= truth.delta
        if s > 1 and len(rows) <= 4:
            for N in small(numbers(truth, S1, S2, UnknownSupport)):
                assert failed(mixture_failure(rows, alpha, s, N, truth.epsilon)) <= truth.delta
        if s <= 2:
            for N in small(numbers(truth, S5, S5Plus)):
                assert failed(support_failure(rows, alpha, s, N)) <= truth.delta


class TestMonotone:
    """What a bound declares of its scalar inputs, at the other inputs of any truth."""

    @pytest.mark.parametrize("label", [label for label in BOUNDS if label[0] in "OSLM" and label != "S4"])
    @settings(max_examples=FEW)
    @given(truth=instances(), factor=st.floats(1, 1e3), data=st.data())
    def test_declared_monotonicities_hold(self, label, truth, factor, data):
        bound = BOUNDS[label]
        known = {name: getattr(truth.instance, name, None) for name in bound.inputs()} | {"gap": 0.0}
        known |= {"sparsity": truth.sparsity, "epsilon": truth.epsilon, "delta": truth.delta}
        inputs = {name: known[name] for name in bound.inputs()}
        name = data.draw(st.sampled_from(bound.increasing + bound.decreasing))
        larger = inputs | {name: _enlarged(name, inputs[name], factor)}
        below, above = bound.n_samples(**inputs), bound.n_samples(**larger)
        least, most = (below, above) if name in bound.increasing else (above, below)
        assert at_most(least, most), (name, inputs, larger)


def _enlarged(name, value, factor):
    """A larger input of its own kind."""
    if name == "n_tokens":
        return math.ceil(value * factor)
    if name == "delta":
        return max(value, 1 - (1 - value) / factor)  # 1 - (1 - δ) may be below δ
    if name == "gap":
        return factor * 1e-6
    return value * factor
