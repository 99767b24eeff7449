"""Worker processes of this machine: one thread of linear algebra each, Ctrl-C left to the parent, none outlives it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

Item = TypeVar("Item")
Result = TypeVar("Result")
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@contextmanager
def worker_processes(n_jobs: int, prepare: Callable[..., None] | None = None, *arguments: Any) -> Iterator[Executor]:
    """Start `n_jobs` workers, each after ``prepare(*arguments)``; threads are limited before numpy is loaded in them.

    Submit under `interrupts_held`: submitting may start a worker.
    """
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(n_jobs, mp_context=context, initializer=_start, initargs=(prepare, arguments))
    try:
        yield executor
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would leave workers that wait for work for ever
        raise
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back: a worker that starts meanwhile inherits that and leaves Ctrl-C to this process for good."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def apply_all(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_jobs: int = 1,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[Result]:
    """Apply a function to every item on `n_jobs` processes (in this one if it is 1); results in the items' order.

    Linear algebra has one thread throughout: their number may change last bits.

    Parameters
    ----------
    function : callable
        Importable, and pure, so that results do not depend on `n_jobs`.
    items : sequence
    n_jobs : int
    on_progress : callable
        Called with the number of items done.
    """
    found: dict[int, Result] = {}
    if n_jobs == 1:
        with threadpool_limits(1):
            for i, item in enumerate(items):
                found[i] = function(item)
                on_progress(len(found))
        return list(found.values())
    with worker_processes(n_jobs) as executor:
        with interrupts_held():
            futures: dict[Future[Result], int] = {executor.submit(function, item): i for i, item in enumerate(items)}
        for future in as_completed(futures):
            found[futures[future]] = future.result()
            on_progress(len(found))
    return [found[i] for i in range(len(items))]


def _start(prepare: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    threadpool_limits(1)
    if prepare is not None:
        prepare(*arguments)


def _leave_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
