"""What a verification shows and keeps: tables on screen, JSON and CSV in a folder, with versions and seed.

How a result was made (command, machine, date, duration) is kept beside it, in ``provenance.json``.
"""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from markov_theory.verify.claims import Claim, Finding, Settings
from markov_theory.verify.execution import Factor
from markov_theory.verify.mutants import Mutant
from markov_theory.verify.search import FULL
from markov_theory.verify.verdict import HOLDS, VIOLATED

COLOURS = {HOLDS: "green", VIOLATED: "bold red"}
PACKAGES = ("markov-theory", "numpy", "scipy", "cvxpy", "scikit-learn")
PROVENANCE = "provenance.json"
UNDER_WAY, FINISHED, INTERRUPTED = "under way", "finished", "interrupted"
Rows = Sequence[tuple[Claim | Mutant, Finding]]
_NO_FACTOR = Factor(math.nan, math.nan, math.nan)


def claim_table(rows: Rows, factors: Mapping[str, Factor] | None = None) -> Table:
    """One row a claim; beside a false one the factors by which the true one can be cut, if they are given."""
    planted = any(isinstance(claim, Mutant) for claim, _ in rows)
    table = Table(title="planted false statements" if planted else "claims", title_justify="left")
    cut = ("survives, cut by", "killed, cut by") if factors is not None else ()
    for heading in ("claim", "origin", "tested", "decisive number", "slack <=", *cut, "verdict"):
        table.add_column(heading, justify="right" if heading in ("slack <=", *cut) else "left", overflow="fold")
    for claim, finding in rows:
        colour = COLOURS.get(finding.verdict, "yellow")
        beside = (factors or {}).get(claim.of if isinstance(claim, Mutant) else claim.label, _NO_FACTOR)
        table.add_row(
            name_of(claim),
            getattr(claim, "origin", "planted"),
            f"{finding.method}: {finding.tested}",
            decisive(finding),
            _short(finding.slack),
            *((_short(beside.survives), _short(beside.killed)) if cut else ()),
            f"[{colour}]{finding.verdict}[/]",
        )
    return table


def factor_table(factors: Mapping[str, Factor]) -> Table:
    """One row a statement: how much of it the search does not miss."""
    table = Table(title="how much of a statement the search misses", title_justify="left")
    for heading in ("statement", "slack <=", "survives, cut by", "killed, cut by"):
        table.add_column(heading, justify="left" if heading == "statement" else "right")
    for label, factor in factors.items():
        table.add_row(label, *map(_short, (factor.slack, factor.survives, factor.killed)))
    return table


def _short(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.3g}"


def decisive(finding: Finding) -> str:
    """Write the decisive number with its interval and its limit.

    Examples
    --------
    >>> decisive(Finding("holds", "", "P(fail)", 0.01, 0.0, 0.02, 0.05, method="statistical"))
    'P(fail): 0.01 [0, 0.02], must be <= 0.05'
    """
    if not finding.number:
        return ""
    shown = f"{finding.value:.4g}"
    if f"{finding.low:.4g}" != shown or f"{finding.high:.4g}" != shown:
        shown += f" [{finding.low:.4g}, {finding.high:.4g}]"
    return f"{finding.number}: {shown}" + (
        "" if math.isnan(finding.limit) else f", must be {finding.relation} {finding.limit:.4g}"
    )


def name_of(claim: Claim | Mutant) -> str:
    """Label of a claim, name of a mutant."""
    return claim.label if isinstance(claim, Claim) else claim.name


def save(
    rows: Rows, settings: Settings, folder: Path, name: str, factors: Mapping[str, Factor] | None = None
) -> list[Path]:
    """Write ``<name>.json`` (everything, with versions and seed) and ``<name>.csv`` (one row a claim).

    Returns
    -------
    list of Path
    """
    folder.mkdir(parents=True, exist_ok=True)
    records = [_record(claim, finding) for claim, finding in rows]
    document = {
        "effort": "full" if settings.effort == FULL else "quick",
        "seed": settings.seed,
        "versions": versions(),
        "claims": records,
        "factors": {label: asdict(factor) for label, factor in (factors or {}).items()},
    }
    paths = [folder / f"{name}.json", folder / f"{name}.csv"]
    paths[0].write_text(json.dumps(_plain(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    flat = [record | {"instance": json.dumps(_plain(record["instance"]))} for record in records]
    pd.DataFrame(flat).to_csv(paths[1], index=False)
    return paths


def load(path: Path) -> dict[str, Finding]:
    """Read the findings of a saved report, by claim.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it holds no report.
    """
    document = json.loads(path.read_text())
    if not isinstance(document, dict) or "claims" not in document:
        raise ValueError(f"{path} holds no report of a verification")
    fields = Finding.__dataclass_fields__
    return {
        record["label"]: Finding(**{key: _restored(record[key], key) for key in fields})
        for record in document["claims"]
    }


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


def _record(claim: Claim | Mutant, finding: Finding) -> dict[str, Any]:
    if isinstance(claim, Claim):
        about = {"label": claim.label, "statement": claim.statement, "origin": claim.origin}
    else:
        about = {"label": claim.name, "statement": f"false version of {claim.of}", "origin": "planted"}
    return about | {key: getattr(finding, key) for key in Finding.__dataclass_fields__}


def _plain(value: Any) -> Any:
    """Numbers and lists that JSON has; numbers that are not finite as text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _restored(value: Any, key: str) -> Any:
    return float(value) if isinstance(value, str) and key in ("value", "low", "high", "limit", "slack") else value
