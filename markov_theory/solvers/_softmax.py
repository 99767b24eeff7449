"""The certified core of fits through a softmax head: many convex problems over one design matrix.

Minimise ``φ(θ) = −Σ_j f_j log softmax(Xθ + b)_j`` over θ, free or with ‖θ‖₂ ≤ B. Work is done in coordinates
``z = S Rᵀθ`` of the centred design ``X − mean = U S Rᵀ``, in which φ is strictly convex.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from markov_theory._checks import Array

MAX_STEPS = 100
MAX_RADIUS_STEPS = 60
SMALLEST_DECREMENT = 1e-22  # squared Newton decrement at which rounding has taken over
FLOOR = 1e-14  # relative, of the Hessian's eigenvalues; an eigenvalue down there proves nothing
SLOPE_ROUNDING = 2e-15  # of Uᵀ(q − f), whose columns have norm 1
FLAT = 1e-10  # curvature of a whole problem below which steps are tamed
CHUNK = 1 << 22  # entries of a (problems, J, r) block

Mask = NDArray[np.bool_]


class Design(NamedTuple):
    """Centred design matrix as U S Rᵀ of rank r, and the bias."""

    U: Array  # (J, r), orthonormal columns
    S: Array  # (r,)
    R: Array  # (k, r)
    bias: Array  # (J,)


class CoreFit(NamedTuple):
    """Answers of the core to R problems.

    `theta` (R, k) is NaN where the infimum is not attained; `law` (R, J) is then the limit that approaches it.
    `gap` bounds φ(θ) − inf φ, nats per sample.
    """

    theta: Array
    law: Array
    gap: Array
    attained: Mask


class _State(NamedTuple):
    z: Array  # (R, r)
    slope: Array  # (R, r), gradient with the ridge
    values: Array  # (R, r), eigenvalues of the Hessian with the ridge
    vectors: Array  # (R, r, r)


def design(scores: Array, bias: Array) -> Design:
    """Centre the scores over outcomes, which no softmax sees, and drop directions of rounding size."""
    centred = scores - scores.mean(axis=0)
    U, S, Rt = np.linalg.svd(centred, full_matrices=False)
    size = max(float(np.abs(scores).max(initial=0.0)) * math.sqrt(scores.size), 1e-300)
    rank = int((size * np.finfo(float).eps * 8 < S).sum())
    return Design(U[:, :rank], S[:rank], Rt[:rank].T, bias)


def fit_core(scores: Array, bias: Array, F: Array, radius: float, tolerance: float) -> CoreFit:
    """Solve R problems over θ ∈ R^k with ‖θ‖₂ ≤ `radius` (∞: free); frequencies F (R, J) sum to one."""
    X = design(scores, bias)
    if F.shape[0] == 0:
        return CoreFit(np.zeros((0, scores.shape[1])), np.zeros(F.shape), np.zeros(0), np.zeros(0, bool))
    step = max(1, CHUNK // max(1, X.U.size))
    parts = [_fit_chunk(X, F[low : low + step], radius, tolerance) for low in range(0, F.shape[0], step)]
    return CoreFit(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def cross_entropy(law: Array, F: Array) -> Array:
    """−Σ_j f_j log q_j for each problem, with 0·log 0 = 0; ∞ where an observed outcome is impossible."""
    with np.errstate(divide="ignore"):
        terms = np.multiply(F, np.log(law), where=F > 0, out=np.zeros(np.broadcast(F, law).shape))
    return -np.asarray(terms.sum(axis=-1))


def _fit_chunk(X: Design, F: Array, radius: float, tolerance: float) -> CoreFit:
    n, r = F.shape[0], X.S.size
    if r == 0:
        law = np.repeat(_laws(X, np.zeros((1, 0))), n, axis=0)
        return CoreFit(np.zeros((n, X.R.shape[0])), law, np.zeros(n), np.ones(n, bool))
    state = _descend(X, F, np.zeros((n, r)), np.zeros(n), tolerance)
    gap = _curvature_gap(state)
    theta, law = (state.z / X.S) @ X.R.T, _laws(X, state.z)
    attained = np.isfinite(gap)
    if math.isinf(radius):
        for i in np.flatnonzero(~attained | (gap > tolerance)):
            if (F[i] == 0).any():
                theta[i], law[i], gap[i], attained[i] = _at_infinity(X, F[i], theta[i], law[i], gap[i], tolerance)
        return CoreFit(theta, law, gap, np.logical_not(np.isnan(theta).any(axis=1)))
    beyond = ~attained | (np.linalg.norm(theta, axis=1) > radius)
    if beyond.any():
        z = _in_ball(X, F[beyond], radius, tolerance)
        theta[beyond], law[beyond], gap[beyond] = (z / X.S) @ X.R.T, _laws(X, z), np.inf
    return CoreFit(theta, law, np.minimum(gap, _ball_gap(X, F, theta, law, radius)), np.ones(n, bool))


def _laws(X: Design, z: Array) -> Array:
    logits = z @ X.U.T + X.bias  # (R, J)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _loss(X: Design, F: Array, z: Array, ridge: Array) -> Array:
    logits = z @ X.U.T + X.bias
    top = logits.max(axis=1, keepdims=True)
    value = np.log(np.exp(logits - top).sum(axis=1)) + (F * (top - logits)).sum(axis=1)
    return np.asarray(value + 0.5 * ridge * ((z / X.S) ** 2).sum(axis=1))


def _state(X: Design, F: Array, z: Array, ridge: Array) -> _State:
    law = _laws(X, z)
    mean = law @ X.U  # (R, r)
    spread = np.sqrt(law)[:, :, None] * (X.U - mean[:, None, :])  # (R, J, r)
    curvature = np.swapaxes(spread, 1, 2) @ spread
    r = X.S.size
    curvature[:, np.arange(r), np.arange(r)] += ridge[:, None] / X.S**2
    values, vectors = np.linalg.eigh(curvature)
    values = np.maximum(values, FLOOR * np.maximum(values[:, -1:], FLAT))
    return _State(z, (law - F) @ X.U + ridge[:, None] * z / X.S**2, values, vectors)


def _descend(X: Design, F: Array, z: Array, ridge: Array, tolerance: float) -> _State:
    """Newton steps, whole where they descend, else of the length log(1+d)/d that must (d: spread of the logits).

    |φ'''| ≤ d·φ'' along a step (generalised self-concordance), also with the ridge (ρ/2)‖θ‖².
    """
    state = _state(X, F, z, ridge)
    previous = np.full(F.shape[0], np.inf)
    live = np.arange(F.shape[0])
    for _ in range(MAX_STEPS):
        now = _State(*(part[live] for part in state))
        along = np.einsum("nab,na->nb", now.vectors, now.slope)
        decrement = (along**2 / now.values).sum(axis=1)
        stalled = (decrement >= 0.25 * previous[live]) & (decrement <= 0.05 * now.values[:, 0])
        settled = (decrement <= SMALLEST_DECREMENT) | stalled
        going = ~(settled & (_curvature_gap(now) <= tolerance)) & (decrement > 1e-26)
        previous[live] = decrement
        live = live[going]
        if live.size == 0:
            break
        move = -np.einsum("nab,nb->na", now.vectors, along / now.values)[going]
        z = _advance(X, F[live], ridge[live], now.z[going], move, decrement[going])
        for part, new in zip(state, _state(X, F[live], z, ridge[live]), strict=True):
            part[live] = new
    return state


def _advance(X: Design, F: Array, ridge: Array, z: Array, move: Array, decrement: Array) -> Array:
    whole = _loss(X, F, z + move, ridge) <= _loss(X, F, z, ridge) - 0.25 * decrement
    spread = np.maximum(np.ptp(move @ X.U.T, axis=1), 1e-12)
    return np.asarray(z + np.where(whole, 1.0, np.log1p(spread) / spread)[:, None] * move)


def _curvature_gap(state: _State) -> Array:
    """Bound on the value minus its infimum, and proof that a minimiser exists; ∞ where there is no such proof.

    With decrement λ, smallest curvature μ and ω = √(2/μ) (rows of U are at most √2 apart), φ rises along every
    ray at least as ``−λt + (e^{−ωt} − 1 + ωt)/ω²`` falls, whose minimum exists for y = λω < 1 (Bach 2010).
    """
    along = np.einsum("nab,na->nb", state.vectors, state.slope)
    decrement = np.sqrt((along**2 / state.values).sum(axis=1)) + SLOPE_ROUNDING / np.sqrt(state.values[:, 0])
    omega = np.sqrt(2 / state.values[:, 0])
    y = decrement * omega
    inside = np.minimum(y, 0.999)
    exact = inside + (1 - inside) * np.log1p(-inside)
    series = inside**2 * (1 / 2 + inside * (1 / 6 + inside * (1 / 12 + inside)))  # above the sum for y < 0.1
    proven = (y < 0.999) & (state.values[:, 0] > 2 * FLOOR * np.maximum(state.values[:, -1], FLAT))
    return np.where(proven, np.where(inside < 0.1, series, exact) / omega**2, np.inf)


def _at_infinity(
    X: Design, f: Array, theta: Array, law: Array, gap: float, tolerance: float
) -> tuple[Array, Array, float, bool]:
    """Decide by a linear programme whether a maximiser exists; if not, return the law that the supremum tends to."""
    face = minimal_face(X.U, f > 0)
    if face.all():
        return theta, law, gap, True
    limit = np.zeros_like(law)
    inner = fit_core(X.U[face], X.bias[face], f[None, face], math.inf, tolerance)
    limit[face] = inner.law[0]
    return np.full_like(theta, np.nan), limit, float(inner.gap[0]), False


def minimal_face(points: Array, seen: Mask) -> Mask:
    """Outcomes on the smallest face of the points' convex hull that holds every outcome seen, shape (J,).

    Maximise Σ_k min(1, t − u·x_k) over unseen k, where t − u·x_j = 0 for seen j and >= 0 for all: the likelihood
    grows without end along u unless the optimum is 0, and every outcome off the face reaches 1.
    """
    J, r = points.shape
    unseen = np.flatnonzero(~seen)
    n = unseen.size
    cost = np.concatenate([np.zeros(r + 1), -np.ones(n)])
    above = np.hstack([points[unseen], -np.ones((n, 1)), np.eye(n)])
    on = np.hstack([points[seen], -np.ones((J - n, 1)), np.zeros((J - n, n))])
    bounds = [(None, None)] * (r + 1) + [(0, 1)] * n
    found = linprog(cost, A_ub=above, b_ub=np.zeros(n), A_eq=on, b_eq=np.zeros(J - n), bounds=bounds, method="highs")
    if found.x is None:
        raise ArithmeticError(f"the search for a direction of recession failed: {found.message}")
    face = seen.copy()
    face[unseen] = found.x[r + 1 :] < 0.5
    return face


def _ball_gap(X: Design, F: Array, theta: Array, law: Array, radius: float) -> Array:
    """Frank-Wolfe gap max over the ball of ⟨−∇, θ' − θ⟩ = B‖∇‖ + ⟨∇, θ⟩: by convexity no θ' is better by more."""
    slope = ((law - F) @ X.U * X.S) @ X.R.T
    return np.asarray(radius * np.linalg.norm(slope, axis=1) + (slope * theta).sum(axis=1))


def _in_ball(X: Design, F: Array, radius: float, tolerance: float) -> Array:
    """Minimisers on the sphere ‖θ‖ = B: the ridge ρ with ‖θ(ρ)‖ = B by safeguarded secular steps, shape (R, r)."""
    n = F.shape[0]
    z, answer, best = np.zeros((n, X.S.size)), np.zeros((n, X.S.size)), np.full(n, np.inf)
    slope = (_laws(X, z) - F) @ X.U * X.S
    high = np.linalg.norm(slope, axis=1) / radius  # ‖θ(ρ)‖ ≤ ‖∇φ(0)‖/ρ
    low, ridge = np.zeros(n), high.copy()
    live = np.flatnonzero(high > 0)
    best[high == 0] = 0.0
    for _ in range(MAX_RADIUS_STEPS):
        if live.size == 0:
            break
        state = _descend(X, F[live], z[live], ridge[live], tolerance * 1e-3)
        z[live] = state.z
        size = np.linalg.norm(state.z / X.S, axis=1)
        put = state.z * np.minimum(1.0, radius / np.maximum(size * (1 + 4e-16), 1e-300))[:, None]
        gap = _ball_gap(X, F[live], (put / X.S) @ X.R.T, _laws(X, put), radius)
        better = gap < best[live]
        answer[live[better]], best[live[better]] = put[better], gap[better]
        high[live] = np.where(size <= radius, np.minimum(high[live], ridge[live]), high[live])
        low[live] = np.where(size > radius, np.maximum(low[live], ridge[live]), low[live])
        ridge[live] = _next_ridge(X, state, ridge[live], low[live], high[live], size, radius)
        live = live[(best[live] > tolerance * 1e-2) & (high[live] - low[live] > 1e-15 * high[live])]
    return answer


def _next_ridge(X: Design, state: _State, ridge: Array, low: Array, high: Array, size: Array, radius: float) -> Array:
    """Newton step for 1/‖θ(ρ)‖ = 1/B, almost linear in ρ (Moré and Sorensen); else the middle of the bracket."""
    pull = state.z / X.S**2
    along = np.einsum("nab,na->nb", state.vectors, pull)
    bend = (along**2 / state.values).sum(axis=1)  # −½ d‖θ‖²/dρ
    guess = ridge + (size / radius - 1) * size**2 / np.maximum(bend, 1e-300)
    middle = np.where(low > 0, np.sqrt(low * high), high / 16)
    return np.where((guess > low) & (guess < high), guess, middle)
