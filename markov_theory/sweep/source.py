"""Where a sweep's dictionary comes from: made to measure, a file, or a real language model's own rows."""

from __future__ import annotations

import argparse
import subprocess
import sys
from typing import Any

from markov_theory.dictionary import Dictionary
from markov_theory.families import make_dictionary

MADE, LLM = "made", "llm"
DEFAULTS: dict[str, dict[str, Any]] = {
    MADE: {"tokens": 128, "outcomes": 256, "ratio": 100.0, "gamma": None, "family": "well-conditioned"},
    LLM: {"tokens": 2000, "outcomes": 2048, "context": "<|endoftext|> and", "model": None, "text": None},
}
SHAPING = tuple(dict.fromkeys(name for options in DEFAULTS.values() for name in options))


def dictionary_from(arguments: argparse.Namespace) -> Dictionary:
    """Make, read or extract the dictionary that the arguments ask for.

    Parameters
    ----------
    arguments : argparse.Namespace
        With ``dictionary`` ("made", "llm" or a file) and the shaping options, None where not given.

    Raises
    ------
    ValueError
        If an option does not apply to this kind of dictionary, or is wrong.
    RuntimeError
        If the language model's command fails.
    """
    kind = arguments.dictionary
    given = {name: getattr(arguments, name) for name in SHAPING if getattr(arguments, name) is not None}
    for name in given:
        if name not in DEFAULTS.get(kind, {}):
            raise ValueError(f"--{name} does not apply to --dictionary {kind}: its rows are what they are")
    options = {**DEFAULTS.get(kind, {}), **given}
    if kind == MADE:
        return make_dictionary(
            options["tokens"],
            options["outcomes"],
            density_ratio=options["ratio"],
            margin=options["gamma"],
            family=options["family"],
            seed=arguments.seed,
        )
    return _language_model_rows(options) if kind == LLM else Dictionary.load(kind)


def _language_model_rows(options: dict[str, Any]) -> Dictionary:
    """Have the bridge make (or find) the table, in a process of its own: torch never enters this one."""
    command = [sys.executable, "-m", "markov_theory.llm", "table", "--print-path"]
    for name, value in options.items():
        if value is not None:
            command += [f"--{name}", str(value)]
    finished = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if finished.returncode == 2:
        raise ValueError("the language model's table cannot be made from these options (see the line above)")
    if finished.returncode != 0:
        raise RuntimeError("the language model's table could not be made (see the line above)")
    return Dictionary.load(finished.stdout.strip())
