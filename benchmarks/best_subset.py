"""Time exact ℓ0 by our branch and bound and by SCIP, on the same problems, and compare their answers.

    python benchmarks/best_subset.py --instances 5 --scip-seconds 60

SCIP (`pip install pyscipopt`) gets the problem as a mixed-integer nonlinear programme: binaries z, α ≤ z, Σz ≤ s and
log qⱼ ≥ tⱼ. Each instance is solved by both in turns (once by SCIP, five times by us); times are those of the
processor, one thread each. The table shows medians over instances and is written to benchmarks/best_subset.csv. A time
or ratio marked ">" is a lower bound: half of SCIP's runs or more met their limit. "ours - SCIP" is the difference in
log-likelihood reached, the one furthest from zero. Without pyscipopt its columns stay empty. The last two sizes are
hard on purpose: a truth of more rows than s, and few samples for many rows.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
from write_table import write_table

from markov_theory.randomness import named_generator
from markov_theory.solvers.best_subset import best_subset

pyscipopt: Any = importlib.import_module("pyscipopt") if importlib.util.find_spec("pyscipopt") else None

# T, J, N, rows in the truth, s, whether SCIP is tried
CASES = [
    (16, 16, 1_000, 3, 3, True),
    (64, 64, 1_000, 4, 4, True),
    (64, 64, 10_000, 8, 8, True),
    (100, 64, 10_000, 4, 4, True),
    (200, 64, 10_000, 5, 5, True),
    (256, 256, 100_000, 16, 16, False),
    (1024, 1024, 100_000, 8, 8, False),
    (4096, 512, 100_000, 4, 4, False),
    (4096, 1024, 100_000, 8, 8, False),
    (64, 64, 1_000, 8, 4, True),
    (256, 256, 3_000, 16, 16, False),
]
RUNS, LONG = 5, 2.0  # ours: runs of each instance, fewer once they took so many seconds
COLUMNS = [
    "T",
    "J",
    "N",
    "truth",
    "s",
    "ours ms",
    "certified",
    "worst gap",
    "nodes",
    "SCIP ms",
    "SCIP certified",
    "ratio",
    "ours - SCIP",
]


def instance(T: int, J: int, N: int, truth: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Dirichlet(0.3) rows and counts from a mixture of `truth` of them with Dirichlet(5) weights."""
    generator = named_generator(number, "benchmark", "best subset", f"{T} {J} {N} {truth}")
    rows = generator.dirichlet(np.full(J, 0.3), size=T)
    law = generator.dirichlet(np.full(truth, 5.0)) @ rows[generator.choice(T, truth, replace=False)]
    return rows, generator.multinomial(N, law)


def scip(rows: np.ndarray, counts: np.ndarray, sparsity: int, seconds: float) -> tuple[np.ndarray, bool]:
    """Weights found by SCIP, and whether it proved them optimal (to its own tolerance, 1e-6) in time."""
    model = pyscipopt.Model()
    model.hideOutput()
    model.setParam("timing/clocktype", 1)  # of the processor
    model.setParam("limits/time", seconds)
    T = rows.shape[0]
    alpha = [model.addVar(lb=0, ub=1) for _ in range(T)]
    used = [model.addVar(vtype="B") for _ in range(T)]
    for a, z in zip(alpha, used, strict=True):
        model.addCons(a <= z)
    model.addCons(pyscipopt.quicksum(alpha) == 1)
    model.addCons(pyscipopt.quicksum(used) <= sparsity)
    objective = []
    for j in np.flatnonzero(counts):
        low, high = max(float(rows[:, j].min()), 1e-9), float(rows[:, j].max())
        q = model.addVar(lb=low, ub=high)
        t = model.addVar(lb=np.log(low), ub=np.log(high))
        model.addCons(pyscipopt.quicksum(float(rows[v, j]) * alpha[v] for v in range(T)) == q)
        model.addCons(pyscipopt.log(q) >= t)
        objective.append(float(counts[j] / counts.sum()) * t)
    model.setObjective(pyscipopt.quicksum(objective), "maximize")
    model.optimize()
    if model.getNSols() == 0:
        return np.full(T, np.nan), False
    weights = np.maximum([model.getVal(a) for a in alpha], 0.0)
    weights[weights < 1e-6] = 0.0
    return weights / weights.sum(), model.getStatus() == "optimal"


def likelihood(rows: np.ndarray, counts: np.ndarray, alpha: np.ndarray) -> float:
    """Mean log-likelihood, nats per sample."""
    seen = counts > 0
    with np.errstate(divide="ignore"):
        return float(counts[seen] / counts.sum() @ np.log((alpha @ rows)[seen]))


def measure(case: tuple[int, int, int, int, int, bool], n_instances: int, seconds: float) -> list[str]:
    """One row of the table."""
    T, J, N, truth, sparsity, peer = case
    ours, theirs, nodes, gaps, proven, difference = [], [], [], [], 0, []
    for number in range(n_instances):
        rows, counts = instance(T, J, N, truth, number)
        runs: list[float] = []
        while len(runs) < RUNS and sum(runs) < LONG:
            start = time.process_time()
            fit = best_subset(rows, counts, sparsity)
            runs.append(time.process_time() - start)
        ours.append(statistics.median(runs))
        nodes.append(int(fit.nodes[0]))
        gaps.append(float(fit.gap[0]))
        if peer and pyscipopt is not None:
            start = time.process_time()
            weights, done = scip(rows, counts, sparsity, seconds)
            theirs.append(time.process_time() - start)
            proven += int(done)
            difference.append(likelihood(rows, counts, fit.alpha[0]) - likelihood(rows, counts, weights))
    median, certified = statistics.median(ours), sum(gap <= 1e-9 for gap in gaps)
    shown = [f"{median * 1e3:.2f}", f"{certified}/{n_instances}", f"{max(gaps):.0e}", f"{statistics.median(nodes):.0f}"]
    row = [*map(str, (T, J, N, truth, sparsity)), *shown]
    if not theirs:
        return [*row, "", "", "", ""]
    mark = ">" if proven <= n_instances / 2 else ""
    peer_median = statistics.median(theirs)
    ratio = f"{mark}{peer_median / median:.0f}" if certified > n_instances / 2 else ""
    worst = max(difference, key=abs)
    return [*row, f"{mark}{peer_median * 1e3:.0f}", f"{proven}/{n_instances}", ratio, f"{worst:.0e}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=5, help="instances of each size (default: 5)")
    parser.add_argument("--scip-seconds", type=float, default=60.0, help="time limit of each SCIP run (default: 60)")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".csv"))
    options = parser.parse_args()
    if pyscipopt is None:
        print("pyscipopt is not installed: SCIP is left out")
    best_subset(*instance(8, 8, 100, 2, 0), 2)  # compile
    write_table(COLUMNS, (measure(case, options.instances, options.scip_seconds) for case in CASES), options.output)


if __name__ == "__main__":
    main()
