"""More steps of proofs, and what bounds say beside their number: gaps, thresholds, the other side, looser readings."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, rel_entr, softmax
from scipy.stats import binom

from markov_theory._checks import Array, IntArray
from markov_theory.bounds import S2, Bound, exposure_failure
from markov_theory.chain import MarkovChain
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import density_ratio, kappa, largest_kl
from markov_theory.higher_order import HigherOrderChain, path_contexts
from markov_theory.instance import Instance
from markov_theory.verify.builders import geometric, laws_from, moved, probability
from markov_theory.verify.cases import Case
from markov_theory.verify.claims import Claim, Finding, Settings
from markov_theory.verify.exact import divergence_from
from markov_theory.verify.other_cases import ExposureCase
from markov_theory.verify.proof_steps import inequality
from markov_theory.verify.tables import Bracket
from markov_theory.verify.tightness import roughly_last
from markov_theory.verify.two_outcomes import Window, binary_divergence, interval_window, last_possible, window_failure
from markov_theory.verify.verdict import HOLDS, VIOLATED

ALWAYS = 2.0  # no frequency exceeds it
LEAST_FREQUENCY = 1e-290
Check = Callable[[Settings], Finding]


class NearMaximumCase(Case):
    """Two rows mixed on two outcomes; failure: *some* mixture within a gap of the maximum is farther than ε in KL.

    Which fits those are depends on the frequency of the first outcome alone, so that failure is two binomial tails.

    Parameters
    ----------
    first : ndarray, shape (2,)
        Probability of the first outcome in each row.
    weight : float
        Of the second row in the truth.
    epsilon, delta : float
    gap : float
        Nats a sample by which the likelihood may stay below its maximum.

    Raises
    ------
    ValueError
        If ε is so large that the laws at that distance give an outcome next to no probability.
    """

    def __init__(self, first: Array, weight: float, epsilon: float, delta: float, gap: float) -> None:
        self.instance = Instance(Dictionary(np.column_stack([first, 1 - first])), np.array([1 - weight, weight]))
        self.given = {"epsilon": epsilon, "delta": delta, "sparsity": 2, "gap": gap}
        low, high = float(first.min()), float(first.max())
        truth = float(np.clip(self.instance.target[0], low, high))
        exact = interval_window(low, high, truth, epsilon)
        sides = _beyond(exact.first, high, gap), _beyond(exact.second, 1 - low, gap)
        self.window = Window(truth, *sides, ties_fail=False)
        self._at_once = float(exact.first >= 0 or exact.second >= 0)

    def failures(self, n_samples: IntArray) -> Bracket:
        """See `Case`."""
        N = np.asarray(n_samples)
        return Bracket.exact(np.where(N == 0, self._at_once, window_failure(self.window, np.maximum(N, 1))))

    def last_possible(self) -> float:
        """See `Case`."""
        return last_possible(self.window, self.delta)

    def describe(self) -> dict[str, Any]:
        """See `Case`."""
        return {"rows": self.instance.transitions.tolist(), "alpha": self.instance.alpha.tolist(), **self.given}


def certified_gap(settings: Settings, bound: type[Bound] = S2, label: str = "S2-gap") -> Finding:
    """At S2's N for a gap, *every* fit within that gap of the maximum is ε-close; the larger of N*_last over N."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        p, epsilon = probability(x[0]), geometric(x[3], 1e-3, 0.5)
        first = np.array([p, moved(p, x[1])])
        rows = np.column_stack([first, 1 - first])
        limit = epsilon / (2 * kappa(density_ratio(rows))) if x[5] < 0.5 else epsilon
        gap = limit * (1 - geometric(2 * x[5] % 1, 1e-3, 1.0))
        case = NearMaximumCase(first, probability(x[2]), epsilon, geometric(x[4], 1e-3, 0.6), gap)
        N = case.bound(bound)
        if not 0 < N < 1e9:
            raise ValueError("out of reach")
        last = roughly_last(case, min(case.last_possible(), 2 * N))
        return math.log(max(last, 0.5) / N), case.describe() | {"bound": N}

    starts = tuple((0.4, 0.9, 0.5, e, 0.5, g) for e in (0.2, 0.6) for g in (0.1, 0.4, 0.5, 0.7))
    return inequality(label, "N*_last/bound at a gap", 6, log_ratio, settings, starts)


def largest_divergence(settings: Settings, limit: Callable[[float], float] = largest_kl, label: str = "N=0") -> Finding:
    """No two laws of density ratio at most c, either way, are farther than L·tanh(L/2) apart in KL."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        if x[0] < 0.5:
            laws = np.array([[p, 1 - p] for p in (probability(x[1]), probability(x[2]))])
        else:
            laws = laws_from(x[1:7], 3)
        c = density_ratio(laws)
        if not 1.01 < c < math.inf:
            raise ValueError("c is 1 or infinite")
        return math.log(float(divergence_from(laws[0], laws[1])) / limit(c)), {"laws": laws.tolist(), "c": c}

    swapped = tuple((0.2, u, 1 - u, *(0.5,) * 4) for u in (0.2, 0.45))
    return inequality(label, "KL over L tanh(L/2)", 7, log_ratio, settings, swapped)


def inherited_ratio(settings: Settings, beyond: float = 0.0, label: str = "c-mixtures") -> Finding:
    """``|log q_α(j)/q_β(j)| ≤ log c`` for mixtures of rows; `beyond` lets the weights leave the simplex by a share."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        rows = laws_from(x[:9], 3)
        c, weights = density_ratio(rows), softmax(16 * x[9:15].reshape(2, 3) - 8, axis=1)
        weights = (1 + beyond) * weights - beyond * weights[::-1]
        laws = weights @ rows
        if not 1 + 1e-6 < c < math.inf or (laws <= 0).any():
            raise ValueError("c is 1 or infinite, or no laws")
        largest = float(np.abs(np.log(laws[0] / laws[1])).max())
        described = {"rows": rows.tolist(), "weights": weights.tolist()}
        return math.log(max(largest, 1e-300) / math.log(c)), described

    return inequality(label, "largest |log q/q'| over log c", 15, log_ratio, settings)


def ratio_by_norms(settings: Settings, factor: float = 2.0, label: str = "E-norms") -> Finding:
    """``log q_α(j)/q_α'(j) ≤ 2·D_W·B·σ_s``: D_W = max ‖w_j − w_k‖, σ_s the largest singular value of s rows of E."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        W, E, bias = 2 * x[:6].reshape(3, 2) - 1, 2 * x[6:10].reshape(2, 2) - 1, 16 * x[10:13] - 8
        s, radius, angles = 1 + int(2 * x[13] * 0.999), geometric(x[14], 0.1, 4.0), 2 * np.pi * x[15:17]
        alphas = radius * np.column_stack([np.cos(angles), np.sin(angles)])
        if s == 1:
            alphas = np.array([[radius, 0.0], [-radius, 0.0]])
        width = max(float(np.linalg.norm(W[j] - W[k])) for j in range(3) for k in range(j))
        longest = max(float(np.linalg.norm(E[list(S)], 2)) for S in itertools.combinations(range(2), s))
        if min(width, longest) < 1e-3:
            raise ValueError("all logits agree")
        logs = [logits - logsumexp(logits) for logits in alphas @ E @ W.T + bias]
        described = {"W": W.tolist(), "E": E.tolist(), "bias": bias.tolist(), "alphas": alphas.tolist()}
        return math.log(float(np.abs(logs[1] - logs[0]).max()) / (factor * width * radius * longest)), described

    opposed = (1.0, 0.5, 0.0, 0.5, 0.5, 0.5, 1.0, 0.5, 0.5, 0.5, 0.19, 0.81, 0.0, 0.0, 0.6, 0.0, 0.5)
    return inequality(label, "largest |log q/q'| over 2 D_W B sigma_s", 17, log_ratio, settings, (opposed,))


def exposure_from_below(
    settings: Settings,
    lower: Callable[[int, int, Array], float] = lambda n, N, pi: exposure_failure(n, N, pi)[0],
    label: str = "X1-lower",
) -> Finding:
    """``1 − Π_u(1 − p_u) ≤ P(some token u is seen fewer than N times)``, p_u = P(Bin(n, π_u) < N)."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        m, needed, total = 1 + int(4 * x[0] * 0.999), 1 + int(4 * x[1] * 0.999), geometric(x[2], 0.05, 1.0)
        rates = total * softmax(4 * x[3 : 3 + m] - 2)
        n = round(needed / float(rates.min()) * geometric(x[7], 0.3, 4.0))
        exact = float(ExposureCase(rates, needed, 0.5).failures(np.array([n])).low[0]) if n < 600 else 0.0
        if exact < 0.01:
            raise ValueError("out of reach")
        described = {"rates": rates.tolist(), "samples per token": needed, "n": n}
        return math.log(max(lower(n, needed, rates), 1e-300) / exact), described

    return inequality(label, "bound from below/P(fail)", 8, log_ratio, settings)


def price_of_new_mass(
    settings: Settings, price: Callable[[float], float] = lambda eta: -math.log1p(-eta), label: str = "V-to-U"
) -> Finding:
    """Old row v that gives mass η to new tokens moves by exactly −log(1−η) in KL, and no other such row by less."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        rows, eta = laws_from(x[:9], 3), geometric(x[9], 0.01, 0.9)
        into_new = np.outer([eta, 0.0, eta / 2], [0.3, 0.7])
        extended = MarkovChain(rows).extend(rows[:2], into_new=into_new)
        worst = -math.inf
        for v, mass in ((0, eta), (2, eta / 2)):
            paid = float(rel_entr(rows[v], extended.transitions[v, :3]).sum())
            otherwise = float(rel_entr(rows[v], (1 - mass) * rows[1]).sum())
            ratios = [paid / price(mass), price(mass) / paid, float(extended.forgetting[v]) / paid]
            worst = max(worst, *(math.log(r) for r in ratios), math.log(price(mass) / otherwise))
        return worst, {"rows": rows.tolist(), "mass into new tokens": into_new.tolist()}

    return inequality(label, "cost over -log(1-eta), either way", 10, log_ratio, settings)


def old_rows_alone(settings: Settings, bounded: bool = False) -> Finding:
    """Where old contexts alone have at most b successors, T tokens can be needed; or, falsely, K·b suffice.

    Rows are shifts of one law on b successors of T = K·b + 2 and affinely independent, so that weights are unique.
    """
    ratios, instance = [], {}
    for order, branching in ((1, 2), (1, 3), (2, 2)):
        T = order * branching + 2
        law = np.append([float(branching)], np.ones(branching - 1)) / (2 * branching - 1)
        contexts = list(itertools.product(range(T), repeat=order))
        rows = np.array([np.roll(np.append(law, np.zeros(T - branching)), context[-1]) for context in contexts])
        chain = HigherOrderChain(contexts, rows)
        holes = path_contexts((0,) * order, (0,) * (order - 1))
        points = np.array([chain.lifted_rows(holes, each).ravel() for each in np.eye(T)])
        needed = T if np.linalg.matrix_rank(points[1:] - points[0]) == T - 1 else 0
        ratios.append(needed / (order * branching if bounded else T))
        instance = {"K": order, "b": branching, "T": T, "needed": needed}
    value = max(ratios) if bounded else min(ratios)
    verdict = HOLDS if (value <= 1 if bounded else value >= 1) else VIOLATED
    number = "tokens needed over " + ("K b" if bounded else "T")
    return Finding(verdict, f"{len(ratios)} chains", number, value, value, value, 1.0, "<=" if bounded else ">=",
                   instance=instance)  # fmt: skip


def _beyond(edge: float, end: float, gap: float) -> float:
    """Frequency below which a law at or below `edge` is within `gap` of the best law up to `end`; −1 if there is none.

    Above `end` the best law is `end` itself, and the lead over `edge` is linear in the frequency.
    """
    if edge < 0:
        return -1.0
    if edge < LEAST_FREQUENCY:
        raise ValueError("the law at distance epsilon gives an outcome next to no probability")
    if float(binary_divergence(end, np.array(edge))) >= gap:
        return brentq(lambda f: float(binary_divergence(f, np.array(edge))) - gap, edge, end, xtol=1e-300, rtol=1e-14)
    if end >= 1:
        return ALWAYS
    up, down = math.log(end / edge), math.log1p(-end) - math.log1p(-edge)
    frequency = (gap - down) / (up - down)
    return frequency if frequency <= 1 else ALWAYS


class _WithoutGap(S2):
    label = "S2 without the gap"

    @staticmethod
    def n_samples(
        n_tokens: int, sparsity: int, density_ratio: float, epsilon: float, delta: float, gap: float = 0.0
    ) -> float:
        return S2.n_samples(n_tokens, sparsity, density_ratio, epsilon, delta)


class _GapForOne(S2):
    label = "S2 with eps - gap"

    @staticmethod
    def n_samples(
        n_tokens: int, sparsity: int, density_ratio: float, epsilon: float, delta: float, gap: float = 0.0
    ) -> float:
        return math.ceil(S2.n_samples(n_tokens, sparsity, density_ratio, epsilon, delta) * epsilon / (epsilon - gap))


def _quarter_of_pairs(n: int, N: int, rates: Array) -> float:
    total = float(np.sum(binom.cdf(N - 1, n, rates)))
    return total - total**2 / 4


CLAIMS = (
    Claim("S2-gap", "S2 with 4 kappa/(eps - 2 kappa gap): every fit within gap nats a sample of the maximum has "
          "KL <= eps with probability >= 1-delta", "derived", certified_gap),
    Claim("N=0", "KL(p||q) <= L tanh(L/2) if |log p/q| <= L: no sample is needed from eps = L tanh(L/2) on",
          "derived", largest_divergence),
    Claim("c-mixtures", "mixtures inherit the density ratio: |log q_alpha/q_beta| <= log c", "derived",
          inherited_ratio),
    Claim("E-norms", "log c <= 2 D_W B sigma_s within the s-sparse ball", "derived", ratio_by_norms),
    Claim("X1-lower", "1 - prod(1 - p_u) <= P(some token is seen fewer than N_u times), p_u = P(Bin(n, pi_u) < N_u)",
          "derived", exposure_from_below),
    Claim("V-to-U", "mass eta from an old row to new tokens costs exactly -log(1-eta) nats, the least there is",
          "derived", price_of_new_mass),
    Claim("K1-old-rows", "if only old contexts have at most b successors, all T old tokens can be needed", "derived",
          old_rows_alone),
)  # fmt: skip
FALSE: tuple[tuple[str, str, Check], ...] = (
    ("S2-gap", "S2 without the gap", lambda s: certified_gap(s, _WithoutGap)),
    ("S2-gap", "S2 with eps - gap", lambda s: certified_gap(s, _GapForOne)),
    ("N=0", "L tanh(L/4)", lambda s: largest_divergence(s, lambda c: math.log(c) * math.tanh(math.log(c) / 4))),
    ("N=0", "L tanh(L/2) - 1 %", lambda s: largest_divergence(s, lambda c: 0.99 * largest_kl(c))),
    ("c-mixtures", "affine combinations inherit c", lambda s: inherited_ratio(s, 0.05)),
    ("E-norms", "log c = D_W B sigma_s", lambda s: ratio_by_norms(s, 1.0)),
    ("X1-lower", "sum p_u from below", lambda s: exposure_from_below(s, lambda *given: exposure_failure(*given)[1])),
    ("X1-lower", "sum p_u - (sum p_u)^2/4", lambda s: exposure_from_below(s, _quarter_of_pairs)),
    ("V-to-U", "eta nats", lambda s: price_of_new_mass(s, lambda eta: eta)),
    ("V-to-U", "eta/(1-eta) nats", lambda s: price_of_new_mass(s, lambda eta: eta / (1 - eta))),
    ("K1-old-rows", "s <= K b if old rows are b-branching", lambda s: old_rows_alone(s, bounded=True)),
)  # fmt: skip
