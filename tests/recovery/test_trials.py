"""Supports found by each estimator against the exact probability, and against hand-made cases."""

import numpy as np
import pytest
from scipy.stats import binom

from markov_theory.dictionary import Dictionary
from markov_theory.instance import Instance
from markov_theory.randomness import named_generator
from markov_theory.recovery.trials import ESTIMATORS, Cell, Plan, exact_l0, largest_weights, run_all, run_cell
from markov_theory.verify.exact_support import support_failure

ROWS = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
TRUTH = Instance(Dictionary(ROWS), [0.5, 0.5, 0])
SMALL = Plan((1, 2), (4, 64), tokens=6, outcomes=8, ratio=20.0, truths=2, trials=16)


@pytest.mark.statistical
@pytest.mark.parametrize("n_samples", [6, 20, 40])
def test_exact_l0_fails_as_often_as_the_enumeration_says(n_samples):
    """Here every maximiser that mixes both rows mixes no other, so the two events are the same.

    The number of failures in 2000 trials is binomial: outside its 1e-7 points on either side with probability 2e-7.
    """
    exact = float(support_failure(ROWS, TRUTH.alpha, 2, n_samples).low)
    counts = named_generator(0, "recovery test", n_samples).multinomial(n_samples, TRUTH.target, size=2000)
    found = exact_l0(ROWS, counts, TRUTH, 1000)
    failures = int((~found.success).sum())
    assert found.certified.all()
    assert binom.ppf(1e-7, 2000, exact) <= failures <= binom.isf(1e-7, 2000, exact)


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_plenty_of_data_finds_the_support(name):
    counts = np.round(TRUTH.target * 10_000).astype(np.int64)[None, :]
    assert ESTIMATORS[name](ROWS, counts, TRUTH, 1000).success.all()


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_a_tie_is_no_success(name):
    """Rows 1 and 2 are the same, so nothing tells the true support {0, 1} from {0, 2}."""
    rows = ROWS[[0, 1, 1]]
    truth = Instance(Dictionary(rows), [0.5, 0.5, 0])
    counts = np.array([[450, 450, 100]])
    assert not exact_l0(rows, counts, truth, 1000).success.any()
    if name == "constrained-kl":
        weights_tied = largest_weights(rows, np.array([[0, 0, 0]]), truth, 1000)
        assert not weights_tied.success.any()


def test_a_limit_on_nodes_leaves_fits_uncertified():
    plan = Plan((6,), (160,), tokens=32, outcomes=48, truths=1, trials=8, max_nodes=1)
    exact = run_cell(plan, Cell(6, 0, 160))[0]
    assert exact["estimator"] == "exact-l0"
    assert exact["uncertified"] > 0
    assert exact["uncertified_failures"] <= exact["uncertified"]


def test_numbers_do_not_depend_on_the_workers_and_are_in_order():
    one, two = run_all(SMALL, 1), run_all(SMALL, 2)
    assert one.equals(two)
    keys = list(zip(one.s, one.truth, one.n, strict=True))
    assert keys == sorted(keys)
    assert len(one) == 2 * 2 * 2 * len(ESTIMATORS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sparsities": (7,)}, "s must be"),
        ({"samples": (0,)}, "n must be"),
        ({"truths": 0}, "truths"),
        ({"max_nodes": 0}, "max_nodes"),
        ({"samples": ()}, "must each have a value"),
        ({"ratio": 1.0}, "density_ratio"),
    ],
)
def test_plans_out_of_range_are_refused(options, said):
    usual = {"sparsities": (2,), "samples": (8,), "tokens": 6, "outcomes": 8}
    with pytest.raises(ValueError, match=said):
        Plan(**{**usual, **options})
