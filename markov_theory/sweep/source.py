"""Where given rows come from: a file, or a real language model's own table. Made rows are made cell by cell."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markov_theory.dictionary import Dictionary

MADE, LLM = "made", "llm"
LLM_OPTIONS: dict[str, Any] = {"context": "<|endoftext|> and", "model": None, "text": None}
LLM_TOKENS, LLM_OUTCOMES = 2000, 2048


def given_rows(dictionary: str, options: Mapping[str, Any], n_tokens: int, n_outcomes: int, folder: Path) -> Dictionary:
    """Read the rows of a file, or have the language model's table made.

    Parameters
    ----------
    dictionary : str
        ``"llm"`` or a file.
    options : mapping
        Of the language model: `LLM_OPTIONS`.
    n_tokens, n_outcomes : int
        Of the language model's table.
    folder : Path
        What relative paths are relative to.

    Raises
    ------
    ValueError, FileNotFoundError
        If there is no such file, or an option is wrong.
    RuntimeError
        If the language model's command fails.
    """
    if dictionary != LLM:
        return Dictionary.load(folder / dictionary)
    wanted = {"tokens": n_tokens, "outcomes": n_outcomes, **LLM_OPTIONS, **options}
    if wanted["text"] is not None:
        wanted["text"] = folder / wanted["text"]
    return _language_model_rows(wanted)


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
