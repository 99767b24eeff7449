"""Make one HTML page from results: ``python -m markov_theory.report RESULTS``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from markov_theory._command import CommandParser, complain
from markov_theory.report.page import render, write
from markov_theory.report.sources import parts_of

DESCRIPTION = """\
One self-contained HTML page from stored results: verdicts with their error probabilities, figures, tables that sort by
click, fits, provenance, and the commands that make the results again. It needs no network, and opens from a file."""
EPILOGUE = """\
examples:
  python -m markov_theory.report results/sweep-c44c9945
  python -m markov_theory.report results/mine results/verify-quick-0 plan.json --out page.html --title "My chain"
  python -m markov_theory.report results/paper        every sweep in a folder of sweeps

exit code: 0, whatever the verdicts; 1 the page cannot be written; 2 wrong input"""
PAGE = "report.html"


def parser() -> argparse.ArgumentParser:
    """Build the parser."""
    p = CommandParser(prog="python -m markov_theory.report", description=DESCRIPTION, epilog=EPILOGUE)
    p.add_argument("results", nargs="+", type=Path, metavar="RESULTS", help="folder of a sweep or a verification, "
                   "folder of such folders, or the JSON of a plan")  # fmt: skip
    p.add_argument("--out", type=Path, metavar="FILE", help=f"the page (default: {PAGE} in the first folder)")
    p.add_argument("--title", help="of the page (default: the names of the results)")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = parser().parse_args(argv)
    first: Path = arguments.results[0]
    try:
        parts = parts_of(arguments.results)
        out = arguments.out or (first if first.is_dir() else first.parent) / PAGE
        _check_writable(out)
        title = arguments.title or "Results of " + ", ".join(dict.fromkeys(part.name for part in parts))
        page = render(parts, title)
    except (ValueError, TypeError, OSError) as error:
        return complain(error, 2)
    try:
        write(page, out)
    except OSError as error:
        return complain(error, 1)
    for part in parts:
        print(f"{part.name} ({part.kind}): {part.verdict.text}: {part.summary}")
    print(f"written: {out}")
    return 0


def _check_writable(out: Path) -> None:
    if out.suffix.lower() not in (".html", ".htm") or out.is_dir() or (out.parent != out and not out.parent.is_dir()):
        raise ValueError(f"--out must be a file .html in a folder that exists, got {out}")


if __name__ == "__main__":
    sys.exit(main())
