"""Points of the unit cube to small instances: the coordinates in which a counterexample is looked for."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import expit, softmax

from markov_theory._checks import Array
from markov_theory.verify.cases import Case, MixtureCase, PackedCase, PackingCase, RowsCase
from markov_theory.verify.embedding_cases import CoinCase, ExponentialCase, LogisticCase
from markov_theory.verify.other_cases import ExposureCase, MisspecifiedCase, SupportCase, SupportPairCase
from markov_theory.verify.two_outcomes import Divergence, binary_divergence, even_odds

Builder = Callable[[Array, int], Case]
USUAL = 0.25  # share of a coordinate below the usual range of its quantity, where exponents show
EPSILONS = (1e-10, 1e-4, 0.5)  # least, least of the usual ones, largest
DELTAS = (1e-12, 1e-3, 0.6)
NEVER = 0.04  # share of a coordinate, at either end, that stands for a probability of exactly 0 or 1


def probability(u: float) -> float:
    """Map [0, 1] to probabilities, 0 and 1 at the ends, 0.001 to 0.999 between them."""
    if not NEVER < u < 1 - NEVER:
        return float(u > 0.5)
    return float(expit(7 * (2 * (u - NEVER) / (1 - 2 * NEVER) - 1)))


def geometric(u: float, low: float, high: float) -> float:
    """Map [0, 1] to [low, high], evenly in the logarithm."""
    return low * (high / low) ** u


def graded(u: float, least: float, usual: float, largest: float) -> float:
    """Map [0, 1] to [least, largest], a quarter of it to what lies below the usual; evenly in the logarithm in each."""
    return geometric(u / USUAL, least, usual) if u < USUAL else geometric((u - USUAL) / (1 - USUAL), usual, largest)


def moved(p: float, u: float) -> float:
    """Another probability: p moved towards 0 (u < ½) or 1, by 1e-5 of the way (u near ½) to all of it (u = 0 or 1).

    The last tenth at either end is for rows with a huge ratio, down to 1e-40 of the way left, and 0.
    """
    far = abs(2 * u - 1)
    if far <= 0.9:
        share = graded(far / 0.9, 1e-5, 1e-3, 0.9)
        return p * (1 - share) if u < 0.5 else p + (1 - p) * share
    left = geometric(10 * (1 - far), 1e-40, 0.1) if far < 0.995 else 0.0
    return p * left if u < 0.5 else 1 - (1 - p) * left


def laws_from(points: Array, n_outcomes: int) -> Array:
    """Rows from J coordinates each: softmax of logits in [−3, 3], and exact zeros at the lower end."""
    u = points.reshape(-1, n_outcomes)
    rows = softmax(6 * u - 3, axis=1) * (u > NEVER)
    if not rows.any(axis=1).all():
        raise ValueError("a row without outcomes")
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _epsilon(u: float) -> float:
    return graded(u, *EPSILONS)


def _delta(u: float) -> float:
    return graded(u, *DELTAS)


def _usual_delta(u: float) -> float:
    """δ where probabilities are enumerated, and known to about 1e-11 only."""
    return geometric(u, *DELTAS[1:])


def _distinct(rows: Array) -> Array:
    if np.unique(rows, axis=0).shape[0] < rows.shape[0]:
        raise ValueError("rows coincide")
    return rows


def two_rows(x: Array, most: int) -> Case:
    """Two rows on two outcomes: a probability, the other one moved from it, δ."""
    p = probability(x[0])
    first = np.array([p, moved(p, x[1])])
    return RowsCase(_distinct(np.column_stack([first, 1 - first])), _delta(x[2]))


def mirrored_rows(x: Array, most: int) -> Case:
    """Two rows on two outcomes that mirror each other: how far they are from ½, δ."""
    gap = graded(x[0], 1e-5, 1e-3, 0.499)
    return RowsCase(np.array([[0.5 + gap, 0.5 - gap], [0.5 - gap, 0.5 + gap]]), _delta(x[1]))


def several_rows(x: Array, most: int) -> Case:
    """Two to four rows on two outcomes: how many, their probabilities, δ."""
    first = np.array([probability(u) for u in x[1 : 3 + int(3 * x[0] * 0.999)]])
    return RowsCase(_distinct(np.column_stack([first, 1 - first])), _delta(x[-1]))


def several_outcomes(n_tokens: int, n_outcomes: int) -> Builder:
    """T rows on J outcomes: δ, logits."""

    def build(x: Array, most: int) -> Case:
        return RowsCase(_distinct(laws_from(x[1:], n_outcomes)), _usual_delta(x[0]), most)

    return build


def packed(most_tokens: int, criterion: bool) -> Builder:
    """Packed rows: how many, a/b, δ; with a criterion, ε just below the margin."""

    def build(x: Array, most: int) -> Case:
        T, ratio = round(geometric(x[0], 2, most_tokens)), geometric(x[1], 1.3, 40.0)
        margin = (ratio - 1) * math.log(ratio) / (T + ratio - 1)
        return PackedCase(T, ratio, _usual_delta(x[2]), 0.999 * margin if criterion else None)

    return build


def interval(divergence: Divergence, n_extra: int, least_weight: float) -> Builder:
    """Two rows mixed on two outcomes, and more rows beside: as `two_rows`, a weight, ε, δ, further probabilities."""

    def build(x: Array, most: int) -> Case:
        p = probability(x[0])
        weight = min(max(probability(x[2]), least_weight), 1 - least_weight)
        first = np.append([p, moved(p, x[1])], [probability(u) for u in x[5 : 5 + n_extra]])
        alpha = np.zeros(first.size)
        alpha[:2] = 1 - weight, weight
        rows = _distinct(np.column_stack([first, 1 - first]))
        return MixtureCase(rows, alpha, first.size, _epsilon(x[3]), _delta(x[4]), divergence)

    return build


def hull(T: int, J: int, s: int, n_mixed: int, divergence: Divergence) -> Builder:
    """The first rows of T mixed, on J outcomes, s of them in the class: ε, δ, weights, logits."""

    def build(x: Array, most: int) -> Case:
        weights = softmax(6 * x[2 : 2 + n_mixed] - 3)
        rows = _distinct(laws_from(x[2 + n_mixed :], J))
        alpha = np.append(weights, np.zeros(T - n_mixed))
        return MixtureCase(rows, alpha, s, geometric(x[0], 3e-3, 0.5), _usual_delta(x[1]), divergence, most)

    return build


def packing(x: Array, most: int) -> Case:
    """Evenly spaced laws on two outcomes: how many, the first, the last, ε against their least JS_{1/2}, δ."""
    M = 2 + int(3 * x[0] * 0.999)
    low, high = sorted((probability(x[1]), moved(probability(x[1]), x[2])))
    first = low + (high - low) * np.linspace(0, 1, M)
    return PackingCase(_distinct(np.column_stack([first, 1 - first])), _nearest(first) * _excess(x[3]), _delta(x[4]))


def peaked_packing(x: Array, most: int) -> Case:
    """Packed rows as laws that no answer is to serve two of: how many, a/b, ε against their JS_{1/2}, δ."""
    M, ratio = 2 + int(4 * x[0] * 0.999), geometric(x[1], 1.3, 40.0)
    laws = (np.ones((M, M)) + (ratio - 1) * np.eye(M)) / (M + ratio - 1)
    own, other = ratio / (M + ratio - 1), 1 / (M + ratio - 1)
    middle = (own + other) / 2
    nearest = own * math.log(own / middle) + other * math.log(other / middle)
    return PackingCase(laws, nearest * _excess(x[2]), _usual_delta(x[3]), most)


def _excess(u: float) -> float:
    """Share of the least JS_{1/2} that ε is: above 1 no packing is certified."""
    return min(geometric(u, 0.2, 5.0), 0.999) if u < 0.6 else geometric(u, 0.2, 5.0)


def _nearest(first: Array) -> float:
    middle = (first[1:] + first[:-1]) / 2
    pairs = [binary_divergence(p, np.array(m)) for p, m in zip(first[1:], middle, strict=True)]
    pairs_below = [binary_divergence(p, np.array(m)) for p, m in zip(first[:-1], middle, strict=True)]
    return float(np.min(np.add(pairs, pairs_below))) / 2


def logistic(x: Array, most: int) -> Case:
    """Tokens in a ball, two outcomes: bias, B, the truth's place, ε, δ, unused, T, s."""
    T = 1 + int(4 * x[6] * 0.999)
    steps = np.array([1.0, 0.9, -0.5, 0.2])[:T]
    s = 1 + int(T * x[7] * 0.999)
    radius = geometric(x[1], 0.02, 5.0)
    return LogisticCase(steps, 16 * x[0] - 8, radius, 2 * x[2] - 1, s, _epsilon(x[3]), _delta(x[4]))


def coin(x: Array, most: int) -> Case:
    """One free log-odds: the truth, ε, δ."""
    truth = min(max(probability(x[0]), 1e-4), 1 - 1e-4)
    return CoinCase(truth, _epsilon(x[1]), _delta(x[2]))


def curve(n_outcomes: int) -> Builder:
    """One token, J outcomes: ε, δ, the statistic, the truth's logits."""

    def build(x: Array, most: int) -> Case:
        statistic = x[2 : 2 + n_outcomes]
        if np.ptp(statistic) == 0:
            raise ValueError("a constant statistic")
        law = softmax(6 * x[2 + n_outcomes :] - 3)
        return ExponentialCase(law, statistic, geometric(x[0], 3e-3, 0.5), _usual_delta(x[1]), most)

    return build


def saturated(x: Array, most: int) -> Case:
    """Every law in the class: ε, δ, the truth's logits."""
    return ExponentialCase(softmax(6 * x[2:] - 3), None, geometric(x[0], 3e-3, 0.5), _usual_delta(x[1]), most)


def supports_found(n_tokens: int, n_mixed: int, pairs: bool) -> Builder:
    """One or two rows of T mixed on three outcomes: δ, the weight, logits; or pairs of truths to be told apart."""

    def build(x: Array, most: int) -> Case:
        rows = _distinct(laws_from(x[2:], 3))
        weight = 0.02 + 0.96 * x[1]
        alpha = np.zeros(n_tokens)
        alpha[:2] = (weight, 1 - weight) if n_mixed == 2 else (1.0, 0.0)
        delta = geometric(x[0], DELTAS[1], 0.995)
        return SupportPairCase(rows, alpha, delta, most) if pairs else SupportCase(rows, alpha, 2, delta, most)

    return build


def misspecified(single: bool) -> Builder:
    """Two rows on two outcomes and any truth, or one about as far from either row: as `two_rows`, the truth, ε, δ."""

    def build(x: Array, most: int) -> Case:
        p = probability(x[0])
        first = _distinct(np.array([[p], [moved(p, x[1])]]))[:, 0]
        truth = min(max(probability(x[2]), 1e-3), 1 - 1e-3)
        if x[5] < 0.5:  # nearly as far from one row as from the other
            odds = even_odds(float(first.max()), float(first.min()))
            truth = min(max(odds * (1 + 0.02 * (x[2] - 0.5)), 1e-3), 1 - 1e-3)
        return MisspecifiedCase(first, truth, single, _epsilon(x[3]), _delta(x[4]))

    return build


def exposure(x: Array, most: int) -> Case:
    """A few tokens at Zipf rates: how many, Zipf's exponent, their total rate, samples of each, δ."""
    m = 2 + int(4 * x[0] * 0.999)
    odds = np.arange(1.0, m + 1) ** (-2.0 * x[1])
    return ExposureCase(geometric(x[2], 0.1, 1.0) * odds / odds.sum(), 1 + int(30 * x[3]), _usual_delta(x[4]))
