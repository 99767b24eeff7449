"""Embedding mixtures: samples until maximum likelihood through a softmax head is ε-close to the truth.

The truth is ``q = softmax(W Eᵀα + b)`` with at most s of T real weights non-zero and ‖α‖₂ ≤ B; the estimator
fails if *some* maximiser has ``KL(q‖q̂) > ε`` (nats), or if there is none. ``G_s = max_{j,k} √(sum of the s
largest (e_v·(w_j − w_k))² over v)``; within the class no two log-ratios of laws are more than L = 2·G_s·B apart.
"""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.stats import chi2

from markov_theory import _checks
from markov_theory.bounds.base import Bound, round_up
from markov_theory.bounds.sparse import log_binomial
from markov_theory.divergences import kappa

LARGEST_EXPONENT = 700.0


class E1(Bound):
    """Hoeffding over a net: ``N ≥ (2L²/ε²)·[log C(T,s) + s log(1 + 4L/ε) + log 1/δ]`` samples suffice.

    L = 2·G_s·B; ε and L in nats, N in samples. Derived here with its constants, in the form of the paper's claim
    N ≥ Õ(s log²c) with log c ≤ L. The truth must lie in the class. Dense
    weights in the ball are the case s = T, with G_T.

    Loose in ε as `S1` is; and G_s itself grows with s (up to like √s), so this is not linear in s at fixed B.

    Examples
    --------
    >>> E1.n_samples(n_tokens=128, sparsity=4, logit_spread=1.0, radius=1.0, epsilon=0.1, delta=0.05)
    29406.0
    """

    label = "E1"
    kind = "upper"
    origin = "derived"
    speaks_of = ("embedding-l0",)
    statement = (
        "N >= (2 L^2/eps^2) [log C(T,s) + s log(1 + 4 L/eps) + log 1/delta], L = 2 G_s B, implies KL(q||q_hat) <= eps "
        "with probability >= 1-delta"
    )
    reason = (
        "An eta-net of the s-sparse ball has C(T,s) (1 + 2B/eta)^s points; the nearest one on the same support moves "
        "every log-probability by at most G_s eta = eps/4. A maximiser with KL > eps forces a net point with KL > 3 "
        "eps/4 to lose at most eps/4 a sample. Its log-ratio to the truth is (w_j - w_k) x + const, of range at most "
        "L over j: Hoeffding and a union."
    )
    increasing = ("n_tokens", "logit_spread", "radius")
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(
        n_tokens: int, sparsity: int, logit_spread: float, radius: float, epsilon: float, delta: float
    ) -> float:
        """Return N; 0 where no two laws of the class differ by more than ε."""
        T, s, L, epsilon, delta = _class(n_tokens, sparsity, logit_spread, radius, epsilon, delta)
        if epsilon >= largest_kl_of_range(L):
            return 0.0
        log_net = log_binomial(T, s) + s * math.log1p(4 * L / epsilon)
        per_accuracy = L / epsilon
        return round_up(2 * per_accuracy * per_accuracy * (log_net - math.log(delta)))


class E2(Bound):
    """Hellinger over a net: ``N ≥ (4κ/ε)·[log C(T,s) + s log(1 + 2(κ+1)L/ε) + log 1/δ]`` samples suffice.

    κ = κ(e^L) ≤ 2 + L with L = 2·G_s·B; ε in nats, N in samples. Derived here. A solver within `gap` (nats a
    sample) of the maximum is covered with 4κ/(ε − 2κ·gap) in place of 4κ/ε. The truth must lie in the class.

    Loose, for small ε, by κ and log(1/ε) against the asymptotic law (`E3`), and by the bound L on the log-ratio.

    Examples
    --------
    >>> E2.n_samples(n_tokens=128, sparsity=4, logit_spread=1.0, radius=1.0, epsilon=0.1, delta=0.05)
    4472.0
    """

    label = "E2"
    kind = "upper"
    origin = "derived"
    speaks_of = ("embedding-l0",)
    statement = (
        "N >= (4 kappa/(eps - 2 kappa gap)) [log C(T,s) + s log(1 + 2(kappa+1)L/eps) + log 1/delta], L = 2 G_s B, "
        "kappa = kappa(e^L), implies KL(q||q_hat) <= eps with probability >= 1-delta"
    )
    reason = (
        "The nearest net point on the same support moves log-probabilities by t = G_s eta = eps/(2(kappa+1)), so it "
        "has H^2 >= (eps-t)/kappa and loses at most t+gap a sample. Markov on the root of the likelihood ratio: "
        "exponent [(eps-t)/kappa - t - gap]/2 = (eps/2 - kappa gap)/(2 kappa) a sample; union over the net."
    )
    increasing = ("n_tokens", "logit_spread", "radius", "gap")
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(
        n_tokens: int,
        sparsity: int,
        logit_spread: float,
        radius: float,
        epsilon: float,
        delta: float,
        gap: float = 0.0,
    ) -> float:
        """Return N; 0 where no two laws of the class differ by more than ε, ``inf`` for too large a gap."""
        T, s, L, epsilon, delta = _class(n_tokens, sparsity, logit_spread, radius, epsilon, delta)
        if not gap >= 0:
            raise ValueError(f"gap must be >= 0 nats a sample, got {gap:g}")
        if epsilon >= largest_kl_of_range(L):
            return 0.0
        constant = kappa(math.exp(L)) if L < LARGEST_EXPONENT else L - 1
        room = epsilon - 2 * constant * gap
        if room <= 0:
            return math.inf
        log_net = log_binomial(T, s) + s * math.log1p(2 * (constant + 1) * L / epsilon)
        return round_up(4 * constant / room * (log_net - math.log(delta)))


class E3(Bound):
    """Wilks prediction: ``N ≈ x/(2ε)`` with x the 1−δ quantile of χ²_df, df = rank(centred W E_Sᵀ).

    ε in nats, N in samples. Derived here; asymptotic as ε → 0, so it promises nothing. df ≤ min(s, d, J − 1) on a
    known support; for unconstrained embedding tuning give df = rank(centred W) ≤ min(d, J − 1). With the truth on the
    sphere ‖α‖ = B (`ball_active`) the law is ½χ²_{df−1} + ½χ²_df.

    Wrong, in either direction, at small N, where outcomes with few counts leave no maximiser.

    Examples
    --------
    >>> E3.n_samples(degrees_of_freedom=4, epsilon=1e-3, delta=0.05)
    4744.0
    >>> E3.n_samples(degrees_of_freedom=4, epsilon=1e-3, delta=0.05, ball_active=True)
    4381.0
    """

    label = "E3"
    kind = "prediction"
    origin = "derived"
    speaks_of = ("embedding-oracle",)
    statement = (
        "2 N KL(q||q_hat) tends to chi^2 with df = rank(centred W E_S'), to (chi^2_{df-1} + chi^2_df)/2 on the sphere: "
        "N = its 1-delta quantile/(2 eps)"
    )
    reason = (
        "Local asymptotic normality on an exponential family of dimension df (Wilks); on the sphere the limit is the "
        "squared norm of a Gaussian vector projected on a half-space (Chernoff 1954)."
    )
    increasing = ("degrees_of_freedom",)
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(degrees_of_freedom: int, epsilon: float, delta: float, ball_active: bool = False) -> float:
        """Return N; 0 for df = 0."""
        df = _checks.whole(degrees_of_freedom, "degrees_of_freedom")
        epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
        if df == 0:
            return 0.0
        quantile = float(chi2.isf(delta, df))
        if ball_active:
            quantile = _half_space_quantile(df, delta)
        return round_up(quantile / (2 * epsilon))


def largest_kl_of_range(log_range: float) -> float:
    """Largest KL between two laws whose log-ratio varies by at most R: ``log((e^R−1)/R) − 1 + R/(e^R−1)`` (nats).

    ``KL = E_p g + log E_p e^{−g}`` is largest, at a given mean of g in [0, R], for g at the ends; R²/8 for small R.

    Examples
    --------
    >>> round(largest_kl_of_range(2.0), 6)
    0.474475
    """
    R = log_range
    if R < 0.03:
        return R * R / 8 * (1 - R * R / 72)
    shrunk = -math.expm1(-R)  # (e^R − 1)/e^R
    return R + math.log(shrunk / R) - 1 + R * math.exp(-R) / shrunk


def _half_space_quantile(df: int, delta: float) -> float:
    """Solve ``½P(χ²_{df−1} > x) + ½P(χ²_df > x) = δ``; 0 where the atom of χ²_0 takes all of 1 − δ."""

    def excess(x: float) -> float:
        smaller = float(chi2.sf(x, df - 1)) if df > 1 else 0.0
        return (smaller + float(chi2.sf(x, df))) / (2 * delta) - 1

    high = float(chi2.isf(delta, df))
    return 0.0 if excess(0.0) <= 0 else float(brentq(excess, 0.0, high, xtol=1e-14 * high, rtol=1e-14))


def _class(
    n_tokens: int, sparsity: int, logit_spread: float, radius: float, epsilon: float, delta: float
) -> tuple[int, int, float, float, float]:
    T = _checks.whole(n_tokens, "n_tokens", low=1)
    s = min(_checks.whole(sparsity, "sparsity", low=1), T)
    if not (math.isfinite(logit_spread) and logit_spread >= 0):
        raise ValueError(f"logit_spread must be a finite number >= 0, got {logit_spread:g}")
    L = 2 * logit_spread * _checks.positive(radius, "radius")
    return T, s, L, _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
