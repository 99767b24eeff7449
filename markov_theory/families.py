"""Dictionaries with a *given* KL margin γ and density ratio c: made, then certified.

Rows are ``p_v = softmax(ℓ_v)``. The pattern of the logits ℓ is random; two numbers shape it. The *amplitude*
scales all logits, and with them c. The *decay* shrinks the later outcomes' logits against the first ones',
and with them γ at the same c. Both are found by bracketing, and the finished dictionary is measured again.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from markov_theory import divergences
from markov_theory._checks import Array, positive, whole
from markov_theory.dictionary import Dictionary
from markov_theory.randomness import named_generator

Family = Literal["well-conditioned", "correlated"]
MARGIN_TOLERANCE = 1e-3
CORRELATED_RANK = 8
LARGEST_RATIO = 1e100


def make_dictionary(
    n_tokens: int,
    n_outcomes: int,
    *,
    density_ratio: float,
    margin: float | None = None,
    family: Family = "well-conditioned",
    seed: int = 0,
) -> Dictionary:
    """Make T rows over J outcomes with density ratio c and smallest pairwise KL γ.

    Parameters
    ----------
    n_tokens, n_outcomes : int
        T >= 2 and J >= 2.
    density_ratio : float
        c > 1; never exceeded, and reached to 1e-6 relative unless γ is too small for that (few rows or outcomes).
    margin : float, optional
        γ in nats; reached to 1e-3 relative. By default the largest that this pattern has at ratio c.
    family : {"well-conditioned", "correlated"}
        Independent logits between -1 and 1 (cosines of uniform angles), or logits of rank 8.
    seed : int
        Of the pattern.

    Returns
    -------
    Dictionary

    Raises
    ------
    ValueError
        If γ is not reachable at this T, J, c, family and seed; the message names the feasible range.

    Examples
    --------
    >>> made = make_dictionary(8, 16, density_ratio=9.0, margin=0.05)
    >>> bool(abs(made.margin / 0.05 - 1) < 1e-3), bool(8.99 < made.density_ratio <= 9)
    (True, True)
    """
    T, J = whole(n_tokens, "n_tokens", low=2), whole(n_outcomes, "n_outcomes", low=2)
    if not 1 < density_ratio <= LARGEST_RATIO:
        raise ValueError(f"density_ratio must be a number > 1 and at most {LARGEST_RATIO:g}, got {density_ratio:g}")
    pattern = _pattern(T, J, family, seed)
    rows = _rows(pattern, 0.0, density_ratio)
    if margin is not None:
        rows = _with_margin(pattern, density_ratio, positive(margin, "margin"))
    made = Dictionary(rows, origin=f"made: {family}, seed {seed}")
    _certify(made, density_ratio, margin)
    return made


def _pattern(T: int, J: int, family: str, seed: int) -> Array:
    """Logit pattern (T, J), between -1 and 1."""
    generator = named_generator(seed, "dictionary", family, T, J)
    if family == "well-conditioned":
        return np.cos(np.pi * generator.random((T, J)))
    if family == "correlated":
        rank = min(CORRELATED_RANK, T, J)
        logits = generator.standard_normal((T, rank)) @ generator.standard_normal((rank, J))
        return logits / np.abs(logits).max(axis=0)
    raise ValueError(f"family must be one of {', '.join(get_args(Family))}, got {family!r}")


def _rows(pattern: Array, decay: float, density_ratio: float) -> Array:
    """Rows of ratio exactly c, from below, with logits shrinking as exp(−decay·j/J) over outcomes."""
    J = pattern.shape[1]
    shaped = pattern * np.exp(-decay * np.arange(J) / J)

    def at(amplitude: float) -> Array:
        return softmax(amplitude * shaped, axis=1)

    def log_excess(amplitude: float) -> float:
        return math.log(divergences.density_ratio(at(amplitude))) - math.log(density_ratio) * (1 - 1e-9)

    high = math.log(density_ratio)
    while log_excess(high) < 0:
        high *= 2
    amplitude = brentq(log_excess, 0.0, high, xtol=1e-12 * high, rtol=1e-12)
    while log_excess(amplitude) > math.log(density_ratio) * 5e-10:
        amplitude *= 1 - 1e-10
    return at(amplitude)


def _with_margin(pattern: Array, density_ratio: float, margin: float) -> Array:
    """Rows of ratio c whose margin is γ: the decay that gives it lies between 0 and 60."""

    def log_excess(decay: float) -> float:
        return math.log(max(divergences.margin(_rows(pattern, decay, density_ratio)), 1e-300) / margin)

    most, least = 0.0, 60.0 * pattern.shape[1] / 2
    if log_excess(most) < 0:
        if log_excess(most) > -MARGIN_TOLERANCE / 2:
            return _rows(pattern, most, density_ratio)
        largest = math.exp(log_excess(most)) * margin
        raise ValueError(
            f"margin must be at most {largest:.4g} nats for {pattern.shape[0]} rows over {pattern.shape[1]} outcomes "
            f"at density ratio {density_ratio:g} (this family and seed), got {margin:g}: "
            "raise the ratio or the number of outcomes, or lower the margin"
        )
    if log_excess(least) > 0:
        return _with_smaller_ratio(pattern, least, density_ratio, margin)
    return _rows(pattern, brentq(log_excess, most, least, xtol=1e-12, rtol=1e-10), density_ratio)


def _with_smaller_ratio(pattern: Array, decay: float, density_ratio: float, margin: float) -> Array:
    """Rows of margin γ where even the fastest decay leaves more than γ at ratio c (few rows): a ratio below c."""

    def log_excess(log_ratio: float) -> float:
        rows = _rows(pattern, decay, math.exp(log_ratio))
        return math.log(max(divergences.margin(rows), 1e-300) / margin)

    least = min(1e-6, math.log(density_ratio) / 2)
    if log_excess(least) > 0:
        raise ValueError(
            f"margin must be at least {math.exp(log_excess(least)) * margin:.3g} nats for {pattern.shape[0]} rows over "
            f"{pattern.shape[1]} outcomes (this family and seed), got {margin:g}"
        )
    return _rows(pattern, decay, math.exp(brentq(log_excess, least, math.log(density_ratio), rtol=1e-10)))


def _certify(made: Dictionary, density_ratio: float, margin: float | None) -> None:
    """Measure the finished dictionary; a generator that missed must not return."""
    if made.density_ratio > density_ratio:
        raise ArithmeticError(f"density ratio came out at {made.density_ratio!r}, asked at most {density_ratio!r}")
    if margin is not None and abs(made.margin / margin - 1) > MARGIN_TOLERANCE:
        raise ArithmeticError(f"margin came out at {made.margin!r}, asked {margin!r}")
