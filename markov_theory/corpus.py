"""Corpora in which new tokens appear: made, counted without the transitions that come from outside, learned from.

A new token is never *reached* from an old one: it comes from outside. At each old token the corpus has a chance to
go on, with probability π_u, with new token u instead; then the chain goes on from u. So n chances bring Bin(n, π_u)
samples of q_u, and the transitions from old tokens to new ones say nothing about the chain: they are not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from markov_theory._checks import SUM_TOLERANCE, Array, IntArray, as_laws, as_transitions, open_unit, whole
from markov_theory.chain import ExtendedChain, MarkovChain, count_transitions
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.estimators.base import RowEstimator
from markov_theory.solvers.result import NO_DATA

EXPOSURES = ("uniform", "zipf", "coupled")
LEARNED = "learned"
Learner = RowEstimator | Sequence[RowEstimator] | Callable[[Array, IntArray], ArrayLike]
Unvisited = Literal["refuse", "mean row"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """A learned expansion beside the true one.

    Attributes
    ----------
    old_rows_equal : bool
        Whether all old rows, V→V and V→U, are bit for bit the same.
    max_error : float
        ``max |p̂_u(v) − q_u(v)|`` over the new tokens with data, in all columns; 0 if there is none.
    kl : numpy.ma.MaskedArray, shape (m,)
        KL(q_u‖q̂_u) (nats); masked where u has no data.
    """

    old_rows_equal: bool
    max_error: float
    kl: np.ma.MaskedArray


@dataclass(frozen=True, eq=False)
class LearnedExpansion:
    """Rows of m new tokens, learned from a corpus, and the chain that they extend.

    Attributes
    ----------
    base : MarkovChain
    counts : ndarray of int64, shape (m, T)
        Transitions out of each new token; those into tokens that come from outside are left out.
    rows : numpy.ma.MaskedArray, shape (m, T)
        Estimated rows; masked where a token has no data.
    status : ndarray of str, shape (m,)
        ``"learned"`` or ``"no data"``.
    n_discarded : int
        Transitions of the corpus into tokens that come from outside.
    """

    base: MarkovChain
    counts: IntArray
    rows: np.ma.MaskedArray
    status: NDArray[np.str_]
    n_discarded: int

    def chain(self, unvisited: Unvisited = "refuse") -> ExtendedChain:
        """The base chain extended by the learned rows.

        Parameters
        ----------
        unvisited : {"refuse", "mean row"}
            What becomes of a new token without data: an error, or on request the mean of the old rows.

        Raises
        ------
        ValueError
            If a token has no data and that is refused.
        """
        if unvisited not in get_args(Unvisited):
            raise ValueError(f"unvisited must be one of {', '.join(get_args(Unvisited))}, got {unvisited!r}")
        empty = self.status == NO_DATA
        if empty.any() and unvisited == "refuse":
            tokens = ", ".join(str(self.base.n_states + u) for u in np.flatnonzero(empty))
            raise ValueError(f"no data on new token {tokens}: see more of the corpus, or ask for its mean row")
        return self.base.extend(self.rows.filled(self.base.transitions.mean(axis=0)))

    def compare(self, oracle: ExtendedChain) -> Comparison:
        """Set the learned rows beside those of the true extended chain.

        Raises
        ------
        ValueError
            If `oracle` has another number of states or of new ones.
        """
        shape = (self.base.n_states, len(self.status))
        if (oracle.base.n_states, len(oracle.new_states)) != shape:
            raise ValueError(f"the oracle must have {shape[0]} old and {shape[1]} new states")
        known = self.status == LEARNED
        learned = self.chain("mean row").transitions
        old, new = slice(self.base.n_states), np.array(oracle.new_states)[known]
        kl = np.ma.masked_array(np.zeros(known.size), mask=~known)
        if known.any():
            kl[known] = kl_divergence(oracle.transitions[new], learned[new])
        return Comparison(
            old_rows_equal=learned[old].tobytes() == oracle.transitions[old].tobytes(),
            max_error=float(np.abs(learned[new] - oracle.transitions[new]).max(initial=0.0)),
            kl=kl,
        )


def uniform_rates(n_new: int, total: float = 1.0) -> Array:
    """π_u = total/m for m new tokens: the paper's exposure.  Total in (0, 1)."""
    return zipf_rates(n_new, 0.0, total)


def zipf_rates(n_new: int, exponent: float = 1.0, total: float = 1.0) -> Array:
    """π_u ∝ (u+1)^{−a}: what a uniform rate hides.

    Examples
    --------
    >>> zipf_rates(3, 1.0, total=0.11).round(3).tolist()
    [0.06, 0.03, 0.02]
    """
    ranks = np.arange(1.0, whole(n_new, "n_new", low=1) + 1)
    if not (np.isfinite(exponent) and exponent >= 0):
        raise ValueError(f"exponent must be a finite number >= 0, got {exponent:g}")
    return _scaled(ranks**-exponent, total)


def coupled_rates(alpha: ArrayLike, stationary_law: ArrayLike, total: float = 1.0) -> Array:
    """π_u ∝ Σ_v α_uv π(v): a new token is as frequent as the old ones that it is mapped to.

    Parameters
    ----------
    alpha : array_like, shape (m, T)
        Weights of each new token.
    stationary_law : array_like, shape (T,)
        Frequencies π of the old tokens; see `MarkovChain.stationary_laws`.
    total : float
        Σ_u π_u, in (0, 1].

    Raises
    ------
    ValueError
        If the shapes do not fit, or no new token is mapped to a token that occurs.
    """
    weights, law = as_transitions(alpha, "alpha"), as_laws(stationary_law, "stationary_law")
    if law.shape != (weights.shape[1],):
        raise ValueError(f"stationary_law must have shape ({weights.shape[1]},), got {law.shape}")
    frequency = weights @ law
    if not frequency.any():
        raise ValueError("every new token is mapped to old tokens of frequency 0 only")
    return _scaled(frequency, total)


def exposure_rates(exposure: str, alpha: ArrayLike) -> Array:
    """Shares of m new tokens among their occurrences, shape (m,), total 1.

    Parameters
    ----------
    exposure : {"uniform", "zipf", "coupled"}
        Equal; ∝ 1, 1/2, 1/3, …; or ∝ Σ_v α_uv f_v with these frequencies f of the old tokens in their order.
    alpha : array_like, shape (m, T)
        Weights of each new token.

    Raises
    ------
    ValueError
        If there is no such exposure.
    """
    weights = as_transitions(alpha, "alpha")
    m, T = weights.shape
    if exposure == "uniform":
        return uniform_rates(m)
    if exposure == "zipf":
        return zipf_rates(m)
    if exposure == "coupled":
        return coupled_rates(weights, zipf_rates(T))
    raise ValueError(f"exposure must be one of {', '.join(EXPOSURES)}, got {exposure!r}")


def simulate_corpus(
    chain: MarkovChain,
    rates: ArrayLike,
    n_chances: int,
    generator: np.random.Generator,
    start: int | ArrayLike = 0,
) -> IntArray:
    """Draw a trajectory in which the last k states come from outside.

    Parameters
    ----------
    chain : MarkovChain
        With the new states last, reached from nowhere; see `MarkovChain.extend`.
    rates : array_like, shape (k,)
        π_u of the last k states, total at most 1: those of the last extension, or earlier new tokens as well.
    n_chances : int
        n: times that the trajectory goes on from an old state, each of them a chance for a new one.
    generator : numpy.random.Generator
    start : int or array_like of shape (T,)
        The first, old, state, or its law.

    Returns
    -------
    ndarray of int, shape (n + number of new tokens + 1,)
        Ends with an old state, so that every new token has its sample. The numbers of new tokens are multinomial.

    Raises
    ------
    ValueError, TypeError
        If rates are out of range, or one of the k states is reached by the chain itself.
    """
    pi = np.array(rates, dtype=np.float64)
    if pi.ndim != 1 or not 1 <= pi.size < chain.n_states:
        raise ValueError(f"rates must be those of the last k states, 1 <= k < {chain.n_states}, got shape {pi.shape}")
    if not (pi >= 0).all() or not pi.sum() <= 1 + SUM_TOLERANCE:
        raise ValueError(f"rates must be non-negative with a total of at most 1, got a total of {pi.sum():g}")
    n, old = whole(n_chances, "n_chances"), chain.n_states - pi.size
    if chain.transitions[:, old:].any():
        raise ValueError(f"states from {old} on must be reached from nowhere: the chain itself goes there")
    first = np.zeros(chain.n_states)
    if np.ndim(start) == 0:
        first[whole(start, "start", high=old - 1)] = 1
    else:
        law = as_laws(start, "start")
        if law.shape != (old,):
            raise ValueError(f"start must be an old state or a law over the {old} old states, got shape {law.shape}")
        first[:old] = law
    outside = chain.transitions.copy()
    outside[:old] *= max(0.0, 1 - pi.sum())
    outside[:old, old:] = pi
    path = MarkovChain(outside).simulate(2 * n, generator, first)
    return path[: np.flatnonzero(path < old)[n] + 1]


def learn_from_corpus(
    paths: Iterable[Sequence[int] | NDArray[np.integer]], base: MarkovChain, n_new: int, learner: Learner
) -> LearnedExpansion:
    """Estimate the rows of m new tokens, the states after those of `base`, from trajectories.

    Parameters
    ----------
    paths : iterable of sequences of int
        States in [0, T + m); several trajectories, never joined.
    base : MarkovChain
        The chain known so far, T states; an `ExtendedChain` after earlier expansions, whose new tokens are old ones now
        and whose rows can be mixed like any other.
    n_new : int
        m.
    learner : RowEstimator, sequence of m of them, or callable
        One estimator for all tokens, or one each; or ``learner(transitions, counts)``, from rows (T, T) and counts
        (R, T) of the R tokens with data to laws (R, T).

    Returns
    -------
    LearnedExpansion

    Raises
    ------
    ValueError, TypeError
        If states or numbers are out of range, or a callable does not return R laws.

    Notes
    -----
    Transitions into new tokens, and into earlier ones that the chain never reaches by itself, come from outside and
    are left out. Old rows are not estimated again, so that no corpus can move them.

    Examples
    --------
    >>> from markov_theory.estimators import ConstrainedKL
    >>> base = MarkovChain([[.9, .1], [.5, .5]])
    >>> learned = learn_from_corpus([[0, 2, 0, 0], [1, 2, 1]], base, 2, ConstrainedKL())
    >>> learned.counts.tolist(), learned.status.tolist(), learned.n_discarded
    ([[1, 1], [0, 0]], ['learned', 'no data'], 2)
    """
    m, T = whole(n_new, "n_new", low=1), base.n_states
    counts = count_transitions(paths, T + m)
    outside = np.append(_from_outside(base), np.ones(m, dtype=bool))
    n_discarded = int(counts[:, outside].sum())
    counts[:, outside] = 0
    seen = counts[T:, :T]
    known = seen.sum(axis=1) > 0
    rows = np.ma.masked_array(np.zeros((m, T)), mask=np.repeat(~known[:, None], T, axis=1))
    if known.any():
        rows[known] = _estimate(base.transitions, seen, np.flatnonzero(known), learner)
    return LearnedExpansion(base, seen, rows, np.where(known, LEARNED, NO_DATA), n_discarded)


def _estimate(P: Array, counts: IntArray, known: IntArray, learner: Learner) -> Array:
    dictionary = Dictionary(P)
    if isinstance(learner, RowEstimator):
        return clone(learner).fit(dictionary, counts[known]).law_
    if not callable(learner):
        if len(learner) != len(counts):
            raise ValueError(f"there must be one estimator a new token, {len(counts)}, got {len(learner)}")
        return np.array([clone(learner[u]).fit(dictionary, counts[u]).law_ for u in known])
    laws = as_transitions(learner(P, counts[known]), "learned rows")
    if laws.shape != (known.size, P.shape[1]):
        raise ValueError(f"learned rows must have shape ({known.size}, {P.shape[1]}), got {laws.shape}")
    return laws


def _from_outside(chain: MarkovChain) -> NDArray[np.bool_]:
    """Which states an earlier extension added that the chain never reaches."""
    original = chain
    while isinstance(original, ExtendedChain):
        original = original.base
    return (np.arange(chain.n_states) >= original.n_states) & ~chain.transitions.any(axis=0)


def _scaled(weights: Array, total: float) -> Array:
    total = 1.0 if total == 1 else open_unit(total, "total")
    return total * (weights / weights.sum())
