"""Every estimator keeps the one protocol."""

import numpy as np
import pytest
from sklearn.base import clone

from markov_theory.estimators import ESTIMATORS, ConstrainedKL, KLPursuit, NearestRow, Oracle
from markov_theory.families import make_dictionary
from markov_theory.instance import plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from tests.certificates import assert_weights

DICTIONARY = make_dictionary(14, 20, density_ratio=20.0)
TRUTH = plant(DICTIONARY, 2)
COUNTS = sample_counts(TRUTH.target, 3000, 4, named_generator(0, "protocol"))


@pytest.fixture(params=sorted(ESTIMATORS))
def estimator(request):
    return ESTIMATORS[request.param].for_instance(TRUTH, 1e-9)


def test_options_are_stored_and_cloned(estimator):
    copied = clone(estimator)
    assert copied.get_params() == estimator.get_params()
    assert copied.set_params(**estimator.get_params()).get_params() == estimator.get_params()


def test_one_problem_and_a_batch(estimator):
    batch = clone(estimator).fit(DICTIONARY, COUNTS)
    assert batch.law_.shape == (4, 20)
    np.testing.assert_allclose(batch.law_.sum(axis=1), 1, atol=1e-12)
    single = clone(estimator).fit(DICTIONARY, COUNTS[0])
    np.testing.assert_allclose(single.law_, batch.law_[0], atol=1e-4)
    if hasattr(single, "alpha_"):
        assert_weights(single.alpha_)
        assert single.support_.tolist() == np.flatnonzero(single.alpha_).tolist()
        np.testing.assert_allclose(single.alpha_ @ DICTIONARY.transitions, single.law_, atol=1e-12)
        with pytest.raises(ValueError, match="support_ is of one problem"):
            _ = batch.support_


def test_counts_must_fit_the_dictionary(estimator):
    with pytest.raises(ValueError, match=r"counts must have shape \(20,\) or \(R, 20\)"):
        estimator.fit(DICTIONARY, [1, 2, 3])


def test_options_of_an_instance_reach_only_those_who_ask():
    assert Oracle.for_instance(TRUTH, 1e-7).get_params() == {
        "support": tuple(TRUTH.support.tolist()),
        "tolerance": 1e-7,
    }
    assert KLPursuit.for_instance(TRUTH, 1e-7).get_params() == {"sparsity": 2, "tolerance": 1e-7}


def test_who_has_a_guarantee():
    classes = {name: ESTIMATORS[name].for_instance(TRUTH, 1e-9).bound_class for name in ESTIMATORS}
    assert classes["oracle"] == "oracle"
    assert classes["constrained-kl"] == "simplex"
    assert classes["exact-l0"] == "l0"
    assert classes["nearest-row"] == "one-to-one"
    assert {classes[name] for name in ("kl-pursuit", "omp", "uniform", "smoothed-empirical")} == {"none"}
    assert KLPursuit(sparsity=1).bound_class == "one-to-one"


def test_more_data_brings_mixture_estimators_closer():
    large = sample_counts(TRUTH.target, 10**7, 1, named_generator(1, "protocol"))[0]
    for fitted in (ConstrainedKL(), KLPursuit(sparsity=2), Oracle(support=TRUTH.support)):
        np.testing.assert_allclose(fitted.fit(DICTIONARY, large).law_, TRUTH.target, atol=2e-3)


def test_the_nearest_row_is_the_likeliest():
    fitted = NearestRow().fit(DICTIONARY, COUNTS)
    assert (fitted.alpha_.argmax(axis=1) == (COUNTS @ np.log(DICTIONARY.transitions).T).argmax(axis=1)).all()
