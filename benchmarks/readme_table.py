"""Print README's table of speed from the tables beside this file: ``python benchmarks/readme_table.py``."""

from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
PEERS = {"cvxpy+clarabel": "cvxpy with Clarabel", "mixsqp (tight)": "mixsqp", "l-bfgs-b": "L-BFGS-B"}


def main() -> None:
    print(
        "\n".join(["| problem | ms | times faster than |", "|---|---|---|", *constrained_kl(), *subsets(), *pursuit()])
    )


def constrained_kl() -> list[str]:
    lines = []
    for problem, group in pd.read_csv(HERE / "constrained_kl.csv").groupby("problem", sort=False):
        of = group.set_index("solver")
        told = [f"{words} {short(of.ratio_to_simplex_mle[name])}" for name, words in PEERS.items() if name in of.index]
        lines.append(
            f"| constrained KL, {problem.replace('e+0', 'e')} | {short(of.ms.simplex_mle)} | {', '.join(told)} |"
        )
    return lines


def subsets() -> list[str]:
    table = pd.read_csv(HERE / "best_subset.csv")
    solved = table[(table.truth == table.s) & (table.certified.str.split("/").str[0] == table.certified.str[-1])]
    lines = []
    for row in solved.to_dict("records"):
        problem = f"T={row['T']} J={row['J']} N={row['N']:.0e} s={row['s']}".replace("e+0", "e")
        told = "" if pd.isna(row["ratio"]) else f"SCIP {short(float(row['ratio']))}"
        lines.append(f"| exact ℓ0, {problem} | {short(row['ours ms'])} | {told} |")
    return lines


def pursuit() -> list[str]:
    table = pd.read_csv(HERE / "matching_pursuit.csv").query("type == 'float64' and targets > 64")
    return [
        f"| OMP, T={row['T']} d={row['d']} k={row['k']}, {row['targets']:,} targets, {row['atoms']} | "
        f"{short(row['ours ms'])} | scikit-learn {short(row['ratio'])} |"
        for row in table.to_dict("records")
    ]


def short(value: float) -> str:
    """Two digits, never in powers of ten."""
    return f"{float(f'{value:.2g}'):,.10g}"


if __name__ == "__main__":
    main()
