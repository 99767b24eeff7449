"""A hull of rows about a truth inside it, in whitened coordinates: what the sharp statements on a known support read.

The coordinates v are whitened at the truth q: ``q_v(j) = q_j(1 + v·φ_j)`` with E_q φ = 0 and E_q φφᵀ = I; n_j = ‖φ_j‖,
Λ = max_j n_j and ``M(w) = E_q[w(n)φφᵀ]``. In these coordinates KL(q‖q_v) is |v|²/2 to second order.
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
from markov_theory.bounds.known_support import require_mixture
from markov_theory.bounds.sparse import hull_directions
from markov_theory.divergences import kl_divergence

SAFETY = 1e-12  # relative, by which a root is moved to the side where its statement is weaker
LARGEST_RATIO = 1e60  # of a row to the truth, beyond which an outcome counts as one that the truth cannot give
SLACK = 1e-9  # by which the log of a failure probability is raised or lowered, above its rounding


class KnownSupport(NamedTuple):
    """A hull of s rows and a law q in it, in whitened coordinates, over the J' outcomes that q can give."""

    epsilon: float
    law: Array  # (J',)
    phi: Array  # (J', r)
    norms: Array  # (J',), n_j = ‖φ_j‖
    moves: Array  # (s, J'), p_v/q − 1
    vertices: Array  # (s, r), the rows' v
    divergences: Array  # (s,), KL(q‖p_v)
    rank: int  # r, the dimension of the rows' affine hull
    cannot_fail: bool  # r = 0, or every mixture is ε-close: KL is convex in the second law, so the worst is a row
    is_singular: bool  # q_j = 0, or next to it, where a row is positive: Δ_j/q_j has no bound

    @classmethod
    def of(cls, support_rows: ArrayLike, target: ArrayLike, epsilon: float) -> KnownSupport:
        """Validate; raises ValueError if `target` is no mixture of `support_rows`."""
        rows = _checks.as_transitions(support_rows, "support_rows")
        q = _checks.as_laws(target, "target")
        require_mixture(rows, q)
        epsilon, divergences = _checks.positive(epsilon, "epsilon"), kl_divergence(q, rows)
        live = (q > 0) & (q * LARGEST_RATIO >= rows.max(axis=0))
        law, singular = q[live], bool((rows[:, ~live] > 0).any())
        phi = hull_directions(rows, np.where(live, q, 0.0))[live] / np.sqrt(law)[:, None]
        moves, rank, norms = rows[:, live] / law - 1, phi.shape[1], np.sqrt((phi**2).sum(axis=1))
        safe = float(divergences.max()) <= epsilon or (rank == 0 and not singular)
        return cls(epsilon, law, phi, norms, moves, (law * moves) @ phi, divergences, rank, safe, singular)

    def moment(self, weights: Array) -> Array:
        """``M(w) = E_q[w φφᵀ]`` for weights of the outcomes (J',), shape (r, r)."""
        return (self.phi * (self.law * weights)[:, None]).T @ self.phi

    def bounded(self, n_samples: int, log_failure: Callable[[float], float]) -> float:
        """Upper bound on the failure at N from its log, rounded up; 0 or 1 where that needs no bound."""
        N = _checks.whole(n_samples, "n_samples")
        if self.cannot_fail:
            return 0.0
        if N == 0 or self.is_singular:
            return 1.0  # without a sample every mixture maximises the likelihood
        return math.exp(min(0.0, log_failure(float(N)) + SLACK))

    def reach(self, sign: int, low: float, high: float) -> float:
        """D in [low, high] where ``D²λ M(c(±Dn))`` is ε, λ = λ_max for + and λ_min for −; `high` if it stays below."""

        def log_excess(log_reach: float) -> float:
            M = self.moment(log_curvature(sign * math.exp(log_reach) * self.norms))
            return 2 * log_reach + math.log(float(np.linalg.eigvalsh(M)[-1 if sign > 0 else 0]) / self.epsilon)

        ends = math.log(low), math.log(high)
        return high if log_excess(ends[1]) <= 0 else math.exp(brentq(log_excess, *ends, xtol=1e-14, rtol=1e-13))

    def sides(self, outward: bool) -> list[Array]:
        """For rows on a line, ``x = q_±/q − 1`` (J',) of the points of the hull with KL(q‖q_±) = ε: one or two.

        They are moved by rounding, outward or toward q; one that then leaves the hull is left out.
        """
        position, found = self.vertices[:, 0], []
        for end in (int(position.argmax()), int(position.argmin())):
            if self.divergences[end] > self.epsilon:
                share = share_at(self.moves[end], self.law, self.epsilon) * (1 + (SAFETY if outward else -SAFETY))
                if share < 1:
                    found.append(share * self.moves[end])
        return found


def log_curvature(b: Array) -> Array:
    """``c(b) = (−log(1−b) − b)/b²`` for b < 1, 1/2 at 0, without cancellation; increasing."""
    near = np.abs(b) < 0.05
    series = np.polyval(1 / np.arange(14.0, 1.0, -1.0), np.where(near, b, 0.0))
    safe = np.where(near, 0.5, b)
    return np.asarray(np.where(near, series, (-np.log1p(-safe) - safe) / safe**2))


def share_at(move: Array, law: Array, epsilon: float) -> float:
    """τ in (0, 1] with ``KL(q‖q(1+τx)) = E[(τx)²c(−τx)] = ε`` for a move x with E x = 0 and more than ε at τ = 1."""

    def excess(share: float) -> float:
        x = share * move
        return math.sqrt(float(law @ (x * x * log_curvature(-x))) / epsilon) - 1

    # 1/(2(1+x)) <= c(−x) <= 1/2 for x >= 0
    square, bend = float(law @ move**2), epsilon * float(move.max())
    high = min((bend + math.sqrt(bend**2 + 2 * epsilon * square)) / square * (1 + SLACK), 1 - 2.0**-52)
    low = min(radius_below(epsilon, square, -float(move.min())), high)
    return brentq(excess, low, high, xtol=1e-300, rtol=1e-14) if excess(high) > 0 else 1.0


def radius_below(epsilon: float, square: float, top: float) -> float:
    """D, from below, with ``D²·square/(2(1 − D·top)) = ε``; c(b) ≤ 1/(2(1−b)) for b ≥ 0."""
    bend = epsilon * top
    return 2 * epsilon / (bend + math.sqrt(bend**2 + 2 * epsilon * square)) * (1 - SLACK)
