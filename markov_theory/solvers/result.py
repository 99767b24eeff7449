"""What every solver of mixture weights returns."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markov_theory._checks import MAX_SAMPLES, Array, as_counts, as_transitions
from markov_theory._compile import COMPILED, compiled

ROUNDING = 1e-13  # rows whose sums are this close to one are taken as they are, without a copy
OPTIMAL, INACCURATE, FEASIBLE, NO_DATA = "optimal", "inaccurate", "feasible", "no data"
ONE_OPTIMAL = np.array([OPTIMAL], dtype="<U10")


@dataclass(frozen=True, eq=False)
class MixtureFit:
    """Weights of R mixtures with the certificate of each.

    Attributes
    ----------
    alpha : ndarray, shape (R, T)
        Weights: non-negative exactly, of sum 1 to 1e-12; zeros are exact zeros.
    gap : ndarray, shape (R,)
        Certified bound, in nats per sample, on how far the log-likelihood lies below its maximum over the
        class that the solver searches.
    status : ndarray of str, shape (R,)
        ``"optimal"``: gap within tolerance. ``"inaccurate"``: not, although the solver aims at it.
        ``"feasible"``: a heuristic's answer with its proven gap. ``"no data"``: no counts; uniform weights.
    """

    alpha: Array
    gap: Array
    status: NDArray[np.str_]

    @property
    def support_sizes(self) -> NDArray[np.int64]:
        """Number of non-zero weights of each mixture, shape (R,)."""
        return (self.alpha > 0).sum(axis=1)


def frequencies(transitions: ArrayLike, counts: ArrayLike) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Validate; return rows (T, J), frequencies (R, J) of total 1 (0 without data), and who has data (R,).

    Raises
    ------
    ValueError
        If an outcome was observed to which no row gives positive probability: every likelihood is zero then.
    """
    if COMPILED and plain(transitions, counts):
        n = table(counts, transitions.shape[1])
        F, has_data = np.empty(n.shape), np.empty(n.shape[0], dtype=np.bool_)
        if in_order(transitions, n, F, has_data):
            return transitions, F, has_data
    P = transitions if _stochastic(transitions) else as_transitions(transitions)
    n = np.atleast_2d(as_counts(counts, P.shape[1]))
    impossible = n.any(axis=0) & ~P.any(axis=0)
    if impossible.any():
        raise ValueError(
            f"outcome {int(impossible.argmax())} was observed but no row of the dictionary gives it positive "
            "probability, so every mixture has likelihood zero; smooth the rows or drop the outcome"
        )
    totals = n.sum(axis=1)
    return P, n / np.maximum(totals, 1)[:, None], totals > 0


def table(counts: ArrayLike, n_outcomes: int) -> Array:
    """The counts of one or several problems as doubles, shape (R, J)."""
    return np.ascontiguousarray(counts, dtype=np.float64).reshape(-1, n_outcomes)


def plain(transitions: ArrayLike, counts: ArrayLike) -> TypeGuard[Array]:
    """Whether both are arrays of numbers whose types and shapes fit."""
    return (
        _contiguous(transitions)
        and type(counts) is np.ndarray
        and counts.dtype.kind in "iuf"
        and counts.ndim in (1, 2)
        and counts.shape[-1] == transitions.shape[1]
    )


def _contiguous(values: ArrayLike) -> TypeGuard[Array]:
    """Whether `values` are a matrix of doubles, row after row."""
    return (
        type(values) is np.ndarray
        and values.dtype == np.float64
        and values.ndim == 2
        and values.size > 0
        and values.flags.c_contiguous
    )


@compiled
def _checked(P: Array, observed: NDArray[np.bool_]) -> bool:
    """Whether rows are laws, and each observed outcome is possible under one of them."""
    sums, negative = np.dot(P, np.ones(P.shape[1])), False
    for v in range(P.shape[0]):
        for j in range(P.shape[1]):
            negative |= P[v, j] < 0.0
        if negative or not abs(sums[v] - 1.0) <= ROUNDING:
            return False
    for j in range(P.shape[1]):
        if observed[j]:
            v = 0
            while v < P.shape[0] and not P[v, j] > 0.0:
                v += 1
            if v == P.shape[0]:
                return False
    return True


@compiled
def in_order(P: Array, n: Array, F: Array, has_data: NDArray[np.bool_]) -> bool:
    """Fill in the frequencies; whether all is as `frequencies` wants it (if not, what is wrong is found by others)."""
    observed = np.zeros(P.shape[1], dtype=np.bool_)
    for i in range(n.shape[0]):
        total = 0.0
        for j in range(n.shape[1]):
            if not n[i, j] >= 0.0 or n[i, j] != math.floor(n[i, j]):
                return False
            total += n[i, j]
            observed[j] |= n[i, j] > 0.0
        if total > MAX_SAMPLES:
            return False
        has_data[i] = total > 0.0
        for j in range(n.shape[1]):
            F[i, j] = n[i, j] / max(total, 1.0)
    return _checked(P, observed)


def _stochastic(values: ArrayLike) -> TypeGuard[Array]:
    """Whether `values` are what `as_transitions` returns: checking that is much cheaper than copying large rows."""
    if not _contiguous(values):
        return False
    sums = values @ np.ones(values.shape[1])
    return bool(np.abs(sums - 1).max() <= ROUNDING and values.min() >= 0)


def certified(alpha: Array, gap: Array, has_data: NDArray[np.bool_], tolerance: float, aim: str) -> MixtureFit:
    """Assemble a fit: problems without data get uniform weights; those above tolerance get status `aim`."""
    if has_data.all() and gap.max(initial=0.0) <= tolerance:
        return MixtureFit(alpha, np.maximum(gap, 0.0), ONE_OPTIMAL.repeat(gap.size))
    alpha[~has_data] = 1 / alpha.shape[1]
    gap = np.where(has_data, np.maximum(gap, 0.0), 0.0)
    status = np.where(~has_data, NO_DATA, np.where(gap <= tolerance, OPTIMAL, aim))
    missed = int((status == INACCURATE).sum())
    if missed:
        warnings.warn(
            f"{missed} of {gap.size} fits did not reach a gap of {tolerance:g} nats per sample (worst {gap.max():.3g})",
            stacklevel=3,
        )
    return MixtureFit(alpha, gap, status)
