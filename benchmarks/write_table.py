"""Write the rows of a benchmark as they come, and print them as a table at the end."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table


def write_table(columns: Sequence[str], rows: Iterable[Sequence[str]], path: Path, title: str | None = None) -> None:
    table = Table(*columns, title=title)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow(row)
            file.flush()
            table.add_row(*row)
    Console(width=160).print(table)
