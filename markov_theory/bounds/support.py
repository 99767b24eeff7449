"""Support recovery: samples until the best s-sparse mixture of rows mixes the rows that the truth mixes.

The truth is ``q = Σ_v α_v p_v`` with support S, |S| ≤ s of T rows; the estimator maximises the likelihood over all
s-sparse mixtures, and fails if *some* maximiser gives no weight to some row of S. Where |S| = s, success is Ŝ = S.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory import _checks
from markov_theory._checks import Array, IntArray
from markov_theory.bounds.base import Bound, least_integer, round_down
from markov_theory.bounds.one_to_one import O4
from markov_theory.bounds.sparse import hellinger_net, log_binomial
from markov_theory.bounds.support_programs import WrongSupports, log_regret, wrong_supports
from markov_theory.divergences import kappa, kl_of
from markov_theory.solvers.relaxation import projection_weights

MAX_SUPPORTS = 10_000
AS_GOOD_AS_EQUAL = 1e-12  # relative: of laws nearer than this, rounding hides by how much they differ


class S5(Bound):
    """Hellinger over a net: ``N ≥ (4κ(c)/γ_s)·[log C(T,s) + log C(k+2s−2, s−1) + log 1/δ]`` samples find S.

    k = ⌈16κ(s−1)/γ_s⌉ and γ_s the least KL(q‖q') (nats) over mixtures q' of at most s rows that lack a row of S; a
    lower bound on it serves too, such as `Instance.support_margin`. N in samples. Derived here: `S2` at ε = γ_s, where
    a wrong support has KL = ε or more. S2 itself excludes KL > ε alone, and says N = 0 where ε is the largest KL at
    ratio c; here N ≥ 1. A solver within `gap` (nats a sample) of the maximum is covered as in S2.

    Loose as S2 is: `S5Plus`, which reads the rows, asks 5 to 15 times less on random dictionaries.

    Examples
    --------
    >>> S5.n_samples(n_tokens=2, sparsity=1, density_ratio=9.0, support_margin=0.8 * math.log(9), delta=0.05)
    25.0
    """

    label = "S5"
    kind = "upper"
    origin = "derived"
    speaks_of = ("l0",)
    event = "support"
    statement = (
        "N >= (4 kappa/(gamma_s - 2 kappa gap)) [log C(T,s) + log C(k+2s-2,s-1) + log 1/delta], "
        "k = ceil(16 kappa (s-1)/gamma_s), implies supp alpha_hat >= S with probability >= 1-delta"
    )
    reason = (
        "A maximiser that lacks a row of S has KL(q||q_hat) >= gamma_s, and S2's proof excludes KL >= eps: it uses "
        "H^2 >= KL/kappa >= eps/kappa only."
    )
    increasing = ("n_tokens", "density_ratio", "gap")
    decreasing = ("support_margin", "delta")

    @staticmethod
    def n_samples(
        n_tokens: int, sparsity: int, density_ratio: float, support_margin: float, delta: float, gap: float = 0.0
    ) -> float:
        """Return N; 0 for a single row, ``inf`` for γ_s = 0, c = ∞ or too large a gap."""
        T = _checks.whole(n_tokens, "n_tokens", low=1)
        s = min(_checks.whole(sparsity, "sparsity", low=1), T)
        delta, constant = _checks.open_unit(delta, "delta"), kappa(density_ratio)
        if not support_margin >= 0:
            raise ValueError(f"support_margin must be >= 0 nats, got {support_margin:g}")
        if not gap >= 0:
            raise ValueError(f"gap must be >= 0 nats a sample, got {gap:g}")
        if T == 1:
            return 0.0
        if support_margin == 0 or math.isinf(constant):
            return math.inf
        return hellinger_net(T, s, constant, min(support_margin, 2 * constant), delta, gap)


class S5Plus(Bound):
    """One program a row: least N with ``Σ_{v∈S} min_λ (C(T−1,k)·R)^λ·A_λ(V∖v)^N ≤ δ``, k = min(s, T−1), finds S.

    ``A_λ(V∖v) = max Σ_j q_j^{1−λ}q'_j^λ`` over the mixtures q' of all rows but v, 0 < λ < 1, and R = √π·Γ(N+k/2)/
    (Γ(k/2)Γ(N+½)) ≤ 2(N+1)^{(k−1)/2}; N in samples. Free of the density ratio. Derived here; why, and how A_λ is
    certified, in `markov_theory.bounds.support_programs`.

    A plainer argument has, with q*_v the nearest of these mixtures to q in KL, a threshold x for the log-likelihood
    ratio of q to q*_v, Chernoff's bound below it and, above it, Markov's for the best mixture against q*_v. The best x
    gives e^{h(λ)}·B_λ^N for A_λ^N, B_λ = (E_q(q*_v/q)^{λ/(1−λ)})^{1−λ} and h the binary entropy; by Hölder A_λ ≤ B_λ.

    Loose where the rows but v come nearer to q together than any s of them do (see `S5Prime`).

    Examples
    --------
    >>> rows = [[.8, .1, .1], [.1, .8, .1], [.1, .1, .8]]
    >>> S5Plus.n_samples(transitions=rows, alpha=[.5, .5, 0], sparsity=2, delta=0.05)
    55.0
    """

    label = "S5+"
    kind = "upper"
    origin = "derived"
    speaks_of = ("l0",)
    event = "support"
    statement = (
        "P(some support of size <= s without a row of S does as well) <= sum over v in S of min over lambda of "
        "[C(T-1,k) R]^lambda A_lambda(V-v)^N, A_lambda = max over mixtures q' of V-v of sum q^(1-lambda) q'^lambda, "
        "R = sqrt(pi) Gamma(N+k/2)/(Gamma(k/2) Gamma(N+1/2)), k = min(s, T-1)"
    )
    reason = (
        "A wrong support lacks some v of S, so its laws lie in the hull of V-v. Averaged over all such supports with "
        "Dirichlet(1/2) weights, the likelihood is at least its maximum over C(T-1,k) R, and is a product of "
        "predictive laws in that hull: E[(average/likelihood of q)^lambda] <= A_lambda^N; Markov, and a union over v."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(transitions: ArrayLike, alpha: ArrayLike, sparsity: int, delta: float) -> float:
        """Return N; 0 for a single row, ``inf`` if the other rows can mix the truth without some row of S.

        Raises
        ------
        ValueError
            If `alpha` mixes more than s rows.
        """
        P, weights = planted(transitions, alpha)
        s, delta = min(_checks.whole(sparsity, "sparsity", low=1), P.shape[0]), _checks.open_unit(delta, "delta")
        if np.count_nonzero(weights) > s:
            raise ValueError(f"sparsity must be at least the {np.count_nonzero(weights)} rows of alpha, got {s}")
        return without_a_row(P, weights, s).n_samples(delta)


class S5Prime(Bound):
    """One program a support: least N with ``Σ_{S'≠S} min_λ R^λ·A_λ(S')^N ≤ δ`` finds S, where |S| = s.

    ``A_λ(S') = max Σ_j q_j^{1−λ}q'_j^λ`` over the mixtures q' of S', R = √π·Γ(N+s/2)/(Γ(s/2)Γ(N+½)), which is at most
    Cover's C(N+s−1, s−1); N in samples. Derived here. For s = T, where no other support of size s exists, the S' are
    those of size s−1, and k = s−1 stands for s in R.

    With more than 10,000 supports, the closed form at λ = ½ instead: N ≥ (2κ(c)/γ_s)·[log C(T,s) + ½ log R + log 1/δ],
    with γ_s the support margin as in `S5` (nats). It is looser; `S5Plus` is then the better one as a rule.

    Loose by the union over supports, and for small s by little else: half of `S5Plus` on random dictionaries, s = 2.

    Examples
    --------
    >>> from markov_theory import Dictionary
    >>> from markov_theory.instance import Instance
    >>> truth = Instance(Dictionary([[.8, .1, .1], [.1, .8, .1], [.1, .1, .8]]), [.5, .5, 0])
    >>> S5Prime.at(truth, delta=0.05)
    55.0
    """

    label = "S5'"
    kind = "upper"
    origin = "derived"
    speaks_of = ("l0",)
    event = "support"
    statement = (
        "|S| = s: P(some S' != S of size s attains the maximum) <= sum over S' of min over lambda of R^lambda "
        "A_lambda(S')^N, A_lambda(S') = max over mixtures q' of S' of sum q^(1-lambda) q'^lambda, "
        "R = sqrt(pi) Gamma(N+s/2)/(Gamma(s/2) Gamma(N+1/2))"
    )
    reason = (
        "Averaged with Dirichlet(1/2) weights, the likelihood on S' is at least its maximum over R, and is a product "
        "of predictive laws in the hull of S': E[(average/likelihood of q)^lambda] <= A_lambda^N; Markov, a union. At "
        " lambda = 1/2, A <= 1 - H^2/2 <= exp(-gamma_s/(2 kappa))."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(
        transitions: ArrayLike,
        alpha: ArrayLike,
        sparsity: int,
        density_ratio: float,
        support_margin: float,
        delta: float,
    ) -> float:
        """Return N; 0 for a single row, ``inf`` if |S| ≠ s or a wrong support can mix the truth."""
        P, weights = planted(transitions, alpha)
        T, delta = P.shape[0], _checks.open_unit(delta, "delta")
        s = min(_checks.whole(sparsity, "sparsity", low=1), T)
        if np.count_nonzero(weights) != s:
            return math.inf
        listed = other_supports(P, weights)
        return _halfway(T, s, density_ratio, support_margin, delta) if listed is None else listed.n_samples(delta)


class S5L(Bound):
    """Two truths: below the larger of `O4`'s two numbers, no estimator names the support of both, where |S| = s < T.

    The rivals of q are mixtures q' of s rows other than S: for each v in S, the mixture nearest to q in KL of the s
    rows that weigh most in the best mixture of all rows but v. The answer is O4's for the rows q and q', at
    γ = min(KL(q‖q'), KL(q'‖q)), for the rival where it is largest. N in samples. Derived here. A statement on every
    estimator that names the support of q and of q' (or, where q' mixes fewer than s rows, of the mixtures next to it
    that mix all s): q alone may need fewer.

    Loose as O4 is, and by the log C(T,s) rivals that it does not count.

    Examples
    --------
    >>> rows = [[.8, .1, .1], [.1, .8, .1], [.1, .1, .8]]
    >>> S5L.n_samples(transitions=rows, alpha=[.5, .5, 0], sparsity=2, delta=0.05)
    10.0
    """

    label = "S5L"
    kind = "lower"
    origin = "derived"
    speaks_of = ("any",)
    event = "support"
    statement = (
        "|S| = s < T: naming the support with probability >= 1-delta under q and under the mixtures of each S' != S of "
        "size s needs the N of O4 for the rows q and q', q' any mixture of S'"
    )
    reason = (
        "Data processing and Cauchy-Schwarz for the event that S is named, as in O4; a q' that mixes fewer than s rows "
        "is a limit of mixtures of all of S', and both divergences are continuous on the way."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(transitions: ArrayLike, alpha: ArrayLike, sparsity: int, delta: float) -> float:
        """Return N; 0 for s = T, |S| ≠ s or δ ≥ 1/2, ``inf`` if a row of S has a duplicate: a rival is q then."""
        P, weights = planted(transitions, alpha)
        T, delta = P.shape[0], _checks.open_unit(delta, "delta")
        s = min(_checks.whole(sparsity, "sparsity", low=1), T)
        if s == T or np.count_nonzero(weights) != s:
            return 0.0
        if delta < 0.5 and any((P[v] == np.delete(P, v, axis=0)).all(axis=1).any() for v in np.flatnonzero(weights)):
            return math.inf
        return max(_to_tell_apart(weights @ P, rival, delta) for rival in _rivals(P, weights))


def planted(transitions: ArrayLike, alpha: ArrayLike) -> tuple[Array, Array]:
    """Validate rows (T, J) and the truth's weights (T,)."""
    P, weights = _checks.as_transitions(transitions), _checks.as_laws(alpha, "alpha")
    if weights.shape != (P.shape[0],):
        raise ValueError(f"alpha must have shape ({P.shape[0]},) to match the rows, got {weights.shape}")
    return P, weights


def without_a_row(transitions: Array, alpha: Array, sparsity: int) -> WrongSupports:
    """For each v in S, the hull of all rows but v, which stands for every support of size ≤ s without v."""
    T = transitions.shape[0]
    hulls: list[IntArray] = [np.delete(np.arange(T), v) for v in np.flatnonzero(alpha)] if T > 1 else []
    k = min(sparsity, T - 1)
    return wrong_supports(transitions, alpha @ transitions, hulls, log_binomial(T - 1, k), max(k, 1))


def other_supports(transitions: Array, alpha: Array) -> WrongSupports | None:
    """Every support of |S| rows but S; of |S| − 1 rows if S is all rows; None if there are too many."""
    T, S = transitions.shape[0], tuple(np.flatnonzero(alpha).tolist())
    k = len(S) if len(S) < T else T - 1
    if log_binomial(T, k) > math.log(MAX_SUPPORTS):
        return None
    hulls = [np.array(support) for support in combinations(range(T), k) if support != S] if k else []
    return wrong_supports(transitions, alpha @ transitions, hulls, 0.0, max(k, 1))


def _halfway(T: int, s: int, density_ratio: float, support_margin: float, delta: float) -> float:
    """The closed form of S5' at λ = ½: the left side is linear in N and the right side concave, and ≥ 0 at N = 0."""
    constant = kappa(density_ratio)
    if not support_margin >= 0:
        raise ValueError(f"support_margin must be >= 0 nats, got {support_margin:g}")
    rate = support_margin / (2 * constant)
    if rate == 0 or math.isinf(constant):
        return math.inf
    k = s if s < T else T - 1
    fixed = log_binomial(T, k) - math.log(delta)
    return least_integer(lambda n: n * rate >= fixed + log_regret(n, k) / 2, guess=fixed / rate)


def _to_tell_apart(law: Array, rival: Array, delta: float) -> float:
    """O4's number for two laws; the one of KL = 1e-24, from below, where they agree up to rounding."""
    if (np.abs(rival - law) <= AS_GOOD_AS_EQUAL * law).all():
        return round_down(max(0.0, 1 - 2 * delta) * (math.log1p(-delta) - math.log(delta)) / AS_GOOD_AS_EQUAL**2)
    pair = np.array([law, rival])
    return O4.n_samples(pair, _nearest(pair), delta)


def _nearest(pair: Array) -> float:
    """The smaller KL between two laws, from above."""
    return float(min(kl_of(*pair), kl_of(*pair[::-1]))) * (1 + 1e-9)


def _rivals(P: Array, alpha: Array) -> list[Array]:
    q, s = alpha @ P, np.count_nonzero(alpha)
    rivals = []
    for v in np.flatnonzero(alpha):
        others: IntArray = np.delete(np.arange(P.shape[0]), v)
        weights = projection_weights(P[others], q[None, :])[0]
        chosen = P[others[np.argsort(-weights, kind="stable")[:s]]]
        rivals.append(projection_weights(chosen, q[None, :])[0] @ chosen)
    return rivals
