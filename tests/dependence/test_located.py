"""The located measurements against what is exact, and what makes them repeatable."""

import numpy as np
import pytest

from markov_theory.dependence import dimension, mixtures, natural, signs
from markov_theory.dependence.locating import design, located
from markov_theory.dependence.series import Setting
from markov_theory.estimators.embedding import EmbeddingTuning
from markov_theory.randomness import named_generator
from markov_theory.verify.exact import first_and_last
from markov_theory.verify.two_outcomes import row_failures

SETTING = Setting("quick")


@pytest.mark.statistical
def test_located_n_star_of_two_outcomes_holds_the_exact_one():
    """Two rows over two outcomes: every interval errs with probability at most 1e-6, set for this test."""
    p = [0.62, 0.38]
    exact = first_and_last(row_failures(p, np.arange(400)), SETTING.delta)[1]
    rows = np.column_stack([p, 1 - np.array(p)])

    def fails(n, n_trials, generator):
        return natural.lost(rows, 0, n, n_trials, generator)

    plan = design(SETTING)
    strict = type(plan)(plan.delta, plan.max_trials, level=1e-6)
    found = located(fails, strict, 0, "two outcomes")
    assert found.low < exact
    # Where failure rises again between grid points the exact N* may lie beyond `high`, but not beyond the next point.
    assert exact <= 2 * found.high


@pytest.mark.statistical
def test_exact_l0_located_agrees_with_bonferronis_limits():
    """Seven Walsh spare rows. The estimate scatters by 6 %: 40 % is more than six standard deviations (1e-8)."""
    rows = mixtures.walsh_rows(8, 16, first=0)
    assert rows[0] == pytest.approx(1 / 16)
    exact = mixtures.measure_spare(8, 0, SETTING)
    found = signs.measure_l0(rows, rows[0], 2, mixtures.EPSILON, Setting("quick"), "walsh")
    assert exact.low / 1.4 < found.n_star < exact.high * 1.4
    assert found.n_trials > 0


def test_the_worst_truth_is_one_of_the_nearest_pair():
    rows = natural.natural_rows(32, 4, 0, 0)
    rows[7] = 0.999 * rows[3] + 0.001 * rows[5]
    assert natural.worst_truth(rows, SETTING, "pair") in (3, 7)


def test_measurements_are_repeatable_and_differ_by_repeat():
    first, again, other = (natural.measure(16, repeat, SETTING) for repeat in (0, 0, 1))
    assert first == again
    assert first != other
    assert natural.measure(16, 0, Setting("quick", seed=1)) != first


def test_a_head_that_reaches_every_law_is_tuned_to_the_empirical_row():
    instance = dimension.planted(dimension.OUTCOMES - 1, dimension.FEW_TOKENS, 0, 0)
    assert instance.dense_degrees_of_freedom == instance.n_outcomes - 1
    counts = named_generator(0, "tuned").multinomial(50_000, instance.target, size=2)
    assert (counts > 0).all()
    np.testing.assert_allclose(
        dimension.tuned(instance)(counts), dimension.fitted_by(EmbeddingTuning, instance)(counts), atol=1e-5
    )


def test_a_smaller_head_is_tuned_by_the_solver():
    instance = dimension.planted(8, dimension.FEW_TOKENS, 0, 0)
    counts = named_generator(0, "tuned").multinomial(50_000, instance.target, size=2)
    fitted = dimension.tuned(instance)(counts)
    assert np.abs(fitted - counts / 50_000).max() > 1e-4
