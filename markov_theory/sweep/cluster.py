"""The workers of a Dask cluster that somebody else started and keeps: ``--engine dask:ADDRESS``."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import uuid
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

from markov_theory.dictionary import Dictionary
from markov_theory.sweep.bundling import Bundle, Bundling
from markov_theory.sweep.specification import Specification
from markov_theory.sweep.trials import Trials, use

TIMEOUT = 10  # seconds to wait for a scheduler
KEPT_SWEEPS = 2  # that a worker process keeps prepared

_turn = threading.Lock()


@dataclass(frozen=True)
class Sweep:
    """What a worker is sent once to run the trials of a sweep; only that of the same run is equal.

    Attributes
    ----------
    run : str
        Names the run of the command.
    specification : Specification
    given : Dictionary or None
    expected : dict
        Versions and fingerprints of code on the machine of the command.
    """

    run: str
    specification: Specification = field(compare=False)
    given: Dictionary | None = field(compare=False)
    expected: dict[str, str] = field(compare=False)


class Cluster:
    """A connection to the scheduler of a Dask cluster.

    Parameters
    ----------
    address : str
        Of the scheduler: ``tcp://host:port``, ``tls://host:port`` or ``host:port``.

    Raises
    ------
    ValueError
        If Dask is not installed, or no scheduler answers at the address within `TIMEOUT` seconds.
    """

    def __init__(self, address: str) -> None:
        try:
            from distributed import Client
            from distributed.comm import get_address_host_port
        except ImportError as error:
            raise ValueError(
                f"--engine dask:{address} needs Dask ({error}): pip install markov-theory[cluster]"
            ) from None
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what goes wrong is said here, in one line
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
        address = address if "://" in address else f"tcp://{address}"
        try:
            get_address_host_port(address, strict=True)
        except ValueError as error:
            raise ValueError(f"--engine wants dask:tcp://HOST:PORT, got dask:{address} ({error})") from None
        try:
            kind = asyncio.run(asyncio.wait_for(_kind(address), TIMEOUT))
            if kind != "Scheduler":
                raise OSError(f"a {kind} does")
            self._client = Client(address, timeout=TIMEOUT, set_as_default=False)
        except Exception as error:  # whatever answers there
            reason = " ".join(str(error).split()) or "no answer"
            raise ValueError(f"no Dask scheduler answers at {address} within {TIMEOUT} s ({reason})") from None

    @property
    def n_workers(self) -> int:
        """Workers that are there now."""
        return len(self._client.nthreads())

    def check(self, specification: Specification) -> None:
        """Raise ValueError if a worker that is there now cannot run the trials of the sweep."""
        told = self._client.run(unfit, specification, expected_of(specification), on_error="return")
        for worker, reason in sorted(told.items()):
            if isinstance(reason, BaseException):
                reason = f"{type(reason).__name__}: {reason}; is markov-theory installed there?"
            if reason:
                raise ValueError(f"the worker at {worker} cannot run this sweep: {reason}")

    @contextmanager
    def ready(self, specification: Specification, given: Dictionary | None = None) -> Iterator[Executor]:
        """The cluster's workers, present and future, ready for the trials of a sweep.

        What is not done when the context ends is cancelled; the cluster itself is left as it is.
        """
        run = f"sweep-{uuid.uuid4().hex}"
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # once, and unlike scattered data never lost
            sweep = self._client.submit(Sweep, run, specification, given, expected_of(specification), key=run)
        executor = self._client.get_executor(pure=False)
        bundling = Bundling(lambda bundle: executor.submit(run_bundle, sweep, bundle), lambda: self.n_workers)
        try:
            yield bundling
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would leave tasks behind
            raise
        finally:
            bundling.shutdown()
            executor.shutdown(wait=False)

    def close(self) -> None:
        """Leave the cluster."""
        self._client.close()


async def _kind(address: str) -> str:
    """What answers at an address; asked before there is a client, which waits for ever for one that is mute."""
    from distributed import rpc
    from distributed.security import Security

    there = rpc(address, timeout=TIMEOUT, connection_args=Security().get_connection_args("client"))
    try:
        return (await there.identity())["type"]
    finally:
        await there.close_rpc()


def unfit(specification: Specification, expected: dict[str, str]) -> str:
    """Why this process would not get the same numbers; empty if it would."""
    try:
        there = expected_of(specification)
    except (ValueError, TypeError) as error:
        return f"{error}; install its package there, or start the workers with its folder on PYTHONPATH"
    for name, value in expected.items():
        if there[name] != value:
            return f"its {name} is {there[name]}, that of the machine of this command is {value}"
    return ""


def expected_of(specification: Specification) -> dict[str, str]:
    """What must be equal on a worker: the sweep, versions, and fingerprints of code."""
    for name in specification.estimators:
        specification.estimator(name)  # imports what is not built in
    return specification.identity() | specification.own_code()


def run_bundle(sweep: Sweep, bundle: Bundle) -> Any:
    """Make calls as in a process that is prepared for the sweep and has one thread of linear algebra."""
    with _turn:  # one at a time, however many threads the worker has
        trials, pools = _ready(sweep)
        use(trials)
        with pools.limit(limits=1):
            return bundle.run()


@lru_cache(maxsize=KEPT_SWEEPS)
def _ready(sweep: Sweep) -> tuple[Trials, ThreadpoolController]:
    if reason := unfit(sweep.specification, sweep.expected):
        raise RuntimeError(f"a worker that joined cannot run this sweep: {reason}")
    return Trials(sweep.specification, sweep.given), ThreadpoolController()
