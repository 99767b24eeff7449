"""The command line of a sweep."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from markov_theory._command import CommandParser
from markov_theory.estimators import ESTIMATORS
from markov_theory.sweep import source
from markov_theory.sweep.problems import PROBLEMS
from markov_theory.sweep.setup import OPTIONS

LOCAL, DASK = "local", "dask:"
PRESETS = {"t-independence": "dependence"}
DESCRIPTION = """\
How many observed transitions N of a new token does it take to learn its next-token law q, a mixture of s rows
of a dictionary? At every point of a range and for several planted truths the sweep locates N*: the least N of a
geometric grid from which P(KL(q||q_hat) > epsilon) stays at most delta. It prints N* with an interval beside the
upper bounds and the prediction that speak of each estimator, fits the growth along the range, and writes every
trial (SQLite), the tables (CSV, Parquet), a figure (PNG, PDF) and its own specification (TOML). A sweep that was
stopped goes on when the command is repeated."""
EPILOGUE = """\
ranges: 1..32   1,2,4   1..32:4 (step)   1e-5,1e-4   1e-6..1e-3*10 (factor). One or two of the axes may be ranges:
the one with more values is the figure's axis, the other gives a curve a value. Every other axis has one value.

examples:
  python -m markov_theory.sweep --s 1..32
  python -m markov_theory.sweep --s 2,4,8 --ratio 10 --gamma 0.1 --epsilon 1e-4
  python -m markov_theory.sweep --tokens 64..1024*2 --s 4 --epsilon 1e-4
  python -m markov_theory.sweep --epsilon 1e-6..1e-3*10 --s 2,8
  python -m markov_theory.sweep --misfit 0,0.01,0.1 --epsilon 1e-4
  python -m markov_theory.sweep --new-tokens 1..64*4 --exposure zipf --epsilon 1e-3
  python -m markov_theory.sweep --dim 8..128*2
  python -m markov_theory.sweep --order 1..4 --branching 3
  python -m markov_theory.sweep --dictionary llm --s 1..8
  python -m markov_theory.sweep --dictionary rows.npz --s 1..4 --out results/mine
  python -m markov_theory.sweep --s 1..8 --estimators oracle,mine:Mine --bounds S6,mine:MyBound
  python -m markov_theory.sweep --spec examples/paper.toml
  python -m markov_theory.sweep --preset t-independence

exit code: 0; 1 a bound is violated or a cell failed; 2 wrong input; 130 interrupted"""


def parser() -> argparse.ArgumentParser:
    """Build the parser; every option's help names its unit and default."""
    p = CommandParser(prog="python -m markov_theory.sweep", description=DESCRIPTION, epilog=EPILOGUE)
    _add_axes(p.add_argument_group("axes (a value or a range)"))
    _add_kinds(p.add_argument_group("other kinds of problem (a value or a range)"))
    _add_measurement(p.add_argument_group("measurement"))
    _add_dictionary(p.add_argument_group("dictionary"))
    _add_execution(p.add_argument_group("execution"))
    return p


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options of the sweep that the flags describe; None where not given."""
    return {name: getattr(arguments, name) for name in OPTIONS if hasattr(arguments, name)}


def scheduler_of(arguments: argparse.Namespace) -> str | None:
    """The address of the Dask scheduler that `--engine` names; None for processes of this machine.

    Raises
    ------
    ValueError
        If there is no such engine, or `--jobs` does not go with it.
    """
    if arguments.jobs is not None and arguments.jobs < 1:
        raise ValueError(f"--jobs must be >= 1, got {arguments.jobs}")
    engine = arguments.engine
    if engine == LOCAL:
        return None
    address = engine.removeprefix(DASK)
    if address == engine or not address:
        raise ValueError(f"--engine must be {LOCAL} or {DASK}ADDRESS, got {engine!r}")
    if arguments.jobs is not None:
        raise ValueError(f"--jobs does not go with --engine {engine}: the cluster has the workers that it has")
    return address


def _default(axis: str) -> str:
    """The default of an axis, and where other kinds of problem have another one."""
    mixture = PROBLEMS["mixture"].axes[axis]
    others = [
        f"with --{problem.selected_by[0].replace('_', '-')} {problem.axes[axis]:g}"
        for problem in PROBLEMS.values()
        if axis in problem.axes and problem.axes[axis] != mixture
    ]
    return f"default {', '.join([f'{mixture:g}', *others])}"


def _add_axes(group: argparse._ArgumentGroup) -> None:
    def add(flag: str, metavar: str, words: str) -> None:
        group.add_argument(flag, help=words, metavar=metavar)

    add("--s", "RANGE", "mixed rows s (default 1..32; 4 beside another range or with another kind of problem)")
    add("--gamma", "NATS", "margin: smallest KL between two made rows (default: the largest at this ratio)")
    add("--ratio", "c", f"density ratio c > 1 of made rows ({_default('ratio')})")
    add("--tokens", "T", f"rows T ({_default('tokens')}; llm: {source.LLM_TOKENS}; a file's: all); fewer of a "
        "file, or all but the most of a model's range, are a random subset of them, part of every larger "
        "one")  # fmt: skip
    add("--outcomes", "J", f"outcomes J ({_default('outcomes')}; llm: {source.LLM_OUTCOMES}, one value)")
    add("--epsilon", "NATS", f"accuracy: success is KL(q||q_hat) <= epsilon ({_default('epsilon')})")
    add("--delta", "PROBABILITY", f"admissible probability of failure ({_default('delta')})")


def _add_kinds(group: argparse._ArgumentGroup) -> None:
    def add(flag: str, metavar: str, words: str, **options: Any) -> None:
        group.add_argument(flag, help=words, metavar=metavar, **options)

    for problem in PROBLEMS.values():
        for i, axis in enumerate(problem.selected_by):
            words = problem.words if i == 0 else f"see --{problem.selected_by[0]}"
            add("--" + axis.replace("_", "-"), "RANGE", f"{words} (default {problem.axes[axis]:g})")
    add("--exposure", "KIND", "of new tokens: uniform (default); zipf, frequencies 1, 1/2, 1/3, …; coupled to those of "
        "the old rows that each is mapped to, which are 1, 1/2, 1/3, …")  # fmt: skip
    add("--radius", "B", "with --dim: class of weights with ||alpha|| <= B; truths have B/2 (default 2)", type=float)


def _add_measurement(group: argparse._ArgumentGroup) -> None:
    def add(flag: str, words: str, **options: Any) -> None:
        group.add_argument(flag, help=words, **options)

    mixture = PROBLEMS["mixture"]
    add("--estimators", f"separated by commas, among {', '.join(ESTIMATORS)} "
        f"(default {','.join(mixture.default_estimators)}), with --dim "
        f"{', '.join(PROBLEMS['embedding'].estimators)}, or module:Name of your own, importable from the current "
        "folder; all but the oracle run on fewer points of long ranges", metavar="NAMES")  # fmt: skip
    add("--bounds", f"shown and judged, by label (default {','.join(mixture.default_bounds)}), or module:Name of your "
        "own; those that do not speak of an estimator are left out beside it", metavar="LABELS")  # fmt: skip
    add("--truths", "planted truths at each point (default 5; llm: 3)", type=int)
    add("--trials", "most trials at one N (default 16384, which few need; llm: 256)", type=int)
    add("--reach", "decide every N of the fine grid up to REACH times an interval's upper end, for few outcomes or "
        "rare ones, where failure comes back; 4 takes about twice the trials (default 1: none)",
        type=float)  # fmt: skip
    add("--seed", "of dictionary, truths and samples (default 0)", type=int)


def _add_dictionary(group: argparse._ArgumentGroup) -> None:
    def add(flag: str, words: str, **options: Any) -> None:
        group.add_argument(flag, help=words, **options)

    add("--dictionary", "made to measure (default), a language model's own rows, or a file of rows (.npz with an array "
        "'transitions', or .csv); given rows leave --s, --tokens, --epsilon, --delta to be swept",
        metavar="made|llm|FILE")  # fmt: skip
    add("--family", f"made: well-conditioned or correlated (default {PROBLEMS['mixture'].options['family']})")
    add("--context", "llm: text before the token whose next-token law is a row "
        f"(default {source.LLM_OPTIONS['context']!r})")  # fmt: skip
    add("--model", "llm: folder or hub id of a causal language model (default: the packaged SmolLM2-135M)")
    add("--text", "llm: choose the rows by their frequency in this text", metavar="FILE")


def _add_execution(group: argparse._ArgumentGroup) -> None:
    def add(flag: str, words: str, **options: Any) -> None:
        group.add_argument(flag, help=words, **options)

    add("--spec", "sweeps from a TOML file in place of flags: the flags' names are its keys, and [[sweep]] tables make "
        "several sweeps; every sweep leaves such a file, sweep.toml, in its folder", type=Path,
        metavar="FILE")  # fmt: skip
    presets = ", ".join(f"{name} (python -m markov_theory.{module})" for name, module in PRESETS.items())
    add("--preset", f"measurements with a rule of decision of their own: {presets}; with --seed, --jobs, --out alone",
        choices=PRESETS)  # fmt: skip
    add("--out", "results go here (default: a folder under results/ named after the sweep; of several sweeps each gets "
        "a folder in it)", type=Path, metavar="FOLDER")  # fmt: skip
    add("--extend", "add points, truths or estimators to the sweep in the folder; what it has is not run again",
        action="store_true")  # fmt: skip
    add("--fail-fast", "stop at the first cell that fails (default: record it, go on, retry when run again)",
        action="store_true")  # fmt: skip
    add("--jobs", "worker processes; numbers do not depend on it (default: one a core)", type=int)
    add("--engine", "where trials run: local (default), worker processes of this machine; or dask:ADDRESS, the workers "
        "of the Dask scheduler at that address, as in dask:tcp://10.0.0.1:8786 (extra: cluster)", default=LOCAL,
        metavar="ENGINE")  # fmt: skip
