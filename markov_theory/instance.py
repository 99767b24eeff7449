"""Planted truths: a dictionary, the true weights of the new token, and every number that follows from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, IntArray, as_laws, whole
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.randomness import named_generator
from markov_theory.solvers.relaxation import information_projection


@dataclass(frozen=True, eq=False)
class Instance:
    """A transition mixture q = Σ_v α_v p_v over a dictionary.

    Parameters
    ----------
    dictionary : Dictionary
    alpha : array_like, shape (T,)
        True weights, in the simplex.
    name : str
        Identifies the truth; randomness is keyed by it.

    Raises
    ------
    ValueError
        If `alpha` is not a law over the dictionary's rows.
    """

    dictionary: Dictionary
    alpha: Array
    name: str

    def __init__(self, dictionary: Dictionary, alpha: ArrayLike, name: str = "truth") -> None:
        weights = as_laws(alpha, "alpha")
        if weights.shape != (dictionary.n_tokens,):
            raise ValueError(f"alpha must have shape ({dictionary.n_tokens},), got {weights.shape}")
        weights.setflags(write=False)
        object.__setattr__(self, "dictionary", dictionary)
        object.__setattr__(self, "alpha", weights)
        object.__setattr__(self, "name", name)

    @property
    def transitions(self) -> Array:
        """P, shape (T, J)."""
        return self.dictionary.transitions

    @property
    def n_tokens(self) -> int:
        """T."""
        return self.dictionary.n_tokens

    @property
    def n_outcomes(self) -> int:
        """J."""
        return self.dictionary.n_outcomes

    @property
    def margin(self) -> float:
        """γ of the dictionary (nats)."""
        return self.dictionary.margin

    @property
    def density_ratio(self) -> float:
        """The density ratio c of the dictionary."""
        return self.dictionary.density_ratio

    @property
    def log_ratio(self) -> float:
        """L = log c (nats)."""
        return self.dictionary.log_ratio

    @cached_property
    def support(self) -> IntArray:
        """Indices of the rows with positive weight, shape (s,)."""
        return np.flatnonzero(self.alpha)

    @property
    def sparsity(self) -> int:
        """S = ‖α‖₀."""
        return int(self.support.size)

    @property
    def support_rows(self) -> Array:
        """The mixed rows, shape (s, J)."""
        return self.transitions[self.support]

    @cached_property
    def target(self) -> Array:
        """q, the law of the next token after the new token, shape (J,)."""
        return self.alpha @ self.transitions

    @cached_property
    def support_margins(self) -> Array:
        """γ_v = min KL(q‖q_β) over mixtures β of all rows but v, for each v in the support (nats), shape (s,).

        Every support that misses a row of S misses some v, so ``min_v γ_v`` is at most the margin γ_s of wrong
        supports. Each value is a certified lower bound: what the solver reached minus its gap.
        """
        if self.n_tokens == 1:
            return np.array([np.inf])
        return np.array(
            [information_projection(np.delete(self.transitions, v, axis=0), self.target) for v in self.support]
        )

    @property
    def support_margin(self) -> float:
        """Lower bound on γ_s = min KL(q‖q_β) over supports of size <= s that do not contain S (nats)."""
        return float(self.support_margins.min())

    def in_small_epsilon_regime(self, epsilon: float) -> bool:
        """Whether ε <= γ_s/10, so that learning q to ε first means finding its support."""
        return epsilon <= self.support_margin / 10

    @property
    def kl_of_uniform_mixture(self) -> float:
        """KL(q‖mean row) (nats): an ε above it asks nothing of the data."""
        return float(kl_divergence(self.target, self.transitions.mean(axis=0)))


def plant(dictionary: Dictionary, sparsity: int, *, seed: int = 0, truth: int = 0) -> Instance:
    """Plant a transition mixture: s rows drawn without replacement, weights ``1/(2s) + Dirichlet(1,…,1)/2``.

    No weight is below 1/(2s): free Dirichlet weights make the support margin collapse.

    Parameters
    ----------
    dictionary : Dictionary
    sparsity : int
        s in [1, T].
    seed, truth : int
        Entropy, and which of the truths at this s.

    Returns
    -------
    Instance
        Named ``"s=<s>/truth=<truth>"``.

    Raises
    ------
    ValueError
        If s is not in [1, T].
    """
    s = whole(sparsity, "sparsity", low=1, high=dictionary.n_tokens)
    name = f"s={s}/truth={whole(truth, 'truth')}"
    generator = named_generator(seed, "plant", name)
    alpha = np.zeros(dictionary.n_tokens)
    support = generator.choice(dictionary.n_tokens, size=s, replace=False)
    alpha[support] = 0.5 / s + 0.5 * generator.dirichlet(np.ones(s))
    return Instance(dictionary, alpha / math.fsum(alpha), name)
