"""Trials really run, are a function of their names, agree with exact probabilities, and can refute."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from markov_theory.divergences import kl_divergence
from markov_theory.plan import plan_samples, planning
from markov_theory.plan.corpus import Limit
from markov_theory.plan.requirements import Recommendation
from markov_theory.plan.simulation import Scenario, simulate, simulated_limit, trials_needed, usual_trials
from markov_theory.plan.truths import Truth, nearest_mixture
from markov_theory.randomness import named_generator
from markov_theory.success import failure_bounds

EPSILON, DELTA = 1e-3, 0.05


def failure(n_samples):
    """Exact P(KL(½‖q̂) > ε) of the coin: maximum likelihood is the frequency, moved into [.2, .8]."""
    heads = np.arange(n_samples + 1)
    share = np.clip(heads / n_samples, 0.2, 0.8)
    laws = np.column_stack([share, 1 - share])
    return float(binom.pmf(heads, n_samples, 0.5)[kl_divergence([0.5, 0.5], laws) > EPSILON].sum())


def run(instance, n_samples, trials, **options):
    scenario = Scenario(instance.name, (Truth.of(instance),), np.ones(1))
    return simulate("given", n_samples, [scenario], "exact-l0", EPSILON, DELTA, trials, **options)


def refuted_with_certainty(n_samples, trials):
    """Probability that so many trials do not refute δ."""
    least = next(k for k in range(trials + 1) if failure_bounds(k, trials, 0.025)[0] > DELTA)
    return binom.cdf(least - 1, trials, failure(n_samples))


@pytest.mark.statistical
def test_too_few_samples_are_refuted(coin):
    """True failure .83 at N = 20: 64 trials fail to refute δ = .05 with probability below 1e-12."""
    assert refuted_with_certainty(20, 64) < 1e-12
    found = run(coin, 20, 64)
    assert found.verdict == "refuted"
    assert found.outcomes[0].low > DELTA


@pytest.mark.statistical
def test_enough_samples_are_confirmed(coin):
    """At S6^1 = 3,692 the true failure is so small that 512 trials do not confirm δ with probability below 1e-6."""
    most = next(k for k in range(512) if failure_bounds(k + 1, 512, 0.025)[1] > DELTA)
    assert binom.sf(most, 512, failure(3692)) < 1e-6
    assert run(coin, 3692, 512).verdict == "confirmed"


@pytest.mark.statistical
def test_failures_are_as_frequent_as_they_must_be(coin):
    """The exact failure probability lies in a Clopper–Pearson interval of level 1 − 1e-6."""
    found = run(coin, 1000, 1000)
    low, high = failure_bounds(found.outcomes[0].failures, 1000, 5e-7)
    assert low <= failure(1000) <= high


@pytest.mark.statistical
def test_a_planted_number_that_is_too_small_is_refuted(coin, monkeypatch):
    """A false bound, N = 20: 512 trials fail to refute it with probability below 1e-12."""
    assert refuted_with_certainty(20, 512) < 1e-12
    false = Recommendation(20.0, "false", "l0", "", 0, (20.0,), 20.0, math.inf, "")
    monkeypatch.setattr(planning, "recommend", lambda *arguments: false)
    plan = plan_samples(coin.dictionary, coin, EPSILON, DELTA)
    assert plan.simulation("recommended").verdict == "refuted"
    assert plan.simulation("predicted").n_positions == 1921


def test_trials_are_a_function_of_their_names(coin):
    first = run(coin, 500, 48, seed=3)
    assert run(coin, 500, 48, seed=3) == first
    other = Scenario("other", (Truth.of(coin),), np.ones(1))
    both = simulate("given", 500, [other, Scenario("coin", other.truths, np.ones(1))], "exact-l0", EPSILON, DELTA, 48,
                    seed=3)  # fmt: skip
    assert both.outcomes[1].failures == first.outcomes[0].failures
    assert both.outcomes[1].high > first.outcomes[0].high


def test_what_cannot_be_drawn_is_not_simulated(coin):
    for n_samples, words in ((math.inf, "no finite number"), (2.0**60, "2^53")):
        found = run(coin, n_samples, 8)
        assert found.verdict == "not simulated"
        assert words in found.reason
        assert found.outcomes == ()


def test_too_few_trials_decide_nothing_and_say_how_many_would(coin):
    found = run(coin, 100_000, 16)
    assert (found.verdict, found.outcomes[0].failures) == ("undecided", 0)
    assert f"{trials_needed(DELTA, 1)} trials" in found.reason
    assert failure_bounds(0, trials_needed(DELTA, 1), 0.025)[1] <= DELTA


def test_usual_trials(rows, coin):
    small = [Scenario("coin", (Truth.of(coin),), np.ones(1))]
    assert usual_trials(DELTA, small) == 512
    assert usual_trials(1e-3, small) == trials_needed(1e-3, 1)
    assert usual_trials(1e-6, small) == 8 * 512


def test_tokens_share_the_positions_and_one_failure_fails_the_trial(coin):
    truth = Truth.of(coin)
    scenario = Scenario("two", (truth, truth), np.array([0.3, 0.1]))
    first, second = scenario.draw(10_000, 50, named_generator(0, "shared"))
    assert first.shape == second.shape == (50, 2)
    assert (first.sum(axis=1) + second.sum(axis=1) < 10_000).all()
    # Six standard deviations of a mean over 50: wrong with probability below 1e-8.
    assert abs(first.sum(axis=1).mean() - 3000) < 6 * math.sqrt(10_000 * 0.3 * 0.7 / 50)
    starved = Scenario("starved", (truth, truth), np.array([1 - 1e-12, 1e-12]))
    found = simulate("given", 20, [starved], "oracle", 0.3, DELTA, 8)
    assert found.outcomes[0].failures == 0  # no mixture is so far, and that of a token without data is the mean row
    found = simulate("given", 20, [starved], "oracle", 1e-4, DELTA, 32)
    assert found.outcomes[0].failures > 0  # each fails with probability .82


def test_fits_with_too_large_a_gap_are_counted(rows, truths):
    scenario = [Scenario("pursuit", (truths[0],), np.ones(1))]
    strict = simulate("given", 500, scenario, "kl-pursuit", EPSILON, DELTA, 32, gap=1e-15)
    lax = simulate("given", 500, scenario, "kl-pursuit", EPSILON, DELTA, 32, gap=1.0)
    assert strict.outcomes[0].uncertified > 0 == lax.outcomes[0].uncertified
    assert strict.outcomes[0].failures == lax.outcomes[0].failures


@pytest.mark.statistical
def test_outside_the_hull_success_is_counted_from_what_stays(rows):
    """At N = 10⁶ the excess is far below ε = 0.01: χ²-like of mean below 11/2e6, so no trial of 32 fails (< 1e-12)."""
    law = 0.7 * rows.transitions[0] + 0.3 * np.eye(8)[0]
    truth = nearest_mixture(rows, law, 1e-2)
    assert truth.misfit > 1e-2
    for estimator in ("constrained-kl", "oracle"):
        found = simulate("given", 10**6, [Scenario("out", (truth,), np.ones(1))], estimator, 1e-2, DELTA, 32)
        assert found.outcomes[0].failures == 0


@pytest.mark.statistical
def test_the_simulated_limit_is_chi_square_inside_the_hull(coin):
    """The mean of 1,024 values of χ²₁ is within 6 standard deviations of 1, of ½ where half are at a face."""
    limit = simulated_limit(Truth.of(coin), EPSILON, DELTA)
    assert limit.draws.size == 1024
    assert abs(limit.draws.mean() - 1) < 6 * math.sqrt(2 / 1024) + 0.02
    corner = simulated_limit(Truth.of(type(coin)(coin.dictionary, [1, 0], "corner")), EPSILON, DELTA)
    assert abs(corner.draws.mean() - 0.5) < 6 * math.sqrt(1.25 / 1024) + 0.02
    assert simulated_limit(Truth.of(type(coin)(type(coin.dictionary)([[0.5, 0.5]]), [1])), 1e-3, 0.1) == Limit(0)
