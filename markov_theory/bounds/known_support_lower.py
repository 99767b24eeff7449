"""Known support, from below: samples that maximum likelihood itself needs, whatever is done with them.

Both statements bound the failure probability of *this* estimator at one truth from below, so they follow it far more
closely than what holds for every estimator. Coordinates as in `whitened_hull`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.special import ndtr

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound
from markov_theory.bounds.whitened_hull import SAFETY, SLACK, KnownSupport

BERRY_ESSEEN = 0.4748  # for sums of i.i.d. terms, I. G. Shevtsova (2011)
_LOSSES = np.geomspace(0.05, 800.0, 128)
_LINE_GRID = np.geomspace(1e-3, 1500.0, 400)
_BALL_GRID = np.linspace(0.0, 1.0, 401)[1:]


class L1(Bound):
    """Known support whose rows lie on a line (r = 1): fewer samples fail with probability above δ, or N*_last ≥ L1.

    L1 − 1 is the last N at which the bound on the failure probability exceeds δ::

        P(KL(q‖q̂) > ε) ≥ Σ_± max(0, Φ(−√N·μ/σ) − 0.4748·ρ₃/(σ³√N))

    with μ, σ² and ρ₃ the mean, the variance and the third absolute central moment of (q−q_±)/q_± under q, and q_±
    the points of the line with KL(q‖q_±) = ε, as far as the hull reaches beyond them. ε in nats, N in samples. Derived
    here. What is promised: at N = L1 − 1 the failure probability exceeds δ, so it does not stay ≤ δ from any
    N < L1 on. It may be ≤ δ at single smaller N. Where the rows are not on a line (r ≥ 2), 0: it says nothing.

    Why: if Σ_i (q_+−q)(X_i)/q_+(X_i) > 0, the log-likelihood, concave on the line, still rises at q_+ away from q; the
    hull goes on there, so every maximiser lies beyond q_+, where KL(q‖·), convex and 0 at q, exceeds ε. The sum is
    one of i.i.d. terms of mean −μ < 0, and its tail is within the Berry–Esseen error of the normal one. No
    maximiser is beyond q_+ and q_− at once, so the two probabilities add. Without a sample every mixture maximises,
    so the failure at N = 0 is 1.

    Loose by the Berry–Esseen error, which is all there is at small N and for rare outcomes.

    Examples
    --------
    >>> L1.n_samples(support_rows=[[.2, .8], [.8, .2]], target=[.5, .5], epsilon=1e-3, delta=0.05)
    1601.0
    """

    label = "L1"
    kind = "lower"
    origin = "derived"
    speaks_of = ("oracle",)
    statement = (
        "rows on a line: P(KL(q||q_hat) > eps) >= sum over +- of max(0, Phi(-sqrt(N) mu/sigma) - "
        "0.4748 rho_3/(sigma^3 sqrt(N))), moments of (q - q_+-)/q_+-, KL(q||q_+-) = eps; "
        "it exceeds delta at N = L1 - 1, so N*_last >= L1"
    )
    reason = (
        "If the sum of (q_+ - q)/q_+ over the samples is positive, the concave log-likelihood rises at q_+ and every "
        "maximiser is beyond it; the normal tail of that sum is right up to the Berry-Esseen error."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(support_rows: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """Return N; 0 if every mixture is ε-close, for r ≥ 2 and if q_j = 0 where a row is positive.

        Raises
        ------
        ValueError
            If `target` is no mixture of `support_rows`.
        """
        delta = _checks.open_unit(delta, "delta")
        given = KnownSupport.of(support_rows, target, epsilon)
        if given.cannot_fail or given.is_singular or given.rank > 1:
            return 0.0
        sides = _Side.both(given)
        grid = np.concatenate([np.empty(0), *(side.scale * _LINE_GRID for side in sides)])
        return _last_failing(lambda N: _line_failure(sides, N), grid, delta)

    @staticmethod
    def failure(n_samples: int, support_rows: ArrayLike, target: ArrayLike, epsilon: float) -> float:
        """Return the bound from below on P(some maximiser has KL(q‖q̂) > ε) at N samples; 0 where it says nothing."""
        given = KnownSupport.of(support_rows, target, epsilon)
        return _bounded(given, n_samples, lambda N: _line_failure(_Side.both(given) if given.rank == 1 else [], N))


class L2(Bound):
    """Known support: fewer samples fail with probability above δ, or N*_last ≥ L2, by the size of the score.

    L2 − 1 is the last N at which, for some t > 0, the bound on the failure probability exceeds δ::

        P(KL(q‖q̂) > ε) ≥ k²/(V + k²) − π(t),     k = r − N·D̄²(m̄+t)² > 0
        V = 2r(1 − 1/N) + (E n⁴ − r²)/N,         D̄²·λ_min M(c(−D̄n)) = ε,  c(b) = (−log(1−b) − b)/b²
        m̄ = λ_max M(1/(1−D̄n)),                   π(t) = r·exp(−Nt²/(2(σ̄² + R̄t/3)))
        σ̄² = λ_max(M(n²/(1−D̄n)²) − M(1/(1−D̄n))²),  R̄ = Λ²/(1−D̄Λ) − λ_min M(1/(1−D̄n))

    where the ball |v| ≤ D̄ lies inside the hull; elsewhere 0: it says nothing. ε in nats, N in samples. Derived
    here. What is promised: at N = L2 − 1 the failure probability exceeds δ, so it does not stay ≤ δ from any
    N < L2 on. It may be ≤ δ at single smaller N.

    The steps. (1) KL(q‖q_v) = E[(v·φ)²c(−v·φ)] ≥ D̄²λ_min M(c(−D̄n)) = ε on the sphere |v| = D̄, as c increases, and
    KL is convex along rays: if some maximiser is ε-close, one has |v̂| ≤ D̄. (2) It is then inside the hull, so the score
    vanishes: Σφ_i = [Σ φ_iφ_iᵀ/(1+v̂·φ_i)]v̂, hence ‖Σφ_i‖ ≤ N D̄ λ_max(Ā), Ā the sample mean of φφᵀ/(1−D̄n).
    (3) λ_max(Ā) ≥ m̄+t has probability at most π(t), by the matrix Bernstein inequality: λ_max(φφᵀ/(1−D̄n) − M) ≤ R̄ by
    Weyl. (4) X = ‖Σφ_i‖²/N has mean r and variance V (all covariances between its terms vanish, as E φ = 0), and by
    Cantelli's inequality P(X ≤ r−k) ≤ V/(V+k²). Success implies (3)'s event or X ≤ N D̄²(m̄+t)² = r−k.

    Loose: it counts on the mean of ‖Σφ_i‖² in place of its upper tail, by a factor of about χ²_{r,1−δ}/r at least.

    Examples
    --------
    >>> L2.n_samples(support_rows=[[.2, .8], [.8, .2]], target=[.5, .5], epsilon=1e-3, delta=0.05)
    300.0
    """

    label = "L2"
    kind = "lower"
    origin = "derived"
    speaks_of = ("oracle",)
    statement = (
        "P(KL(q||q_hat) > eps) >= k^2/(V + k^2) - pi(t) for t > 0, k = r - N D^2 (m+t)^2 > 0, "
        "V = 2r(1-1/N) + (E n^4 - r^2)/N, D^2 lambda_min M(c(-Dn)) = eps, m = lambda_max M(1/(1-Dn)), the ball |v| <= "
        "D inside the hull, pi the matrix Bernstein tail; it exceeds delta at N = L2 - 1, so N*_last >= L2"
    )
    reason = (
        "An eps-close maximiser lies in the ball, where the score vanishes, so |sum phi| <= N D lambda_max(mean of "
        "phi phi^T/(1-Dn)) (matrix Bernstein), while |sum phi|^2/N has mean r and variance V (Cantelli)."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(support_rows: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """Return N; 0 if every mixture is ε-close, the ball leaves the hull, or q_j = 0 where a row is positive.

        Raises
        ------
        ValueError
            If `target` is no mixture of `support_rows`.
        """
        delta = _checks.open_unit(delta, "delta")
        given = KnownSupport.of(support_rows, target, epsilon)
        if given.cannot_fail or given.is_singular:
            return 0.0
        ball = _Ball.of(given)
        if ball is None:
            return 0.0
        return _last_failing(ball.failure, ball.rank / (ball.reach * ball.most) ** 2 * _BALL_GRID, delta)

    @staticmethod
    def failure(n_samples: int, support_rows: ArrayLike, target: ArrayLike, epsilon: float) -> float:
        """Return the bound from below on P(some maximiser has KL(q‖q̂) > ε) at N samples; 0 where it says nothing."""
        given = KnownSupport.of(support_rows, target, epsilon)

        def value(N: Array) -> Array:
            ball = _Ball.of(given)
            return np.zeros_like(N) if ball is None else ball.failure(N)

        return _bounded(given, n_samples, value)


class _Side(NamedTuple):
    """Moments of (q−q_±)/q_±: N·(μ/σ)² is the squared distance of the tail, ρ₃/σ³ its skewness at most."""

    scale: float  # (σ/μ)², samples
    skewness: float

    @classmethod
    def both(cls, given: KnownSupport) -> list[_Side]:
        law, sides = given.law, []
        for x in given.sides(outward=True):
            drift = float(law @ (x * x / (1 + x)))  # E[−x/(1+x)], as E x = 0
            centred = -x / (1 + x) - drift
            deviation = math.sqrt(float(law @ centred**2))
            sides.append(cls((deviation / drift) ** 2, float(law @ np.abs(centred / deviation) ** 3)))
        return sides


def _line_failure(sides: list[_Side], N: Array) -> Array:
    failure = np.zeros_like(N)
    for side in sides:
        tail, error = ndtr(-np.sqrt(N / side.scale)), BERRY_ESSEEN * side.skewness / np.sqrt(N)
        failure += np.maximum(0.0, tail * (1 - SLACK) - error * (1 + SLACK))
    return failure


class _Ball(NamedTuple):
    """The numbers that L2 asks of a chart: r, D̄, m̄, σ̄², R̄ and E n⁴."""

    rank: int
    reach: float
    most: float
    spread: float
    largest: float
    fourth: float

    @classmethod
    def of(cls, given: KnownSupport) -> _Ball | None:
        """None if the ball is not inside the hull."""
        n, law = given.norms, given.law
        low = math.sqrt(2 * given.epsilon) * (1 - SLACK)  # λ_min M(c(−·)) <= 1/2
        high = min(inner_radius(given.vertices), 1 / float(n.max())) * (1 - SLACK)
        D = given.reach(-1, low, high) * (1 + SAFETY) if low < high else math.inf
        if high <= D:
            return None
        weight = 1 / (1 - D * n)
        first, second = given.moment(weight), given.moment((n * weight) ** 2)
        eigenvalues = np.linalg.eigvalsh(first)
        least, most = float(eigenvalues[0]), float(eigenvalues[-1])
        top = float((n * n * weight).max())
        spread = max(0.0, float(np.linalg.eigvalsh(second - first @ first)[-1])) + SAFETY * top * most  # its rounding
        return cls(given.rank, D, most, spread, max(0.0, top - least), float(law @ n**4))

    def failure(self, N: Array) -> Array:
        """Bound from below at each N, maximised over t (any is valid)."""
        n = np.asarray(N)[..., None]
        r, loss = self.rank, _LOSSES + math.log(self.rank)
        skew = self.largest * loss / 3
        t = (skew + np.sqrt(skew**2 + 2 * n * self.spread * loss)) / n  # π(t) = e^{−_LOSSES}
        k = np.maximum(0.0, r - n * (self.reach * (self.most + t)) ** 2)
        V = 2 * r * (1 - 1 / n) + np.maximum(0.0, self.fourth - r * r) / n
        value = np.divide(k * k, V + k * k, out=np.zeros_like(k), where=k > 0) * (1 - SLACK)
        return np.asarray(np.maximum(0.0, (value - np.exp(-_LOSSES) * (1 + SLACK)).max(axis=-1)))


def inner_radius(vertices: Array) -> float:
    """Radius of a ball about 0 inside the convex hull of `vertices` (s, r): the largest for affinely independent ones.

    It rests on weights ``β(v) = a + Gv`` with ``Σ_i β_i(v)·vertex_i = v`` and Σ_i β_i(v) = 1 for all v: they are
    non-negative while |v| ≤ a_i/‖G_i‖. G is the one of least norm, and a is chosen by a linear program where the
    vertices leave a choice; the radius is then a certificate, not the largest.

    Examples
    --------
    >>> float(inner_radius(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])).__round__(6))
    0.5
    """
    s, r = vertices.shape
    system = np.column_stack([vertices, np.ones(s)]).T  # (r+1, s)
    inverse = np.linalg.pinv(system)
    lengths = np.linalg.norm(inverse[:, :r], axis=1)
    start, goal = inverse[:, r], np.append(np.zeros(r), 1.0)
    if s > r + 1:
        found = linprog(
            np.append(np.zeros(s), -1.0),
            A_ub=np.column_stack([-np.eye(s), lengths]),
            b_ub=np.zeros(s),
            A_eq=np.column_stack([system, np.zeros(r + 1)]),
            b_eq=goal,
        )
        if found.x is None:
            return 0.0
        start = found.x[:s] + inverse @ (goal - system @ found.x[:s])
    return max(0.0, float((start / np.maximum(lengths, 1e-300)).min()))


def _bounded(given: KnownSupport, n_samples: int, failure: Callable[[Array], Array]) -> float:
    N = _checks.whole(n_samples, "n_samples")
    if given.cannot_fail or given.is_singular:
        return 0.0
    return 1.0 if N == 0 else float(failure(np.array(float(N))))  # without a sample every mixture is a maximiser


def _last_failing(failure: Callable[[Array], Array], grid: Array, delta: float) -> float:
    """One more than the last N found with ``failure(N) > δ``, on `grid` and then between two of its points.

    Failure is 1 at N = 0. The bound need not be unimodal: whatever the search misses, it exceeds δ at the N returned
    minus 1. Rounded down to a double.
    """
    points = sorted({0, *(int(n) for n in np.minimum(grid, 1e300)), math.ceil(min(grid.max(initial=0.0), 1e300)) + 1})
    fails = np.append(True, failure(np.array([float(n) for n in points[1:]])) > delta)
    last = int(np.flatnonzero(fails)[-1])
    low, high = points[last], points[min(last + 1, len(points) - 1)]
    while high - low > max(1, low >> 52):
        middle = (low + high) // 2
        low, high = (middle, high) if float(failure(np.array(float(middle)))) > delta else (low, middle)
    result = float(low + 1)
    return result if result <= low + 1 else math.nextafter(result, 0.0)
