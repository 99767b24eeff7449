"""Draw README's figures again from the tables beside this file: ``python figures/make.py``.

Each table is the ``summary.csv`` that its sweep wrote:

    n_star_made   python -m markov_theory.sweep --s 1..32
    n_star_llm    python -m markov_theory.sweep --dictionary llm --s 1..8
"""

from pathlib import Path

import pandas as pd

from markov_theory.plots import sample_complexity_figure, save_figure

HERE = Path(__file__).parent
SOURCES = {
    "n_star_made": "128 rows over 256 outcomes, density ratio 100",
    "n_star_llm": "2,000 rows of SmolLM2-135M over 2,048 outcomes",
}


def main(folder: Path = HERE) -> None:
    for name, source in SOURCES.items():
        summary = pd.read_csv(HERE / f"{name}.csv")
        save_figure(sample_complexity_figure(summary, 1e-5, 0.05, source), folder, name)


if __name__ == "__main__":
    main()
