"""Sparse transition mixtures: samples until the best s-sparse mixture of rows is ε-close to the truth.

The truth is ``q = Σ_v α_v p_v`` with at most s of T weights non-zero; the estimator maximises the likelihood
over all such mixtures, and fails if *some* maximiser has ``KL(q‖q̂) > ε`` (nats). S1, S2 and S2H cover that
set of mixtures by a finite net; what they pay for not knowing the support is log C(T, s).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import chi2

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound, round_up
from markov_theory.divergences import kappa, largest_kl

RANK_TOLERANCE = 64 * np.finfo(float).eps


class S1(Bound):
    """Hoeffding over a net: ``N ≥ (8L²/ε²)·[log C(T,s) + log C(k+s−1, s−1) + log 1/δ]`` samples suffice.

    L = log c is the log density ratio and ε the accuracy, both in nats; k = ⌈2⌊s/2⌋⌈s/2⌉/(sη)⌉ with
    η = ε/(2(c−1)) is the resolution of the net; N in samples. Derived here with its constants; the form
    N ≥ Õ(s log²c) is the paper's claim. The truth must be a mixture of rows; where it is
    none, `markov_theory.bounds.misspecification.M1` bounds the excess risk.

    Loose in ε: it grows as 1/ε², while the truth is about 1/ε (see `S2`).

    Examples
    --------
    >>> S1.n_samples(n_tokens=128, sparsity=4, density_ratio=4.0, epsilon=0.1, delta=0.05)
    48889.0
    """

    label = "S1"
    kind = "upper"
    origin = "derived"
    speaks_of = ("l0", "simplex")
    statement = (
        "N >= (8 L^2/eps^2) [log C(T,s) + log C(k+s-1,s-1) + log 1/delta], eta = eps/(2(c-1)), "
        "k = ceil(2 floor(s/2) ceil(s/2)/(s eta)), implies KL(q||q_hat) <= eps with probability >= 1-delta"
    )
    reason = (
        "Rounding the weights to multiples of 1/k by largest remainders keeps the support and moves them by "
        "at most eta in l1, hence log-probabilities by at most eta(c-1)/2 = eps/4. A maximiser with KL > eps "
        "forces a net point with KL > 3 eps/4 to lose at most eps/4 a sample: Hoeffding on [-L, L] and a "
        "union."
    )
    increasing = ("n_tokens", "density_ratio")
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(n_tokens: int, sparsity: int, density_ratio: float, epsilon: float, delta: float) -> float:
        """Return N; 0 where no two mixtures differ by more than ε, ``inf`` for c = ∞."""
        T, s, epsilon, delta = _class(n_tokens, sparsity, epsilon, delta)
        if T == 1 or _indistinct(density_ratio, epsilon):
            return 0.0
        if math.isinf(density_ratio):
            return math.inf
        return hoeffding_net(T, s, density_ratio, epsilon, delta)


class S2(Bound):
    """Hellinger over a net: ``N ≥ (4κ(c)/ε)·[log C(T,s) + log C(k+2s−2, s−1) + log 1/δ]`` samples suffice.

    k = ⌈16κ(s−1)/ε⌉ and κ(c) = (c log c − c + 1)/(√c − 1)² ≤ 2 + log c; ε in nats, N in samples: of the
    order s·log c·log(1/ε)/ε. Derived here. A solver that is within `gap` (nats a sample) of the maximum is
    covered with 4κ/(ε − 2κ·gap) in place of 4κ/ε, as long as that is positive. The truth must lie in the
    class; for a convex class (s = T) and any truth see `markov_theory.bounds.misspecification.M2`.

    Loose, for small ε, by the factor κ and by log(1/ε) against the asymptotic law (see `S3`): often a
    hundredfold.

    Examples
    --------
    >>> S2.n_samples(n_tokens=128, sparsity=4, density_ratio=4.0, epsilon=0.1, delta=0.05)
    3943.0
    """

    label = "S2"
    kind = "upper"
    origin = "derived"
    speaks_of = ("l0", "simplex")
    statement = (
        "N >= (4 kappa/(eps - 2 kappa gap)) [log C(T,s) + log C(k+2s-2,s-1) + log 1/delta], "
        "k = ceil(16 kappa (s-1)/eps), implies KL(q||q_hat) <= eps with probability >= 1-delta"
    )
    reason = (
        "Rounding k alpha_v up and padding to K = k+s-1 gives a net law q' with q_hat/q' <= K/k = e^t, so it "
        "loses at most t+gap a sample, and H(q,q') >= a - sqrt(t) with a^2 = eps/kappa <= H^2(q,q_hat). "
        "Markov on the root of the likelihood ratio: exponent [(a - sqrt(t))^2 - t - gap]/2 >= (a^2 - 2 "
        "gap)/4 a sample, as sqrt(t) <= a/4; union over the net."
    )
    increasing = ("n_tokens", "density_ratio", "gap")
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(
        n_tokens: int, sparsity: int, density_ratio: float, epsilon: float, delta: float, gap: float = 0.0
    ) -> float:
        """Return N; 0 where no two mixtures differ by more than ε, ``inf`` for c = ∞ or too large a gap."""
        T, s, epsilon, delta = _class(n_tokens, sparsity, epsilon, delta)
        if not gap >= 0:
            raise ValueError(f"gap must be >= 0 nats a sample, got {gap:g}")
        if T == 1 or _indistinct(density_ratio, epsilon):
            return 0.0
        if math.isinf(density_ratio):
            return math.inf
        return hellinger_net(T, s, kappa(density_ratio), epsilon, delta, gap)


class S2H(Bound):
    """`S2` for the squared Hellinger distance: ``N ≥ (4/ε)·[log C(T,s) + log C(k+2s−2, s−1) + log 1/δ]``.

    k = ⌈16(s−1)/ε⌉; the criterion is H²(q, q̂) ≤ ε, with H² = Σ(√q − √q̂)² in [0, 2]. Free of the density
    ratio: it stays finite for rows with zeros. N in samples. Derived here.

    Loose as `S2` is, without the factor κ.

    Examples
    --------
    >>> S2H.n_samples(n_tokens=128, sparsity=4, epsilon=0.1, delta=0.05)
    1438.0
    """

    label = "S2H"
    kind = "upper"
    origin = "derived"
    speaks_of = ("l0", "simplex")
    event = "hellinger"
    statement = (
        "N >= (4/eps) [log C(T,s) + log C(k+2s-2,s-1) + log 1/delta], k = ceil(16 (s-1)/eps), "
        "implies H^2(q, q_hat) <= eps with probability >= 1-delta"
    )
    reason = "The proof of S2 with a^2 = eps: the step from KL to H^2, the only one that needs kappa, is left out."
    increasing = ("n_tokens",)
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(n_tokens: int, sparsity: int, epsilon: float, delta: float) -> float:
        """Return N; 0 for a single row or ε ≥ 2."""
        T, s, epsilon, delta = _class(n_tokens, sparsity, epsilon, delta)
        return 0.0 if T == 1 or epsilon >= 2 else hellinger_net(T, s, 1.0, epsilon, delta, 0.0)


class S3(Bound):
    """Wilks prediction: ``N ≈ χ²_{df, 1−δ}/(2ε)``, df the dimension of the affine hull of the support's rows.

    ε in nats, N in samples. Derived here; asymptotic as ε → 0, so it promises nothing. It supposes the truth
    in the relative interior of the mixtures of a *known* support and ε far below the support margin; for an
    unknown support it is right only when the support's size is s exactly. df ≤ min(s, J) − 1; for df = 0, N
    = 0.

    Wrong, in either direction, where the ball KL ≤ ε leaves the hull, and at small N.

    Examples
    --------
    >>> S3.n_samples(support_rows=[[.2, .8], [.8, .2]], epsilon=1e-3, delta=0.05)
    1921.0
    """

    label = "S3"
    kind = "prediction"
    origin = "derived"
    speaks_of = ("oracle",)
    statement = "2 N KL(q||q_hat) tends to chi^2 with df = dim aff(support rows): N = chi^2_{df,1-delta}/(2 eps)"
    reason = "Local asymptotic normality: twice the likelihood ratio on a df-dimensional smooth family (Wilks)."
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(support_rows: ArrayLike, epsilon: float, delta: float) -> float:
        """Return N; 0 if the support's rows coincide."""
        epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
        rows = _checks.as_transitions(support_rows, "support_rows")
        df = affine_dimension(rows)
        return 0.0 if df == 0 else round_up(float(chi2.isf(delta, df)) / (2 * epsilon))


def net_resolution(sparsity: int, radius: float) -> float:
    """Least k ≥ 1 such that rounding to multiples of 1/k by largest remainders moves weights ≤ `radius`.

    Rounding s non-negative weights with sum 1 moves them by at most ``2⌊s/2⌋⌈s/2⌉/(sk)`` in l1.
    """
    if radius == 0:
        return math.inf if sparsity > 1 else 1.0
    half = sparsity // 2
    return max(1.0, float(np.ceil(2 * half * (sparsity - half) / (sparsity * radius))))


def log_binomial(n: float, k: float) -> float:
    """``log C(n, k)`` for 0 ≤ k ≤ n, n up to 1e300, to about 1e-12 relative; gammaln loses its digits there.

    Examples
    --------
    >>> round(log_binomial(1e12, 2), 9)
    54.568895051
    """
    if not 0 <= k <= n:
        raise ValueError(f"a binomial coefficient needs 0 <= k <= n, got n = {n:g}, k = {k:g}")
    k = min(k, n - k)
    if math.isinf(n):
        return 0.0 if k == 0 else math.inf
    if k <= 1000:
        i = np.arange(1, int(k) + 1)
        return float(np.log1p((n - k) / i).sum())
    rest = n - k
    entropy = k * math.log(n / k) + rest * math.log1p(k / rest)
    stirling = (1 / n - 1 / k - 1 / rest) / 12 - (1 / n**3 - 1 / k**3 - 1 / rest**3) / 360
    return entropy + 0.5 * (math.log(n / k) - math.log(2 * math.pi) - math.log(rest)) + stirling


def hull_directions(rows: Array, law: Array) -> Array:
    """Orthonormal basis, shape (J, r), of ``{Δ/√q : Δ a direction of the rows' affine hull}``, q = `law`.

    Outcomes with q = 0 are left out (their entries are 0). Directions below rounding of the rows count as
    none.
    """
    scale = np.zeros_like(law)
    np.divide(1.0, np.sqrt(law), out=scale, where=law > 0)
    directions = (rows[1:] - rows[0]) * scale
    size = float(np.linalg.norm(rows * scale, axis=1).max())
    _, singular, basis = np.linalg.svd(directions, full_matrices=False)
    return basis[singular > RANK_TOLERANCE * math.sqrt(rows.shape[0]) * size].T


def affine_dimension(rows: Array) -> int:
    """Dimension of the affine hull of rows (s, J)."""
    return int(hull_directions(rows, rows.mean(axis=0)).shape[1])


def hoeffding_net(T: int, s: int, density_ratio: float, epsilon: float, delta: float, gap: float = 0.0) -> float:
    """The number of `S1`, for fits within `gap` (nats a sample) of the maximum; 1 < c < ∞."""
    room = epsilon - 2 * gap
    if room <= 0:
        return math.inf
    k = net_resolution(s, epsilon / (2 * (density_ratio - 1)))
    log_net = log_binomial(T, s) + log_binomial(k + s - 1, s - 1)
    per_accuracy = math.log(density_ratio) / room
    return round_up(8 * per_accuracy * per_accuracy * (log_net - math.log(delta)))


def hellinger_net(T: int, s: int, constant: float, epsilon: float, delta: float, gap: float) -> float:
    """The number of `S2`, with `constant` for κ."""
    room = epsilon - 2 * constant * gap
    if room <= 0:
        return math.inf
    k = float(np.ceil(16 * constant * (s - 1) / epsilon))
    log_net = log_binomial(T, s) + log_binomial(k + 2 * s - 2, s - 1)
    return round_up(4 * constant / room * (log_net - math.log(delta)))


def _indistinct(density_ratio: float, epsilon: float) -> bool:
    """Whether no two laws of density ratio c are more than ε apart in KL."""
    if not density_ratio >= 1:
        raise ValueError(f"the density ratio must be >= 1, got {density_ratio:g}")
    return epsilon >= largest_kl(density_ratio)


def _class(n_tokens: int, sparsity: int, epsilon: float, delta: float) -> tuple[int, int, float, float]:
    T = _checks.whole(n_tokens, "n_tokens", low=1)
    s = min(_checks.whole(sparsity, "sparsity", low=1), T)
    return T, s, _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
