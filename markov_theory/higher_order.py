"""Chains of order K: the next token depends on the last K; a new token is one mixture of old ones at every age.

A new token u enters after a *context* w = (w_1, …, w_K). While it is among the last K tokens, the chain is in new
contexts: after k − 1 further tokens x_1, …, x_{k−1} in ``h_k(u) = (w_{k+1..K}, u, x_{1..k−1})``. The *lifted map*
gives all of them the same weights α over old tokens: ``p̃(·|h(u)) = Σ_v α_v p(·|h(v))``, h(v) being h(u) with v in
u's place. New contexts are written as integers with `HOLE` in the place of u.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from markov_theory._checks import Array, IntArray, as_laws, as_transitions, whole
from markov_theory.caratheodory import Reduction, reduce_support
from markov_theory.chain import MarkovChain

Context = tuple[int, ...]
HOLE = -1


@dataclass(frozen=True, eq=False)
class HigherOrderChain:
    """A chain of order K on T tokens, given on a set of contexts that it never leaves.

    Parameters
    ----------
    contexts : array_like of int, shape (C, K)
        Distinct; tokens in [0, T). A context that is not listed cannot occur.
    transitions : array_like, shape (C, T)
        ``transitions[i]`` is the law of the next token after context i.

    Raises
    ------
    ValueError, TypeError
        If contexts are repeated, not whole or out of range, rows are no laws, or a token of positive probability
        leads to a context that is not listed.

    Examples
    --------
    >>> chain = HigherOrderChain([[0, 1], [1, 0]], [[1, 0], [0, 1]])
    >>> chain.order, chain.branching, chain.simulate(3, np.random.default_rng(0), (0, 1)).tolist()
    (2, 1, [0, 1, 0, 1, 0])
    """

    contexts: IntArray
    transitions: Array
    _places: dict[Context, int] = field(repr=False)
    _next: IntArray = field(repr=False)

    def __init__(self, contexts: ArrayLike, transitions: ArrayLike) -> None:
        self._set(as_contexts(contexts), as_transitions(transitions))

    def _set(self, contexts: IntArray, P: Array) -> None:
        if len(contexts) != len(P):
            raise ValueError(f"there must be one row a context, got {len(P)} rows for {len(contexts)} contexts")
        if contexts.min() < 0 or contexts.max() >= P.shape[1]:
            raise ValueError(f"tokens must lie in [0, {P.shape[1] - 1}], got {contexts.min()} … {contexts.max()}")
        places = {context: i for i, context in enumerate(map(tuple, contexts.tolist()))}
        if len(places) < len(contexts):
            raise ValueError(f"contexts must be distinct, got {len(contexts) - len(places)} repetitions")
        following = np.full(P.shape, -1, dtype=np.int64)
        for i, token in np.argwhere(P > 0).tolist():
            after = (*contexts[i, 1:].tolist(), token)
            if after not in places:
                raise ValueError(f"context {tuple(contexts[i].tolist())} leads to {after}, which is not listed")
            following[i, token] = places[after]
        for array in (contexts, P, following):
            array.setflags(write=False)
        for name, value in (("contexts", contexts), ("transitions", P), ("_places", places), ("_next", following)):
            object.__setattr__(self, name, value)

    @property
    def order(self) -> int:
        """K."""
        return self.contexts.shape[1]

    @property
    def n_tokens(self) -> int:
        """T."""
        return self.transitions.shape[1]

    @property
    def n_contexts(self) -> int:
        """C."""
        return self.contexts.shape[0]

    @cached_property
    def branching(self) -> int:
        """Largest number of successors of a context: b."""
        return int((self.transitions > 0).sum(axis=1).max())

    @cached_property
    def on_contexts(self) -> MarkovChain:
        """The first-order chain whose states are the C contexts: from (c_1, …, c_K) to (c_2, …, c_K, x)."""
        P = np.zeros((self.n_contexts, self.n_contexts))
        source, token = np.nonzero(self.transitions)
        P[source, self._next[source, token]] = self.transitions[source, token]
        return MarkovChain(P)

    def places(self, contexts: ArrayLike) -> IntArray:
        """Row of each context, −1 where it is not listed, shape (n,)."""
        listed = np.array(contexts, dtype=np.int64).reshape(-1, self.order).tolist()
        return np.array([self._places.get(tuple(context), -1) for context in listed], dtype=np.int64)

    def reachable(self, starts: ArrayLike) -> IntArray:
        """Rows of the contexts that can occur, now or later, after one of the `starts` (n, K); sorted."""
        frontier = self._known(starts)
        reached = np.zeros(self.n_contexts, dtype=bool)
        while frontier.size:
            reached[frontier] = True
            following = np.unique(self._next[frontier])
            frontier = following[(following >= 0) & ~reached[following]]
        return np.flatnonzero(reached)

    def simulate(self, n_steps: int, generator: np.random.Generator, start: Sequence[int]) -> IntArray:
        """Draw ``n_steps`` tokens after the context `start`; returns it and them, shape (K + n_steps,)."""
        place = int(self._known([start])[0])
        path = np.empty(self.order + whole(n_steps, "n_steps"), dtype=np.int64)
        path[: self.order] = self.contexts[place]
        cumulative = np.cumsum(self.transitions, axis=1)
        last = np.array([np.flatnonzero(row)[-1] for row in self.transitions])
        for i, uniform in enumerate(generator.random(n_steps), start=self.order):
            token = min(int(np.searchsorted(cumulative[place], uniform, side="right")), int(last[place]))
            path[i], place = token, int(self._next[place, token])
        return path

    def count(self, paths: Iterable[Sequence[int] | NDArray[np.integer]]) -> IntArray:
        """Tally the tokens after each context in several trajectories, never across two of them, shape (C, T).

        Raises
        ------
        ValueError, TypeError
            If a trajectory holds a context or a token that the chain has not, or is no sequence of whole numbers.
        """
        counts = np.zeros(self.transitions.shape, dtype=np.int64)
        for path in paths:
            tokens = np.asarray(path)
            if tokens.ndim != 1 or (tokens.size and tokens.dtype.kind not in "iu"):
                raise TypeError("paths must be several trajectories of whole numbers: wrap a single one in a list")
            if tokens.size <= self.order:
                continue
            if tokens.min() < 0 or tokens.max() >= self.n_tokens:
                raise ValueError(f"tokens must lie in [0, {self.n_tokens - 1}], got {tokens.min()} … {tokens.max()}")
            windows = sliding_window_view(tokens, self.order + 1)
            np.add.at(counts, (self._known(windows[:, :-1]), windows[:, -1]), 1)
        return counts

    def candidates(self, new_contexts: ArrayLike) -> IntArray:
        """A = {v : every h(v) is a context of the chain}: the old tokens that u may be mapped to; sorted."""
        holes = np.asarray(new_contexts)
        return np.array([v for v in range(self.n_tokens) if (self.places(_fill(holes, v)) >= 0).all()], dtype=np.int64)

    def lifted_rows(self, new_contexts: ArrayLike, alpha: ArrayLike) -> Array:
        """``p̃(·|h(u)) = Σ_v α_v p(·|h(v))`` for each new context, shape (n, T).

        Raises
        ------
        ValueError
            If `alpha` is no law over the T tokens, or has weight on a token v that is no candidate.
        """
        used, weights = self._mapped(new_contexts, alpha)
        return np.einsum("v,vnj->nj", weights, self._stacked(new_contexts, used))

    def sparsify(self, new_contexts: ArrayLike, alpha: ArrayLike) -> Reduction:
        """Weights α' with the same n lifted rows and ``‖α'‖₀ ≤ Σ_h (b_h − 1) + 1``, b_h successors of h(u): K1.

        For the K contexts of one path this is at most K(b−1)+1. Weights have shape (T,); the residual is relative to
        the entries of the lifted rows. Arguments and errors as in `lifted_rows`.
        """
        used, weights = self._mapped(new_contexts, alpha)
        rows = self._stacked(new_contexts, used)  # (|used|, n, T)
        lifted = np.einsum("v,vnj->nj", weights, rows)
        free = lifted > 0
        free[np.arange(len(lifted)), lifted.argmax(axis=1)] = False  # the likeliest entry follows from the others
        reduced = reduce_support(rows[:, free] / lifted[free], weights)
        alpha_reduced = np.zeros(self.n_tokens)
        alpha_reduced[used] = reduced.weights
        live = lifted > 0
        error = np.abs(np.einsum("v,vnj->nj", reduced.weights, rows)[live] / lifted[live] - 1).max()
        return Reduction(alpha_reduced, float(error))

    def entry(self, context: Sequence[int], alpha: ArrayLike) -> IntArray:
        """All contexts that u leads to from its entry after `context` until it is forgotten, shape (n_u, K).

        With b successors of each, n_u = (b^K − 1)/(b − 1).

        Raises
        ------
        ValueError
            If `context` is not listed, or one of them with some v of positive weight in u's place is not.
        """
        start = self.contexts[self._known([context])[0]]
        level = np.append(start[1:], HOLE)[None, :]
        found = [level]
        for _ in range(self.order - 1):
            lifted = self.lifted_rows(level, alpha)
            at, token = np.nonzero(lifted)
            level = np.column_stack([level[at, 1:], token])
            found.append(level)
        return np.vstack(found)

    def extend(self, context: Sequence[int], alpha: ArrayLike) -> ExtendedHigherOrderChain:
        """Add a token that enters after `context` as the mixture α of old ones; every old row is the same floats.

        The new contexts are those of `entry`; their rows are the lifted ones. The new token is reached from nowhere:
        it comes from outside, after `context`. Errors as in `entry`.
        """
        holes = self.entry(context, alpha)
        T = self.n_tokens
        extended = np.zeros((self.n_contexts + len(holes), T + 1))
        extended[: self.n_contexts, :T] = self.transitions
        extended[self.n_contexts :, :T] = self.lifted_rows(holes, alpha)
        return ExtendedHigherOrderChain(np.vstack([self.contexts, _fill(holes, T)]), extended, self)

    def _known(self, contexts: ArrayLike) -> IntArray:
        rows = self.places(contexts)
        if (rows < 0).any():
            unknown = np.array(contexts).reshape(-1, self.order)[int((rows < 0).argmax())]
            raise ValueError(f"{tuple(unknown.tolist())} is not a context of the chain")
        return rows

    def _mapped(self, new_contexts: ArrayLike, alpha: ArrayLike) -> tuple[IntArray, Array]:
        weights = as_laws(alpha, "alpha")
        if weights.shape != (self.n_tokens,):
            raise ValueError(f"alpha must have shape ({self.n_tokens},), got {weights.shape}")
        used = np.flatnonzero(weights)
        for v in used.tolist():
            self._known(_fill(np.asarray(new_contexts), v))
        return used, weights[used]

    def _stacked(self, new_contexts: ArrayLike, tokens: IntArray) -> Array:
        """p(·|h(v)), shape (|tokens|, n, T)."""
        holes = np.asarray(new_contexts)
        return np.array([self.transitions[self.places(_fill(holes, v))] for v in tokens.tolist()])


@dataclass(frozen=True, eq=False)
class ExtendedHigherOrderChain(HigherOrderChain):
    """A chain of order K with a new token, T, and the chain that it extends; made by `HigherOrderChain.extend`."""

    base: HigherOrderChain

    def __init__(self, contexts: IntArray, transitions: Array, base: HigherOrderChain) -> None:
        self._set(contexts, transitions)
        object.__setattr__(self, "base", base)

    def forgets_nothing(self) -> bool:
        """Whether every old context has, bit for bit, its row in the base chain, and the new token probability 0."""
        C, T = self.base.transitions.shape
        same = self.transitions[:C, :T].tobytes() == self.base.transitions.tobytes()
        return same and (self.contexts[:C] == self.base.contexts).all() and not self.transitions[:, T].any()

    def count(self, paths: Iterable[Sequence[int] | NDArray[np.integer]]) -> IntArray:
        """`HigherOrderChain.count` without transitions into new tokens, earlier ones too: they come from outside."""
        original: HigherOrderChain = self
        while isinstance(original, ExtendedHigherOrderChain):
            original = original.base
        counts = super().count(paths)
        counts[:, original.n_tokens :] = 0
        return counts

    def retract(self) -> HigherOrderChain:
        """Undo the extension: the base chain itself."""
        return self.base


def path_contexts(context: Sequence[int], path: Sequence[int]) -> IntArray:
    """The K new contexts h_1(u), …, h_K(u) of an entry after w = `context` along x_1, …, x_{K−1} = `path`.

    Examples
    --------
    >>> path_contexts((3, 4, 5), (6, 7)).tolist()
    [[4, 5, -1], [5, -1, 6], [-1, 6, 7]]
    """
    order = len(context)
    if order == 0 or len(path) != order - 1:
        raise ValueError(f"a path has K - 1 = {order - 1} tokens for a context of K = {order} >= 1, got {len(path)}")
    line = [*context[1:], HOLE, *path]
    return np.array([line[k : k + order] for k in range(order)], dtype=np.int64)


def as_contexts(values: ArrayLike) -> IntArray:
    """Return `values` as (C, K) whole numbers with C, K >= 1.  Raises ValueError or TypeError."""
    contexts = np.array(values)
    if contexts.ndim != 2 or contexts.size == 0:
        raise ValueError(f"contexts must be (C, K) with C, K >= 1, got shape {contexts.shape}")
    if contexts.dtype.kind not in "iu":
        raise TypeError(f"contexts must be whole numbers, got an array of {contexts.dtype}")
    return contexts.astype(np.int64)


def _fill(new_contexts: IntArray, token: int) -> IntArray:
    return np.where(new_contexts == HOLE, token, new_contexts)
