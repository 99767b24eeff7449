"""Constrained KL in a ball, a box or on a support: certificates anew, cvxpy's answer, limits that must coincide."""

import cvxpy
import numpy as np
import pytest
from scipy.optimize import linprog

from markov_theory.randomness import named_generator
from markov_theory.solvers.ball_mle import ball_mle, box_mle, support_mle
from markov_theory.solvers.simplex_mle import simplex_mle
from tests.certificates import assert_maximum, assert_weights, mean_log_likelihood
from tests.solvers.adversarial import adversarial_problem

CONE_SOLVERS = [name for name in ("CLARABEL", "SCS", "ECOS", "MOSEK", "COPT") if name in cvxpy.installed_solvers()]
OPTIONS = {"SCS": {"eps": 1e-9, "max_iters": 200_000}}
COINS = [[0.8, 0.2], [0.3, 0.7]]


def planted(seed, T=20, J=15, N=2000):
    generator = named_generator(seed, "constrained", T, J)
    rows = 0.95 * generator.dirichlet(np.full(J, 0.3), size=T) + 0.05 / J
    return rows, generator.multinomial(N, generator.dirichlet(np.full(T, 0.3)) @ rows)


def bounds(generator, T):
    lower = generator.random(T) * (generator.random(T) < 0.5)
    lower *= 0.9 * generator.random() / max(lower.sum(), 1e-9)
    upper = np.minimum(1, lower + generator.random(T) * generator.choice([0.05, 0.3, 1]))
    return lower, upper if upper.sum() > 1 else np.ones(T)


def second_opinion(rows, counts, solver, constrain):
    weights = cvxpy.Variable(rows.shape[0], nonneg=True)
    likelihood = cvxpy.sum(cvxpy.multiply(counts / counts.sum(), cvxpy.log(rows.T @ weights)))
    problem = cvxpy.Problem(cvxpy.Maximize(likelihood), [cvxpy.sum(weights) == 1, *constrain(weights)])
    return problem.solve(solver=solver, **OPTIONS.get(solver, {}))


def scores(rows, counts, alpha):
    law, frequency = alpha @ rows, counts / counts.sum()
    return rows @ np.divide(frequency, law, out=np.zeros_like(law), where=frequency > 0)


def ball_gap(rows, counts, alpha, radius):
    """The least certificate over ρ, a linear programme in two unknowns, or that of the sphere without signs."""
    score = scores(rows, counts, alpha)
    offset = alpha - 1 / alpha.size
    reach = np.sqrt(max(radius**2 - 1 / alpha.size, 0))
    around = score.mean() - 1 + reach * np.linalg.norm(score - score.mean())
    length = max(np.linalg.norm(offset), 1e-300)
    constraints = np.column_stack([-offset / length, -np.ones(alpha.size)])  # score − ρ·offset ≤ top
    best = linprog([reach, 1], A_ub=constraints, b_ub=-score, bounds=[(0, None), (None, None)])
    return min(around, best.fun - 1)


def box_gap(rows, counts, alpha, lower, upper):
    score = scores(rows, counts, alpha)
    best = linprog(-score, A_eq=np.ones((1, alpha.size)), b_eq=[1], bounds=np.column_stack([lower, upper]))
    return -best.fun - score @ alpha


@pytest.mark.parametrize("solver", CONE_SOLVERS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", [0.23, 0.3, 0.5])
def test_ball_agrees_with_cvxpy(seed, radius, solver):
    rows, counts = planted(seed)
    fit = ball_mle(rows, counts, radius)
    theirs = second_opinion(rows, counts, solver, lambda w: [cvxpy.norm(w, 2) <= radius])
    assert mean_log_likelihood(rows, counts, fit.alpha)[0] == pytest.approx(theirs, abs=2e-6)


@pytest.mark.parametrize("solver", CONE_SOLVERS)
@pytest.mark.parametrize("seed", range(5))
def test_box_agrees_with_cvxpy(seed, solver):
    rows, counts = planted(seed)
    lower, upper = bounds(named_generator(seed, "bounds"), 20)
    fit = box_mle(rows, counts, lower, upper)
    theirs = second_opinion(rows, counts, solver, lambda w: [w >= lower, w <= upper])
    assert mean_log_likelihood(rows, counts, fit.alpha)[0] == pytest.approx(theirs, abs=2e-6)


@pytest.mark.parametrize("seed", range(60))
def test_adversarial_problems_are_certified(seed):
    generator = named_generator(seed, "constrained adversarial")
    rows, counts = adversarial_problem(generator, most_rows=40, most_outcomes=30, most_problems=1)
    if counts.sum() == 0:
        return
    T = rows.shape[0]
    radius = np.sqrt(1 / T + generator.random() ** 3 * (1 - 1 / T))
    fit = ball_mle(rows, counts, radius)
    assert_weights(fit.alpha)
    assert fit.status.tolist() == ["optimal"]
    assert np.linalg.norm(fit.alpha) <= radius * (1 + 1e-12)
    assert ball_gap(rows, counts[0], fit.alpha[0], radius) <= 1e-7
    lower, upper = bounds(generator, T)
    upper[(rows[:, counts[0] > 0] > 0).any(axis=1) & (upper == 0)] = 1e-3
    fit = box_mle(rows, counts, lower, upper)
    assert_weights(fit.alpha)
    assert ((fit.alpha >= lower) & (fit.alpha <= upper)).all()
    assert fit.status.tolist() == ["optimal"]
    assert box_gap(rows, counts[0], fit.alpha[0], lower, upper) <= 1e-8


def test_wide_constraints_change_nothing():
    rows, counts = planted(0)
    free = simplex_mle(rows, counts)
    reached = mean_log_likelihood(rows, counts, free.alpha)
    for fit in (ball_mle(rows, counts, 1), box_mle(rows, counts, 0, 1), support_mle(rows, counts, np.arange(20))):
        assert mean_log_likelihood(rows, counts, fit.alpha) == pytest.approx(reached, abs=2e-9)


def test_the_smallest_ball_holds_uniform_weights_alone():
    rows, counts = planted(1)
    fit = ball_mle(rows, counts, 1 / np.sqrt(20))
    np.testing.assert_allclose(fit.alpha, 1 / 20, atol=1e-9)
    assert fit.status.tolist() == ["optimal"]


def test_a_box_of_one_point_is_that_point():
    rows, counts = planted(2)
    point = named_generator(0, "point").dirichlet(np.ones(20))
    fit = box_mle(rows, counts, point, point)
    np.testing.assert_allclose(fit.alpha[0], point, atol=1e-12)
    assert fit.status.tolist() == ["optimal"]


def test_known_maxima():
    np.testing.assert_allclose(box_mle(COINS, [7, 3], 0, 0.6).alpha, [[0.6, 0.4]], atol=1e-9)
    assert box_mle(COINS, [7, 3], 0, 0.6).alpha[0, 0] == 0.6
    edge = (1 + np.sqrt(2 * 0.75**2 - 1)) / 2
    np.testing.assert_allclose(ball_mle(COINS, [7, 3], 0.75).alpha, [[edge, 1 - edge]], atol=1e-8)


def test_weights_on_a_support_are_those_of_its_rows_alone():
    rows, counts = planted(3)
    fit = support_mle(rows, counts, [4, 1, 17])
    assert set(np.flatnonzero(fit.alpha[0])) <= {1, 4, 17}
    assert_maximum(rows[[1, 4, 17]], counts, type(fit)(fit.alpha[:, [1, 4, 17]], fit.gap, fit.status))


def test_batches_and_problems_without_data():
    counts = np.array([[7, 3], [0, 0]])
    for fit in (ball_mle(COINS, counts, 0.9), box_mle(COINS, counts, 0.3, 0.9), support_mle(COINS, counts, [1])):
        assert fit.status.tolist() == ["optimal", "no data"]
        assert_weights(fit.alpha)
    assert box_mle(COINS, counts, [0.6, 0], 1).alpha[1, 0] >= 0.6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ball_mle(COINS, [1, 1], 0.7), r"radius must be at least 1/√T = 0.70710678118\d \(T = 2\), got 0.7"),
        (lambda: box_mle(COINS, [1, 1], 0.6, 1), r"Σ lower <= 1 <= Σ upper, got Σ lower = 1.2"),
        (lambda: box_mle(COINS, [1, 1], 0, 0.4), r"Σ upper = 0.8"),
        (lambda: box_mle(COINS, [1, 1], 0.5, 0.4), r"0 <= lower <= upper <= 1"),
        (lambda: support_mle(COINS, [1, 1], []), r"at least one"),
        (lambda: support_mle(COINS, [1, 1], [0, 0]), r"distinct"),
        (lambda: support_mle(COINS, [1, 1], [2]), r"0 … 1"),
        (lambda: support_mle([[1, 0], [0, 1]], [1, 1], [0]), r"outcome 1 was observed but no row"),
        (lambda: box_mle([[1, 0], [0, 1]], [1, 1], [1, 0], [1, 0]), r"outcome 1 was observed but no row"),
    ],
)
def test_infeasible_constraints_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
