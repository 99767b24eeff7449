"""A new token in a chain of order K: one mixture of old tokens at every age of the new one in the window."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from markov_theory.dictionary import Dictionary
from markov_theory.higher_order import HOLE, path_contexts
from markov_theory.higher_order_families import plant_entry
from markov_theory.sweep.axes import Point, Value
from markov_theory.sweep.problems.mixture import Mixture


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

    def rows(self, point: Point) -> Dictionary:
        """See `Problem`."""
        return self._dictionary(point["order"], point["branching"], point["tokens"])

    def _make(self, *shape: Any) -> Dictionary:
        order, branching, n_tokens = shape
        entry = plant_entry(order, branching, n_tokens, seed=self.seed)
        holes = path_contexts(entry.context, entry.path)  # (K, K)
        laws = [
            entry.chain.transitions[entry.chain.places(np.where(holes == HOLE, v, holes)), :branching]
            for v in entry.tokens.tolist()
        ]
        stacked = np.array(laws).reshape(n_tokens, order * branching) / order
        return Dictionary(stacked, origin=f"made: chain of higher order, seed {self.seed}")
