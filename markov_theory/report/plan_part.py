"""A plan on a page: the recommended number of samples, what the trials say of it, and every statement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markov_theory.plan.simulation import LEVEL, NOT_SIMULATED
from markov_theory.report.content import Cell, Part, Table, plain, shown, table, verdict_cell
from markov_theory.report.provenance import UNKNOWN

ERRORS = (
    f"All intervals of one simulation hold at once with probability at least {1 - LEVEL:.0%} (Clopper–Pearson): its "
    f"verdict is wrong with probability at most {LEVEL:.0%}. A prediction promises nothing."
)
NEEDED = ("question", "dictionary", "truths", "requirements", "recommendation", "simulations", "parts", "binding")


def plan_part(path: Path) -> Part:
    """Tell of a stored plan.

    Raises
    ------
    ValueError
        If the file is damaged, or holds no plan of this version.
    """
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
        if all(name in plan for name in NEEDED):
            return _part(path, plan)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        pass
    raise ValueError(f"{path} holds no plan of this version, or is half-written: plan again with --json")


def is_plan(path: Path) -> bool:
    """Whether a file says that it is a plan."""
    try:
        return "requirements" in json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):
        return False


def _part(path: Path, plan: Mapping[str, Any]) -> Part:
    asked, advice = plan["question"], plan["recommendation"]
    tried = next((run["verdict"] for run in plan["simulations"] if run["at"] == "recommended"), NOT_SIMULATED)
    number = _quantity(advice["n_samples"])
    if number.exact == "inf":
        told = f"No statement vouches for any number of samples of {asked['estimator']}"
    else:
        told = f"Recommended for {asked['estimator']}: N = {number.text} samples of a new token ({advice['label']})"
    predicted = "" if plan["predicted"] is None else f"; predicted: N ≈ {_quantity(plan['predicted']).text}"
    return Part(
        name=path.name,
        kind="plan",
        verdict=verdict_cell(tried),
        summary=f"{told}{predicted}; by trials: {tried}.",
        verdicts=_trials(plan),
        errors=(ERRORS,) if plan["simulations"] else (),
        tables=(_statements(plan), _truths(plan), _corpus(plan)),
        facts=(
            *((name, plain(value).text or "not given") for name, value in asked.items()),
            *((f"dictionary: {name}", _quantity(value).text) for name, value in plan["dictionary"].items()),
            ("versions, machine, command", f"{UNKNOWN} by a plan"),
        ),
    )


def _quantity(value: Any) -> Cell:
    """A number that may be infinite, as a plan writes it; anything else as it is."""
    if not isinstance(value, dict):
        return plain(value)
    if value["infinite"]:
        return Cell("∞", "inf")
    return plain(value["value"])


def _trials(plan: Mapping[str, Any]) -> tuple[Table, ...]:
    rows = []
    for run in plan["simulations"]:
        tried = (run["at"], _quantity(run["n_positions"]), verdict_cell(run["verdict"]), run["reason"])
        outcomes = run["outcomes"] or [{}]
        names = ("scenario", "failures", "trials", "low", "high", "uncertified")
        rows += [(*tried, *(outcome.get(name) for name in names)) for outcome in outcomes]
    if not rows:
        return ()
    headings = ("number", "N", "failure ≤ δ", "because", "of", "failures", "trials", "low", "high", "uncertified")
    meanings = {"low": "of the failure probability", "high": "of the failure probability"}
    return (table(f"Trials of {plan['question']['estimator']}", headings, rows, meanings),)


def _statements(plan: Mapping[str, Any]) -> Table:
    names = ("label", "kind", "origin", "event", "estimators", "every_truth", "condition", "left_out", "statement")
    rows = []
    for requirement in plan["requirements"]:
        known = sorted(float(cell.exact) for n in requirement["n_samples"] if (cell := _quantity(n)).exact)
        ends = (known[(len(known) - 1) // 2], known[-1]) if known else (None, None)
        rows.append((requirement["label"], *ends, *(requirement[name] for name in names[1:])))
    headings = ("statement", "N (median truth)", "N (worst truth)", "kind", "origin", "promises", "for",
                "every truth", "on condition", "left out", "says")  # fmt: skip
    return table("Samples of one new token", headings, rows)


def _truths(plan: Mapping[str, Any]) -> Table:
    rows = []
    for truth, needed in zip(plan["truths"], plan["recommendation"]["each"], strict=True):
        mixed = ", ".join(f"{row} ({shown(w)})" for row, w in zip(truth["rows"], truth["weights"], strict=True))
        rows.append(
            (truth["name"], truth["sparsity"], mixed, _quantity(truth["support_margin"]), truth["kl_of_mean_row"],
             _quantity(needed))
        )  # fmt: skip
    names = ("truth", "s", "rows (weights)", "γ_s at least (nats)", "KL of the mean row (nats)", "N")
    return table("What is to be learned", names, rows)


def _corpus(plan: Mapping[str, Any]) -> Table:
    rows = [(name, _quantity(n)) for name, n in plan["corpus"]["under"].items()]
    return table("Length of the corpus by exposure", ("exposure", "positions"), rows)
