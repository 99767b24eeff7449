"""A sweep on a page: how its bounds fared, N* drawn and in tables, how it grows, and how it was made."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from markov_theory._checks import MAX_SAMPLES
from markov_theory.bounds import BOUNDS
from markov_theory.report.content import UNJUDGED, UNTRIED, Cell, Part, Table, count, table, verdict_cell
from markov_theory.report.figures import sample_complexity
from markov_theory.report.provenance import module_command, reproduced, run_date, run_facts, run_table, version_fact
from markov_theory.report.stored_sweep import StoredSweep
from markov_theory.sweep.axes import AXES
from markov_theory.sweep.sample_complexity import Design
from markov_theory.verify.verdict import HOLDS, INCONCLUSIVE, SILENT, VIOLATED

VERDICTS = (HOLDS, VIOLATED, INCONCLUSIVE, SILENT)
INCOMPLETE = "incomplete"
SHOWN_ERRORS = 5
MEANINGS = {
    **{axis.name: f"{axis.words} {axis.heading}" for axis in AXES.values()},
    "truth": "number of the planted truth",
    "truths": "planted truths at the point",
    "n_star": "N*: least N from which P(failure) ≤ δ, estimated (samples)",
    "low": "failure above δ is certified here (samples); −1: nowhere",
    "high": "failure at most δ is certified at every N tried from here on (samples)",
    "settled": "whether the interval (low, high] is within ±20 %",
    "trials": "trials run",
    "uncertified": "fits without the certificate that the bounds ask for",
    "support_margin": "γ_s (nats)",
    "small_epsilon": "whether ε ≤ γ_s/10",
    "guarantee": "class of estimators whose bounds speak of it",
    "median_n_star": "N* of the (lower) median truth (samples)",
    "worst_n_star": "N* of the worst truth (samples)",
    "verdicts": "of each upper bound, tried at N = bound",
    "violated": "truths at which a bound is violated",
}
FAIRNESS = "median N of the bound over N*, where both are finite and N* > 0"


def sweep_part(stored: StoredSweep) -> Part:
    """Tell of a stored sweep."""
    verdict, summary, warnings = _state(stored)
    name = _name(stored)
    return Part(
        name=name,
        kind="sweep",
        verdict=verdict,
        summary=summary,
        date=run_date(stored.runs),
        warnings=tuple(warnings),
        verdicts=(*_bound_table(stored), *_statement_table(stored), *_lacking_table(stored)),
        errors=_error_words(stored),
        figures=sample_complexity(stored),
        fits=_fit_table(stored),
        tables=tuple(_tables(stored)),
        runs=run_table(stored.runs),
        facts=tuple(_facts(stored)),
        files=(("sweep.toml", stored.specification),) if stored.specification else (),
        commands=tuple(_commands(stored)),
    )


def _name(stored: StoredSweep) -> str:
    """The name that the specification gives, or the folder's."""
    named = re.search(r'^name = (".*")$', stored.specification, flags=re.MULTILINE)
    return json.loads(named[1]) if named else stored.folder.resolve().name


def _verdict_of(text: str, label: str) -> str:
    """The verdict on one bound in a cell's ``verdicts``; ``""`` if there is none."""
    found = re.search(rf"(?:^| ){re.escape(label)}:({'|'.join(v.replace(' ', '-') for v in VERDICTS)})(?= |$)", text)
    return found[1].replace("-", " ") if found else ""


def _counts(stored: StoredSweep, label: str) -> dict[str, int]:
    texts = [] if stored.cells is None else list(stored.cells["verdicts"])
    judged = [_verdict_of(text, label) for text in texts]
    return {verdict: judged.count(verdict) for verdict in VERDICTS}


def _overall(counts: dict[str, int]) -> str:
    """The verdict on a bound over all truths: as bad as the worst one that says something."""
    order = (VIOLATED, INCONCLUSIVE, HOLDS, SILENT)
    return next((verdict for verdict in order if counts[verdict]), UNTRIED)


def _state(stored: StoredSweep) -> tuple[Cell, str, list[str]]:
    """The verdict on the sweep, a sentence, and what is not as it should be."""
    counts = {label: _counts(stored, label) for label in (*stored.labels, *stored.statements)}
    overall = [verdict for one in counts.values() if (verdict := _overall(one)) != UNTRIED]
    violated = [f"{label} at {count(one[VIOLATED], 'truth')}" for label, one in counts.items() if one[VIOLATED]]
    held = [label for label, one in counts.items() if _overall(one) == HOLDS]
    told = [f"violated: {', '.join(violated)}"] if violated else []
    told += [f"{', '.join(held)} hold{'s' * (len(held) == 1)} wherever tried"] if held else []
    unsure = [label for label, one in counts.items() if one[INCONCLUSIVE]]
    told += [f"{', '.join(unsure)} not decided at every truth"] if unsure else []
    whole = f"N* located at {stored.n_located:,} of {count(stored.n_cells, 'cell')}"
    warnings = list(_warnings(stored))
    worst = next((v for v in (VIOLATED, INCONCLUSIVE, HOLDS, SILENT) if v in overall), "no upper bound judged")
    unfinished = stored.cells is None or stored.n_located < stored.n_cells
    verdict = INCOMPLETE if unfinished and worst != VIOLATED else worst
    return verdict_cell(verdict), "; ".join([*told, whole]) + ".", warnings


def _warnings(stored: StoredSweep) -> Iterator[str]:
    missing = stored.n_cells - stored.n_located
    if missing > 0 or stored.cells is None:
        lacking = f": {count(missing, 'cell')} of {stored.n_cells:,} have no N* yet" if missing > 0 else ""
        yield (
            f"This sweep is incomplete{lacking}. "
            + ("No table has been written. " if stored.cells is None else "The tables hold the others. ")
            + "The command under “How to reproduce” goes on from what is stored."
        )
    if stored.failed:
        reasons = list(dict.fromkeys(stored.failed.values()))
        more = f"; and {count(len(reasons) - SHOWN_ERRORS, 'more reason')}" if len(reasons) > SHOWN_ERRORS else ""
        yield f"{count(len(stored.failed), 'cell')} failed: {'; '.join(reasons[:SHOWN_ERRORS])}{more}."
    if stored.runs and stored.runs[-1]["seconds"] is None:
        yield "The last run has not ended: it was killed, or it goes on."


def _stated(stored: StoredSweep, label: str) -> dict[str, Any]:
    """What a bound states: as recorded, or as the package has it."""
    bound = BOUNDS.get(label)
    usual = {fact: getattr(bound, fact, "") for fact in ("kind", "origin", "statement")}
    return usual | dict(stored.bounds.get(label, {}))


def _bound_table(stored: StoredSweep) -> tuple[Table, ...]:
    if stored.cells is None or not stored.labels:
        return ()
    cells = stored.typed(stored.cells)
    rows = [_bound_row(stored, label, cells) for label in stored.labels]
    names = ("bound", "verdict", *VERDICTS, "cells", "> 2^53", "N / N*", "kind", "estimators")
    meanings = {**dict.fromkeys(VERDICTS, "cells with this verdict"),
                "cells": "cells at which the bound speaks of the estimator", "N / N*": FAIRNESS,
                "> 2^53": "cells at which it exceeds 2^53 samples, which cannot be drawn"}  # fmt: skip
    stated = [(label, one["origin"], one["statement"]) for label in stored.labels for one in [_stated(stored, label)]]
    return (
        table("Bounds, tried at N = bound", names, rows, meanings),
        table("What the bounds state", ("bound", "origin", "statement"), stated),
    )


def _statement_table(stored: StoredSweep) -> tuple[Table, ...]:
    counted = {label: _counts(stored, label) for label in stored.statements}
    rows = [(label, verdict_cell(_overall(one)), *one.values()) for label, one in counted.items()]
    meanings = dict.fromkeys(VERDICTS, "cells with this verdict")
    return (table("Statements, checked exactly", ("statement", "verdict", *VERDICTS), rows, meanings),) if rows else ()


def _bound_row(stored: StoredSweep, label: str, cells: pd.DataFrame) -> tuple[Any, ...]:
    n, kind, counts = cells[label], _stated(stored, label)["kind"], _counts(stored, label)
    spoken = cells[n.notna()]
    finite = spoken[np.isfinite(spoken[label]) & np.isfinite(spoken.n_star) & (spoken.n_star > 0)]
    ratio = float((finite[label] / finite.n_star).median()) if len(finite) else None
    judged = kind == "upper" or any(counts.values())
    verdict = _overall(counts) if judged or spoken.empty else UNJUDGED
    numbers = [counts[one] if judged else None for one in VERDICTS]
    beyond = int((np.isfinite(n) & (n > MAX_SAMPLES)).sum())
    spoken_of = list(dict.fromkeys(spoken.estimator))
    return (label, verdict_cell(verdict), *numbers, len(spoken), beyond, ratio, kind, spoken_of)


def _lacking_table(stored: StoredSweep) -> tuple[Table, ...]:
    if not stored.lacking:
        return ()
    rows = []
    for key in stored.lacking:
        tried = stored.tried.get(key)
        numbers = (None, None) if tried is None else (tried.values, tried.trials)
        rows.append((*key, *numbers, stored.failed.get(key, "")))
    names = ("point", "truth", "estimator", "N tried", "trials", "error")
    return (table("Cells without N*", names, rows, {"N tried": "numbers of samples that have trials"}),)


def _error_words(stored: StoredSweep) -> tuple[str, ...]:
    """How often the verdicts are wrong, as `Design` has it."""
    level = Design(delta=0.5).level  # whatever δ is
    judged = 0 if stored.cells is None else int((stored.cells["verdicts"] != "").sum())
    if not judged:
        return ()
    return (
        f"At each cell the interval (low, high], and with it every verdict there, is wrong with probability at most "
        f"{level:.0%} (Clopper–Pearson bounds at the N tried, corrected for all of them and all looks). There is no "
        f"correction over the {count(judged, 'judged cell')}: up to {level * judged:.3g} may be expected to be wrong.",
        "“Holds”: failure is certified to be at most δ at N = bound and wherever it was measured beyond. “Violated”: "
        "failure is certified to exceed δ at or above the bound. A bound is reported by its worst truth.",
    )


def _fit_table(stored: StoredSweep) -> tuple[Table, ...]:
    rows = [
        (curve, fit["law"], name, *numbers, fit["residual"], fit["n_points"], fit.get("weight"), fit.get("verdict"))
        for curve, fits in stored.growth.items()
        for fit in fits
        for name, numbers in fit["parameters"].items()
    ]
    names = ("curve", "law", "parameter", "value", "low", "high", "residual", "points", "weight", "decides")
    meanings = {
        "low": "of the 95 % interval",
        "high": "of the 95 % interval",
        "residual": "root mean square of N*/fit − 1",
        "weight": "Akaike weight among the laws fitted to the same points: the share of the evidence",
    }
    return (table("Growth of N* (95 % intervals)", names, rows, meanings),) if rows else ()


def _tables(stored: StoredSweep) -> Iterator[Table]:
    for name, frame, caption in (
        ("summary", stored.summary, "N* over the truths at each point (samples)"),
        ("cells", stored.cells, "N* of every cell (samples)"),
    ):
        if frame is not None:
            yield _whole(frame, f"{caption}: {name}.csv", name == "cells")
    rows: dict[str, dict[str, str]] = stored.last("rows", {})
    if rows:
        quantities = list(dict.fromkeys(quantity for described in rows.values() for quantity in described))
        data = [[key, *(described.get(quantity, "") for quantity in quantities)] for key, described in rows.items()]
        yield table("Dictionaries" if len(rows) > 1 else "Dictionary", ["at", *quantities], data)


def _whole(frame: pd.DataFrame, caption: str, folded: bool) -> Table:
    return table(caption, list(frame.columns), frame.itertuples(index=False, name=None), MEANINGS, folded)


def _facts(stored: StoredSweep) -> Iterator[tuple[str, str]]:
    yield from run_facts(stored.runs, stored.setting("seed"))
    versions = {n.removeprefix("version of "): v for n, v in stored.settings.items() if n.startswith("version of ")}
    yield version_fact(stored.last("versions", {}) | versions)
    tried = stored.tried.values()
    yield "trials", f"{sum(one.trials for one in tried):,}"
    yield "work", f"{sum(one.seconds for one in tried):,.0f} s of sampling, solving and scoring"
    yield "uncertified fits", f"{sum(one.uncertified for one in tried):,}"
    for name, value in stored.settings.items():
        told = _unquoted(value)
        if told and name != "seed" and not name.startswith("version of "):
            yield name, told


def _unquoted(value: str) -> str:
    """A stored setting as a reader writes it: texts are stored as JSON."""
    return str(json.loads(value)) if value.startswith('"') else value


def _commands(stored: StoredSweep) -> Iterator[tuple[str, str]]:
    yield from reproduced(stored.runs)
    if stored.specification:
        spec, again = str(stored.folder / "sweep.toml"), "results/again"
        command = module_command("sweep", "--spec", spec, "--out", again)
        yield "From the specification below, in a new folder; same code and versions, same numbers", command
