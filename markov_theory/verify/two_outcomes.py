"""Two outcomes, in closed form for any N: whether maximum likelihood fails depends on one binomial count.

It fails if the count K of the first outcome is too low or too high, so the failure probability is the sum of two
binomial tails, and N = 10¹⁰ costs no more than N = 10. Arrays of N are evaluated at once. N goes up to 2⁵³, beyond
which a count is not exact in double precision.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import betainc, rel_entr

from markov_theory import _checks
from markov_theory._checks import MAX_SAMPLES, Array, IntArray

Divergence = Literal["kl", "hellinger"]
NOTHING = 1e-300  # a frequency below that of any count but 0
TIE = 1e-12  # relative: thresholds this near to a whole count are ties, but at huge N only where rounding may be why


class Window(NamedTuple):
    """Counts K and N − K must both be more than a share of N (at least, where a tie is no failure); −1: no limit."""

    truth: float
    first: float
    second: float
    ties_fail: bool


def window_failure(window: Window, n_samples: IntArray) -> Array:
    """Probability that K, binomial with success probability `truth`, lies outside the window, for every N ≥ 1."""
    N, q = n_samples.astype(np.float64), window.truth

    def too_few(share: float) -> Array:
        if share < 0:
            return np.full(N.shape, -1.0)
        threshold = N * share
        near = np.minimum(TIE * threshold, np.maximum(1e-2, 4 * np.spacing(threshold)))
        return np.floor(threshold + near) if window.ties_fail else np.ceil(threshold - near) - 1

    return np.minimum(_at_most(too_few(window.first), N, 1 - q) + _at_most(too_few(window.second), N, q), 1.0)


def last_possible(window: Window, delta: float) -> float:
    """N from which the failure probability is at most δ for certain: ``Σ e^{−N·KL(threshold‖truth)} ≤ δ`` (Chernoff).

    Parameters
    ----------
    window : Window
    delta : float
        δ.

    Returns
    -------
    float
        ``inf`` if a threshold lies at the truth, or beyond it.
    """
    q = window.truth
    sides = [(share, mean) for share, mean in ((window.first, q), (window.second, 1 - q)) if share >= 0]
    if any(share >= mean for share, mean in sides):
        return math.inf
    rates = [float(binary_divergence(share, np.array(mean))) for share, mean in sides]
    if not rates or math.isinf(min(rates)):
        return 1.0
    if min(rates) <= 0:
        return math.inf
    least, most = (math.log(n / delta) / min(rates) for n in (1, len(rates)))
    if most > least:
        most = float(
            brentq(lambda n: sum(math.exp(-n * r) for r in rates) - delta, least * (1 - 1e-9), most * (1 + 1e-9))
        )
    return math.ceil(max(most, 1.0) * (1 + 1e-9))


def interval_window(low: float, high: float, truth: float, epsilon: float, divergence: Divergence = "kl") -> Window:
    """Where maximum likelihood over the laws (x, 1−x), low ≤ x ≤ high, is ε-close to the truth; N ≥ 1.

    As the likelihood is strictly concave in x on the outcomes seen, its maximiser is the empirical frequency moved
    to the nearest end of the interval, and is unique.
    """
    first, second = _nearby(truth, epsilon, divergence), _nearby(1 - truth, epsilon, divergence)
    return Window(truth, first if low < first else -1.0, second if 1 - high < second else -1.0, ties_fail=False)


def interval_failures(
    low: float,
    high: float,
    truth: float,
    n_samples: ArrayLike,
    epsilon: float,
    divergence: Divergence = "kl",
) -> Array:
    """`interval_failure` for many N at once, by KL or by squared Hellinger distance.

    Parameters
    ----------
    low, high, truth, epsilon
        As in `interval_failure`.
    n_samples : array_like of int
        Every N, 0 to 2**53.
    divergence : {"kl", "hellinger"}
        What must be at most ε: KL(q‖q̂) or H²(q, q̂).

    Returns
    -------
    ndarray
        Shaped like `n_samples`.

    Raises
    ------
    ValueError
        If the truth lies outside the interval, ε ≤ 0, or an N is negative or above 2**53.
    """
    if not 0 <= low <= truth <= high <= 1:
        raise ValueError(f"need 0 <= low <= truth <= high <= 1, got {low:g}, {truth:g}, {high:g}")
    epsilon = _checks.positive(epsilon, "epsilon")
    N = _sizes(n_samples)
    failure = window_failure(interval_window(low, high, truth, epsilon, divergence), np.maximum(N, 1))
    if (N == 0).any():
        worst = binary_divergence(truth, np.array([low, high]), divergence).max()
        failure = np.where(N == 0, float(worst > epsilon), failure)
    return failure


def interval_failure(low: float, high: float, truth: float, n_samples: int, epsilon: float) -> float:
    """Probability that ``KL(q‖q̂) > ε`` for maximum likelihood over all mixtures of laws on J = 2 outcomes.

    The mixtures are the laws (x, 1−x) with x in [low, high]; as the likelihood is strictly concave in x on
    the outcomes seen, its maximiser is the empirical frequency moved to the nearest end of the interval, and
    is unique for N ≥ 1. Without a sample every mixture maximises, and the worst one counts.

    Parameters
    ----------
    low, high : float
        Least and greatest probability of the first outcome among the rows.
    truth : float
        Probability x of the first outcome under q, in [low, high].
    n_samples : int
        N, 0 to 2**53.
    epsilon : float
        ε, nats.

    Examples
    --------
    >>> round(interval_failure(.2, .8, .5, 1423, 1e-3), 4)
    0.0897
    """
    n_samples = _checks.whole(n_samples, "n_samples", high=MAX_SAMPLES)
    return float(interval_failures(low, high, truth, n_samples, epsilon))


def row_window(first: Array, truth: int) -> Window:
    """Where maximum likelihood over single rows names the truth alone; N ≥ 1.

    Row v beats row w if the mean log-likelihood ratio is positive, which it is on one side of a threshold.

    Parameters
    ----------
    first : ndarray, shape (T,)
        Probability of the first outcome in each row.
    truth : int
        Which row is the truth.
    """
    p = float(first[truth])
    rivals = np.delete(first, truth)
    if (rivals == p).any():
        return Window(p, 1.0, 1.0, ties_fail=True)
    below = [even_odds(p, r) for r in rivals[rivals < p].tolist()]
    above = [even_odds(1 - p, 1 - r) for r in rivals[rivals > p].tolist()]
    return Window(p, max(below, default=-1.0), max(above, default=-1.0), ties_fail=True)


def row_failures(first: ArrayLike, n_samples: ArrayLike) -> Array:
    """`exact.one_to_one_failure` for rows on two outcomes and many N at once.

    Parameters
    ----------
    first : array_like, shape (T,)
        Probability of the first outcome in each row.
    n_samples : array_like of int, shape (n,)
        Every N, 0 to 2**53.

    Returns
    -------
    ndarray, shape (n, T)

    Examples
    --------
    >>> row_failures([.9, 1], [2, 44]).round(6).tolist()
    [[0.81, 0.0], [0.009698, 0.0]]
    """
    p, N = np.asarray(first, dtype=np.float64), np.atleast_1d(_sizes(n_samples))
    if p.size == 1:
        return np.zeros((N.size, 1))
    failure = np.column_stack([window_failure(row_window(p, v), np.maximum(N, 1)) for v in range(p.size)])
    return np.where(N[:, None] == 0, 1.0, failure)


def binary_divergence(truth: float, estimate: ArrayLike, divergence: Divergence = "kl") -> Array:
    """KL or H² of the laws (truth, 1−truth) and (estimate, 1−estimate), nats.

    Relative error about 1e-14, however near the laws are to each other: nothing cancels.
    """
    x = np.asarray(estimate, dtype=np.float64)
    return _divergence_of_move(truth, x, x - truth, divergence)


def even_odds(p: float, rival: float) -> float:
    """Frequency of the first outcome at which a row is as likely as a rival that gives it less often."""
    if p == 1.0:
        return 0.5  # the other outcome never happens, so that any frequency below 1 will do
    if rival == 0.0:
        return 0.0
    gap = p - rival
    log_ratio = math.log1p(gap / rival) if gap < rival else math.log(p / rival)
    log_rest = math.log1p(gap / (1 - p))  # log (1−rival)/(1−p)
    return log_rest / (log_ratio + log_rest)


def _sizes(n_samples: ArrayLike) -> IntArray:
    N = np.asarray(n_samples)
    outside = ~((N >= 0) & (N <= MAX_SAMPLES))
    if outside.any():
        raise ValueError(f"n_samples must lie in [0, 2**53], got {N[outside].flat[0]}")
    return N.astype(np.int64)


def _divergence_of_move(truth: float, x: Array, move: Array, divergence: Divergence) -> Array:
    """`binary_divergence` of `truth` and x = truth + move, where the move is known better than the difference."""
    rest = 1 - truth
    if divergence == "kl":
        return np.asarray(_excess_term(truth, x, move) + _excess_term(rest, 1 - x, -move))
    with np.errstate(invalid="ignore"):  # 0/0 where both are 0
        roots = [np.sqrt(truth) + np.sqrt(x), np.sqrt(rest) + np.sqrt(1 - x)]
        return np.asarray(sum(np.where(root > 0, move / root, 0.0) ** 2 for root in roots))


def _excess_term(p: float, x: Array, move: Array) -> Array:
    """``p·φ(move/p)``, φ(t) = t − log(1+t) ≥ 0: two of them, whose moves cancel, make KL without cancellation."""
    near = np.abs(move) <= p / 10
    t = np.where(near, move, 0.0) / (p or 1.0)
    powers = np.zeros_like(t)
    for k in range(16, 1, -1):  # t²/2 − t³/3 + …, of which 15 terms do for |t| ≤ 1/10
        powers = (-1) ** k / k + t * powers
    return np.where(near, p * t * t * powers, move + rel_entr(p, x))


def _nearby(truth: float, epsilon: float, divergence: Divergence) -> float:
    """Least x ≤ truth whose divergence is at most ε; below 0 if even x = 0 is within ε."""
    if truth == 0.0:
        return -1.0
    if divergence == "hellinger" and binary_divergence(truth, np.array(0.0), divergence) <= epsilon:
        return -1.0

    def excess(log_ratio: float) -> float:
        x, move = truth * math.exp(log_ratio), truth * math.expm1(log_ratio)
        return float(_divergence_of_move(truth, np.array(x), np.array(move), divergence)) / epsilon - 1

    near, far = 0.0, -math.sqrt(epsilon)
    while excess(far) < 0:
        near, far = far, 2 * far
        if far < -600:
            return NOTHING
    return truth * math.exp(brentq(excess, far, near, xtol=1e-300, rtol=1e-15, maxiter=1000))


def _at_most(k: Array, N: Array, complement: float) -> Array:
    """P(K ≤ k) for K binomial with probability `complement` of *no* success."""
    inside = (k >= 0) & (k < N)
    value = betainc(np.where(inside, N - k, 1.0), np.where(inside, k + 1, 1.0), complement)
    return np.where(k < 0, 0.0, np.where(k >= N, 1.0, value))
