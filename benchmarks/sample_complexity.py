"""Measure how often the interval of N* covers it, and at what cost, where failure probabilities are exactly known.

    python benchmarks/sample_complexity.py --runs 400

Nothing is solved: the exact oracle gives the failure probability at each N, and trials are drawn from it.

sweep                 the search of the sweep, with at most 16384 or another number of trials at one N
sweep, reach 4        the same, with every point of the fine grid decided up to four times the interval's upper end
bisection, n trials   doubles N from a random start until a point passes, then halves the interval (geometrically)
                      until it is as narrow as the sweep's is asked to be; a point passes by its share of failures
bisection, certified  the same by the sweep's certificates; it stops where the largest number of trials decides nothing

An interval (low, high] counts as it is stated, settled or not. "coverage" is the share that holds N*_last, the least
whole number from which failure stays at most delta; "coverage of tried" the share that holds the least N *tried* from
which every N tried fails with probability at most delta, which is what the sweep promises; each with a 95 %
Clopper-Pearson interval. "undecided" is the share of answers wider than asked for, "open" that without an upper end,
"width" the median of high/low. Written to benchmarks/sample_complexity.csv, and from there into docs/measuring.md.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from known_n_star import INSTANCES, Known

from markov_theory.randomness import named_generator
from markov_theory.success import failure_bounds
from markov_theory.sweep.sample_complexity import BATCH, WITHIN, Design, FailureCurve, Located, locate

PAGE = Path(__file__).parents[1] / "docs" / "measuring.md"
START = "<!-- coverage: made by benchmarks/sample_complexity.py from benchmarks/sample_complexity.csv -->"
END = "<!-- end of coverage -->"
COLUMNS = [
    "instance", "delta", "N* first", "N* last", "method", "runs", "trials", "coverage", "coverage low", "coverage high",
    "coverage of tried", "coverage of tried low", "coverage of tried high", "width", "undecided", "open",
]  # fmt: skip


class Answer(NamedTuple):
    """An interval (low, high] of N*, whether it is as asked for, the N tried for it, and how many trials that took."""

    low: float
    high: float
    settled: bool
    tried: tuple[int, ...]
    n_trials: int


def _narrow(low: float, high: float) -> bool:
    return high <= WITHIN**2 * low or high - low <= 1


def search(known: Known, design: Design, generator: np.random.Generator) -> tuple[Located, int]:
    """Run the sweep's search on trials that fail as the instance's do; return what it found, and how many trials."""
    steps = locate(design)
    outcomes, n_trials = None, 0
    while True:
        try:
            requests = next(steps) if outcomes is None else steps.send(outcomes)
        except StopIteration as end:
            return end.value, n_trials
        counts = [BATCH * len(request.batches) for request in requests]
        n_trials += sum(counts)
        outcomes = [
            (n, int(generator.binomial(n, known.failure(request.n_samples))))
            for request, n in zip(requests, counts, strict=True)
        ]


def sweep(max_trials: int = 16384, reach: float = 1.0) -> Callable[[Known, np.random.Generator], Answer]:
    """The sweep's search with a `Design` of its own."""

    def answer(known: Known, generator: np.random.Generator) -> Answer:
        found, n_trials = search(known, Design(known.delta, max_trials, reach=reach), generator)
        return Answer(found.low, found.high, found.settled, tuple(n for n, _, _ in found.curve), n_trials)

    return answer


def plain_bisection(n_trials: int) -> Callable[[Known, np.random.Generator], Answer]:
    """Bisection that takes the share of failures in `n_trials` trials at each N for the probability."""

    def answer(known: Known, generator: np.random.Generator) -> Answer:
        tried: dict[int, str] = {}

        def decide(n: int) -> str:
            share = generator.binomial(n_trials, known.failure(n)) / n_trials
            tried[n] = "passes" if share <= known.delta else "fails"
            return tried[n]

        low, high = _bisect(decide, generator)
        return Answer(low, high, _narrow(low, high), tuple(tried), n_trials * len(tried))

    return answer


def certified_bisection(known: Known, generator: np.random.Generator) -> Answer:
    """Bisection by the sweep's own certificates, each wrong with the probability that the sweep admits."""
    curve = FailureCurve(Design(known.delta))
    low, high = _bisect(lambda n: _decide(curve, known, n, generator), generator)
    n_trials = sum(trials for trials, _ in curve.points.values())
    return Answer(low, high, _narrow(low, high), tuple(curve.points), n_trials)


def _decide(curve: FailureCurve, known: Known, n: int, generator: np.random.Generator) -> str:
    """Run trials at one N until they decide, or the largest number is reached."""
    while (n not in curve.points or curve.decision(n) == "open") and (request := curve.more(n)):
        trials = BATCH * len(request.batches)
        curve.add(n, trials, int(generator.binomial(trials, known.failure(n))))
    return curve.decision(n)


def _bisect(decide: Callable[[int], str], generator: np.random.Generator) -> tuple[float, float]:
    """Double N from a random start until a point passes, then halve; stop where a point cannot be decided."""
    start, low, high = 2 ** generator.random(), 0, 1
    for k in range(41):
        high = round(2**k * start)
        decision = decide(high)
        if decision == "passes":
            break
        low = high if decision == "fails" else low
    else:
        return float(low), math.inf
    while not _narrow(low, high):
        middle = min(max(round(math.sqrt(max(low, 1) * high)), low + 1), high - 1)
        decision = decide(middle)
        if decision == "open":
            break
        low, high = (middle, high) if decision == "fails" else (low, middle)
    return float(low), float(high)


METHODS: dict[str, Callable[[Known, np.random.Generator], Answer]] = {
    "sweep": sweep(),
    "sweep, reach 4": sweep(reach=4),
    "sweep, 256 trials": sweep(256),
    "bisection, 256 trials": plain_bisection(256),
    "bisection, 2048 trials": plain_bisection(2048),
    "bisection, certified": certified_bisection,
}


def measure(known: Known, method: str, runs: int) -> list[str]:
    """One row of the table."""
    first, last = known.n_star
    answers = [
        METHODS[method](known, named_generator(0, "benchmark", "n_star", known.name, method, run))
        for run in range(runs)
    ]
    shares = []
    for covered in (
        sum(answer.low < last <= answer.high for answer in answers),
        sum(answer.low < known.last_tried(answer.tried) <= answer.high for answer in answers),
    ):
        shares += [covered / runs, *failure_bounds(covered, runs, 0.025)]
    width = np.median([answer.high / max(answer.low, 1) for answer in answers])
    undecided = np.mean([not answer.settled for answer in answers])
    without_end = np.mean([math.isinf(answer.high) for answer in answers])
    trials = np.mean([answer.n_trials for answer in answers])
    told = [*(f"{share:.4f}" for share in shares), f"{width:.3f}", f"{undecided:.4f}", f"{without_end:.4f}"]
    return [known.name, f"{known.delta:g}", f"{first:.0f}", f"{last:.0f}", method, str(runs), f"{trials:.0f}", *told]


def with_tables(page: str, table: pd.DataFrame) -> str:
    """The page with its tables made again."""
    before, rest = page.split(START)
    return f"{before}{START}\n{by_method(table)}\n\n{by_instance(table)}\n{END}{rest.split(END)[1]}"


def by_method(table: pd.DataFrame) -> str:
    """A row a method: its worst coverage over the instances; medians over them of mean trials and of widths."""
    lines = [
        "| method | trials | covers N\\* on the N tried | covers N\\*_last | undecided | width |",
        "|---|---|---|---|---|---|",
    ]
    for method, rows in table.groupby("method", sort=False):
        tried, last = rows.loc[rows["coverage of tried"].idxmin()], rows.loc[rows["coverage"].idxmin()]
        lines.append(
            f"| {method} | {rows.trials.median():,.0f} | {_share(tried, 'coverage of tried')}"
            f" | {_share(last, 'coverage')} | {rows.undecided.mean():.0%} | {rows.width.median():.2f} |"
        )
    return "\n".join(lines)


def by_instance(table: pd.DataFrame) -> str:
    """A row an instance: how often each method's interval holds N*_last."""
    methods = list(dict.fromkeys(table.method))
    lines = [
        f"| instance | δ | N\\*_first | N\\*_last | {' | '.join(methods)} |",
        "|---|---|---|---|" + "---|" * len(methods),
    ]
    for name, rows in table.groupby("instance", sort=False):
        one, shares = rows.iloc[0], rows.set_index("method").coverage
        told = " | ".join(f"{shares[method]:.0%}" for method in methods)
        lines.append(f"| {name} | {one.delta:g} | {one['N* first']} | {one['N* last']} | {told} |")
    return "\n".join(lines)


def _share(row: pd.Series, name: str) -> str:
    return f"{row[name]:.1%} [{row[f'{name} low']:.1%}, {row[f'{name} high']:.1%}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="searches of each method and instance (default: 400)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    with options.output.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        for known in INSTANCES:
            for method in METHODS:
                row = measure(known, method, options.runs)
                writer.writerow(row)
                file.flush()
                print(*row, sep="  ", flush=True)
    if options.output == Path(__file__).with_suffix(".csv"):
        PAGE.write_text(with_tables(PAGE.read_text(), pd.read_csv(options.output)))


if __name__ == "__main__":
    main()
