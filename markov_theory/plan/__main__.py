"""How many samples does a new token need, and is that so? ``python -m markov_theory.plan``"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from markov_theory._command import complain
from markov_theory._progress import progress
from markov_theory.plan import screen
from markov_theory.plan.arguments import parser, rows_of, wanted_of
from markov_theory.plan.planning import plan_samples
from markov_theory.plan.simulation import REFUTED


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0; 1 the recommended number is refuted; 2 wrong input; 130 stopped."""
    arguments = parser().parse_args(argv)
    try:
        _check_writable(arguments.json)
        dictionary = rows_of(arguments)
        with progress("evaluating bounds") as update:
            found = plan_samples(
                dictionary,
                wanted_of(arguments, dictionary),
                arguments.epsilon,
                arguments.delta,
                estimator=arguments.estimator,
                new_tokens=arguments.new_tokens,
                exposure=arguments.exposure,
                rate=arguments.rate,
                n_truths=arguments.truths,
                simulation=not arguments.no_simulation,
                n_trials=arguments.trials,
                n_samples=arguments.samples,
                thorough=arguments.thorough,
                seed=arguments.seed,
                on_progress=update,
            )
        screen.show(Console(), found)
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(found.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    except (ValueError, TypeError, FileNotFoundError) as error:
        return complain(error, 2)
    except (OSError, RuntimeError, ArithmeticError) as error:
        return complain(error, 1)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
    run = found.simulation("recommended")
    return 1 if run is not None and run.verdict == REFUTED else 0


def _check_writable(path: Path | None) -> None:
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ValueError(f"--json: there is no folder for a file {path}, or it is a folder itself")


if __name__ == "__main__":
    sys.exit(main())
