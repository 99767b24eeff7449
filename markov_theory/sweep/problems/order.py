"""A new token in a chain of order K: one mixture of old tokens at every age of the new one in the window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory.bounds.base import Bound
from markov_theory.bounds.higher_order import K1, needs_more_tokens
from markov_theory.dictionary import Dictionary
from markov_theory.higher_order import HOLE, HigherOrderChain, path_contexts
from markov_theory.higher_order_families import plant_entry
from markov_theory.instance import Instance
from markov_theory.sweep.axes import Point, Value
from markov_theory.sweep.problems.base import Kept, Truth
from markov_theory.sweep.problems.mixture import Mixture, MixtureTruth, mixture_bound
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED

SAME = 1e-9  # relative error of a lifted row that is rounding


@dataclass(frozen=True, eq=False)
class Path:
    """The contexts that a new token passes through on one path of a chain, and the tokens that it can be mapped to.

    Attributes
    ----------
    chain : HigherOrderChain
    contexts : ndarray of int, shape (K, K)
        h_1(u), …, h_K(u), `HOLE` for u.
    tokens : ndarray of int, shape (T,)
        Old tokens, one a row of the dictionary.
    dictionary : Dictionary
        Their laws in the K contexts, stacked.
    """

    chain: HigherOrderChain
    contexts: IntArray
    tokens: IntArray
    dictionary: Dictionary

    @property
    def order(self) -> int:
        """K."""
        return self.contexts.shape[1]

    def representation(self, alpha: Array, most: int) -> tuple[int, str]:
        """Tokens that give the K lifted rows of weights α (T,) on the rows, and whether that is at most `most`.

        ``"holds"`` if Carathéodory's reduction leaves that few, with the same rows up to rounding; ``"violated"`` if it
        does not and no set of that many tokens has them.
        """
        weights = np.zeros(self.chain.n_tokens)
        weights[self.tokens] = alpha
        reduced = self.chain.sparsify(self.contexts, weights)
        needed = reduced.support.size
        if needed <= most and reduced.residual <= SAME:
            return needed, HOLDS
        return needed, VIOLATED if needs_more_tokens(self.chain, self.contexts, weights, most) else INCONCLUSIVE


class HigherOrderTruth(MixtureTruth):
    """One lifted map, learned to a mean KL over the ages of at most ε; K1 is checked at it."""

    def __init__(self, instance: Instance, path: Path) -> None:
        super().__init__(instance)
        self.path = path
        self.enough = K1.sparsity(path.order, path.chain.branching)

    def bound(self, bound: type[Bound], guarantee: str, epsilon: float, delta: float) -> float | None:
        """See `Truth`; by K1 no more than K(b−1)+1 rows are needed to mix whatever all T can."""
        return mixture_bound(self.instance, bound, guarantee, epsilon, delta, self.enough)

    def facts(self, epsilon: float) -> dict[str, float | bool | str]:
        """See `Truth`; ``K1`` tokens suffice, ``K1_needed`` are left of the truth's, or of the mean of all."""
        needed, verdict = self._represented
        return super().facts(epsilon) | {"K1": self.enough, "K1_needed": needed, "K1_verdict": verdict}

    def verdicts(self) -> dict[str, str]:
        """See `Truth`."""
        return {K1.label: self._represented[1]}

    @cached_property
    def _represented(self) -> tuple[int, str]:
        """K1 at two mixtures: the truth, and the mean of all rows; the worse verdict."""
        mean = np.full(self.instance.n_tokens, 1 / self.instance.n_tokens)
        found = [self.path.representation(alpha, self.enough) for alpha in (self.instance.alpha, mean)]
        verdicts = [verdict for _, verdict in found]
        worst = next((v for v in (VIOLATED, INCONCLUSIVE) if v in verdicts), HOLDS)
        return max(needed for needed, _ in found), worst


class HigherOrder(Mixture):
    """Chains of order K whose contexts have at most b successors.

    Row v of the dictionary stacks the K laws p(·|h_k(v)) of one path, each over b successors and divided by K, so
    that q is the lifted map's law of (age, next token) at a random age, and KL(q‖q̂) the mean over the ages.
    """

    name = "higher-order"
    words = (
        "chains of order K, contexts with b successors each: N counts transitions out of the K contexts that hold the "
        "new token, and KL is the mean over them"
    )
    main = "order"
    selected_by: ClassVar[tuple[str, ...]] = ("order", "branching")
    axes: ClassVar[dict[str, Value]] = {
        "s": 4, "tokens": 8, "epsilon": 1e-3, "delta": 0.05, "order": 2, "branching": 8,
    }  # fmt: skip
    options: ClassVar[dict[str, Any]] = {}
    takes_rows = False
    kept_paths: ClassVar[int] = 8

    def __init__(self, seed: int, options: Mapping[str, Any], given: Dictionary | None = None) -> None:
        super().__init__(seed, options, given)
        self._paths = Kept(self._path, lambda path: path.dictionary, self.kept_paths)

    def path(self, point: Point) -> Path:
        """The path of the new token at a point."""
        return self._paths(point["order"], point["branching"], point["tokens"])

    def rows(self, point: Point) -> Dictionary:
        """See `Problem`."""
        return self.path(point).dictionary

    def _truth(self, point: Point, index: int) -> Truth:
        return HigherOrderTruth(self.planted(point, index), self.path(point))

    def _path(self, order: int, branching: int, n_tokens: int) -> Path:
        entry = plant_entry(order, branching, n_tokens, seed=self.seed)
        contexts = path_contexts(entry.context, entry.path)
        laws = [
            entry.chain.transitions[entry.chain.places(np.where(contexts == HOLE, v, contexts)), :branching]
            for v in entry.tokens.tolist()
        ]
        stacked = np.array(laws).reshape(n_tokens, order * branching) / order
        mean = np.zeros(entry.chain.n_tokens)
        mean[entry.tokens] = 1 / n_tokens
        notes = {
            "K1: tokens that suffice, K(b-1)+1": float(K1.sparsity(order, branching)),
            "tokens that the mean of all rows needs": float(entry.chain.sparsify(contexts, mean).support.size),
        }
        rows = Dictionary(stacked, origin=f"made: chain of higher order, seed {self.seed}", notes=notes)
        return Path(entry.chain, contexts, entry.tokens, rows)
