"""A plan on screen: what is learned, the statements, the recommendation in words, the corpus, the trials."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from markov_theory.plan.answer import Plan
from markov_theory.plan.requirements import Requirement, can_be_drawn
from markov_theory.plan.simulation import NOT_SIMULATED, Simulation
from markov_theory.sweep.screen import samples

CLASSES = {
    "one-to-one": "single rows",
    "l0": "exact ℓ0",
    "kl-pursuit": "KL pursuit",
    "simplex": "constrained KL",
    "oracle": "oracle",
    "any": "any estimator",
}
PROMISES = {"kl": "KL ≤ ε", "hellinger": "H² ≤ ε", "row": "the row", "excess": "excess ≤ ε", "support": "Ŝ ⊇ S"}
SPENT = {
    "accuracy": "accuracy of the weights",
    "support": "support: telling which rows are mixed",
    "exposure": "exposure: waiting for the rarest token",
}


def number(n_samples: float, kind: str = "upper") -> str:
    """Write a number of samples, and in words what no corpus can have.

    Examples
    --------
    >>> number(12345.0), number(1e17), number(math.inf), number(math.inf, "lower"), number(0.0, "lower")
    ('12,345', '1.00e+17, beyond 2^53', 'says nothing', 'none suffices', 'says nothing')
    """
    if math.isinf(n_samples):
        return "none suffices" if kind == "lower" else "says nothing"
    if n_samples == 0 and kind == "lower":
        return "says nothing"
    if not can_be_drawn(n_samples):
        return f"{samples(n_samples)}, beyond 2^53"
    return f"{n_samples:,.0f}" if n_samples < 1e9 else samples(n_samples)


def show(console: Console, plan: Plan) -> None:
    """Print all of a plan."""
    rows = plan.dictionary
    console.print(
        f"dictionary: {rows['origin']}; T = {rows['rows']:,} rows over J = {rows['outcomes']:,} outcomes, "
        f"γ = {rows['margin']:.3g} nats, c = {rows['density_ratio']:.4g}",
        soft_wrap=True,
        highlight=False,
    )
    console.print(_truths(plan))
    console.print(_statements(plan))
    for label, condition in dict.fromkeys((r.label, r.condition) for r in plan.requirements if r.condition):
        console.print(f"* {label}: {condition}", soft_wrap=True, highlight=False)
    for line in recommendation(plan):
        console.print(line, soft_wrap=True, highlight=False)
    if plan.corpus.exposure_delta > 0:
        console.print(_corpus(plan))
        for line in exposure(plan):
            console.print(line, soft_wrap=True, highlight=False)
    if plan.simulations:
        console.print(_trials(plan))
        for line in verdicts(plan):
            console.print(line, soft_wrap=True, highlight=False)


def recommendation(plan: Plan) -> Iterator[str]:
    """The recommendation in words."""
    advice, asked = plan.recommendation, plan.question
    success = "excess KL ≤ ε" if any(truth["outside"] for truth in plan.truths) else "KL(q‖q̂) ≤ ε"
    yield f"success: {success} = {asked.epsilon:g} nats with probability ≥ 1 − δ, δ = {asked.token_delta:.3g} a token"
    yield from _regime(plan)
    if math.isinf(advice.n_samples):
        yield f"recommended for {asked.estimator}: no statement vouches for any number of samples here"
    else:
        whose = f" at the worst of {len(plan.truths)} truths" if len(plan.truths) > 1 else ""
        label = f"{advice.label}{whose}"
        yield f"recommended for {asked.estimator}: N = {number(advice.n_samples)} samples of a new token ({label})"
    if advice.condition:
        yield f"  this holds {advice.condition}; a pursuit has no other guarantee"
    if advice.for_every_truth > advice.n_samples:
        yield f"  for every truth of the class, not these alone: {_uniform(plan)}"
    if plan.predicted is not None:
        yield f"predicted: N ≈ {number(plan.predicted)} (limit law as ε → 0; it promises nothing)"
    total = sum(plan.parts.values())
    if plan.binding in SPENT and 0 < total < math.inf:
        spent = ", ".join(f"{part / total:.0%} {name}" for name, part in plan.parts.items() if part >= 0.005 * total)
        yield f"what asks for most: {SPENT[plan.binding]}" + (f" ({spent})" if "," in spent else "")


def exposure(plan: Plan) -> Iterator[str]:
    """The corpus in words."""
    corpus, m = plan.corpus, plan.question.new_tokens
    yield (
        f"δ = {plan.question.delta:g} is shared: {corpus.exposure_delta:.3g} for exposure, {corpus.learning_delta:.3g} "
        f"for the learning of each of {m} token{'s' if m > 1 else ''}"
    )
    if math.isfinite(corpus.n_positions):
        cost = f", {corpus.cost:.3g} times as many as under uniform exposure" if corpus.exposure != "uniform" else ""
        yield (
            f"corpus under {corpus.exposure} exposure: {number(corpus.n_positions)} positions{cost}; "
            f"the rarest token has {corpus.shares.min():.3g} of the occurrences"
        )
    if plan.predicted_positions is not None:
        yield f"predicted: about {number(plan.predicted_positions)} positions (it promises nothing)"


def verdicts(plan: Plan) -> Iterator[str]:
    """What the trials say, in a line each."""
    for run in plan.simulations:
        because = f": {run.reason}" if run.reason else ""
        yield f"failure ≤ δ at the {run.at} number, {number(run.n_positions)}: {run.verdict}{because}"


def _regime(plan: Plan) -> Iterator[str]:
    margins = [truth["support_margin"] for truth in plan.truths]
    small = sum(truth["small_epsilon"] for truth in plan.truths)
    if small == len(margins):
        yield f"regime: small-ε (ε ≤ γ_s/10; γ_s ≥ {min(margins):.3g} nats)"
    else:
        yield (
            f"regime: not small-ε at {len(margins) - small} of {len(margins)} truths (γ_s ≥ {min(margins):.3g} nats is "
            "below 10 ε): wrong rows may do as well, and limit laws may be off"
        )
    if all(truth["kl_of_mean_row"] <= plan.question.epsilon for truth in plan.truths):
        yield "the mean row is ε-close without any data: this ε asks for nothing"
    for truth in plan.truths:
        if truth["outside"]:
            yield (
                f"{truth['name']}: no mixture of {truth['sparsity']} rows: KL = {truth['misfit']:.3g} nats stays (to "
                f"{truth['misfit_gap']:.1g}), {truth['hull_misfit']:.3g} for mixtures of all rows"
            )
        elif truth["misfit"] > 0:
            yield f"{truth['name']}: planned for the mixture next to it, {truth['misfit']:.1g} nats away"


def _uniform(plan: Plan) -> str:
    advice = plan.recommendation
    if math.isinf(advice.for_every_truth):
        return "no statement vouches for any number"
    return f"N = {number(advice.for_every_truth)} ({advice.for_every_truth_label})"


def _table(title: str, *headings: str, right: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    return table


def _truths(plan: Plan) -> Table:
    right = ("s", "γ_s ≥", "KL of mean row", "N ≤")
    table = _table("what is to be learned", "truth", "s", "rows (weights)", *right[1:], right=right)
    for truth, needed in zip(plan.truths, plan.recommendation.each, strict=True):
        mixed = [f"{row} ({weight:.2g})" for row, weight in zip(truth["rows"], truth["weights"], strict=True)]
        more = ["…"] if truth["sparsity"] > len(mixed) else []
        margin, mean = f"{truth['support_margin']:.3g}", f"{truth['kl_of_mean_row']:.3g}"
        table.add_row(truth["name"], str(truth["sparsity"]), ", ".join(mixed + more), margin, mean, number(needed))
    return table


def _statements(plan: Plan) -> Table:
    N = "N (median … worst truth)" if len(plan.truths) > 1 else "N"
    title = f"samples of one new token, δ = {plan.question.token_delta:.3g}"
    table = _table(title, "statement", "kind", "from", "promises", "for", N, right=(N,))
    last = ""
    for requirement in plan.requirements:
        if requirement.estimators != last:
            table.add_row(CLASSES[requirement.estimators], style="italic")
            last = requirement.estimators
        table.add_row(*_cells(requirement), style="bold" if _is_recommended(requirement, plan) else "")
    return table


def _is_recommended(requirement: Requirement, plan: Plan) -> bool:
    advice = plan.recommendation
    same = requirement.label == advice.label and requirement.estimators == advice.estimators
    return same and requirement.n_samples[advice.truth] == advice.n_samples


def _cells(requirement: Requirement) -> tuple[str, ...]:
    widest = "worst q" if requirement.kind == "lower" else "every q"
    promise = PROMISES[requirement.event] + (" *" if requirement.condition else "")
    texts = (f"  {requirement.label}", requirement.kind, requirement.origin, promise)
    values = requirement.known
    if requirement.left_out:
        shown = "left out: slow"
    else:
        ends = (number(values[(len(values) - 1) // 2], requirement.kind), number(values[-1], requirement.kind))
        shown = " … ".join(dict.fromkeys(ends))
    return (*texts, widest if requirement.every_truth else "this q", shown)


def _corpus(plan: Plan) -> Table:
    right = ("positions", "relative to uniform")
    title = f"corpus with {plan.question.new_tokens} new token(s), rate {plan.question.rate:g}"
    table = _table(title, "exposure", *right, right=right)
    uniform = plan.corpus.under["uniform"]
    for name, n in plan.corpus.under.items():
        relative = f"{n / uniform:.3g}" if 0 < uniform < math.inf else ""
        table.add_row(name, number(n), relative, style="bold" if name == plan.corpus.exposure else "")
    return table


def _trials(plan: Plan) -> Table:
    right = ("N", "failures", "95 % interval", "uncertified")
    title = f"trials of {plan.question.estimator}, δ = {plan.question.delta:g}"
    table = _table(title, "at", "N", "of", *right[1:], right=right)
    for run in plan.simulations:
        _add_run(table, run)
    return table


def _add_run(table: Table, run: Simulation) -> None:
    if run.verdict == NOT_SIMULATED:
        table.add_row(run.at, number(run.n_positions), run.verdict, "", "", "")
    for i, outcome in enumerate(run.outcomes):
        table.add_row(
            run.at if i == 0 else "",
            number(run.n_positions) if i == 0 else "",
            outcome.scenario,
            f"{outcome.failures}/{outcome.trials}",
            f"[{outcome.low:.2g}, {outcome.high:.2g}]",
            str(outcome.uncertified),
        )
