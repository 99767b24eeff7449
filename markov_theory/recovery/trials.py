"""Trials of support recovery: draw counts, fit, compare the support found with the true one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from markov_theory._checks import MAX_SAMPLES, Array, IntArray, whole
from markov_theory._processes import apply_all
from markov_theory.dictionary import Dictionary
from markov_theory.families import Family, make_dictionary
from markov_theory.instance import Instance, plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.best_subset import best_subset
from markov_theory.solvers.pursuit import kl_pursuit
from markov_theory.solvers.result import FEASIBLE, INACCURATE, NO_DATA
from markov_theory.solvers.simplex_mle import simplex_mle
from markov_theory.verify.tables import Mask

TOLERANCE = 1e-9  # nats a sample


@dataclass(frozen=True)
class Plan:
    """What is tried.

    Attributes
    ----------
    sparsities, samples : tuple of int
        s and N.
    tokens, outcomes : int
        T and J.
    ratio : float
        c of the made rows.
    family : str
        See `markov_theory.families.make_dictionary`.
    truths, trials : int
        Planted truths at each s, and tables of counts at each truth and N.
    max_nodes : int
        Of branch and bound, for each fit; beyond, the best support found counts, uncertified.
    seed : int
    """

    sparsities: tuple[int, ...]
    samples: tuple[int, ...]
    tokens: int = 64
    outcomes: int = 128
    ratio: float = 100.0
    family: Family = "well-conditioned"
    truths: int = 5
    trials: int = 256
    max_nodes: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what is out of range."""
        for s in self.sparsities:
            whole(s, "s", low=1, high=self.tokens)
        for n in self.samples:
            whole(n, "n", low=1, high=MAX_SAMPLES)
        for name in ("truths", "trials", "max_nodes"):
            whole(getattr(self, name), name, low=1)
        whole(self.seed, "seed")
        if not (self.sparsities and self.samples):
            raise ValueError("s and n must each have a value")
        made_rows(self)


class Recovered(NamedTuple):
    """For each of R fits: whether the support is the true one, and whether the fit is certified for what it is."""

    success: Mask
    certified: Mask


Estimator = Callable[[Array, IntArray, Instance, int], Recovered]


def exact_l0(transitions: Array, counts: IntArray, truth: Instance, max_nodes: int) -> Recovered:
    """Exact ℓ0: success if the true support is the *only* one that attains the maximum."""
    fit = best_subset(transitions, counts, truth.sparsity, TOLERANCE, max_nodes=max_nodes, max_ties=2)
    true = tuple(truth.support.tolist())
    return Recovered(np.array([found == (true,) for found in fit.supports]), fit.status != FEASIBLE)


def pursuit(transitions: Array, counts: IntArray, truth: Instance, max_nodes: int) -> Recovered:
    """KL pursuit with exchanges: success if its support is the true one. No certificate is asked of it."""
    fit = kl_pursuit(transitions, counts, truth.sparsity, TOLERANCE)
    success = ((fit.alpha > 0) == (truth.alpha > 0)).all(axis=1) & (fit.status != NO_DATA)
    return Recovered(success, fit.status != INACCURATE)


def largest_weights(transitions: Array, counts: IntArray, truth: Instance, max_nodes: int) -> Recovered:
    """Constrained KL over all mixtures: success if the true rows have the s largest weights, without a tie."""
    fit = simplex_mle(transitions, counts, TOLERANCE)
    inside = truth.alpha > 0
    least = fit.alpha[:, inside].min(axis=1)
    rival = fit.alpha[:, ~inside].max(axis=1, initial=0.0)
    return Recovered(least > rival, fit.status != INACCURATE)


ESTIMATORS: dict[str, Estimator] = {
    "exact-l0": exact_l0,
    "kl-pursuit": pursuit,
    "constrained-kl": largest_weights,
}


@lru_cache(maxsize=4)
def made_rows(plan: Plan) -> Dictionary:
    """The plan's dictionary."""
    with threadpool_limits(1):  # their number may change last bits
        return make_dictionary(plan.tokens, plan.outcomes, density_ratio=plan.ratio, family=plan.family, seed=plan.seed)


def planted(plan: Plan, s: int, truth: int) -> Instance:
    """Truth number `truth` at s."""
    return plant(made_rows(plan), s, seed=plan.seed, truth=truth)


class Cell(NamedTuple):
    """One truth at one N."""

    s: int
    truth: int
    n: int


def run_cell(plan: Plan, cell: Cell) -> list[dict[str, Any]]:
    """Try every estimator on the same tables of counts; one record an estimator."""
    instance = planted(plan, cell.s, cell.truth)
    generator = named_generator(plan.seed, "recovery", instance.name, cell.n)
    counts = sample_counts(instance.target, cell.n, plan.trials, generator)
    records = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # fits that are not certified are counted
        for name, estimator in ESTIMATORS.items():
            success, certified = estimator(instance.transitions, counts, instance, plan.max_nodes)
            records.append(
                {
                    **cell._asdict(),
                    "estimator": name,
                    "trials": plan.trials,
                    "successes": int(success.sum()),
                    "uncertified": int((~certified).sum()),
                    "uncertified_failures": int((~certified & ~success).sum()),
                }
            )
    return records


def run_all(plan: Plan, n_jobs: int = 1, on_progress: Callable[[int], None] = lambda done: None) -> pd.DataFrame:
    """Run every cell on `n_jobs` processes (in this one if it is 1); one row a cell and estimator.

    Returns
    -------
    DataFrame
        ``s``, ``truth``, ``n``, ``estimator``, ``trials``, ``successes``, ``uncertified`` (fits), and
        ``uncertified_failures``, those among them whose support is not the true one.
    """
    cells = sorted(cells_of(plan), reverse=True)  # the largest s, where fits are slowest, first
    found = apply_all(partial(run_cell, plan), cells, n_jobs, on_progress)
    return pd.DataFrame([record for records in reversed(found) for record in records])


def cells_of(plan: Plan) -> list[Cell]:
    """All cells."""
    return [Cell(s, truth, n) for s in plan.sparsities for truth in range(plan.truths) for n in plan.samples]
