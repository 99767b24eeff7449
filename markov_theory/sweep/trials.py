"""One batch of trials: sample, estimate, score. What workers run."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import warnings
from functools import lru_cache

import numpy as np
from threadpoolctl import threadpool_limits

from markov_theory.dictionary import Dictionary
from markov_theory.divergences import kl_divergence
from markov_theory.estimators import ESTIMATORS
from markov_theory.instance import Instance, plant
from markov_theory.randomness import named_generator
from markov_theory.sampling import sample_counts
from markov_theory.solvers.result import FEASIBLE, INACCURATE
from markov_theory.sweep.sample_complexity import BATCH
from markov_theory.sweep.specification import Specification
from markov_theory.sweep.store import Batch

CERTIFIED_CLASSES = ("oracle", "l0", "simplex")  # their bounds speak of exact maximisers

_worker: Trials


class Trials:
    """The trials of a sweep. A batch is a pure function of the specification and of its key."""

    def __init__(self, dictionary: Dictionary, specification: Specification) -> None:
        self.dictionary = dictionary
        self.specification = specification
        self.instance = lru_cache(maxsize=None)(self._plant)

    def _plant(self, s: int, truth: int) -> Instance:
        return plant(self.dictionary, s, seed=self.specification.seed, truth=truth)

    def run(self, s: int, truth: int, estimator: str, n_samples: int, batch: int) -> Batch:
        """Run a batch. Every estimator of a cell sees the same samples: the key of the randomness omits it."""
        started = time.perf_counter()
        instance = self.instance(s, truth)
        generator = named_generator(self.specification.seed, "counts", instance.name, n_samples, batch)
        counts = sample_counts(instance.target, n_samples, BATCH, generator)
        fitted = ESTIMATORS[estimator].for_instance(instance, self.specification.tolerance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # counted below and reported for the whole sweep
            fitted.fit(self.dictionary, counts)
        kl = kl_divergence(instance.target, fitted.law_)
        gap = getattr(fitted, "gap_", np.full(BATCH, np.nan))
        missing = (INACCURATE, FEASIBLE) if fitted.bound_class in CERTIFIED_CLASSES else (INACCURATE,)
        inaccurate = int(np.isin(getattr(fitted, "status_", np.empty(0, dtype=str)), missing).sum())
        return Batch(kl, gap, inaccurate, time.perf_counter() - started)


def compile_estimators(names: tuple[str, ...]) -> None:
    """Run each estimator once on two rows, so that compiled code is on disk before workers want it."""
    tiny = Dictionary([[0.9, 0.1], [0.1, 0.9]])
    planted = plant(tiny, 2)
    for name in names:
        ESTIMATORS[name].for_instance(planted, 1e-9).fit(tiny, np.full((8, 2), 5))


def start_worker(dictionary: Dictionary, specification: Specification) -> None:
    """Prepare a worker process: one BLAS thread; Ctrl-C is the parent's business; it does not outlive the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    threadpool_limits(1)
    prepare(dictionary, specification)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def prepare(dictionary: Dictionary, specification: Specification) -> None:
    """Say in this process which sweep `run_batches` belongs to."""
    global _worker
    _worker = Trials(dictionary, specification)


def run_batches(s: int, truth: int, estimator: str, n_samples: int, batches: range) -> list[Batch]:
    """Run several batches of a cell at one N, in a worker."""
    return [_worker.run(s, truth, estimator, n_samples, batch) for batch in batches]
