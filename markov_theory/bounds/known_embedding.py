"""Embedding mixtures on a known support: the sharp bound, at the Wilks rate up to a small factor."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.spatial.distance import pdist
from scipy.special import gammaln, ive, logsumexp

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound, least_integer

RANK_TOLERANCE = 64 * np.finfo(float).eps
MOST_PAIRED = 4096  # outcomes up to which the diameter is measured over all pairs
GRID = np.exp(np.linspace(-8, 2, 41))


class Statistics(NamedTuple):
    """Whitened sufficient statistic φ (J, r) under the truth, its diameter ω and its largest norm Λ."""

    phi: Array
    law: Array
    diameter: float
    leverage: float


class E4(Bound):
    """Known support, at the Wilks rate: the least N with ``inf_h (1 + h²G(Λh))^N / Ψ_r(hN(1−e^{−ωD})/ω) ≤ δ``.

    φ is the statistic x(j) = E_S w_j, centred and whitened under the truth, of rank r; ω = max ‖φ_j − φ_k‖ and
    Λ = max ‖φ_j‖; G(b) = (e^b − 1 − b)/b²; D solves D²G(ωD) = ε; Ψ_r(z) = Γ(r/2)(2/z)^{r/2−1}I_{r/2−1}(z). For
    r = 1 it is the least N with ``Σ_± e^{−N·KL(q_±‖q)} ≤ δ``, where KL(q‖q_±) = ε. ε in nats, N in samples. Derived
    here. It speaks of maximum likelihood on the known support, free or in a ball, and, given W in place of W E_Sᵀ, of
    unconstrained embedding tuning; a missing maximiser counts as a failure.

    Loose against Wilks by a factor of about 1.5 to 3 for small ε; more where an outcome is rare, as ω is large then.

    Examples
    --------
    >>> E4.n_samples(support_scores=[[1.0], [-1.0]], target=[.5, .5], epsilon=1e-3, delta=0.05)
    3692.0
    """

    label = "E4"
    kind = "upper"
    origin = "derived"
    speaks_of = ("embedding-oracle",)
    statement = (
        "P(KL(q||q_hat) > eps or no maximiser) <= inf_h (1 + h^2 G(Lambda h))^N / Psi_r(h N (1-exp(-omega D))/omega), "
        "D^2 G(omega D) = eps; r = 1: <= sum over +- of exp(-N KL(q_+-||q)), KL(q||q_+-) = eps"
    )
    reason = (
        "In whitened coordinates KL(q||q_theta) is the log-partition psi, and |psi'''| <= omega psi'' along rays, so "
        "|theta| <= D keeps KL <= eps. By concavity a failure leaves a unit u along which the likelihood still rises "
        "at D: u.mean(phi) >= psi'(D) >= (1-exp(-omega D))/omega. For r = 1 Chernoff's bound of this half-line is "
        "exp(-N KL(q_theta||q)); else average exp(h u.sum(phi)) over the sphere and use Markov."
    )
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(support_scores: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """Return N; 0 if the scores are the same for every outcome, ``inf`` if an outcome has probability 0.

        Raises
        ------
        ValueError
            If `support_scores` (J, s) does not match `target` (J,).
        """
        epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
        law = _checks.as_laws(target, "target")
        scores = np.array(support_scores, dtype=np.float64)
        if scores.ndim != 2 or law.ndim != 1 or scores.shape[0] != law.size:
            raise ValueError(f"support_scores must have shape (J, s), J = {law.size}, got {scores.shape}")
        if not np.isfinite(scores).all():
            raise ValueError("support_scores must be finite")
        if (law == 0).any():
            return math.inf if np.ptp(scores, axis=0).any() else 0.0
        statistics = whitened(scores, law)
        rank = statistics.phi.shape[1]
        if rank == 0:
            return 0.0
        guess = (math.sqrt(rank) + math.sqrt(2 * math.log(2 / delta))) ** 2 / (2 * epsilon)
        if rank == 1:
            rates = np.array([_exponent(sign * statistics.phi[:, 0], law, epsilon) for sign in (1, -1)])
            return least_integer(lambda n: float(np.exp(-rates * float(n)).sum()) <= delta, low=1, guess=guess)
        reach = _reach(statistics.diameter, epsilon)
        return least_integer(
            lambda n: log_sphere_failure(float(n), rank, statistics.leverage, reach) <= math.log(delta),
            low=1,
            guess=guess,
        )


def whitened(scores: Array, law: Array) -> Statistics:
    """Statistic of mean 0 and covariance 1 under `law` (J,) that spans the centred `scores` (J, s)."""
    root = np.sqrt(law)
    U, singular, _ = np.linalg.svd(root[:, None] * (scores - law @ scores), full_matrices=False)
    size = float(np.abs(scores).max(initial=0.0)) * math.sqrt(scores.shape[1])
    phi = U[:, singular > RANK_TOLERANCE * size] / root[:, None]
    leverage = float(np.linalg.norm(phi, axis=1).max(initial=0.0))
    diameter = float(pdist(phi).max(initial=0.0)) if phi.size > 0 and law.size <= MOST_PAIRED else 2 * leverage
    return Statistics(phi, law, diameter, leverage)


def log_sphere_mean(rank: int, z: Array) -> Array:
    """Log of ``Ψ_r(z)``, the mean of e^{z u·e} over unit vectors u in R^r; from below where Bessel underflows.

    There I_{ν+1}/I_ν ≥ z/(a + √(a² + z²)), a = ν + 1 = r/2 (Amos 1974), integrates to
    ``√(a² + z²) − a − a·log((a + √(a² + z²))/(2a))``.

    Examples
    --------
    >>> float(log_sphere_mean(3, np.array([2.0]))[0].round(9)), round(math.log(math.sinh(2) / 2), 9)
    (0.595220192, 0.595220192)
    """
    a = rank / 2
    z = np.maximum(z, 1e-300)
    root = np.sqrt(a * a + z * z)
    lower = root - a - a * np.log((a + root) / (2 * a))
    bessel = ive(a - 1, z)
    usable = bessel > 1e-280
    exact = gammaln(a) + (a - 1) * np.log(2 / z) + np.log(np.where(usable, bessel, 1.0)) + z
    return np.asarray(np.where(usable, np.maximum(exact, lower), lower))


def second_order(b: Array) -> Array:
    """``G(b) = (e^b − 1 − b)/b²``, 1/2 at 0, without cancellation."""
    small = np.minimum(np.abs(b), 0.05) * np.sign(b)
    series = 1 / 2 + small * (1 / 6 + small * (1 / 24 + small * (1 / 120 + small * (1 / 720 + small / 5040))))
    safe = np.where(np.abs(b) < 0.05, 1.0, b)
    return np.asarray(np.where(np.abs(b) < 0.05, series, (np.expm1(safe) - safe) / safe**2))


def _reach(diameter: float, epsilon: float) -> float:
    """Least mean statistic of a failure, ``(1 − e^{−ωD})/ω`` with D²G(ωD) = ε."""
    low, high = 0.0, 1.0
    scaled = epsilon * diameter**2  # e^x − 1 − x = εω² for x = ωD

    def value(x: float) -> float:
        return x * x * float(second_order(np.array(x))) / scaled - 1

    while value(high) < 0:
        low, high = high, 2 * high
    if high == 1.0:
        high = min(1.0, math.sqrt(2 * scaled))  # e^x − 1 − x ≥ x²/2
    x = float(brentq(value, low, high * (1 + 1e-12), xtol=1e-300, rtol=1e-14))
    return -math.expm1(-x * (1 - 1e-13)) / diameter


def log_sphere_failure(n_samples: float, rank: int, leverage: float, reach: float) -> float:
    """Log of the bound on the failure probability at N, minimised over h; any h is valid."""

    def value(h: Array) -> Array:
        growth = n_samples * np.log1p(h * h * second_order(leverage * h))
        return np.asarray(growth - log_sphere_mean(rank, h * n_samples * reach))

    grid = GRID * reach
    grid = grid[leverage * grid < 500]
    if grid.size == 0:
        return 0.0
    values = value(grid)
    best = int(values.argmin())
    around = np.log(grid[[max(best - 1, 0), min(best + 1, grid.size - 1)]])
    if around[1] <= around[0]:
        return float(values[best])
    refined = minimize_scalar(lambda t: float(value(np.exp(np.array(t)))), bounds=tuple(around), method="bounded")
    return min(float(values[best]), float(refined.fun))


def _exponent(phi: Array, law: Array, epsilon: float) -> float:
    """``KL(q_t‖q) = tψ'(t) − ψ(t)`` at the t > 0 with ``ψ(t) = log E_q e^{tφ} = ε``."""

    def psi(t: float) -> float:
        x = t * phi
        if np.abs(x).max() < 1:
            return math.log1p(float(law @ (x * x * second_order(x))))  # E_q φ = 0
        return float(logsumexp(x, b=law))

    high = 1.0
    while psi(high) < epsilon:
        high *= 2
    t = float(brentq(lambda t: psi(t) / epsilon - 1, 0.0, high, xtol=1e-300, rtol=1e-14)) * (1 - 1e-13)
    tilted = law * np.exp(t * phi - float(logsumexp(t * phi, b=law)))
    mean = float(tilted @ phi) if t * np.abs(phi).max() >= 1e-3 else float(law @ (phi * np.expm1(t * phi)))
    return t * mean - psi(t)
