"""How a result was made: command, machine, date, duration and versions, kept beside it in ``provenance.json``."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("markov-theory", "numpy", "scipy", "cvxpy", "scikit-learn")
PROVENANCE = "provenance.json"
UNDER_WAY, FINISHED, INTERRUPTED = "under way", "finished", "interrupted"


def versions() -> dict[str, str]:
    """Versions of Python and of what the numbers depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found


@contextmanager
def recorded(folder: Path, result: str, command: str, n_jobs: int, **about: Any) -> Iterator[dict[str, Any]]:
    """Keep in ``provenance.json`` how a result was made; numbers do not depend on it.

    The record is written when the run starts and again when it ends, whichever way; one that still says "under way"
    is of a run that goes on, or was killed.

    Parameters
    ----------
    folder : Path
        Of the result; made if it is missing.
    result : str
        What the run makes, say ``"sweep"``.
    command : str
        As it can be typed again.
    n_jobs : int
    about : dict
        What else is to be told.

    Yields
    ------
    dict
        The record, to be added to.
    """
    earlier = _earlier(folder)
    begun = time.perf_counter()
    record: dict[str, Any] = {
        "result": result, "command": command, "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": None, "outcome": UNDER_WAY, "jobs": n_jobs, "machine": machine(), "versions": versions(), **about,
    }  # fmt: skip
    _write_runs(folder, [*earlier, record])
    try:
        yield record
        record["outcome"] = FINISHED
    except BaseException as error:
        record["outcome"] = INTERRUPTED if isinstance(error, KeyboardInterrupt) else f"{type(error).__name__}: {error}"
        raise
    finally:
        record["seconds"] = time.perf_counter() - begun
        _write_runs(folder, [*earlier, record])


def runs(folder: Path) -> list[dict[str, Any]]:
    """Every recorded run in a folder, the first one first; none if there is no ``provenance.json``.

    Raises
    ------
    ValueError
        If that file is not what `recorded` writes.
    """
    path = folder / PROVENANCE
    try:
        found = json.loads(path.read_text(encoding="utf-8"))["runs"]
        usual = {"result", "command", "started", "seconds", "outcome", "jobs", "machine", "versions"}
        if not all(usual <= set(run) for run in found):
            raise KeyError(usual)
    except FileNotFoundError:
        return []
    except (ValueError, TypeError, KeyError):
        raise ValueError(f"{path} holds no record of runs: remove it") from None
    return list(found)


def machine() -> dict[str, str]:
    """System, processor and number of cores of this machine."""
    processor = platform.processor()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), processor)
    except OSError:  # not Linux
        pass
    known = {"system": platform.platform(), "processor": processor, "cores": str(os.cpu_count() or "")}
    return {name: value for name, value in known.items() if value}


def _earlier(folder: Path) -> list[dict[str, Any]]:
    """Recorded runs, none if they cannot be read: a broken note stops no run."""
    try:
        return runs(folder)
    except ValueError:
        return []


def _write_runs(folder: Path, records: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{PROVENANCE}.{os.getpid()}"
    partial.write_text(json.dumps({"runs": records}, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, folder / PROVENANCE)
