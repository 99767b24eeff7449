"""Constrained KL: the mixture of rows that is closest to the data, with a certificate."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, positive
from markov_theory._compile import COMPILED, compiled
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers.result import (
    INACCURATE,
    ONE_OPTIMAL,
    MixtureFit,
    certified,
    frequencies,
    in_order,
    plain,
    table,
)

FIRST_ROWS = 16


def simplex_mle(transitions: ArrayLike, counts: ArrayLike, tolerance: float = 1e-9) -> MixtureFit:
    r"""Solve ``max_{α ∈ Δ} Σ_j n_j log (Pᵀα)_j``, that is, min KL(empirical row ‖ Pᵀα), for R problems at once.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
        Rows to mix.
    counts : array_like, shape (J,) or (R, J)
        Observed transitions out of the new token; whole numbers.
    tolerance : float
        Certified gap to reach, in nats per sample.

    Returns
    -------
    MixtureFit
        With r = n̂/q, the gap is ``log max_v Σ_j r_j p_v(j)``: by Jensen no mixture gains more per sample.

    Raises
    ------
    ValueError
        If shapes or values are wrong, or an observed outcome is impossible under every row.

    Notes
    -----
    Working-set Newton on the homogeneous form; see `markov_theory.solvers._newton`. The fitted law is unique
    where counts are positive; the weights need not be (duplicate rows).

    Examples
    --------
    >>> fit = simplex_mle([[.8, .2], [.3, .7]], [7, 3])
    >>> fit.alpha.round(6).tolist(), fit.status.tolist()
    ([[0.8, 0.2]], ['optimal'])
    """
    if COMPILED and type(tolerance) is float and 0.0 < tolerance < math.inf and plain(transitions, counts):
        alpha, gap, worst = _solve(transitions, table(counts, transitions.shape[1]), tolerance, FIRST_ROWS)
        if worst <= tolerance:
            return MixtureFit(alpha, gap, ONE_OPTIMAL.repeat(gap.size))
        if worst < math.inf:
            return certified(alpha, gap, np.ones(gap.size, dtype=np.bool_), tolerance, INACCURATE)
    tolerance = positive(tolerance, "tolerance")
    P, F, has_data = frequencies(transitions, counts)
    first_rows = min(FIRST_ROWS, P.shape[0])
    if has_data.all():
        alpha, gap, _ = solve_batch(P, F, tolerance, first_rows)
    else:
        alpha, gap = np.zeros((F.shape[0], P.shape[0])), np.zeros(F.shape[0])
        if has_data.any():
            alpha[has_data], gap[has_data], _ = solve_batch(P, F[has_data], tolerance, first_rows)
    return certified(alpha, gap, has_data, tolerance, INACCURATE)


@compiled
def _solve(P: Array, n: Array, tolerance: float, first_rows: int) -> tuple[Array, Array, float]:
    """Weights and gaps from plain counts, and the worst gap: infinity if anything is not as it should be."""
    F, has_data = np.empty(n.shape), np.empty(n.shape[0], dtype=np.bool_)
    if n.size == 0 or not in_order(P, n, F, has_data) or not has_data.all():
        return F, np.empty(0), math.inf
    alpha, gap, _ = solve_batch(P, F, tolerance, min(first_rows, P.shape[0]))
    gap = np.maximum(gap, 0.0)
    return alpha, gap, gap.max()
