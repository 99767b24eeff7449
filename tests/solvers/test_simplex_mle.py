"""Constrained KL: certificates, a second opinion, degenerate dictionaries, hostile data."""

import warnings

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markov_theory.randomness import named_generator
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers.result import MixtureFit
from markov_theory.solvers.simplex_mle import simplex_mle
from tests.certificates import assert_maximum, assert_weights, jensen_gap, mean_log_likelihood
from tests.solvers.adversarial import adversarial_problem
from tests.solvers.without_numba import uncompiled
from tests.strategies import dictionaries


def random_problem(seed, T, J, N, s, concentration=0.3, n_problems=5):
    generator = named_generator(seed, "simplex", T, J, N, s)
    rows = 0.98 * generator.dirichlet(np.full(J, concentration), size=T) + 0.02 / J
    alpha = generator.dirichlet(np.ones(s))
    law = alpha @ rows[generator.choice(T, s, replace=False)]
    return rows, generator.multinomial(N, law / law.sum(), size=n_problems)


@pytest.mark.parametrize(
    ("T", "J", "N", "s"),
    [(64, 64, 10**3, 4), (128, 256, 10**10, 32), (200, 16, 10**4, 200), (300, 100, 10**5, 8), (2, 2, 1, 1)],
)
def test_gap_is_certified(T, J, N, s):
    rows, counts = random_problem(0, T, J, N, s)
    assert_maximum(rows, counts, simplex_mle(rows, counts))


@given(dictionaries(), st.data())
def test_gap_is_certified_on_degenerate_dictionaries(rows, data):
    counts = np.array(data.draw(st.lists(st.integers(0, 50), min_size=rows.shape[1], max_size=rows.shape[1])))
    counts[rows.max(axis=0) == 0] = 0
    fit = simplex_mle(rows, counts)
    if counts.sum() == 0:
        assert fit.status.tolist() == ["no data"]
        assert_weights(fit.alpha)
    else:
        assert_maximum(rows, counts, fit)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
def test_cvxpy_gives_the_same_maximum(seed, solver):
    rows, counts = random_problem(seed, 20, 12, 500, 3, n_problems=1)
    weights = cvxpy.Variable(20, nonneg=True)
    likelihood = cvxpy.sum(cvxpy.multiply(counts[0] / 500, cvxpy.log(rows.T @ weights)))
    problem = cvxpy.Problem(cvxpy.Maximize(likelihood), [cvxpy.sum(weights) == 1])
    problem.solve(solver=solver, **({"eps": 1e-9, "max_iters": 100_000} if solver == "SCS" else {}))
    ours = mean_log_likelihood(rows, counts, simplex_mle(rows, counts).alpha)[0]
    # A certified maximum is within 1e-9 of the best: the peer may fall short by its own tolerance, never exceed.
    theirs = np.maximum(weights.value, 0)
    reached = mean_log_likelihood(rows, counts, theirs / theirs.sum())[0]
    assert reached - 1e-9 <= ours <= reached + 1e-5


def test_a_batch_equals_its_problems_one_by_one():
    rows, counts = random_problem(1, 50, 40, 2000, 4, n_problems=12)
    batch = simplex_mle(rows, counts)
    for n, alpha in zip(counts, batch.alpha, strict=True):
        alone = simplex_mle(rows, n).alpha
        np.testing.assert_allclose(alpha @ rows, alone[0] @ rows, atol=1e-4)
        assert abs(mean_log_likelihood(rows, n, alpha) - mean_log_likelihood(rows, n, alone))[0] < 2e-9


def test_a_mixed_batch_is_certified_throughout():
    generator = named_generator(0, "mixed batch")
    rows = generator.dirichlet(np.full(30, 0.2), size=60) * 0.99 + 0.01 / 30
    counts = np.array([generator.multinomial(10**k, rows[k]) for k in range(8)])
    assert_maximum(rows, counts, simplex_mle(rows, counts))


def test_disjoint_rows_give_the_frequencies():
    rows = np.kron(np.eye(3), [[0.5, 0.5]])
    fit = simplex_mle(rows, [3, 1, 2, 2, 0, 2])
    np.testing.assert_allclose(fit.alpha, [[0.4, 0.4, 0.2]], atol=1e-12)


def test_order_of_rows_does_not_matter():
    rows, counts = random_problem(2, 30, 20, 1000, 3, n_problems=1)
    order = named_generator(0, "order").permutation(30)
    straight, permuted = simplex_mle(rows, counts, 1e-12), simplex_mle(rows[order], counts, 1e-12)
    np.testing.assert_allclose(straight.alpha[0][order] @ rows[order], permuted.alpha[0] @ rows[order], atol=1e-6)
    reached = mean_log_likelihood(rows, counts, straight.alpha)
    assert abs(reached - mean_log_likelihood(rows[order], counts, permuted.alpha))[0] < 1e-10


def test_one_row_has_weight_one():
    assert simplex_mle([[0.2, 0.8]], [5, 1]).alpha.tolist() == [[1.0]]


def test_an_atom_that_no_datum_supports_gets_no_weight():
    assert simplex_mle([[0.5, 0.5, 0], [0, 0, 1]], [2, 2, 0]).alpha.tolist() == [[1.0, 0.0]]


def test_known_maximum():
    np.testing.assert_allclose(simplex_mle([[0.8, 0.2], [0.3, 0.7]], [7, 3]).alpha, [[0.8, 0.2]], atol=1e-9)


def test_no_data_says_so():
    fit = simplex_mle([[0.8, 0.2], [0.3, 0.7]], [0, 0])
    assert (fit.status.tolist(), fit.gap.tolist(), fit.alpha.tolist()) == (["no data"], [0.0], [[0.5, 0.5]])


def test_an_impossible_outcome_is_refused():
    with pytest.raises(ValueError, match="outcome 1 was observed but no row"):
        simplex_mle([[1.0, 0.0]], [1, 1])


def test_a_missed_tolerance_is_said():
    rows, counts = random_problem(3, 40, 30, 10**4, 4, n_problems=200)
    with pytest.warns(UserWarning, match="did not reach a gap of 1e-300"):
        fit = simplex_mle(rows, counts, tolerance=1e-300)
    assert "inaccurate" in fit.status
    assert (fit.gap[fit.status == "inaccurate"] > 1e-300).all()


@pytest.mark.parametrize("tolerance", [0, -1, float("nan"), float("inf")])
def test_tolerance_must_be_positive(tolerance):
    with pytest.raises(ValueError, match="tolerance must be"):
        simplex_mle([[1.0]], [1], tolerance=tolerance)


def missed_and_unsaid(seeds, solve=simplex_mle):
    """Of the adversarial problems of these seeds: how many, how many above 1e-9, how many of those say otherwise."""
    total, missed, unsaid = 0, 0, 0
    for seed in seeds:
        rows, counts = adversarial_problem(named_generator(seed, "adversarial"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            fit = solve(rows, counts)
        data = counts.sum(axis=1) > 0
        assert_weights(fit.alpha)
        assert (fit.status[~data] == "no data").all()
        gap, said = jensen_gap(rows, counts[data], fit.alpha[data]), fit.status[data] != "optimal"
        above = ~(gap <= 1e-9 + 1e-12)
        total, missed, unsaid = total + data.sum(), missed + above.sum(), unsaid + (above & ~said).sum()
    return total, missed, unsaid


def test_adversarial_problems_are_certified():
    total, missed, unsaid = missed_and_unsaid(range(150))
    assert total > 300
    assert (missed, unsaid) == (0, 0)


@pytest.mark.long
def test_ten_thousand_adversarial_problems_are_certified():
    total, missed, unsaid = missed_and_unsaid(range(1000, 4500))
    assert total >= 10_000
    assert unsaid == 0
    assert missed <= total / 1000


@pytest.mark.parametrize("same_truth", [True, False])
@pytest.mark.parametrize("N", [10**3, 10**7])
def test_batches_reach_a_fine_tolerance(N, same_truth):
    rows, counts = random_problem(5, 128, 96, N, 8, n_problems=16)
    if not same_truth:
        counts = np.vstack([random_problem(seed, 128, 96, N, 3, n_problems=1)[1] for seed in range(16)])
    assert_maximum(rows, counts, simplex_mle(rows, counts, 1e-11), 1e-11)


@pytest.mark.parametrize("N", [10**4, 10**6])
def test_dense_truths_are_certified(N):
    rows, counts = random_problem(6, 256, 256, N, 200, n_problems=1)
    assert_maximum(rows, counts, simplex_mle(rows, counts))


def test_peaked_rows_with_more_outcomes_than_samples():
    generator = named_generator(0, "peaked rows")
    rows = np.exp(4 * generator.standard_normal((300, 400)))
    rows /= rows.sum(axis=1, keepdims=True)
    counts = generator.multinomial(100, rows[:5].mean(axis=0), size=6)
    assert_maximum(rows, counts, simplex_mle(rows, counts))


def test_the_answer_is_the_same_bit_for_bit_when_asked_again():
    rows, counts = random_problem(7, 80, 60, 5000, 6)
    assert (simplex_mle(rows, counts).alpha == simplex_mle(rows, counts).alpha).all()


def test_numpy_alone_gives_the_same_answers():
    (plain,) = uncompiled("markov_theory.solvers._newton")
    assert isinstance(plain.solve_batch, type(random_problem))
    for seed in range(40):
        rows, counts = adversarial_problem(named_generator(seed, "without numba"))
        counts = counts[counts.sum(axis=1) > 0]
        frequency = counts / counts.sum(axis=1, keepdims=True)
        laws = [
            solve(rows, frequency, 1e-9, min(16, len(rows)))[0] @ rows for solve in (solve_batch, plain.solve_batch)
        ]
        np.testing.assert_allclose(*laws, atol=1e-7)


def test_adversarial_problems_are_certified_by_numpy_alone():
    (plain,) = uncompiled("markov_theory.solvers.simplex_mle")
    total, missed, unsaid = missed_and_unsaid(range(150, 250), plain.simplex_mle)
    assert total > 200
    assert (missed, unsaid) == (0, 0)


@pytest.mark.long
def test_ten_thousand_adversarial_problems_are_certified_by_numpy_alone():
    (plain,) = uncompiled("markov_theory.solvers.simplex_mle")
    total, missed, unsaid = missed_and_unsaid(range(5000, 8500), plain.simplex_mle)
    assert total >= 10_000
    assert unsaid == 0
    assert missed <= total / 1000


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, np.float32])
def test_arrays_and_lists_get_the_same_answer(dtype):
    rows, counts = random_problem(8, 40, 30, 1000, 4)
    plain = simplex_mle(rows, counts.astype(dtype))
    for alike in (simplex_mle(rows.tolist(), counts.tolist()), simplex_mle(np.asfortranarray(rows), counts)):
        np.testing.assert_allclose(plain.alpha @ rows, alike.alpha @ rows, atol=1e-6)
        assert (plain.status == alike.status).all()
    np.testing.assert_allclose(
        simplex_mle(rows, counts[0].astype(dtype)).alpha @ rows, plain.alpha[:1] @ rows, atol=1e-6
    )


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ([[0.5, 0.5]], [1, -1]),
        ([[0.5, 0.5]], [0.5, 1]),
        ([[0.5, 0.5]], [np.nan, 1]),
        ([[0.5, 0.5]], [np.inf, 1]),
        ([[0.5, 0.5]], [2.0**53, 2.0**53]),
        ([[0.5, 0.5]], [1, 1, 1]),
        ([[0.5, 0.5]], [[[1, 1]]]),
        ([[0.5, 0.6]], [1, 1]),
        ([[1.5, -0.5]], [1, 1]),
        ([[np.nan, 0.5]], [1, 1]),
        ([[1.0, 0.0]], [1, 1]),
    ],
)
def test_arrays_and_lists_are_refused_in_the_same_words(rows, counts):
    with pytest.raises(ValueError, match=".") as plain:
        simplex_mle(np.array(rows), np.array(counts, dtype=float))
    with pytest.raises(ValueError, match=".") as listed:
        simplex_mle(rows, counts)
    assert str(plain.value) == str(listed.value)


def test_rows_that_sum_to_one_roughly_are_normalised():
    rows, counts = random_problem(9, 20, 30, 1000, 4)
    rough = rows.astype(np.float32).astype(np.float64)
    assert_maximum(rough / rough.sum(axis=1, keepdims=True), counts, simplex_mle(rough, counts))


def test_a_batch_with_and_without_data():
    rows, counts = random_problem(10, 20, 30, 1000, 4)
    counts[1] = 0
    fit = simplex_mle(rows, counts)
    assert fit.status.tolist() == ["optimal", "no data", "optimal", "optimal", "optimal"]
    assert_maximum(
        rows, np.delete(counts, 1, axis=0), MixtureFit(*(np.delete(x, 1, axis=0) for x in vars(fit).values()))
    )


def test_no_problem_has_no_answer():
    fit = simplex_mle(np.eye(3), np.empty((0, 3)))
    assert (fit.alpha.shape, fit.gap.shape, fit.status.shape) == ((0, 3), (0,), (0,))
