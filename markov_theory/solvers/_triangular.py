"""Triangular factors, in place: substitution, and the repair of a factor that loses a column.

Each has a plain loop for the compiler and the same in numpy for when there is none.
"""

from __future__ import annotations

import math

import numpy as np

from markov_theory._checks import Array
from markov_theory._compile import COMPILED, compiled

SHORT = 24  # a product of vectors that are not longer is faster as a loop

if COMPILED:

    @compiled
    def subtract_multiple(x: Array, c: float, y: Array) -> None:
        """X −= c·y."""
        for i in range(x.size):
            x[i] -= c * y[i]

    @compiled
    def solve_transposed(U: Array, n: int, x: Array) -> None:
        """Replace x[:n] by the solution of Uᵀ· = x."""
        for k in range(n):
            x[k] /= U[k, k]
            c = x[k]
            for j in range(k + 1, n):
                x[j] -= c * U[k, j]

    @compiled
    def solve_upper(U: Array, n: int, x: Array) -> None:
        """Replace x[:n] by the solution of U· = x."""
        for k in range(n - 1, -1, -1):
            if n - k > SHORT:
                x[k] -= np.dot(U[k, k + 1 : n], x[k + 1 : n])
            else:
                for j in range(k + 1, n):
                    x[k] -= U[k, j] * x[j]
            x[k] /= U[k, k]

    @compiled
    def shift_and_rotate(U: Array, n: int, k: int) -> None:
        """Drop column k of the factor of size n and make it triangular again by rotations of neighbouring rows."""
        for i in range(n):
            for j in range(max(k, i - 1), n - 1):
                U[i, j] = U[i, j + 1]
        for i in range(k, n - 1):
            length = math.hypot(U[i, i], U[i + 1, i])
            c, s = U[i, i] / length, U[i + 1, i] / length
            for j in range(i, n - 1):
                old = U[i, j]
                U[i, j] = c * old + s * U[i + 1, j]
                U[i + 1, j] = c * U[i + 1, j] - s * old

else:

    def subtract_multiple(x: Array, c: float, y: Array) -> None:
        """X −= c·y."""
        x -= c * y

    def solve_transposed(U: Array, n: int, x: Array) -> None:
        """Replace x[:n] by the solution of Uᵀ· = x."""
        for k in range(n):
            x[k] /= U[k, k]
            x[k + 1 : n] -= x[k] * U[k, k + 1 : n]

    def solve_upper(U: Array, n: int, x: Array) -> None:
        """Replace x[:n] by the solution of U· = x."""
        for k in range(n - 1, -1, -1):
            x[k] = (x[k] - U[k, k + 1 : n] @ x[k + 1 : n]) / U[k, k]

    def shift_and_rotate(U: Array, n: int, k: int) -> None:
        """Drop column k of the factor of size n and make it triangular again by rotations of neighbouring rows."""
        U[:n, k : n - 1] = U[:n, k + 1 : n].copy()
        for i in range(k, n - 1):
            length = math.hypot(U[i, i], U[i + 1, i])
            turn = np.array([[U[i, i], U[i + 1, i]], [-U[i + 1, i], U[i, i]]]) / length
            U[i : i + 2, i : n - 1] = turn @ U[i : i + 2, i : n - 1]
