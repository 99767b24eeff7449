"""One batch of trials: sample, estimate, score. What workers run."""

from __future__ import annotations

import time
import warnings

import numpy as np

from markov_theory.dictionary import Dictionary
from markov_theory.estimators import ESTIMATORS
from markov_theory.instance import plant
from markov_theory.randomness import named_generator
from markov_theory.solvers.result import FEASIBLE, INACCURATE
from markov_theory.sweep.axes import Point
from markov_theory.sweep.sample_complexity import BATCH
from markov_theory.sweep.specification import Specification
from markov_theory.sweep.store import Batch

# Classes whose bounds speak of exact maximisers.
CERTIFIED_CLASSES = ("oracle", "l0", "simplex", "embedding-oracle", "embedding-dense", "embedding-l0")

_worker: Trials


class Trials:
    """The trials of a sweep. A batch is a pure function of the specification and of its key.

    Parameters
    ----------
    specification : Specification
    given : Dictionary, optional
        The rows, where they are given and not made.
    """

    def __init__(self, specification: Specification, given: Dictionary | None = None) -> None:
        self.specification = specification
        self.problem = specification.problem(given)
        self._estimators = {name: specification.estimator(name) for name in specification.estimators}

    def run(self, point: Point, truth: int, estimator: str, n_samples: int, batch: int) -> Batch:
        """Run a batch. Every estimator of a cell sees the same samples: the key of the randomness omits it.

        Where several laws are learned together, loss and gap are the largest over them. The batch's seconds are
        those of sampling, solving and scoring alone.
        """
        planted = self.problem.truth(point, truth)
        tolerance = self.specification.tolerance(point)
        unfitted = [self._estimators[estimator].for_instance(instance, tolerance) for instance in planted.instances]
        loss, gap = np.zeros(BATCH), np.full(BATCH, np.nan)
        missed = np.zeros(BATCH, dtype=bool)
        started = time.perf_counter()
        generator = named_generator(self.specification.seed, "counts", planted.name, n_samples, batch)
        drawn = planted.draw(n_samples, BATCH, generator)
        for instance, fitted, counts in zip(planted.instances, unfitted, drawn, strict=True):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # counted below and reported for the whole sweep
                fitted.fit(planted.dictionary, counts)
            loss = np.maximum(loss, planted.loss(instance, fitted.law_))
            gap = np.fmax(gap, getattr(fitted, "gap_", np.nan))
            missing = (INACCURATE, FEASIBLE) if fitted.bound_class in CERTIFIED_CLASSES else (INACCURATE,)
            for status in missing:
                missed |= getattr(fitted, "status_", "") == status
        return Batch(loss, gap, int(missed.sum()), time.perf_counter() - started)


def compile_estimators(specification: Specification) -> None:
    """Run each estimator once on two rows, so that compiled code is on disk before workers want it."""
    tiny = Dictionary([[0.9, 0.1], [0.1, 0.9]])
    planted = plant(tiny, 2)
    for name in specification.estimators:
        if name in ESTIMATORS:
            ESTIMATORS[name].for_instance(planted, 1e-9).fit(tiny, np.full((8, 2), 5))


def prepare(specification: Specification, given: Dictionary | None = None) -> None:
    """Say in this process which sweep `run_batches` belongs to."""
    use(Trials(specification, given))


def use(trials: Trials) -> None:
    """Let `run_batches` run these trials from now on."""
    global _worker
    _worker = trials


def run_batches(point: Point, truth: int, estimator: str, n_samples: int, batches: range) -> list[Batch]:
    """Run several batches of a cell at one N, in a worker."""
    return [_worker.run(point, truth, estimator, n_samples, batch) for batch in batches]
