"""One-to-one mapping with the prefactor of order 1/√N that a Chernoff bound leaves out.

The estimator and its failure are those of `markov_theory.bounds.one_to_one`. Only the pairs of rows that matter
at the answer are refined; the answer is the one that refining all of them would give.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from markov_theory import _checks
from markov_theory._checks import Array
from markov_theory.bounds.base import Bound, least_integer
from markov_theory.bounds.exponents import (
    best_on_grid,
    best_tilt,
    exponent_at,
    middle_exponent,
    middle_exponents,
    pairs_of_rows,
)

BERRY_ESSEEN = 2 * 0.4748  # two sides of Shevtsova's constant (2011)
_ROUNDING = 1 + 1e-9
_DEPTH = 2.0  # pairs are refined whose terms may be above δ·e^{−depth}/T
_CHUNK = 1 << 16  # entries of a (pairs, J) block that stays in cache


class O3Plus(Bound):
    """Chernoff with its prefactor: the least N with ``Σ_{v≠v*} e^{−N·C}·min(1, a/√N) ≤ δ`` for every truth v*.

    ``a = 1/(λσ√(2π)) + 0.9496·ρ₃/σ³``, where λ in (0, 1) is the exponent that attains C(p_v*, p_v) = −log
    Σ p_v*^{1−λ}p_v^λ (nats), and σ² and ρ₃ are the second and third absolute central moments of log(p_v/p_v*)
    under the tilted law ∝ p_v*^{1−λ}p_v^λ. Where λ is 0 or 1, or σ = 0, the prefactor is 1. N in samples; never
    above `O3`. Derived here.

    Loose by the Berry-Esseen term, which is at least 0.9496: the first term alone is right asymptotically where
    log-likelihood ratios have no lattice. And by the union over wrong rows.

    Examples
    --------
    >>> O3Plus.n_samples(transitions=[[.55, .45], [.45, .55]], delta=0.01)
    598.0
    """

    label = "O3+"
    kind = "upper"
    origin = "derived"
    speaks_of = ("one-to-one",)
    event = "row"
    statement = (
        "least N with sum over v != v* of exp(-N C) min(1, [1/(lambda sigma sqrt(2 pi)) + 0.9496 rho_3/sigma^3]/"
        "sqrt(N)) <= delta for every v*: P(v_hat != v*) <= delta"
    )
    reason = (
        "With S the log-likelihood ratio, P(S >= 0) = e^(-NC) E[e^(-lambda S); S >= 0] under the tilted law, and "
        "E[e^(-lambda S); S >= 0] = int_0^inf lambda e^(-lambda x) P(0 <= S <= x) dx, where P(0 <= S <= x) <= "
        "x/(sigma sqrt(2 pi N)) + 2 * 0.4748 rho_3/(sigma^3 sqrt(N)) (Berry-Esseen): true of every lambda in (0, 1), "
        "so an inexact minimiser costs sharpness alone."
    )
    decreasing = ("delta",)

    @staticmethod
    def n_samples(transitions: ArrayLike, delta: float) -> float:
        """Return N; 0 for a single row, ``inf`` for duplicate rows."""
        rows = _checks.as_transitions(transitions)
        delta = _checks.open_unit(delta, "delta")
        return 0.0 if rows.shape[0] == 1 else _Refinement(rows, delta).n_samples()


class PairTerms(NamedTuple):
    """What bounds the failure of a pair (p, q) under p and under q.

    Attributes
    ----------
    information : ndarray, shape (n,)
        C, the best exponent known (nats).
    tilted : ndarray, shape (n,)
        The exponent at the λ to which the prefactors belong; at most C.
    under_first, under_second : ndarray, shape (n,)
        log a for truth p, with λ, and for truth q, with 1−λ; ∞ where there is no prefactor.
    """

    information: Array
    tilted: Array
    under_first: Array
    under_second: Array


def pair_terms(p: Array, q: Array, start: Array) -> PairTerms:
    """Exponents and prefactors of pairs of laws, shapes (n, J); `start` (n,) are the best λ of a grid."""
    common = (p > 0) & (q > 0)
    log_p = np.log(p, out=np.zeros_like(p), where=common)
    rough = np.log(q, out=np.zeros_like(q), where=common) - log_p
    tilt = best_tilt(log_p, rough, common, start)
    tilted, halfway = exponent_at(p, q, tilt), middle_exponent(p, q)
    information = np.maximum(np.maximum(tilted, exponent_at(p, q, start)), halfway)
    tilt = np.where(tilted >= halfway, tilt, 0.5)
    relative = np.divide(q - p, p, out=np.zeros_like(p), where=common)
    close = np.abs(relative) < 0.5
    ratio = np.log1p(relative, out=rough, where=close)  # log(q/p) to its last digits
    weight = np.exp(log_p + tilt[:, None] * ratio) * common
    weight /= np.maximum(weight.sum(axis=1), np.finfo(float).tiny)[:, None]
    centred = ratio - (weight * ratio).sum(axis=1)[:, None]
    sigma = np.sqrt((weight * centred**2).sum(axis=1))
    third = (weight * np.abs(centred) ** 3).sum(axis=1)
    skew = np.divide(third, sigma**3, out=np.full_like(sigma, np.inf), where=sigma**3 > 0)
    with np.errstate(divide="ignore"):
        gaussian = 1 / (math.sqrt(2 * math.pi) * np.array([tilt * sigma, (1 - tilt) * sigma]))
        prefactor = np.log((gaussian + BERRY_ESSEEN * np.maximum(skew, 1.0)) * _ROUNDING)  # ρ₃ ≥ σ³
    information = np.where(common.any(axis=1), information, np.inf)
    return PairTerms(information, np.maximum(tilted, halfway), prefactor[0], prefactor[1])


class _Refinement:
    """The least N, from exponents at λ = ½ for all pairs and `pair_terms` for those that matter."""

    def __init__(self, rows: Array, delta: float) -> None:
        self.rows, self.delta = rows, delta
        self.first, self.second = pairs_of_rows(rows.shape[0])
        self.rough = middle_exponents(rows) * (1 - 1e-12)
        self.start = best_on_grid(rows)[self.first, self.second]
        self.done = np.zeros(self.first.size, dtype=bool)
        self.terms = PairTerms(self.rough.copy(), self.rough.copy(), *np.full((2, self.first.size), np.inf))

    def n_samples(self) -> float:
        level, depth = math.log(self.rows.shape[0] / self.delta), _DEPTH
        n_samples = max(1.0, level / max(float(self.rough.min()), 1e-300))
        while True:
            matters = np.minimum(n_samples, 1e300) * self.rough <= level + depth
            self._refine(np.flatnonzero(matters & ~self.done))
            if self.terms.information[self.done].min(initial=math.inf) == 0:
                return math.inf
            n_samples = self._least(np.where(self.done, 0.0, math.inf))
            if self.done.all() or n_samples == self._least(np.zeros(self.done.size)):
                return n_samples
            depth *= 2

    def _refine(self, chosen: NDArray[np.int64]) -> None:
        step = max(1, _CHUNK // self.rows.shape[1])
        for low in range(0, chosen.size, step):
            cut = chosen[low : low + step]
            found = pair_terms(self.rows[self.first[cut]], self.rows[self.second[cut]], self.start[cut])
            for all_pairs, some in zip(self.terms, found, strict=True):
                all_pairs[cut] = some
        self.done[chosen] = True

    def _least(self, extra: Array) -> float:
        """Least N with `extra` added to the exponents: ∞ leaves a pair out."""
        T, log_delta = self.rows.shape[0], math.log(self.delta)
        information, tilted = self.terms.information + extra, self.terms.tilted + extra
        log_terms = np.full((T, T), -np.inf)

        def suffices(n_samples: int) -> bool:
            N = float(n_samples)
            for at, prefactor in (
                ((self.first, self.second), self.terms.under_first),
                ((self.second, self.first), self.terms.under_second),
            ):
                log_terms[at] = np.minimum(-N * information, np.minimum(0, prefactor - math.log(N) / 2) - N * tilted)
            return bool(logsumexp(log_terms, axis=1).max() <= log_delta)

        slowest = float(information.min())
        return least_integer(suffices, low=1, guess=math.log(T / self.delta) / slowest if slowest < math.inf else 1.0)
