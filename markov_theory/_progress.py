"""A progress bar on a terminal's standard error; silence elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class Update(Protocol):
    """Moves the bar."""

    def __call__(self, done: int, total: int | None = None, words: str | None = None) -> None:
        """Show `done` of `total` under other words; what is None stays as it was."""


@contextmanager
def progress(words: str, total: int | None = None) -> Iterator[Update]:
    """Show a bar under these words while the block runs."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(words, total=total)

        def update(done: int, total: int | None = None, words: str | None = None) -> None:
            bar.update(task, completed=done, total=total, description=words)

        yield update
