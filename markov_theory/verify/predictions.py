"""Claims about limits: Wilks' laws and their variants at edges and crossings, Chernoff's exponent, growth with log T.

An asymptotic statement promises nothing at any N, so it is held to its limit: the exact failure probability at the
predicted N must be δ up to 10 % where the asymptotics has set in. That tells neighbouring laws apart: one degree of
freedom more or less moves it by a factor of 2 to 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp

from markov_theory._checks import Array
from markov_theory.bounds import BOUNDS, O3
from markov_theory.bounds.base import Bound
from markov_theory.randomness import named_generator
from markov_theory.verify.cases import Case, MixtureCase, PackedCase
from markov_theory.verify.claims import Claim, Finding, Settings
from markov_theory.verify.embedding_cases import CoinCase, ExponentialCase, LogisticCase
from markov_theory.verify.limits import limit_point
from markov_theory.verify.mixtures import mixture_failure
from markov_theory.verify.tables import compositions, multinomial_log_pmf
from markov_theory.verify.tightness import roughly_last
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED

NEAR = 0.1  # relative: how near δ the failure probability at a predicted N must be
TABLES = 200_000
CHERNOFF_SIZES = (60, 65, 71, 76)
Geometry = tuple[str, Array, Array, int]  # name, rows, alpha, sparsity


def check_prediction(bound: type[Bound], settings: Settings) -> Finding:
    """Compare failure at N = prediction with δ where ε is so small that the limit law should have set in."""
    n_draws = 2 if not settings.effort.full else 12
    found: list[tuple[float, dict[str, Any]]] = []
    for case in _asymptotic_cases(bound, n_draws, settings.seed):
        N = case.bound(bound)
        if 0 < N <= case.reach:
            failure = float(case.failures(np.array([int(N)])).low[0])
            found.append((abs(failure / case.delta - 1), {**case.describe(), "N": N, "failure": failure}))
    return _deviation(found, "largest |P(fail)/delta - 1| at N = prediction")


def limit_laws(settings: Settings, point: Callable[[Array, Array, int, float], float] = limit_point) -> Finding:
    """P(2N·KL > x) against δ, x the upper point of the limit law, on edges, at vertices, crossings and rays."""
    n_draws, n_samples = (1, 1500) if not settings.effort.full else (6, 4000)
    found: list[tuple[float, dict[str, Any]]] = []
    for name, rows, alpha, s in _geometries(n_draws, settings.seed):
        x = point(rows, alpha, s, 0.05)
        failure = float(mixture_failure(rows, alpha, s, n_samples, x / (2 * n_samples)).low)
        described = {"geometry": name, "rows": rows.tolist(), "alpha": alpha.tolist(), "sparsity": s, "point": x}
        found.append((abs(failure / 0.05 - 1), {**described, "N": n_samples, "failure": failure}))
    return _deviation(found, "largest |P(2N KL > x)/delta - 1| at the limit's x")


def chernoff_prefactor(
    settings: Settings, prefactor: Callable[[float, float], float] = lambda tilt, sigma: 1 / (tilt * sigma)
) -> Finding:
    """P(a wrong row is as likely) ~ e^{−NC}/(λσ√(2πN)): the mean of exact/refined over some N near 70.

    The expansion is for ratios that lie on no lattice; the mean smooths what near-lattices leave.
    """
    generator = named_generator(settings.seed, "chernoff")
    found: list[tuple[float, dict[str, Any]]] = []
    tilts = np.linspace(0.02, 0.98, 193)
    while len(found) < (3 if not settings.effort.full else 12):
        p, q = generator.dirichlet(np.full(4, 2.0), size=2)
        ratio = np.log(q / p)
        logs = np.log(np.exp(np.outer(tilts, ratio)) @ p)
        tilt, C = float(tilts[logs.argmin()]), float(-logs.min())
        if not (0.3 < C < 1 and 0.3 < tilt < 0.7):
            continue
        tilted = p * np.exp(tilt * ratio + C)
        sigma = math.sqrt(float(tilted @ ratio**2) - float(tilted @ ratio) ** 2)
        waves = np.abs(np.exp(1j * np.outer(np.linspace(3, 40, 300) / sigma, ratio)) @ tilted)
        if waves.max() > 0.93:  # log-likelihood ratios lie nearly on a lattice
            continue
        shares = [_refined_share(p, ratio, N, C, prefactor(tilt, sigma)) for N in CHERNOFF_SIZES]
        found.append((abs(float(np.mean(shares)) - 1), {"p": p.tolist(), "q": q.tolist(), "exact/refined": shares}))
    return _deviation(found, "largest |mean exact/refined - 1| near N = 70")


def _refined_share(p: Array, ratio: Array, N: int, C: float, prefactor: float) -> float:
    counts = compositions(N, p.size)
    exact = float(logsumexp(multinomial_log_pmf(counts, p[None, :])[counts @ ratio >= 0, 0]))
    return math.exp(exact + N * C) * math.sqrt(2 * math.pi * N) / prefactor


def packed_growth(settings: Settings, free: bool = False) -> Finding:
    """Packed rows: N*·γ grows with every doubling of T, by at least 1 nat; or, falsely, is the same within 5 %."""
    most = 64 if not settings.effort.full else 512
    sizes = [2**k for k in range(2, int(math.log2(most)) + 1)]
    stars = []
    for T in sizes:
        case = PackedCase(T, 4.0, 0.05, reach=1e5)
        stars.append(roughly_last(case, case.bound(O3)) * case.instance.margin)
    steps = np.diff(stars)
    described = {"T": sizes, "N* gamma": stars}
    tested = f"T = {sizes[0]}..{sizes[-1]}"
    if free:
        spread = float(np.max(stars) / np.min(stars) - 1)
        verdict, number = VIOLATED if spread > 0.05 else HOLDS, "relative spread of N* gamma"
        return Finding(verdict, tested, number, spread, spread, spread, 0.05, instance=described)
    least = float(steps.min())
    verdict, number = HOLDS if least >= 1 else VIOLATED, "least growth of N* gamma per doubling"
    return Finding(verdict, tested, number, least, least, least, 1.0, ">=", instance=described)


def _deviation(found: list[tuple[float, dict[str, Any]]], number: str) -> Finding:
    if not found:
        return Finding(INCONCLUSIVE, "nothing within reach", number, math.nan, math.nan, math.nan)
    worst, instance = max(found, key=lambda item: item[0])
    verdict = HOLDS if worst <= NEAR else VIOLATED
    return Finding(verdict, f"{len(found)} instances", number, worst, worst, worst, NEAR, instance=instance)


def _asymptotic_cases(bound: type[Bound], n_draws: int, seed: int) -> Iterator[Case]:
    """Truths well inside their class: ε = 1e-6 on two outcomes, N of some thousands on three."""
    generator = named_generator(seed, "asymptotic", bound.label)
    for _ in range(n_draws):
        for delta in (0.2, 0.05, 0.01):
            p, law = generator.uniform(0.2, 0.8), 0.15 + 0.55 * generator.dirichlet(np.ones(3))
            if "oracle" in bound.speaks_of:
                rows = np.array([[p - 0.15, 1.15 - p], [p + 0.15, 0.85 - p]])
                yield MixtureCase(rows, np.full(2, 0.5), 2, 1e-6, delta)
                yield _planar_case(law, 2, delta, generator)
                yield _planar_case(law, 3, delta, generator)
            if "embedding-oracle" in bound.speaks_of:
                yield CoinCase(p, 1e-6, delta)
                yield LogisticCase(np.array([1.0]), 0.3, 1.0, 1.0, 1, 1e-6, min(delta, 0.2))
                yield ExponentialCase(law, None, 1e-3, delta, TABLES)
                yield ExponentialCase(law, generator.permutation([0.0, 1.0, 0.37]), 1e-3, delta, TABLES)


def _planar_case(law: Array, n_rows: int, delta: float, generator: np.random.Generator) -> Case:
    angles = generator.uniform(0, 2 * np.pi) + 2 * np.pi * np.arange(n_rows) / n_rows
    rows = _around(law, angles, 0.9)
    alpha = np.linalg.lstsq(np.vstack([rows.T, np.ones(n_rows)]), np.append(law, 1.0), rcond=None)[0]
    return MixtureCase(rows, alpha / alpha.sum(), n_rows, 1e-3, delta, most=TABLES)


def _around(law: Array, angles: Array, share: float) -> Array:
    """Laws from a centre in directions of the whitened plane, at a share of the way to the simplex's boundary."""
    plane = np.linalg.svd(np.sqrt(law)[None, :])[2][1:]
    moves = np.sqrt(law) * (np.column_stack([np.cos(angles), np.sin(angles)]) @ plane)
    with np.errstate(divide="ignore"):
        reach = np.where(moves < 0, -law / moves, np.inf).min(axis=1)
    rows = law + share * reach[:, None] * moves
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _geometries(n_draws: int, seed: int) -> Iterator[Geometry]:
    """Truths on three outcomes: on a segment, crossing ones, an edge, at a vertex, where rays meet, and inside."""
    generator = named_generator(seed, "geometries")
    for _ in range(n_draws):
        law = 0.25 + 0.25 * generator.dirichlet(np.ones(3))
        turn, opening = generator.uniform(0, 2 * np.pi), generator.uniform(0.3, 0.7) * np.pi
        line = _around(law, turn + np.array([0.0, np.pi]), 0.9)
        middle = _weights_of(law, line)
        across = _around(law, turn + opening + np.array([0.0, np.pi]), 0.9)
        beside = _around(law, np.array([turn + opening]), 0.9)
        yield "segment", line, middle, 2
        yield "crossing segments", np.vstack([line, across]), np.append(middle, [0.0, 0.0]), 2
        yield "edge of a triangle", np.vstack([line, beside]), np.append(middle, 0.0), 3
        corner = _around(law, turn + np.array([0.0, opening]), 0.9)
        yield "vertex of a triangle", np.vstack([law, corner]), np.eye(3)[0], 3
        for k in (2, 3, 6):
            rays = _around(law, turn + 2 * np.pi * np.arange(k) / k, 0.9)
            yield f"{k} rays", np.vstack([law, rays]), np.eye(k + 1)[0], 2
        ring = _around(law, turn + 2 * np.pi * np.arange(6) / 6, 0.9)
        yield "inside of 6 rows", ring, _weights_of(law, ring[[0, 2, 4]], [0, 2, 4], 6), 3


def _weights_of(law: Array, rows: Array, places: list[int] | None = None, n: int = 0) -> Array:
    weights = np.linalg.lstsq(np.vstack([rows.T, np.ones(len(rows))]), np.append(law, 1.0), rcond=None)[0]
    if places is None:
        return np.asarray(weights / weights.sum())
    alpha = np.zeros(n)
    alpha[places] = weights / weights.sum()
    return alpha


def claim_of_prediction(bound: type[Bound]) -> Claim:
    """The claim that a prediction makes of itself."""
    return Claim(bound.label, bound.statement, bound.origin, lambda settings: check_prediction(bound, settings))


CLAIMS = (
    *(claim_of_prediction(bound) for bound in BOUNDS.values() if bound.kind == "prediction"),
    Claim(
        "limits",
        "2 N KL tends to the largest squared projection of a Gaussian on the tangent cones of the supports at q",
        "derived",
        limit_laws,
    ),
    Claim("chernoff", "P(LLR <= 0) ~ exp(-N C)/(lambda sigma sqrt(2 pi N))", "derived", chernoff_prefactor),
    Claim("logT", "packed rows: N* gamma grows with log T", "derived", packed_growth),
)
