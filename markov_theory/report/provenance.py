"""How results were made, for a page: the recorded runs as a table, versions and machine as facts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from markov_theory.provenance import FINISHED, UNDER_WAY
from markov_theory.report.content import Table, table

Runs = Sequence[Mapping[str, Any]]
UNKNOWN = "not recorded"


def same_version(made_by: str, path: Path) -> None:
    """Refuse results of another version of this package.  Raises ValueError saying what to do."""
    own = version("markov-theory")
    if made_by != own:
        raise ValueError(
            f"{path} was written by version {made_by} of markov-theory, this is {own}: "
            "install that version, or make the result again"
        )


def duration(seconds: float | None) -> str:
    """A duration for a reader.

    Examples
    --------
    >>> duration(3.21), duration(83), duration(7384), duration(None)
    ('3.2 s', '1 min 23 s', '2 h 3 min', 'unknown')
    """
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours} h {minutes_left} min" if hours else f"{minutes} min {rest} s"


def run_table(runs: Runs) -> tuple[Table, ...]:
    """A row a run; nothing if none was recorded."""
    if not runs:
        return ()
    names = ("started (UTC)", "duration (s)", "how it ended", "processes", "command")
    rows = [
        (run["started"].replace("+00:00", "").replace("T", " "), run["seconds"], _ended(run), run["jobs"],
         run["command"])
        for run in runs
    ]  # fmt: skip
    return (table("Runs", names, rows),)


def _ended(run: Mapping[str, Any]) -> str:
    return "not yet, or killed" if run["outcome"] == UNDER_WAY else str(run["outcome"])


def run_facts(runs: Runs, seed: str) -> list[tuple[str, str]]:
    """Seed, date, duration and machine, as far as they were recorded."""
    facts = [("seed", seed)]
    if not runs:
        return [*facts, ("date, duration, machine, command", UNKNOWN)]
    last = runs[-1]
    ended = [run["seconds"] for run in runs if run["seconds"] is not None]
    more = f" in {len(runs)} runs" if len(runs) > 1 else ""
    killed = "" if len(ended) == len(runs) else ", not counting runs that were killed or go on"
    machines = dict.fromkeys("; ".join(f"{k}: {v}" for k, v in run["machine"].items()) for run in runs)
    return [
        *facts,
        ("date", run_date(runs)),
        ("duration", duration(sum(ended) if ended else None) + more + killed),
        ("machine", " / ".join(machines)),
        ("processes", str(last["jobs"])),
    ]


def run_date(runs: Runs) -> str:
    """The first and the last day on which a run started; ``""`` if none was recorded."""
    if not runs:
        return ""
    days = [run["started"][:10] for run in runs]
    return " to ".join(dict.fromkeys((days[0], days[-1])))


def version_fact(versions: Mapping[str, str]) -> tuple[str, str]:
    """Versions in one line."""
    return "versions", ", ".join(f"{name} {number}" for name, number in versions.items())


def reproduced(runs: Runs) -> list[tuple[str, str]]:
    """Every different command that was run to the end, or at least begun, with words before it."""
    finished = [run["command"] for run in runs if run["outcome"] == FINISHED]
    commands = dict.fromkeys(finished or [run["command"] for run in runs])
    return [("As it was run", command) for command in commands]


def module_command(module: str, *arguments: str) -> str:
    """A command that can be typed."""
    return shlex.join(["python", "-m", f"markov_theory.{module}", *arguments])
