"""One-to-one mapping (s = 1): how many samples until maximum likelihood over single rows names the right row.

The estimator is ``v̂ = argmax_v Σ_i log p_v(X_i)`` on N independent draws from a row p_v*; it fails if
*some* maximiser is not v*, so a tie is a failure. O1–O3 suffice for every truth v*; below O4 or O5 no
estimator serves every truth.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, logsumexp

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound, least_integer, round_down, round_up
from markov_theory.bounds.exponents import middle_exponents, pairwise_chernoff
from markov_theory.divergences import kappa, kl_of


class O1(Bound):
    """Hoeffding: ``N ≥ (2L²/γ²)·log((T−1)/δ)`` samples suffice to name the row.

    T rows, L = log c their log density ratio and γ their KL margin (both in nats), δ the failure probability;
    N in samples. Derived here with its constant; the form, log T over a squared margin, is the paper's claim.

    Loose where γ is small: N grows as 1/γ², while the truth is about 1/γ (see `O2`).

    Examples
    --------
    >>> O1.n_samples(n_tokens=2, log_ratio=0.2, margin=0.02, delta=0.05)
    600.0
    """

    label = "O1"
    kind = "upper"
    origin = "derived"
    speaks_of = ("one-to-one",)
    event = "row"
    statement = "N >= (2 L^2 / gamma^2) log((T-1)/delta) implies P(v_hat != v*) <= delta, for every truth v*"
    reason = (
        "The log-likelihood ratio of the truth against another row is a mean of N terms in [-L, L] with "
        "expectation >= gamma; Hoeffding gives P(ratio <= 0) <= exp(-N gamma^2 / (2 L^2)); union over T-1 "
        "rows."
    )
    increasing = ("n_tokens", "log_ratio")
    decreasing = ("margin", "delta")

    @staticmethod
    def n_samples(n_tokens: int, log_ratio: float, margin: float, delta: float) -> float:
        """Return N; 0 for a single row, ``inf`` for duplicates (γ = 0) or L = ∞."""
        n_others, delta = _others(n_tokens, margin, delta)
        if not log_ratio >= 0:
            raise ValueError(f"the log density ratio must be >= 0, got {log_ratio:g}")
        if n_others == 0:
            return 0.0
        if margin == 0 or math.isinf(log_ratio):
            return math.inf
        per_margin = log_ratio / margin
        return round_up(2 * per_margin * per_margin * math.log(n_others / delta))


class O2(Bound):
    """Hellinger: ``N ≥ (2κ(c)/γ)·log((T−1)/δ)`` samples suffice to name the row.

    κ(c) = (c log c − c + 1)/(√c − 1)² ≤ 2 + log c, so the price of the density ratio is logarithmic and that
    of the margin 1/γ; N in samples, γ in nats. Derived here. Usually below `O1`, not always: take the
    smaller.

    Loose by up to κ(c)/2, since H² is often nearer to γ/2 than to γ/κ(c), and by the union over equal rivals.

    Examples
    --------
    >>> O2.n_samples(n_tokens=2, density_ratio=1.2, margin=0.02, delta=0.05)
    618.0
    """

    label = "O2"
    kind = "upper"
    origin = "derived"
    speaks_of = ("one-to-one",)
    event = "row"
    statement = "N >= (2 kappa(c) / gamma) log((T-1)/delta) implies P(v_hat != v*) <= delta, for every truth v*"
    reason = (
        "Markov on the square root of the likelihood ratio: P(ratio >= 1) <= rho^N with rho = 1 - H^2/2 <= "
        "exp(-H^2/2); H^2 >= KL/kappa(c) >= gamma/kappa(c); union over T-1 rows."
    )
    increasing = ("n_tokens", "density_ratio")
    decreasing = ("margin", "delta")

    @staticmethod
    def n_samples(n_tokens: int, density_ratio: float, margin: float, delta: float) -> float:
        """Return N; 0 for a single row, ``inf`` for duplicates (γ = 0) or c = ∞."""
        return _by_hellinger(n_tokens, kappa(density_ratio), margin, delta)


class O2Plus(Bound):
    """Hellinger in both directions: ``N ≥ (2κ_J(c)/γ)·log((T−1)/δ)`` samples suffice to name the row.

    κ_J(c) = (L/2)·coth(L/4) with L = log c, between 2 and κ(c), and L/2 for large c where κ is L; N in samples, γ in
    nats. Never above `O1` or `O2`: half of `O2` for large c. Derived here.

    Loose as `O2` is, but exact in H² ≥ γ/κ_J for two swapped laws, (c, 1)/(c+1) and (1, c)/(c+1).

    Examples
    --------
    >>> O2Plus.n_samples(n_tokens=2, density_ratio=1.2, margin=0.02, delta=0.05)
    600.0
    """

    label = "O2+"
    kind = "upper"
    origin = "derived"
    speaks_of = ("one-to-one",)
    event = "row"
    statement = (
        "N >= (2 kappa_J(c) / gamma) log((T-1)/delta), kappa_J = (L/2) coth(L/4), L = log c, implies "
        "P(v_hat != v*) <= delta, for every truth v*"
    )
    reason = (
        "As O2, but gamma, the least over both orders of a pair, is at most the mean of KL(p||q) and KL(q||p). That is "
        "at most kappa_J(c) H^2: term by term (x - 1) log(x)/2 <= kappa_J(c) (sqrt(x) - 1)^2 for 1/c <= x <= c."
    )
    increasing = ("n_tokens", "density_ratio")
    decreasing = ("margin", "delta")

    @staticmethod
    def n_samples(n_tokens: int, density_ratio: float, margin: float, delta: float) -> float:
        """Return N; 0 for a single row, ``inf`` for duplicates (γ = 0) or c = ∞."""
        return _by_hellinger(n_tokens, mean_kappa(density_ratio), margin, delta)


def _by_hellinger(n_tokens: int, constant: float, margin: float, delta: float) -> float:
    """``(2k/γ)·log((T−1)/δ)`` for rows at ``H² ≥ γ/k``."""
    n_others, delta = _others(n_tokens, margin, delta)
    if n_others == 0:
        return 0.0
    if margin == 0 or math.isinf(constant):
        return math.inf
    return round_up(2 * constant / margin * math.log(n_others / delta))


def mean_kappa(ratio: float) -> float:
    """``κ_J(c) = (L/2)·coth(L/4)``, L = log c: least k with ``(KL(p‖q) + KL(q‖p))/2 ≤ k·H²`` if 1/c ≤ p/q ≤ c."""
    if not ratio >= 1:
        raise ValueError(f"the density ratio must be >= 1, got {ratio:g}")
    log_ratio = math.log(ratio)
    return log_ratio / 2 / math.tanh(log_ratio / 4) if log_ratio > 0 else 2.0


class O3(Bound):
    """Chernoff: the least N with ``Σ_{v≠v*} e^{−N·C(p_v*,p_v)} ≤ δ`` for every truth v* suffices.

    C is the Chernoff information in nats, N in samples. Free of the density ratio, zeros in the rows
    welcome, and with the true exponent: never above `O1`, `O2` or `O2Plus`. Derived here.

    Loose by the union over wrong rows and by the prefactor, of order 1/√N, that the exponential leaves out.

    Examples
    --------
    >>> O3.n_samples(transitions=[[.55, .45], [.45, .55]], delta=0.01)
    917.0
    """

    label = "O3"
    kind = "upper"
    origin = "derived"
    speaks_of = ("one-to-one",)
    event = "row"
    statement = "least N with sum over v != v* of exp(-N C(p_v*, p_v)) <= delta for every v*: P(v_hat != v*) <= delta"
    reason = (
        "Markov on the likelihood ratio to the power lambda gives P(ratio >= 1) <= (sum p^(1-lambda) "
        "q^lambda)^N for every lambda in (0, 1); take the best one for each wrong row, and the union over "
        "them."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(transitions: ArrayLike, delta: float) -> float:
        """Return N; 0 for a single row, ``inf`` for duplicate rows."""
        rows = _checks.as_transitions(transitions)
        delta = _checks.open_unit(delta, "delta")
        n_others = rows.shape[0] - 1
        if n_others == 0:
            return 0.0
        information = pairwise_chernoff(rows)
        np.fill_diagonal(information, math.inf)
        slowest = float(information.min())
        if slowest == 0:
            return math.inf

        def suffices(n_samples: int) -> bool:
            return bool(logsumexp(-float(n_samples) * information, axis=1).max() <= math.log(delta))

        return least_integer(suffices, low=1, guess=math.log(n_others / delta) / slowest)


class O4(Bound):
    """Two rows: below the larger of two numbers, no estimator names both of the worst two rows.

    ``N ≥ (1−2δ)·log((1−δ)/δ)/γ`` and ``N ≥ log(1/(4δ(1−δ)))/(−2 log max ρ)``, δ < 1/2, with γ the KL margin
    (nats) and ρ = Σ√(pq) the affinity of two rows. A statement on the *worst* truth of the class: a single
    truth may need fewer. Derived here.

    Loose by the factor, at most about 4 for small δ, between one-sided and two-sided exponents, and by log T.

    Examples
    --------
    >>> O4.n_samples(transitions=[[.9, .1], [1, 0]], margin=0.105360516, delta=0.01)
    43.0
    """

    label = "O4"
    kind = "lower"
    origin = "derived"
    speaks_of = ("any",)
    event = "row"
    statement = (
        "failure <= delta < 1/2 for every truth needs N >= (1-2 delta) log((1-delta)/delta) / gamma "
        "and N >= log(1/(4 delta (1-delta))) / (-2 log max rho)"
    )
    reason = (
        "First: data processing, N KL(p||q) >= kl(1-delta, delta) for the nearest two rows. Second: with "
        "failures a, b under p^N, q^N, rho^N <= sqrt(a(1-b)) + sqrt(b(1-a)) <= 2 sqrt(delta(1-delta)) "
        "(Cauchy-Schwarz)."
    )
    decreasing = ("margin", "delta")

    @staticmethod
    def n_samples(transitions: ArrayLike, margin: float, delta: float) -> float:
        """Return N; 0 for a single row or δ ≥ 1/2, ``inf`` for duplicate rows."""
        rows = _checks.as_transitions(transitions)
        n_others, delta = _others(rows.shape[0], margin, delta)
        if n_others == 0 or delta >= 0.5:
            return 0.0
        nearest = float(middle_exponents(rows).min())
        if margin == 0 or nearest == 0:
            return math.inf
        by_kl = (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta)) / margin
        by_affinity = -math.log(4 * delta * (1 - delta)) / (2 * nearest)
        return round_down(max(by_kl, by_affinity))


class O5(Bound):
    """Fano: ``N ≥ (log M − h(δ) − δ log(M−1))/JS(rows)`` samples are needed to name one of M rows.

    h is the binary entropy and JS the mean KL of the rows to their barycentre, in nats; δ < 1 − 1/M. Derived
    here: the bound that shows log T, strong where all rows are about equally far apart.

    Loose where a few rows are much nearer to each other than the rest (see `O4`).

    Examples
    --------
    >>> O5.n_samples(transitions=[[.6, .2, .2], [.2, .6, .2], [.2, .2, .6]], delta=0.05)
    6.0
    """

    label = "O5"
    kind = "lower"
    origin = "derived"
    speaks_of = ("any",)
    event = "row"
    statement = (
        "failure <= delta < 1 - 1/M for each of M rows needs N >= (log M - h(delta) - delta log(M-1)) / JS(rows)"
    )
    reason = (
        "Fano: with the truth uniform over M rows, the mutual information of truth and N samples is at most "
        "N JS and at least log M - h(delta) - delta log(M-1)."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(transitions: ArrayLike, delta: float) -> float:
        """Return N; 0 for a single row or δ ≥ 1 − 1/M, ``inf`` for duplicate rows."""
        rows = _checks.as_transitions(transitions)
        delta = _checks.open_unit(delta, "delta")
        if np.unique(rows, axis=0).shape[0] < rows.shape[0] and delta < 1 - 1 / rows.shape[0]:
            return math.inf
        return round_down(fano(rows, delta))


def fano(laws: Array, delta: float) -> float:
    """``max(0, log M − h(δ) − δ log(M−1))/JS`` for M laws, not rounded; 0 where Fano says nothing."""
    n_laws = laws.shape[0]
    if n_laws == 1 or delta >= 1 - 1 / n_laws:
        return 0.0
    entropy = float(entr(delta) + entr(1 - delta))
    information = max(0.0, math.log(n_laws) - entropy - delta * math.log(n_laws - 1))
    spread = float(kl_of(laws, laws.mean(axis=0)).mean())
    return math.inf if spread == 0 else information / spread


def _others(n_tokens: int, margin: float, delta: float) -> tuple[int, float]:
    if not margin >= 0:
        raise ValueError(f"the margin must be >= 0, got {margin:g}")
    return _checks.whole(n_tokens, "n_tokens", low=1) - 1, _checks.open_unit(delta, "delta")
