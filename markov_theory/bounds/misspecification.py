"""Misspecification: the truth q is no mixture of rows, and maximum likelihood tends to the nearest one, not to q.

With q* = argmin KL(q‖q') over the class, ``KL(q‖q̂) = KL(q‖q*) + excess risk``. The first term, the approximation
error, stays whatever N is (`markov_theory.misspecified`); the statements here are about the second.

Bounds for sparse mixtures are not about it as they stand. Both `S1` and `S2` return N = 0 for ε ≥ L·tanh(L/2), the
largest KL *between two mixtures*; the excess risk can reach L. Below that, Hoeffding (`S1`) survives for every class,
for it needs the range of log-ratios of mixtures and not their law; and `S2` survives for convex classes only. For s < T
it does not: to tell two supports apart that are nearly as close to q takes about 1/ε² samples, not 1/ε.
"""

from __future__ import annotations

import math

from markov_theory import _checks
from markov_theory.bounds.base import Bound
from markov_theory.bounds.sparse import hellinger_net, hoeffding_net
from markov_theory.divergences import kappa


class M1(Bound):
    """Excess risk by Hoeffding: ``N ≥ (8L²/(ε−2·gap)²)·[log C(T,s) + log C(k+s−1, s−1) + log 1/δ]`` samples suffice.

    For *any* truth q on outcomes of the rows: KL(q‖q̂) − min KL(q‖s-sparse mixture) ≤ ε (nats) with probability
    ≥ 1 − δ. L = log c, k = ⌈2⌊s/2⌋⌈s/2⌉/(sη)⌉ with η = ε/(2(c−1)), N in samples: the constants of `S1`. A solver within
    `gap` (nats a sample) of the maximum is covered as long as 2·gap < ε. Derived here; the form is the paper's claim.

    Loose in its constants; in ε it is right: two rows that are almost equally far from q need about 1/ε² samples.

    Examples
    --------
    >>> M1.n_samples(n_tokens=128, sparsity=4, density_ratio=4.0, epsilon=0.1, delta=0.05)
    48889.0
    """

    label = "M1"
    kind = "upper"
    origin = "derived"
    speaks_of = ("l0", "simplex")
    event = "excess"
    statement = (
        "N >= (8 L^2/(eps - 2 gap)^2) [log C(T,s) + log C(k+s-1,s-1) + log 1/delta], eta = eps/(2(c-1)), "
        "k = ceil(2 floor(s/2) ceil(s/2)/(s eta)), implies KL(q||q_hat) - min KL(q||s-sparse mixture) <= eps with "
        "probability >= 1-delta, for every q"
    )
    reason = (
        "Rounding the weights on the support of q_hat to the net moves every log-probability by at most eta(c-1)/2 = "
        "eps/4, under any law. An excess above eps forces a net law q' with E_q log(q*/q') > 3 eps/4, while the mean "
        "of log(q*/q') over the sample is at most eps/4 + gap. Both are mixtures, so that log-ratio lies in [-L, L] "
        "wherever the samples fall: Hoeffding and a union. No excess is above L."
    )
    increasing = ("n_tokens", "density_ratio", "gap")
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(
        n_tokens: int, sparsity: int, density_ratio: float, epsilon: float, delta: float, gap: float = 0.0
    ) -> float:
        """Return N; 0 where no excess can exceed ε, ``inf`` for c = ∞ or too large a gap."""
        T = _checks.whole(n_tokens, "n_tokens", low=1)
        s = min(_checks.whole(sparsity, "sparsity", low=1), T)
        epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
        L = _log_ratio(density_ratio, gap)
        if T == 1 or epsilon >= L:
            return 0.0
        return math.inf if math.isinf(L) else hoeffding_net(T, s, density_ratio, epsilon, delta, gap)


class M2(Bound):
    """Excess risk over *all* mixtures of T rows, at the rate 1/ε: the N of `S2` with s = T.

    For any truth q on outcomes of the rows: KL(q‖q̂) − min KL(q‖mixture) ≤ ε (nats) with probability ≥ 1 − δ, N in
    samples. For a known support, T is its size. `gap` as in `S2`. Derived here.

    Loose as `S2` is. False for sparse mixtures of more rows, whose set is not convex: there `M1` holds.

    Examples
    --------
    >>> M2.n_samples(n_tokens=4, density_ratio=4.0, epsilon=0.1, delta=0.05)
    2295.0
    """

    label = "M2"
    kind = "upper"
    origin = "derived"
    speaks_of = ("simplex",)
    event = "excess"
    statement = (
        "N >= (4 kappa/(eps - 2 kappa gap)) [log C(k+2T-2,T-1) + log 1/delta], k = ceil(16 kappa (T-1)/eps), implies "
        "KL(q||q_hat) - min KL(q||mixture of the T rows) <= eps with probability >= 1-delta, for every q"
    )
    reason = (
        "First-order optimality on a convex set: E_q[q'/q*] <= 1 for every mixture q'. So S2's proof holds with "
        "h^2(q') = E_q(sqrt(q'/q*) - 1)^2 for H^2, D = 1 - E_q[q_hat/q*] >= 0 and e^-t = k/K: E_q log(q*/q_hat) <= "
        "kappa h^2(q_hat) + D; the net law q' = e^-t q_hat + (1-e^-t) g has h(q') >= h(q_hat) - sqrt(2 - 2 e^(-t/2)) "
        ">= h(q_hat) - sqrt(t) and 2 - 2 E_q sqrt(q'/q*) >= e^-t D + h^2(q'), which is least at D = 0. No excess is "
        "above L."
    )
    increasing = ("n_tokens", "density_ratio", "gap")
    decreasing = ("epsilon", "delta")

    @staticmethod
    def n_samples(n_tokens: int, density_ratio: float, epsilon: float, delta: float, gap: float = 0.0) -> float:
        """Return N; 0 where no excess can exceed ε, ``inf`` for c = ∞ or too large a gap."""
        T = _checks.whole(n_tokens, "n_tokens", low=1)
        epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
        L = _log_ratio(density_ratio, gap)
        if T == 1 or epsilon >= L:
            return 0.0
        return math.inf if math.isinf(L) else hellinger_net(T, T, kappa(density_ratio), epsilon, delta, gap)


def _log_ratio(density_ratio: float, gap: float) -> float:
    """L, after a look at both arguments."""
    if not density_ratio >= 1:
        raise ValueError(f"the density ratio must be >= 1, got {density_ratio:g}")
    if not gap >= 0:
        raise ValueError(f"gap must be >= 0 nats a sample, got {gap:g}")
    return math.log(density_ratio)
