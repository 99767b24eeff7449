"""The corpus: δ shared, positions, and what unequal exposure costs."""

import math
from functools import cache

import numpy as np
import pytest
from scipy.stats import chi2

from markov_theory.bounds import S3, corpus_size
from markov_theory.instance import plant
from markov_theory.plan import plan_samples
from markov_theory.plan.corpus import Limit, plan_corpus, predicted_positions
from markov_theory.plan.truths import Truth


@cache
def planned(rows, **options):
    return plan_samples(rows, 2, 1e-2, 0.1, simulation=False, n_truths=2, **options)


def test_one_token_alone_needs_its_samples_and_all_of_delta(rows):
    plan = planned(rows)
    assert plan.corpus.n_positions == plan.recommendation.n_samples
    assert (plan.corpus.exposure_delta, plan.corpus.learning_delta) == (0, 0.1)
    assert plan.parts["exposure"] == 0


@pytest.mark.parametrize("exposure", ["uniform", "zipf", "coupled"])
def test_positions_are_those_of_the_exposure_bound(rows, exposure):
    plan = planned(rows, new_tokens=3, exposure=exposure, rate=0.2)
    corpus, needed = plan.corpus, plan.recommendation.n_samples
    expected = corpus_size(lambda delta: needed, corpus.rates, 0.1)
    assert corpus.n_positions == expected.n_chances
    assert corpus.n_positions == corpus.under[exposure]
    assert (corpus.exposure_delta, corpus.learning_delta) == (expected.exposure_delta, expected.learning_delta)
    assert corpus.exposure_delta + 3 * corpus.learning_delta == pytest.approx(0.1, rel=1e-12)
    assert 0 < corpus.failure[0] <= corpus.failure[1] <= corpus.exposure_delta
    assert corpus.rates.sum() == pytest.approx(0.2, rel=1e-12)


def test_more_tokens_and_a_lower_rate_need_a_longer_corpus(rows):
    tokens = [planned(rows, new_tokens=m).corpus.n_positions for m in (1, 2, 8)]
    assert tokens == sorted(set(tokens))
    rates = [planned(rows, new_tokens=2, rate=rate).corpus.n_positions for rate in (1.0, 0.2, 0.01)]
    assert rates == sorted(set(rates))


def test_zipf_costs_more_than_uniform_exposure(rows):
    under = planned(rows, new_tokens=8, exposure="zipf").corpus.under
    assert under["zipf"] > 2 * under["uniform"]
    assert planned(rows, new_tokens=8, exposure="zipf").corpus.cost == under["zipf"] / under["uniform"]


def test_parts_add_up_to_the_occurrences(rows):
    plan = planned(rows, new_tokens=4, exposure="zipf", rate=0.1)
    assert sum(plan.parts.values()) == pytest.approx(0.1 * plan.corpus.n_positions, rel=1e-12)
    assert plan.parts["accuracy"] == pytest.approx(4 * plan.recommendation.known_support, rel=1e-12)
    assert plan.binding == max(plan.parts, key=plan.parts.get)


def test_given_truths_are_each_asked_for_their_own_samples(rows):
    truths = [plant(rows, 2), plant(rows, 1)]
    plan = plan_samples(rows, truths, 1e-2, 0.1, simulation=False)
    assert plan.corpus.samples_per_token.tolist() == list(plan.recommendation.each)
    assert plan.recommendation.each[1] < plan.recommendation.each[0]
    with pytest.raises(ValueError, match="new_tokens must be 2"):
        plan_samples(rows, truths, 1e-2, 0.1, simulation=False, new_tokens=3)


def test_no_number_of_samples_makes_no_corpus(rows):
    instances = [plant(rows, 2), plant(rows, 2, truth=1)]
    corpus = plan_corpus(np.array([math.inf, 5.0]), instances, "zipf", 0.5, 0.1, 0.5)
    assert math.isinf(corpus.n_positions)
    assert corpus.cost == 1
    assert math.isinf(corpus.parts(3.0)["support"])


def test_predicted_positions_solve_their_equation(rows):
    limits = [Limit.wilks(Truth.of(plant(rows, s))) for s in (2, 4)]
    which, rates = np.array([0, 1, 0]), np.array([0.3, 0.1, 0.05])
    n = predicted_positions(limits, which, rates, 1e-3, 0.1)

    def learned(n):
        return np.prod(chi2.cdf(2 * 1e-3 * n * rates, [1, 3, 1]))

    assert learned(n - 1) < 0.9 <= learned(n) * (1 + 1e-12)
    assert predicted_positions([Limit(0)], np.zeros(2, dtype=int), np.array([0.5, 0.5]), 1e-3, 0.1) == 0


def test_limits_predict_samples(rows):
    truth = Truth.of(plant(rows, 3))
    assert Limit.wilks(truth).n_samples(1e-3, 0.05) == S3.at(truth.instance, epsilon=1e-3, delta=0.05)
    simulated = Limit(3, np.arange(1.0, 101.0))
    n = simulated.n_samples(1e-2, 0.05)
    assert simulated.tail(2e-2 * np.array([n, n - 1])).tolist() == pytest.approx([0.05, 0.06])
