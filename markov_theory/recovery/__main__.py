"""When are the rows that a new token mixes found? ``python -m markov_theory.recovery``."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from markov_theory._command import CommandParser, complain
from markov_theory._progress import progress
from markov_theory.families import Family
from markov_theory.plots import save_figure
from markov_theory.provenance import versions
from markov_theory.recovery.figure import recovery_figure
from markov_theory.recovery.table import bound_table, half_line, judge_bounds, phase_table
from markov_theory.recovery.trials import ESTIMATORS, Plan, cells_of, made_rows, run_all
from markov_theory.sweep.grid import parse_range
from markov_theory.sweep.screen import samples
from markov_theory.verify.verdict import VIOLATED

DESCRIPTION = """\
Phase diagrams of support recovery. At every s and N, counts of a mixture of s rows are drawn for several planted
truths; recovered is the support if the rows with weight are exactly those that the truth mixes: by exact l0 (branch
and bound, the only maximiser), by KL pursuit, and as the s largest weights of constrained KL over all rows. Printed:
the N at which one half is recovered, beside what the bounds S5 and S5+ promise, and verdicts on these bounds.
Written: tables (CSV, Parquet), bounds, the plan (JSON), and a figure (PNG, PDF) of heat maps with 50 % lines."""
EPILOGUE = """\
examples:
  python -m markov_theory.recovery
  python -m markov_theory.recovery --s 1..8 --n 10..1e6*2
  python -m markov_theory.recovery --s 2,4 --n 10..1e4*2 --tokens 32 --outcomes 64 --ratio 20

exit code: 0; 1 a bound is violated or a cell failed; 2 wrong input; 130 interrupted"""


def parser() -> argparse.ArgumentParser:
    """Build the parser."""
    p = CommandParser(prog="python -m markov_theory.recovery", description=DESCRIPTION, epilog=EPILOGUE)

    def add(flag: str, words: str, **options: Any) -> None:
        p.add_argument(flag, help=words + " (default %(default)s)", **options)

    add("--s", "mixed rows", default="1..8", metavar="RANGE")
    add("--n", "samples", default="10..1e6*2", metavar="RANGE")
    add("--tokens", "rows T", type=int, default=Plan.tokens)
    add("--outcomes", "outcomes J", type=int, default=Plan.outcomes)
    add("--ratio", "density ratio c > 1 of the made rows", type=float, default=Plan.ratio)
    add("--family", "of the made rows", choices=get_args(Family), default=Plan.family)
    add("--truths", "planted truths at each s", type=int, default=Plan.truths)
    add("--trials", "tables of counts at each truth and N", type=int, default=Plan.trials)
    add("--max-nodes", "of branch and bound, a fit; beyond, the best support found counts, uncertified", type=int,
        default=Plan.max_nodes)  # fmt: skip
    add("--seed", "of rows, truths and samples", type=int, default=0)
    p.add_argument("--jobs", help="worker processes; numbers do not depend on it (default: one a core)", type=int,
                   default=os.cpu_count() or 1)  # fmt: skip
    p.add_argument("--out", help="results go here (default: a folder under results/)", type=Path, metavar="FOLDER")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        if arguments.jobs < 1:
            raise ValueError(f"--jobs must be >= 1, got {arguments.jobs}")
        plan = _plan(arguments)
        folder = arguments.out or Path("results") / f"recovery-T{plan.tokens}-J{plan.outcomes}-{plan.seed}"
        folder.mkdir(parents=True, exist_ok=True)
    except (ValueError, TypeError, FileExistsError, NotADirectoryError) as error:
        return complain(error, 2)
    try:
        return _run(plan, arguments.jobs, folder)
    except (OSError, RuntimeError, ArithmeticError) as error:
        return complain(error, 1)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _plan(arguments: argparse.Namespace) -> Plan:
    return Plan(
        parse_range(arguments.s),
        parse_range(arguments.n),
        arguments.tokens,
        arguments.outcomes,
        arguments.ratio,
        arguments.family,
        arguments.truths,
        arguments.trials,
        arguments.max_nodes,
        arguments.seed,
    )


def _run(plan: Plan, n_jobs: int, folder: Path) -> int:
    with progress("recovering", len(cells_of(plan))) as update:
        cells = run_all(plan, n_jobs, update)
    phase, bounds = phase_table(cells), bound_table(plan)
    half, verdicts = half_line(phase), judge_bounds(cells, bounds)
    source = (
        f"T = {plan.tokens} rows over J = {plan.outcomes} outcomes, c = {made_rows(plan).density_ratio:.3g}; "
        f"{plan.truths} truths at each s, {plan.trials} trials at each truth and N"
    )
    paths = _save({"recovery": cells, "phase": phase, "bounds": bounds, "half": half, "verdicts": verdicts}, folder)
    told = {**asdict(plan), "versions": versions(), "verdicts": verdicts.to_dict("records")}
    (folder / "recovery.json").write_text(json.dumps(told, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    paths += [folder / "recovery.json", *save_figure(recovery_figure(phase, half, bounds, source), folder, "recovery")]
    _show(phase, half, bounds, verdicts, source, paths)
    return 1 if (verdicts.verdict == VIOLATED).any() else 0


def _save(tables: dict[str, pd.DataFrame], folder: Path) -> list[Path]:
    paths = []
    for name, table in tables.items():
        paths.append(folder / f"{name}.csv")
        table.to_csv(paths[-1], index=False)
    for name in ("recovery", "phase"):
        paths.append(folder / f"{name}.parquet")
        tables[name].to_parquet(paths[-1], index=False)
    return paths


def _show(
    phase: pd.DataFrame,
    half: pd.DataFrame,
    bounds: pd.DataFrame,
    verdicts: pd.DataFrame,
    source: str,
    paths: list[Path],
) -> None:
    console = Console()
    console.print(half_table(phase, half, bounds))
    lines = [source]
    for one in verdicts.to_dict("records"):
        lines.append(
            f"{one['bound']} at delta = {one['delta']:g}: {one['verdict']} "
            f"({one['tried']} cells at N >= bound, {one['passing']} certified to pass, {one['failing']} to fail)"
        )
    exact = phase[phase.estimator == "exact-l0"]
    share = float((exact.uncertified * exact.trials).sum() / exact.trials.sum())
    lines.append(
        f"fits of exact l0 without a certificate: {share:.2%}, at most {exact.uncertified.max():.2%} at one s, N"
    )
    lines.append(f"written: {', '.join(map(str, paths))}")
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)


def half_table(phase: pd.DataFrame, half: pd.DataFrame, bounds: pd.DataFrame) -> Table:
    """The 50 % lines on screen, with the bounds at δ = ½ (median over truths)."""
    table = Table(title="N at which half of the supports are recovered", title_justify="left")
    promised = bounds[bounds.delta == 0.5].groupby(["bound", "s"], sort=False)["n_samples"].median()
    labels = list(dict.fromkeys(bounds.bound))
    for heading in ("s", *ESTIMATORS, *labels):
        table.add_column(heading, justify="right")
    for s in np.unique(half.s):
        measured = [float(half[(half.s == s) & (half.estimator == name)].n_half.iloc[0]) for name in ESTIMATORS]
        reached = phase[phase.s == s].groupby("estimator")["success"].max()
        shown = [
            samples(n) if np.isfinite(n) else ("always" if reached[name] > 0.5 else "never")
            for n, name in zip(measured, ESTIMATORS, strict=True)
        ]
        table.add_row(str(s), *shown, *(samples(float(promised[label, s])) for label in labels))
    return table


if __name__ == "__main__":
    sys.exit(main())
