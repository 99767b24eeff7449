"""Routines of BLAS and LAPACK that compiled code cannot reach through numpy: A Aᵀ by halves, and Cholesky's factor.

scipy carries them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from markov_theory._checks import Array
from markov_theory._compile import COMPILED, compiled, routine

Matrix = NDArray[np.floating]  # of single or double precision

if COMPILED:
    _dsyrk = routine("cython_blas", "dsyrk", "cciiddiddi")
    _ssyrk = routine("cython_blas", "ssyrk", "cciississi")
    _dpotrf = routine("cython_lapack", "dpotrf", "cidii")

    @compiled
    def _mirror(half: Matrix, H: Array) -> None:
        """H = the symmetric matrix with this upper half."""
        for i in range(H.shape[0]):
            for j in range(i, H.shape[0]):
                H[i, j] = H[j, i] = half[i, j]

    @compiled
    def gram(A: Array) -> Array:
        """A Aᵀ."""
        H, one, none = np.empty((A.shape[0], A.shape[0])), np.ones(1), np.zeros(1)
        letters, shape = np.array([76, 84], dtype=np.uint8), np.array(A.shape, dtype=np.int32)  # L, T
        w, J, LT = shape.ctypes, shape[1:].ctypes, letters.ctypes
        _dsyrk(LT, letters[1:].ctypes, w, J, one.ctypes, A.ctypes, J, none.ctypes, H.ctypes, w)
        _mirror(H, H)
        return H

    @compiled
    def single_gram(A: NDArray[np.float32]) -> Array:
        """A Aᵀ, computed in single precision."""
        one, none = np.ones(1, dtype=np.float32), np.zeros(1, dtype=np.float32)
        half, H = np.empty((A.shape[0], A.shape[0]), dtype=np.float32), np.empty((A.shape[0], A.shape[0]))
        letters, shape = np.array([76, 84], dtype=np.uint8), np.array(A.shape, dtype=np.int32)  # L, T
        w, J, LT = shape.ctypes, shape[1:].ctypes, letters.ctypes
        _ssyrk(LT, letters[1:].ctypes, w, J, one.ctypes, A.ctypes, J, none.ctypes, half.ctypes, w)
        _mirror(half, H)
        return H

    @compiled
    def cholesky(U: Array, n: int) -> bool:
        """Replace the upper half of the leading n × n block by its factor, UᵀU; return whether it is positive."""
        letter, sizes = np.array([76], dtype=np.uint8), np.array([n, U.shape[1], 0], dtype=np.int32)  # L
        _dpotrf(letter.ctypes, sizes.ctypes, U.ctypes, sizes[1:].ctypes, sizes[2:].ctypes)
        return sizes[2] == 0

else:
    from scipy.linalg.lapack import dpotrf

    def gram(A: Array) -> Array:
        """A Aᵀ."""
        return A @ A.T

    def single_gram(A: NDArray[np.float32]) -> Array:
        """A Aᵀ, computed in single precision."""
        return np.asarray(A @ A.T, dtype=np.float64)

    def cholesky(U: Array, n: int) -> bool:
        """Replace the upper half of the leading n × n block by its factor, UᵀU; return whether it is positive."""
        factor, failure = dpotrf(U[:n, :n].T, lower=1, clean=0)
        U[:n, :n] = factor.T
        return failure == 0
