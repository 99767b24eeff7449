"""Measuring on worker processes, and what came out as tables."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from markov_theory._processes import apply_all
from markov_theory.dependence.arms import ARMS, MEASURES
from markov_theory.dependence.decision import Growth, Observations, Rule
from markov_theory.dependence.series import Arm, Claim, Measured, Setting
from markov_theory.provenance import versions
from markov_theory.verify.verdict import VIOLATED


@dataclass(frozen=True)
class Task:
    """One measurement: which, where, and which repeat."""

    measure: str
    x: int
    repeat: int


@dataclass(frozen=True)
class Judged:
    """A claim with what the measurements say.

    Attributes
    ----------
    arm : Arm
    claim : Claim
    points : DataFrame
        Columns ``x``, ``repeat``, ``value``, ``low``, ``high`` (in the claim's quantity).
    growth : Growth or None
    verdict : str
        On the prediction.
    rival : str
        On the statement that must be refuted.
    """

    arm: Arm
    claim: Claim
    points: pd.DataFrame
    growth: Growth | None
    verdict: str
    rival: str

    @property
    def refuted(self) -> bool:
        """Whether the rival is refuted, as it must be."""
        return self.rival == VIOLATED


def tasks_of(numbers: Iterable[int], setting: Setting) -> list[Task]:
    """All measurements of some arms, the longest ones (large x) first."""
    tasks = [
        Task(measure.key, x, repeat)
        for number in numbers
        for measure in ARMS[number].measures
        for x in measure.grids[setting.effort]
        for repeat in range(measure.repeats[setting.effort])
    ]
    return sorted(tasks, key=lambda task: -task.x)


def perform(task: Task, setting: Setting) -> Measured:
    """Make one measurement."""
    return MEASURES[task.measure].run(task.x, task.repeat, setting)


def measure_all(
    tasks: Sequence[Task], setting: Setting, n_jobs: int = 1, on_progress: Callable[[int], None] = lambda done: None
) -> pd.DataFrame:
    """Make measurements on `n_jobs` processes (in this one if it is 1).

    Returns
    -------
    DataFrame
        One row a measurement, in an order of its own: ``measure``, ``x``, ``repeat``, ``n_star``, ``low``, ``high``,
        ``n_trials``, and a column for every fact.
    """
    found = apply_all(partial(perform, setting=setting), tasks, n_jobs, on_progress)
    rows = []
    for task, one in zip(tasks, found, strict=True):
        numbers = {"n_star": one.n_star, "low": one.low, "high": one.high, "n_trials": one.n_trials}
        rows.append(asdict(task) | numbers | one.facts)
    order = list(MEASURES)
    table = pd.DataFrame(rows).sort_values(
        ["measure", "x", "repeat"], key=lambda column: column.map(order.index) if column.name == "measure" else column
    )
    return table.reset_index(drop=True)


def points_of(claim: Claim, table: pd.DataFrame) -> pd.DataFrame:
    """Measured values in a claim's quantity."""
    rows = table[table.measure == claim.measure]
    scale = rows[claim.scale].to_numpy(float) if claim.scale else 1.0
    columns = {"value": rows.n_star * scale, "low": rows.low.clip(lower=0) * scale, "high": rows.high * scale}
    return pd.DataFrame({"x": rows.x, "repeat": rows.repeat, **columns}).reset_index(drop=True)


def observations(claim: Claim, points: pd.DataFrame) -> Observations:
    """The numbers that a claim's rules judge."""
    x = points.x.to_numpy(float)
    at = x if claim.against is None else np.array([claim.against(value) for value in x.tolist()])
    return Observations(at, points.value, points.low, points.high)


def judge(claim: Claim, points: pd.DataFrame, rule: Rule | None = None) -> str:
    """The verdict on a claim by its measured points, or on another rule in its place."""
    return (claim.rule if rule is None else rule).judge(observations(claim, points))


def judge_all(table: pd.DataFrame) -> list[Judged]:
    """Judge every claim for which there are measurements."""
    judged = []
    for arm in ARMS.values():
        for claim in arm.claims:
            if not (table.measure == claim.measure).any():
                continue
            points = points_of(claim, table)
            growth = Growth.of(observations(claim, points))
            verdict, rival = judge(claim, points), judge(claim, points, claim.rival)
            judged.append(Judged(arm, claim, points, growth, verdict, rival))
    return judged


def records(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """One record a claim, for tables and files."""
    return [_record(one) for one in judged]


def _record(one: Judged) -> dict[str, Any]:
    claim, points, symbol = one.claim, one.points, one.arm.symbol
    axis = symbol if claim.against is None else f"min({symbol}, J-1)"
    first, last = (points[points.x == x].value.mean() for x in (points.x.min(), points.x.max()))
    record: dict[str, Any] = {
        "claim": claim.label,
        "arm": one.arm.title,
        "prediction": claim.statement,
        "rule": claim.rule.words(axis),
        "obtained": MEASURES[claim.measure].obtained,
        "quantity": claim.quantity,
        "axis": axis,
        "x_first": int(points.x.min()),
        "x_last": int(points.x.max()),
        "value_first": float(first),
        "value_last": float(last),
    }
    for name in ("a", "b", "p", "mean"):
        numbers = (math.nan,) * 3 if one.growth is None else getattr(one.growth, name)
        record |= dict(zip((name, f"{name}_low", f"{name}_high"), map(float, numbers), strict=True))
    return record | {"verdict": one.verdict, "rival": claim.rival.words(axis), "rival_refuted": one.refuted}


def save(judged: Sequence[Judged], table: pd.DataFrame, setting: Setting, folder: Path) -> list[Path]:
    """Write ``dependence.csv`` (a row a measurement), ``claims.csv`` and ``claims.json`` (with setting, versions)."""
    folder.mkdir(parents=True, exist_ok=True)
    told = records(judged)
    paths = [folder / "dependence.csv", folder / "claims.csv", folder / "claims.json"]
    table.to_csv(paths[0], index=False)
    pd.DataFrame(told).to_csv(paths[1], index=False)
    document = {**asdict(setting), "versions": versions(), "claims": [_plain(record) for record in told]}
    paths[2].write_text(json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return paths


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    """Numbers that are not finite as null, which is what JSON has."""
    return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in record.items()}
