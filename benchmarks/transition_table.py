"""Time the rows of a language model's transition table: the context computed once, against once a row.

    python benchmarks/transition_table.py --rows 256 --context-tokens 2 64

Both ways run in one process, in turns, after one round that does not count; the table shows medians.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from markov_theory.llm.model import load_model
from markov_theory.llm.rows import RowReader, batches, context_ids
from markov_theory.llm.words import word_tokens

TEXT = (
    "<|endoftext|> A transition matrix has one row for each token, and each row is the law of the token that "
    "comes next. A new token is learned from few samples when its row is a mixture of a few old rows, and "
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=192, help="rows in each run (default: 192)")
    parser.add_argument("--context-tokens", type=int, nargs="+", default=[2, 16], metavar="P")
    parser.add_argument("--batch-size", type=int, default=64, metavar="B")
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each way (default: 3)")
    parser.add_argument("--model", help="a folder or a hub id (default: the packaged model)")
    options = parser.parse_args()
    language_model = load_model(options.model)
    tokens = word_tokens(language_model).ids[: options.rows]
    text = context_ids(language_model, TEXT * (1 + max(options.context_tokens) // 40))
    grid = Table("context", "shared ms/row", "plain ms/row", "ratio", "max |Δ log p|")
    for length in options.context_tokens:
        readers = [RowReader(language_model, text[:length], share_context=share) for share in (True, False)]
        shared, plain = alternate(readers, tokens, options.batch_size, options.runs)
        gap = np.abs(np.log(readers[0].laws(tokens[:64])) - np.log(readers[1].laws(tokens[:64]))).max()
        grid.add_row(f"{length}", f"{shared:.2f}", f"{plain:.2f}", f"{plain / shared:.1f}", f"{gap:.1e}")
    Console().print(grid)


def alternate(readers: list[RowReader], tokens: np.ndarray, batch_size: int, runs: int) -> list[float]:
    """Return the median milliseconds a row of each reader, run in turns."""
    times: list[list[float]] = [[] for _ in readers]
    for _ in range(runs + 1):
        for reader, kept in zip(readers, times, strict=True):
            start = time.perf_counter()
            for batch in batches(tokens, batch_size):
                reader.laws(batch)
            kept.append((time.perf_counter() - start) / len(tokens) * 1e3)
    return [statistics.median(kept[1:]) for kept in times]


if __name__ == "__main__":
    main()
