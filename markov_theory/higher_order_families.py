"""Chains of order K that are made: at random with given branching, or with a planted entry of a new token."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, IntArray, whole
from markov_theory.higher_order import Context, HigherOrderChain, as_contexts
from markov_theory.randomness import named_generator

MAX_CONTEXTS = 200_000


class PlantedEntry(NamedTuple):
    """A chain with a context that a new token can enter after, a path on from there, and tokens to map it to.

    Attributes
    ----------
    chain : HigherOrderChain
    context : tuple of int
        w, K tokens.
    path : tuple of int
        x_1, …, x_{K−1}.
    tokens : ndarray of int
        Some of A: every new context with any of these in the new token's place is a context of the chain.
    """

    chain: HigherOrderChain
    context: Context
    path: Context
    tokens: IntArray


def grow_chain(starts: ArrayLike, rule: Callable[[Context], ArrayLike]) -> HigherOrderChain:
    """The chain on the contexts that can be reached from `starts` (n, K) when ``rule(context)`` gives the rows (T,).

    Raises
    ------
    ValueError
        If more than 200,000 contexts are reached, or a row is no law.

    Examples
    --------
    >>> grow_chain([[0, 0]], lambda context: [.5, .5]).contexts.tolist()
    [[0, 0], [0, 1], [1, 0], [1, 1]]
    """
    known: dict[Context, Array] = {}
    waiting = [tuple(start) for start in as_contexts(starts).tolist()]
    while waiting:
        context = waiting.pop()
        if context in known:
            continue
        if len(known) == MAX_CONTEXTS:
            raise ValueError(f"more than {MAX_CONTEXTS:,} contexts are reachable")
        known[context] = np.asarray(rule(context), dtype=np.float64)
        waiting += [(*context[1:], token) for token in np.flatnonzero(known[context] > 0).tolist()]
    listed = sorted(known)
    return HigherOrderChain(listed, np.array([known[context] for context in listed]))


def make_higher_order_chain(n_tokens: int, order: int, branching: int, *, seed: int = 0) -> HigherOrderChain:
    """Make a chain of order K in which each context has b successors, drawn at random with Dirichlet(1) laws.

    Parameters
    ----------
    n_tokens, order : int
        T >= 1 and K >= 1.
    branching : int
        b in [1, T].
    seed : int
        A context's row depends on the seed and on the context alone.

    Returns
    -------
    HigherOrderChain
        On the contexts that can be reached from (0, …, 0).

    Raises
    ------
    ValueError, TypeError
        If a number is out of range, or more than 200,000 contexts can be reached.

    Examples
    --------
    >>> chain = make_higher_order_chain(4, 3, 2)
    >>> chain.order, chain.branching
    (3, 2)
    """
    T = whole(n_tokens, "n_tokens", low=1)
    K, b = whole(order, "order", low=1), whole(branching, "branching", low=1, high=T)

    def rule(context: Context) -> Array:
        generator = named_generator(seed, "higher-order chain", T, b, *context)
        row = np.zeros(T)
        row[generator.choice(T, size=b, replace=False)] = _positive_law(b, generator)
        return row

    return grow_chain(np.zeros((1, K), dtype=np.int64), rule)


def plant_entry(
    order: int,
    branching: int,
    n_mapped: int,
    *,
    seed: int = 0,
    law: Callable[[int, Context], ArrayLike] | None = None,
) -> PlantedEntry:
    """Make a chain of order K, each context with at most b successors, and an entry that n old tokens could make.

    Tokens 0, …, b−1 follow every context but the first ones; the n tokens come next; the last ⌈n/b⌉ tokens are those
    that the chain starts with, followed by the n. The entry is after (0, …, 0), and the path goes on with zeros.

    Parameters
    ----------
    order, branching, n_mapped : int
        K, b, n >= 1. A holds the n tokens and, for there is no reason to forbid them, 0, …, b−1.
    seed : int
        Of the rows, Dirichlet(1) on the b successors.
    law : callable, optional
        ``law(i, after)`` gives instead the b probabilities after a context that holds the i-th of the tokens, followed
        by the tokens `after`; contexts that hold none of them get the uniform law on 0, …, b−1.

    Returns
    -------
    PlantedEntry
        The chain has all (b^K − 1)/(b − 1) contexts of the entry for each of the n tokens, not only the path's.

    Examples
    --------
    >>> planted = plant_entry(2, 3, 10)
    >>> planted.chain.branching, planted.context, planted.path, planted.tokens.size
    (3, (0, 0), (0,), 10)
    """
    K, b = whole(order, "order", low=1), whole(branching, "branching", low=1)
    n = whole(n_mapped, "n_mapped", low=1)
    n_starts = -(-n // b)
    T = b + n + n_starts

    def rule(context: Context) -> Array:
        row = np.zeros(T)
        if context[0] >= b + n:
            followers = np.arange(n)[context[0] - b - n :: n_starts]
            row[b + followers] = 1 / followers.size
            return row
        place = next((k for k, token in enumerate(context) if token >= b), None)
        if law is None:
            row[:b] = _positive_law(b, named_generator(seed, "planted entry", b, n, *context))
        else:
            row[:b] = 1 / b if place is None else law(context[place] - b, context[place + 1 :])
        return row

    starts = np.zeros((n_starts, K), dtype=np.int64)
    starts[:, 0] = np.arange(b + n, T)
    return PlantedEntry(grow_chain(starts, rule), (0,) * K, (0,) * (K - 1), np.arange(b, b + n))


def _positive_law(n_outcomes: int, generator: np.random.Generator) -> Array:
    """A Dirichlet(1) law mixed with a tenth of the uniform one, so that no outcome is lost to rounding."""
    return 0.9 * generator.dirichlet(np.ones(n_outcomes)) + 0.1 / n_outcomes
