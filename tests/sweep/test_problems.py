"""Kinds of problem: what is planted, drawn, scored and bounded at a point, against definitions and special cases."""

import math

import numpy as np
import pytest
from scipy.stats import binom, chi2, multinomial

from markov_theory.bounds import BOUNDS, S3, S6
from markov_theory.bounds.exposure import Exposure
from markov_theory.bounds.misspecification import M2
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import ConstrainedKL, KLPursuit, Oracle
from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.misspecified import project
from markov_theory.randomness import named_generator
from markov_theory.sweep.problems import PROBLEMS
from markov_theory.sweep.sample_complexity import BATCH
from markov_theory.sweep.setup import set_up
from markov_theory.sweep.trials import Trials

SMALL = {"tokens": 8, "outcomes": 12, "ratio": 20.0, "s": 2, "epsilon": 1e-2, "truths": 2}


def first(**options):
    """Plan, problem, its first point and first truth."""
    planned = set_up({**SMALL, **options})
    point = planned.specification.points[0]
    return planned, point, planned.problem.truth(point, 0)


def draws(truth, n_samples, seed=0, n_trials=6):
    return list(truth.draw(n_samples, n_trials, named_generator(seed, "draws")))


def test_the_default_sweep_has_the_truths_and_the_samples_that_its_names_say():
    planned = set_up({"s": 4})
    trials = Trials(planned.specification)
    point = planned.specification.points[0]
    made = make_dictionary(128, 256, density_ratio=100.0)
    expected = plant(made, 4, truth=1)
    truth = planned.problem.truth(point, 1)
    assert truth.name == expected.name == "s=4/truth=1"
    np.testing.assert_array_equal(truth.instances[0].target, expected.target)
    counts = named_generator(0, "counts", "s=4/truth=1", 1000, 2).multinomial(1000, expected.target, size=BATCH)
    fitted = Oracle(support=expected.support.tolist(), tolerance=planned.specification.tolerance(point))
    loss = kl_divergence(expected.target, fitted.fit(made, counts).law_)
    np.testing.assert_array_equal(trials.run(point, 1, "oracle", 1000, 2).kl, loss)


def test_truths_of_other_rows_have_other_samples_and_the_accuracy_changes_none():
    planned = set_up({"tokens": "64,128", "epsilon": "1e-5,1e-4", "s": 4})
    names = {str(point): planned.problem.truth(point, 0).name for point in planned.specification.points}
    assert set(names.values()) == {"s=4/truth=0", "s=4/truth=0/tokens=64"}
    assert len(names) == 4


@pytest.mark.parametrize("kind", sorted(PROBLEMS))
def test_every_kind_keeps_the_protocol(kind):
    problem_class = PROBLEMS[kind]
    options = {
        axis: value for axis, value in {"tokens": 8, "s": 2, "outcomes": 12}.items() if axis in problem_class.axes
    }
    options |= {axis: problem_class.axes[axis] or 0.1 for axis in problem_class.selected_by}
    planned = set_up({**options, "truths": 2, "epsilon": 1e-2})
    assert planned.specification.kind == kind
    (point,) = planned.specification.points
    one, other = (planned.problem.truth(point, index) for index in (0, 1))
    assert one.name != other.name
    again = set_up({**options, "truths": 2, "epsilon": 1e-2}).problem.truth(point, 0)
    for counts, repeated, instance in zip(draws(one, 50), draws(again, 50), one.instances, strict=True):
        np.testing.assert_array_equal(counts, repeated)
        assert counts.shape == (6, one.dictionary.n_outcomes)
        assert one.loss(instance, instance.target[None]).shape == (1,)
    assert sum(counts.sum() for counts in draws(one, 50)) == 6 * 50
    for name in planned.specification.estimators:
        batch = Trials(planned.specification).run(point, 0, name, 50, 0)
        assert batch.kl.shape == batch.gap.shape == (BATCH,)
        assert (batch.kl >= 0).all()
        assert all(n >= 0 for n in planned.bounds.of((point, 0, name)).values())


# Misspecification


def test_no_misfit_is_the_mixture():
    _, _, plain = first()
    _, _, none = first(misfit=0)
    assert none.name == plain.name
    np.testing.assert_array_equal(draws(none, 100)[0], draws(plain, 100)[0])
    laws = plain.dictionary.transitions
    np.testing.assert_allclose(none.loss(none.instances[0], laws), plain.loss(plain.instances[0], laws))


def test_success_is_the_excess_over_the_best_mixture():
    _, _, truth = first(misfit=0.3)
    q = truth.instance.target
    best = project(truth.dictionary.transitions, q)
    assert best.divergence > 0.01
    loss = truth.loss(truth.instances[0], np.vstack([best.law, truth.dictionary.transitions, q]))
    assert loss[0] == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(loss[1:-1], kl_divergence(q, truth.dictionary.transitions) - best.divergence)
    assert loss[-1] == 0
    assert truth.facts(1e-2)["approximation_error"] == pytest.approx(best.divergence)
    np.testing.assert_allclose(draws(truth, 10**12)[0].mean(axis=0) / 1e12, q, atol=1e-4)
    assert truth.guarantee(ConstrainedKL()) == "simplex"
    assert truth.guarantee(Oracle(support=[0])) == truth.guarantee(KLPursuit(sparsity=2)) == "none"
    T, c = truth.dictionary.n_tokens, truth.dictionary.density_ratio
    assert truth.bound(M2, "simplex", 1e-2, 0.05) == M2.n_samples(T, c, 1e-2, 0.05)
    assert truth.bound(BOUNDS["S2"], "simplex", 1e-2, 0.05) is None  # supposes a truth in the hull


# New tokens


def test_one_new_token_is_the_mixture():
    _, _, plain = first()
    _, _, alone = first(new_tokens=1)
    assert alone.name == plain.name
    np.testing.assert_array_equal(draws(alone, 100)[0], draws(plain, 100)[0])
    for label in ("S6", "S3"):
        assert alone.bound(BOUNDS[label], "oracle", 1e-2, 0.05) == plain.bound(BOUNDS[label], "oracle", 1e-2, 0.05)


@pytest.mark.parametrize(
    ("exposure", "expected"), [("uniform", [1 / 3] * 3), ("zipf", [6 / 11, 3 / 11, 2 / 11]), ("coupled", None)]
)
def test_occurrences_are_shared_out_as_the_exposure_says(exposure, expected):
    _, _, truth = first(new_tokens=3, exposure=exposure)
    if expected is None:
        frequencies = [i.alpha @ (1 / np.arange(1, 9)) for i in truth.instances]
        expected = np.array(frequencies) / sum(frequencies)
    np.testing.assert_allclose(truth.rates, expected)
    assert len({tuple(i.alpha) for i in truth.instances}) == 3


@pytest.mark.statistical
def test_counts_of_a_corpus_have_the_law_of_the_joint_multinomial():
    """χ² of 20,000 trials over the cells of the joint law of all counts: exceeds its bound with probability 1e-6."""
    _, _, truth = first(new_tokens=2, exposure="zipf", outcomes=2, tokens=2, s=1, ratio=3.0)
    counts = np.hstack(draws(truth, 3, n_trials=20_000))
    law = np.concatenate([rate * i.target for rate, i in zip(truth.rates, truth.instances, strict=True)])
    cells, observed = np.unique(counts, axis=0, return_counts=True)
    expected = 20_000 * multinomial.pmf(cells, 3, law)
    assert expected.sum() > 20_000 * (1 - 1e-9) - expected.min()
    used = expected >= 50
    statistic = ((observed - expected)[used] ** 2 / expected[used]).sum()
    assert statistic < chi2.isf(1e-6, used.sum())


def test_a_trial_fails_by_its_worst_token():
    planned, point, truth = first(new_tokens=3, estimators="oracle")
    generator = named_generator(0, "counts", truth.name, 500, 1)
    losses = []
    for instance, counts in zip(truth.instances, truth.draw(500, BATCH, generator), strict=True):
        fit = Oracle(support=instance.support.tolist(), tolerance=planned.specification.tolerance(point))
        losses.append(kl_divergence(instance.target, fit.fit(truth.dictionary, counts).law_))
    np.testing.assert_array_equal(
        Trials(planned.specification).run(point, 0, "oracle", 500, 1).kl, np.max(losses, axis=0)
    )


def test_bounds_for_a_corpus_count_exposure_and_learning():
    _, _, truth = first(new_tokens=4, exposure="zipf")
    needed = [S6.at(i, epsilon=1e-2, delta=0.05 / 8) for i in truth.instances]
    bound = truth.bound(S6, "oracle", 1e-2, 0.05)
    assert bound == Exposure.n_samples(needed, truth.rates, 0.025)
    assert sum(binom.cdf(np.array(needed) - 1, bound, truth.rates)) <= 0.025
    assert truth.bound(BOUNDS["O4"], "oracle", 1e-2, 0.05) is None
    wilks = truth.bound(S3, "oracle", 1e-4, 0.05)
    each = [2 * 1e-4 * wilks * rate for rate in truth.rates]  # two rows: df 1
    assert 1 - math.prod(chi2.cdf(x, 1) for x in each) == pytest.approx(0.05, rel=1e-3)


def test_an_unknown_exposure_is_refused():
    with pytest.raises(ValueError, match="exposure must be one of uniform, zipf, coupled, got 'odd'"):
        first(new_tokens=2, exposure="odd")
