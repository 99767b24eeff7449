"""Planted false statements: each must come out ``violated``, by the search that clears the true ones.

Most are bounds with another constant, exponent or logarithm; the others are statements with a false constant. None
carries an instance: the search has to find one. `false_bounds` has those that are more than a factor.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from markov_theory._checks import Array
from markov_theory.bounds import BOUNDS
from markov_theory.bounds.base import Bound
from markov_theory.bounds.sparse import log_binomial
from markov_theory.chain import MarkovChain
from markov_theory.divergences import kappa
from markov_theory.verify import further_steps, predictions, proof_steps, statements
from markov_theory.verify.claims import Finding, Settings, check_bound
from markov_theory.verify.false_bounds import FALSE_BOUNDS
from markov_theory.verify.search import search
from markov_theory.verify.tightness import Trial

Check = Callable[[Settings], Finding]
FINER = 1.02  # a surviving and a killed factor this near to each other end the bisection
FARTHEST = 1e4


@dataclass(frozen=True)
class Mutant:
    """A false statement: its name, the label of the true one, and the check that must find it ``violated``."""

    name: str
    of: str
    check: Check


def altered(bound: type[Bound], label: str, change: Callable[..., float]) -> type[Bound]:
    """A bound with another number: N' = change(N, **inputs), rounded up if it is an upper bound.

    Parameters
    ----------
    bound : type of Bound
    label : str
        Of the altered one.
    change : callable
        N and the bound's inputs by name, to a number of samples.
    """

    @functools.wraps(bound.n_samples)
    def n_samples(*args: Any, **inputs: Any) -> float:
        named = dict(zip(bound.inputs(), args, strict=False)) | inputs
        value = change(bound.n_samples(**named), **named)
        return float(math.ceil(value)) if bound.kind == "upper" and math.isfinite(value) else value

    return type(bound.__name__ + "Altered", (bound,), {"label": label, "n_samples": staticmethod(n_samples)})


def scaled(bound: type[Bound], factor: float) -> type[Bound]:
    """A bound times a factor, as a bound.

    Examples
    --------
    >>> scaled(BOUNDS["O2"], 0.5).n_samples(n_tokens=2, density_ratio=1.2, margin=0.02, delta=0.05)
    309.0
    """
    return altered(bound, f"{bound.label} x {factor:.4g}", lambda N, **_: N * factor)


def nearest_surviving(bound: type[Bound], settings: Settings, tightest: Trial) -> tuple[float, float]:
    """How much of a bound the search does not miss: the largest factor found to survive, the least found to be killed.

    An upper bound is divided by it, a lower one multiplied; by bisection, each step with a search of its own.

    Parameters
    ----------
    bound : type of Bound
    settings : Settings
    tightest : Trial
        Of the bound itself, where to begin; a counterexample if there is one.

    Returns
    -------
    survives, killed : float
        Above 1 where the bound itself survives; at most 1 where it is refuted, and then a weaker bound survives: 0 if
        none does that is up to 1e4 times as weak.
    """
    cases = [tightest.case]

    def refuted(factor: float) -> bool:
        false = scaled(bound, 1 / factor if bound.kind == "upper" else factor)
        found = search(false, settings.effort, settings.seed, cases)
        if found.tightest is not None and found.refuted and found.tightest.case not in cases:
            cases.append(found.tightest.case)
        return found.refuted

    if tightest.refuted_at is not None:
        low, high = _surviving_below(refuted)
    else:
        low, high = 1.0, max(1.1, math.exp(-tightest.score) * 1.05) if math.isfinite(tightest.score) else 2.0
        while not refuted(high):
            low, high = high, 1.5 * high
            if high > FARTHEST:
                return low, math.inf
    while low > 0 and high / low > FINER:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refuted(middle) else (middle, high)
    return low, high


def _surviving_below(refuted: Callable[[float], bool]) -> tuple[float, float]:
    """A factor below 1 that survives, 0 if none down to 1e-4 does, and one not far above it that is killed."""
    low, high = 0.8, 1.0
    while refuted(low):
        low, high = low * low, low
        if high <= 1 / FARTHEST:
            return 0.0, high
    return low, high


def mutants() -> list[Mutant]:
    """All planted false statements about what is registered."""
    bounds = [(of, _scaled_name(of, factor), scaled(BOUNDS[of], factor)) for of, factor in FACTORS if of in BOUNDS]
    bounds += [(of, name, altered(BOUNDS[of], name, change)) for of, name, change in CHANGES if of in BOUNDS]
    bounds += [(of, false.label, false) for of, false in FALSE_BOUNDS if of in BOUNDS]
    made = [Mutant(name, of, functools.partial(_check, false)) for of, name, false in bounds]
    return made + [Mutant(name, of, check) for of, name, check in (*FALSE_STATEMENTS, *further_steps.FALSE)]


def _check(bound: type[Bound], settings: Settings) -> Finding:
    return predictions.check_prediction(bound, settings) if bound.kind == "prediction" else check_bound(bound, settings)


def _scaled_name(of: str, factor: float) -> str:
    return f"{of} / {1 / factor:.4g}" if factor < 1 else f"{of} x {factor:.4g}"


def _with_fewer_rows(N: float, **inputs: Any) -> float:
    """O2 without log(T−1)."""
    return N * math.log(1 / inputs["delta"]) / math.log((inputs["n_tokens"] - 1) / inputs["delta"])


def _without_supports(N: float, **inputs: Any) -> float:
    """S2 without log C(T,s)."""
    T, s = inputs["n_tokens"], min(inputs["sparsity"], inputs["n_tokens"])
    constant, epsilon = kappa(inputs["density_ratio"]), inputs["epsilon"]
    k = float(np.ceil(16 * constant * (s - 1) / epsilon)) if math.isfinite(constant) else math.inf
    net = log_binomial(k + 2 * s - 2, s - 1) + math.log(1 / inputs["delta"])
    return N * net / (net + log_binomial(T, s))


def _forgetful(chain: MarkovChain, new_rows: Array) -> Array:
    """An extension that renormalises, and so moves old probabilities by a rounding error."""
    T, m = chain.n_states, new_rows.shape[0]
    extended = np.zeros((T + m, T + m))
    extended[:T, :T], extended[T:, :T] = chain.transitions * (1 - 2.0**-52), new_rows
    return extended


FACTORS = (
    *[("O1", 1 / 2), ("O2", 1 / 2), ("O2+", 1 / 2), ("O3", 1 / 2), ("O3+", 1 / 3), ("O4", 1.5), ("O5", 1.5)],
    *[("S1", 1 / 100), ("S2", 1 / 100), ("S2H", 1 / 9), ("S4", 2.0), ("S6", 1 / 6), ("E1", 1 / 100), ("E2", 1 / 100)],
    *[("E4", 1 / 2), ("S6'", 1 / 2.5), ("S6^1", 1 / 2), ("L1", 2.0), ("L2", 10.0), ("M1", 1 / 100), ("M2", 1 / 100)],
    *[("S5", 1 / 200), ("S5+", 1 / 10), ("S5'", 1 / 10), ("S5L", 4.0), ("S6u", 1 / 3), ("X1", 1 / 1.3)],
)
CHANGES: tuple[tuple[str, str, Callable[..., float]], ...] = (
    ("O2", "O2 without log(T-1)", _with_fewer_rows),
    ("O2", "O2 with log c, x 0.3", lambda N, **x: 0.3 * N * math.log(x["density_ratio"]) / kappa(x["density_ratio"])),
    ("S1", "S1 with 1/eps", lambda N, **x: N * x["epsilon"]),
    ("S2", "S2 with 1/sqrt(eps)", lambda N, **x: N * math.sqrt(x["epsilon"])),
    ("S2", "S2 x eps^(1/4)", lambda N, **x: N * x["epsilon"] ** 0.25),
    ("S2", "S2 without log C(T,s)", _without_supports),
    ("S6", "S6 x log(1/delta)^-0.4", lambda N, **x: N * math.log(1 / x["delta"]) ** -0.4),
    ("S6'", "S6' with log(1/delta)^(2/3)", lambda N, **x: N * max(math.log(1 / x["delta"]), 1.0) ** (-1 / 3)),
    ("O3", "O3 with log(1/delta)^0.9", lambda N, **x: N * max(math.log(1 / x["delta"]), 1.0) ** -0.1),
    ("E1", "E1 with 1/eps", lambda N, **x: N * x["epsilon"]),
    ("E2", "E2 with 1/sqrt(eps)", lambda N, **x: N * math.sqrt(x["epsilon"])),
    ("S3", "S3 with df = s", lambda N, **x: chi2.isf(x["delta"], len(x["support_rows"])) / (2 * x["epsilon"])),
    ("E3", "E3 with df + 1", lambda N, **x: chi2.isf(x["delta"], x["degrees_of_freedom"] + 1) / (2 * x["epsilon"])),
    ("E3", "E3 without the sphere", lambda N, **x: chi2.isf(x["delta"], x["degrees_of_freedom"]) / (2 * x["epsilon"])),
    ("X1", "X1 for uniform rates", lambda N, **x: BOUNDS["X1"].n_samples(**(x | {"rates": _evened(x["rates"])}))),
)
FALSE_STATEMENTS: tuple[tuple[str, str, Check], ...] = (
    ("kappa", "kappa = 2", lambda s: statements.lemma_kappa(s, constant=lambda c: 2.0)),
    ("kappa", "KL >= 2 H^2", lambda s: statements.lemma_kappa(s, least=2.0)),
    ("kappa", "kappa - 1 %", lambda s: statements.lemma_kappa(s, constant=lambda c: 0.99 * kappa(c))),
    ("S1-net", "k = ceil(s/(4 eta))",
     lambda s: proof_steps.net_rounding(s, lambda n, eta: max(1, math.ceil(n / (4 * eta))))),
    ("S2-net", "K = k + s/2", lambda s: proof_steps.net_rounding_up(s, lambda k, n: k + n / 2)),
    ("S1-move", "move eta log(c)/2", lambda s: proof_steps.weight_move(s, lambda eta, c: eta * math.log(c) / 2)),
    ("S1-move", "move eta (c-1)/4", lambda s: proof_steps.weight_move(s, lambda eta, c: eta * (c - 1) / 4)),
    ("E-move", "move G_s eta/2", lambda s: proof_steps.embedding_move(s, 0.5)),
    ("E-ratio", "log c <= G_s B", lambda s: proof_steps.embedding_ratio(s, 1.0)),
    ("S5'-term", "no factor of Cover's", lambda s: proof_steps.wrong_support(s, lambda N: 1.0)),
    ("K1", "s <= b at any K", lambda s: statements.higher_order(s, lambda K, b: b)),
    ("K1", "s <= K b for a whole entry", lambda s: statements.higher_order(s, lambda K, b: K * b, whole_entry=True)),
    ("order", "O2 <= O1", lambda s: statements.order_of_bounds(s, upper_first=True, label="O2 <= O1")),
    ("not-monotone", "failure is monotone", statements.failure_is_monotone),
    ("O4", "O4 for each truth apart", statements.one_truth_apart),
    ("forgetting", "extension that renormalises", lambda s: statements.zero_forgetting(s, _forgetful)),
    ("limits", "chi^2_1 everywhere", lambda s: predictions.limit_laws(s, lambda P, a, n, delta: chi2.isf(delta, 1))),
    ("limits", "chi^2_2 everywhere", lambda s: predictions.limit_laws(s, lambda P, a, n, delta: chi2.isf(delta, 2))),
    ("chernoff", "no lambda in the prefactor", lambda s: predictions.chernoff_prefactor(s, lambda t, sigma: 1 / sigma)),
    ("logT", "packed rows: N* gamma is free of T", lambda s: predictions.packed_growth(s, free=True)),
)  # fmt: skip


def _evened(rates: Array) -> Array:
    return np.full(len(rates), np.mean(rates))
