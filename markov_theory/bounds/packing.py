"""Packings: laws of the class that no single answer can serve, hence a lower bound for every estimator."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound, round_down
from markov_theory.bounds.one_to_one import fano
from markov_theory.divergences import kl_of
from markov_theory.randomness import named_generator

_MARGIN = 1 + 1e-9  # a certified divergence exceeds ε by more than rounding
_SCALES = 0.9 ** np.arange(120)


class S4(Bound):
    """Fano over a packing: ``N ≥ (log M − h(δ) − δ log(M−1))/JS`` samples are needed by *any* estimator.

    For M laws of the class with pairwise ``JS_{1/2} > ε`` (mean KL to the midpoint of two laws, nats),
    success meaning KL(q‖q̂) ≤ ε with probability ≥ 1−δ under each of them; h the binary entropy, JS the mean
    KL to the barycentre of all, N in samples. Derived here.

    Loose as far as the packing is: a greedy one (`greedy_packing`) is certified but not the best.

    Examples
    --------
    >>> S4.n_samples(laws=[[.2, .8], [.8, .2]], epsilon=0.1, delta=0.05)
    3.0
    """

    label = "S4"
    kind = "lower"
    origin = "derived"
    speaks_of = ("any",)
    statement = (
        "for laws q_1..q_M of the class with pairwise JS_{1/2} > eps, KL(q||q_hat) <= eps with probability "
        ">= 1-delta under each needs N >= (log M - h(delta) - delta log(M-1)) / JS(q_1..q_M)"
    )
    reason = (
        "JS_{1/2} is the least mean KL of two laws to any one law, so no answer is eps-close to two of the "
        "laws: the nearest law to the answer names the truth wherever the answer succeeds, and Fano applies."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(laws: ArrayLike, epsilon: float, delta: float) -> float:
        """Return N; 0 for a single law.

        Raises
        ------
        ValueError
            If two laws have JS_{1/2} ≤ ε.
        """
        packed = _checks.as_transitions(laws, "laws")
        epsilon, delta = _checks.positive(epsilon, "epsilon"), _checks.open_unit(delta, "delta")
        for i in range(1, packed.shape[0]):
            nearest = halfway_divergence(packed[i], packed[:i]).min()
            if not nearest > epsilon:
                raise ValueError(
                    f"laws must be pairwise JS_1/2 > epsilon = {epsilon:g} nats apart, got {nearest:g} for law {i}"
                )
        return round_down(fano(packed, delta))


def halfway_divergence(law: Array, others: Array) -> Array:
    """``JS_{1/2}(p, q) = ½KL(p‖m) + ½KL(q‖m)``, m = (p+q)/2, of one law (J,) to others (M, J); nats."""
    middle = (law + others) / 2
    return (kl_of(law, middle) + kl_of(others, middle)) / 2


def greedy_packing(
    transitions: ArrayLike, sparsity: int, epsilon: float, seed: int = 0, n_candidates: int = 256
) -> Array:
    """Laws of s-sparse mixtures with pairwise ``JS_{1/2} > ε``, chosen greedily from random candidates.

    Candidates are the rows and, for a few centres, mixtures of the centre's row with s−1 others at weights
    1−ρ and ρ; the scale ρ = 1, 0.9, 0.9², … is the one whose packing demands most of `S4` at δ = 0.05.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    sparsity : int
        s ≥ 1; min(s, T) is used.
    epsilon : float
        ε, nats.
    seed : int
        Entropy of the candidates.
    n_candidates : int
        Candidates at each scale.

    Returns
    -------
    ndarray, shape (M, J)
        M ≥ 1 laws, each in the class; `S4` certifies them again.

    Examples
    --------
    >>> laws = greedy_packing([[.2, .8], [.8, .2]], sparsity=2, epsilon=0.01)
    >>> S4.n_samples(laws, epsilon=0.01, delta=0.05) >= 40
    True
    """
    rows = _checks.as_transitions(transitions)
    s = min(_checks.whole(sparsity, "sparsity", low=1), rows.shape[0])
    epsilon = _checks.positive(epsilon, "epsilon")
    n_candidates = _checks.whole(n_candidates, "n_candidates", low=1)
    best, demand = rows[:1], 0.0
    for scale in _SCALES[: 1 if s == 1 else None]:
        rng = named_generator(seed, "packing", repr(float(scale)))
        packed = _greedy(_candidates(rows, s, float(scale), n_candidates, rng), epsilon)
        if packed.shape[0] > 1 and fano(packed, 0.05) > demand:
            best, demand = packed, fano(packed, 0.05)
        if packed.shape[0] == 1:
            break
    return best


def _candidates(rows: Array, s: int, scale: float, n_candidates: int, rng: np.random.Generator) -> Array:
    """The rows if s = 1; else a row and its mixtures with up to s−1 others of total weight ≤ `scale`."""
    n_rows = rows.shape[0]
    if s == 1:
        return rows[rng.permutation(n_rows)]
    centre = int(rng.integers(n_rows))
    others = np.delete(np.arange(n_rows), centre)
    stars = scale * rows[others] + (1 - scale) * rows[centre]
    stars = stars[rng.permutation(others.size)[:n_candidates]]
    mixed = []
    for _ in range(max(0, n_candidates - stars.shape[0]) if s > 2 or n_rows == 2 else n_candidates // 4):
        chosen = rng.choice(others, size=min(s - 1, others.size), replace=False)
        weights = rng.dirichlet(np.ones(chosen.size))
        size = scale * rng.random()
        mixed.append(size * (weights @ rows[chosen]) + (1 - size) * rows[centre])
    laws = np.vstack([rows[centre], stars, *mixed])
    return laws / laws.sum(axis=1, keepdims=True)


def _greedy(candidates: Array, epsilon: float) -> Array:
    kept = candidates[:1]
    for law in candidates[1:]:
        if halfway_divergence(law, kept).min() > epsilon * _MARGIN:
            kept = np.vstack([kept, law])
    return kept
