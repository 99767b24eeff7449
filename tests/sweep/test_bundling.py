"""Bundles: every call gets its own result, however calls travel."""

import threading
import time
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import pytest

from markov_theory.sweep.bundling import AIM, MOST_CALLS, Bundling


def root(x):
    if x < 0:
        raise ValueError(f"no root of {x}")
    return x**0.5


class Held:
    """Keeps bundles until they are let go, and runs them here."""

    def __init__(self, n_workers=1):
        self.sent = []
        self.executor = Bundling(self.send, lambda: n_workers)

    def send(self, bundle):
        self.sent.append((bundle, Future()))
        return self.sent[-1][1]

    def let_go(self):
        for bundle, future in self.sent:
            future.set_result(bundle.run())

    def sizes(self):
        return [len(bundle.calls) for bundle, _ in self.sent]


def test_each_call_gets_its_result_or_its_error():
    with ThreadPoolExecutor(3) as pool, Bundling(lambda bundle: pool.submit(bundle.run), lambda: 3) as executor:
        tasks = {x: executor.submit(root, x) for x in range(-200, 200)}
        for x, task in tasks.items():
            if x < 0:
                assert str(task.exception()) == f"no root of {x}"
            else:
                assert task.result() == x**0.5


@pytest.mark.parametrize(("n_calls", "n_workers", "most"), [(1, 1, 1), (5, 4, 1), (40, 4, 5), (1000, 4, MOST_CALLS)])
def test_the_more_calls_wait_for_each_worker_the_larger_the_bundles(n_calls, n_workers, most):
    held = Held(n_workers)
    tasks = [held.executor.submit(root, x) for x in range(n_calls)]
    held.executor.shutdown()
    assert sum(held.sizes()) == n_calls
    assert max(held.sizes()) <= most
    held.let_go()
    assert [task.result() for task in tasks] == [x**0.5 for x in range(n_calls)]


def test_slow_calls_travel_alone():
    held = Held()
    slow = threading.Event()
    first = held.executor.submit(slow.wait, 2 * AIM)
    while not held.sent:
        time.sleep(0.001)
    held.let_go()
    first.result()
    held.sent.clear()
    for x in range(50):
        held.executor.submit(root, x)
    held.executor.shutdown()
    assert held.sizes() == [1] * 50


def test_what_is_dropped_is_cancelled_and_what_breaks_breaks_its_calls():
    held = Held()
    tasks = [held.executor.submit(root, x) for x in range(4)]
    held.executor.shutdown()
    (_, first), *others = held.sent
    first.cancel()
    for _, future in others:
        future.set_exception(MemoryError("planted"))
    ended = [CancelledError if task.cancelled() else type(task.exception()) for task in tasks]
    n_first = held.sizes()[0]
    assert ended == [CancelledError] * n_first + [MemoryError] * (4 - n_first)
    assert n_first < 4


def test_calls_that_cannot_be_sent_are_cancelled():
    def refuse(bundle):
        raise ConnectionError("nobody there")

    with Bundling(refuse, lambda: 1) as executor:
        tasks = [executor.submit(root, x) for x in range(4)]
    assert all(task.cancelled() for task in tasks)
