"""Known support, sharper than S6: spectra in place of leverages, and Chernoff's exponents where the hull is a line.

The sharp statements (S6', S6^1 here; L1, L2 in `known_support_lower`) read a hull of rows in the coordinates of
`whitened_hull`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound, least_integer
from markov_theory.bounds.known_embedding import log_sphere_mean, second_order
from markov_theory.bounds.whitened_hull import SAFETY, SLACK, KnownSupport, radius_below

_SHARES = np.geomspace(1e-3, 0.99, 32)
_FACTORS = np.linspace(0.6, 1.08, 7)


class S6Prime(Bound):
    """Known support, by spectra: the least N with ``min_{t,h} r·e^{−Nt²/(2σ²)} + (1 + h²λ(h))^N/Ψ_r(hND(m−t)) ≤ δ``.

    In whitened coordinates (see `whitened_hull`), with r = dim aff of the rows::

        D²·λ_max M(c(Dn)) = ε, D < 1/Λ,     c(b) = (−log(1−b) − b)/b²
        m = λ_min M(1/(1+Dn)),              σ² = λ_max M(n²/(1+Dn)²)
        λ(h) = λ_max M(G(hn)),              G(b) = (e^b − 1 − b)/b²

    and Ψ_r(z) the mean of e^{z u·e} over unit vectors u; 0 < t < m and h > 0 are free. ε in nats, N in samples. Derived
    here. It speaks of maximum likelihood over all mixtures of the given rows, whichever maximiser is taken.

    (1) A law with |v| ≤ D is ε-close: as E_q φ = 0, KL(q‖q_v) = E[(v·φ)²c(−v·φ)] and c increases. (2) If a maximiser q̂
    is not, |v̂| > D. The log-likelihood is concave along [q, q̂] and largest at q̂, so it does not fall at v = Dv̂/|v̂|:
    Σ_i v·φ_i/(1+v·φ_i) ≥ 0, and as x/(1+x) = x − x²/(1+x), Σ_i v·φ_i ≥ Σ_i (v·φ_i)²/(1+v·φ_i) ≥ N D² λ_min(A), A the
    sample mean of φφᵀ/(1+Dn); hence ‖Σφ_i‖ ≥ N D λ_min(A). (3) λ_min(A) ≤ m−t has probability at most r·e^{−Nt²/(2σ²)}:
    matrix Laplace transform, e^{−x} ≤ 1 − x + x²/2 for x ≥ 0. (4) Else ‖Σφ_i‖ ≥ ND(m−t): average e^{h u·Σφ_i} over the
    sphere, where E e^{h u·φ} = 1 + E[(h u·φ)²G(h u·φ)] ≤ 1 + h²λ(h), and use Markov. Of the hull only its directions
    enter: a truth on a face, or a hull that ends inside the ball, removes maximisers and nothing else.

    Every N beyond the least suffices too: at fixed t and h the first term falls, and the second is
    exp(−N·[log Ψ_r(bN)/N − log(1+h²λ)]), whose bracket never falls, log Ψ_r being convex and 0 at 0, and is positive
    once the term is below 1.

    Loose by 2.4 to 3.6 against Wilks at ε = 1e-3 on random dictionaries, more where a row's outcome is rare under q.

    Examples
    --------
    >>> S6Prime.n_samples(support_rows=[[.2, .8], [.8, .2]], target=[.5, .5], epsilon=1e-3, delta=0.05)
    4714.0
    """

    label = "S6'"
    kind = "upper"
    origin = "derived"
    speaks_of = ("oracle",)
    statement = (
        "P(KL(q||q_hat) > eps) <= min over t in (0,m), h > 0 of r exp(-N t^2/(2 s^2)) + (1 + h^2 lambda_max M(G(hn)))^N"
        "/Psi_r(hND(m-t)); D^2 lambda_max M(c(Dn)) = eps, m = lambda_min M(1/(1+Dn)), s^2 = lambda_max M((n/(1+Dn))^2)"
    )
    reason = (
        "|v| <= D keeps KL <= eps; a failure leaves |v| = D where the likelihood still rises, so |sum phi| >= "
        "N D lambda_min(mean of phi phi^T/(1+Dn)): matrix Laplace transform, and Markov on the sphere's mean of exp."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(support_rows: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """Return N; 0 if every mixture is ε-close, ``inf`` if q_j = 0 where a row is positive.

        Raises
        ------
        ValueError
            If `target` is no mixture of `support_rows`.
        """
        delta = _checks.open_unit(delta, "delta")
        given = KnownSupport.of(support_rows, target, epsilon)
        if given.cannot_fail or given.is_singular:
            return 0.0 if given.cannot_fail else math.inf
        wilks = (math.sqrt(given.rank) + math.sqrt(2 * math.log(1 / delta))) ** 2 / (2 * given.epsilon)
        return _least_samples(_Sphere.of(given).log_failure, delta, guess=1.7 * wilks)

    @staticmethod
    def failure(n_samples: int, support_rows: ArrayLike, target: ArrayLike, epsilon: float) -> float:
        """Return the bound on P(some maximiser has KL(q‖q̂) > ε) at N samples, at most 1."""
        given = KnownSupport.of(support_rows, target, epsilon)
        return given.bounded(n_samples, lambda N: _Sphere.of(given).log_failure(N))


class S6One(Bound):
    """Known support whose rows lie on a line (r = 1): the least N with ``Σ_± e^{−N·C_±} ≤ δ`` suffices.

    q_± are the points of the line on either side of q with KL(q‖q_±) = ε, as far as the hull reaches them, and
    ``C_± = −log min_{s≥0} E_q e^{s(q_±−q)/q_±}``; ε in nats, N in samples. Derived here. It says nothing (``inf``) for
    r ≥ 2. It speaks of maximum likelihood over all mixtures of the given rows, whichever maximiser is taken.

    KL(q‖·) is convex on the line and 0 at q, so a maximiser that is not ε-close lies beyond q_+ or q_−, and only beyond
    one that the hull contains: a side on which it ends earlier adds nothing. The log-likelihood is concave, so it does
    not fall at q_+ on the way to a maximiser beyond: Σ_i (q_+−q)(X_i)/q_+(X_i) ≥ 0. The terms have mean
    1 − Σ q²/q_+ < 0, and Chernoff's bound is e^{−NC_+}. The sum falls with N, so every N beyond the least suffices too.
    A larger ε moves q_+ = q(1+τx) outward; x/(1+τx) falls with τ and s takes up the factor τ: N never rises with ε.

    Loose against Wilks, by log(2/δ) in place of half a quantile: 1.9 at δ = 0.05.

    Examples
    --------
    >>> S6One.n_samples(support_rows=[[.2, .8], [.8, .2]], target=[.5, .5], epsilon=1e-3, delta=0.05)
    3692.0
    """

    label = "S6^1"
    kind = "upper"
    origin = "derived"
    speaks_of = ("oracle",)
    statement = (
        "rows on a line: P(KL(q||q_hat) > eps) <= sum over +- of exp(-N C_+-), "
        "C_+- = -log inf_s E_q exp(s (q_+- - q)/q_+-), KL(q||q_+-) = eps, over the q_+- inside the hull"
    )
    reason = (
        "A maximiser beyond q_+ leaves the concave log-likelihood rising at q_+: the sum of (q_+ - q)/q_+ over the "
        "samples is >= 0 though its mean is negative (Chernoff); the same beyond q_-."
    )
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(support_rows: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """Return N; 0 if every mixture is ε-close, ``inf`` for r ≥ 2 or if q_j = 0 where a row is positive.

        Raises
        ------
        ValueError
            If `target` is no mixture of `support_rows`.
        """
        delta = _checks.open_unit(delta, "delta")
        given = KnownSupport.of(support_rows, target, epsilon)
        rates = _rates(given)
        if given.cannot_fail or not rates.all():
            return 0.0 if given.cannot_fail else math.inf
        guess = math.log(2 / delta) / float(rates.min())
        return _least_samples(lambda N: float(np.logaddexp.reduce(-N * rates)), delta, guess)

    @staticmethod
    def failure(n_samples: int, support_rows: ArrayLike, target: ArrayLike, epsilon: float) -> float:
        """Return the bound on P(some maximiser has KL(q‖q̂) > ε) at N samples, at most 1; 1 for r ≥ 2."""
        given = KnownSupport.of(support_rows, target, epsilon)
        return given.bounded(n_samples, lambda N: float(np.logaddexp.reduce(-N * _rates(given))))


class _Sphere(NamedTuple):
    """The numbers of S6': r, D, m, σ², and λ at a few h."""

    rank: int
    radius: float
    least: float
    spread: float
    knots: Array
    heights: Array

    @classmethod
    def of(cls, given: KnownSupport) -> _Sphere:
        n, top = given.norms, float(given.norms.max())
        low = radius_below(given.epsilon, 1.0, top)
        D = given.reach(1, low, max(low, min(math.sqrt(2 * given.epsilon), (1 - SLACK) / top))) * (1 - SAFETY)
        least = float(np.linalg.eigvalsh(given.moment(1 / (1 + D * n)))[0])
        spread = float(np.linalg.eigvalsh(given.moment((n / (1 + D * n)) ** 2))[-1])
        knots = np.linspace(0.0, D * least, 9)
        heights = [np.linalg.eigvalsh(given.moment(second_order(h * n)))[-1] for h in knots]
        return cls(given.rank, D, least, spread, knots, np.array(heights))

    def log_failure(self, N: float) -> float:
        """Log of the bound at N, minimised over t and h (any are valid); positive where it says nothing."""
        most = N * self.least * self.least / (2 * self.spread) - math.log(self.rank)
        if most <= 0:
            return math.log(2.0)
        losses, factors = min(most, 1500.0) * _SHARES, _FACTORS
        values = self._log_terms(N, losses[:, None], factors)
        i, k = divmod(int(values.argmin()), factors.size)
        finer = np.linspace(losses[max(i - 1, 0)], losses[min(i + 1, losses.size - 1)], 13)
        near = np.linspace(factors[max(k - 1, 0)], factors[min(k + 1, factors.size - 1)], 5)
        return min(float(values.min()), float(self._log_terms(N, finer[:, None], near).min()))

    def _log_terms(self, N: float, loss: Array, factors: Array) -> Array:
        """Log of the two terms' sum: t such that the first is e^{−loss}, h a factor times the nearly best one.

        With 1/2 for λ and z/((r−1)/2 + √(((r+1)/2)² + z²)) for (log Ψ_r)′, the best h has a closed form. λ is convex
        in h, so that its chords between the knots are bounds from above.
        """
        mean = self.radius * (self.least - np.sqrt(2 * self.spread * (loss + math.log(self.rank)) / N))
        rest = np.maximum(N * mean * mean - (self.rank - 1) / 2, 0.0)
        z = np.sqrt(np.maximum(rest**2 - ((self.rank + 1) / 2) ** 2, 0.0))
        h = np.minimum(z / (N * mean) * factors, self.knots[-1])
        growth = N * np.log1p(h * h * np.interp(h, self.knots, self.heights))
        return np.logaddexp(-loss, growth - log_sphere_mean(self.rank, h * N * mean))


def _rates(given: KnownSupport) -> Array:
    """``C_± = −log min_{s≥0} E e^{sx/(1+x)}``, x = q_±/q − 1, from below (any s is valid); 0 where it says nothing."""
    if given.is_singular or given.rank != 1:
        return np.zeros(1)
    rates = []
    for x in given.sides(outward=False):
        y, near = x / (1 + x), np.abs(x) < 0.5
        drift, high = float(given.law @ (x * y)), 1.0  # drift: −E y, as E x = 0
        while given.law @ (y * np.expm1(high * y)) < drift:
            high *= 2
        s = brentq(lambda s, y=y, drift=drift: given.law @ (y * np.expm1(s * y)) / drift - 1, 0.0, high, rtol=1e-12)
        # E e^{sy} − 1 = E[e^{sy} − 1 − sx]: where x is small, without the first-order terms.
        close = (s * y) ** 2 * second_order(np.where(near, s * y, 0.0)) - s * x * y
        rates.append(-math.log1p(float(given.law @ np.where(near, close, np.expm1(s * y) - s * x))) * (1 - SAFETY))
    return np.array(rates)


def _least_samples(log_failure: Callable[[float], float], delta: float, guess: float) -> float:
    return least_integer(lambda n: log_failure(float(n)) + SLACK <= math.log(delta), low=1, guess=guess)
