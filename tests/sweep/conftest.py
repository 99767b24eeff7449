"""A small sweep that runs in this process."""

from concurrent.futures import Executor, Future

import pytest
from threadpoolctl import threadpool_limits

from markov_theory.families import make_dictionary
from markov_theory.sweep.engine import run_sweep
from markov_theory.sweep.specification import Specification, fingerprint
from markov_theory.sweep.store import Store
from markov_theory.sweep.trials import prepare


class Inline(Executor):
    """Runs what is submitted at once, and counts it."""

    def __init__(self, before=lambda *arguments: None):
        self.before = before
        self.n_batches = 0

    def submit(self, function, /, *arguments, **keywords):
        future = Future()
        try:
            self.before(*arguments)
            result = function(*arguments, **keywords)
            self.n_batches += len(result)
            future.set_result(result)
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.fixture(scope="session")
def dictionary():
    return make_dictionary(12, 16, density_ratio=20.0)


@pytest.fixture(scope="session")
def specification(dictionary):
    return Specification(
        sparsities=(1, 2, 3),
        estimators=("oracle", "kl-pursuit", "uniform"),
        epsilon=1e-3,
        delta=0.1,
        truths=2,
        trials=256,
        seed=0,
        dictionary=fingerprint(dictionary),
    )


@pytest.fixture
def sweep(dictionary, specification):
    """Run the small sweep in a folder; returns the outcome and the executor."""

    def run(folder, specification=specification, before=lambda *arguments: None, checks=lambda cell: ()):
        prepare(dictionary, specification)
        store, executor = Store(folder, specification), Inline(before)
        try:
            with threadpool_limits(1):  # as in a worker: the number of threads changes the last bits
                return run_sweep(specification, store, executor, checks=checks), executor
        finally:
            store.close()

    return run
