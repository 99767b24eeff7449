"""A verification on a page: every claim with its verdict and decisive number; or the planted false statements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markov_theory.provenance import runs
from markov_theory.report.content import (
    BAD,
    GOOD,
    Cell,
    Part,
    Table,
    count,
    table,
    verdict_cell,
)
from markov_theory.report.provenance import (
    module_command,
    reproduced,
    run_date,
    run_facts,
    run_table,
    same_version,
    version_fact,
)
from markov_theory.verify.claims import LEVEL, Finding
from markov_theory.verify.report import decisive, load
from markov_theory.verify.verdict import FAILED, HOLDS, INCONCLUSIVE, VIOLATED

KILLED, SURVIVED = "refuted", "not refuted"
RESULTS = {"claims": "verification", "mutants": "planted false statements"}
MEANINGS = {
    "tested": "instances tried",
    "decisive number": "at the instance that decides, with its interval",
    "slack": "bound over N* (upper) or N* over bound (lower) at most: at the tightest instance found",
    "method": "exact: enumerated; statistical: sampled",
}
EXACT = (
    "Exact checks carry no error probability: the failure probability is enumerated, and its interval contains it up "
    "to rounding. “Holds” says that a search found no counterexample among the instances tried, which is no proof."
)
STATISTICAL = (
    "Statistical checks: by Holm's correction over the whole verification, any of them is wrongly “violated” with "
    f"probability at most {LEVEL:.0%}; “holds” needs a confidence bound at that level, shared evenly by all of them."
)
Record = Mapping[str, Any]


def verify_part(path: Path) -> Part:
    """Tell of a stored verification, ``claims.json`` or ``mutants.json``.

    Raises
    ------
    ValueError
        If the file is damaged or of another version.
    """
    document, findings = _read(path)
    result = path.stem
    made = [run for run in runs(path.parent) if run["result"] == result]
    records: list[Record] = document["claims"]
    mutants = result == "mutants"
    statistical = any(record["method"] == "statistical" for record in records)
    return Part(
        name=path.parent.resolve().name,
        kind=RESULTS[result],
        date=run_date(made),
        **(_mutant_verdict(records) if mutants else _claim_verdict(records)),
        verdicts=(_verdict_table(records, findings, mutants), *_factor_table(document["factors"])),
        errors=(EXACT, *((STATISTICAL,) if statistical else ())),
        tables=(_whole(records, f"Everything that was found: {result}.csv"),),
        runs=run_table(made),
        facts=(
            *run_facts(made, str(document["seed"])),
            version_fact(document["versions"]),
            ("effort", document["effort"]),
        ),
        commands=tuple(reproduced(made) or [_rebuilt(document, mutants)]),
    )


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Finding]]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        same_version(document["versions"]["markov-theory"], path)
        if {"seed", "effort", "factors"} <= set(document) and all("statement" in r for r in document["claims"]):
            return document, load(path)
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError):
        pass
    raise ValueError(f"{path} is half-written or of another version: verify again")


def _claim_verdict(records: list[Record]) -> dict[str, Any]:
    counts = Counter(record["verdict"] for record in records)
    worst = next((v for v in (VIOLATED, FAILED, INCONCLUSIVE, HOLDS) if counts[v]), INCONCLUSIVE)
    said = ", ".join(f"{number} {verdict}" for verdict, number in counts.items())
    bad = {verdict: [r["label"] for r in records if r["verdict"] == verdict] for verdict in (VIOLATED, FAILED)}
    named = "".join(f"; {verdict}: {', '.join(labels)}" for verdict, labels in bad.items() if labels)
    return {"verdict": verdict_cell(worst), "summary": f"{count(len(records), 'claim')}: {said}{named}."}


def _mutant_verdict(records: list[Record]) -> dict[str, Any]:
    killed = sum(record["verdict"] == VIOLATED for record in records)
    survivors = [record["label"] for record in records if record["verdict"] != VIOLATED]
    named = f"; not refuted: {', '.join(survivors)}" if survivors else ""
    summary = f"{killed} of {count(len(records), 'false statement')} refuted{named}."
    return {"verdict": _refutation(not survivors) if records else verdict_cell(INCONCLUSIVE), "summary": summary}


def _verdict_table(records: list[Record], findings: Mapping[str, Finding], mutants: bool) -> Table:
    rows = [
        (
            record["label"],
            _refutation(record["verdict"] == VIOLATED) if mutants else verdict_cell(record["verdict"]),
            decisive(findings[record["label"]]),
            findings[record["label"]].slack,
            record["method"],
            record["tested"],
            record["origin"],
            record["statement"],
        )
        for record in records
    ]
    what = "statement" if mutants else "claim"
    names = (what, "verdict", "decisive number", "slack", "method", "tested", "origin", "says")
    return table("Planted false statements" if mutants else "Claims", names, rows, MEANINGS)


def _refutation(killed: bool) -> Cell:
    """Of a false statement: here it is good news that it is violated."""
    return Cell(KILLED, KILLED, GOOD) if killed else Cell(SURVIVED, SURVIVED, BAD)


def _factor_table(factors: Mapping[str, Record]) -> tuple[Table, ...]:
    names = ("bound", "slack", "survives", "killed")
    rows = [(label, *(found[name] for name in names[1:])) for label, found in factors.items()]
    meanings = {
        "slack": "at most: that of the tightest instance found",
        "survives": "largest factor by which the bound can be cut before the search notices",
        "killed": "least factor that the search notices",
    }
    return (table("How much of a bound the search misses", names, rows, meanings),) if rows else ()


def _whole(records: list[Record], caption: str) -> Table:
    names = list(records[0]) if records else ["label", "verdict"]
    rows = [[json.dumps(r[name]) if name == "instance" else r[name] for name in names] for r in records]
    return table(caption, names, rows, folded=True)


def _rebuilt(document: Record, mutants: bool) -> tuple[str, str]:
    """The command as far as the stored settings give it."""
    flags = ["--mutants"] * mutants + ["--seed", str(document["seed"])]
    command = module_command("verify", f"--{document['effort']}", *flags)
    return "From the stored settings (which claims were chosen was not recorded)", command
