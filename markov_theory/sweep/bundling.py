"""Calls that are submitted together travel in one task, for engines where a task costs as much as a call."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass
from typing import Any

GATHER = 0.005  # seconds to wait for what is submitted next
MOST_CALLS = 16
AIM = 0.25  # seconds of work in a task, where calls are quicker


@dataclass(frozen=True, eq=False)
class Bundle:
    """Calls (function, arguments, keywords) to be made one after the other."""

    calls: tuple[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]], ...]

    def run(self) -> tuple[list[tuple[Any, Exception | None]], float]:
        """Make the calls: (value, error) of each, and seconds a call."""
        started = time.perf_counter()
        results: list[tuple[Any, Exception | None]] = []
        for function, arguments, keywords in self.calls:
            try:
                results.append((function(*arguments, **keywords), None))
            except Exception as error:
                results.append((None, error))
        return results, (time.perf_counter() - started) / max(len(self.calls), 1)


class Bundling(Executor):
    """An executor that sends its calls in bundles: the more calls are waiting for each worker, the larger.

    Parameters
    ----------
    send : callable
        Takes a `Bundle`, has it run somewhere, returns the `concurrent.futures.Future` of what `Bundle.run` returns.
    n_workers : callable
        Number of workers that there are now.
    """

    def __init__(self, send: Callable[[Bundle], Future], n_workers: Callable[[], int]) -> None:
        self._send, self._n_workers = send, n_workers
        self._waiting: queue.SimpleQueue[tuple[Future, Any] | None] = queue.SimpleQueue()
        self._seconds = 0.0  # that a call took of late
        self._thread = threading.Thread(target=self._send_all, daemon=True)
        self._thread.start()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **keywords: Any) -> Future:
        """See `concurrent.futures.Executor`."""
        future: Future = Future()
        self._waiting.put((future, (function, arguments, keywords)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Send what is waiting, then nothing more."""
        self._waiting.put(None)
        self._thread.join()

    def _send_all(self) -> None:
        while (first := self._waiting.get()) is not None:
            gathered = [first]
            time.sleep(GATHER)
            while not self._waiting.empty():
                if (another := self._waiting.get()) is None:
                    self._waiting.put(None)
                    break
                gathered.append(another)
            try:
                size = self._size(len(gathered))
                for i in range(0, len(gathered), size):
                    self._send_one(gathered[i : i + size])
            except Exception:  # whatever it is, nobody is there to run them
                for future, _ in gathered:
                    future.cancel()

    def _size(self, n_calls: int) -> int:
        if n_calls == 1:
            return 1
        enough = MOST_CALLS if self._seconds == 0 else int(AIM / self._seconds)
        return max(1, min(MOST_CALLS, enough, n_calls // (2 * max(self._n_workers(), 1))))

    def _send_one(self, gathered: list[tuple[Future, Any]]) -> None:
        futures = [future for future, _ in gathered]
        sent = self._send(Bundle(tuple(call for _, call in gathered)))
        sent.add_done_callback(lambda done: self._hand_out(done, futures))

    def _hand_out(self, done: Future, futures: list[Future]) -> None:
        try:
            results, self._seconds = done.result()
        except CancelledError:
            for future in futures:
                future.cancel()
        except Exception as error:
            for future in futures:
                future.set_exception(error)
        else:
            for future, (value, raised) in zip(futures, results, strict=True):
                future.set_result(value) if raised is None else future.set_exception(raised)
