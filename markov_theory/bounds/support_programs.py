"""How likely wrong supports are to do as well as the truth: certified by one concave program a hull.

Let q be the truth and P some rows. By Hölder the affinities of their hull, ``A_λ = max_{β∈Δ} Σ_j q_j^{1−λ}(Pᵀβ)_j^λ``
with 0 < λ < 1, have for *every* law q' the bound

    log A_λ ≤ (1−λ)·log Σ_j q_j^{1−λ}q'_j^λ + λ·log max_v Σ_j p_v(j)(q_j/q'_j)^{1−λ},

an equality where q' is the maximiser: an answer that a solver did not finish is loose and never wrong. Over N samples

    P(some support of the hull does as well as q) ≤ (m·R)^λ·A_λ^N

for m supports of at most k rows each: let M be the average of the likelihood over these supports, with Dirichlet(½)
weights on each. Then the largest likelihood is at most m·R·M; M is a product of predictive laws that lie in the hull,
so E_q[(M/likelihood of q)^λ] ≤ A_λ^N, one sample after another; and Markov. Here R = √π·Γ(N+k/2)/(Γ(k/2)Γ(N+½)) is
the regret of the average at the most favourable choice of rows: x ↦ log(x^x/Γ(x+½)) is convex, hence
Π_i n_i^{n_i}/Γ(n_i+½) is largest where one n_i is N (Cover and Ordentlich 1996); R ≤ 2(N+1)^{(k−1)/2}.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, expit, gammaln, logsumexp

from markov_theory._checks import Array, IntArray
from markov_theory.bounds.base import least_integer
from markov_theory.solvers.relaxation import projection_weights

ROUGH = expit(np.arange(-5.0, 5.5))  # λ at which every hull is bounded
FINE = expit(np.arange(-3.5, 1.6, 0.25))  # λ at which those that matter are bounded closely
USUAL = 0.01  # the δ by which it is told which ones matter: N must not depend on δ by it
MAX_ROUNDS = 30
SHARP = 1e-3  # certified, relative to log A_λ
NEGLIGIBLE = 7.0  # a hull does not whose term is e^{−7} of its share of δ


@dataclass(frozen=True, eq=False)
class WrongSupports:
    """Hulls that hold the laws of all wrong supports.

    Attributes
    ----------
    log_affinities : ndarray, shape (n, len(tilts))
        Upper bounds on log A_λ of n hulls (nats a sample).
    tilts : ndarray
        λ.
    log_count : float
        log m, the supports that each hull stands for.
    n_parts : int
        k, the rows of each support.
    """

    log_affinities: Array
    tilts: Array
    log_count: float
    n_parts: int

    def log_terms(self, n_samples: int) -> Array:
        """For every hull, at N ≥ 1, the least of ``λ(log m + log R) + N·log A_λ`` over λ, shape (n,)."""
        price = self.log_count + log_regret(n_samples, self.n_parts)
        return np.asarray((float(n_samples) * self.log_affinities + self.tilts * price).min(axis=1))

    def log_failure(self, n_samples: int) -> float:
        """Log of a bound on the probability that some wrong support does as well as the truth.

        The N at which it is at most log δ < 0 are all those from some N on: for a fixed λ each term is concave in
        log, since R(N+1)/R(N) = (N+k/2)/(N+½) falls, and is at least 0 at N = 0.
        """
        if self.log_affinities.shape[0] == 0:
            return -math.inf
        if n_samples == 0:
            return 0.0
        return float(logsumexp(self.log_terms(n_samples))) + 1e-12

    def n_samples(self, delta: float) -> float:
        """Least N with failure ≤ δ; ``inf`` if a hull comes too near the truth for any N."""
        slowest = float(-self.log_affinities.min(axis=1).max(initial=-math.inf))
        if slowest <= 0:
            return math.inf
        guess = 1.0 if math.isinf(slowest) else math.log(1 / delta) / slowest
        return least_integer(lambda n: self.log_failure(n) <= math.log(delta), guess=guess)


def wrong_supports(
    transitions: Array, law: Array, hulls: Sequence[IntArray], log_count: float, n_parts: int
) -> WrongSupports:
    """Bound the affinities of hulls of rows: of all roughly, and closely of those that matter.

    Parameters
    ----------
    transitions : ndarray, shape (T, J)
    law : ndarray, shape (J,)
        q.
    hulls : sequence of ndarray of int
        Rows of each hull.
    log_count, n_parts
        See `WrongSupports`.
    """
    rough = np.empty((len(hulls), ROUGH.size))
    for i, hull in enumerate(hulls):
        rows = transitions[hull]
        nearest = projection_weights(rows, law[None, :]) @ rows
        rough[i] = log_affinity_bounds(rows, law, nearest, ROUGH)
    found = WrongSupports(rough, ROUGH, log_count, n_parts)
    n_samples = found.n_samples(USUAL)
    if math.isinf(n_samples) or not hulls:
        return found
    close = np.full((len(hulls), FINE.size), np.inf)
    matters = found.log_terms(int(n_samples)) >= math.log(USUAL / len(hulls)) - NEGLIGIBLE
    for i in np.flatnonzero(matters).tolist():
        close[i] = closest_affinity_bounds(transitions[hulls[i]], law, FINE)
    return WrongSupports(np.hstack([rough, close]), np.append(ROUGH, FINE), log_count, n_parts)


def log_affinity_bounds(rows: Array, law: Array, mixtures: Array, tilts: Array) -> Array:
    """Upper bounds on log A_λ of the hull of rows (k, J) at n values of λ, from a mixture q' for each or for all.

    Parameters
    ----------
    rows : ndarray, shape (k, J)
    law : ndarray, shape (J,)
        q.
    mixtures : ndarray, shape (n, J) or (1, J)
        q'; of the rows for the bound to be good, any laws for it to hold.
    tilts : ndarray, shape (n,)
        λ.

    Returns
    -------
    ndarray, shape (n,)
        −∞ if the rows reach nothing that q can give; ∞ where a q' misses an outcome that both q and the rows can.
    """
    live = (law > 0) & (mixtures > 0)
    tilt = tilts[:, None]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        relative = (law - mixtures) / mixtures
        log_ratio = np.log(law / mixtures)
        np.log1p(relative, out=log_ratio, where=np.abs(relative) < 0.5)  # log q/q' to its last digits
        by_row = _log_mean(rows, np.where(live, (1 - tilt) * log_ratio, -np.inf)).max(axis=1)
        own = _log_mean(law[None, :], np.where(live, -tilt * log_ratio, -np.inf))[:, 0]
        bound = (1 - tilts) * own + tilts * by_row
    missed = (law > 0) & (rows.max(axis=0) > 0) & (mixtures <= 0)
    return np.where(missed.any(axis=1) | np.isnan(bound), np.inf, bound)


def closest_affinity_bounds(rows: Array, law: Array, tilts: Array) -> Array:
    """`log_affinity_bounds` at mixtures that nearly attain them: q' ← argmin KL(w‖·), w ∝ q^{1−λ}q'^λ.

    Each step raises the affinity of q' (Jensen), and shortens the distance to the maximum by about the factor λ.

    Examples
    --------
    >>> rows, q = np.array([[.5, .4, .1], [.4, .1, .5]]), np.full(3, 1 / 3)
    >>> np.exp(closest_affinity_bounds(rows, q, np.array([.5]))).round(4).tolist()
    [0.9923]
    """
    mixtures = np.repeat(projection_weights(rows, law[None, :]) @ rows, tilts.size, axis=0)
    best, reached = np.full(tilts.size, np.inf), np.full(tilts.size, -np.inf)
    weight = np.where(law > 0, law, 1.0) ** (1 - tilts[:, None]) * (law > 0)
    active = np.arange(tilts.size)
    for _ in range(MAX_ROUNDS):
        best[active] = np.minimum(best[active], log_affinity_bounds(rows, law, mixtures, tilts[active]))
        tilted = weight[active] * mixtures ** tilts[active, None]
        total = tilted.sum(axis=1)
        reached[active] = np.maximum(reached[active], np.log(np.maximum(total, np.finfo(float).tiny)))
        left = (best - reached > SHARP * np.abs(best))[active] & (total > 0)
        active = active[left]
        if active.size == 0:
            break
        mixtures = projection_weights(rows, tilted[left] / total[left, None]) @ rows
    return best


def log_regret(n_samples: int, n_parts: int) -> float:
    """Log of ``R = √π·Γ(N+k/2)/(Γ(k/2)Γ(N+½))``: what averaging over the weights of k rows costs; 0 for k = 1.

    Examples
    --------
    >>> round(math.exp(log_regret(1, 2)), 6), log_regret(100, 1)
    (2.0, 0.0)
    """
    if n_parts == 1:
        return 0.0
    half, N = (n_parts - 1) / 2, float(n_samples)
    ratio = gammaln(half) - betaln(N + 0.5, half)  # log Γ(N+k/2)/Γ(N+½)
    return float(0.5 * math.log(math.pi) - gammaln(n_parts / 2) + ratio) + 1e-7


def _log_mean(laws: Array, power: Array) -> Array:
    """``log Σ_j p(j)·e^{x_j}``, from above, for laws (k, J) and x (n, J), −∞ allowed; shape (n, k).

    Near 0 it is summed from e^x − 1, which keeps the digits of values that a sum near 1 would drown.
    """
    change = np.expm1(power)
    excess = change @ laws.T
    rounding = laws.shape[1] * np.finfo(float).eps
    near = np.log1p(np.maximum(excess, -0.5) + rounding * (np.abs(change) @ laws.T))
    if (excess > -0.5).all():
        return near
    return np.where(excess > -0.5, near, np.log(np.exp(power) @ laws.T) + rounding + 1e-12)
