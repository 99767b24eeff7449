"""The laws that are to be learned: planted, mixed with given weights, or given themselves and projected on the rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, as_laws, positive, whole
from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.instance import Instance, plant
from markov_theory.misspecified import GRID, project
from markov_theory.solvers.pursuit import kl_pursuit
from markov_theory.solvers.selection import select_sparsity

NEGLIGIBLE = 1e-3  # share of ε below which a misfit does not count
FEW = 8  # rows of a mixture that are named


@dataclass(frozen=True, eq=False)
class Truth:
    """A new token's law q, and the mixture of rows that stands for it.

    Attributes
    ----------
    instance : Instance
        The mixture q_α.
    law : ndarray, shape (J,)
        q: q_α itself, unless a law was given.
    misfit : float
        KL(q‖q_α) (nats).
    hull_misfit : float
        Least KL(q‖q') over all mixtures q' of the rows (nats).
    gap : float
        Certified: no mixture of as many rows as q_α is nearer to q than ``misfit − gap`` (nats).
    """

    instance: Instance
    law: Array
    misfit: float = 0.0
    hull_misfit: float = 0.0
    gap: float = 0.0

    @classmethod
    def of(cls, instance: Instance) -> Truth:
        """A truth that is a mixture."""
        return cls(instance, instance.target)

    def is_outside(self, epsilon: float) -> bool:
        """Whether q is so far from q_α that statements on mixtures say nothing of it: above ε/1000."""
        return self.misfit > NEGLIGIBLE * epsilon

    def unavoidable(self, bound_class: str, epsilon: float) -> float:
        """KL that stays however many samples there are (nats); success is counted from there. 0 for mixtures."""
        if not self.is_outside(epsilon):
            return 0.0
        return self.hull_misfit if bound_class == "simplex" else self.misfit

    def describe(self, epsilon: float) -> dict[str, Any]:
        """Return what a reader should know of the truth; weights are largest first."""
        instance = self.instance
        order = instance.support[np.argsort(-instance.alpha[instance.support], kind="stable")]
        return {
            "name": instance.name,
            "sparsity": instance.sparsity,
            "rows": [instance.dictionary.tokens[v] for v in order[:FEW]],
            "weights": [float(w) for w in instance.alpha[order[:FEW]]],
            "support_margin": instance.support_margin,
            "small_epsilon": bool(instance.in_small_epsilon_regime(epsilon)),
            "kl_of_mean_row": float(kl_divergence(self.law, instance.transitions.mean(axis=0))),
            "misfit": self.misfit,
            "hull_misfit": self.hull_misfit,
            "misfit_gap": self.gap,
            "outside": self.is_outside(epsilon),
        }


Wanted = int | Instance | Truth | Sequence[Instance | Truth]


def truths_of(dictionary: Dictionary, wanted: Wanted, n_truths: int, seed: int) -> tuple[Truth, ...]:
    """Truths: `n_truths` planted ones if `wanted` is a number of rows, else those given.

    Raises
    ------
    ValueError, TypeError
        If s is not in [1, T], there is no truth, or one is not of this dictionary.
    """
    if isinstance(wanted, Instance | Truth):
        wanted = [wanted]
    if not isinstance(wanted, Sequence):
        planted = range(whole(n_truths, "truths", low=1))
        return tuple(Truth.of(plant(dictionary, wanted, seed=seed, truth=i)) for i in planted)
    found = tuple(truth if isinstance(truth, Truth) else Truth.of(truth) for truth in wanted)
    if not found:
        raise ValueError("there must be at least one truth, got none")
    for truth in found:
        if truth.instance.dictionary is not dictionary:
            raise ValueError(f"{truth.instance.name} is a mixture of another dictionary's rows")
    return found


def nearest_mixture(
    dictionary: Dictionary, target: ArrayLike, epsilon: float, sparsity: int | None = None, name: str = "target"
) -> Truth:
    """A mixture of few rows that is next to a law q in KL(q‖·), and how far q is from it and from all mixtures.

    Parameters
    ----------
    dictionary : Dictionary
    target : array_like, shape (J,)
        q.
    epsilon : float
        ε, nats: by default a further row is mixed only if it brings the mixture nearer by about ε/1000.
    sparsity : int, optional
        s, the rows to mix at most; chosen by `select_sparsity` if not given.
    name : str
        Of the truth.

    Returns
    -------
    Truth

    Raises
    ------
    ValueError
        If q is no law over the outcomes, or has an outcome that no row can give.

    Examples
    --------
    >>> rows = Dictionary([[.8, .1, .1], [.1, .8, .1], [.1, .1, .8]])
    >>> truth = nearest_mixture(rows, [.45, .45, .1], 1e-3)
    >>> truth.instance.alpha.round(6).tolist(), truth.is_outside(1e-3)
    ([0.5, 0.5, 0.0], False)
    """
    epsilon, q = positive(epsilon, "epsilon"), as_laws(target, "target")
    hull = project(dictionary.transitions, q)
    if sparsity is None:
        n_samples = min(float(GRID), 10 / (NEGLIGIBLE * epsilon))
        sparsity = int(select_sparsity(dictionary.transitions, np.rint(q * n_samples)).sparsity[0])
    s = whole(sparsity, "sparsity", low=1, high=dictionary.n_tokens)
    counts = np.where(q > 0, np.maximum(np.rint(q * GRID), 1), 0)
    fit = kl_pursuit(dictionary.transitions, counts, s)
    instance = Instance(dictionary, fit.alpha[0] / math.fsum(fit.alpha[0]), name)
    misfit = float(kl_divergence(q, instance.target))
    nearest = min(misfit, hull.divergence)
    return Truth(instance, q, misfit, nearest, misfit - max(0.0, nearest - hull.gap))
