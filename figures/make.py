"""Draw figures again from the tables beside this file: ``python figures/make.py``.

The tables are those that these commands write: summary.csv, dependence.csv, phase.csv, half.csv and bounds.csv.

    n_star_made   python -m markov_theory.sweep --s 1..32
    n_star_llm    python -m markov_theory.sweep --dictionary llm --s 1..8
    dependence    python -m markov_theory.sweep --preset t-independence
    recovery_*    python -m markov_theory.recovery
"""

from pathlib import Path

import pandas as pd

from markov_theory.dependence.figure import dependence_figure
from markov_theory.dependence.run import judge_all
from markov_theory.plots import sample_complexity_figure, save_figure
from markov_theory.recovery.figure import recovery_figure

HERE = Path(__file__).parent
SOURCES = {
    "n_star_made": "128 rows over 256 outcomes, density ratio 100",
    "n_star_llm": "2,000 rows of SmolLM2-135M over 2,048 outcomes",
}
RECOVERED = "64 rows over 128 outcomes, density ratio 100; 5 truths at each s, 256 trials at each truth and N"


def main(folder: Path = HERE) -> None:
    for name, source in SOURCES.items():
        summary = pd.read_csv(HERE / f"{name}.csv")
        save_figure(sample_complexity_figure(summary, 1e-5, 0.05, source), folder, name)
    save_figure(dependence_figure(judge_all(pd.read_csv(HERE / "dependence.csv"))), folder, "dependence")
    phase, half, bounds = (pd.read_csv(HERE / f"recovery_{table}.csv") for table in ("phase", "half", "bounds"))
    save_figure(recovery_figure(phase, half, bounds, RECOVERED), folder, "recovery")


if __name__ == "__main__":
    main()
