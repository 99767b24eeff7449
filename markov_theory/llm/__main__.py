"""The command ``python -m markov_theory.llm``: questions of the theory to a real language model."""

from __future__ import annotations

import argparse
import sys

from markov_theory.llm import _cli
from markov_theory.llm.table_command import add_table

ABOUT = """\
Ask a real language model the questions of the theory. Every command works offline with the small model that
comes as a package (SmolLM2-135M-Instruct); --model takes a folder or a model of the local Hugging Face cache.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command in `arguments` (by default the process's own) and return its exit status."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = _cli.Parser(prog="python -m markov_theory.llm", description=ABOUT, formatter_class=raw)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    add_table(commands)
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    return _cli.run(options.run, options)


if __name__ == "__main__":
    sys.exit(main())
