"""Corpora: what is counted, what is learned from it, and that no expansion moves what was known before."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from markov_theory.bounds import S6
from markov_theory.bounds.exposure import corpus_size
from markov_theory.chain import MarkovChain, count_transitions
from markov_theory.corpus import (
    coupled_rates,
    exposure_rates,
    learn_from_corpus,
    simulate_corpus,
    uniform_rates,
    zipf_rates,
)
from markov_theory.dictionary import Dictionary
from markov_theory.estimators import ConstrainedKL, ExactL0, Oracle, SmoothedEmpirical
from markov_theory.instance import Instance
from markov_theory.randomness import named_generator
from tests.strategies import laws

BASE = MarkovChain([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.25, 0.25, 0.5]])
ALPHA = np.array([[0.5, 0.5, 0.0], [0.0, 0.3, 0.7]])
EXTENDED = BASE.extend(ALPHA @ BASE.transitions)


def empirical(transitions, counts):
    """The raw empirical rows."""
    return counts / counts.sum(axis=1, keepdims=True)


@given(st.integers(1, 6), st.floats(0, 3), st.floats(0.01, 1))
def test_rates_have_their_total_and_order(m, exponent, total):
    rates = zipf_rates(m, exponent, total)
    assert rates.sum() == pytest.approx(total)
    assert (np.diff(rates) <= 0).all()
    np.testing.assert_allclose(rates, rates[0] * np.arange(1, m + 1.0) ** -exponent)
    np.testing.assert_allclose(uniform_rates(m, total), total / m)


def test_coupled_rates_follow_the_tokens_mapped_to():
    pi = BASE.stationary_laws[0]
    np.testing.assert_allclose(coupled_rates(np.eye(3), pi), pi)
    rates = coupled_rates(ALPHA, pi, total=0.1)
    assert rates[0] / rates[1] == pytest.approx((pi[0] + pi[1]) / 2 / (0.3 * pi[1] + 0.7 * pi[2]))
    with pytest.raises(ValueError, match="frequency 0"):
        coupled_rates([[0, 1]], [1, 0])


def test_rates_of_each_exposure():
    alpha = np.eye(6)[[0, 5]]
    np.testing.assert_allclose(exposure_rates("uniform", alpha), [1 / 2, 1 / 2])
    np.testing.assert_allclose(exposure_rates("zipf", alpha), [2 / 3, 1 / 3])
    np.testing.assert_allclose(exposure_rates("coupled", alpha), [6 / 7, 1 / 7], rtol=1e-12)  # mapped to old 1 and 6
    with pytest.raises(ValueError, match="exposure must be one of uniform, zipf, coupled, got 'odd'"):
        exposure_rates("odd", alpha)


@given(st.integers(0, 40), st.floats(0, 0.5), st.floats(0, 0.5), st.integers(0, 9))
def test_a_corpus_gives_each_new_token_its_sample(n, first, second, seed):
    path = simulate_corpus(EXTENDED, [first, second], n, named_generator(seed, "corpus"))
    new = path >= 3
    assert (~new).sum() == n + 1
    assert not new[0]
    assert not new[-1]
    assert not (new[1:] & new[:-1]).any()


def test_a_corpus_of_new_tokens_at_every_chance():
    path = simulate_corpus(EXTENDED, [0.5, 0.5], 100, named_generator(0, "full"))
    assert (path >= 3).sum() == 100
    learned = learn_from_corpus([path], BASE, 2, ConstrainedKL())
    assert learned.counts.sum() == learned.n_discarded == 100


@pytest.mark.statistical
def test_counts_follow_the_rates_and_the_rows():
    """Pearson's statistics of insertions and of every row at level 2e-7 each, six in all: 1.2e-6 for a seed."""
    rates, n = np.array([0.1, 0.03]), 60_000
    path = simulate_corpus(EXTENDED, rates, n, named_generator(0, "pearson"), start=BASE.stationary_laws[0])
    counts = count_transitions([path], 5)
    seen = counts[:3].sum(axis=0)
    expected = n * np.append(rates, 1 - rates.sum())
    assert ((np.append(seen[3:], seen[:3].sum()) - expected) ** 2 / expected).sum() < chi2.isf(2e-7, 2)
    assert not counts[3:, 3:].any()
    for row, law in zip(counts[:, :3], EXTENDED.transitions[:, :3], strict=True):
        assert ((row - row.sum() * law) ** 2 / (row.sum() * law)).sum() < chi2.isf(2e-7, 2)


@pytest.mark.statistical
def test_counting_what_comes_from_outside_would_move_old_rows():
    """Each row has some 5,000 transitions or more, so that .05 is 7 standard deviations: 1e-11."""
    path = simulate_corpus(EXTENDED, [0.2, 0.1], 20_000, named_generator(0, "naive"))
    naive = empirical(None, count_transitions([path], 5))
    assert np.abs(naive[:3, 3:].sum(axis=1) - 0.3).max() < 0.05
    learned = learn_from_corpus([path], BASE, 2, ConstrainedKL())
    assert learned.chain().forgets_nothing()
    assert learned.compare(EXTENDED).old_rows_equal
    as_if = BASE.extend(EXTENDED.transitions[3:, :3], into_new=np.tile([0.2, 0.1], (3, 1)))
    np.testing.assert_allclose(as_if.forgetting, -np.log(0.7))  # what old rows would pay


@given(st.lists(st.lists(st.integers(0, 4), max_size=8), max_size=6))
def test_only_transitions_from_new_to_old_are_learned_from(paths):
    learned = learn_from_corpus(paths, BASE, 2, empirical)
    expected, discarded = np.zeros((2, 3), dtype=int), 0
    for path in paths:
        for a, b in itertools.pairwise(path):
            discarded += b >= 3
            if a >= 3 > b:
                expected[a - 3, b] += 1
    assert learned.counts.tolist() == expected.tolist()
    assert learned.n_discarded == discarded
    assert (learned.status == np.where(expected.any(axis=1), "learned", "no data")).all()
    assert (learned.rows.mask == ~expected.any(axis=1)[:, None]).all()
    comparison = learned.compare(EXTENDED)
    assert comparison.old_rows_equal
    assert (comparison.kl.mask == ~expected.any(axis=1)).all()


def test_several_trajectories_are_not_joined():
    learned = learn_from_corpus([[0, 3], [1, 0], [4, 2]], BASE, 2, ConstrainedKL())
    assert learned.counts.tolist() == [[0, 0, 0], [0, 0, 1]]


def test_a_token_without_data_is_an_error_unless_a_row_is_asked_for():
    learned = learn_from_corpus([[0, 3, 0]], BASE, 2, ConstrainedKL())
    with pytest.raises(ValueError, match="no data on new token 4"):
        learned.chain()
    filled = learned.chain("mean row")
    assert filled.forgets_nothing()
    np.testing.assert_allclose(filled.transitions[4, :3], BASE.transitions.mean(axis=0))
    with pytest.raises(ValueError, match="unvisited must be one of refuse, mean row, got 'zeros'"):
        learned.chain("zeros")
    nothing = learn_from_corpus([], BASE, 2, ConstrainedKL())
    assert nothing.rows.mask.all()
    assert nothing.compare(EXTENDED).max_error == 0
    assert nothing.compare(EXTENDED).kl.mask.all()


@pytest.mark.statistical
@pytest.mark.parametrize("learner", [ConstrainedKL(), ExactL0(2), SmoothedEmpirical(), empirical])
def test_the_comparison_measures_every_new_row(learner):
    """2N·KL of two rows, N about 800, is near a χ² of at most 2 degrees: above 80 with probability 1e-17."""
    path = simulate_corpus(EXTENDED, [0.2, 0.2], 4000, named_generator(0, "compare"))
    learned = learn_from_corpus([path], BASE, 2, learner)
    comparison = learned.compare(EXTENDED)
    rows = learned.chain().transitions[3:]
    assert comparison.max_error == np.abs(rows - EXTENDED.transitions[3:]).max()
    for u in range(2):
        q = EXTENDED.transitions[3 + u, :3]
        assert comparison.kl[u] == pytest.approx((q * np.log(q / rows[u, :3])).sum(), abs=1e-15)
    assert 0 < comparison.kl.max() < 0.05


def test_one_estimator_a_token_knows_its_own_support():
    path = simulate_corpus(EXTENDED, [0.2, 0.2], 3000, named_generator(0, "oracles"))
    oracles = [Oracle(support=(0, 1)), Oracle(support=(1, 2))]
    learned = learn_from_corpus([path], BASE, 2, oracles)
    for u in range(2):
        alone = oracles[u].fit(Dictionary(BASE.transitions), learned.counts[u])
        np.testing.assert_array_equal(learned.rows[u], alone.law_)
    with pytest.raises(ValueError, match="one estimator a new token, 2, got 1"):
        learn_from_corpus([path], BASE, 2, oracles[:1])


def test_the_estimator_given_stays_as_it_was():
    estimator = ConstrainedKL()
    learn_from_corpus([[0, 3, 0]], BASE, 1, estimator)
    assert not hasattr(estimator, "law_")


@pytest.fixture(scope="module")
def in_a_row():
    """Two tokens are learned, then two more that are mixtures of old rows and of rows learned before."""
    paths = [simulate_corpus(EXTENDED, [0.1, 0.1], 2000, named_generator(0, "row", i)) for i in range(3)]
    first = learn_from_corpus(paths, BASE, 2, ConstrainedKL()).chain()
    alpha = np.array([[0, 0, 0, 1.0, 0], [0.5, 0, 0, 0, 0.5]])
    truth = first.extend(alpha @ first.transitions)
    corpus = simulate_corpus(truth, [0.05, 0.05, 0.1, 0.1], 5000, named_generator(0, "second"))
    second = learn_from_corpus([corpus], first, 2, ConstrainedKL())
    return SimpleNamespace(first=first, second=second, truth=truth, corpus=corpus, alpha=alpha)


class TestExpansionsInARow:
    def test_nothing_learned_before_moves(self, in_a_row):
        chain = in_a_row.second.chain()
        assert chain.forgets_nothing()
        assert chain.transitions[:5, :5].tobytes() == in_a_row.first.transitions.tobytes()
        assert chain.transitions[:3, :3].tobytes() == BASE.transitions.tobytes()
        assert not chain.transitions[:, 3:].any()
        assert in_a_row.second.compare(in_a_row.truth).old_rows_equal

    def test_undoing_one_gives_the_former_chain(self, in_a_row):
        chain = in_a_row.second.chain()
        assert chain.retract() is in_a_row.first
        assert chain.retract().retract() is BASE

    def test_earlier_tokens_that_come_from_outside_are_not_counted(self, in_a_row):
        plain = count_transitions([in_a_row.corpus], 7)
        assert plain[:3, 3:5].any()
        assert not in_a_row.second.counts[:, 3:].any()
        assert in_a_row.second.n_discarded == (in_a_row.corpus[1:] >= 3).sum()

    @pytest.mark.statistical
    def test_later_tokens_are_learned_as_mixtures_of_earlier_ones(self, in_a_row):
        """2N·KL of two rows, N about 500, is near a χ² of at most 2 degrees: above 50 with probability 3e-11."""
        comparison = in_a_row.second.compare(in_a_row.truth)
        assert not comparison.kl.mask.any()
        assert comparison.kl.max() < 0.05

    def test_the_true_map_gives_the_true_rows(self, in_a_row):
        learned = learn_from_corpus([in_a_row.corpus], in_a_row.first, 2, lambda P, n: in_a_row.alpha @ P)
        comparison = learned.compare(in_a_row.truth)
        assert comparison.max_error <= 1e-15
        assert comparison.kl.max() <= 1e-15

    def test_a_transition_that_the_chain_makes_itself_is_counted(self):
        reached = BASE.extend([[0.2, 0.3, 0.5]], into_new=[[0.1], [0], [0]])
        learned = learn_from_corpus([[4, 3, 4, 0]], reached, 1, empirical)
        assert learned.counts.tolist() == [[1, 0, 0, 1]]


@pytest.mark.statistical
def test_a_corpus_of_the_size_that_theory_asks_for_teaches_every_token():
    """At δ = 1e-6: one of three tokens is not learned to ε = 1e-2 with at most that probability."""
    alpha = np.array([[0.5, 0.5, 0.0], [0.0, 0.3, 0.7], [0.4, 0.0, 0.6]])
    truth = BASE.extend(alpha @ BASE.transitions)
    planted = [Instance(Dictionary(BASE.transitions), a) for a in alpha]
    epsilon, delta = 1e-2, 1e-6
    rates = coupled_rates(alpha, BASE.stationary_laws[0], total=0.5)
    bounds = [lambda d, q=q: S6.n_samples(q.support_rows, q.target, epsilon, d) for q in planted]
    size = corpus_size(bounds, rates, delta)
    path = simulate_corpus(truth, rates, int(size.n_chances), named_generator(0, "theory"))
    oracles = [Oracle(support=tuple(q.support.tolist())) for q in planted]
    learned = learn_from_corpus([path], BASE, 3, oracles)
    assert (learned.counts.sum(axis=1) >= size.n_samples).all()
    comparison = learned.compare(truth)
    assert comparison.old_rows_equal
    assert comparison.kl.max() <= epsilon


@pytest.mark.parametrize(
    ("rates", "n", "start", "error", "words"),
    [
        ([0.6, 0.6], 5, 0, ValueError, "total of 1.2"),
        ([-0.1, 0.2], 5, 0, ValueError, "non-negative"),
        ([0.1] * 5, 5, 0, ValueError, "last k states"),
        ([0.1, 0.1], -1, 0, ValueError, "n_chances"),
        ([0.1, 0.1], 5, 3, ValueError, r"start must be in \[0, 2\]"),
        ([0.1, 0.1], 5, [0.5, 0.5], ValueError, "law over the 3 old states"),
        ([0.1, 0.1, 0.1], 5, 0, ValueError, "reached from nowhere"),
        ([0.1, 0.1], 2.5, 0, TypeError, "whole"),
    ],
)
def test_wrong_corpora_are_refused(rates, n, start, error, words):
    with pytest.raises(error, match=words):
        simulate_corpus(EXTENDED, rates, n, named_generator(0, "wrong"), start)


def test_wrong_learners_and_oracles_are_refused():
    with pytest.raises(ValueError, match=r"learned rows must have shape \(1, 3\)"):
        learn_from_corpus([[3, 0]], BASE, 2, lambda P, n: P)
    with pytest.raises(ValueError, match="states must lie"):
        learn_from_corpus([[5, 0]], BASE, 2, empirical)
    with pytest.raises(ValueError, match="3 old and 1 new"):
        learn_from_corpus([[3, 0]], BASE, 1, empirical).compare(EXTENDED)


@given(laws(3), laws(3), st.integers(0, 5))
def test_corpora_from_the_same_name_are_the_same(first, second, seed):
    chain = BASE.extend([first, second])
    paths = [simulate_corpus(chain, [0.2, 0.1], 30, named_generator(seed, "same")) for _ in range(2)]
    assert paths[0].tolist() == paths[1].tolist()
