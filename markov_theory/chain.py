"""Finite Markov chains: validated, simulated, counted from trajectories, extended by new states without forgetting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from markov_theory._checks import Array, IntArray, as_laws, as_transitions, whole

Fill = Literal["mask", "uniform", "absorbing"]


@dataclass(frozen=True, eq=False)
class MarkovChain:
    """A chain on T states with transition matrix P.

    Parameters
    ----------
    transitions : array_like, shape (T, T)
        Row-stochastic; ``transitions[v, w]`` is the probability of w after v.

    Raises
    ------
    ValueError
        If the matrix is not square or not row-stochastic.

    Examples
    --------
    >>> chain = MarkovChain([[.9, .1], [.5, .5]])
    >>> chain.stationary_laws.round(4).tolist()
    [[0.8333, 0.1667]]
    """

    transitions: Array

    def __init__(self, transitions: ArrayLike) -> None:
        P = as_transitions(transitions)
        if P.shape[0] != P.shape[1]:
            raise ValueError(f"a chain's transitions must be square, got shape {P.shape}")
        P.setflags(write=False)
        object.__setattr__(self, "transitions", P)

    @property
    def n_states(self) -> int:
        """T."""
        return self.transitions.shape[0]

    @cached_property
    def recurrent_classes(self) -> tuple[tuple[int, ...], ...]:
        """Closed communicating classes, each sorted, in the order of their least states."""
        _, label = connected_components(coo_array(self.transitions > 0), directed=True, connection="strong")
        classes = [np.flatnonzero(label == k) for k in range(label.max() + 1)]
        closed = [c for c in classes if not np.delete(self.transitions[c], c, axis=1).any()]
        return tuple(sorted(tuple(c.tolist()) for c in closed))

    @cached_property
    def stationary_laws(self) -> Array:
        """Extreme stationary laws, one a recurrent class, shape (classes, T); unique if there is one row."""
        laws = np.zeros((len(self.recurrent_classes), self.n_states))
        for law, members in zip(laws, self.recurrent_classes, strict=True):
            block = self.transitions[np.ix_(members, members)]
            n = len(members)
            system = np.vstack([block.T - np.eye(n), np.ones(n)])
            solution = np.linalg.lstsq(system, np.append(np.zeros(n), 1.0), rcond=None)[0]
            law[list(members)] = np.maximum(solution, 0) / np.maximum(solution, 0).sum()
        return laws

    def simulate(self, n_steps: int, generator: np.random.Generator, start: int | ArrayLike = 0) -> IntArray:
        """Draw a trajectory of ``n_steps`` transitions.

        Parameters
        ----------
        n_steps : int
            >= 0.
        generator : numpy.random.Generator
        start : int or array_like of shape (T,)
            The first state, or its law.

        Returns
        -------
        ndarray of int, shape (n_steps + 1,)
        """
        path = np.empty(whole(n_steps, "n_steps") + 1, dtype=np.int64)
        if np.ndim(start) == 0:
            path[0] = whole(start, "start", high=self.n_states - 1)
        else:
            path[0] = generator.choice(self.n_states, p=as_laws(start, "start"))
        cumulative = np.cumsum(self.transitions, axis=1)
        last = np.array([np.flatnonzero(row)[-1] for row in self.transitions])
        uniform = generator.random(n_steps)
        for i in range(n_steps):
            state = path[i]
            path[i + 1] = min(int(np.searchsorted(cumulative[state], uniform[i], side="right")), last[state])
        return path

    def extend(
        self, new_rows: ArrayLike, *, among_new: ArrayLike | None = None, into_new: ArrayLike | None = None
    ) -> ExtendedChain:
        """Add m new states with laws over the old ones: ``P̃ = [[P, 0], [Q, 0]]``; the old rows are the same floats.

        Beyond the paper, mass may go to the new states, with the other entries scaled down to make room for it:
        from new ones, which no old row notices, or from old ones, at a price of −log(1−η_v) nats for row v
        (`ExtendedChain.forgetting`).

        Parameters
        ----------
        new_rows : array_like, shape (m, T)
            Row u is the law of the next old state after new state u, given that an old one is next.
        among_new : array_like, shape (m, m), optional
            Probability of new state u' after new state u; the total μ_u of each row below 1.
        into_new : array_like, shape (T, m), optional
            Probability of new state u after old state v; the total η_v of each row below 1.

        Raises
        ------
        ValueError
            If `new_rows` are not laws over the T old states, or a mass has the wrong shape or size.

        Examples
        --------
        >>> extended = MarkovChain([[.9, .1], [.5, .5]]).extend([[.2, .8]], into_new=[[.25], [0]])
        >>> extended.forgets_nothing(), extended.forgetting.round(4).tolist()
        (False, [0.2877, 0.0])
        """
        Q = as_transitions(new_rows, "new_rows")
        T, m = self.n_states, Q.shape[0]
        if Q.shape[1] != T:
            raise ValueError(f"new_rows must have {T} columns, one an old state, got {Q.shape[1]}")
        extended = np.zeros((T + m, T + m))
        extended[:T, :T] = self.transitions
        extended[T:, :T] = Q
        for rows, masses, name in ((slice(T), into_new, "into_new"), (slice(T, T + m), among_new, "among_new")):
            if masses is not None:
                given = _masses(masses, (len(extended[rows]), m), name)
                extended[rows, :T] *= 1 - given.sum(axis=1, keepdims=True)
                extended[rows, T:] = given
        return ExtendedChain(extended, self)


@dataclass(frozen=True, eq=False)
class ExtendedChain(MarkovChain):
    """A chain with new states, and the chain that it extends; made by `MarkovChain.extend`."""

    base: MarkovChain

    def __init__(self, transitions: Array, base: MarkovChain) -> None:
        # Rows that are laws already are taken as they are: dividing by a sum of 1 ± 1e-16 would move old floats.
        transitions.setflags(write=False)
        object.__setattr__(self, "transitions", transitions)
        object.__setattr__(self, "base", base)

    @property
    def new_states(self) -> range:
        """The states that the base chain has not."""
        return range(self.base.n_states, self.n_states)

    @property
    def mass_on_new(self) -> Array:
        """Probability that a new state is next, η_v after old and μ_u after new states, shape (T + m,)."""
        return self.transitions[:, self.base.n_states :].sum(axis=1)

    @property
    def forgetting(self) -> Array:
        """KL(p_v‖p̃_v) = −log(1−η_v) of each old row (nats), shape (T,): no row that gives away η_v costs less."""
        return 0.0 - np.log1p(-self.mass_on_new[: self.base.n_states])

    @property
    def truncation(self) -> Array:
        """KL(law of u given that an old state is next‖law of u) = −log(1−μ_u) (nats), shape (m,).

        What leaving transitions among new states out of the counts hides; the reverse divergence is infinite.
        """
        return 0.0 - np.log1p(-self.mass_on_new[self.base.n_states :])

    def forgets_nothing(self) -> bool:
        """Whether every old row is, bit for bit, the base chain's, with probability 0 of each new state."""
        old = self.base.n_states
        same = self.transitions[:old, :old].tobytes() == self.base.transitions.tobytes()
        return same and not self.transitions[:old, old:].any()

    def retract(self) -> MarkovChain:
        """Undo the extension: the base chain itself."""
        return self.base


def count_transitions(paths: Iterable[Sequence[int] | NDArray[np.integer]], n_states: int) -> IntArray:
    """Tally the transitions of several trajectories, none of them across the end of one and the start of the next.

    Parameters
    ----------
    paths : iterable of sequences of int
        States in [0, n_states); a trajectory of length 0 or 1 has no transition.
    n_states : int
        T; never inferred from the data, so that states that were not visited keep their row.

    Returns
    -------
    ndarray of int64, shape (T, T)

    Raises
    ------
    ValueError, TypeError
        If a state is out of range or not whole, or `paths` is a single trajectory rather than several.

    Examples
    --------
    >>> count_transitions([[0, 0], [1, 1]], 2).tolist()
    [[1, 0], [0, 1]]
    """
    T = whole(n_states, "n_states", low=1)
    counts = np.zeros((T, T), dtype=np.int64)
    for path in paths:
        states = np.asarray(path)
        if states.ndim != 1:
            raise TypeError("paths must be several trajectories: wrap a single one in a list")
        if states.size == 0:
            continue
        if states.dtype.kind not in "iu":
            raise TypeError(f"states must be whole numbers, got an array of {states.dtype}")
        if states.min() < 0 or states.max() >= T:
            raise ValueError(f"states must lie in [0, {T - 1}], got {states.min()} … {states.max()}")
        np.add.at(counts, (states[:-1], states[1:]), 1)
    return counts


def estimate_transitions(counts: ArrayLike, unvisited: Fill = "mask") -> np.ma.MaskedArray:
    """Normalise the rows of transition counts; say what a row without data is.

    Parameters
    ----------
    counts : array_like, shape (T, J)
        Whole numbers >= 0.
    unvisited : {"mask", "uniform", "absorbing"}
        A row without counts is masked ("unobserved"), or, on request, uniform or the state itself.

    Returns
    -------
    numpy.ma.MaskedArray, shape (T, J)
        Other rows do not depend on the choice.

    Examples
    --------
    >>> estimate_transitions([[3, 1], [0, 0]]).tolist()
    [[0.75, 0.25], [None, None]]
    """
    n = np.array(counts)
    if n.ndim != 2 or n.size == 0 or n.dtype.kind not in "iuf" or (n < 0).any() or (n != np.floor(n)).any():
        raise ValueError("counts must be a (T, J) matrix of whole numbers >= 0")
    if unvisited not in get_args(Fill):
        raise ValueError(f"unvisited must be one of {', '.join(get_args(Fill))}, got {unvisited!r}")
    totals = n.sum(axis=1, keepdims=True)
    empty = totals[:, 0] == 0
    rows = np.ma.masked_array(n / np.maximum(totals, 1), mask=np.zeros(n.shape, dtype=bool))
    if unvisited == "mask":
        rows[empty] = np.ma.masked
    elif unvisited == "uniform":
        rows[empty] = 1 / n.shape[1]
    else:
        if n.shape[0] != n.shape[1]:
            raise ValueError(f"an absorbing row needs a square matrix, got shape {n.shape}")
        rows[empty] = np.eye(n.shape[0])[empty]
    return rows


def _masses(values: ArrayLike, shape: tuple[int, int], name: str) -> Array:
    masses = np.array(values, dtype=np.float64)
    if masses.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {masses.shape}")
    if not (masses >= 0).all() or not (masses.sum(axis=1) < 1).all():
        raise ValueError(
            f"{name} must be non-negative with a total below 1 in each row, got an entry {masses.min():g} "
            f"and a total {masses.sum(axis=1).max():g}"
        )
    return masses
