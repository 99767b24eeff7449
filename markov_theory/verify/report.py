"""What a verification shows and keeps: tables on screen, JSON and CSV in a folder, with versions and seed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.table import Table

from markov_theory.provenance import versions
from markov_theory.verify.claims import Claim, Finding, Settings
from markov_theory.verify.execution import Factor
from markov_theory.verify.mutants import Mutant
from markov_theory.verify.search import FULL
from markov_theory.verify.verdict import HOLDS, VIOLATED

COLOURS = {HOLDS: "green", VIOLATED: "bold red"}
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
