"""The command line of a plan: its flags, and the rows and truths that they name."""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path

import numpy as np

from markov_theory._checks import Array, positive
from markov_theory._command import CommandParser
from markov_theory.corpus import EXPOSURES
from markov_theory.dictionary import Dictionary
from markov_theory.instance import Instance
from markov_theory.plan.requirements import ESTIMATOR_NAMES
from markov_theory.plan.truths import Wanted, nearest_mixture
from markov_theory.sweep import source
from markov_theory.sweep.axes import AXES, Point
from markov_theory.sweep.problems.mixture import Mixture

MADE_ONLY, MODEL_ONLY = ("ratio", "gamma", "family"), ("context", "model", "text")
USUAL_ROWS, USUAL_RATIO = (128, 256), 100.0
DESCRIPTION = """\
How many samples does a new token need? Its next-token law q is a mixture of rows of a dictionary, and it is learned
when KL(q||q_hat) <= epsilon with probability >= 1 - delta. The command evaluates every statement of the theory that
applies (samples that suffice, that are needed, that are to be expected), recommends the least number that a statement
vouches for, says what it is spent on, turns it into the length of a corpus with m new tokens, and tries it."""
EPILOGUE = """\
examples:
  python -m markov_theory.plan --s 4                                made rows, any new token that mixes 4 of them
  python -m markov_theory.plan --s 4 --samples 2000                 are 2,000 samples enough?
  python -m markov_theory.plan --dictionary rows.csv --weights alpha.csv --epsilon 1e-4
                                                                    a given mixture of a file's rows
  python -m markov_theory.plan --dictionary rows.csv --target law.csv --estimator constrained-kl
                                                                    a given law, mixture or not
  python -m markov_theory.plan --dictionary llm --tokens 500 --outcomes 512 --s 4
                                                                    rows of a language model
  python -m markov_theory.plan --s 4 --new-tokens 20 --exposure zipf --rate 0.01
                                                                    20 new tokens, together 1 % of a corpus
  python -m markov_theory.plan --s 4 --delta 0.01 --no-simulation --json plan.json

exit code: 0; 1 trials refute the recommended number; 2 wrong input; 130 interrupted"""


def parser() -> argparse.ArgumentParser:
    """Build the parser; every option's help names its unit and default."""
    p = CommandParser(prog="python -m markov_theory.plan", description=DESCRIPTION, epilog=EPILOGUE)
    _add_question(p.add_argument_group("what is to be learned"))
    _add_corpus(p.add_argument_group("corpus"))
    _add_dictionary(p.add_argument_group("dictionary"))
    _add_simulation(p.add_argument_group("trials and output"))
    return p


def rows_of(arguments: argparse.Namespace) -> Dictionary:
    """Make or read the dictionary.  Raises ValueError or TypeError if a flag does not apply to it."""
    origin = arguments.dictionary
    made, model = origin == source.MADE, origin == source.LLM
    refused = [*([] if made else MADE_ONLY), *([] if model else MODEL_ONLY), *([] if made or model else ["outcomes"])]
    for name in refused:
        if getattr(arguments, name) is not None:
            raise ValueError(f"--{name} does not apply to --dictionary {origin}")
    if made:
        usual = dict(zip(("tokens", "outcomes"), USUAL_ROWS, strict=True)) | {"ratio": USUAL_RATIO}
        point = {axis: getattr(arguments, axis) for axis in AXES if AXES[axis].shapes_rows and hasattr(arguments, axis)}
        point |= {axis: value for axis, value in usual.items() if point[axis] is None}
        family = {} if arguments.family is None else {"family": arguments.family}
        return Mixture(arguments.seed, family).rows(Point.of(point))
    if not model and arguments.tokens is not None and not (arguments.weights is None and arguments.target is None):
        raise ValueError("--tokens takes random rows of a file: it does not go with --weights or --target")
    options = {name: getattr(arguments, name) for name in MODEL_ONLY if getattr(arguments, name) is not None}
    n_tokens, n_outcomes = arguments.tokens or source.LLM_TOKENS, arguments.outcomes or source.LLM_OUTCOMES
    given = source.given_rows(origin, options, n_tokens, n_outcomes, Path())
    n_rows = given.n_tokens if model or arguments.tokens is None else arguments.tokens
    return Mixture(arguments.seed, {}, given).rows(Point.of({"tokens": n_rows}))


def wanted_of(arguments: argparse.Namespace, dictionary: Dictionary) -> Wanted:
    """The truths that are asked for: a number of rows, given weights, or the mixtures next to given laws."""
    if arguments.weights is not None and not (arguments.target is None and arguments.s is None):
        raise ValueError("--weights goes neither with --target nor with --s: they say themselves what is mixed")
    if arguments.weights is not None:
        alphas = read_numbers(arguments.weights, dictionary.n_tokens, "weights of the rows")
        return [
            Instance(dictionary, alpha, name) for alpha, name in zip(alphas, _names("weights", alphas), strict=True)
        ]
    if arguments.target is not None:
        laws = read_numbers(arguments.target, dictionary.n_outcomes, "probabilities of the outcomes")
        epsilon = positive(arguments.epsilon, "epsilon")
        return [
            nearest_mixture(dictionary, law, epsilon, arguments.s, name)
            for law, name in zip(laws, _names("target", laws), strict=True)
        ]
    return min(4, dictionary.n_tokens) if arguments.s is None else int(arguments.s)


def read_numbers(path: Path, length: int, words: str) -> Array:
    """Read one or several vectors of `length` numbers, shape (m, length), from .npz, .npy or text.

    Text has a vector a line, or a number a line, separated by commas or blanks; ``#`` starts a comment.

    Raises
    ------
    ValueError, FileNotFoundError
        If there is no such file, or it does not hold that.
    """
    if not path.is_file():
        raise FileNotFoundError(f"no file {path}")
    try:
        if path.suffix in (".npz", ".npy"):
            stored = np.load(path, allow_pickle=False)
            found = stored if path.suffix == ".npy" else _only(dict(stored))
        else:
            lines = path.read_text(encoding="utf-8").replace(",", " ").splitlines()
            found = np.loadtxt(lines, ndmin=2) if any(line.split("#")[0].strip() for line in lines) else np.empty(0)
        values = np.atleast_2d(np.asarray(found, dtype=np.float64))
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path}: not a table of numbers ({error})") from None
    if values.ndim == 2 and values.shape[1] == 1 and values.shape[0] == length:
        values = values.T
    if values.ndim != 2 or values.shape[1] != length:
        raise ValueError(f"{path} must hold {length} {words}, or a line of them for each token, got {values.shape}")
    return values


def _only(arrays: dict[str, Array]) -> Array:
    if len(arrays) != 1:
        raise ValueError(f"expected one array, found {', '.join(arrays) or 'none'}")
    return next(iter(arrays.values()))


def _names(stem: str, values: Array) -> list[str]:
    return [stem] if len(values) == 1 else [f"{stem} {i}" for i in range(1, len(values) + 1)]


def _add_question(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--s", type=int, metavar="ROWS", help="rows that are mixed: truths are planted, and the one that asks for "
        "most counts (default 4); with --target, rows to mix at most")  # fmt: skip
    add("--weights", type=Path, metavar="FILE", help="the mixture itself: a weight for every row, of sum 1 (.npz, "
        ".npy, .csv or text); several lines are several new tokens")  # fmt: skip
    add("--target", type=Path, metavar="FILE", help="the law itself: a probability for every outcome; it is projected "
        "on the mixtures of rows, and what remains is told apart")  # fmt: skip
    add("--epsilon", type=float, default=1e-3, metavar="NATS", help="accuracy in KL (default 0.001)")
    add("--delta", type=float, default=0.05, metavar="PROBABILITY", help="admissible probability that some new token "
        "is not learned (default 0.05)")  # fmt: skip
    add("--estimator", default="exact-l0", help=f"{', '.join(ESTIMATOR_NAMES)} (default exact-l0); a pursuit is "
        "vouched for only where its certified gap is small")  # fmt: skip
    add("--truths", type=int, default=3, help="planted truths (default 3)")
    add("--seed", type=int, default=0, help="of made rows, planted truths and trials (default 0)")


def _add_corpus(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--new-tokens", type=int, metavar="m", help="new tokens to be learned from one corpus (default 1, or one a "
        "line of FILE); the truths stand for them in turn")  # fmt: skip
    add("--exposure", default="uniform", help=f"{', '.join(EXPOSURES)} (default uniform): equally often; as 1, 1/2, "
        "1/3, …; or as the old rows that they mix, which are 1, 1/2, 1/3, …")  # fmt: skip
    add("--rate", type=float, default=1.0, metavar="SHARE", help="share of the corpus's positions that are new tokens, "
        "in (0, 1] (default 1: positions are occurrences of new tokens)")  # fmt: skip


def _add_dictionary(group: argparse._ArgumentGroup) -> None:
    add, (rows, outcomes) = group.add_argument, USUAL_ROWS
    add("--dictionary", default=source.MADE, metavar="made|llm|FILE", help="made to measure (default), a language "
        "model's own rows, or a file of rows (.npz with an array 'transitions', or .csv)")  # fmt: skip
    add("--tokens", type=int, metavar="T", help=f"rows (default {rows}; llm: {source.LLM_TOKENS}; a file's: all, fewer "
        "are a random subset)")  # fmt: skip
    add("--outcomes", type=int, metavar="J", help=f"made, llm: outcomes (default {outcomes}; llm: "
        f"{source.LLM_OUTCOMES})")  # fmt: skip
    add("--ratio", type=float, metavar="c", help=f"made: density ratio c > 1 (default {USUAL_RATIO:g})")
    add("--gamma", type=float, metavar="NATS", help="made: smallest KL between two rows (default: the largest at this "
        "ratio)")  # fmt: skip
    add("--family", help="made: well-conditioned (default) or correlated")
    add("--context", help="llm: text before the token whose next-token law is a row "
        f"(default {source.LLM_OPTIONS['context']!r})")  # fmt: skip
    add("--model", help="llm: folder or hub id of a causal language model (default: the packaged one)")
    add("--text", metavar="FILE", help="llm: choose the rows by their frequency in this text")


def _add_simulation(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--no-simulation", action="store_true", help="numbers only, no trials")
    add("--trials", type=int, help="of each simulation (default: some hundreds, more for a small delta)")
    add("--samples", type=int, metavar="N", help="simulate this number as well: is it enough? Samples of the new "
        "token; of several, or at a rate below 1, positions of the corpus")  # fmt: skip
    add("--thorough", action="store_true", help="evaluate also what takes minutes with this many rows")
    add("--json", type=Path, metavar="FILE", help="write everything there too")
