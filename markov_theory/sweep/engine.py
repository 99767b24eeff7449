"""Run the searches for every N* at once on an executor; keep every batch; resume from what is kept."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from markov_theory._processes import interrupts_held, worker_processes
from markov_theory.dictionary import Dictionary
from markov_theory.success import failures
from markov_theory.sweep.sample_complexity import BATCH, Located, Request, locate
from markov_theory.sweep.specification import Cell, Specification
from markov_theory.sweep.store import Batch, BatchKey, Store
from markov_theory.sweep.trials import prepare, run_batches

BATCHES_A_TASK = 8


@dataclass
class _Search:
    """A search in progress, the batches at hand for its cell, and those that its current requests still lack."""

    steps: Generator[list[Request], list[tuple[int, int]], Located]
    batches: dict[tuple[int, int], Batch]
    requests: list[Request] = field(default_factory=list)
    missing: int = 0


@dataclass(frozen=True)
class Effort:
    """What a run took: trials run (not those found in the store), seconds of work in them, seconds passed."""

    n_trials: int = 0
    work: float = 0.0
    duration: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """N* of each cell that could be located, the error of each that could not, and what the run took."""

    located: dict[Cell, Located]
    errors: dict[Cell, str]
    effort: Effort = field(default=Effort(), compare=False)


class Processes:
    """Worker processes of this machine.

    Parameters
    ----------
    n_jobs : int
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_workers = n_jobs

    def ready(self, specification: Specification, given: Dictionary | None = None) -> AbstractContextManager[Executor]:
        """The processes, ready for the trials of a sweep."""
        return local_processes(specification, self.n_workers, given)


def local_processes(
    specification: Specification, n_jobs: int, given: Dictionary | None = None
) -> AbstractContextManager[Executor]:
    """Processes of this machine that are ready for the trials of a sweep."""
    return worker_processes(n_jobs, prepare, specification, given)


def run_sweep(
    specification: Specification,
    store: Store,
    executor: Executor,
    on_progress: Callable[[int, int, int], None] = lambda done, cells, trials: None,
    checks: Callable[[Cell], tuple[int, ...]] = lambda cell: (),
    fail_fast: bool = False,
) -> Outcome:
    """Locate N* of every cell of the sweep.

    The searches are driven together, each by its own outcomes alone, so that the result depends neither on the
    number of workers nor on the order in which they finish. What the store has is not run again. A cell whose
    trials raise is recorded with the error.

    Parameters
    ----------
    specification : Specification
    store : Store
    executor : concurrent.futures.Executor
        Its workers have run `markov_theory.sweep.trials.prepare`.
    on_progress : callable
        Called with (cells located, cells, trials run now).
    checks : callable
        Further N to decide at a cell, say the bounds to be judged there.
    fail_fast : bool
        Whether to stop at the first cell that fails; otherwise the others go on.
    """
    started = time.perf_counter()
    driver = _Driver(specification, store, executor, on_progress, checks, fail_fast)
    for cell in driver.cells:
        driver.start(cell)
    driver.finish()
    effort = Effort(driver.n_trials, driver.work, time.perf_counter() - started)
    return Outcome(driver.located, driver.errors, effort)


class _Driver:
    def __init__(
        self,
        specification: Specification,
        store: Store,
        executor: Executor,
        on_progress: Callable[[int, int, int], None],
        checks: Callable[[Cell], tuple[int, ...]],
        fail_fast: bool,
    ) -> None:
        self.specification, self.store, self.executor = specification, store, executor
        self.on_progress, self.checks, self.fail_fast = on_progress, checks, fail_fast
        self.located: dict[Cell, Located] = {}
        self.errors: dict[Cell, str] = {}
        self.searches: dict[Cell, _Search] = {}
        self.finished: queue.SimpleQueue[tuple[Cell, int, range, Future]] = queue.SimpleQueue()
        self.cells = specification.cells()
        self.n_trials = 0
        self.work = 0.0

    def start(self, cell: Cell) -> None:
        """Begin a cell's search and run it as far as the store's batches carry it."""
        design = replace(self.specification.design(cell[0]), checks=self.checks(cell))
        search = _Search(locate(design), self.store.load(*cell))
        self.searches[cell] = search
        self._advance(cell, search, None)

    def finish(self) -> None:
        """Handle results until every search has ended."""
        self._report()
        while self.searches:
            arrivals = [self.finished.get()]
            while not self.finished.empty():
                arrivals.append(self.finished.get())
            self._keep(arrivals)
            for cell, _, batches, _ in arrivals:
                search = self.searches.get(cell)
                if search is None:
                    continue
                search.missing -= len(batches)
                if search.missing == 0:
                    self._advance(cell, search, self._tallies(cell, search))
            self._report()

    def _advance(self, cell: Cell, search: _Search, outcomes: list[tuple[int, int]] | None) -> None:
        """Send outcomes to a search, and again as long as its requests are all at hand; submit what is not."""
        try:
            while True:
                search.requests = next(search.steps) if outcomes is None else search.steps.send(outcomes)
                wanted = [(r.n_samples, b) for r in search.requests for b in r.batches]
                search.missing = sum(key not in search.batches for key in wanted)
                if search.missing:
                    break
                outcomes = self._tallies(cell, search)
        except StopIteration as end:
            self.located[cell] = end.value
            del self.searches[cell]
            return
        for request in search.requests:
            lacking = [b for b in request.batches if (request.n_samples, b) not in search.batches]
            for chunk in _consecutive(lacking):
                self._submit(cell, request.n_samples, chunk)

    def _submit(self, cell: Cell, n_samples: int, batches: range) -> None:
        with interrupts_held():
            future = self.executor.submit(run_batches, *cell, n_samples, batches)
        future.add_done_callback(lambda done: self.finished.put((cell, n_samples, batches, done)))

    def _keep(self, arrivals: list[tuple[Cell, int, range, Future]]) -> None:
        """Store what arrived in one transaction; a failed task ends its cell with the error."""
        results: list[tuple[BatchKey, Batch]] = []
        for cell, n, batches, future in arrivals:
            error = _error(future)
            if error is not None:
                if not isinstance(error, Exception):
                    raise error
                self.errors.setdefault(cell, f"{type(error).__name__}: {error}")
                self.searches.pop(cell, None)
                if self.fail_fast:
                    self.searches.clear()
                continue
            for batch, result in zip(batches, future.result(), strict=True):
                results.append(((*cell, n, batch), result))
                if cell in self.searches:
                    self.searches[cell].batches[n, batch] = result
        self.store.save(results)
        self.n_trials += BATCH * len(results)
        self.work += sum(batch.seconds for _, batch in results)

    def _tallies(self, cell: Cell, search: _Search) -> list[tuple[int, int]]:
        epsilon = cell[0]["epsilon"]
        tallies = []
        for request in search.requests:
            batches = [search.batches[request.n_samples, b] for b in request.batches]
            tallies.append((sum(b.kl.size for b in batches), sum(failures(b.kl, epsilon) for b in batches)))
        return tallies

    def _report(self) -> None:
        self.on_progress(len(self.located) + len(self.errors), len(self.cells), self.n_trials)


def _error(future: Future) -> BaseException | None:
    try:
        return future.exception()
    except CancelledError:
        raise RuntimeError(
            "the engine dropped trials that it was to run (is it still there?); the same command goes on from here"
        ) from None


def _consecutive(batches: list[int]) -> Iterator[range]:
    """Cut batch numbers into ranges of consecutive ones, none longer than a task."""
    first = 0
    for i in range(1, len(batches) + 1):
        if i == len(batches) or batches[i] != batches[i - 1] + 1 or i - first == BATCHES_A_TASK:
            yield range(batches[first], batches[i - 1] + 1)
            first = i
