"""Locating N*: coverage where N* is known, honesty where it is not, and verdicts that can come out violated."""

import math

import pytest
from scipy.stats import binom, chi2

from markov_theory.bounds import S6
from markov_theory.randomness import named_generator
from markov_theory.sweep.sample_complexity import BATCH, Design, locate
from markov_theory.verify.exact import interval_failure
from markov_theory.verify.verdict import upper_bound_verdict


def run(probability, design, seed=0):
    """Drive a search with trials that fail with a known probability at each N."""
    search, n_trials, outcomes = locate(design), 0, None
    try:
        while True:
            requests = next(search) if outcomes is None else search.send(outcomes)
            outcomes = []
            for request in requests:
                trials = BATCH * len(request.batches)
                generator = named_generator(seed, "outcomes", request.n_samples, request.batches.start)
                outcomes.append((trials, int(generator.binomial(trials, probability(request.n_samples)))))
                n_trials += trials
    except StopIteration as end:
        return end.value, n_trials


def wilks(df, epsilon=1e-4):
    return lambda n: float(chi2.sf(2 * n * epsilon, df))


@pytest.mark.statistical
@pytest.mark.parametrize("df", [1, 3, 31])
def test_intervals_cover(df):
    """An interval errs with probability at most 0.05; more than 8 errors in 50 have probability below 1e-3.

    Known N*: the least N with failure <= δ of a curve that falls, so that it is N*_last on every grid.
    """
    truth = math.ceil(chi2.isf(0.05, df) / 2e-4)
    errors = 0
    for seed in range(50):
        found, _ = run(wilks(df), Design(0.05), seed)
        errors += not (found.low < truth and any(n >= truth for n, _, _ in found.curve if n <= found.high))
    assert errors <= binom.isf(1e-3, 50, 0.05)


@pytest.mark.parametrize("df", [7, 31, 100])
def test_a_settled_interval_is_within_twenty_per_cent(df):
    found, n_trials = run(wilks(df), Design(0.05))
    assert found.settled
    assert found.high <= 1.44 * found.low
    assert found.low < found.n_star <= found.high
    assert n_trials < 15_000


@pytest.mark.parametrize("delta", [0.01, 0.001])
def test_small_failure_probabilities_are_located_too(delta):
    truth = chi2.isf(delta, 7) / 2e-4
    found, _ = run(wilks(7), Design(delta, max_trials=2**17))
    assert found.low < truth
    assert truth / 1.25 < found.n_star < truth * 1.25


def test_further_points_are_decided_on_request():
    found, _ = run(lambda n: 0.9 if n < 64 or 10_000 <= n < 11_000 else 0.0, Design(0.05, checks=(10_500, 20_000)))
    assert found.was_tried(10_500)
    assert (found.low, found.high) == (10_500, 20_000)


def test_nothing_certain_is_said_where_failure_is_delta_itself():
    found, _ = run(lambda n: 0.05, Design(0.05, max_trials=512, max_samples=1000))
    assert (found.n_star, found.high, found.settled) == (math.inf, math.inf, False)


def test_never_and_always():
    never, _ = run(lambda n: 1.0, Design(0.05, max_samples=10**6))
    assert (never.n_star, never.high) == (math.inf, math.inf)
    assert never.low > 10**5
    always, _ = run(lambda n: 0.0, Design(0.05))
    assert (always.n_star, always.low, always.high) == (0, -1, 0)


@pytest.mark.parametrize("n_star", [1, 2, 3, 7, 40])
def test_small_numbers_are_located(n_star):
    found, _ = run(lambda n: 0.9 if n < n_star else 0.0, Design(0.05))
    assert found.settled
    assert found.low < n_star <= found.high
    assert n_star / 1.2 <= found.n_star <= n_star * 1.2


def test_failure_that_comes_back_counts():
    # From 64 on failure is small, at 120 … 150 it is large again: N* is the last crossing.
    found, _ = run(lambda n: 0.9 if n < 64 or 120 <= n < 150 else 0.0, Design(0.05))
    assert found.high >= 150 or 128 not in [n for n, _, _ in found.curve]
    assert found.low >= 128


def test_failure_that_comes_back_within_reach_is_found_wherever_it_is():
    # Certain failure over less than an octave, between the points of the climb.
    def comes_back(n):
        return 0.9 if n < 64 or 140 <= n < 160 else 0.0

    unseen, few = run(comes_back, Design(0.05))
    assert unseen.settled
    assert unseen.high < 140
    seen, more = run(comes_back, Design(0.05, reach=4))
    assert seen.settled
    assert 140 <= seen.low < 160 <= seen.high < 170
    assert few < more < 20_000
    tried = [n for n, _, _ in seen.curve]
    assert {round(2 ** (k / 16)) for k in range(119, 149)} <= set(tried)
    assert max(tried) <= 4 * seen.high


def test_reach_is_paid_for_in_the_error_probability_of_each_look():
    usual, far = Design(0.05), Design(0.05, reach=4)
    assert far.max_points == usual.max_points + 2 * 32
    assert far.look_level == pytest.approx(usual.look_level * 68 / 132)
    assert far.least_trials > usual.least_trials


def test_a_true_bound_holds_and_a_planted_false_one_is_violated():
    """Failure probabilities are exact; the interval errs with probability at most 0.05 for the stated seed.

    Rows (.2, .8), (.8, .2), q uniform, ε = 1e-3, δ = .05: the exact N*_last is 1946.
    """
    bound = S6.n_samples(support_rows=[[0.2, 0.8], [0.8, 0.2]], target=[0.5, 0.5], epsilon=1e-3, delta=0.05)

    found, _ = run(lambda n: interval_failure(0.2, 0.8, 0.5, n, 1e-3) if n else 1.0, Design(0.05))
    assert found.low < 1946
    assert upper_bound_verdict(bound, found.low, found.high) == "holds"
    assert upper_bound_verdict(bound / 6, found.low, found.high) == "violated"


def test_verdicts_of_bounds_that_say_nothing():
    assert upper_bound_verdict(math.inf, 5, 7) == "says nothing"
    assert upper_bound_verdict(6, 5, 7) == "inconclusive"
    assert upper_bound_verdict(100, 50, math.inf) == "inconclusive"
    assert upper_bound_verdict(100, 40, 60, tried=False) == "inconclusive"
