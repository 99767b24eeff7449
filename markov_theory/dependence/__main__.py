"""Is N* independent of the vocabulary and of the dimension? ``python -m markov_theory.dependence``."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from markov_theory._command import CommandParser, complain
from markov_theory._progress import progress
from markov_theory.dependence.arms import ARMS
from markov_theory.dependence.figure import dependence_figure
from markov_theory.dependence.run import Judged, judge_all, measure_all, records, save, tasks_of
from markov_theory.dependence.series import Effort, Setting
from markov_theory.plots import save_figure
from markov_theory.sweep.grid import parse_range
from markov_theory.verify.verdict import VIOLATED

ROUNDING = 1e-9  # relative: a smaller slope is shown as 0
DESCRIPTION = """\
Five arms measure how N*, the least number of samples from which failure stays at most 5 %, depends on the number of
rows T or on the dimension d: packed rows, a fixed near competitor, random rows, mixtures, embeddings. Every arm has
its predictions, each with the rule that decides on it; and for each a rival statement that the same numbers must
refute. N* is exact where it can be, else located. Printed: prediction, fit of a + b log T with the 95 %
interval of b, verdict. Written: tables (CSV, JSON) and a figure (PNG, PDF)."""
EPILOGUE = """\
examples:
  python -m markov_theory.dependence
  python -m markov_theory.dependence --arms 1,2
  python -m markov_theory.dependence --quick

exit code: 0; 1 a prediction is violated or a measurement failed; 2 wrong input; 130 interrupted"""


def parser() -> argparse.ArgumentParser:
    """Build the parser."""
    p = CommandParser(prog="python -m markov_theory.dependence", description=DESCRIPTION, epilog=EPILOGUE)

    def add(flag: str, words: str, **options: Any) -> None:
        p.add_argument(flag, help=words, **options)

    arms = "; ".join(f"{number} {arm.title}" for number, arm in ARMS.items())
    add("--arms", f"numbers, such as 1,2 or 1..4 (default: all): {arms}", metavar="NUMBERS")
    effort = p.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="under a minute; leaves out the slow claims 4b, 4d, 5b")
    effort.add_argument("--full", action="store_true", help="longer ranges, more repeats: about an hour")
    add("--seed", "of everything random (default 0)", type=int, default=0)
    add("--jobs", "worker processes; numbers do not depend on it (default: one a core)", type=int,
        default=os.cpu_count() or 1)  # fmt: skip
    add("--out", "results go here (default: a folder under results/)", type=Path, metavar="FOLDER")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = parser().parse_args(argv)
    try:
        numbers = _numbers(arguments.arms)
        if arguments.jobs < 1:
            raise ValueError(f"--jobs must be >= 1, got {arguments.jobs}")
        effort: Effort = "quick" if arguments.quick else "full" if arguments.full else "default"
        setting = Setting(effort, arguments.seed)
        folder = arguments.out or Path("results") / _folder_name(numbers, setting)
        folder.mkdir(parents=True, exist_ok=True)
    except (ValueError, TypeError, FileExistsError, NotADirectoryError) as error:
        return complain(error, 2)
    try:
        return _run(numbers, setting, arguments.jobs, folder)
    except (OSError, RuntimeError, ArithmeticError) as error:
        return complain(error, 1)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _numbers(text: str | None) -> tuple[int, ...]:
    numbers = tuple(ARMS) if text is None else parse_range(text)
    for number in numbers:
        if number not in ARMS:
            raise ValueError(f"--arms must be among {', '.join(map(str, ARMS))}, got {number}")
    return numbers


def _folder_name(numbers: tuple[int, ...], setting: Setting) -> str:
    chosen = "" if len(numbers) == len(ARMS) else "-" + "".join(map(str, numbers))
    return f"dependence{chosen}-{setting.effort}-{setting.seed}"


def _run(numbers: tuple[int, ...], setting: Setting, n_jobs: int, folder: Path) -> int:
    tasks = tasks_of(numbers, setting)
    with progress("measuring", len(tasks)) as update:
        table = measure_all(tasks, setting, n_jobs, update)
    judged = judge_all(table)
    paths = save(judged, table, setting, folder) + save_figure(dependence_figure(judged), folder, "dependence")
    console = Console()
    console.print(claim_table(judged))
    counts = Counter(one.verdict for one in judged)
    told = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    rivals = sum(one.refuted for one in judged)
    lines = (
        f"predictions: {told}; rival statements refuted: {rivals} of {len(judged)}",
        f"{int(table.n_trials.sum()):,} trials; written: {', '.join(map(str, paths))}",
    )
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False)
    return 1 if counts[VIOLATED] else 0


def claim_table(judged: Sequence[Judged]) -> Table:
    """The table on screen: what was predicted, what was found."""
    table = Table(title="N* against T and d", title_justify="left")
    for heading in ("", "prediction", "found", "verdict"):
        table.add_column(heading, overflow="fold")
    for one, record in zip(judged, records(judged), strict=True):
        symbol, first, last = one.arm.symbol, f"{record['value_first']:.4g}", f"{record['value_last']:.4g}"
        found = f"{record['quantity']} {first} ... {last}\n{symbol} {record['x_first']} ... {record['x_last']}"
        rival = "rival refuted" if one.refuted else "rival not refuted"
        table.add_row(
            record["claim"], f"{one.arm.title}: {record['prediction']}", f"{found}\n{fit_words(one)}",
            f"{one.verdict}\n{rival}",
        )  # fmt: skip
    return table


def fit_words(one: Judged) -> str:
    """The fit by which a claim is decided, with its interval."""
    if one.growth is None:
        return "no fit"
    x = one.arm.symbol if one.claim.against is None else f"min({one.arm.symbol}, J-1)"
    if one.claim.rule.law == "power":
        p, low, high = one.growth.p
        return f"∝ {x}^{p:.2f}, p in [{low:.2f}, {high:.2f}]"
    (a, *_), interval = one.growth.a, one.growth.b
    b, low, high = (0.0 if abs(number) < ROUNDING * abs(a) else number for number in interval)
    return f"{a:.4g} {'-' if b < 0 else '+'} {abs(b):.3g} log {x}, b in [{low:.2g}, {high:.2g}]"


if __name__ == "__main__":
    sys.exit(main())
