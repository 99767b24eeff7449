"""What the given paths hold: folders of sweeps and verifications, or of such folders, and files of plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from markov_theory.report.content import Part
from markov_theory.report.plan_part import is_plan, plan_part
from markov_theory.report.stored_sweep import STORE, StoredSweep
from markov_theory.report.sweep_part import sweep_part
from markov_theory.report.verify_part import RESULTS, verify_part


def parts_of(paths: Sequence[Path]) -> list[Part]:
    """Read the results at some paths, in their order.

    Parameters
    ----------
    paths : sequence of Path
        Each a folder of `markov_theory.sweep` or `markov_theory.verify`, a folder of such folders, or the JSON of a
        plan.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such path, nothing to report in it, or what it holds is damaged or of another version.
    """
    return [part for path in dict.fromkeys(paths) for part in _parts_at(path)]


def _parts_at(path: Path) -> list[Part]:
    if path.is_file():
        return [plan_part(path)]
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder or file {path}")
    found = list(_parts_in(path))
    if not found:
        below = sorted(folder for folder in path.iterdir() if folder.is_dir())
        found = [part for folder in below for part in _parts_in(folder)]
    if not found:
        wanted = ", ".join([STORE, *(f"{result}.json" for result in RESULTS)])
        raise ValueError(f"{path} holds no results: none of {wanted}, and no plan")
    return found


def _parts_in(folder: Path) -> Iterator[Part]:
    if (folder / STORE).exists():
        yield sweep_part(StoredSweep.read(folder))
    elif (folder / "cells.csv").exists():
        raise ValueError(f"{folder} has the tables of a sweep and not its {STORE}: run the sweep again")
    for result in RESULTS:
        path = folder / f"{result}.json"
        if path.exists():
            yield verify_part(path)
    for path in sorted(folder.glob("*.json")):
        if is_plan(path):
            yield plan_part(path)
