"""Few weights on old embeddings through a softmax head: pursuit, hard thresholding, and the exact answer when small.

All of them maximise ``Σ_j n_j log softmax(W Eᵀα + b)_j`` over real α with ‖α‖₀ ≤ s and, if B is given, ‖α‖₂ ≤ B.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, positive, whole
from markov_theory.solvers._softmax import Mask, cross_entropy, fit_core
from markov_theory.solvers._thresholding import hard_thresholding
from markov_theory.solvers.result import FEASIBLE, INACCURATE
from markov_theory.solvers.softmax_head import SoftmaxFit, assemble, ball, frequencies_of, head_scores, softmax_rows

MAX_SUPPORTS = 20_000
MAX_SWEEPS = 20
TRIED = 4  # most useful tokens that an exchange tries
DEPENDENT = 1e-9  # curvature, relative to the largest, below which a token adds no direction
LEAST_GAIN = 1e-11  # nats per sample that an exchange must win


class _Problem(NamedTuple):
    scores: Array  # (J, T)
    bias: Array  # (J,)
    F: Array  # (R, J)
    has_data: Mask  # (R,)
    sparsity: int
    radius: float
    tolerance: float

    def core(self, F: Array) -> tuple[Array, Array, Array, int, float]:
        """Scores, bias, some frequencies, s and B."""
        return self.scores, self.bias, F, self.sparsity, self.radius


class _Candidate(NamedTuple):
    support: tuple[int, ...]
    theta: Array  # (|support|,)
    law: Array  # (J,)
    loss: float
    gap: float
    attained: bool


def softmax_pursuit(
    embeddings: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike,
    counts: ArrayLike,
    sparsity: int,
    *,
    radius: float | None = None,
    tolerance: float = 1e-9,
) -> SoftmaxFit:
    """Seek the best s tokens greedily by the gain of a Newton step, refitting all weights; then exchange tokens.

    A second search starts from `softmax_hard_thresholding`; the better one counts.

    Parameters
    ----------
    embeddings, weights, bias, counts
        As in `markov_theory.solvers.softmax_head.softmax_mixture_mle`.
    sparsity : int
        s >= 1; values above T mean T.
    radius : float, optional
        B.
    tolerance : float
        Accuracy of each fit, nats per sample.

    Returns
    -------
    SoftmaxFit
        ``solution`` is α, shape (R, T). ``gap`` bounds the distance to the best s-sparse α: with the convex
        problem over all tokens it is that problem's value minus what was reached; in a ball also
        ``B‖∇‖_(s) + ⟨∇, α⟩``, ‖·‖_(s) the norm of the s largest entries, here and at the dense solution.

    Raises
    ------
    ValueError, TypeError
        On wrong shapes or values.

    Examples
    --------
    >>> fit = softmax_pursuit([[0.1], [2.0]], [[1.0], [-1.0]], [0.0, 0.0], [9, 1], 1, radius=1.0)
    >>> fit.solution.round(4).tolist(), fit.status.tolist()
    ([[0.0, 0.5493]], ['optimal'])
    """
    problem = _problem(embeddings, weights, bias, counts, sparsity, radius, tolerance)
    seen = problem.F[problem.has_data]
    found = [_pursue(problem, f, start) for f, start in zip(seen, hard_thresholding(*problem.core(seen)), strict=True)]
    return _report(problem, found, _relaxed_gap(problem, found), FEASIBLE)


def softmax_hard_thresholding(
    embeddings: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike,
    counts: ArrayLike,
    sparsity: int,
    *,
    radius: float | None = None,
    tolerance: float = 1e-9,
) -> SoftmaxFit:
    """Iterate gradient steps cut to the s largest entries (and to the ball), then refit on the support reached.

    Parameters, Returns and Raises are those of `softmax_pursuit`; the step halves until the loss falls as its
    quadratic model says.

    References
    ----------
    Blumensath and Davies (2009); Bahmani, Raj and Boufounos (2013).
    """
    problem = _problem(embeddings, weights, bias, counts, sparsity, radius, tolerance)
    seen = problem.F[problem.has_data]
    found = [
        _fit(problem, f, tuple(np.flatnonzero(alpha).tolist()))
        for f, alpha in zip(seen, hard_thresholding(*problem.core(seen)), strict=True)
    ]
    return _report(problem, found, _relaxed_gap(problem, found), FEASIBLE)


def softmax_best_subset(
    embeddings: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike,
    counts: ArrayLike,
    sparsity: int,
    *,
    radius: float | None = None,
    tolerance: float = 1e-9,
) -> SoftmaxFit:
    """Find the best α with ‖α‖₀ ≤ s exactly: fit all C(T, s) supports.

    Parameters, Returns are those of `softmax_pursuit`; the gap is the best value minus the least certified lower
    bound over the supports. Where some support's likelihood grows without end to a supremum that none attains, the
    status says ``"no maximiser"``.

    Raises
    ------
    ValueError
        If there are more than `MAX_SUPPORTS` supports, or shapes or values are wrong.
    """
    problem = _problem(embeddings, weights, bias, counts, sparsity, radius, tolerance)
    n_supports = math.comb(problem.scores.shape[1], problem.sparsity)
    if n_supports > MAX_SUPPORTS:
        raise ValueError(
            f"{n_supports:,} supports of size {problem.sparsity} among {problem.scores.shape[1]} tokens are too many "
            f"to enumerate (at most {MAX_SUPPORTS:,}); use softmax_pursuit, whose gap says how good its answer is"
        )
    seen = problem.F[problem.has_data]
    best: list[_Candidate | None] = [None] * seen.shape[0]
    lower = np.full(seen.shape[0], np.inf)
    for support in itertools.combinations(range(problem.scores.shape[1]), problem.sparsity):
        for i, candidate in enumerate(_fits(problem, seen, support)):
            lower[i] = min(lower[i], candidate.loss - candidate.gap)
            kept = best[i]
            if kept is None or candidate.loss < kept.loss:
                best[i] = candidate
    found = [candidate for candidate in best if candidate is not None]
    return _report(problem, found, np.array([c.loss for c in found]) - lower, INACCURATE)


def _problem(
    embeddings: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike,
    counts: ArrayLike,
    sparsity: int,
    radius: float | None,
    tolerance: float,
) -> _Problem:
    scores, b = head_scores(embeddings, weights, bias)
    s = min(whole(sparsity, "sparsity", low=1), scores.shape[1])
    F, has_data = frequencies_of(counts, scores.shape[0])
    return _Problem(scores, b, F, has_data, s, ball(radius), positive(tolerance, "tolerance"))


def _fits(problem: _Problem, F: Array, support: tuple[int, ...]) -> list[_Candidate]:
    core = fit_core(problem.scores[:, list(support)], problem.bias, F, problem.radius, problem.tolerance)
    loss = cross_entropy(core.law, F)
    return [
        _Candidate(support, core.theta[i], core.law[i], float(loss[i]), float(core.gap[i]), bool(core.attained[i]))
        for i in range(F.shape[0])
    ]


def _fit(problem: _Problem, f: Array, support: tuple[int, ...]) -> _Candidate:
    if support:
        return _fits(problem, f[None, :], support)[0]
    law = softmax_rows(problem.bias)
    return _Candidate((), np.zeros(0), law, float(cross_entropy(law, f)), 0.0, True)


def _pursue(problem: _Problem, f: Array, start: Array) -> _Candidate:
    """Best of two searches: from nothing, and from the support of `start` (T,); each grows to s, then exchanges."""
    supports: list[tuple[int, ...]] = [(), tuple(np.flatnonzero(start).tolist())]
    reached = [_improve(problem, f, support) for support in supports]
    return min(reached, key=lambda candidate: candidate.loss)


def _improve(problem: _Problem, f: Array, support: tuple[int, ...]) -> _Candidate:
    now = _fit(problem, f, support)
    while len(now.support) < problem.sparsity:
        usefulness = _usefulness(problem, f, now)
        token = int(usefulness.argmax())
        if usefulness[token] <= 0:
            break
        now = _fit(problem, f, (*now.support, token))
    for _ in range(MAX_SWEEPS):
        exchanged = _exchange(problem, f, now)
        if exchanged is None:
            break
        now = exchanged
    return now


def _exchange(problem: _Problem, f: Array, now: _Candidate) -> _Candidate | None:
    """First exchange of a token for one of the most useful others that wins `LEAST_GAIN`; None if there is none."""
    if len(now.support) == problem.scores.shape[1]:
        return None
    for dropped in now.support:
        rest = _fit(problem, f, tuple(v for v in now.support if v != dropped))
        usefulness = _usefulness(problem, f, rest)
        usefulness[dropped] = 0.0
        for token in np.argsort(-usefulness)[:TRIED]:
            if usefulness[token] <= rest.loss - now.loss:  # twice the gain to expect would not do
                break
            candidate = _fit(problem, f, (*rest.support, int(token)))
            if candidate.loss < now.loss - LEAST_GAIN:
                return candidate
    return None


def _usefulness(problem: _Problem, f: Array, now: _Candidate) -> Array:
    """Squared slope over the curvature left by the chosen tokens: the gain of a joint Newton step; 0 for chosen ones.

    On the sphere of the ball the curvature includes that of its multiplier.
    """
    chosen = list(now.support)
    spread = np.sqrt(now.law)[:, None] * (problem.scores - now.law @ problem.scores)  # (J, T)
    slope = (now.law - f) @ problem.scores
    size = float(now.theta @ now.theta)
    ridge = max(0.0, -float(slope[chosen] @ now.theta) / size) if now.attained and size > 0 else 0.0
    curvature = (spread**2).sum(axis=0) + ridge
    left = curvature.copy()
    if chosen:
        cross = spread[:, chosen].T @ spread
        inner = cross[:, chosen] + ridge * np.eye(len(chosen))
        left -= (cross * (np.linalg.pinv(inner, hermitian=True) @ cross)).sum(axis=0)
    useful = slope**2 / np.maximum(left, DEPENDENT * max(float(curvature.max()), 1e-300))
    useful[chosen] = 0.0
    return np.asarray(np.where(np.abs(slope) > 1e-12 * np.abs(problem.scores).max(), useful, 0.0))


def _relaxed_gap(problem: _Problem, found: list[_Candidate]) -> Array:
    """Loss reached minus the best certified lower bound on the s-sparse optimum, shape (R,)."""
    F = problem.F[problem.has_data]
    if not found:
        return np.zeros(0)
    dense = fit_core(problem.scores, problem.bias, F, problem.radius, problem.tolerance)
    loss = np.array([candidate.loss for candidate in found])
    dense_loss = cross_entropy(dense.law, F)
    lower = dense_loss - dense.gap
    if math.isfinite(problem.radius):
        lower = np.maximum(lower, dense_loss - _sparse_slack(problem, F, dense.law, dense.theta))
        alpha = np.array([_spread(candidate, problem.scores.shape[1]) for candidate in found])
        law = np.array([candidate.law for candidate in found])
        lower = np.maximum(lower, loss - _sparse_slack(problem, F, law, alpha))
    gap = loss - lower
    if problem.sparsity == problem.scores.shape[1]:
        gap = np.minimum(
            gap, [candidate.gap if len(candidate.support) == problem.sparsity else np.inf for candidate in found]
        )
    return gap


def _sparse_slack(problem: _Problem, F: Array, law: Array, alpha: Array) -> Array:
    """Most that the linear model at α falls over the s-sparse ball: B‖∇‖_(s) + ⟨∇, α⟩."""
    slope = (law - F) @ problem.scores
    largest = np.sort(slope**2, axis=1)[:, ::-1][:, : problem.sparsity]
    return np.asarray(problem.radius * np.sqrt(largest.sum(axis=1)) + (slope * alpha).sum(axis=1))


def _spread(candidate: _Candidate, n_tokens: int) -> Array:
    alpha = np.zeros(n_tokens)
    alpha[list(candidate.support)] = candidate.theta
    return alpha


def _report(problem: _Problem, found: list[_Candidate], gaps: Array, aim: str) -> SoftmaxFit:
    n, T = problem.F.shape[0], problem.scores.shape[1]
    solution, gap, attained = np.zeros((n, T)), np.zeros(n), np.ones(n, bool)
    law = np.repeat(softmax_rows(problem.bias)[None, :], n, axis=0)
    for i, candidate, bound in zip(np.flatnonzero(problem.has_data), found, gaps, strict=True):
        solution[i], law[i] = _spread(candidate, T), candidate.law
        gap[i], attained[i] = bound, candidate.attained
    return assemble(solution, law, gap, attained, problem.has_data, problem.tolerance, aim)
