"""A small sweep that runs in this process."""

from concurrent.futures import Executor, Future
from contextlib import contextmanager

import pytest
from threadpoolctl import threadpool_limits

from markov_theory.families import make_dictionary
from markov_theory.sweep.axes import Point
from markov_theory.sweep.engine import run_sweep
from markov_theory.sweep.setup import set_up
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


OPTIONS = {
    "s": "1..3",
    "tokens": 12,
    "outcomes": 16,
    "ratio": 20.0,
    "estimators": "oracle,kl-pursuit,uniform",
    "epsilon": 1e-3,
    "delta": 0.2,
    "truths": 2,
    "trials": 128,
}


def planned(**options):
    """The small sweep with some options changed."""
    return set_up({**OPTIONS, **options})


@pytest.fixture(scope="session")
def small():
    return planned


@pytest.fixture(scope="session")
def specification():
    return planned().specification


def at(s, **changes):
    """A point of the small sweep."""
    usual = {"s": s, "gamma": None, "ratio": 20.0, "tokens": 12, "outcomes": 16, "epsilon": 1e-3, "delta": 0.2}
    return Point.of({**usual, **changes})


@pytest.fixture(scope="session")
def point():
    return at


def run_small(folder, specification=None, before=lambda *arguments: None, extend=False, **options):
    """Run a sweep in a folder, the small one by default; returns the outcome and the executor."""
    specification = specification or planned().specification
    prepare(specification)
    store, executor = Store(folder, specification, extend), Inline(before)
    try:
        with threadpool_limits(1):  # as in a worker: the number of threads changes the last bits
            return run_sweep(specification, store, executor, **options), executor
    finally:
        store.close()


@pytest.fixture(scope="session")
def sweep():
    return run_small


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """Folder, outcome and number of batches of the small sweep in one go."""
    folder = tmp_path_factory.mktemp("whole")
    outcome, executor = run_small(folder)
    return folder, outcome, executor.n_batches


@pytest.fixture
def inline(monkeypatch):
    """Let the command run its trials in this process: starting workers takes longer than a small sweep."""

    @contextmanager
    def here(specification, n_jobs, given=None):
        prepare(specification, given)
        with threadpool_limits(1):
            yield Inline()

    monkeypatch.setattr("markov_theory.sweep.engine.local_processes", here)


@pytest.fixture(scope="session")
def bounds():
    return planned().bounds


@pytest.fixture(scope="session")
def checked(bounds, tmp_path_factory):
    """Outcome of the small sweep with its bounds tried."""
    return run_small(tmp_path_factory.mktemp("checked"), checks=bounds.checks)[0]
