"""Known support: samples until maximum likelihood over a convex set of mixtures is ε-close to the truth.

The sharp counterpart of the nets: no union over a cover, hence the asymptotic (Wilks) rate up to a small
factor.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound, least_integer
from markov_theory.bounds.sparse import hull_directions
from markov_theory.divergences import kl_divergence

MEMBERSHIP_TOLERANCE = 1e-7


class HullGeometry(NamedTuple):
    """What S6 asks of a hull of rows at a law q: its dimension r, and Λ with ``|Δ_j/q_j| ≤ Λ‖Δ/√q‖``."""

    dimension: int
    leverage: float


class S6(Bound):
    """Known support, at the Wilks rate: the least N with ``x²/(2(1−Λx)) ≤ ε`` suffices for ``KL(q‖q̂) ≤ ε``.

    With r = dim aff of the support's rows, B an orthonormal basis of {Δ/√q : Δ a direction of their hull},
    Λ² = max_j (Σ_i B_ji²)/q_j, t = log(2/δ)::

        Z = [√r + √(2t(1 + 2Λ√(r/N))) + Λt/(3√N)]/√N
        r·exp(−(N/Λ²)(θ + (1−θ)log(1−θ))) = δ/2
        x = Z/(1−θ−ΛZ), where ΛZ < 1−θ and Λx < 1

    ε in nats, N in samples; the leading term is (√r + √(2 log 2/δ))²/(2ε). Derived here. It speaks of maximum
    likelihood over all mixtures of the given rows, so of the simplex too, with all rows as the support.

    Loose by the even split of δ and by Λ: 2 to 6 times Wilks for ε ≤ 1e-3 on random dictionaries, far more
    where an outcome is rare under q and not under a row.

    Examples
    --------
    >>> S6.n_samples(support_rows=[[.2, .8], [.8, .2]], target=[.5, .5], epsilon=1e-3, delta=0.05)
    8540.0
    """

    label = "S6"
    kind = "upper"
    origin = "derived"
    speaks_of = ("oracle",)
    statement = (
        "least N with x^2/(2(1-Lambda x)) <= eps, x = Z/(1-theta-Lambda Z): maximum likelihood over the "
        "mixtures of the support has KL(q||q_hat) <= eps with probability >= 1-delta"
    )
    reason = (
        "First-order optimality on a convex set, D = q_hat - q: sum p_N D^2/(q q_hat) <= sum (p_N - q) D/q "
        "<= Z |D/sqrt q|, Z by Bousquet's inequality (mean square r/N); the left side is at least (1-theta) "
        "|D/sqrt q|^2/(1 + Lambda |D/sqrt q|) by the matrix Chernoff bound; each fails with probability "
        "delta/2. So |D/sqrt q| <= x, and KL <= x^2/(2(1-Lambda x)) since |D/q| <= Lambda x < 1."
    )
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(support_rows: ArrayLike, target: ArrayLike, epsilon: float, delta: float) -> float:
        """Return N; 0 if every mixture is ε-close, ``inf`` if q_j = 0 where a row is positive.

        Raises
        ------
        ValueError
            If `target` is no mixture of `support_rows`.
        """
        rows = _checks.as_transitions(support_rows, "support_rows")
        law = _checks.as_laws(target, "target")
        epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
        require_mixture(rows, law)
        if float(kl_divergence(law, rows).max()) <= epsilon:  # convex in the second law: the worst is a row
            return 0.0
        if (rows.max(axis=0)[law == 0] > 0).any():
            return math.inf
        hull = hull_geometry(rows, law)
        if hull.dimension == 0:
            return 0.0
        wilks = (math.sqrt(hull.dimension) + math.sqrt(2 * math.log(2 / delta))) ** 2 / (2 * epsilon)
        return least_integer(lambda n: _radius(hull, n, delta) <= epsilon, low=1, guess=wilks)


def hull_geometry(rows: Array, law: Array) -> HullGeometry:
    """Dimension and leverage of the affine hull of `rows` (s, J) at an interior `law` (J,)."""
    basis = hull_directions(rows, law)
    live = law > 0
    leverage = (basis[live] ** 2).sum(axis=1) / law[live]
    return HullGeometry(basis.shape[1], math.sqrt(float(leverage.max(initial=0.0))))


def require_mixture(rows: Array, law: Array) -> None:
    """Raise ValueError unless `law` is a convex combination of `rows`, to 1e-7 relative to √q."""
    if rows.shape[1] != law.shape[-1] or law.ndim != 1:
        raise ValueError(f"target must have shape ({rows.shape[1]},) to match the rows, got {law.shape}")
    scale = 1 / np.sqrt(np.maximum(law, rows.mean(axis=0)) + np.finfo(float).tiny)
    _, residual = nnls((rows * scale).T, law * scale, maxiter=50 * rows.shape[0] + 1000)
    if residual > MEMBERSHIP_TOLERANCE:
        raise ValueError(f"target must be a mixture of the support's rows; the nearest one is {residual:.2g} off")


def _radius(hull: HullGeometry, n_samples: int, delta: float) -> float:
    """Bound on ``KL(q‖q̂)`` with probability 1−δ at N samples: falls in N, ∞ while it says nothing."""
    r, Lambda, N, t = hull.dimension, hull.leverage, float(n_samples), math.log(2 / delta)
    deviation = math.sqrt(2 * t * (1 + 2 * Lambda * math.sqrt(r / N))) + Lambda * t / (3 * math.sqrt(N))
    Z = (math.sqrt(r) + deviation) / math.sqrt(N)
    theta = _chernoff_loss(Lambda * Lambda * math.log(2 * r / delta) / N)
    if not Lambda * Z < 1 - theta:
        return math.inf
    x = Z / (1 - theta - Lambda * Z)
    return x * x / (2 * (1 - Lambda * x)) if Lambda * x < 1 else math.inf


def _chernoff_loss(exponent: float) -> float:
    """θ in (0, 1] with ``θ + (1−θ)log(1−θ) = g``, from above; 1 for g ≥ 1."""
    if exponent >= 1:
        return 1.0
    theta = min(math.sqrt(2 * exponent), 1 - 1e-16)
    for _ in range(60):
        if theta < 0.05:
            value = sum(theta**k / (k * (k - 1)) for k in range(2, 14))
        else:
            value = theta + (1 - theta) * math.log1p(-theta)
        step = (value - exponent) / -math.log1p(-theta)
        if step <= 1e-15 * theta:
            break
        theta -= step
    return theta
