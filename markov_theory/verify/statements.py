"""Claims that give no number of samples: constants of inequalities, steps of proofs, and orders between numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from markov_theory._checks import Array, IntArray
from markov_theory.bounds import K1, O1, O2, O3, O4, O5
from markov_theory.bounds.higher_order import tight_entry
from markov_theory.chain import MarkovChain
from markov_theory.divergences import kappa
from markov_theory.higher_order import HigherOrderChain, path_contexts
from markov_theory.higher_order_families import plant_entry
from markov_theory.randomness import named_generator
from markov_theory.verify import further_steps, proof_steps
from markov_theory.verify.builders import laws_from, moved, probability
from markov_theory.verify.cases import RowsCase
from markov_theory.verify.claims import Claim, Finding, Settings
from markov_theory.verify.exact import divergence_from
from markov_theory.verify.families import families
from markov_theory.verify.proof_steps import inequality
from markov_theory.verify.tightness import exactly_first, exactly_last
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, VIOLATED


def lemma_kappa(
    settings: Settings, constant: Callable[[float], float] = kappa, least: float = 1.0, label: str = "kappa"
) -> Finding:
    """``least·H² ≤ KL(p‖q) ≤ κ(c)·H²`` with c = max p/q; the larger of the two ratios."""

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        if x[0] < 0.5:
            p = probability(x[1])
            laws = np.array([[p, 1 - p], [moved(p, x[2]), 1 - moved(p, x[2])]])
        else:
            laws = laws_from(x[1:7], 3)
        live = laws[0] > 0
        if (laws[1][live] == 0).any():
            raise ValueError("c is infinite")
        ratio = float((laws[0][live] / laws[1][live]).max())
        kl, h2 = float(divergence_from(laws[0], laws[1])), float(divergence_from(laws[0], laws[1], "hellinger"))
        if h2 < 1e-6:
            raise ValueError("the laws agree within rounding")
        return math.log(max(kl / (constant(ratio) * h2), least * h2 / kl)), {
            "p": laws[0].tolist(),
            "q": laws[1].tolist(),
        }

    return inequality(label, "max of KL/(kappa(c) H^2) and H^2/KL", 7, log_ratio, settings)


def order_of_bounds(settings: Settings, upper_first: bool = False, label: str = "order") -> Finding:
    """Lower bounds ≤ N*_first ≤ N*_last ≤ upper bounds, and O3 ≤ min(O1, O2); or, falsely, O2 ≤ O1."""
    name = "mirrored rows, two outcomes" if upper_first else "several rows, two outcomes"
    family = next(f for f in families() if f.name == name and f.event == "row")

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        case = family.build(x, settings.effort.tables)
        uppers = {bound.label: case.bound(bound) for bound in (O1, O2, O3)}
        if case.instance.margin < 1e-7 or not 0 < uppers["O3"] < 1e5:
            raise ValueError("out of reach")
        if upper_first:
            return math.log(uppers["O2"] / uppers["O1"]) if math.isfinite(uppers["O1"]) else -math.inf, case.describe()
        first, last = exactly_first(case), exactly_last(case)
        lower = max(case.bound(O4), case.bound(O5), 1.0)
        least = min(uppers.values())
        pairs = [(lower, first), (first, last), (last, least), (uppers["O3"], min(uppers["O1"], uppers["O2"]))]
        return max(math.log(max(a, 1.0) / max(b, 1.0)) for a, b in pairs), case.describe() | uppers

    return inequality(label, "largest ratio that should be at most 1", family.dimension, log_ratio, settings)


def failure_is_monotone(settings: Settings, label: str = "monotone") -> Finding:
    """Once failure is at most δ it stays so: N*_last ≤ N*_first (false, and `not_monotone` claims that)."""
    family = next(f for f in families() if f.name == "two rows, two outcomes" and f.event == "row")

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        case = family.build(x, settings.effort.tables)
        if not case.last_possible() < 2e4:
            raise ValueError("out of reach")
        first, last = exactly_first(case), exactly_last(case)
        return math.log(max(last, 1.0) / max(first, 1.0)), case.describe() | {"first": first, "last": last}

    return inequality(label, "N*_last/N*_first", family.dimension, log_ratio, settings)


def not_monotone(settings: Settings) -> Finding:
    """There are rows whose failure probability falls to δ and rises above it again."""
    found = failure_is_monotone(settings, "not-monotone")
    return Finding(
        HOLDS if found.verdict == VIOLATED else INCONCLUSIVE, found.tested, found.number + " somewhere",
        found.value, found.low, found.high, 1.0, ">", instance=found.instance,
    )  # fmt: skip


def one_truth_apart(settings: Settings, label: str = "O4-each-truth") -> Finding:
    """Falsely: *each* truth needs (1−2δ)log((1−δ)/δ)/KL(p_v‖nearest) samples; the larger of bound over its N*_first."""
    family = next(f for f in families() if f.name == "two rows, two outcomes" and f.event == "row")

    def log_ratio(x: Array) -> tuple[float, dict[str, Any]]:
        case = family.build(x, settings.effort.tables)
        assert isinstance(case, RowsCase)
        delta, rows = case.delta, case.rows
        worst = -math.inf
        for truth in (0, 1):
            divergence = float(divergence_from(rows[1 - truth], rows[truth]))
            bound = (1 - 2 * delta) * math.log((1 - delta) / delta) / divergence if divergence > 0 else math.inf
            if not 1 < bound < 5000 or delta >= 0.5:
                continue
            N = np.arange(math.ceil(bound) + 1)
            good = np.flatnonzero(case.by_truth(N)[:, truth] <= case.admissible())
            if good.size:
                worst = max(worst, math.log(bound / max(float(N[good[0]]), 1.0)))
        return worst, case.describe()

    return inequality(label, "bound/N*_first of one truth", family.dimension, log_ratio, settings)


def zero_forgetting(settings: Settings, extend: Callable[[MarkovChain, Array], Array] | None = None) -> Finding:
    """An extended chain has the old rows bit for bit, no way into a new state, and gives the old chain back."""
    generator = named_generator(settings.seed, "zero forgetting")
    n_chains, wrong = max(50, settings.effort.trials), 0
    worst: dict[str, Any] = {}
    for _ in range(n_chains):
        T, m = int(generator.integers(1, 9)), int(generator.integers(1, 5))
        rows = generator.dirichlet(np.full(T, 0.3), size=T + m) + 1e-300
        P, Q = (rows / rows.sum(axis=1, keepdims=True))[:T], generator.dirichlet(np.full(T, 0.3), size=m)
        if generator.random() < 0.3:
            P = P.astype(np.float32).astype(np.float64)
        chain = MarkovChain(P)
        extended = chain.extend(Q).transitions if extend is None else extend(chain, Q)
        kept = extended[:T, :T].tobytes() == chain.transitions.tobytes()
        if not kept or extended[:, T:].any() or not np.allclose(extended[T:, :T], Q, rtol=1e-12, atol=0):
            wrong, worst = wrong + 1, {"rows": P.tolist(), "new rows": Q.tolist()}
    verdict = VIOLATED if wrong else HOLDS
    share = wrong / n_chains
    return Finding(verdict, f"{n_chains} chains, bit for bit", "share of chains that forget", share, share, share, 0.0,
                   instance=worst)  # fmt: skip


def higher_order(
    settings: Settings, most: Callable[[int, int], int] = K1.sparsity, whole_entry: bool = False, label: str = "K1"
) -> Finding:
    """Tokens needed for the K rows of a new token's path, or all rows of its entry, over the number that suffices.

    Needed are all tokens of a mixture whose stacked rows are affinely independent; and as many as Carathéodory's
    reduction leaves of a random mixture.
    """
    n_found, worst, instance = 0, 0.0, {}
    for order, branching in ((1, 2), (1, 4), (2, 2), (2, 3), (3, 2)):
        tight, alpha = tight_entry(order, branching, whole_entry)
        holes = tight.chain.entry(tight.context, alpha) if whole_entry else path_contexts(tight.context, tight.path)
        n_random = int((alpha > 0).sum()) + 4
        planted = plant_entry(order, branching, n_random, seed=settings.seed)
        uniform = np.zeros(planted.chain.n_tokens)
        uniform[planted.tokens] = 1 / n_random
        reduced = len(planted.chain.sparsify(path_contexts(planted.context, planted.path), uniform).support)
        needed = _indispensable(tight.chain, holes, alpha)
        n_found += 2
        ratio = max(needed, 0 if whole_entry else reduced) / most(order, branching)
        if ratio > worst:
            worst, instance = ratio, {"K": order, "b": branching, "needed": needed, "reduced": reduced}
    verdict = VIOLATED if worst > 1 else HOLDS
    return Finding(verdict, f"{n_found} entries", "tokens needed over what suffices", worst, worst, worst, 1.0,
                   slack=1 / max(worst, 1e-300), instance=instance)  # fmt: skip


def _indispensable(chain: HigherOrderChain, holes: IntArray, alpha: Array) -> int:
    """Tokens in every mixture with the rows of `alpha`, if those that can be used are affinely independent; else 0."""
    tokens = chain.candidates(holes)
    each = np.eye(chain.n_tokens)
    points = np.unique([chain.lifted_rows(holes, each[v]).ravel() for v in tokens], axis=0)  # equal rows: any will do
    target = chain.lifted_rows(holes, alpha).ravel()
    usable = points[~(points[:, target == 0] > 0).any(axis=1)]
    if np.linalg.matrix_rank(usable[1:] - usable[0]) < len(usable) - 1:
        return 0
    weights = np.linalg.lstsq(np.vstack([usable.T, np.ones(len(usable))]), np.append(target, 1.0), rcond=None)[0]
    return int((weights > 1e-9).sum())


def _claim(label: str, statement: str, check: Callable[[Settings], Finding], origin: str = "derived") -> Claim:
    return Claim(label, statement, origin, check)


CLAIMS = (
    _claim("kappa", "H^2 <= KL(p||q) <= kappa(c) H^2 whenever p/q <= c", lemma_kappa),
    _claim(
        "S1-net",
        "rounding to multiples of 1/k by largest remainders moves weights by at most eta",
        proof_steps.net_rounding,
    ),
    _claim(
        "S2-net",
        "rounding k alpha up and padding to K = k+s-1 keeps q_alpha/q_alpha' <= K/k",
        proof_steps.net_rounding_up,
    ),
    _claim(
        "S1-move", "a move of weights by eta moves log-probabilities by at most eta (c-1)/2", proof_steps.weight_move
    ),
    _claim(
        "E-move",
        "a move of s-sparse weights by eta moves log-probabilities by at most G_s eta",
        proof_steps.embedding_move,
    ),
    _claim("E-ratio", "log c <= 2 G_s B within the s-sparse ball", proof_steps.embedding_ratio),
    _claim(
        "S5'-term",
        "P(a mixture of two other rows is as likely as q) <= min (N+1)^lambda A_lambda^N",
        proof_steps.wrong_support,
    ),
    _claim("K1", K1.statement, higher_order, K1.origin),
    _claim("order", "lower bounds <= N*_first <= N*_last <= upper bounds; O3 <= min(O1, O2)", order_of_bounds),
    _claim("not-monotone", "failure probability is not monotone in N", not_monotone),
    _claim("forgetting", "extension by new states keeps the old transitions bit for bit", zero_forgetting, "paper"),
    *further_steps.CLAIMS,
)
