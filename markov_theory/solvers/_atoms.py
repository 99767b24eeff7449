"""Which atom to take next: the best score over a large real dictionary, exact although screened in single precision.

The product with all atoms is made in single precision. Atoms whose score lies within its rounding error of the best
are scored again in double precision, one by one in a fixed order, so that the choice depends neither on the other
targets of a batch nor on the atoms' positions. Scores equal to 1e-14 tie, and the lowest index wins.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markov_theory._checks import Array, IntArray

TIE = 1e-14  # scores are cosines, or distances relative to the norms
ALIKE = 1e-9  # unit atoms closer than this are one direction; a score below it is zero
ROUNDING = 1e-12  # of products in double precision, generously
COINCIDENT = 1e-6  # a vertex so close to the fit (relative) gives no direction
GROUPS = 64
BLOCK = 4096
FEW = 256  # candidates of one target that are scored one by one
UNIT_ROUNDOFF = float(np.finfo(np.float32).eps) / 2


class Choice(NamedTuple):
    """The next atom of each of A targets: its index and its score, shape (A,), and the class of atoms like it."""

    atoms: IntArray
    scores: Array
    classes: list[tuple[int, ...]]


class Atoms:
    """Real atoms (T, d), in single or double precision as given, with their norms, and which of them are usable."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = values
        self.norms = np.concatenate([_norms(values[i : i + BLOCK]) for i in range(0, len(values), BLOCK)])
        self.usable = np.isfinite(self.norms) & (self.norms >= np.finfo(float).tiny)

    def raw(self, index: Any) -> Array:
        """Atoms `index` in double precision; zeros for those that are not usable."""
        rows = self.values[index].astype(float)
        rows[~self.usable[index]] = 0.0
        return rows

    def unit(self, index: Any) -> Array:
        """The same, of norm one."""
        return self.raw(index) / np.where(self.usable[index], self.norms[index], 1.0)[..., None]


class Directions:
    """Scores |cos(atom, residual)|, or without the modulus where weights must not be negative."""

    def __init__(self, atoms: Atoms, signed: bool) -> None:
        self.atoms, self.signed = atoms, signed
        T, d = atoms.values.shape
        self.screen = np.zeros((-(-T // GROUPS) * GROUPS, d), dtype=np.float32)
        inverse = 1 / np.where(atoms.usable, atoms.norms, 1.0)[:, None]
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for i in range(0, T, BLOCK):  # the cast of a small block costs no memory to speak of
                rows = slice(i, min(i + BLOCK, T))
                np.multiply(atoms.values[rows], inverse[rows], out=self.screen[rows], casting="same_kind")
        self.screen[:T][~atoms.usable] = 0.0
        self.error = (d + 4) * UNIT_ROUNDOFF * 1.01

    def candidates(self, residuals: Array, _: Array) -> tuple[IntArray, IntArray]:
        """Pairs (target, atom), by target, among which are the best atom of each target and all atoms like it."""
        table = (residuals.astype(np.float32) @ self.screen.T).reshape(len(residuals), GROUPS, -1)
        tops = table.max(axis=1)
        if self.signed:
            np.maximum(tops, -table.min(axis=1), out=tops)
        cut = tops.max(axis=1) - np.float32(2 * self.error + ALIKE)
        who, group = np.nonzero(tops >= cut[:, None])
        near = table[who, :, group]
        pair, member = np.nonzero((np.abs(near) if self.signed else near) >= cut[who][:, None])
        who, what = who[pair], member * tops.shape[1] + group[pair]
        usable = what < len(self.atoms.values)
        usable[usable] = self.atoms.usable[what[usable]]
        found = np.bincount(who[usable], minlength=len(residuals))
        odd = np.flatnonzero((found == 0) | (found > FEW))
        usable &= ~np.isin(who, odd)
        who, what = who[usable], what[usable]
        for i in odd:
            few = self._nearest(residuals[i])
            who, what = np.append(who, np.full(few.size, i)), np.append(what, few)
        return who, what

    def _nearest(self, residual: Array) -> IntArray:
        """The same for one target, in double precision; of equal scores near zero one is enough."""
        T = len(self.atoms.values)
        cosines = np.concatenate([self.atoms.unit(slice(i, i + BLOCK)) @ residual for i in range(0, T, BLOCK)])
        scores = np.where(self.atoms.usable, np.abs(cosines) if self.signed else cosines, -np.inf)
        return (
            np.flatnonzero(scores >= scores.max() - 2 * ALIKE) if scores.max() > ALIKE else np.array([scores.argmax()])
        )

    def score(self, what: IntArray, residuals: Array, _: Array) -> Array:
        """Scores of P pairs, in double precision."""
        cosines = np.einsum("pd,pd->p", self.atoms.unit(what), residuals)
        return np.abs(cosines) if self.signed else cosines

    def alike(self, atom: int, others: IntArray) -> NDArray[np.bool_]:
        """Which of the others are multiples of the atom: positive ones where weights must not be negative."""
        u, v = self.atoms.unit(atom), self.atoms.unit(others)
        sign = np.sign(v @ u)[:, None] if self.signed else 1.0
        return np.linalg.norm(v - sign * u, axis=1) <= ALIKE


class Nearest:
    """Scores of a hull's first atom: minus the logarithm of its distance to the target."""

    def __init__(self, atoms: Atoms) -> None:
        self.atoms = atoms
        self.size = np.where(atoms.usable, atoms.norms, 0.0) ** 2

    def candidates(self, targets: Array, _: Array) -> tuple[IntArray, IntArray]:
        """Pairs (target, atom): see `Directions`."""
        size = self.size + np.einsum("ad,ad->a", targets, targets)[:, None]
        square = size - 2 * products(self.atoms, targets)
        square[:, ~self.atoms.usable] = np.inf
        most = (square + ROUNDING * size).min(axis=1, keepdims=True)
        who, what = np.nonzero(square - ROUNDING * size <= most * (1 + 2 * ALIKE))
        return who, what

    def score(self, what: IntArray, targets: Array, _: Array) -> Array:
        """Scores of P pairs."""
        return -np.log(np.maximum(np.linalg.norm(self.atoms.raw(what) - targets, axis=1), np.finfo(float).tiny))

    def alike(self, atom: int, others: IntArray) -> NDArray[np.bool_]:
        """Which of the others equal the atom."""
        return np.linalg.norm(self.atoms.raw(others) - self.atoms.raw(atom), axis=1) <= ALIKE * self.atoms.norms[atom]


class Vertices(Nearest):
    """Scores cos(atom − fit, residual) of further vertices: a fit moves *towards* a vertex; atoms are not scaled."""

    def candidates(self, residuals: Array, fits: Array) -> tuple[IntArray, IntArray]:
        """Pairs (target, atom): see `Directions`."""
        both = products(self.atoms, np.concatenate([residuals, fits]))
        along, across = both[: len(fits)], both[len(fits) :]
        fit_size = np.einsum("ad,ad->a", fits, fits)[:, None]
        square = self.size - 2 * across + fit_size
        far = (square > COINCIDENT**2 * (self.size + fit_size)) & self.atoms.usable
        progress = along - np.einsum("ad,ad->a", residuals, fits)[:, None]
        scores = np.where(far, progress / np.sqrt(np.where(far, square, 1.0)), -1.0)
        who, what = np.nonzero(scores >= scores.max(axis=1, keepdims=True) - COINCIDENT)
        return who, what

    def score(self, what: IntArray, residuals: Array, fits: Array) -> Array:
        """Scores of P pairs."""
        apart = self.atoms.raw(what) - fits
        length = np.linalg.norm(apart, axis=1)
        usable = self.atoms.usable[what] & (length > 0)
        return np.where(usable, np.einsum("pd,pd->p", apart, residuals) / np.where(usable, length, 1.0), -1.0)


Scorer = Directions | Nearest


def choose(scorer: Scorer, residuals: Array, fits: Array) -> Choice:
    """Choose the next atom of each target, given residuals of norm one (targets, before there is a fit) and fits."""
    who, what = scorer.candidates(residuals, fits)
    scores = np.concatenate(
        [
            scorer.score(what[i : i + BLOCK], residuals[who[i : i + BLOCK]], fits[who[i : i + BLOCK]])
            for i in range(0, len(who), BLOCK)
        ]
    )
    order = np.argsort(who, kind="stable")
    ends = np.searchsorted(who[order], np.arange(len(residuals) + 1))
    first = order[ends[:-1]]
    atoms, tops = what[first], scores[first]
    classes: list[tuple[int, ...]] = [(v,) for v in atoms.tolist()]
    for i in np.flatnonzero(np.diff(ends) > 1).tolist():
        own = order[ends[i] : ends[i + 1]]
        near, values = what[own], scores[own]
        tops[i] = values.max()
        atoms[i] = near[values >= tops[i] - TIE].min()
        others = near[(values >= tops[i] - ALIKE) & (near != atoms[i])]
        like = others[scorer.alike(int(atoms[i]), others)] if others.size else others
        classes[i] = tuple(sorted([int(atoms[i]), *like.tolist()]))
    return Choice(atoms, tops, classes)


def products(atoms: Atoms, vectors: Array) -> Array:
    """Inner products with all atoms, shape (A, T), in double precision."""
    T = len(atoms.values)
    return np.concatenate([vectors @ atoms.raw(slice(i, i + BLOCK)).T for i in range(0, T, BLOCK)], axis=1)


def _norms(values: NDArray[Any]) -> Array:
    """Norms of rows without overflow; not a number where an entry is not finite."""
    rows = values.astype(float, copy=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = np.einsum("td,td->t", rows, rows)
    norms = np.sqrt(squares)
    for i in np.flatnonzero(~((squares > 1e-200) & (squares < 1e200))):
        largest = np.abs(rows[i]).max()
        norms[i] = largest * np.linalg.norm(rows[i] / largest) if np.isfinite(largest) and largest > 0 else largest
    return norms
