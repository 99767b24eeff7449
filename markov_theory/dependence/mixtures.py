"""Arm 4, exact part: mixtures of Walsh rows p_v = (1 + η·h_v)/J, for which N* of exact ℓ0 can be computed.

*The right size.* The truth is (p_1 + p_2)/2 among T rows, s = 2. On the true support the fitted law depends on two
binomial counts, so failure there is exact, and it is failure, since all other pairs are far beyond ε; some other pair
does as well as the truth with at most the probability that `markov_theory.bounds.support_programs` certifies, with a
law of one's own choice for each row left out.

*One row more.* The truth is the uniform row, every other row is spare, s = 2. A maximiser mixes the truth with the
spare row of largest S_w = Σ_i h_w(X_i), to y = S_w/N, and fails if KL = −½log(1−y²) > ε. The S_w are ± walks,
*pairwise independent*, so Bonferroni's inequalities confine the probability that one of them is too large; pairs of
spare rows that do better than any with the truth add at most what is certified as above.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy.linalg import hadamard
from scipy.special import bdtrc, gammaln, rel_entr
from scipy.stats import norm

from markov_theory import _checks
from markov_theory._checks import Array, IntArray
from markov_theory.bounds.known_support_sharp import S6One
from markov_theory.bounds.sparse import log_binomial
from markov_theory.bounds.support_programs import ROUGH, WrongSupports, log_affinity_bounds
from markov_theory.dependence.series import Measured, Setting, least_from_where
from markov_theory.verify.two_outcomes import interval_failures

DEPTH, OUTCOMES, EPSILON = 0.8, 1024, 1e-3
NEGLIGIBLE = 1e-6  # share of δ left to other supports where the scan begins


def walsh_rows(n_tokens: int, n_outcomes: int = OUTCOMES, depth: float = DEPTH, first: int = 1) -> Array:
    """Rows (1 + η·h_v)/J for T Walsh functions from number `first` on; number 0 is constant. Shape (T, J)."""
    T = _checks.whole(n_tokens, "n_tokens", low=1, high=n_outcomes - first)
    signs = hadamard(n_outcomes)[first : first + T].astype(np.float64)
    signs[signs.min(axis=1) > 0] = 0.0  # the constant one stands for the uniform row
    return np.asarray((1 + depth * signs) / n_outcomes)


def known_pair_failures(n_samples: IntArray, epsilon: float, depth: float = DEPTH) -> Array:
    """P(KL(q‖q̂) > ε) for maximum likelihood over the mixtures of p_1 and p_2 alone, at many N.

    Mixtures differ only where h_1 ≠ h_2, which has probability ½, and there by the conditional law of h_1: a coin
    in [(1−η)/2, (1+η)/2] whose KL from the truth ½ is twice the mixtures'.
    """
    N = n_samples.astype(np.float64)[:, None]
    m = np.arange(int(n_samples.max()) + 1)
    coin = interval_failures((1 - depth) / 2, (1 + depth) / 2, 0.5, m, 2 * epsilon)
    with np.errstate(invalid="ignore"):
        log_pmf = gammaln(N + 1) - gammaln(m + 1.0) - gammaln(np.maximum(N - m, 0) + 1) - N * math.log(2)
    return np.where(m <= N, np.exp(log_pmf), 0.0) @ coin


def other_pairs(rows: Array) -> WrongSupports:
    """What bounds P(a pair that lacks row 0 or row 1 does as well as (p_0 + p_1)/2).

    Row v is replaced by the uniform law in the mixture to which the hull of all rows but v is compared.
    """
    T, J = rows.shape
    law = rows[:2].mean(axis=0)
    bounds = []
    for v in (0, 1):
        compared = (rows[1 - v] + 1 / J) / 2
        bounds.append(log_affinity_bounds(np.delete(rows, v, axis=0), law, compared[None, :], ROUGH))
    return WrongSupports(np.array(bounds), ROUGH, log_binomial(T - 1, 2), 2)


def measure_pair(n_tokens: int, repeat: int, setting: Setting) -> Measured:
    """N*_last of exact ℓ0 with s = ‖α*‖₀ = 2, between that of the known support and that with other pairs' share."""
    rows, delta = walsh_rows(n_tokens), setting.delta
    others = other_pairs(rows)

    def known(n: IntArray) -> Array:
        return known_pair_failures(n, EPSILON)

    def high(n: IntArray) -> Array:
        wrong = [others.log_failure(int(k)) for k in n]
        return known(n) + np.exp(np.minimum(wrong, 0.0))

    top = int(S6One.n_samples(rows[:2], rows[:2].mean(axis=0), EPSILON, delta * (1 - NEGLIGIBLE)))
    if others.log_failure(top) > math.log(NEGLIGIBLE * delta):
        raise ArithmeticError(f"other supports are not excluded at N = {top} for T = {n_tokens}")
    low = least_from_where(known, top, delta)
    worst = least_from_where(high, top, delta)
    wrong = math.exp(others.log_failure(low))
    return Measured(float(worst), float(low), float(worst), facts={"two_epsilon": 2 * EPSILON, "wrong": wrong})


def largest_deviation(epsilon: float) -> float:
    """The y with KL = −½log(1−y²) = ε."""
    return math.sqrt(-math.expm1(-2 * epsilon))


def spare_failure(
    n_samples: IntArray, n_spare: int, epsilon: float, depth: float = DEPTH
) -> tuple[Array, Array, Array]:
    """Lower bound, value for independent walks, and upper bound of the failure probability with m spare rows.

    By Bonferroni it is at least mp − C(m,2)p² and at most mp, p = P(S_w > Ny), beside what pairs of spare rows add.
    """
    N, y = n_samples, largest_deviation(epsilon)
    if not y < depth:
        raise ValueError(f"epsilon must be less than the KL of a whole step to a spare row, got {epsilon:g}")
    p = np.where(N > 0, bdtrc(np.floor(N * (1 + y) / 2), np.maximum(N, 1), 0.5), 1.0)
    pairs = n_spare * (n_spare - 1) / 2
    cells = np.array([[1, 1, -1, -1], [1, -1, 1, -1]], dtype=np.float64)
    rows = (1 + depth * cells) / 4
    bound = log_affinity_bounds(rows, np.full(4, 0.25), rows.mean(axis=0)[None, :], ROUGH)
    rivals = WrongSupports(bound[None, :], ROUGH, 0.0, 2)
    wrong = np.exp([min(rivals.log_failure(int(n)), 0.0) for n in N]) * pairs
    low = np.where(N > 0, n_spare * p - pairs * p**2, 1.0)
    independent = -np.expm1(n_spare * np.log1p(-np.minimum(p, 1 - 1e-16)))
    return np.maximum(low, p), independent, np.minimum(n_spare * p + wrong, 1.0)


def measure_spare(n_tokens: int, repeat: int, setting: Setting) -> Measured:
    """N*_last of exact ℓ0 with s = 2 = ‖α*‖₀ + 1 and T − 1 spare rows: certified limits, and the value in between."""
    m, delta = n_tokens - 1, setting.delta
    y = largest_deviation(EPSILON)
    rate = float(rel_entr((1 + y) / 2, 0.5) + rel_entr((1 - y) / 2, 0.5))  # Chernoff: p <= e^{−N·rate}
    top = math.ceil(math.log(m / delta) / rate) + 1
    while spare_failure(np.array([top]), m, EPSILON)[2][0] + m * math.exp(-rate * top) > delta:
        top += math.ceil(1 / rate)

    @cache
    def block(first: int, last: int) -> tuple[Array, Array, Array]:
        return spare_failure(np.arange(first, last + 1), m, EPSILON)

    def found(which: int) -> float:
        return float(least_from_where(lambda n: block(int(n[0]), int(n[-1]))[which], top, delta))

    low, middle, high = found(0), found(1), found(2)
    return Measured(middle, low, high, facts={"two_epsilon": 2 * EPSILON})


def spare_limit(n_tokens: float, delta: float = 0.05) -> float:
    """The 1−δ point of max_w (Z_w)₊² over T − 1 independent normal Z_w: the limit of 2εN* as ε → 0.

    Examples
    --------
    >>> [round(spare_limit(T), 2) for T in (2, 32, 512)]
    [2.71, 8.63, 13.82]
    """
    return float(norm.isf(-math.expm1(math.log1p(-delta) / (n_tokens - 1)))) ** 2
