"""What constrained KL does with a few rows: as compiled, as numpy does it without numba, and as the formula says."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from markov_theory.randomness import named_generator
from markov_theory.solvers import _blas, _descent, _quadratic, _rows, _triangular
from tests.solvers.without_numba import uncompiled

MODULES = (_blas, _descent, _quadratic, _rows, _triangular)
SIZES = [(1, 1), (2, 5), (13, 64), (_rows.FEW, 64), (_rows.FEW + 1, 64), (40, 7), (60, 300)]


def functions(modules):
    return SimpleNamespace(**{name: thing for module in modules for name, thing in vars(module).items()})


PLAIN = functions(uncompiled(*(module.__name__ for module in MODULES)))
BOTH = pytest.mark.parametrize("code", [functions(MODULES), PLAIN], ids=["compiled", "numpy"])


def problem(w, J, share_observed=1.0):
    """Rows to choose from, w of them out of order, frequencies with zeros, and a law that is 1 where they are zero."""
    generator = named_generator(0, "rows", w, J)
    P = generator.dirichlet(np.full(J, 0.5), size=2 * w) * 0.99 + 0.01 / J
    f = generator.dirichlet(np.ones(J)) * (generator.random(J) < share_observed)
    f[0] = 1 - f[1:].sum()
    q = np.where(f > 0, generator.dirichlet(np.ones(2 * w)) @ P, 1.0)
    return P, generator.permutation(2 * w)[:w], f, q


def test_the_second_form_is_not_compiled():
    assert not PLAIN.COMPILED
    assert isinstance(PLAIN.curvature, type(problem))


@BOTH
@pytest.mark.parametrize(("w", "J"), SIZES)
def test_products_by_halves(code, w, J):
    A = named_generator(0, "gram", w, J).standard_normal((w, J))
    largest = (A**2).sum(axis=1).max()
    for product in (code.gram, code.gram_of_few):
        np.testing.assert_allclose(product(A), A @ A.T, rtol=0, atol=J * np.finfo(np.float64).eps * largest)
    low = code.single_gram(A.astype(np.float32))
    assert low.dtype == np.float64
    assert (low == low.T).all()
    np.testing.assert_allclose(low, A @ A.T, rtol=0, atol=(J + 2) * np.finfo(np.float32).eps * largest)


@BOTH
@pytest.mark.parametrize("n", [1, 2, 24, 50])
def test_cholesky_factors_the_leading_block(code, n):
    A = named_generator(0, "cholesky", n).standard_normal((n, n + 3))
    U = np.full((n + 2, n + 2), np.nan)
    U[:n, :n] = np.triu(A @ A.T)
    assert code.cholesky(U, n)
    factor = np.triu(U[:n, :n])
    np.testing.assert_allclose(factor.T @ factor, A @ A.T, atol=1e-12 * n)
    assert np.isnan(U[n:]).all()
    assert np.isnan(U[:, n:]).all()


@BOTH
@pytest.mark.parametrize("H", [np.zeros((1, 1)), np.ones((2, 2)), np.diag([1.0, 0.0, 1.0]), [[1.0, 2.0], [2.0, 1.0]]])
def test_cholesky_says_that_a_matrix_is_singular_or_indefinite(code, H):
    assert not code.cholesky(np.array(H), len(H))


@BOTH
def test_a_factor_of_dependent_rows_is_refused(code):
    rows = named_generator(0, "dependent").dirichlet(np.ones(6), size=4)[[0, 1, 2, 2, 3]]
    H, U, order = rows @ rows.T, np.empty((5, 5)), np.empty(5, dtype=np.int64)
    assert code._factorise(H, U, order, np.ones(5, dtype=np.bool_), code.DEPENDENT) == 0
    assert code._factorise(H, U, order, np.array([True, True, True, False, True]), code.DEPENDENT) == 4


@BOTH
@pytest.mark.parametrize("share_observed", [1.0, 0.9, 0.3])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("w", "J"), SIZES)
def test_curvature_is_that_of_the_likelihood(code, w, J, single, share_observed):
    P, rows, f, q = problem(w, J, share_observed)
    weight = code.weigh(f, q)
    exact = (P[rows] * f / q**2) @ P[rows].T
    precision = np.finfo(np.float32 if single and w > code.FEW else np.float64).eps
    atol = (J + 3) * precision * exact.max()
    H = code.curvature(P, rows, weight, single)
    np.testing.assert_allclose(H, exact, rtol=0, atol=atol)
    few = (w + 1) // 2
    grown = code.extended(P, rows, np.ascontiguousarray(H[:few, :few]), weight, single)
    np.testing.assert_allclose(grown, exact, rtol=0, atol=atol)


@BOTH
def test_outcomes_without_data_do_not_count(code):
    P, rows, f, q = problem(30, 50, 0.4)
    weight = code.weigh(f, q)
    assert (weight[f == 0] == 0).all()
    changed = P.copy()
    changed[:, f == 0] = 1e200
    assert (code.curvature(changed, rows, weight, True) == code.curvature(P, rows, weight, True)).all()


@BOTH
def test_weights_far_from_the_data(code):
    f, q = np.array([0.5, 0.25, 0.25, 0.0]), np.array([0.5, 0.0025 / 4, 0.99, 1.0])
    near, far = code.weigh(f, q), code.weigh_far(f, q)
    np.testing.assert_allclose(near, np.sqrt(f) / q)
    assert far[0] == near[0]  # q = f
    assert far[1] == pytest.approx(near[1] / 100**0.25)  # the quotient is 400, taken for 100
    assert far[2] == pytest.approx(near[2] * (0.99 / 0.25) ** 0.25)
    assert far[3] == 0


@BOTH
def test_mixing_and_pricing(code):
    P, rows, f, q = problem(30, 50, 0.4)
    y, law, ratio, score = named_generator(0, "mixing").random(30), np.empty(50), np.empty(50), np.empty(30)
    y[::3] = 0
    code.mix(P, rows, y, law)
    np.testing.assert_allclose(law, y @ P[rows], rtol=1e-13)
    code.divide(f, q, ratio)
    np.testing.assert_allclose(ratio, f / q, rtol=1e-15)
    code.price(P, rows, ratio, score)
    np.testing.assert_allclose(score, P[rows] @ (f / q), rtol=1e-13)
    columns = np.flatnonzero(f > 0)
    assert (code.take(P, rows, columns) == P[np.ix_(rows, columns)]).all()
    code.average(law, q, 0.25)
    np.testing.assert_allclose(law, 0.75 * (y @ P[rows]) + 0.25 * q, rtol=1e-13)


@BOTH
def test_a_hessian_is_made_anew_when_that_saves_steps(code):
    assert not code.worn(1e-12, 1e-3, 1e-9, 4.0)  # there already
    assert code.worn(1e-3, 1e-3, 1e-9, 4.0)  # no progress with the old one
    assert code.worn(20.0, 50.0, 5.0, 4.0)  # far off, with an aim above 1
    assert not code.worn(1e-7, 1e-3, 1e-9, 4.0)  # one more step with the old one will do


def minimise(code, rows, f, single):
    """Newton's method on all rows; returns the weights and whether single precision did."""
    z = np.full(len(rows), 1 / len(rows))
    q = z @ rows
    score = rows @ (f / q)
    model = code.modelled(rows, np.arange(len(rows)), code.weigh(f, q), single)
    _, single, _ = code.descend(rows, f, q, z, score, model, 0, single, True, np.inf, 1e-10, 100, False)
    return z, single


@BOTH
@pytest.mark.parametrize("near_duplicates", [False, True])
def test_single_precision_gives_way_where_rows_nearly_coincide(code, near_duplicates):
    generator = named_generator(0, "single precision")
    rows = generator.dirichlet(np.full(80, 0.3), size=40) * 0.98 + 0.02 / 80
    if near_duplicates:
        rows[1::2] = rows[::2] * (1 + 1e-6 * generator.standard_normal((20, 80)))
        rows /= rows.sum(axis=1, keepdims=True)
    f = generator.dirichlet(np.full(40, 5.0)) @ rows
    z, single = minimise(code, rows, f, True)
    assert single is not near_duplicates
    assert (z >= 0).all()
    assert z.sum() * (rows @ (f / (z @ rows))).max() - 1 < 1e-9


@BOTH
@pytest.mark.parametrize("kind", ["regular", "duplicates", "rank one", "zero rows"])
def test_the_quadratic_programme_is_solved(code, kind):
    generator = named_generator(0, "quadratic", kind)
    A = generator.random((12, 30))
    if kind == "duplicates":
        A[6:] = A[:6]
    elif kind == "rank one":
        A = np.outer(generator.random(12), A[0])
    elif kind == "zero rows":
        A[::4] = 0
    H, b = A @ A.T, A @ (generator.random(30) - 0.2)
    y = np.full(12, 0.1)
    inside, U, order = np.ones(12, dtype=np.bool_), np.empty((12, 12)), np.empty(12, dtype=np.int64)
    code.nonnegative_quadratic(H, b, inside, y, U, order, 0)
    gradient = H @ y - b
    assert (y >= 0).all()
    assert (gradient >= -1e-10).all()
    assert np.abs(y * gradient).max() < 1e-10
