"""A bound against the exact oracle at one small instance: whether it is refuted, and how far it is from N*."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from markov_theory._checks import IntArray
from markov_theory.bounds.base import Bound
from markov_theory.verify.cases import CLOSED_FORM, Case
from markov_theory.verify.oracles import target_of

BEYOND = (1.0, 1.02, 1.1, 1.3, 1.7, 2.5)  # an upper bound is tried at N and at these multiples
RUN = 24  # ... and at so many whole numbers in a row
MOST_SCANNED, FEW_SCANNED = 200_000, 60
MOST_ENUMERATED = 150  # N between a witness of N*_last and Chernoff's, where each is enumerated: milliseconds apiece
FAR = 0.05  # share of δ: where N is dear and failure at an upper bound less than this, nothing beyond it is tried
FLOOR = 1e-13


@dataclass(frozen=True, eq=False)
class Trial:
    """A bound at one case.

    Attributes
    ----------
    case : Case
    bound : float
        N, samples.
    score : float
        What the search climbs: log-tightness or, where N* is dear, its estimate log(log δ/log P(failure)), as if
        failure fell exponentially with N.
    refuted_at : int or None
        An N that the bound says nothing can be wrong with, and something is.
    failure : float
        Failure probability at that N, else the largest seen at or above an upper bound, least below a lower one.
    """

    case: Case
    bound: float
    score: float
    refuted_at: int | None
    failure: float


def try_bound(bound: type[Bound], case: Case) -> Trial | None:
    """Compare a bound with the exact oracle at one case; None where it says nothing or is out of reach.

    Parameters
    ----------
    bound : type of Bound
    case : Case
    """
    N = case.bound(bound)
    N = math.ceil(N) if bound.kind == "upper" and math.isfinite(N) else N
    if not (0 <= N <= case.reach) or (bound.kind == "lower" and N <= 1):  # without a sample everything fails
        return None
    if bound.kind == "upper":
        return _try_upper(case, N)
    return _try_first(case, N) if target_of(bound) == "first" else _try_last(case, N)


def measured(trial: Trial, bound: type[Bound]) -> Trial:
    """A trial whose score is its log-tightness, also where the search climbed a failure probability instead."""
    case, N = trial.case, trial.bound
    if case.fast:
        return trial
    if target_of(bound) == "first":
        first = roughly_first(case, N)
        return replace(trial, score=math.log(N / max(first, 1.0)) if first < math.inf else -math.inf)
    if bound.kind == "upper":
        return replace(trial, score=_log(roughly_last(case, N) / max(N, 1.0)))
    return replace(trial, score=math.log(N / max(roughly_last(case, case.reach), 1.0)))


def _try_upper(case: Case, N: float) -> Trial:
    """Failure at N and beyond must be at most δ, and N above N*_last."""
    beyond = np.array([N], dtype=np.int64)
    failure = case.failures(beyond).low
    if case.fast or failure[0] > FAR * case.delta:
        multiples = np.array(BEYOND if case.fast else BEYOND[:2])
        more = np.unique(np.append(np.ceil(N * multiples), N + np.arange(RUN if case.fast else 2)))
        more = more[(more > N) & (more <= case.reach)].astype(np.int64)
        beyond, failure = np.append(beyond, more), np.append(failure, case.failures(more).low)
    worst = int(failure.argmax())
    if failure[worst] > case.admissible():
        return Trial(case, N, math.inf, int(beyond[worst]), float(failure[worst]))
    if N < 1 or case.failures(np.zeros(1, np.int64)).low[0] <= case.admissible():
        score = -math.inf  # nothing is asked for, or nothing is needed
    elif case.fast:
        score = _log(roughly_last(case, min(N, case.last_possible())) / N)
    else:
        score = math.log(math.log(1 / case.delta) / -math.log(min(failure[worst] + FLOOR, 1 - FLOOR)))
    return Trial(case, N, score, None, float(failure[worst]))


def _try_first(case: Case, N: float) -> Trial:
    """No N below a lower bound may do for every truth."""
    below = _below(N, 64 if case.fast else 4)
    failure = case.failures(below).high if below.size else np.ones(1)
    best = int(failure.argmin())
    if failure[best] <= case.admissible():
        return Trial(case, N, math.inf, int(below[best]), float(failure[best]))
    if not case.fast:
        score = math.log(math.log(min(failure[best], 1 - FLOOR)) / math.log(case.delta))
    else:
        score = math.log(N / max(roughly_first(case, N), 1.0))
    return Trial(case, N, score, None, float(failure[best]))


def _try_last(case: Case, N: float) -> Trial | None:
    """Failure must exceed δ at N = bound − 1 or, as N*_last says no more, somewhere beyond; None if that is open."""
    at = max(math.ceil(N) - 1, 0)
    failure = float(case.failures(np.array([at])).high[0])
    if not case.fast:
        beyond = np.unique(np.geomspace(at + 1, min(3 * (at + 1), case.reach), 6).astype(np.int64))
        if failure <= case.admissible() and (case.failures(beyond).high <= case.admissible()).all():
            return Trial(case, N, math.inf, at, failure)
        return Trial(case, N, math.log(case.delta / max(failure, FLOOR)), None, failure)
    limit = case.last_possible()
    last = roughly_last(case, limit)
    if last < N:
        if limit - last > MOST_SCANNED:  # a larger N may fail, unseen
            return None
        last = exactly_last(case)
    if last < N:
        return Trial(case, N, math.inf, at, failure)
    return Trial(case, N, math.log(N / last), None, failure)


def _log(ratio: float) -> float:
    return math.log(ratio) if ratio > 0 else -math.inf


def _below(N: float, n_points: int) -> IntArray:
    """Whole numbers below N: the last few, and a geometric grid down to 0."""
    top = max(math.ceil(N) - 1, -1)
    grid = np.append(np.geomspace(1, max(top, 1), n_points), [0, *range(top - n_points + 1, top + 1)])
    return np.unique(np.floor(grid[(grid >= 0) & (grid <= top)]).astype(np.int64))


def roughly_last(case: Case, high: float) -> float:
    """One more than a large N ≤ `high` at which failure exceeds δ, found on ever finer grids; 0 if none was.

    A witness: the true N*_last is at least this.
    """
    if high >= CLOSED_FORM:
        return math.inf
    n_points = (48, 48) if case.fast else (4, 3)
    grid, low, top = _geometric(int(high), n_points[0]), -1, int(high) + 1
    while grid.size:
        bad = np.flatnonzero(case.failures(grid).low > case.admissible())
        if bad.size:
            low, grid = int(grid[bad[-1]]), grid[bad[-1] + 1 :]
        if grid.size:
            top = int(grid[0])
        if low < 0:
            return 0.0
        grid = np.unique(np.linspace(low, top, n_points[1]).astype(np.int64))[1:-1]
    return float(low + 1)


def roughly_first(case: Case, start: float) -> float:
    """A small N ≥ `start` at which failure is at most δ, found on ever finer grids: N*_first is at most this."""
    low, step = max(int(start), 0), 1
    n_points = 32 if case.fast else 4
    while True:
        grid = np.unique(np.append(np.linspace(low, low + step, n_points).astype(np.int64), low + step))
        if grid[-1] > case.reach:
            return math.inf
        good = np.flatnonzero(case.failures(grid).high <= case.admissible())
        if good.size:
            first = int(grid[good[0]])
            if good[0] == 0 or first - grid[good[0] - 1] <= 1:
                return float(first)
            low, step = int(grid[good[0] - 1]), first - int(grid[good[0] - 1])
        else:
            low, step = int(grid[-1]), 2 * max(step, 1)


def exactly_last(case: Case, high: float = math.inf) -> float:
    """N*_last, scanning every N below `Case.last_possible` or, if that is less, below `high`.

    Where that is too much, one more than a large N at which failure exceeds δ: N*_last is at least that.
    """
    limit = min(high, case.last_possible())
    floor = roughly_last(case, limit)
    if limit - floor > (MOST_SCANNED if case.fast else MOST_ENUMERATED) or (
        not case.fast and math.isinf(case.last_possible())
    ):
        return floor
    stride = 65_536 if case.fast else 16
    for top in range(int(limit), int(floor) - 1, -stride):
        N = np.arange(max(int(floor), top - stride + 1), top + 1)
        bad = np.flatnonzero(case.failures(N).low > case.admissible())
        if bad.size:
            return float(N[bad[-1]] + 1)
    return floor


def exactly_first(case: Case) -> float:
    """N*_first, scanning every N from 0; where that is too much, an N that does: N*_first is at most that."""
    ceiling = roughly_first(case, 0.0)
    if not ceiling <= (MOST_SCANNED if case.fast else FEW_SCANNED):
        return ceiling
    for low in range(0, int(ceiling) + 1, 65_536):
        N = np.arange(low, min(low + 65_536, int(ceiling) + 1))
        good = np.flatnonzero(case.failures(N).high <= case.admissible())
        if good.size:
            return float(N[good[0]])
    return ceiling


def _geometric(top: int, n_points: int) -> IntArray:
    return np.unique(np.append(0, np.geomspace(1, max(top, 1), n_points)).astype(np.int64))
