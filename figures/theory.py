"""Bounds against the truth: how large is each constant? ``python figures/theory.py`` measures, writes and draws.

    bound_ratios.csv           every registered bound on the instances of `theory_cells`, and N*_last: exact or measured
    all_bounds.csv             the same along r, the dimension of a known hull of rows, at one small ε
    all_bounds.{png,pdf}       the figure, from all_bounds.csv
    docs/theory/constants.md   its tables, from bound_ratios.csv

A few minutes on one core. ``python figures/theory.py draw`` makes figure and page again from the tables.
"""

import math
import sys
from collections.abc import Iterable
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from theory_cells import Cell, hull_cells, naming_cells, other_cells, sign_cell

from markov_theory.plots import STYLE, save_figure

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "theory" / "constants.md"
START, END = "<!-- ratios: made by figures/theory.py from figures/bound_ratios.csv -->\n", "<!-- end of ratios -->\n"
SMALL, DIMENSIONS = 1e-5, (1, 2, 3, 4, 6, 8, 12, 16, 22, 31)
COLUMNS = ("family", "instance", "event", "epsilon", "delta", "n_star", "low", "high", "how", "bound", "kind", "value")
# Okabe and Ito: upper bounds warm, lower bounds cold, the prediction grey, the truth black.
WARM, COLD, GREY, BLACK = ("#D55E00", "#E69F00"), ("#0072B2", "#56B4E9"), "#777777", "#000000"
LOOKS = {
    "S1": (WARM[0], ":", None), "S2": (WARM[0], "-.", None), "S6": (WARM[0], "--", None), "S6'": (WARM[0], "-", None),
    "S6^1": (WARM[1], "none", "v"), "S3": (GREY, (0, (4, 2)), None),
    "L1": (COLD[1], "none", "^"), "L2": (COLD[0], "-", None), "S4": (COLD[0], ":", None),
}  # fmt: skip
NAMES = {"S1": "S1 Hoeffding net", "S2": "S2 Hellinger net", "S6": "S6", "S6'": "S6\u2032", "S6^1": "S6\u00b9 (r = 1)",
         "S3": "S3 Wilks", "L1": "L1 (r = 1)", "L2": "L2", "S4": "S4 Fano"}  # fmt: skip


def table(cells: Iterable[Cell]) -> pd.DataFrame:
    frame = pd.DataFrame([row for cell in cells for row in cell.rows()], columns=COLUMNS)
    return frame.assign(ratio=frame.value / frame.n_star)


def ratio_tables(ratios: pd.DataFrame) -> str:
    """Markdown: a summary, then a table a family: an instance a line, bound/N* a column, the smallest first."""
    parts = [summary(ratios)]
    for family, group in ratios.groupby("family", sort=False):
        says = group[np.isfinite(group.value) & (group.value > 0)]
        order = says.groupby("bound").ratio.median().sort_values(kind="stable").index
        lines = [
            "| instance | ε | δ | N* | " + " | ".join(order) + " |",
            "|---|---|---|---|" + "---|" * len(order),
        ]
        for _, cell in group.groupby(["instance", "epsilon"], sort=False, dropna=False):
            first = cell.iloc[0]
            epsilon = "" if math.isnan(first.epsilon) else f"{first.epsilon:.2g}"
            n_star = f"{first.n_star:,.0f}" + (
                "" if first.how == "exact" else f" [{first.low:,.0f}, {first.high:,.0f}]"
            )
            found = says[says.index.isin(cell.index)].set_index("bound").ratio
            shown = [ratio_text(found[label]) if label in found.index else "–" for label in order]
            lines.append(f"| {first.instance} | {epsilon} | {first.delta:g} | {n_star} | " + " | ".join(shown) + " |")
        parts.append(f"## {family[0].upper()}{family[1:]}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def summary(ratios: pd.DataFrame) -> str:
    """Markdown: of every bound the least, the median and the largest quotient, where it says something."""
    says = ratios[np.isfinite(ratios.value) & (ratios.value > 0)]
    lines = [
        "## All bounds",
        "",
        "| bound | kind | instances | least | median | largest |",
        "|---|---|---|---|---|---|",
    ]
    for label in dict.fromkeys(ratios.bound):
        own, found = ratios[ratios.bound == label], says[says.bound == label].ratio
        least, middle, most = (ratio_text(found.quantile(share)) for share in (0, 0.5, 1))
        lines.append(f"| {label} | {own.kind.iloc[0]} | {len(found)} of {len(own)} | {least} | {middle} | {most} |")
    return "\n".join(lines) + "\n"


def ratio_text(ratio: float) -> str:
    if 0.001 <= ratio < 1000:
        return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"
    mantissa, exponent = f"{ratio:.1e}".split("e")
    return f"{mantissa}·10^{int(exponent)}"


def with_tables(page: str, ratios: pd.DataFrame) -> str:
    before, rest = page.split(START)
    return before + START + "\n" + ratio_tables(ratios) + "\n" + END + rest.split(END)[1]


def all_bounds_figure(ratios: pd.DataFrame) -> Figure:
    """Left: everything on one log axis. Right: what is within a factor of ten, divided by N*."""
    ratios = ratios.assign(r=ratios.instance.str.extract(r"r = (\d+)")[0].astype(int))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 4.0), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
        left.set_ylim(ratios.value[ratios.value > 1].min() / 3, 3 * ratios.value[np.isfinite(ratios.value)].max())
        right.set_ylim(0.03, 14)
        draw(left, ratios, "value")
        draw(right, ratios, "ratio")
        left.set_ylabel("samples N")
        right.set_ylabel("divided by the measured N*")
        left.set_title("a", loc="left", fontweight="bold")
        right.set_title("b", loc="left", fontweight="bold")
        right.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10], ["0.05", "0.1", "0.2", "0.5", "1", "2", "5", "10"])
        right.minorticks_off()
        right.text(34, 13, off_scale(ratios, right.get_ylim()[1]), ha="right", va="top", fontsize=7, color=WARM[0])
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False, handlelength=2.8)
    return figure


def off_scale(ratios: pd.DataFrame, top: float) -> str:
    """What lies above a ratio, in words."""
    above = ratios[np.isfinite(ratios.ratio)].groupby("bound").ratio.agg(["min", "max"])
    above = above[above["min"] > top].sort_values("max", ascending=False)
    lines = [f"{name}: {power(row['min'])} to {power(row['max'])}" for name, row in above.iterrows()]
    return "off this axis\n" + "\n".join(lines)


def power(number: float) -> str:
    if number < 1000:
        return f"{number:.2g}" if number < 100 else f"{round(number, -1):.0f}"
    mantissa, exponent = f"{number:.0e}".split("e")
    return f"{mantissa}·10$^{int(exponent)}$"


def draw(axis: Axes, ratios: pd.DataFrame, column: str) -> None:
    truth = ratios.drop_duplicates("r")
    scale = truth.n_star if column == "ratio" else 1.0
    ends = {}
    for label in [*LOOKS, *sorted(set(ratios.bound) - {*LOOKS})]:
        rows = ratios[(ratios.bound == label) & np.isfinite(ratios.value) & (ratios.value > 0)]
        if rows.empty:
            continue
        colour, line, marker = LOOKS.get(label, (GREY, "-", None))
        axis.plot(
            rows.r, rows[column], linestyle=line, marker=marker, color=colour, linewidth=1.3, markersize=6,
            markerfacecolor="white", markeredgewidth=1.3, zorder=2, label=NAMES.get(label, label),
        )  # fmt: skip
        inside = axis.get_ylim()[0] < rows[column].iloc[-1] < axis.get_ylim()[1]
        if len(rows) > 1 and inside:
            ends[NAMES.get(label, label).split()[0]] = (float(rows[column].iloc[-1]), colour)
    middle = truth.n_star / scale
    error = [middle - truth.low / scale, truth.high / scale - middle]
    axis.errorbar(
        truth.r, middle, yerr=error, fmt="o", markersize=3, color=BLACK, elinewidth=0.8, zorder=3, label="measured N*"
    )
    axis.set_yscale("log")
    axis.set_xlim(0, 35)
    axis.set_xticks([1, 5, 10, 15, 20, 25, 31])
    axis.set_xlabel("dimension r of the mixed rows (s = r + 1)")
    axis.grid(axis="y", linewidth=0.3, alpha=0.6)
    label_ends(axis, max(ratios.r), ends)


def label_ends(axis: Axes, x: float, ends: dict[str, tuple[float, str]]) -> None:
    """Name the lines at their right ends, names that would overlap pushed apart."""
    low, high = np.log(axis.get_ylim())
    names = sorted(ends, key=lambda name: ends[name][0])
    places = (np.log([ends[name][0] for name in names]) - low) / (high - low)
    for _ in range(200):
        close = np.maximum(0.042 - np.diff(places), 0) / 2
        places[:-1] -= close
        places[1:] += close
    for name, place in zip(names, places, strict=True):
        y = float(np.exp(low + place * (high - low)))
        axis.annotate(
            name, (x, y), xytext=(5, 0), textcoords="offset points", color=ends[name][1], va="center", fontsize=7
        )


def draw_again(folder: Path = HERE) -> None:
    save_figure(all_bounds_figure(pd.read_csv(HERE / "all_bounds.csv")), folder, "all_bounds")


def main() -> None:
    if sys.argv[1:] != ["draw"]:
        table([*naming_cells(), *hull_cells(), *other_cells()]).to_csv(HERE / "bound_ratios.csv", index=False)
        table(sign_cell(r, SMALL) for r in DIMENSIONS).to_csv(HERE / "all_bounds.csv", index=False)
    PAGE.write_text(with_tables(PAGE.read_text(), pd.read_csv(HERE / "bound_ratios.csv")))
    draw_again()


if __name__ == "__main__":
    main()
