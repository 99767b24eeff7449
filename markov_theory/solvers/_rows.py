"""What is done with a few rows of a dictionary: mixing and pricing them, and the Hessian of a likelihood on them.

Where loops are fast only when compiled, there is a second form in whole-array operations for when they are not.
"""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory._compile import COMPILED, compiled, reordered
from markov_theory.solvers._blas import Matrix, gram, single_gram

DENSE = 0.8  # from this share on all columns are taken
OUT_OF_REACH = 100.0
FEW = 24  # rows whose products are done as fast in double precision

if COMPILED:

    @compiled
    def take(P: Array, rows: IntArray, columns: IntArray) -> Array:
        """The given rows on the given columns."""
        A = np.empty((rows.size, columns.size))
        for i in range(rows.size):
            v = rows[i]
            for k in range(columns.size):
                A[i, k] = P[v, columns[k]]
        return A

    @compiled
    def mix(P: Array, rows: IntArray, y: Array, law: Array) -> None:
        """Law = Σ_i y_i P[rows_i]."""
        law[:] = 0.0
        for i in range(rows.size):
            v, share = rows[i], y[i]
            if share > 0.0:
                for j in range(law.size):
                    law[j] += share * P[v, j]

    @reordered
    def price(P: Array, rows: IntArray, ratio: Array, score: Array) -> None:
        """Score_i = Σ_j ratio_j P[rows_i, j]."""
        for i in range(rows.size):
            v, total = rows[i], 0.0
            for j in range(ratio.size):
                total += P[v, j] * ratio[j]
            score[i] = total

    @reordered
    def gram_of_few(A: Array) -> Array:
        """A Aᵀ, for so few rows that calling BLAS takes longer."""
        H = np.empty((A.shape[0], A.shape[0]))
        for i in range(A.shape[0]):
            for k in range(i + 1):
                total = 0.0
                for j in range(A.shape[1]):
                    total += A[i, j] * A[k, j]
                H[i, k] = H[k, i] = total
        return H

    @compiled
    def divide(f: Array, q: Array, ratio: Array) -> None:
        """Ratio = f/q."""
        for j in range(f.size):
            ratio[j] = f[j] / q[j]

    @compiled
    def average(x: Array, y: Array, share: float) -> None:
        """Replace x by (1 − share)·x + share·y."""
        for j in range(x.size):
            x[j] = (1.0 - share) * x[j] + share * y[j]

    @compiled
    def _scale(P: Array, rows: IntArray, weight: Array, A: Matrix) -> None:
        """A = the given rows, columns times `weight`; those of weight zero are left out if A has no room for them."""
        if A.shape[1] == weight.size:
            for i in range(rows.size):
                v = rows[i]
                for j in range(weight.size):
                    A[i, j] = P[v, j] * weight[j]
        else:
            columns = np.flatnonzero(weight > 0.0)
            factor = weight[columns]
            for i in range(rows.size):
                v = rows[i]
                for k in range(columns.size):
                    A[i, k] = P[v, columns[k]] * factor[k]

else:

    def take(P: Array, rows: IntArray, columns: IntArray) -> Array:
        """The given rows on the given columns."""
        return P[rows[:, None], columns]

    def mix(P: Array, rows: IntArray, y: Array, law: Array) -> None:
        """Law = Σ_i y_i P[rows_i]."""
        law[:] = y @ P[rows]

    def price(P: Array, rows: IntArray, ratio: Array, score: Array) -> None:
        """Score_i = Σ_j ratio_j P[rows_i, j]."""
        score[:] = P[rows] @ ratio

    def gram_of_few(A: Array) -> Array:
        """A Aᵀ."""
        return A @ A.T

    def divide(f: Array, q: Array, ratio: Array) -> None:
        """Ratio = f/q."""
        np.divide(f, q, out=ratio)

    def average(x: Array, y: Array, share: float) -> None:
        """Replace x by (1 − share)·x + share·y."""
        x[:] = (1.0 - share) * x + share * y

    def _scale(P: Array, rows: IntArray, weight: Array, A: Matrix) -> None:
        """A = the given rows, columns times `weight`; those of weight zero are left out if A has no room for them."""
        columns = np.arange(weight.size) if A.shape[1] == weight.size else np.flatnonzero(weight > 0.0)
        A[:] = P[rows[:, None], columns] * weight[columns]


@compiled
def weigh(f: Array, q: Array) -> Array:
    """√f/q, whose square is the curvature of −f log q."""
    weight = np.empty(f.size)
    for j in range(f.size):
        weight[j] = math.sqrt(f[j]) / q[j]
    return weight


@compiled
def weigh_far(f: Array, q: Array) -> Array:
    """√f/q over (f/q)^¼, for q far from f: halfway to 1/√q, the weight whose quadratic model is least at f itself.

    The model of weight √f/q is least at 2q where q is far below f, and below zero where it is above 2f. The quotient
    f/q is taken for 1/100 or 100 where it is beyond: there f is out of reach.
    """
    weight = np.empty(f.size)
    for j in range(f.size):
        quotient = min(max(f[j] / q[j], 1.0 / OUT_OF_REACH), OUT_OF_REACH)
        weight[j] = math.sqrt(f[j]) / (q[j] * math.sqrt(math.sqrt(quotient)))
    return weight


@compiled
def _n_columns(weight: Array) -> int:
    """How many columns have positive weight; all if most have."""
    n = 0
    for j in range(weight.size):
        n += weight[j] > 0.0
    return n if n < DENSE * weight.size else weight.size


@compiled
def curvature(P: Array, rows: IntArray, weight: Array, single: bool) -> Array:
    """Σ_j weight_j² P_ij P_kj for all pairs of the given rows, shape (w, w)."""
    shape = (rows.size, _n_columns(weight))
    if single and rows.size > FEW:
        low = np.empty(shape, dtype=np.float32)
        _scale(P, rows, weight, low)
        return single_gram(low)
    A = np.empty(shape)
    _scale(P, rows, weight, A)
    return gram(A) if rows.size > FEW else gram_of_few(A)


@compiled
def extended(P: Array, rows: IntArray, H: Array, weight: Array, single: bool) -> Array:
    """The curvature of the given rows, where H is that of the first few."""
    w, shape = H.shape[0], (rows.size, _n_columns(weight))
    larger = np.empty((rows.size, rows.size))
    larger[:w, :w] = H
    if single and rows.size > FEW:
        low = np.empty(shape, dtype=np.float32)
        _scale(P, rows, weight, low)
        larger[w:] = np.dot(low[w:], low.T)
    else:
        A = np.empty(shape)
        _scale(P, rows, weight, A)
        larger[w:] = np.dot(A[w:], A.T)
    larger[:w, w:] = larger[w:, :w].T
    return larger
