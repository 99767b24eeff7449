"""Write the tables of docs/solvers.md from the tables beside this file: ``python benchmarks/solver_tables.py``."""

import re
from pathlib import Path

import pandas as pd
from readme_table import PEERS, short

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "solvers.md"
END = "<!-- end of table -->"


def main() -> None:
    PAGE.write_text(with_tables(PAGE.read_text()))


def with_tables(page: str) -> str:
    """The page with the lines between its markers made anew."""
    for name, lines in (("constrained_kl", constrained_kl()), ("best_subset", subsets()), ("pursuit", pursuit())):
        start = f"<!-- {name}: made by benchmarks/solver_tables.py -->"
        before, rest = page.split(start)
        page = before + "\n".join([start, "", *lines, "", END]) + rest.split(END, 1)[1]
    return page


def constrained_kl() -> list[str]:
    """How many products of the rows with a vector a solve takes, how fast one of them reads, and certified gaps."""
    lines = [
        f"| problem | GB/s of P·r | passes: kernel | whole call | gap: ours | {' | '.join(PEERS.values())} |",
        "|---|---|---|---|---|" + "---|" * len(PEERS),
    ]
    for problem, group in pd.read_csv(HERE / "constrained_kl.csv").groupby("problem", sort=False):
        of = group.set_index("solver")
        T, J = (int(found) for found in re.findall(r"[TJ]=(\d+)", str(problem)))
        pace = "" if "batch" in str(problem) else short(8e-6 * T * J / of.ms["matrix-vector"])
        passes = [short(of.matrix_vector_products[name]) for name in ("kernel", "simplex_mle")]
        gaps = [f"{of.worst_gap[name]:.0e}" if name in of.index else "" for name in ("simplex_mle", *PEERS)]
        lines.append(f"| {str(problem).replace('e+0', 'e')} | {' | '.join([pace, *passes, *gaps])} |")
    return lines


def subsets() -> list[str]:
    lines = ["| T | J | N | rows mixed | s | ms | certified | nodes | SCIP, times longer |", "|---" * 9 + "|"]
    for row in pd.read_csv(HERE / "best_subset.csv", dtype=str, keep_default_na=False).to_dict("records"):
        keys = ("T", "J", "N", "truth", "s", "ours ms", "certified", "nodes", "ratio")
        lines.append(f"| {' | '.join(row[key] for key in keys)} |")
    return lines


def pursuit() -> list[str]:
    lines = [
        "| atoms | targets | type | given as | ms a target | preparation, ms "
        "| scikit-learn, times longer | least | most | with preparation |",
        "|---" * 10 + "|",
    ]
    for row in pd.read_csv(HERE / "matching_pursuit.csv", dtype=str).to_dict("records"):
        keys = (
            "targets",
            "type",
            "atoms",
            "ours ms",
            "preparation ms",
            "ratio",
            "least",
            "largest",
            "with preparation",
        )
        lines.append(f"| {row['T']} × {row['d']} | {' | '.join(row[key] for key in keys)} |")
    return lines


if __name__ == "__main__":
    main()
