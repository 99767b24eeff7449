"""Maximum likelihood over s-sparse mixtures, exactly: a union of convex pieces, one a support, at every table.

A table fails if *some* maximiser over the whole union is farther than ε from the truth: pieces that tie count, and so
do maximisers that are not unique because the rows agree on everything that was seen.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from markov_theory import _checks
from markov_theory._checks import Array, IntArray
from markov_theory._compile import COMPILED
from markov_theory.solvers._newton import solve_batch
from markov_theory.verify._union import fit_hulls
from markov_theory.verify.exact import divergence_from, segment_fails
from markov_theory.verify.hulls import GAP, hull_fit, mean_log, value_range
from markov_theory.verify.tables import MAX_TABLES, Bracket, Tables, likely_tables, log_likelihoods
from markov_theory.verify.two_outcomes import Divergence, interval_failures

TIE = 1e-11  # nats a sample: log-likelihoods this near are ties
BLOCK = 1 << 15
NEGLIGIBLE = 1e-15


class Maxima(NamedTuple):
    """Of one piece, at every table: log-likelihood a sample, divergence of its worst maximiser, error of that."""

    value: Array
    divergence: Array
    error: Array


def mixture_failure(
    transitions: ArrayLike,
    alpha: ArrayLike,
    sparsity: int,
    n_samples: int,
    epsilon: float,
    divergence: Divergence = "kl",
    most: int = MAX_TABLES,
) -> Bracket:
    """Probability that maximum likelihood over mixtures of at most s rows is farther than ε from the truth.

    Parameters
    ----------
    transitions : array_like, shape (T, J)
    alpha : array_like, shape (T,)
        The truth is q = Σ_v α_v p_v; it need not be s-sparse itself, as long as q has an s-sparse representation.
    sparsity : int
        s; T for the whole hull.
    n_samples : int
        N.
    epsilon : float
        ε, nats for KL.
    divergence : {"kl", "hellinger"}
        What must be at most ε: KL(q‖q̂) or H²(q, q̂).
    most : int
        Tables to list at most; ValueError if it takes more.

    Returns
    -------
    Bracket
        Exact but for the tables left out, and those whose divergence cannot be told from ε.

    Examples
    --------
    >>> mixture_failure([[.2, .8], [.8, .2]], [.5, .5], 2, 1423, 1e-3).low.round(4).item()
    0.0897
    """
    rows, weights = _checks.as_transitions(transitions), _checks.as_laws(alpha, "alpha")
    s = min(_checks.whole(sparsity, "sparsity", low=1), rows.shape[0])
    epsilon = _checks.positive(epsilon, "epsilon")
    truth = weights @ rows
    if rows.shape[1] == 2 and s > 1:
        low, high = rows[:, 0].min(), rows[:, 0].max()
        inside = float(np.clip(truth[0], low, high))
        return Bracket.exact(interval_failures(low, high, inside, n_samples, epsilon, divergence))
    tables = likely_tables(truth, n_samples, most=most)
    used = np.flatnonzero(weights)
    if s == rows.shape[0] == 2:
        return Bracket.of(tables, segment_fails(tables, rows, float(weights[1]), epsilon, divergence))
    if s == 1 and used.size > 1:
        raise ValueError(f"alpha must be one row for sparsity 1, got {used.size} weights")
    return _union_failure(tables, rows, truth, s, epsilon, divergence)


def supports(n_rows: int, n_outcomes: int, sparsity: int) -> list[tuple[int, ...]]:
    """Supports whose hulls make up the s-sparse mixtures: all of size s, or all rows if s ≥ J (Carathéodory)."""
    if sparsity >= min(n_outcomes, n_rows):
        return [tuple(range(n_rows))]
    return list(combinations(range(n_rows), sparsity))


def _union_failure(
    tables: Tables, rows: Array, truth: Array, s: int, epsilon: float, divergence: Divergence
) -> Bracket:
    pieces = [rows[list(S)] for S in supports(rows.shape[0], rows.shape[1], s)]
    together = COMPILED and len(pieces) > 1 and pieces[0].shape[0] > 2
    fails = np.zeros(tables.probability.size, dtype=bool)
    undecided = np.zeros_like(fails)
    for start in range(0, fails.size, BLOCK):
        places = np.arange(start, min(start + BLOCK, fails.size))
        loose = np.ones(places.size, dtype=bool)
        if together:
            loose = np.any([_may_leave_a_choice(tables.counts[places], piece) for piece in pieces], axis=0)
        for chosen, fitted in ((places[loose], _contenders), (places[~loose], _all_at_once)):
            if chosen.size:
                block = Tables(tables.counts[chosen], tables.probability[chosen], 0.0)
                fails[chosen], undecided[chosen] = _worst_of(fitted(block, pieces, truth, divergence), epsilon)
    return Bracket.of(tables, fails, undecided)


def _worst_of(fits: list[Maxima], epsilon: float) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether some piece that is at the top is farther than ε, and whether that cannot be told for one."""
    best = np.max([fit.value for fit in fits], axis=0)
    tops = [fit.value >= best - TIE for fit in fits]
    fails = [top & (fit.divergence - fit.error > epsilon) for top, fit in zip(tops, fits, strict=True)]
    unsure = [top & (np.abs(fit.divergence - epsilon) <= fit.error) for top, fit in zip(tops, fits, strict=True)]
    return np.any(fails, axis=0), np.any(unsure, axis=0)


def _all_at_once(block: Tables, pieces: list[Array], truth: Array, divergence: Divergence) -> list[Maxima]:
    """As `_contenders`, compiled: for tables that leave no piece a choice."""
    F = block.counts / int(block.counts[0].sum())
    laws, value, gaps = fit_hulls(F, np.array(pieces), GAP, TIE)
    least = value.max(axis=0) - TIE
    fits = []
    for i, piece in enumerate(pieces):
        wanted = np.flatnonzero(value[i] + gaps[i] >= least)
        law, gap = laws[i, wanted], gaps[i, wanted]
        stuck = np.flatnonzero(gap > GAP)
        if stuck.size:
            law[stuck], gap[stuck] = hull_fit(F[wanted[stuck]], piece)
        fits.append(_spread_out(F, wanted, law, np.maximum(gap, 1e-16), truth, divergence))
    return fits


def _contenders(block: Tables, pieces: list[Array], truth: Array, divergence: Divergence) -> list[Maxima]:
    """Solve each piece at the tables where it may be the best: its certified upper bound reaches the best lower one."""
    F = block.counts / max(int(block.counts[0].sum()), 1)
    everywhere = np.ones(F.shape[0], dtype=bool)
    if len(pieces) == 1:
        return [maxima(block, F, pieces[0], truth, everywhere, divergence)]
    ranges = [value_range(F, piece) for piece in pieces]
    reached = np.max([low for low, _ in ranges], axis=0) - TIE
    return [
        maxima(block, F, piece, truth, high >= reached, divergence)
        for piece, (_, high) in zip(pieces, ranges, strict=True)
    ]


def maxima(
    block: Tables, frequencies: Array, rows: Array, truth: Array, wanted: NDArray[np.bool_], divergence: Divergence
) -> Maxima:
    """Greatest likelihood over the hull of `rows` (k, J), and how far its maximisers are from the truth.

    Parameters
    ----------
    block : Tables
    frequencies : ndarray, shape (n, J)
        Of the tables.
    rows : ndarray, shape (k, J)
    truth : ndarray, shape (J,)
    wanted : ndarray of bool, shape (n,)
        Where to look; value −∞ elsewhere.
    divergence : {"kl", "hellinger"}

    Returns
    -------
    Maxima
        Value −∞ also where no mixture of these rows can give what was seen; every mixture is a maximiser then.
    """
    loose = _may_leave_a_choice(block.counts, rows)
    plain = np.flatnonzero(wanted & ~loose)
    laws, gap = hull_fit(frequencies[plain], rows) if plain.size else (np.empty((0, truth.size)), np.empty(0))
    value, distance, error = _spread_out(frequencies, plain, laws, gap, truth, divergence)
    for i in np.flatnonzero(wanted & loose):
        if block.probability[i] < NEGLIGIBLE:
            value[i], error[i] = 0.0, np.inf
        else:
            value[i], distance[i] = _worst_maximiser(frequencies[i], rows, truth, divergence)
    return Maxima(value, distance, error)


def _spread_out(
    frequencies: Array, places: IntArray, laws: Array, gap: Array, truth: Array, divergence: Divergence
) -> Maxima:
    """Maxima at all tables from the laws at some; value −∞ elsewhere."""
    n = frequencies.shape[0]
    value, distance, error = np.full(n, -np.inf), np.zeros(n), np.zeros(n)
    value[places] = mean_log(frequencies[places], laws)
    distance[places] = divergence_from(truth, laws, divergence)
    near = np.clip(distance[places], 0.0, 1e3)  # ∞ where the law has an exact zero
    error[places] = np.where(gap > 0, 10 * np.sqrt(gap * (near + gap)) + 10 * gap, 0.0)
    return Maxima(value, distance, error)


def _may_leave_a_choice(counts: IntArray, rows: Array) -> NDArray[np.bool_]:
    """Tables where maximisers may differ as laws: two outcomes or more were not seen, or rows agree on all seen."""
    seen = counts > 0
    live = rows.any(axis=0)
    loose = seen.sum(axis=1) < np.count_nonzero(live) - 1
    if rows.shape[0] == 1 or not live.all():
        loose |= (seen & ~live).any(axis=1)
    differ = (rows != rows[0]).any(axis=0)
    if not differ.all():
        loose |= ~(seen & differ).any(axis=1)
    return np.asarray(loose)


def _worst_maximiser(frequency: Array, rows: Array, truth: Array, divergence: Divergence) -> tuple[float, float]:
    """Value, and greatest divergence over all maximisers, at a table that may leave a choice.

    What the maximisers give the outcomes seen is unique, so they form a polytope; the divergence is convex, so its
    greatest value is at a vertex: a mixture of no more rows than outcomes seen, plus one.
    """
    seen = np.flatnonzero(frequency)
    impossible = (rows[:, seen] == 0).all(axis=0).any()
    if seen.size == 0 or impossible:
        return -np.inf if impossible else 0.0, float(divergence_from(truth, rows, divergence).max())
    if rows.shape[0] == 1 or seen.size == 1:
        likelihood = log_likelihoods(frequency[None, :], rows)[0]
        best = likelihood >= likelihood.max() - TIE
        return float(likelihood.max()), float(divergence_from(truth, rows[best], divergence).max())
    fit, _, _ = solve_batch(rows, np.ascontiguousarray(frequency[None, :]), 1e-14, rows.shape[0])
    law = fit[0] @ rows
    goal = np.append(law[seen], 1.0)
    worst = float(divergence_from(truth, law, divergence))
    for size in range(1, min(seen.size + 1, rows.shape[0]) + 1):
        for chosen in combinations(range(rows.shape[0]), size):
            system = np.vstack([rows[list(chosen)][:, seen].T, np.ones(size)])
            beta = np.linalg.lstsq(system, goal, rcond=None)[0]
            if beta.min() >= -1e-9 and np.abs(system @ beta - goal).max() <= 1e-7:
                vertex = np.maximum(beta, 0.0) / np.maximum(beta, 0.0).sum()
                worst = max(worst, float(divergence_from(truth, vertex @ rows[list(chosen)], divergence)))
    return float(mean_log(frequency[None, :], law[None, :])[0]), worst
