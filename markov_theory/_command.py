"""What every command line shares: a parser and errors of one line each."""

from __future__ import annotations

import argparse
import sys
from typing import Any


class CommandParser(argparse.ArgumentParser):
    """A parser that keeps the layout of its texts, takes no shortened flags, and says what is wrong in one line."""

    def __init__(self, *, prog: str, description: str, epilog: str) -> None:
        layout = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=prog, description=description, epilog=epilog, formatter_class=layout, allow_abbrev=False)

    def error(self, message: str) -> Any:
        """Print the message alone; exit with code 2."""
        self.exit(2, f"error: {message}\n")


def complain(error: BaseException, code: int) -> int:
    """Print what went wrong in one line; return the exit code."""
    print(f"error: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
    return code
