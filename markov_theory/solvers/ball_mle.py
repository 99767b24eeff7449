"""Constrained KL under more constraints: ‖α‖₂ ≤ B, bounds on each weight, or a given support; each certified."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, positive
from markov_theory.solvers._box import fit_in_box
from markov_theory.solvers._descent import hessian
from markov_theory.solvers._quadratic import nonnegative_quadratic
from markov_theory.solvers.result import INACCURATE, MixtureFit, certified, frequencies
from markov_theory.solvers.simplex_mle import simplex_mle

MAX_STEPS = 200
SLACK = 1e-12  # how far bounds may miss feasibility before they are refused
LOG_MULTIPLIERS = (math.log(1e-13), math.log(1e16))  # of the ball


def ball_mle(transitions: ArrayLike, counts: ArrayLike, radius: float, tolerance: float = 1e-9) -> MixtureFit:
    r"""Solve ``max Σ_j n_j log (Pᵀα)_j`` over α ∈ Δ with ‖α‖₂ ≤ B, for R problems.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,) or (R, J)
    radius : float
        B ≥ 1/√T, the norm of the uniform weights; from 1 on it constrains nothing.
    tolerance : float
        Certified gap to reach, nats per sample.

    Returns
    -------
    MixtureFit
        With r = n̂/q and a = α − 1/T, the gap is the least over some ρ ≥ 0 of
        ``max_v (P r − ρa)_v − 1 + ρ‖a‖√(B² − 1/T)``: by Jensen a feasible β gains at most (P r)·β − 1 per sample,
        and a·β = a·(β − 1/T) ≤ ‖a‖‖β − 1/T‖.

    Raises
    ------
    ValueError
        If B < 1/√T, shapes or values are wrong, or an observed outcome is impossible under every row.

    Notes
    -----
    ``min_{z ≥ 0} −Σ f log(Pᵀz) + Σ z + (ρ'/2)‖z − z̄‖²``, z̄ = Σz/T, is solved by Newton steps; α = z/Σz is the
    answer for B = ‖α‖, which falls as ρ' grows, and the right ρ' is found by bisection.

    Examples
    --------
    >>> fit = ball_mle([[1., 0.], [0., 1.]], [9, 1], radius=0.5 ** 0.5)
    >>> fit.alpha.round(6).tolist(), fit.status.tolist()
    ([[0.5, 0.5]], ['optimal'])
    """
    radius, tolerance = positive(radius, "radius"), positive(tolerance, "tolerance")
    P, F, has_data = frequencies(transitions, counts)
    least = 1 / math.sqrt(P.shape[0])
    if radius < least * (1 - SLACK):
        raise ValueError(f"radius must be at least 1/√T = {least:.12g} (T = {P.shape[0]}), got {radius:g}")
    fit = simplex_mle(P, counts, tolerance)
    alpha, gap = fit.alpha.copy(), fit.gap.copy()
    for i in np.flatnonzero(has_data):
        if np.linalg.norm(alpha[i]) > radius:
            alpha[i], gap[i] = _in_ball(P, F[i], radius, tolerance)
    return certified(alpha, gap, has_data, tolerance, INACCURATE)


def box_mle(
    transitions: ArrayLike, counts: ArrayLike, lower: ArrayLike, upper: ArrayLike, tolerance: float = 1e-9
) -> MixtureFit:
    r"""Solve ``max Σ_j n_j log (Pᵀα)_j`` over α ∈ Δ with lower ≤ α ≤ upper, for R problems.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,) or (R, J)
    lower, upper : array_like, shape (T,) or scalar
        0 ≤ lower ≤ upper ≤ 1 with Σ lower ≤ 1 ≤ Σ upper.
    tolerance : float
        Certified gap to reach, nats per sample.

    Returns
    -------
    MixtureFit
        With r = n̂/q, the gap is ``max_β (P r)·β − 1`` over the feasible β: a linear programme that filling the
        rows of largest (P r)_v first solves. Problems without data get the feasible point between the bounds.

    Raises
    ------
    ValueError
        If the bounds are infeasible, shapes or values are wrong, or an observed outcome is impossible under every
        row of positive upper bound.

    Notes
    -----
    Primal–dual interior point; weights within rounding of a bound are then put on it.

    Examples
    --------
    >>> fit = box_mle([[1., 0.], [0., 1.]], [9, 1], lower=0.2, upper=1.0)
    >>> fit.alpha.round(6).tolist(), fit.status.tolist()
    ([[0.8, 0.2]], ['optimal'])
    """
    tolerance = positive(tolerance, "tolerance")
    P, F, has_data = frequencies(transitions, counts)
    low, high = _bounds(lower, upper, P.shape[0])
    frequencies(P[high > 0], counts)  # names an outcome that the allowed rows cannot give
    share = (1 - low.sum()) / max(high.sum() - low.sum(), 1e-300)
    between = low + min(max(share, 0.0), 1.0) * (high - low)
    alpha, gap = np.tile(between / between.sum(), (F.shape[0], 1)), np.zeros(F.shape[0])
    for i in np.flatnonzero(has_data):
        alpha[i], gap[i] = fit_in_box(P, F[i], low, high, alpha[i], tolerance)
    kept = alpha.copy()
    fit = certified(alpha, gap, has_data, tolerance, INACCURATE)
    return MixtureFit(np.where(has_data[:, None], fit.alpha, kept), fit.gap, fit.status)


def support_mle(transitions: ArrayLike, counts: ArrayLike, support: ArrayLike, tolerance: float = 1e-9) -> MixtureFit:
    """Solve ``max Σ_j n_j log (Pᵀα)_j`` over α ∈ Δ with no weight outside `support`, for R problems.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    counts : array_like, shape (J,) or (R, J)
    support : array_like of int, shape (s,)
        Distinct row indices, at least one.
    tolerance : float
        Certified gap to reach, nats per sample.

    Returns
    -------
    MixtureFit
        Its gap is to the best mixture of the given rows.

    Raises
    ------
    ValueError
        If `support` is empty, repeats itself or leaves 0 … T − 1, or an observed outcome is impossible under
        every row of it.

    Examples
    --------
    >>> support_mle([[1., 0.], [0., 1.], [.5, .5]], [9, 1], [0, 2]).alpha.round(6).tolist()
    [[0.8, 0.0, 0.2]]
    """
    P, F, _ = frequencies(transitions, counts)
    rows = np.asarray(support)
    if rows.ndim != 1 or rows.size == 0 or rows.dtype.kind not in "iu" or np.unique(rows).size < rows.size:
        raise ValueError(f"support must be distinct row indices, at least one, got {support!r}")
    if rows.min() < 0 or rows.max() >= P.shape[0]:
        raise ValueError(f"support must lie in 0 … {P.shape[0] - 1}, got {rows.min()} … {rows.max()}")
    inner = simplex_mle(P[rows], counts, tolerance)
    alpha = np.zeros((F.shape[0], P.shape[0]))
    alpha[:, rows] = inner.alpha
    return MixtureFit(alpha, inner.gap, inner.status)


def _in_ball(P: Array, f: Array, radius: float, tolerance: float) -> tuple[Array, float]:
    """Weights in the ball and their gap, where the ball binds: bisection on the logarithm of ρ'."""
    seen = f > 0
    A, g = np.ascontiguousarray(P[:, seen]), f[seen]
    z = np.full(P.shape[0], 1 / P.shape[0])
    best, best_gap = z, _ball_gap(A, g, z, radius, 0.0)
    low, high = LOG_MULTIPLIERS
    for _ in range(MAX_STEPS):
        if best_gap <= 0.5 * tolerance or high - low < 1e-14:
            break
        middle = 0.5 * (low + high)
        z = _penalised(A, g, z, math.exp(middle), 0.01 * tolerance)
        total = float(z.sum())
        alpha = _shrunk(z / total, radius)
        gap = _ball_gap(A, g, alpha, radius, math.exp(middle) * total**2)
        if gap < best_gap:
            best, best_gap = alpha, gap
        low, high = (middle, high) if np.linalg.norm(z) > radius * total else (low, middle)
    return best, best_gap


def _shrunk(alpha: Array, radius: float) -> Array:
    """The weights themselves if they are in the ball, else their mixture with uniform weights on its surface."""
    centre = 1 / alpha.size
    excess, room = float(((alpha - centre) ** 2).sum()), max(radius**2 - centre, 0.0)
    return alpha if excess <= room else centre + math.sqrt(room / excess) * (alpha - centre)


def _ball_gap(A: Array, f: Array, alpha: Array, radius: float, rho: float) -> float:
    """Certified gap: the best of a few ρ, and of the bound that forgets the signs of β."""
    score = A @ (f / (alpha @ A))
    offset = alpha - 1 / alpha.size
    reach = math.sqrt(max(radius**2 - 1 / alpha.size, 0.0))
    live = alpha > 0
    centred = alpha[live] - alpha[live].mean()
    fitted = max(float(centred @ score[live]) / max(float(centred @ centred), 1e-300), 0.0)
    length = float(np.linalg.norm(offset)) * reach
    bounds = [float((score - r * offset).max()) - 1 + r * length for r in (0.0, rho, fitted)]
    return min(*bounds, float(score.mean()) - 1 + float(np.linalg.norm(score - score.mean())) * reach)


def _penalised(A: Array, f: Array, z: Array, rho: float, tolerance: float) -> Array:
    """Return argmin_{z ≥ 0} −Σ f log(Aᵀz) + Σ z + (ρ/2)‖z − z̄‖² by Newton steps from a `z` of finite value."""
    T = z.size
    spread = z - z.mean()
    total, weight = float(z.sum()), rho * float(spread @ spread)
    z = z * (2 / (total + math.sqrt(total**2 + 4 * weight)))  # the best multiple
    q = z @ A
    for _ in range(MAX_STEPS):
        score, spread = A @ (f / q), z - z.mean()
        gradient = 1 + rho * spread - score
        if float(np.abs(z * gradient).sum()) <= tolerance and float(gradient.min()) >= -tolerance:
            break
        H = hessian(A, f, q)
        b = H @ z + score - 1
        H[np.diag_indices(T)] += rho
        H -= rho / T
        y = z.copy()
        inside = (z > 0) | (gradient < 0)
        nonnegative_quadratic(H, b, inside, y, np.empty((T, T)), np.empty(T, dtype=np.int64), 0)
        step = y - z
        linear, centred = float(step.sum()) + rho * float(spread @ step), step - step.mean()
        size = _step_size(f, q, step @ A, linear, rho * float(centred @ centred), float(gradient @ step))
        if size == 0:
            break
        z = np.maximum(z + size * step, 0)
        q = z @ A
    return z


def _step_size(f: Array, q: Array, change: Array, linear: float, square: float, slope: float) -> float:
    """Backtrack until t·linear + t²·square/2 − Σ f log(1 + t·change/q) is a quarter of what the slope promises."""
    if slope >= 0:
        return 0.0
    relative = change / q
    size = min(1.0, -0.99 / min(float(relative.min()), -0.99))
    for _ in range(60):
        gain = float(f @ np.log1p(size * relative))
        if size * linear + 0.5 * size**2 * square - gain <= 0.25 * size * slope + 1e-15:
            return size
        size *= 0.5
    return 0.0


def _bounds(lower: ArrayLike, upper: ArrayLike, n_tokens: int) -> tuple[Array, Array]:
    """Both bounds as arrays of shape (T,), feasible."""
    low, high = (np.broadcast_to(np.asarray(b, dtype=float), (n_tokens,)).copy() for b in (lower, upper))
    if not ((low >= 0) & (low <= high) & (high <= 1)).all():
        raise ValueError("bounds must satisfy 0 <= lower <= upper <= 1 for every weight")
    if low.sum() > 1 + SLACK or high.sum() < 1 - SLACK:
        raise ValueError(
            f"bounds must satisfy Σ lower <= 1 <= Σ upper, got Σ lower = {low.sum():.12g}, Σ upper = {high.sum():.12g}"
        )
    return low, high
