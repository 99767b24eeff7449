"""A bound of one's own: tried along a sweep, and searched for a counterexample.

From the folder above:

    python -m markov_theory.sweep --s 2..6 --bounds S6,examples.own_bound:PaperRate
    python -m markov_theory.verify --bounds examples.own_bound:PaperRate

The arguments of ``n_samples`` are read off the truth (``sparsity``, ``density_ratio``, ``support_rows``, ``target``, …)
and off the point (``epsilon``, ``delta``). An upper bound is tried at its N and judged.

The sweep says ``holds`` at every truth: at c = 100, log²c = 21 makes up for the constants left out. The verifier says
``paper-rate violated`` and ends with exit code 1: it searches small instances whose failure probability is known
exactly, and finds rows with so small a c (log²c below 1) that the rate asks for too few samples. It prints N, the
failure probability there and δ, and stores the rows in ``claims.json``. The line ``paper-rate@scale``, on sampled
instances with larger c, says ``holds``: both are true, and one counterexample is enough.
"""

import math

from markov_theory.bounds import Bound


class PaperRate(Bound):
    """The paper's rate s·log²c/ε, all constants and further logarithms left out."""

    label = "paper-rate"
    kind = "upper"
    origin = "paper"
    speaks_of = ("oracle", "l0")
    statement = "N >= s log^2(c)/eps implies KL(q||q_hat) <= eps with probability >= 1-delta"
    reason = "A conjecture, to be tried: the claim is N >= O~(s log^2 c)."

    @staticmethod
    def n_samples(sparsity, density_ratio, epsilon):
        """Return N, rounded up."""
        return math.ceil(sparsity * math.log(density_ratio) ** 2 / epsilon)
