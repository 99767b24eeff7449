"""Exposure: how long a corpus must be before every one of m new tokens has been seen often enough.

At each of n chances new token u comes with probability π_u, Σ_u π_u ≤ 1, independently of all else, so that the
counts are multinomial and each is Bin(n, π_u). It is not enough to be generous on average: the rarest token decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincc, logsumexp

from markov_theory import _checks
from markov_theory._checks import SUM_TOLERANCE, Array
from markov_theory.bounds.base import Bound, least_integer

TINY = 1e-280  # below it, Chernoff's bound stands in for a tail that underflows


class Exposure(Bound):
    """Union over tokens: the least n with ``Σ_u P(Bin(n, π_u) < N_u) ≤ δ`` suffices to see each token u N_u times.

    n and N_u in samples. Derived here. `exposure_failure` says how sharp it is: the probability p of failure
    is at least 1 − Π(1 − p_u), so that the union costs at most a factor 1/(1 − δ/2) of δ.

    Loose by that alone; but it asks for the true frequencies. With uniform ones in place of Zipf's it is false.

    Examples
    --------
    >>> Exposure.n_samples(samples_per_token=20, rates=[.1] * 10, delta=0.05)
    327.0
    >>> zipf = 1 / np.arange(1, 11)
    >>> Exposure.n_samples(samples_per_token=20, rates=zipf / zipf.sum(), delta=0.05)
    833.0
    """

    label = "X1"
    kind = "upper"
    origin = "derived"
    speaks_of = ()
    event = "exposure"
    statement = (
        "least n with sum_u P(Bin(n, pi_u) < N_u) <= delta: every new token u is seen at least N_u times in n chances "
        "with probability >= 1-delta"
    )
    reason = (
        "The number of times that u is seen is Bin(n, pi_u); union over the tokens. Multinomial counts are negatively "
        "associated (Joag-Dev and Proschan 1983), so P(every count >= N_u) <= prod_u (1 - p_u): little is lost."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(samples_per_token: ArrayLike, rates: ArrayLike, delta: float) -> float:
        """Return n; ``inf`` if a token that is to be seen has rate 0, is to be seen infinitely often, or if n > 1e300.

        Parameters
        ----------
        samples_per_token : float or array_like, shape (m,)
            N_u, whole numbers; one for all tokens, or one each.
        rates : array_like, shape (m,)
            π_u, in [0, 1], of total at most 1.
        delta : float
            δ.
        """
        pi, N = _tokens(samples_per_token, rates)
        log_delta = math.log(_checks.open_unit(delta, "delta"))
        pi, N = pi[N > 0], N[N > 0]
        if N.size == 0:
            return 0.0
        if np.isinf(N).any() or (pi == 0).any():
            return math.inf
        # Rounding goes up: the tail is known to about 1e-13·√N relative, far less than one more chance changes it.
        slack = float(np.log1p(1e-12 + 1e-13 * np.sqrt(N)).max())

        def suffices(n: int) -> bool:
            return float(logsumexp(_log_tail(float(n), N, pi))) + slack <= log_delta

        return least_integer(suffices, low=int(N.max()), guess=float((N / np.maximum(pi, N / 1e300)).max()))


class CorpusSize(NamedTuple):
    """How many chances, and what they are enough for.

    Attributes
    ----------
    n_chances : float
        n.
    n_samples : ndarray, shape (m,)
        Samples of each new token that its bound asks for.
    exposure_delta, learning_delta : float
        Failure probability left to exposure, and to the learning of *each* token.
    """

    n_chances: float
    n_samples: Array
    exposure_delta: float
    learning_delta: float


def exposure_failure(n_chances: float, samples_per_token: ArrayLike, rates: ArrayLike) -> tuple[float, float]:
    """Bounds ``1 − Π_u(1 − p_u) ≤ P(some token u is seen fewer than N_u times) ≤ min(1, Σ_u p_u)``.

    p_u = P(Bin(n, π_u) < N_u). The lower bound (negative association) is never below Bonferroni's
    ``Σp − ½(Σp)²``, which says nothing where Σp ≥ 2. Arguments as in `Exposure.n_samples`.

    Examples
    --------
    >>> zipf = 1 / np.arange(1, 11)
    >>> bounds = exposure_failure(327, 20, zipf / zipf.sum())
    >>> round(bounds[0], 4), bounds[1]
    (1.0, 1.0)
    """
    pi, N = _tokens(samples_per_token, rates)
    if not (math.isfinite(n_chances) and n_chances >= 0 and n_chances == math.floor(n_chances)):
        raise ValueError(f"n_chances must be a whole number >= 0, got {n_chances!r}")
    p = np.exp(np.minimum(_log_tail(float(n_chances), N, pi), 0.0))
    with np.errstate(divide="ignore"):
        return float(0.0 - np.expm1(np.log1p(-p).sum())), min(1.0, float(p.sum()))


def corpus_size(
    n_samples: Callable[[float], float] | Sequence[Callable[[float], float]],
    rates: ArrayLike,
    delta: float,
    share: float = 0.5,
) -> CorpusSize:
    """Chances after which, with probability ≥ 1 − δ, all m tokens have been seen *and* learned.

    Exposure may fail with probability ``share·δ``, the learning of each token with ``(1 − share)·δ/m``.

    Parameters
    ----------
    n_samples : callable, or sequence of m callables
        Failure probability to a number of samples that suffices, as does every larger one: an upper bound with all
        other inputs fixed, for all tokens or for each.
    rates : array_like, shape (m,)
        π_u.
    delta : float
        δ.
    share : float
        Strictly between 0 and 1; choose it before seeing data.

    Returns
    -------
    CorpusSize

    Raises
    ------
    ValueError, TypeError
        If there are not as many bounds as tokens, or a number is out of range.

    Examples
    --------
    >>> size = corpus_size(lambda delta: math.ceil(math.log(1 / delta) / 0.01), [.01, .02], 0.1)
    >>> size.n_samples.tolist(), size.n_chances
    ([369.0, 369.0], 40099.0)
    """
    pi = _rates(rates)
    delta, share = _checks.open_unit(delta, "delta"), _checks.open_unit(share, "share")
    bounds = [n_samples] * pi.size if callable(n_samples) else list(n_samples)
    if len(bounds) != pi.size:
        raise ValueError(f"n_samples must be one bound or one a token, {pi.size}, got {len(bounds)}")
    learning = (1 - share) * delta / pi.size
    needed = np.array([bound(learning) for bound in bounds], dtype=np.float64)
    return CorpusSize(Exposure.n_samples(needed, pi, share * delta), needed, share * delta, learning)


def _log_tail(n: float, N: Array, pi: Array) -> Array:
    """``log P(Bin(n, π) < N)`` for each token; Chernoff's upper bound of it below `TINY`."""
    p = np.where(N > 0, 1.0, 0.0)
    seen = (N > 0) & (n >= N)
    p[seen] = betaincc(N[seen], n - N[seen] + 1, pi[seen])
    with np.errstate(divide="ignore"):
        value = np.log(p)
    deep = seen & (p < TINY) & (pi > 0)
    if deep.any():
        value[deep] = np.minimum(_log_chernoff(n, N[deep] - 1, pi[deep]), math.log(TINY))
    return value


def _log_chernoff(n: float, most: Array, pi: Array) -> Array:
    """``−n·KL(k/n‖π) ≥ log P(Bin(n, π) ≤ k)`` for k < nπ; −∞ where π = 1."""
    rest = n - most
    with np.errstate(divide="ignore", invalid="ignore"):
        lower = np.where(most > 0, most * np.log(most / (n * pi)), 0.0)
        return -(lower + rest * (np.log(rest / n) - np.log1p(-pi)))


def _tokens(samples_per_token: ArrayLike, rates: ArrayLike) -> tuple[Array, Array]:
    pi = _rates(rates)
    N = np.array(samples_per_token, dtype=np.float64)
    if N.ndim and N.shape != pi.shape:
        raise ValueError(f"samples_per_token must be one number or have shape {pi.shape}, got {N.shape}")
    if not (N >= 0).all() or not (np.isinf(N) | (np.floor(N) == N)).all():
        raise ValueError(f"samples_per_token must be whole numbers >= 0, got {samples_per_token!r}")
    return pi, np.broadcast_to(N, pi.shape)


def _rates(rates: ArrayLike) -> Array:
    pi = np.array(rates, dtype=np.float64)
    if pi.ndim != 1 or pi.size == 0:
        raise ValueError(f"rates must be one a new token, at least one, got shape {pi.shape}")
    if not (pi >= 0).all() or not pi.sum() <= 1 + SUM_TOLERANCE:
        raise ValueError(f"rates must be non-negative with a total of at most 1, got a total of {pi.sum():g}")
    return np.minimum(pi, 1.0)
