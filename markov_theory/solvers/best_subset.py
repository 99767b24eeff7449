"""Exact ℓ0: the best mixture of at most s rows, by branch and bound with certificates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markov_theory._checks import Array, positive, whole
from markov_theory.solvers._search import Limits, Search, Support
from markov_theory.solvers.result import FEASIBLE, INACCURATE, MixtureFit, certified, frequencies

MAX_NODES = 20_000
MAX_TIES = 100


@dataclass(frozen=True, eq=False)
class BestSubset(MixtureFit):
    """A `MixtureFit` with the supports that attain the maximum.

    Attributes
    ----------
    supports : tuple of tuple of tuple of int, length R
        Supports whose likelihood is within half the tolerance of the best found and that contain no smaller
        such support, in lexicographic order; the weights are those on the first. More than one entry: the support
        is not unique, as with duplicate rows.
    complete : ndarray of bool, shape (R,)
        Whether `supports` holds all of them: not so if a limit on nodes, time or ties ended the search for more.
    nodes : ndarray of int, shape (R,)
        Concave problems solved, relaxed ones and fits on s rows; 0 where none was needed.
    """

    supports: tuple[tuple[Support, ...], ...]
    complete: NDArray[np.bool_]
    nodes: NDArray[np.int64]


@dataclass
class _Answer:
    """The answer to one problem; `stopped`: a limit on nodes or time was reached."""

    alpha: Array
    gap: float
    supports: tuple[Support, ...]
    complete: bool
    nodes: int = 0
    stopped: bool = False


def best_subset(
    transitions: ArrayLike,
    counts: ArrayLike,
    sparsity: int,
    tolerance: float = 1e-9,
    *,
    max_nodes: int = MAX_NODES,
    time_limit: float | None = None,
    max_ties: int = MAX_TIES,
) -> BestSubset:
    """Solve ``max Σ_j n_j log (Pᵀα)_j`` over α ∈ Δ with ‖α‖₀ ≤ s exactly, or say how far the answer may be off.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,) or (R, J)
    sparsity : int
        s >= 1; values above T mean T.
    tolerance : float
        Certified gap to reach, nats per sample; supports within half of it of the best count as ties.
    max_nodes : int
        Relaxed problems and fits to solve for each of the R problems, to within s + 1; then the best mixture found
        is returned with status ``"feasible"`` and its proven gap.
    time_limit : float, optional
        Seconds for each problem, to the same effect. The answer then depends on the machine and its load, which
        `max_nodes` does not.
    max_ties : int
        Supports to list for each problem.

    Returns
    -------
    BestSubset
        ``gap`` is the largest bound of all that was cut off or left open, minus the likelihood reached.

    Raises
    ------
    ValueError, TypeError
        On wrong shapes or values; see `simplex_mle`.

    Notes
    -----
    Best-first branch and bound from the answer of KL pursuit; see `markov_theory.solvers._branching`. Rows that
    agree on all observed outcomes are merged first and told apart in `supports`. If no s rows give every observed
    outcome positive probability, all supports tie at likelihood zero and the weights are on row 0.

    Truths that are sparse beside many samples take few nodes. Few samples, or a true support larger than s, take
    very many, since then many supports come close to the best.

    Examples
    --------
    >>> fit = best_subset([[.9, .1], [.9, .1], [.2, .8]], [55, 45], 2)
    >>> fit.alpha.round(6).tolist(), fit.supports, fit.status.tolist()
    ([[0.5, 0.0, 0.5]], (((0, 2), (1, 2)),), ['optimal'])
    """
    sparsity = whole(sparsity, "sparsity", low=1)
    tolerance = positive(tolerance, "tolerance")
    limits = Limits(
        whole(max_nodes, "max_nodes", low=1),
        None if time_limit is None else positive(time_limit, "time_limit"),
        whole(max_ties, "max_ties", low=1),
    )
    P, F, has_data = frequencies(transitions, counts)
    if sparsity == 1:
        answers = _single_rows(P, F, tolerance, limits.ties)
    else:
        answers = [_search(P, f, sparsity, tolerance, limits) for f in F]
    alpha = np.array([answer.alpha for answer in answers])
    gap = np.array([answer.gap for answer in answers])
    stopped = np.array([answer.stopped for answer in answers]) & (gap > tolerance)
    fit = certified(alpha, np.where(stopped, 0.0, gap), has_data, tolerance, INACCURATE)
    return BestSubset(
        fit.alpha,
        np.where(stopped, gap, fit.gap),
        np.where(stopped, FEASIBLE, fit.status),
        tuple(answer.supports for answer in answers),
        np.array([answer.complete for answer in answers]),
        np.array([answer.nodes for answer in answers]),
    )


def _search(P: Array, f: Array, sparsity: int, tolerance: float, limits: Limits) -> _Answer:
    """Solve one problem: merge rows that are equal where it matters, search, and tell them apart again."""
    seen = np.flatnonzero(f)
    if seen.size == 0:
        return _all_rows_tie(P.shape[0], limits.ties)
    A = P if seen.size == f.size else np.ascontiguousarray(P[:, seen])
    classes = _classes(A)
    first = np.array([members[0] for members in classes])
    search = Search(A if first.size == len(A) else A[first], f[seen], min(sparsity, len(classes)), tolerance, limits)
    search.run()
    ties = search.ties()
    if not ties:
        answer = _all_rows_tie(P.shape[0], limits.ties)
        return answer if not search.stopped else _Answer(answer.alpha, np.inf, (), False, search.nodes, True)
    support, (value, weights) = ties[0]
    alpha = np.zeros(P.shape[0])
    alpha[first[list(support)]] = weights
    supports, whole_list = _listed(_expanded([tie for tie, _ in ties], classes), limits.ties)
    complete = whole_list and search.all_ties
    return _Answer(alpha, search.upper - value, supports, complete, search.nodes, search.stopped)


def _single_rows(P: Array, F: Array, tolerance: float, max_ties: int) -> list[_Answer]:
    """Compare all rows for all problems: for s = 1 this is exact."""
    log_rows = np.log(P, where=P > 0, out=np.zeros_like(P))
    values = F @ log_rows.T
    if (P == 0).any():
        values[(F > 0).astype(float) @ (P == 0).T.astype(float) > 0] = -np.inf
    answers = []
    for value in values:
        best = value.max()
        if best == -np.inf:
            answers.append(_all_rows_tie(P.shape[0], max_ties))
            continue
        tied = np.flatnonzero(value >= best - 0.5 * tolerance)
        alpha = np.zeros(P.shape[0])
        alpha[tied[0]] = 1.0
        supports, complete = _listed(((int(v),) for v in tied), max_ties)
        answers.append(_Answer(alpha, float(best - value[tied[0]]), supports, complete))
    return answers


def _all_rows_tie(n_rows: int, max_ties: int) -> _Answer:
    """Without data, or with data that no support can give, every row is as good as every mixture."""
    alpha = np.zeros(n_rows)
    alpha[0] = 1.0
    return _Answer(alpha, 0.0, *_listed(((v,) for v in range(n_rows)), max_ties))


def _classes(A: Array) -> list[list[int]]:
    """Indices of equal rows, each class ascending, classes by their first index."""
    if len(set(A[:, 0].tolist())) == len(A):
        return [[v] for v in range(len(A))]
    prefixes: dict[bytes, list[int]] = {}
    for v, start in enumerate(np.ascontiguousarray(A[:, :4])):
        prefixes.setdefault(start.tobytes(), []).append(v)
    classes: list[list[int]] = []
    for members in prefixes.values():
        equal: dict[bytes, list[int]] = {}
        for v in members:
            equal.setdefault(A[v].tobytes() if len(members) > 1 else b"", []).append(v)
        classes.extend(equal.values())
    return sorted(classes)


def _expanded(ties: list[Support], classes: list[list[int]]) -> Iterator[Support]:
    """Each tied support with every choice of one row from each of its classes."""
    for tie in ties:
        for choice in product(*(classes[v] for v in tie)):
            yield tuple(sorted(choice))


def _listed(supports: Iterator[Support], limit: int) -> tuple[tuple[Support, ...], bool]:
    """Sort the first `limit` supports; say whether there were no more."""
    listed = list(islice(supports, limit + 1))
    return tuple(sorted(listed[:limit])), len(listed) <= limit
