"""Chains of order K: how many old tokens a new one needs at most, and a chain where it needs no fewer.

`K1` bounds a sparsity s, not a number of samples, so it is no `Bound`: what it gives goes into the bounds for sparse
mixtures (`S1`, `S2`, …) as their s, and leaves their log C(|A|, s) untouched.
"""

from __future__ import annotations

import itertools
import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Kind
from markov_theory.higher_order import Context, HigherOrderChain
from markov_theory.higher_order_families import PlantedEntry, plant_entry

MAX_SETS = 20_000
MISSED = 1e-9  # distance of the stacked rows from a hull, above rounding, that keeps them out of it


class K1:
    """Representation: ``s ≤ K(b−1)+1 ≤ K·b`` old tokens give all K rows of a new token's path exactly.

    K is the order of the chain. The new token u maps to a law α over A, the old tokens v for which every context
    h_k(v) can occur, with p̃(·|h_k(u)) = Σ_v α_v p(·|h_k(v)) for k = 1, …, K; and *every* context, the new ones
    included, has at most b successors. The paper claims the order, s = O(K·b); the constant is derived here.

    Attained, for every K and b (`tight_entry`). Not true in looser readings: if only old contexts have at most b
    successors, s can be as large as |A|; and the weights that serve all n_u contexts of an entry at once, over all
    paths, number up to n_u(b−1)+1 with n_u = (b^K−1)/(b−1) (`whole_entry`).

    Attributes
    ----------
    label, origin, statement, reason : str
        As in `markov_theory.bounds.base.Bound`.

    Examples
    --------
    >>> K1.sparsity(order=2, branching=2), K1.sparsity(order=3, branching=2, whole_entry=True)
    (3, 8)
    """

    label: ClassVar[str] = "K1"
    kind: ClassVar[Kind] = "upper"
    origin: ClassVar[str] = "derived"
    statement: ClassVar[str] = (
        "for every law alpha over A some alpha' with |alpha'|_0 <= K(b-1)+1 has the same K lifted rows "
        "sum_v alpha_v p(.|h_k(v)), k = 1..K, if each of the K new contexts has at most b successors"
    )
    reason: ClassVar[str] = (
        "Weights are non-negative, so the rows in use live on the at most b successors of the new context. The K "
        "stacked rows are points of an affine space of dimension K(b-1), one constraint a row. Caratheodory."
    )

    @staticmethod
    def sparsity(order: int, branching: int, whole_entry: bool = False) -> int:
        """Return the number of old tokens that suffice: on one path, or in all contexts of an entry.

        Raises
        ------
        ValueError, TypeError
            If `order` or `branching` is not a whole number >= 1.
        """
        K, b = _checks.whole(order, "order", low=1), _checks.whole(branching, "branching", low=1)
        return (entry_size(K, b) if whole_entry else K) * (b - 1) + 1


def entry_size(order: int, branching: int) -> int:
    """Contexts of an entry over all its paths: ``n_u = 1 + b + … + b^{K−1}``."""
    return sum(branching**age for age in range(order))


def tight_entry(order: int, branching: int, whole_entry: bool = False) -> tuple[PlantedEntry, Array]:
    """A chain of order K with b successors a context where uniform weights on some tokens cannot be made sparser.

    Parameters
    ----------
    order, branching : int
        K, b >= 1.
    whole_entry : bool
        Whether all contexts of the entry are to be served, or those of one path.

    Returns
    -------
    entry : PlantedEntry
        With n = `K1.sparsity` tokens, of which one has the uniform law in every context, as have all other candidates
        that can be used, and each of the others a different law in one context: the mean of the uniform law and one
        successor. The n stacked rows are affinely independent, so that each of them is needed.
    alpha : ndarray, shape (T,)
        1/n on each of them.

    Examples
    --------
    >>> entry, alpha = tight_entry(2, 2)
    >>> int((alpha > 0).sum())
    3
    """
    n_mapped = K1.sparsity(order, branching, whole_entry)
    b = branching
    if whole_entry:
        contexts = [after for age in range(order) for after in np.ndindex(*(b,) * age)]
    else:
        contexts = [(0,) * age for age in range(order)]
    place = {after: i for i, after in enumerate(contexts)}

    def law(token: int, after: Context) -> Array:
        row = np.full(b, 1 / b)
        context, successor = divmod(token - 1, max(b - 1, 1))
        if token > 0 and place.get(after) == context:
            row = row / 2
            row[successor] += 0.5
        return row

    planted = plant_entry(order, branching, n_mapped, law=law)
    alpha = np.zeros(planted.chain.n_tokens)
    alpha[planted.tokens] = 1 / n_mapped
    return planted, alpha


def needs_more_tokens(chain: HigherOrderChain, new_contexts: ArrayLike, alpha: ArrayLike, n_tokens: int) -> bool:
    """Whether no mixture of `n_tokens` old tokens has the lifted rows of α in the new contexts: all sets are tried.

    Parameters
    ----------
    chain : HigherOrderChain
    new_contexts : array_like of int, shape (n, K)
        With `markov_theory.higher_order.HOLE` for the new token.
    alpha : array_like, shape (T,)
    n_tokens : int
        >= 1.

    Returns
    -------
    bool
        False where there are more than 20,000 sets: then nothing is known.

    Examples
    --------
    >>> from markov_theory.higher_order import path_contexts
    >>> entry, alpha = tight_entry(2, 2)
    >>> holes = path_contexts(entry.context, entry.path)
    >>> needs_more_tokens(entry.chain, holes, alpha, 2), needs_more_tokens(entry.chain, holes, alpha, 3)
    (True, False)
    """
    size = _checks.whole(n_tokens, "n_tokens", low=1)
    target = chain.lifted_rows(new_contexts, alpha).ravel()
    each = np.eye(chain.n_tokens)
    rows = np.array([chain.lifted_rows(new_contexts, each[v]).ravel() for v in chain.candidates(new_contexts)])
    usable = rows[~(rows[:, target == 0] > 0).any(axis=1)]  # weights are non-negative
    size = min(size, len(usable))
    if math.comb(len(usable), size) > MAX_SETS:
        return False
    live = target > 0
    equations, sought = usable[:, live].T, target[live]  # rows sum to one, and so do the weights then
    return all(
        nnls(equations[:, list(chosen)], sought)[1] > MISSED
        for chosen in itertools.combinations(range(len(usable)), size)
    )
