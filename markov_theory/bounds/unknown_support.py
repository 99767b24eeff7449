"""Unknown support at the rate of a known one: samples until exact ℓ0 maximum likelihood is ε-close to the truth.

The support is found first, which costs what it costs whatever ε is; from there on the estimator is maximum likelihood
over the mixtures of the true support. The failure probability is shared between the two as suits N best.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound, least_integer
from markov_theory.bounds.known_support_sharp import S6One, S6Prime
from markov_theory.bounds.support import other_supports, planted, without_a_row
from markov_theory.divergences import kl_divergence


class UnknownSupport(Bound):
    """Unknown support, |S| = s: the least N with ``P_support(N) + P_known(N) ≤ δ`` suffices for KL(q‖q̂) ≤ ε.

    P_support(N) is the smaller of the sums in `S5Plus` and `S5Prime`, a bound on the probability that some wrong
    support does as well as S; P_known(N) is the smaller of the failures in `S6Prime` and `S6One`, a bound on the
    probability that maximum likelihood over the mixtures of S has KL > ε. ε in nats, N in samples. Derived here. For
    s = T the mixtures of S are all mixtures, and P_support does not enter.

    It is a statement on truths that mix exactly s rows, as many as the estimator may: for fewer, maximisers give weight
    to rows that the truth does not mix, at every N, and the statement is false (``inf`` here).

    Loose, for ε below about γ_s, by what S6' is; above it, where q can be approached on wrong supports too, by finding
    a support that need not be found.

    Examples
    --------
    >>> rows = [[.8, .1, .1], [.1, .8, .1], [.1, .1, .8]]
    >>> UnknownSupport.n_samples(transitions=rows, alpha=[.5, .5, 0], sparsity=2, epsilon=1e-3, delta=0.05)
    3692.0
    """

    label = "S6u"
    kind = "upper"
    origin = "derived"
    speaks_of = ("l0",)
    statement = (
        "|S| = s: least N with P_support(N) + P_known(N) <= delta implies KL(q||q_hat) <= eps with probability "
        ">= 1-delta; P_support from S5+ or S5', P_known from S6' or S6^1"
    )
    reason = (
        "Unless a wrong support of size s does as well as S, every maximiser mixes the rows of S, and so is one of "
        "maximum likelihood over the mixtures of S, of which P_known speaks: union of the two failures."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(transitions: ArrayLike, alpha: ArrayLike, sparsity: int, epsilon: float, delta: float) -> float:
        """Return N; 0 if every mixture is ε-close, ``inf`` if |S| ≠ s or a wrong support can mix the truth."""
        P, weights = planted(transitions, alpha)
        s = min(_checks.whole(sparsity, "sparsity", low=1), P.shape[0])
        epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
        law = weights @ P
        if np.count_nonzero(weights) != s:
            return math.inf
        if float(kl_divergence(law, P).max()) <= epsilon:  # convex in the second law: the worst is a row
            return 0.0
        return _least(P, weights, law, epsilon, delta)


def _least(P: Array, alpha: Array, law: Array, epsilon: float, delta: float) -> float:
    """Both failures fall from where they are below 1, so that N is at least what each alone asks for."""
    T, S = P.shape[0], np.flatnonzero(alpha)
    found = [] if S.size == T else [without_a_row(P, alpha, S.size), other_supports(P, alpha)]
    finders = [finder for finder in found if finder is not None]

    def suffices(n_samples: int) -> bool:
        wrong = min((math.exp(min(0.0, finder.log_failure(n_samples))) for finder in finders), default=0.0)
        fits = [bound.failure(n_samples, P[S], law, epsilon) for bound in (S6Prime, S6One)]
        return wrong + min(fits) <= delta

    low = max(
        min((finder.n_samples(delta) for finder in finders), default=0.0),
        min(bound.n_samples(P[S], law, epsilon, delta) for bound in (S6Prime, S6One)),
    )
    return math.inf if math.isinf(low) else least_integer(suffices, low=int(low), guess=1.05 * low)
