"""Real atoms, and what a pursuit computes of them once: norms, a copy in single precision, products of all pairs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markov_theory._checks import Array
from markov_theory.solvers._screen import Singles, normalise

UNIT_ROUNDOFF = float(np.finfo(np.float32).eps) / 2
BLOCK = 4096
SMALL = 1e-100  # squares of smaller numbers, and of larger ones than its inverse, need care
PAIRS = 2**26  # products of pairs of atoms are kept up to 8,192 atoms: 256 MiB


class PreparedAtoms:
    """Atoms (T, d), in single or double precision as given, for any number of pursuits: see `prepare_atoms`.

    Attributes
    ----------
    values : ndarray, shape (T, d)
        The atoms: the array that was given, not a copy, where its type and order allow. It must not change.
    norms : ndarray, shape (T,)
        Their norms; not a number where an entry is not finite.
    usable : ndarray of bool, shape (T,)
        Whether an atom is finite and not zero.
    single : ndarray, shape (T, d)
        Atoms of norm one in single precision; zero where not usable.
    halves : ndarray, shape (2, T)
        Norms of the first and of the second half of the coordinates of these, rounded up.
    """

    def __init__(self, values: NDArray[Any]) -> None:
        T, d = values.shape
        self.values, self.norms = values, np.zeros(T)
        self.single, self.halves = np.zeros((T, d), dtype=np.float32), np.zeros((2, T), dtype=np.float32)
        normalise(values, self.norms, self.single, self.halves)
        self.usable = (self.norms > SMALL) & (self.norms < 1 / SMALL)
        for v in np.flatnonzero(~self.usable).tolist():
            self._normalise(v)
        self.halves *= np.float32(1 + self.error)

    def _normalise(self, v: int) -> None:
        """Do so for one atom whose squares may not be normal numbers."""
        row = self.values[v].astype(float)
        norm = np.abs(row).max()
        if norm > 0 and np.isfinite(norm):
            norm *= np.linalg.norm(row / norm)
        self.norms[v], self.usable[v] = norm, np.isfinite(norm) and norm >= np.finfo(float).tiny
        self.single[v] = row / norm if self.usable[v] else 0.0
        self.halves[:, v] = [np.linalg.norm(self.single[v, columns]) for columns in self.columns]

    def raw(self, index: Any) -> Array:
        """Atoms `index` in double precision; zeros for those that are not usable."""
        rows = self.values[index].astype(float)
        rows[~self.usable[index]] = 0.0
        return rows

    def unit(self, index: Any) -> Array:
        """The same, of norm one."""
        return self.raw(index) / np.where(self.usable[index], self.norms[index], 1.0)[..., None]

    @property
    def error(self) -> float:
        """Bound on the rounding error of a product of two vectors of norm one in single precision."""
        return (self.values.shape[1] + 4) * UNIT_ROUNDOFF * 1.01

    @property
    def columns(self) -> tuple[slice, slice]:
        """The first and the second half of the coordinates."""
        d = self.values.shape[1]
        return slice(0, d // 2), slice(d // 2, d)

    @property
    def few(self) -> bool:
        """Whether the products of all pairs may be kept."""
        return len(self.values) ** 2 <= PAIRS

    def pairs_pay(self, n_products: int) -> bool:
        """Whether the products of all pairs are there, or cost less than so many products with all atoms."""
        return self.few and ("gram" in vars(self) or n_products >= len(self.values))

    @cached_property
    def gram(self) -> Singles:
        """Products of all pairs of atoms of norm one, (T, T)."""
        return self.single @ self.single.T


def prepare_atoms(atoms: ArrayLike, *, gram: bool = False) -> PreparedAtoms:
    """Prepare atoms for many calls of `orthogonal_matching_pursuit`, which accepts them in place of the array.

    Answers are the same. What a call computes of the atoms alone is kept for the next: norms, and a copy in single
    precision.

    Parameters
    ----------
    atoms : array_like, shape (T, d)
        Any real vectors. An array of single or double precision in C order is not copied, and must not change.
    gram : bool
        Compute the products of all pairs of atoms as well, 4T² bytes, with which real weights of further targets
        come several times faster: at most 8,192 atoms. A pursuit of so many targets that this pays does it anyway.

    Returns
    -------
    PreparedAtoms

    Raises
    ------
    ValueError, TypeError
        On a wrong shape, no usable atom, or too many atoms for `gram`.

    Examples
    --------
    >>> prepare_atoms([[3, 4], [0, 0]]).norms.tolist()
    [5.0, 0.0]
    """
    values = as_real(atoms, "atoms")
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"atoms must be a (T, d) matrix with T, d >= 1, got shape {values.shape}")
    prepared = PreparedAtoms(values)
    if not prepared.usable.any():
        raise ValueError("atoms must hold at least one that is finite and not zero")
    if gram and not prepared.few:
        raise ValueError(f"gram must be False for more than {int(PAIRS**0.5)} atoms, got {len(values)}")
    if gram:
        _ = prepared.gram
    return prepared


def as_real(values: ArrayLike, name: str) -> NDArray[Any]:
    """Return an array of single or double precision in C order, without a copy where it is one."""
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be an array of real numbers, got {array.dtype}")
    return np.ascontiguousarray(array, dtype=array.dtype if array.dtype in (np.float32, np.float64) else float)
