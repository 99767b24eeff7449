"""Check every claim of the theory, or refute it: ``python -m markov_theory.verify --quick``."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from markov_theory._command import CommandParser, complain
from markov_theory._progress import progress
from markov_theory.bounds import BOUNDS
from markov_theory.bounds.base import Bound
from markov_theory.provenance import recorded
from markov_theory.sweep.extension import resolve
from markov_theory.verify import report, statements
from markov_theory.verify.claims import Claim, Finding, Settings, select
from markov_theory.verify.execution import Factor, Task, perform_all
from markov_theory.verify.mutants import Mutant, mutants
from markov_theory.verify.oracles import families_for
from markov_theory.verify.registry import registry
from markov_theory.verify.search import FULL, QUICK
from markov_theory.verify.statistical import settle
from markov_theory.verify.verdict import FAILED, VIOLATED

DESCRIPTION = """\
Is it true? Every bound is tried at N = bound and beyond on small instances whose failure probability is known
exactly, and a search climbs towards a counterexample; predictions are held to their limits; larger instances are
sampled, with verdicts corrected for their number (Holm, 5 % for the whole report). Printed and stored for each
claim: what was tried, the decisive number with its interval, bound/N* at the tightest instance, the verdict."""
EPILOGUE = """\
examples:
  python -m markov_theory.verify
  python -m markov_theory.verify --claims 'O*,S2' --full
  python -m markov_theory.verify --mutants
  python -m markov_theory.verify --bounds examples.own_bound:PaperRate

exit code: 0; 1 a claim or a bound of your own is violated (with --mutants: a planted one is not) or a check failed;
2 wrong input; 130 interrupted"""


def parser() -> argparse.ArgumentParser:
    """Build the parser."""
    p = CommandParser(prog="python -m markov_theory.verify", description=DESCRIPTION, epilog=EPILOGUE)

    def add(flag: str, words: str, **options: Any) -> None:
        p.add_argument(flag, help=words, **options)

    effort = p.add_mutually_exclusive_group()
    effort.add_argument("--quick", action="store_true", help="under two minutes on two cores (default)")
    effort.add_argument("--full", action="store_true", help="more and larger instances: minutes to an hour")
    add("--claims", "labels or shell patterns, separated by commas (default: all)", metavar="PATTERNS")
    add("--mutants", "run the search on planted false statements instead, and print how many it refutes, and by what "
        "factor each true one can be cut; with --bounds: by what factor yours can", action="store_true")  # fmt: skip
    add("--bounds", "bounds of your own in place of the package's claims, separated by commas",
        metavar="MODULE:NAME")  # fmt: skip
    add("--seed", "of everything random (default 0)", type=int, default=0)
    add("--jobs", "worker processes; numbers do not depend on it (default: one a core)", type=int,
        default=os.cpu_count() or 1)  # fmt: skip
    add("--out", "results go here (default: a folder under results/)", type=Path, metavar="FOLDER")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code."""
    arguments = parser().parse_args(argv)
    command = shlex.join(["python", "-m", "markov_theory.verify", *(sys.argv[1:] if argv is None else argv)])
    try:
        if arguments.jobs < 1:
            raise ValueError(f"--jobs must be >= 1, got {arguments.jobs}")
        if arguments.seed < 0:
            raise ValueError(f"--seed must be >= 0, got {arguments.seed}")
        names = arguments.bounds.split(",") if arguments.bounds else []
        own = [resolve(name.strip(), BOUNDS, Bound, "bounds") for name in names]  # type: ignore[type-abstract]
        settings = Settings(FULL if arguments.full else QUICK, arguments.seed)
        folder = arguments.out or Path("results") / _folder_name(arguments)
        run = _run_mutants if arguments.mutants else _run_claims
        return run(settings, own, arguments.claims, arguments.jobs, folder, command)
    except (ValueError, TypeError, FileExistsError, NotADirectoryError) as error:
        return complain(error, 2)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130


def _folder_name(arguments: argparse.Namespace) -> str:
    effort = "full" if arguments.full else "quick"
    return f"verify-{'mutants-' if arguments.mutants else ''}{effort}-{arguments.seed}"


def _run_claims(
    settings: Settings, own: list[type[Bound]], patterns: str | None, n_jobs: int, folder: Path, command: str
) -> int:
    claims = select(registry(own), patterns)
    with recorded(folder, "claims", command, n_jobs), progress("checking") as update:
        tasks = [Task("claim", claim.label) for claim in claims]
        found = perform_all(tasks, settings, own, n_jobs, lambda done: update(done, len(tasks)))
    findings = settle([finding for finding in found if isinstance(finding, Finding)])
    rows = list(zip(claims, findings, strict=True))
    console = Console()
    console.print(report.claim_table(rows))
    counts = Counter(finding.verdict for finding in findings)
    for claim, finding in rows:
        if finding.verdict == FAILED:
            print(f"error: {claim.label}: {finding.tested}", file=sys.stderr)
    _say(console, ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    _say(console, "written: " + ", ".join(map(str, report.save(rows, settings, folder, "claims"))))
    return 1 if counts[VIOLATED] or counts[FAILED] else 0


def _run_mutants(
    settings: Settings, own: list[type[Bound]], patterns: str | None, n_jobs: int, folder: Path, command: str
) -> int:
    """Refute what is planted; or, with bounds of one's own, try those and say by how much each can be cut."""
    claims = [claim for claim in select(registry(own), patterns) if not (own and claim.label.endswith("@scale"))]
    chosen = {claim.label for claim in claims}
    planted = [] if own else [m for m in mutants() if m.of in chosen]
    bounds = [b.label for b in own or BOUNDS.values() if b.label in chosen and families_for(b)]
    inequalities = dict.fromkeys(m.of for m in planted if m.of in {claim.label for claim in statements.CLAIMS})
    tried: list[Claim | Mutant] = [*(claims if own else planted)]
    tasks = [Task("mutant" if isinstance(t, Mutant) else "claim", report.name_of(t)) for t in tried]
    tasks += [Task("factor", label) for label in [*bounds, *inequalities]]
    with recorded(folder, "mutants", command, n_jobs), progress("refuting") as update:
        found = perform_all(tasks, settings, own, n_jobs, lambda done: update(done, len(tasks)))
    findings = [finding for finding in found if isinstance(finding, Finding)][: len(tried)]
    rows = list(zip(tried, findings, strict=True))
    factors = {t.name: f for t, f in zip(tasks, found, strict=True) if isinstance(f, Factor)}
    console = Console()
    console.print(report.claim_table(rows, factors))
    console.print(report.factor_table(factors))
    refuted = [report.name_of(t) for t, finding in rows if finding.verdict == VIOLATED]
    rest = [report.name_of(t) for t, finding in rows if finding.verdict != VIOLATED]
    _say(console, f"{len(refuted)} of {len(tried)} {'bounds' if own else 'false statements'} refuted")
    if rest and not own:
        _say(console, "not refuted: " + ", ".join(rest))
    _say(console, "written: " + ", ".join(map(str, report.save(rows, settings, folder, "mutants", factors))))
    failed = any(finding.verdict == FAILED for finding in findings)
    return 1 if failed or (refuted if own else rest) else 0


def _say(console: Console, line: str) -> None:
    console.print(line, soft_wrap=True, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
