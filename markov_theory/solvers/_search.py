"""The search of exact ℓ0 for one problem: nodes in a heap by certified bound, ties collected on the way."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, field

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory.solvers._branching import branch_rows, relax
from markov_theory.solvers._splicing import pursue_batch

Support = tuple[int, ...]
NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)
WORST = -1e300  # below every finite log-likelihood: what can give the data only with probability zero is closed
EASY = 0.3  # the first round of a solve is as accurate as this part of the distance to be told
COARSE = 3e-2  # accuracy of the first rounds of a solve, at most, nats


@dataclass(frozen=True)
class Limits:
    """What ends a search early: problems solved, seconds, and the number of tied supports that are listed."""

    nodes: int
    seconds: float | None
    ties: int


@dataclass(frozen=True, order=True)
class _Node:
    """An open node; the heap takes the largest bound first, then the deepest."""

    key: tuple[float, int, int]
    included: IntArray = field(compare=False)
    excluded: IntArray = field(compare=False)
    rows: IntArray = field(compare=False)
    weights: Array = field(compare=False)

    @property
    def upper(self) -> float:
        return -self.key[0]


class Search:
    """Branch and bound for ``max Σ f log(Aᵀα)``, ‖α‖₀ ≤ s, over rows of which no two are equal.

    Parameters
    ----------
    A : ndarray, shape (T, J)
        Distinct rows on the observed outcomes.
    f : ndarray, shape (J,)
        Positive frequencies of total 1.
    sparsity : int
        1 ≤ s ≤ T.
    tolerance : float
        Gap to reach; the parts that add up to it are the supports' slack (half) and the accuracies of the fits.
    limits : Limits
    """

    def __init__(self, A: Array, f: Array, sparsity: int, tolerance: float, limits: Limits) -> None:
        self.A, self.f, self.sparsity, self.limits = A, f, sparsity, limits
        self.slack, self.accuracy = 0.5 * tolerance, 0.125 * tolerance
        self.found: dict[Support, tuple[float, Array]] = {}
        self.best = -np.inf
        self.closed = -np.inf  # largest bound of what was closed
        self.nodes = 0
        self.all_ties = True
        self.stopped = False  # by a limit on nodes or time
        self.heap: list[_Node] = []

    def run(self) -> None:
        """Search until no open node can hold a better support or an unlisted tie, or a limit is reached."""
        end = None if self.limits.seconds is None else time.monotonic() + self.limits.seconds
        self._root()
        while self.heap:
            if self.heap[0].upper < self._threshold():
                break
            if self.nodes >= self.limits.nodes or (end is not None and time.monotonic() >= end):
                self.all_ties, self.stopped = False, True
                break
            self._branch(heapq.heappop(self.heap))

    @property
    def upper(self) -> float:
        """Certified bound on the maximum over all supports."""
        return max(self.closed, self.heap[0].upper if self.heap else -np.inf, self.best)

    def ties(self) -> list[tuple[Support, tuple[float, Array]]]:
        """Supports that attain the maximum and contain no other that does, in lexicographic order, with weights."""
        attaining = {support: kept for support, kept in self.found.items() if kept[0] >= self.best - self.slack}
        if not self.all_ties:  # otherwise whatever a support contains has been found too
            attaining = dict(self._reduced(*item) for item in attaining.items())
        sets = [set(support) for support in attaining]
        minimal = sorted(support for support in attaining if not any(other < set(support) for other in sets))
        return [(support, attaining[support]) for support in minimal]

    def _reduced(self, support: Support, kept: tuple[float, Array]) -> tuple[Support, tuple[float, Array]]:
        """Drop rows, the last first, that the maximum does not need."""
        for v in reversed(support):
            rest = np.array([u for u in support if u != v], dtype=np.int64)
            weights = kept[1][np.array(support) != v]
            if rest.size == 0:
                break
            rows, z, value, _ = self._fit(rest, weights, COARSE)
            if value >= self.best - self.slack:
                order = np.argsort(rows)
                return self._reduced(tuple(rows[order].tolist()), (value, z[order]))
        return support, kept

    def _threshold(self) -> float:
        """Nodes bounded below this are closed."""
        return max(self.best - (self.slack if self.all_ties else -0.5 * self.slack), WORST)

    def _record(self, rows: IntArray, weights: Array, value: float) -> None:
        if value < self.best - self.slack or value == -np.inf:
            return
        order = np.argsort(rows)
        self.found.setdefault(tuple(rows[order].tolist()), (value, weights[order]))
        if value > self.best:
            self.best = value
            self.found = {s: kept for s, kept in self.found.items() if kept[0] >= value - self.slack}
        if len(self.found) > self.limits.ties:
            self.all_ties = False

    def _root(self) -> None:
        T = self.A.shape[0]
        start = np.argsort(-(self.A @ (self.f / self.A.mean(axis=0))), kind="stable")[: min(16, T)]
        nothing = np.zeros(T, dtype=np.bool_)
        weights = np.full(start.size, 1 / start.size)
        rows, weights, _, upper = relax(self.A, self.f, nothing, start, weights, -np.inf, T + 1, 1e-3, self.accuracy)
        self.nodes += 1
        relaxed = np.zeros((1, T))
        relaxed[0, rows] = weights
        alpha, value, _ = pursue_batch(self.A, self.f[None], relaxed, self.sparsity, self.accuracy)
        support = np.flatnonzero(alpha[0])
        self._record(support, alpha[0, support], float(value[0]))
        heapq.heappush(self.heap, _Node((-upper, 0, 0), NO_ROWS, NO_ROWS, rows, weights))

    def _branch(self, node: _Node) -> None:
        """Replace a node by its children."""
        room = self.sparsity - node.included.size
        branch, starts, losses = branch_rows(self.A, self.f, node.included, node.rows, node.weights, room)
        self._leaf(np.concatenate((node.included, branch)), node)
        if branch.size < room:
            self.closed = max(self.closed, node.upper)
        banned = np.zeros(self.A.shape[0], dtype=np.bool_)
        banned[node.excluded] = True
        for i, v in enumerate(branch):
            banned[v] = True
            stay = node.rows != v
            aim = self._aim(node.upper - losses[i])
            rows, weights, _, upper = relax(
                self.A,
                self.f,
                banned,
                node.rows[stay],
                starts[i][stay],
                self._threshold(),
                self.sparsity,
                aim,
                self.accuracy,
            )
            banned[v] = False
            self.nodes += 1
            upper = min(upper, node.upper)
            if upper < self._threshold():
                self.closed = max(self.closed, upper)
                continue
            included, excluded = np.append(node.included, branch[:i]), np.append(node.excluded, v)
            key = (-upper, -included.size, self.nodes)
            heapq.heappush(self.heap, _Node(key, included, excluded, rows, weights))

    def _aim(self, expected: float) -> float:
        """Accuracy for the first round of a solve: a part of the expected bound's distance from the threshold."""
        return min(max(EASY * abs(expected - self._threshold()), self.accuracy), COARSE)

    def _leaf(self, leaf: IntArray, node: _Node) -> None:
        """Fit and record the mixtures of the rows `leaf`, starting from the node's weights."""
        start = np.zeros(self.A.shape[0])
        start[node.rows] = node.weights
        rows, weights, value, upper = self._fit(leaf, start[leaf], self._aim(node.upper))
        self.nodes += 1
        self.closed = max(self.closed, upper)
        self._record(rows, weights, value)

    def _fit(self, leaf: IntArray, weights: Array, aim: float) -> tuple[IntArray, Array, float, float]:
        """`relax` over the rows `leaf` alone, from near the given weights."""
        start = 0.9 * weights / max(weights.sum(), 1e-300) + 0.1 / leaf.size
        nothing = np.zeros(leaf.size, dtype=np.bool_)
        everything = np.arange(leaf.size)
        rows, weights, value, upper = relax(
            self.A[leaf], self.f, nothing, everything, start, self._threshold(), leaf.size + 1, aim, self.accuracy
        )
        return leaf[rows], weights, value, upper
