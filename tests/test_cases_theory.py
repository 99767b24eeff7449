"""What went wrong in neighbouring tools, each as a small case with the right answer; named after what must hold.

The report is linked at each case. Cases of one solver live with its tests.
"""

import math

import numpy as np
import pytest
from hypothesis import given

from markov_theory._checks import as_counts
from markov_theory.bounds import O1, O2, O3
from markov_theory.chain import count_transitions, estimate_transitions
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import ESTIMATORS
from markov_theory.instance import Instance, plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.simplex_mle import simplex_mle
from tests.certificates import assert_maximum, assert_weights
from tests.strategies import dictionaries


def test_single_precision_rows_can_be_sampled():
    # https://github.com/numpy/numpy/issues/8317
    row = np.array([0.6, 0.4, 0.0], dtype=np.float32)
    generator = named_generator(0, "case 1")
    assert sample_counts(row, 5, 1, generator).sum() == 5
    with pytest.raises(ValueError, match="must sum to 1"):
        sample_counts(np.array([0.6, 0.5, 0.0]), 5, 1, generator)


def test_divergence_never_normalises_silently():
    # https://github.com/scipy/scipy/issues/12553, https://github.com/cvxpy/cvxpy/issues/733
    with pytest.raises(ValueError, match="q must sum to 1"):
        kl_divergence([0.5, 0.5], [0.3, 0.3])


@given(dictionaries(single=False))
def test_both_definitions_of_kl_agree_on_laws(rows):
    p, q = Dictionary(rows).transitions[:2]
    value = float(kl_divergence(p, q))
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = np.where(p > 0, p * np.log(p / q), 0).sum()
        generalised = np.where(p > 0, p * np.log(p / q), 0).sum() - p.sum() + q.sum()
    if math.isinf(value):
        assert math.isinf(plain)
    else:
        assert value == pytest.approx(plain, abs=1e-12) == pytest.approx(generalised, abs=1e-12)


def test_zero_times_log_zero_is_zero():
    # https://github.com/uber/causalml/issues/167
    assert float(kl_divergence([0.5, 0.5, 0], [0.25, 0.25, 0.5])) == pytest.approx(math.log(2), abs=1e-12)
    assert float(kl_divergence([0.5, 0.5, 0], [1, 0, 0])) == math.inf


@given(dictionaries())
def test_margins_and_bounds_pass_infinity_through_and_are_never_nan(rows):
    dictionary = Dictionary(rows)
    values = [dictionary.margin, dictionary.density_ratio, dictionary.log_ratio, dictionary.coherence]
    values += [bound.at(Instance(dictionary, np.eye(len(rows))[0]), delta=0.05) for bound in (O1, O2, O3)]
    assert not np.isnan(values).any()


def test_the_first_argument_of_kl_is_averaged_over():
    # https://github.com/pytorch/pytorch/issues/57459
    assert float(kl_divergence([0.5, 0.5], [0.9, 0.1])) == pytest.approx(0.510826, abs=1e-6)
    assert float(kl_divergence([0.9, 0.1], [0.5, 0.5])) == pytest.approx(0.368064, abs=1e-6)


@pytest.mark.parametrize("name", sorted(ESTIMATORS))
def test_every_estimator_answers_without_data(name):
    # https://github.com/pymc-devs/pymc/issues/657
    dictionary = Dictionary([[0.9, 0.1], [0.2, 0.8]])
    fitted = ESTIMATORS[name].for_instance(plant(dictionary, 1), 1e-9).fit(dictionary, [0, 0])
    assert fitted.law_.sum() == pytest.approx(1)
    assert np.isfinite(fitted.law_).all()
    if hasattr(fitted, "status_"):
        assert fitted.status_ in ("no data", "feasible")


def test_empty_and_huge_samples():
    # https://github.com/numpy/numpy/issues/20483
    generator = named_generator(0, "case 7")
    assert sample_counts([0.5, 0.5], 0, 1, generator).tolist() == [[0, 0]]
    huge = sample_counts([0.5, 0.5], 10**10, 1, generator)
    assert (huge.dtype, int(huge.sum())) == (np.int64, 10**10)
    with pytest.raises(ValueError, match="at least one outcome"):
        sample_counts([], 1, 1, generator)


def test_planted_weights_are_finite_laws_for_every_size():
    # https://github.com/numpy/numpy/issues/24210: tiny Dirichlet parameters gave NaN; ours are never tiny
    dictionary = Dictionary(np.full((1000, 2), 0.5))
    for truth in range(20):
        assert_weights(plant(dictionary, 1000, truth=truth).alpha)


def test_an_unvisited_state_is_masked_and_others_are_unaffected():
    # https://github.com/spedygiorgio/markovchain/issues/60
    rows = estimate_transitions([[3, 1], [0, 0]])
    assert rows[0].tolist() == [0.75, 0.25]
    assert rows.mask[1].all()


def test_the_number_of_states_is_given_not_inferred():
    # https://github.com/markovmodel/PyEMMA/issues/24
    counts = count_transitions([[0, 1, 0]], n_states=3)
    assert counts.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]


def test_joining_trajectories_invents_no_transition():
    # https://github.com/markovmodel/PyEMMA/issues/1321
    assert count_transitions([[0, 0], [1, 1]], 2).tolist() == [[1, 0], [0, 1]]
    assert count_transitions([[1], []], 2).sum() == 0


def test_an_outcome_that_never_happened_and_a_single_row():
    # https://github.com/stephenslab/mixsqp/issues/18
    assert simplex_mle([[0.5, 0.5, 0], [0, 0, 1]], [2, 2, 0]).alpha.tolist() == [[1.0, 0.0]]
    assert simplex_mle([[0.5, 0.5, 0]], [2, 2, 0]).alpha.tolist() == [[1.0]]


@given(dictionaries())
def test_weights_are_non_negative_and_sum_to_one_exactly(rows):
    # https://github.com/cvxpy/cvxpy/issues/406
    counts = np.where(rows.max(axis=0) > 0, 7, 0)
    fit = simplex_mle(rows, counts)
    assert_maximum(rows, counts, fit)
    assert (fit.support_sizes == (fit.alpha > 0).sum(axis=1)).all()


@pytest.mark.parametrize("counts", [[1.5, 0], [np.nan, 1], [np.inf, 1], [-1, 2]])
def test_counts_are_whole(counts):
    with pytest.raises(ValueError, match="whole numbers >= 0"):
        as_counts(counts, 2)
