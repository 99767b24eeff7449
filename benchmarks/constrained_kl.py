"""Time constrained KL against other solvers of the same problem, side by side, on one thread.

    python benchmarks/constrained_kl.py --runs 5

Every solver gets the same problems in turns. `simplex_mle` is the whole call, checks included; `kernel` is
`solve_batch` alone. The peers: cvxpy with Clarabel; scipy's L-BFGS-B on the homogeneous form
min −Σ f log(Pᵀz) + Σz, z ≥ 0, started at uniform weights; mixsqp (R), with `tight` tolerances, timed inside R on
the same data. A peer that is not installed, or hopeless at a size, is left out and said to be.
Times are processor seconds of one thread, which other work on the machine disturbs less than elapsed ones.
The last columns put the time in units of one matrix–vector product with the rows, measured at the same time: no
solver that looks at all rows takes fewer than one to find the answer and one to certify it.
"""

from __future__ import annotations

import argparse
import csv
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from markov_theory._checks import as_transitions
from markov_theory.randomness import named_generator
from markov_theory.solvers._newton import solve_batch
from markov_theory.solvers.simplex_mle import FIRST_ROWS, simplex_mle

HERE = Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
MIXSQP = """
library(mixsqp)
read <- function(name, shape) { con <- file(name, "rb"); x <- readBin(con, "double", prod(shape)); close(con)
                                array(x, shape) }
args <- commandArgs(TRUE); T <- as.integer(args[2]); J <- as.integer(args[3]); K <- as.integer(args[4])
L <- read(file.path(args[1], "rows.bin"), c(J, T)); W <- read(file.path(args[1], "counts.bin"), c(J, K))
for (k in 1:K) {
  seen <- W[, k] > 0
  t <- system.time(for (i in 1:as.integer(args[5])) fit <- mixsqp(L[seen, ], W[seen, k], control = list(
    verbose = FALSE, convtol.sqp = 1e-11, eps = 1e-14, maxiter.sqp = 1000)))[["user.self"]] / as.integer(args[5])
  cat(sprintf("time %.9g\\n", t)); cat("x", sprintf("%.17g", fit$x), "\\n")
}
"""


@dataclass(frozen=True)
class Size:
    """One line of the comparison."""

    T: int
    J: int
    N: int
    s: int
    batch: int = 1
    same_truth: bool = False
    tolerance: float = 1e-9
    repeats: int = 20  # of the fast solvers, for each run

    @property
    def name(self) -> str:
        kind = f", batch {self.batch}{' of one truth' if self.same_truth else ''}" if self.batch > 1 else ""
        return f"T={self.T} J={self.J} N={self.N:.0e} s={self.s}{kind}"


SIZES = [
    Size(64, 64, 10**3, 4, repeats=50),
    Size(256, 256, 10**4, 8, repeats=20),
    Size(1024, 1024, 10**4, 8, repeats=10),
    Size(1024, 1024, 10**4, 700, repeats=3),
    Size(1024, 1024, 10**6, 700, repeats=2),
    Size(64, 64, 10**3, 4, batch=1000, repeats=1),
    Size(256, 256, 10**4, 8, batch=1000, repeats=1),
    Size(128, 256, 10**5, 8, batch=32, same_truth=True, tolerance=1e-11, repeats=5),
    Size(128, 256, 10**7, 32, batch=32, same_truth=True, tolerance=1e-11, repeats=5),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="rounds, each with problems of its own (default: 5)")
    parser.add_argument("--slowest", type=float, default=10.0, help="seconds a peer may need for one problem")
    parser.add_argument("--out", type=Path, default=HERE / "constrained_kl.csv")
    options = parser.parse_args()
    rows = []
    for size in SIZES:
        with threadpool_limits(1):
            rows += compare(size, options.runs, options.slowest)
        show(rows, size)
        write(rows, options.out)


def problem(size: Size, run: int) -> tuple[np.ndarray, np.ndarray]:
    """Dirichlet rows (T, J) and counts (batch, J) from sparse truths."""
    generator = named_generator(run, "constrained_kl", size.T, size.J, size.N, size.s)
    rows = as_transitions(0.98 * generator.dirichlet(np.full(size.J, 0.3), size=size.T) + 0.02 / size.J)
    counts = np.empty((size.batch, size.J))
    for i in range(size.batch):
        if i == 0 or not size.same_truth:
            law = generator.dirichlet(np.ones(size.s)) @ rows[generator.choice(size.T, size.s, replace=False)]
        counts[i] = generator.multinomial(size.N, law / law.sum())
    return rows, counts


def compare(size: Size, runs: int, slowest: float) -> list[dict]:
    """Median milliseconds a problem of every solver, and the worst certified gap of its answers."""
    solvers: dict[str, Callable] = {
        "simplex_mle": lambda P, n: ours(size, P, n, False),
        "kernel": lambda P, n: ours(size, P, n, True),
        "matrix-vector": lambda P, n: matrix_vector(size, P),
        "cvxpy+clarabel": clarabel,
        "l-bfgs-b": lbfgsb,
    }
    if has_mixsqp():
        solvers["mixsqp (tight)"] = lambda P, n: mixsqp(size, P, n)
    times: dict[str, list[float]] = {name: [] for name in solvers}
    gaps: dict[str, list[float]] = {name: [] for name in solvers}
    hopeless: set[str] = set()
    if size.T * size.J > 5e5:
        hopeless = {"mixsqp (tight)", "cvxpy+clarabel"} if size.s > 100 else {"mixsqp (tight)"}
        Console().print(f"{size.name}: left out, at minutes a problem: {', '.join(sorted(hopeless))}")
    for run in range(runs + 1):  # the first does not count
        P, n = problem(size, run)
        for name, solve in solvers.items():
            if name in hopeless:
                continue
            seconds, alpha = solve(P, n)
            if seconds > slowest:
                hopeless.add(name)  # once is enough
            if run > 0 or name in hopeless:
                times[name].append(seconds)
                if alpha is not None:
                    gaps[name].append(gap(P, n[: len(alpha)], alpha))
    one = np.median(times["simplex_mle"])
    unit = np.median(times["matrix-vector"])
    return [
        {
            "problem": size.name,
            "solver": name,
            "ms": 1e3 * float(np.median(taken)),
            "least_ms": 1e3 * min(taken),
            "ratio_to_simplex_mle": float(np.median(taken) / one),
            "ratio_to_kernel": float(np.median(taken) / np.median(times["kernel"])),
            "matrix_vector_products": float(np.median(taken) / unit),
            "worst_gap": max(gaps[name]) if gaps[name] else "",
            "runs": len(taken),
        }
        for name, taken in times.items()
        if taken
    ]


def gap(P: np.ndarray, counts: np.ndarray, alpha: np.ndarray) -> float:
    """Worst log max_v (P r)_v: what any mixture could still gain, nats per sample."""
    alpha = np.maximum(alpha, 0)
    law = alpha / alpha.sum(axis=1, keepdims=True) @ P
    frequency = counts / counts.sum(axis=1, keepdims=True)
    ratio = np.divide(frequency, law, out=np.zeros_like(law), where=frequency > 0)
    return float(np.log((ratio @ P.T).max()))


def ours(size: Size, P: np.ndarray, counts: np.ndarray, kernel: bool) -> tuple[float, np.ndarray]:
    """Least of a few repeats, whose first compiles or warms the caches."""
    frequency = counts / counts.sum(axis=1, keepdims=True)
    taken = []
    for _ in range(size.repeats + 1):
        start = time.process_time()
        if kernel:
            alpha = solve_batch(P, frequency, size.tolerance, min(FIRST_ROWS, size.T))[0]
        else:
            alpha = simplex_mle(P, counts, size.tolerance).alpha
        taken.append((time.process_time() - start) / size.batch)
    return float(np.median(taken[1:])), alpha


def matrix_vector(size: Size, P: np.ndarray) -> tuple[float, None]:
    """One product with the rows for each problem of the batch, all at once."""
    vectors, out = np.ones((size.J, size.batch)), np.empty((size.T, size.batch))
    taken = []
    for _ in range(20):
        start = time.process_time()
        np.dot(P, vectors, out=out)
        taken.append((time.process_time() - start) / size.batch)
    return float(np.median(taken)), None


def clarabel(P: np.ndarray, counts: np.ndarray) -> tuple[float, np.ndarray]:
    """The first problem of the batch, from data to weights; modelling is part of what its user waits for."""
    import cvxpy

    seen = counts[0] > 0
    start = time.process_time()
    weights = cvxpy.Variable(P.shape[0], nonneg=True)
    f = counts[0][seen] / counts[0].sum()
    likelihood = cvxpy.sum(cvxpy.multiply(f, cvxpy.log(P[:, seen].T @ weights)))
    cvxpy.Problem(cvxpy.Maximize(likelihood), [cvxpy.sum(weights) == 1]).solve(solver="CLARABEL")
    return time.process_time() - start, np.atleast_2d(weights.value)


def lbfgsb(P: np.ndarray, counts: np.ndarray) -> tuple[float, np.ndarray]:
    """The first problem of the batch on its observed outcomes."""
    from scipy.optimize import minimize

    seen = counts[0] > 0
    start = time.process_time()
    A, f = np.ascontiguousarray(P[:, seen]), counts[0][seen] / counts[0].sum()

    def value(z: np.ndarray) -> tuple[float, np.ndarray]:
        q = z @ A
        return float(z.sum() - f @ np.log(q)), 1 - A @ (f / q)

    options = {"maxiter": 100_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20}
    z = minimize(
        value, np.full(len(P), 1 / len(P)), jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(P), options=options
    ).x
    return time.process_time() - start, z[None]


def has_mixsqp() -> bool:
    """Whether R and mixsqp are here; said if not."""
    if shutil.which("Rscript") is None:
        Console().print("mixsqp left out: no Rscript (Debian: r-base-core, r-cran-mixsqp)")
        return False
    return subprocess.run(["Rscript", "-e", "library(mixsqp)"], capture_output=True).returncode == 0


def mixsqp(size: Size, P: np.ndarray, counts: np.ndarray) -> tuple[float, np.ndarray]:
    """The first problem of the batch, timed inside R."""
    repeats = 20 if size.T <= 64 else 3 if size.T <= 256 else 1
    with tempfile.TemporaryDirectory() as folder:
        P.tofile(Path(folder) / "rows.bin")
        counts[:1].astype(float).tofile(Path(folder) / "counts.bin")
        script = Path(folder) / "run.R"
        script.write_text(MIXSQP)
        arguments = [str(x) for x in (folder, size.T, size.J, 1, repeats)]
        printed = subprocess.run(
            ["Rscript", str(script), *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | ONE_THREAD,
        ).stdout
    lines = dict(line.split(" ", 1) for line in printed.splitlines() if line[:2] in ("ti", "x "))
    return float(lines["time"]), np.array(lines["x"].split(), dtype=float)[None]


def show(rows: list[dict], size: Size) -> None:
    """Print the lines of one size."""
    table = Table(
        *("solver", "ms a problem", "/ simplex_mle", "/ kernel", "products P·r", "worst gap"), title=size.name
    )
    for row in rows:
        if row["problem"] == size.name:
            worst = f"{row['worst_gap']:.0e}" if row["worst_gap"] != "" else ""
            keys = ("ms", "ratio_to_simplex_mle", "ratio_to_kernel", "matrix_vector_products")
            table.add_row(row["solver"], *(f"{row[key]:.3g}" for key in keys), worst)
    Console().print(table)


def write(rows: list[dict], path: Path) -> None:
    """The whole table as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


if __name__ == "__main__":
    main()
