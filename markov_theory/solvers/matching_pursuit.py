"""Orthogonal matching pursuit in least squares over any real atoms, for many targets at once."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markov_theory._checks import Array, IntArray, whole
from markov_theory.solvers._atoms import PreparedAtoms, as_real, prepare_atoms
from markov_theory.solvers._gram import follow
from markov_theory.solvers._refits import DEPENDENT, active_set, distances, extend_all
from markov_theory.solvers._scores import ALIKE, Choice, Directions, Nearest, Place, Scorer, Vertices, choose

Weights = Literal["real", "non-negative", "simplex"]
SPARSITY, TOLERANCE, EXACT, STATIONARY = "sparsity", "tolerance", "exact", "stationary"
DEPENDENT_ATOMS, STEPS = "dependent atoms", "steps"
ROUNDING = 1e-12  # a residual of a smaller share of the target is zero
STEPS_AN_ATOM = 4  # where atoms leave again, steps are limited to so many times the sparsity
LARGE = 1e140  # squares of larger numbers, summed, are not finite
TABLE = 2**24  # scores of one product


@dataclass(frozen=True, eq=False)
class MatchingPursuit:
    """Sparse weights of R targets over T atoms, and why each pursuit ended.

    Attributes
    ----------
    support : ndarray of int, shape (R, k)
        Indices of the atoms in the order chosen, then -1.
    values : ndarray, shape (R, k)
        Their weights, then 0. k is the sparsity after the rule for large ones.
    residual_norms : ndarray, shape (R,)
        ‖x − Aᵀw‖₂, recomputed from the weights.
    status : ndarray of str, shape (R,)
        ``"sparsity"``: k atoms; ``"exact"``: residual zero to rounding; ``"tolerance"``: at most the tolerance;
        ``"stationary"``: no atom has a cosine above 1e-9 with the residual (modulus, where weights have no sign),
        so that *no* combination w' comes closer by more than 1e-9·Σ|w'_v|‖a_v‖; ``"dependent atoms"``: the next
        atom lies in the span of those chosen to a share of 1e-7 (a warning is given as well); ``"steps"``: atoms
        left and returned until 4k steps were made.
    classes : tuple of tuple of tuple of int
        For each target and each atom of its support, the atoms that could replace it without changing the fit's
        direction, itself among them, ascending: multiples of it, positive ones where weights are non-negative, and
        equal ones in the simplex.
    excluded : ndarray of int
        Atoms that were left out: zero, or not finite.
    n_atoms : int
        T.
    """

    support: IntArray
    values: Array
    residual_norms: Array
    status: NDArray[np.str_]
    classes: tuple[tuple[tuple[int, ...], ...], ...]
    excluded: IntArray
    n_atoms: int

    @property
    def sizes(self) -> IntArray:
        """Number of atoms of each support, shape (R,)."""
        return (self.support >= 0).sum(axis=1)

    @property
    def support_unique(self) -> NDArray[np.bool_]:
        """Whether no other atom of the dictionary could take the place of a chosen one, shape (R,)."""
        return np.array([all(len(c) == 1 for c in classes) for classes in self.classes], dtype=bool)

    def supports(self, target: int) -> Iterator[tuple[int, ...]]:
        """Yield every support with the same fit as that of `target`: one atom of each of its classes."""
        return itertools.product(*self.classes[target])

    def dense(self) -> Array:
        """Weights over all atoms, shape (R, T)."""
        weights = np.zeros((len(self.support), self.n_atoms))
        target, place = np.nonzero(self.support >= 0)
        weights[target, self.support[target, place]] = self.values[target, place]
        return weights


def orthogonal_matching_pursuit(
    atoms: ArrayLike | PreparedAtoms,
    targets: ArrayLike,
    sparsity: int,
    *,
    weights: Weights = "real",
    tolerance: float = 0.0,
) -> MatchingPursuit:
    """Seek ``min ‖x − Σ_v w_v a_v‖₂`` over w with at most k non-zeros, greedily, for R targets in lockstep.

    Each step takes the atom of largest |cosine| with the residual (ties go to the lowest index) and refits all chosen
    atoms. Atoms need not be normalised.

    Parameters
    ----------
    atoms : array_like, shape (T, d), or PreparedAtoms
        Any real vectors; single precision is kept. Zero atoms and atoms with NaN or ∞ are excluded. For many calls
        over the same atoms, pass those of `prepare_atoms`.
    targets : array_like, shape (d,) or (R, d)
    sparsity : int
        k >= 1; reduced to the number of usable atoms and to the d that can be independent (d + 1 in the simplex).
    weights : {"real", "non-negative", "simplex"}
        Where they are confined, refits are too, and an atom whose weight falls to zero leaves the support. In the
        simplex (w >= 0, Σw = 1) the first atom is the nearest one, and the next is that of the largest cosine
        between a_v − fit and the residual.
    tolerance : float
        Stop as soon as ‖x − Aᵀw‖₂, the norm and not its square, is at most this; in the units of the targets.

    Returns
    -------
    MatchingPursuit
        One row a target; a single target is a batch of one.

    Raises
    ------
    ValueError, TypeError
        On wrong shapes, targets that are not finite, no usable atom, or an option out of range.

    References
    ----------
    Pati, Rezaiifar and Krishnaprasad (1993); with non-negative weights, Bruckstein, Elad and Zibulevsky (2008).

    Examples
    --------
    >>> fit = orthogonal_matching_pursuit([[1, 0], [0, 1], [1, 1]], [2, 1], 3)
    >>> fit.support.tolist(), fit.values.round(6).tolist(), fit.status.tolist()
    ([[2, 0]], [[1.0, 1.0]], ['exact'])
    """
    if weights not in get_args(Weights):
        raise ValueError(f"weights must be one of {', '.join(get_args(Weights))}, got {weights!r}")
    if not 0 <= tolerance < np.inf:
        raise ValueError(f"tolerance must be a finite number >= 0, got {tolerance!r}")
    A = atoms if isinstance(atoms, PreparedAtoms) else prepare_atoms(atoms)
    X = _checked(as_real(targets, "targets").astype(float), A.values.shape[1])
    k = min(whole(sparsity, "sparsity", low=1), int(A.usable.sum()), X.shape[1] + (weights == "simplex"))
    pursuit = _Pursuit(A, k, weights, float(tolerance), len(X))
    rows = max(1, min(256, TABLE // len(A.values)))
    parts = [pursuit.run(X[i : i + rows]) for i in range(0, len(X), rows)]
    support, values, norms, status, classes = (list(part) for part in zip(*parts, strict=True))
    stopped = int((np.concatenate(status) == DEPENDENT_ATOMS).sum())
    if stopped:
        warnings.warn(
            f"{stopped} of {len(X)} pursuits stopped early: the next atom depends on those chosen (to {DEPENDENT:g})",
            stacklevel=2,
        )
    return MatchingPursuit(
        np.concatenate(support),
        np.concatenate(values),
        np.concatenate(norms),
        np.concatenate(status),
        tuple(itertools.chain.from_iterable(classes)),
        np.flatnonzero(~A.usable),
        len(A.values),
    )


class _Pursuit:
    """The steps of a chunk of targets."""

    def __init__(self, atoms: PreparedAtoms, sparsity: int, weights: Weights, tolerance: float, n_targets: int) -> None:
        self.atoms, self.k, self.tolerance = atoms, sparsity, tolerance
        self.real, self.affine = weights == "real", weights == "simplex"
        self.by_pairs = self.real and atoms.pairs_pay((sparsity - 1) * n_targets)

    def run(self, X: Array) -> tuple[IntArray, Array, Array, NDArray[np.str_], list]:
        """Pursue targets (R, d); return support, values, residual norms, status and classes."""
        self._start(X)
        if self.by_pairs:
            stops = np.maximum(ROUNDING * self.scale, self.tolerance) * (1 + ALIKE)  # at the brink we decide ourselves
            follow(self.atoms, X, self.scale, stops, self.factors, self.residuals, self.support, self.sizes)
        scorer: Scorer = Vertices(self.atoms) if self.affine else Directions(self.atoms, self.real, len(X))
        first: Scorer = Nearest(self.atoms) if self.affine else scorer
        for step in range(self.k if self.real else STEPS_AN_ATOM * self.k):
            running = self._running(first=step == 0)
            if not running.size:
                break
            residuals = self.residuals[running]
            lengths = np.linalg.norm(residuals, axis=1)
            if step or not self.affine:
                residuals = residuals / lengths[:, None]
            fits = X[running] - self.residuals[running] if self.affine else np.zeros((running.size, 0))
            choice = choose(scorer if step else first, Place(running, residuals, lengths, fits))
            helpful = choice.scores > ALIKE if step or not self.affine else np.ones(running.size, dtype=bool)
            self.status[running[~helpful]] = STATIONARY
            self._take(running, helpful, choice)
        self._running(first=False)
        self.status[self.status == ""] = STEPS
        return self._result()

    def _start(self, X: Array) -> None:
        (R, d), k = X.shape, self.k
        self.X, self.residuals = X, X.copy()
        self.support, self.values = np.full((R, k), -1), np.zeros((R, k))
        self.sizes = np.zeros(R, dtype=np.int64)
        self.status = np.full(R, "", dtype="<U16")
        self.classes: list[dict[int, tuple[int, ...]]] = [{} for _ in range(R)]
        self.scale = np.linalg.norm(X, axis=1)
        if self.real:
            self.factors = np.zeros((R, k, d)), np.zeros((R, k, k)), np.zeros((R, k))

    def _running(self, first: bool) -> IntArray:
        """Say why targets end, and return those that go on; in the simplex no target ends before the first atom."""
        if not (first and self.affine):
            norms = np.linalg.norm(self.residuals, axis=1)
            for status, reached in (
                (EXACT, norms <= ROUNDING * self.scale),
                (TOLERANCE, norms <= self.tolerance),
                (SPARSITY, self.sizes >= self.k),
            ):
                self.status[reached & (self.status == "")] = status
        return np.flatnonzero(self.status == "")

    def _take(self, running: IntArray, helpful: NDArray[np.bool_], choice: Choice) -> None:
        places = np.flatnonzero(helpful)
        who, atoms = running[places], choice.atoms[places]
        for t, atom, place in zip(who.tolist(), atoms.tolist(), places.tolist(), strict=True):
            self.classes[t][atom] = choice.classes[place]
            if not self.real:
                self._refit(t, atom)
        if self.real:
            parts = extend_all(*self.factors, self.residuals, self.sizes, self.atoms.unit(atoms), who)
            self.status[who[parts <= DEPENDENT]] = DEPENDENT_ATOMS
            who, atoms = who[parts > DEPENDENT], atoms[parts > DEPENDENT]
            self.support[who, self.sizes[who]] = atoms
            self.sizes[who] += 1

    def _refit(self, t: int, atom: int) -> None:
        """Add an atom to target t under the constraints; atoms of weight zero leave."""
        chosen = np.append(self.support[t, : self.sizes[t]], atom)
        rows = self.atoms.raw(chosen)
        scale = np.ones(len(rows)) if self.affine else self.atoms.norms[chosen]
        rows = rows / scale[:, None]
        start = np.append(self.values[t, : self.sizes[t]] * scale[:-1], 0.0)
        weights, dependent = active_set(rows, self.X[t], start, self.affine)
        residual = self.X[t] - weights @ rows
        if dependent or (self.sizes[t] and not np.linalg.norm(residual) < np.linalg.norm(self.residuals[t])):
            self.status[t] = DEPENDENT_ATOMS
            return
        left = weights > 0
        n = int(left.sum())
        self.support[t], self.values[t] = -1, 0.0
        self.support[t, :n], self.values[t, :n] = chosen[left], (weights / scale)[left]
        self.sizes[t], self.residuals[t] = n, residual

    def _result(self) -> tuple[IntArray, Array, Array, NDArray[np.str_], list]:
        if self.real:
            _, U, b = self.factors
            beyond = np.arange(self.k) >= self.sizes[:, None]
            triangles = U + beyond[:, :, None] * np.eye(self.k)
            norms = np.where(beyond, 1.0, self.atoms.norms[self.support])
            self.values = np.linalg.solve(triangles, b[..., None])[..., 0] / norms
        norms = distances(self.atoms.values, self.X, self.support, self.values)
        pairs = zip(self.support.tolist(), self.sizes.tolist(), self.classes, strict=True)
        classes = [tuple(known.get(v, (v,)) for v in support[:n]) for support, n, known in pairs]
        return self.support, self.values, norms, self.status, classes


def _checked(targets: Array, d: int) -> Array:
    if targets.ndim not in (1, 2) or targets.shape[-1] != d or 0 in targets.shape:
        raise ValueError(f"targets must have shape ({d},) or (R, {d}), got {targets.shape}")
    if not (np.abs(targets) < LARGE).all():
        raise ValueError(f"targets must be finite and below {LARGE:g} in modulus")
    return np.atleast_2d(targets)
