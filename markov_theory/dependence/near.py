"""Arm 2. A pair of near rows among T − 2 far ones: N* exact, and the same to the integer for every T.

An outcome is a coin and a word of K letters. The word of row v has the law (1 + h_v)/K with h_v = ±0.9 a Walsh
function, so any two words' laws are equally far apart; rows 0 and 1 share their word and have coins with
probabilities ½ ± shift, the other rows a fair coin. J = 2K, γ and c are the same for every T.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import hadamard

from markov_theory import _checks
from markov_theory._checks import Array, IntArray
from markov_theory.dependence.series import Measured, Setting, least_from_where
from markov_theory.verify.two_outcomes import row_failures

SHIFT, DEPTH, LETTERS = 0.05, 0.9, 512


def near_pair_rows(n_tokens: int, n_letters: int = LETTERS, shift: float = SHIFT, depth: float = DEPTH) -> Array:
    """Make the rows, the near pair first.

    Parameters
    ----------
    n_tokens : int
        T in [3, K].
    n_letters : int
        K, a power of 2.
    shift, depth : float
        Of coins and of words, in (0, ½) and (0, 1).

    Returns
    -------
    ndarray, shape (T, 2K)
    """
    T, K = _checks.whole(n_tokens, "n_tokens", low=3, high=n_letters), n_letters
    words = (1 + depth * hadamard(K)[np.append(1, np.arange(1, T))]) / K  # (T, K)
    heads = np.full(T, 0.5)
    heads[:2] += [shift, -shift]
    return np.hstack([heads[:, None] * words, (1 - heads)[:, None] * words])


def measure_pair(n_tokens: int, setting: Setting, n_letters: int, shift: float, depth: float) -> Measured:
    """N*_last over all truths, between two certified numbers.

    A row of the pair fails at least if the other does as well, which is exact in closed form, and at most with that
    probability plus Σ ρ^N over the far rows, ρ = Σ_j √(p_v(j)p_w(j)); a far row with at most Σ ρ^N over all others.
    """
    rows, delta = near_pair_rows(n_tokens, n_letters, shift, depth), setting.delta
    affinity = np.sqrt(rows) @ np.sqrt(rows).T
    exponent = -np.log(np.minimum(affinity, 1.0))
    np.fill_diagonal(exponent, np.inf)
    between, beyond = float(exponent[0, 1]), exponent.copy()
    beyond[0, 1] = beyond[1, 0] = np.inf
    nearest = float(beyond.min())

    def far(n: IntArray) -> Array:
        return (n_tokens - 1) * np.exp(-nearest * n.astype(np.float64))

    def pair(n: IntArray) -> Array:
        return row_failures([0.5 + shift, 0.5 - shift], n).max(axis=1)

    top = math.ceil(math.log(2 / delta) / between)
    while math.exp(-between * top) + float(far(np.array([top]))[0]) > delta:  # falls with N
        top *= 2
    low = least_from_where(pair, top, delta)
    high = least_from_where(lambda n: pair(n) + far(n), top, delta)
    facts = {"near": between, "far": nearest, "far_failure": float(far(np.array([low]))[0])}
    return Measured(float(high), float(low), float(high), facts=facts)


def measure(n_tokens: int, repeat: int, setting: Setting) -> Measured:
    """`measure_pair` with C₂ at 65 C₁, at J = 1024."""
    return measure_pair(n_tokens, setting, LETTERS, SHIFT, DEPTH)
