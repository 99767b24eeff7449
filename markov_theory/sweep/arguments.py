"""The command line of a sweep."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from markov_theory.estimators import ESTIMATORS
from markov_theory.sweep import source

DEFAULT_ESTIMATORS = "oracle,constrained-kl,kl-pursuit,uniform,smoothed-empirical"
DESCRIPTION = """\
How many observed transitions N of a new token does it take to learn its next-token law q, a mixture of s rows
of a dictionary? For every s and several planted truths the sweep locates N*: the least N of a geometric grid
from which P(KL(q||q_hat) > epsilon) stays at most delta. It prints N* with an interval beside the upper bounds
and the prediction that speak of each estimator, fits the growth in s, and writes every trial (SQLite), the
tables (CSV, Parquet) and a figure (PNG, PDF). A sweep that was stopped goes on when the command is repeated."""
EPILOGUE = """\
examples:
  python -m markov_theory.sweep --s 1..32
  python -m markov_theory.sweep --s 2,4,8 --ratio 10 --gamma 0.1 --epsilon 1e-4
  python -m markov_theory.sweep --dictionary llm --s 1..8
  python -m markov_theory.sweep --dictionary rows.npz --s 1..4 --out results/mine

exit code: 0; 1 a bound is violated or a cell failed; 2 wrong input; 130 interrupted"""


class OneLineParser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def error(self, message: str) -> Any:
        """Print the message alone; exit with code 2."""
        self.exit(2, f"error: {message}\n")


def parser() -> argparse.ArgumentParser:
    """Build the parser; every option's help names its unit and default."""
    p = OneLineParser(
        prog="python -m markov_theory.sweep",
        description=DESCRIPTION,
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_measurement(p)
    _add_dictionary(p.add_argument_group("dictionary"))
    return p


def _add_measurement(p: argparse.ArgumentParser) -> None:
    def add(flag: str, words: str, **options: Any) -> None:
        p.add_argument(flag, help=words, **options)

    add("--s", "mixed rows s: 1..32, 1,2,4 or 1..32:4 (default 1..32)", default="1..32", metavar="RANGE")
    add("--epsilon", "accuracy: success is KL(q||q_hat) <= epsilon (default 1e-5)", type=float, default=1e-5,
        metavar="NATS")  # fmt: skip
    add("--delta", "admissible probability of failure (default 0.05)", type=float, default=0.05)
    add("--truths", "planted truths at each s (default 5; llm: 3)", type=int)
    add("--trials", "most trials at one N (default 16384, which few need; llm: 256)", type=int)
    add("--estimators", f"separated by commas, among {', '.join(ESTIMATORS)} (default {DEFAULT_ESTIMATORS}); all but "
        "the oracle run on fewer s", default=DEFAULT_ESTIMATORS, metavar="NAMES")  # fmt: skip
    add("--seed", "of dictionary, truths and samples (default 0)", type=int, default=0)
    add("--jobs", "worker processes; numbers do not depend on it (default: one a core)", type=int,
        default=os.cpu_count() or 1)  # fmt: skip
    add("--out", "results go here (default: a folder under results/ named after the sweep)", type=Path,
        metavar="FOLDER")  # fmt: skip


def _add_dictionary(group: argparse._ArgumentGroup) -> None:
    made, llm = source.DEFAULTS[source.MADE], source.DEFAULTS[source.LLM]

    def add(flag: str, words: str, **options: Any) -> None:
        group.add_argument(flag, help=words, **options)

    add("--dictionary", "made to measure (default), a language model's own rows, or a file of rows (.npz with an array "
        "'transitions', or .csv)", default=source.MADE, metavar="made|llm|FILE")  # fmt: skip
    add("--tokens", f"rows (default {made['tokens']}; llm: {llm['tokens']})", type=int, metavar="T")
    add("--outcomes", f"outcomes (default {made['outcomes']}; llm: {llm['outcomes']})", type=int, metavar="J")
    add("--ratio", f"made: density ratio c > 1 (default {made['ratio']:g})", type=float, metavar="c")
    add("--gamma", "made: margin, the smallest KL between two rows (default: the largest at this ratio)", type=float,
        metavar="NATS")  # fmt: skip
    add("--family", f"made: well-conditioned or correlated (default {made['family']})")
    add("--context", f"llm: text before the token whose next-token law is a row (default {llm['context']!r})")
    add("--model", "llm: folder or hub id of a causal language model (default: the packaged SmolLM2-135M)")
    add("--text", "llm: choose the rows by their frequency in this text", metavar="FILE")
