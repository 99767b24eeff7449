"""Inequalities *quantity ≤ limit* over small instances, and the steps of proofs that are such inequalities.

The search climbs log(quantity/limit), and a claim is violated where that exceeds rounding. The constants are
arguments, so that a false one is a claim like any other.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from markov_theory._checks import Array
from markov_theory.bounds.sparse import net_resolution
from markov_theory.divergences import density_ratio
from markov_theory.embedding_instance import logit_spreads
from markov_theory.randomness import named_generator
from markov_theory.verify.builders import geometric, laws_from
from markov_theory.verify.claims import Finding, Settings
from markov_theory.verify.hulls import best_weights, mean_log
from markov_theory.verify.search import maximise
from markov_theory.verify.tables import compositions, multinomial_log_pmf
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED

ROUNDING = 1e-9
_TILTS = np.linspace(0.05, 0.95, 19)
_WEIGHTS = np.linspace(0.0, 1.0, 257)
LogRatio = Callable[[Array], tuple[float, dict[str, Any]]]


def inequality(
    label: str,
    number: str,
    dimension: int,
    log_ratio: LogRatio,
    settings: Settings,
    starts: tuple[tuple[float, ...], ...] = (),
) -> Finding:
    """Search for an instance at which log(quantity/limit) exceeds rounding.

    Parameters
    ----------
    label : str
        Keys the randomness.
    number : str
        What the ratio is.
    dimension : int
        Coordinates of an instance in the unit cube.
    log_ratio : callable
        A point to the log of the ratio and the instance's numbers; ValueError where there is no instance.
    settings : Settings
    starts : tuple of points
        Worth a look before random ones.
    """
    n_tried, best, instance = 0, -math.inf, {}

    def value(x: Array) -> float:
        nonlocal n_tried, best, instance
        try:
            ratio, described = log_ratio(x)
        except ValueError:
            return -math.inf
        n_tried += math.isfinite(ratio)
        if ratio > best:
            best, instance = ratio, described
        return ratio

    generator = named_generator(settings.seed, "inequality", label)
    maximise(value, dimension, settings.effort, generator, starts, until=ROUNDING)
    if n_tried == 0:
        return Finding(INCONCLUSIVE, "nothing decisive", number, math.nan, math.nan, math.nan)
    ratio = math.exp(best)
    verdict = VIOLATED if best > ROUNDING else HOLDS
    slack = 1 / ratio if ratio > 0 else math.inf
    return Finding(verdict, f"{n_tried:,} instances", number, ratio, ratio, ratio, 1.0, slack=slack, instance=instance)


def net_rounding(
    settings: Settings, resolution: Callable[[int, float], float] = net_resolution, label: str = "S1-net"
) -> Finding:
    """Largest-remainder rounding to multiples of 1/k moves weights by at most η in l1."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        s, radius = 2 + int(4 * x[0] * 0.999), geometric(x[1], 0.02, 1.9)
        weights = softmax(6 * x[2 : 2 + s] - 3)
        k = int(resolution(s, radius))
        whole = np.floor(weights * k)
        short = round(k - whole.sum())
        whole[np.argsort(whole - weights * k, kind="stable")[:short]] += 1
        move = float(np.abs(whole / k - weights).sum())
        return math.log(max(move, 1e-300) / radius), {"weights": weights.tolist(), "radius": radius, "k": k}

    return inequality(label, "l1 move/eta", 7, log_ratio, settings)


def net_rounding_up(
    settings: Settings, size: Callable[[int, int], float] = lambda k, s: k + s - 1, label: str = "S2-net"
) -> Finding:
    """Rounding kα_v up and padding to K = k+s−1 keeps q_α/q_α' ≤ K/k."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        s, k = 2 + int(3 * x[0] * 0.999), 1 + int(30 * x[1])
        weights, rows = softmax(6 * x[2 : 2 + s] - 3), laws_from(x[6 : 6 + 3 * s], 3)
        up = np.ceil(k * weights - 1e-12)
        up[np.argmax(weights)] += max(0.0, size(k, s) - up.sum())
        law, other = weights @ rows, up / up.sum() @ rows
        ratio = float((law[law > 0] / other[law > 0]).max())
        return math.log(ratio * k / size(k, s)), {"weights": weights.tolist(), "rows": rows.tolist(), "k": k}

    apart = (0.9, *(0.3,) * 3, *np.where(np.eye(4, 3), 0.9, 0.1).ravel())  # one weight and one outcome a row stand out
    starts = tuple((size, k, *apart) for size in (0.2, 0.5, 0.9) for k in (0.0, 0.1))
    return inequality(label, "max q_alpha/q_alpha' over K/k", 18, log_ratio, settings, starts)


def weight_move(
    settings: Settings,
    limit: Callable[[float, float], float] = lambda eta, c: eta * (c - 1) / 2,
    label: str = "S1-move",
) -> Finding:
    """A move of weights by η in l1 moves every log-probability by at most η(c−1)/2."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        rows = laws_from(x[:6], 2) if x[6] < 0.7 else laws_from(x[:6], 3)
        c, T = density_ratio(rows), rows.shape[0]
        if not 1 + 1e-6 < c < 1e6 or (rows.max(axis=0) == 0).any():
            raise ValueError("c is 1 or infinite")
        before, eta = softmax(12 * x[7 : 7 + T] - 6), geometric(x[10], 1e-3, 1.0)
        give, take = int(T * x[11] * 0.999), int(T * x[12] * 0.999)
        amount = min(eta / 2, before[give])
        after = before.copy()
        after[give] -= amount
        after[take] += amount
        moved_by = float(np.abs(np.log((after @ rows) / (before @ rows))).max())
        if give == take or moved_by == 0:
            raise ValueError("nothing moved")
        described = {"rows": rows.tolist(), "before": before.tolist(), "after": after.tolist()}
        return math.log(moved_by / limit(2 * amount, c)), described

    return inequality(label, "log-probability move over its limit", 13, log_ratio, settings)


def embedding_move(settings: Settings, factor: float = 1.0, label: str = "E-move") -> Finding:
    """A move of s-sparse α by η in l2, on one support, moves every log-probability by at most G_s·η."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        scores, bias, s = 4 * x[:9].reshape(3, 3) - 2, 12 * x[9:12] - 6, 1 + int(3 * x[12] * 0.999)
        alpha, step = 4 * x[13:16] - 2, 2 * x[16:19] - 1
        alpha[s:], step[s:] = 0.0, 0.0
        size = float(np.linalg.norm(step))
        spread = float(logit_spreads(scores)[s - 1])
        if min(size, spread) < 1e-3:
            raise ValueError("nothing moves")
        logs = [logits - logsumexp(logits) for logits in (scores @ a + bias for a in (alpha, alpha + step))]
        described = {"scores": scores.tolist(), "bias": bias.tolist(), "alpha": alpha.tolist(), "step": step.tolist()}
        return math.log(float(np.abs(logs[1] - logs[0]).max()) / (factor * spread * size)), described

    return inequality(label, "log-probability move over G_s eta", 19, log_ratio, settings)


def embedding_ratio(settings: Settings, factor: float = 2.0, label: str = "E-ratio") -> Finding:
    """Within the s-sparse ball, log q_α(j)/q_α'(j) ≤ 2·G_s·B."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        scores, bias, radius = 2 * x[:6].reshape(3, 2) - 1, 16 * x[6:9] - 8, geometric(x[9], 0.1, 4.0)
        angles = 2 * np.pi * x[10:12]
        alphas = radius * np.column_stack([np.cos(angles), np.sin(angles)])
        if x[12] < 0.5:  # one token at a time
            alphas[:, 1], alphas[:, 0] = 0.0, [radius, -radius]
        spread = float(logit_spreads(scores)[0 if x[12] < 0.5 else 1])
        logs = [logits - logsumexp(logits) for logits in alphas @ scores.T + bias]
        if spread < 1e-3:
            raise ValueError("all logits agree")
        described = {"scores": scores.tolist(), "bias": bias.tolist(), "alphas": alphas.tolist()}
        return math.log(float(np.abs(logs[1] - logs[0]).max()) / (factor * spread * radius)), described

    return inequality(label, "largest |log q/q'| over 2 G_s B", 13, log_ratio, settings)


def wrong_support(
    settings: Settings, cover: Callable[[int], float] = lambda N: N + 1.0, label: str = "S5'-term"
) -> Finding:
    """P(some mixture of two other rows is as likely as the truth) ≤ min_λ (N+1)^λ·A_λ^N, A_λ = max Σ q^{1−λ}q'^λ.

    Cover's factor for mixtures of two laws is N + 1.
    """

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        truth, pair, N = softmax(2 * x[:3] - 1), laws_from(x[3:9], 3), 1 + int(30 * x[9] ** 2)
        if (pair[0] == pair[1]).all():
            raise ValueError("the rows coincide")
        mixtures = pair[0] + _WEIGHTS[:, None] * (pair[1] - pair[0])
        affinity = np.array([(truth ** (1 - t) * mixtures**t).sum(axis=1).max() for t in _TILTS])
        bound = float((_TILTS * math.log(cover(N)) + N * np.log(affinity)).min())
        counts = compositions(N, 3)
        frequencies = counts / N
        weight = best_weights(frequencies, pair)[:, None]
        likely = mean_log(frequencies, pair[0] + weight * (pair[1] - pair[0]))
        own = mean_log(frequencies, np.broadcast_to(truth, frequencies.shape))
        chance = float(np.exp(multinomial_log_pmf(counts, truth[None, :]))[likely >= own - 1e-12, 0].sum())
        described = {"truth": truth.tolist(), "pair": pair.tolist(), "N": N}
        return math.log(max(chance, 1e-300)) - min(bound, 0.0), described

    return inequality(label, "probability over its bound", 10, log_ratio, settings)
