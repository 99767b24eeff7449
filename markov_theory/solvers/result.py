"""What every solver of mixture weights returns."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markov_theory._checks import Array, as_counts, as_transitions

ROUNDING = 1e-13  # rows whose sums are this close to one are taken as they are, without a copy
OPTIMAL, INACCURATE, FEASIBLE, NO_DATA = "optimal", "inaccurate", "feasible", "no data"


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


def _stochastic(values: ArrayLike) -> TypeGuard[Array]:
    """Whether `values` are what `as_transitions` returns: checking that is much cheaper than copying large rows."""
    if not (isinstance(values, np.ndarray) and values.dtype == np.float64 and values.ndim == 2 and values.size > 0):
        return False
    if not values.flags.c_contiguous:
        return False
    sums = values @ np.ones(values.shape[1])
    return bool(np.abs(sums - 1).max() <= ROUNDING and values.min() >= 0)


def certified(alpha: Array, gap: Array, has_data: NDArray[np.bool_], tolerance: float, aim: str) -> MixtureFit:
    """Assemble a fit: problems without data get uniform weights; those above tolerance get status `aim`."""
    if has_data.all() and gap.max() <= tolerance:
        return MixtureFit(alpha, np.maximum(gap, 0.0), np.full(gap.size, OPTIMAL, dtype="<U10"))
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
