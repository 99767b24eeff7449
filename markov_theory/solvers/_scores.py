"""Which atom to take next: the best score over a large real dictionary, exact although screened in single precision.

The product with all atoms is made in single precision. Atoms whose score lies within its rounding error of the best
are scored again in double precision, one by one in a fixed order, so that the choice depends neither on the other
targets of a batch nor on the atoms' positions. Scores equal to 1e-14 tie, and the lowest index wins.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markov_theory._checks import Array, IntArray
from markov_theory.solvers._atoms import BLOCK, UNIT_ROUNDOFF, PreparedAtoms, Singles
from markov_theory.solvers._screen import add_products, cosines

TIE = 1e-14  # scores are cosines, or distances relative to the norms
ALIKE = 1e-9  # unit atoms closer than this are one direction; a score below it is zero
ROUNDING = 1e-12  # of products in double precision, generously
COINCIDENT = 1e-6  # a vertex so close to the fit (relative) gives no direction
GROUPS = 1024  # atom v belongs to group v modulo so many
FEW = 128  # candidates of one target that are scored one by one, or a 32nd of all atoms


class Place(NamedTuple):
    """Where A pursuits stand: whose they are, their residuals, the lengths of these, and their fits.

    Residuals (A, d) have been divided by their lengths (A,), but for a hull's first atom; fits are (A, d), and needed
    in the simplex alone.
    """

    who: IntArray
    residuals: Array
    lengths: Array
    fits: Array


class Choice(NamedTuple):
    """The next atom of each of A targets: its index and its score, shape (A,), and the class of atoms like it."""

    atoms: IntArray
    scores: Array
    classes: list[tuple[int, ...]]


class Bounds(NamedTuple):
    """What scores may be: the most of each group, (A, groups), and why they may be more than the table says.

    That is by rest·tails: the part of a residual that was not seen, (A,), and that of each atom, (members, groups).
    """

    tops: Singles
    rest: Singles
    tails: Singles


Pairs = tuple[IntArray, IntArray]


class Directions:
    """Scores |cos(atom, residual)|, or without the modulus where weights must not be negative.

    A table holds the products of all atoms with what was `seen` of each residual. A whole product brings it up to
    date. In later steps the product over that half of the coordinates that changed more is often enough: the rest adds
    at most ‖a‖‖r − seen‖ over the other half, which leaves few atoms that could be best. Targets of which it leaves
    too many get a whole one, and if they are many, all do from then on.
    """

    def __init__(self, atoms: PreparedAtoms, signed: bool, n_targets: int) -> None:
        self.atoms, self.signed, self.screen = atoms, signed, atoms.single
        T, d = self.screen.shape
        self.groups = min(T, GROUPS)
        shape = -(-T // self.groups), self.groups  # members and groups, in the order of atoms
        self.table = np.zeros((shape[0], n_targets, shape[1]), dtype=np.float32)
        self.halves, self.usable = np.zeros((2, *shape), dtype=np.float32), np.zeros(shape, dtype=bool)
        self.halves.reshape(2, -1)[:, :T], self.usable.flat[:T] = atoms.halves, atoms.usable
        self.seen = np.zeros((n_targets, d))
        self.unit, self.error = np.ones(n_targets), np.zeros(n_targets)  # of length, and in that unit
        self.few = max(FEW, T // 32)
        self.halving: bool | None = None  # whether halves are tried; not before the first product

    def candidates(self, place: Place) -> Pairs:
        """Pairs (place, atom) among which are the best atom of each target and all atoms like it."""
        A = len(place.who)
        found = [self._few(place, np.arange(A if self.halving else 0), whole=False)]
        left = np.bincount(found[0][0], minlength=A) == 0
        self.halving = self.halving is None or (self.halving and left.sum() <= A / 4)
        found.append(self._few(place, np.flatnonzero(left), whole=True))
        left &= np.bincount(found[1][0], minlength=A) == 0
        for i in np.flatnonzero(left):
            near = self._nearest(place.residuals[i])
            found.append((np.full(near.size, i), near))
        who, what = (np.concatenate(part) for part in zip(*found, strict=True))
        return who, what

    def _few(self, place: Place, index: IntArray, whole: bool) -> Pairs:
        """The same for those places of an index of which one product leaves few atoms."""
        if not index.size:
            return index, index
        who, lengths = place.who[index], place.lengths[index]
        if whole:
            self.unit[who], self.error[who], self.seen[who], self.table[:, who] = lengths, 0.0, 0.0, 0.0
        change = place.residuals[index] * (lengths / self.unit[who])[:, None] - self.seen[who]
        columns, rest, tails = slice(None), np.zeros(len(who)), self.halves[0]
        if not whole:
            sizes = [np.linalg.norm(change[:, half], axis=1) for half in self.atoms.columns]
            more = int(sizes[1].sum() > sizes[0].sum())
            columns, rest, tails = self.atoms.columns[more], sizes[1 - more], self.halves[1 - more]
        bounds = Bounds(np.full((len(who), self.groups), -np.inf, np.float32), rest.astype(np.float32), tails)
        new = change[:, columns].astype(np.float32)
        self.seen[who, columns] += new
        self.error[who] += self.atoms.error * np.linalg.norm(new, axis=1) + 16 * UNIT_ROUNDOFF
        for member, (table, tails) in enumerate(zip(self.table, bounds.tails, strict=True)):
            atoms = self.screen[member * self.groups : (member + 1) * self.groups, columns]
            add_products(table, who, new @ atoms.T, self.signed, bounds.tops, bounds.rest, tails)
        return self._near(place, index, bounds)

    def _near(self, place: Place, index: IntArray, bounds: Bounds) -> Pairs:
        """Pairs of those places of an index of which few atoms are not below the score of a likely one."""
        who, tops = place.who[index], bounds.tops
        group = tops.argmax(axis=1)
        likely = self._possible(who, group, bounds.rest, bounds.tails).argmax(axis=1) * self.groups + group
        likely[~self.usable.flat[likely]] = self.usable.argmax()
        scores = self.score(likely, index, place)
        cut = (scores - ALIKE) * place.lengths[index] / self.unit[who] - self.error[who]
        i, group = np.nonzero(tops >= cut[:, None])
        few = (np.bincount(i, minlength=len(who)) <= self.few)[i]
        i, group = i[few], group[few]
        pair, member = np.nonzero(self._possible(who[i], group, bounds.rest[i], bounds.tails) >= cut[i, None])
        i, what = i[pair], member * self.groups + group[pair]
        i, what = i[self.usable.flat[what]], what[self.usable.flat[what]]
        few = (np.bincount(i, minlength=len(who)) <= self.few)[i]
        return index[i[few]], what[few]

    def _possible(self, who: IntArray, group: IntArray, rest: Singles, tails: Singles) -> Singles:
        """The most that scores of the members of a group each may be, (A, members)."""
        scores = self.table[:, who, group].T
        return (np.abs(scores) if self.signed else scores) + rest[:, None] * tails[:, group].T

    def _nearest(self, residual: Array) -> IntArray:
        """Candidates of one target, in double precision; of equal scores near zero one is enough."""
        T = len(self.screen)
        scores = np.concatenate([self.atoms.unit(slice(i, i + BLOCK)) @ residual for i in range(0, T, BLOCK)])
        scores = np.where(self.atoms.usable, np.abs(scores) if self.signed else scores, -np.inf)
        return (
            np.flatnonzero(scores >= scores.max() - 2 * ALIKE) if scores.max() > ALIKE else np.array([scores.argmax()])
        )

    def score(self, what: IntArray, index: IntArray, place: Place) -> Array:
        """Scores of P pairs of an atom and a place, in double precision."""
        scores = cosines(self.atoms.values, self.atoms.norms, what, index, place.residuals)
        return np.abs(scores) if self.signed else scores

    def alike(self, atom: int, others: IntArray) -> NDArray[np.bool_]:
        """Which of the others are multiples of the atom: positive ones where weights must not be negative."""
        u, v = self.atoms.unit(atom), self.atoms.unit(others)
        sign = np.sign(v @ u)[:, None] if self.signed else 1.0
        return np.linalg.norm(v - sign * u, axis=1) <= ALIKE


class Nearest:
    """Scores of a hull's first atom: minus the logarithm of its distance to the target."""

    def __init__(self, atoms: PreparedAtoms) -> None:
        self.atoms = atoms
        self.size = np.where(atoms.usable, atoms.norms, 0.0) ** 2

    def candidates(self, place: Place) -> Pairs:
        """Pairs (place, atom): see `Directions`."""
        targets = place.residuals
        size = self.size + np.einsum("ad,ad->a", targets, targets)[:, None]
        square = size - 2 * products(self.atoms, targets)
        square[:, ~self.atoms.usable] = np.inf
        most = (square + ROUNDING * size).min(axis=1, keepdims=True)
        who, what = np.nonzero(square - ROUNDING * size <= most * (1 + 2 * ALIKE))
        return who, what

    def score(self, what: IntArray, index: IntArray, place: Place) -> Array:
        """Scores of P pairs of an atom and a place."""
        apart = np.linalg.norm(self.atoms.raw(what) - place.residuals[index], axis=1)
        return -np.log(np.maximum(apart, np.finfo(float).tiny))

    def alike(self, atom: int, others: IntArray) -> NDArray[np.bool_]:
        """Which of the others equal the atom."""
        return np.linalg.norm(self.atoms.raw(others) - self.atoms.raw(atom), axis=1) <= ALIKE * self.atoms.norms[atom]


class Vertices(Nearest):
    """Scores cos(atom − fit, residual) of further vertices: a fit moves *towards* a vertex; atoms are not scaled."""

    def candidates(self, place: Place) -> Pairs:
        """Pairs (place, atom): see `Directions`."""
        _, residuals, _, fits = place
        both = products(self.atoms, np.concatenate([residuals, fits]))
        along, across = both[: len(fits)], both[len(fits) :]
        fit_size = np.einsum("ad,ad->a", fits, fits)[:, None]
        square = self.size - 2 * across + fit_size
        far = (square > COINCIDENT**2 * (self.size + fit_size)) & self.atoms.usable
        progress = along - np.einsum("ad,ad->a", residuals, fits)[:, None]
        scores = np.where(far, progress / np.sqrt(np.where(far, square, 1.0)), -1.0)
        who, what = np.nonzero(scores >= scores.max(axis=1, keepdims=True) - COINCIDENT)
        return who, what

    def score(self, what: IntArray, index: IntArray, place: Place) -> Array:
        """Scores of P pairs of an atom and a place."""
        apart = self.atoms.raw(what) - place.fits[index]
        length = np.linalg.norm(apart, axis=1)
        usable = self.atoms.usable[what] & (length > 0)
        along = np.einsum("pd,pd->p", apart, place.residuals[index])
        return np.where(usable, along / np.where(usable, length, 1.0), -1.0)


Scorer = Directions | Nearest


def choose(scorer: Scorer, place: Place) -> Choice:
    """Choose the next atom of each target."""
    who, what = scorer.candidates(place)
    scores = np.concatenate(
        [scorer.score(what[i : i + BLOCK], who[i : i + BLOCK], place) for i in range(0, len(who), BLOCK)]
    )
    order = np.argsort(who, kind="stable")
    who, what, scores = who[order], what[order], scores[order]
    starts = np.searchsorted(who, np.arange(len(place.who)))
    tops = np.maximum.reduceat(scores, starts)
    atoms = np.minimum.reduceat(np.where(scores >= tops[who] - TIE, what, len(scorer.atoms.values)), starts)
    classes: list[tuple[int, ...]] = [(v,) for v in atoms.tolist()]
    close = (scores >= tops[who] - ALIKE) & (what != atoms[who])
    for i in np.unique(who[close]).tolist():
        others = what[close & (who == i)]
        like = others[scorer.alike(int(atoms[i]), others)]
        classes[i] = tuple(sorted([int(atoms[i]), *like.tolist()]))
    return Choice(atoms, tops, classes)


def products(atoms: PreparedAtoms, vectors: Array) -> Array:
    """Inner products with all atoms, shape (A, T), in double precision."""
    T = len(atoms.values)
    return np.concatenate([vectors @ atoms.raw(slice(i, i + BLOCK)).T for i in range(0, T, BLOCK)], axis=1)
