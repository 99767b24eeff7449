"""Planted truths of the embedding mixture: q = softmax(W Eᵀα + b) with few real weights α in a ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, IntArray, positive, whole
from markov_theory.randomness import named_generator
from markov_theory.solvers._softmax import design
from markov_theory.solvers.softmax_head import head_scores, softmax_rows

ON_THE_SPHERE = 1e-9  # relative; a truth this near ‖α‖ = B counts as lying on it
MAX_ASCENTS = 200
BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class EmbeddingInstance:
    """An embedding mixture q = f(Eᵀα), f(x) = softmax(W x + b), in the class ‖α‖₀ ≤ s, ‖α‖₂ ≤ B.

    Parameters
    ----------
    embeddings : array_like, shape (T, d)
        E.
    weights : array_like, shape (J, d)
        Head W.
    bias : array_like, shape (J,)
        b.
    alpha : array_like, shape (T,)
        True weights, real; at least one is not zero.
    radius : float
        B ≥ ‖α‖₂.
    name : str
        Identifies the truth; randomness is keyed by it.

    Raises
    ------
    ValueError, TypeError
        If a shape or value is wrong, or α lies outside the ball.
    """

    embeddings: Array
    weights: Array
    bias: Array
    alpha: Array
    radius: float
    name: str

    def __init__(
        self,
        embeddings: ArrayLike,
        weights: ArrayLike,
        bias: ArrayLike,
        alpha: ArrayLike,
        radius: float,
        name: str = "truth",
    ) -> None:
        scores, b = head_scores(embeddings, weights, bias)
        true = np.array(alpha, dtype=np.float64)
        B = positive(radius, "radius")
        if true.shape != (scores.shape[1],):
            raise ValueError(f"alpha must have shape ({scores.shape[1]},), got {true.shape}")
        if not (np.isfinite(true).all() and true.any()):
            raise ValueError("alpha must be finite and have at least one weight that is not zero")
        if np.linalg.norm(true) > B * (1 + ON_THE_SPHERE):
            raise ValueError(f"alpha must lie in the ball of radius {B:g}, got norm {np.linalg.norm(true):g}")
        E, W = np.array(embeddings, dtype=np.float64), np.array(weights, dtype=np.float64)
        for field, value in {"embeddings": E, "weights": W, "bias": b, "alpha": true}.items():
            value.setflags(write=False)
            object.__setattr__(self, field, value)
        object.__setattr__(self, "radius", B)
        object.__setattr__(self, "name", name)

    @property
    def n_tokens(self) -> int:
        """T."""
        return self.embeddings.shape[0]

    @property
    def n_outcomes(self) -> int:
        """J."""
        return self.weights.shape[0]

    @property
    def dim(self) -> int:
        """The dimension d of the embeddings."""
        return self.embeddings.shape[1]

    @cached_property
    def support(self) -> IntArray:
        """Indices of the tokens with weight, shape (s,)."""
        return np.flatnonzero(self.alpha)

    @property
    def sparsity(self) -> int:
        """S = ‖α‖₀."""
        return int(self.support.size)

    @cached_property
    def scores(self) -> Array:
        """W Eᵀ, shape (J, T): what one unit of weight on each token adds to each logit."""
        return self.weights @ self.embeddings.T

    @property
    def support_scores(self) -> Array:
        """W E_Sᵀ, shape (J, s): the sufficient statistic of each outcome when the support is known."""
        return self.scores[:, self.support]

    @cached_property
    def target(self) -> Array:
        """q, the law of the next token after the new token, shape (J,)."""
        return softmax_rows(self.scores @ self.alpha + self.bias)

    @cached_property
    def logit_spreads(self) -> Array:
        """G_1 … G_T, shape (T,): ``G_s = max_{j,k} √(sum of the s largest (e_v·(w_j − w_k))² over v)``, exact.

        Over s-sparse α with ‖α‖₂ ≤ B no two logits (bias aside) are further apart than G_s·B, and some are.
        """
        return logit_spreads(self.scores)

    @property
    def logit_spread(self) -> float:
        """G_s at the truth's own s."""
        return float(self.logit_spreads[self.sparsity - 1])

    @property
    def log_ratio(self) -> float:
        """Bound 2·G_s·B on ``|log q_α(j)/q_α'(j)|``, and on its range over j, within the class (nats)."""
        return 2 * self.logit_spread * self.radius

    @property
    def density_ratio(self) -> float:
        """Bound exp(2·G_s·B) on the class's density ratio; ∞ where a double cannot hold it."""
        return math.exp(self.log_ratio) if self.log_ratio < 709 else math.inf

    @cached_property
    def reached_log_ratio(self) -> float:
        """Largest ``log q_α(j)/q_α'(j)`` found in the class at the truth's s (nats): a lower estimate of log c(s)."""
        return reached_log_ratio(self.scores, self.bias, self.sparsity, self.radius)

    @cached_property
    def degrees_of_freedom(self) -> int:
        """Df of maximum likelihood on the known support: rank of the centred W E_Sᵀ, at most min(s, d, J − 1)."""
        return int(design(self.support_scores, self.bias).S.size)

    @cached_property
    def dense_degrees_of_freedom(self) -> int:
        """Df of unconstrained embedding tuning: rank of the centred W, at most min(d, J − 1)."""
        return int(design(self.weights, self.bias).S.size)

    @cached_property
    def ball_active(self) -> bool:
        """Whether the ball cuts the known support's laws at the truth: no α on S with ‖α‖ < B gives q."""
        X = design(self.support_scores, self.bias)
        least = X.R.T @ self.alpha[self.support]  # the part that the logits see
        return bool(np.linalg.norm(least) >= self.radius * (1 - ON_THE_SPHERE))


def plant_embedding(
    n_tokens: int,
    n_outcomes: int,
    dim: int,
    sparsity: int,
    *,
    radius: float,
    fraction: float = 0.5,
    seed: int = 0,
    truth: int = 0,
) -> EmbeddingInstance:
    """Plant an embedding mixture: Gaussian embeddings of length about 1, Gaussian head, s random tokens.

    The entries of E are N(0, 1/d), of W and b N(0, 1) and N(0, 1/4), so a unit of weight moves a logit by about
    1. The weights have random signs and sizes within a factor 2 of each other, and ‖α‖₂ = fraction·B.

    Parameters
    ----------
    n_tokens, n_outcomes, dim : int
        T ≥ 1, J ≥ 2, d ≥ 1. Truths of one seed and the same T, J, d share embeddings and head.
    sparsity : int
        s in [1, T].
    radius : float
        B.
    fraction : float
        Of B, in (0, 1]; 1 puts the truth on the sphere.
    seed, truth : int
        Entropy, and which of the truths at this s.

    Returns
    -------
    EmbeddingInstance
        Named ``"d=<d>/s=<s>/truth=<truth>"``.

    Raises
    ------
    ValueError, TypeError
        If a number is out of its range.

    Examples
    --------
    >>> planted = plant_embedding(16, 9, 4, 3, radius=2.0)
    >>> planted.sparsity, planted.degrees_of_freedom, planted.dense_degrees_of_freedom
    (3, 3, 4)
    """
    T, J = whole(n_tokens, "n_tokens", low=1), whole(n_outcomes, "n_outcomes", low=2)
    d, s = whole(dim, "dim", low=1), whole(sparsity, "sparsity", low=1, high=T)
    B, share = positive(radius, "radius"), positive(fraction, "fraction")
    if share > 1:
        raise ValueError(f"fraction must be at most 1, got {share:g}")
    common = named_generator(seed, "embedding", T, J, d)
    E, W = common.standard_normal((T, d)) / math.sqrt(d), common.standard_normal((J, d))
    bias = 0.5 * common.standard_normal(J)
    name = f"d={d}/s={s}/truth={whole(truth, 'truth')}"
    own = named_generator(seed, "plant embedding", name)
    alpha = np.zeros(T)
    sizes = own.choice([-1.0, 1.0], size=s) * (1 + own.random(s))
    alpha[own.choice(T, size=s, replace=False)] = share * B * sizes / np.linalg.norm(sizes)
    return EmbeddingInstance(E, W, bias, alpha, B, name)


def logit_spreads(scores: Array) -> Array:
    """G_1 … G_T of scores W Eᵀ (J, T): for each s the largest ‖(row j − row k) cut to its s largest entries‖₂."""
    J, T = scores.shape
    best = np.zeros(T)
    step = max(1, BLOCK // (J * T))
    for low in range(0, J, step):
        rows = scores[low : low + step]
        squares = (rows[:, None, :] - scores[None, low:, :]) ** 2  # pairs k >= low; T last
        squares.sort(axis=2)
        best = np.maximum(best, np.cumsum(squares[:, :, ::-1], axis=2).max(axis=(0, 1)))
    return np.asarray(np.sqrt(best))


def reached_log_ratio(scores: Array, bias: Array, sparsity: int, radius: float) -> float:
    """Largest ``log q_α(j)/q_α'(j)`` over s-sparse α, α' of the ball that local ascents find: at most log c.

    For each outcome j, log q(j) is concave in α. Its least value is sought by ``α ← −B·top_s(∇)/‖top_s(∇)‖``, which
    never rises (the linear model lies above); its greatest by the same point reversed and a line search.
    """
    J, T = scores.shape
    s = min(whole(sparsity, "sparsity", low=1), T)
    own = np.eye(J)
    least = _ascend(scores, bias, own, np.zeros((J, T)), s, radius, sign=-1.0)
    most = _ascend(scores, bias, own, np.zeros((J, T)), s, radius, sign=1.0)
    return float((most - least).max())


def _ascend(scores: Array, bias: Array, own: Array, alpha: Array, s: int, radius: float, sign: float) -> Array:
    """Greatest (sign 1) or least (−1) log q(j) reached for each j, shape (J,)."""
    best = _log_own(scores, bias, alpha)
    for _ in range(MAX_ASCENTS):
        law = softmax_rows(alpha @ scores.T + bias)
        slope = sign * (own - law) @ scores
        extreme = _cut_to_sphere(slope, s, radius)
        candidates = [extreme, _cut_to_ball(alpha + slope, s, radius), _cut_to_ball(alpha + 8 * slope, s, radius)]
        values = np.array([_log_own(scores, bias, c) for c in candidates])
        pick = (sign * values).argmax(axis=0)
        rows = np.arange(best.size)
        value = values[pick, rows]
        better = sign * value > sign * best + 1e-10
        if not better.any():
            break
        chosen = np.stack(candidates)[pick, rows]
        alpha = np.where(better[:, None], chosen, alpha)
        best = np.where(better, value, best)
    return np.asarray(best)


def _log_own(scores: Array, bias: Array, alpha: Array) -> Array:
    logits = alpha @ scores.T + bias  # (J, J), problem j in row j
    top = logits.max(axis=1)
    return np.asarray(np.diagonal(logits) - top - np.log(np.exp(logits - top[:, None]).sum(axis=1)))


def _top(vectors: Array, s: int) -> Array:
    kept = vectors.copy()
    if s < vectors.shape[1]:
        small = np.argpartition(-np.abs(vectors), s - 1, axis=1)[:, s:]
        np.put_along_axis(kept, small, 0.0, axis=1)
    return kept


def _cut_to_sphere(slope: Array, s: int, radius: float) -> Array:
    kept = _top(slope, s)
    return np.asarray(radius * kept / np.maximum(np.linalg.norm(kept, axis=1), 1e-300)[:, None])


def _cut_to_ball(alpha: Array, s: int, radius: float) -> Array:
    kept = _top(alpha, s)
    return np.asarray(kept * np.minimum(1.0, radius / np.maximum(np.linalg.norm(kept, axis=1), 1e-300))[:, None])
