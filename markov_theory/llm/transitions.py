"""A language model's own transition table: the rows p(· | context, v) of its most frequent words v."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from markov_theory import divergences
from markov_theory._checks import Array, IntArray, whole
from markov_theory.dictionary import Dictionary
from markov_theory.llm.cache import cache_folder
from markov_theory.llm.model import LanguageModel
from markov_theory.llm.rows import RowReader, batches, context_ids
from markov_theory.llm.words import WordTokens, most_frequent, word_tokens

DEFAULT_CONTEXT = "<|endoftext|> and"
DEFAULT_OUTCOMES = 2048
REST = "<rest>"
FORMAT = 1  # of the cached tables: raise it when the same arguments give another table

Progress = Callable[[str, int, int], None]


def transition_table(
    language_model: LanguageModel,
    *,
    n_tokens: int = 2000,
    context: str = DEFAULT_CONTEXT,
    text: str | None = None,
    n_outcomes: int | None = DEFAULT_OUTCOMES,
    batch_size: int = 64,
    share_context: bool = True,
    progress: Progress | None = None,
) -> Dictionary:
    """Read the rows ``p(· | context, v)`` of the `n_tokens` most frequent whole-word tokens v (see `words`).

    Parameters
    ----------
    language_model : LanguageModel
    n_tokens : int
        T, the number of rows.
    context : str
        What stands before v, at least one token; special tokens may be written out. At position 0 a model
        attends to itself only, and the rows of all tokens nearly coincide: so v never stands there.
    text : str, optional
        Where frequencies are counted. Without it they are those of the tokenizer's own training text: merges
        are numbered from the most to the least frequent pair. A token then counts as a whole word if the
        model itself continues it, after the context, with probability below one half.
    n_outcomes : int, optional
        J, the number of outcomes: the J−1 most probable on average over the rows, in that order, and one,
        last, for all the rest. ``None`` for the whole vocabulary.
    batch_size : int
        Rows computed at once; memory grows with it, not with `n_tokens` (beyond the table itself).
    share_context : bool
        Compute the context once for all rows; ``False`` computes it again for each, with equal results.
    progress : callable, optional
        Called with what is being done, how much is done, and of how much.

    Returns
    -------
    Dictionary
        (T, J) rows named by the tokenizer's own strings; its notes tell the rest's mass, the mean KL of the
        rows to their mean (nats), and how many tokens were left out for which reason.

    Raises
    ------
    ValueError
        If an argument is out of range, the context is empty, or there are fewer than `n_tokens` such tokens.
    RuntimeError
        If the model gives a law that is not finite.
    """
    n_tokens, batch_size = whole(n_tokens, "n_tokens", low=1), whole(batch_size, "batch_size", low=1)
    n_outcomes = _outcomes(language_model, n_outcomes)
    reader = RowReader(language_model, context_ids(language_model, context), share_context=share_context)
    words = word_tokens(language_model)
    notes = {"context tokens": float(len(reader.context))}
    tokens, states, mean = _chosen(reader, words, n_tokens, text, batch_size, notes, progress)
    outcomes = np.arange(len(mean))
    if n_outcomes < len(mean):
        outcomes = np.argsort(-mean, kind="stable")[: n_outcomes - 1]
    rows = _table(reader, tokens, states, outcomes, batch_size, progress)
    names = [_name(words, i) for i in outcomes.tolist()]
    if n_outcomes < len(mean):
        names.append(REST)
        notes |= {"rest mass, mean": float(rows[:, -1].mean()), "rest mass, max": float(rows[:, -1].max())}
    notes["mean KL to the mean row (nats)"] = divergences.jensen_shannon(rows)
    notes |= {f"excluded: {reason}": float(len(gone)) for reason, gone in words.excluded.items()}
    if (n_impossible := int(reader.impossible.sum())) > 0:
        notes["outcomes without a finite head row"] = float(n_impossible)
    ranking = "the tokenizer's order" if text is None else "a text"
    origin = f"{language_model.name}: p(. | {context!r}, v) for the words v most frequent in {ranking}"
    return Dictionary(rows, [_name(words, i) for i in tokens.tolist()], names, origin, notes)


def table_path(
    language_model: LanguageModel,
    *,
    n_tokens: int = 2000,
    context: str = DEFAULT_CONTEXT,
    text: str | None = None,
    n_outcomes: int | None = DEFAULT_OUTCOMES,
) -> Path:
    """Return where the cache keeps the table of these arguments (see `transition_table`), made or not.

    The name depends on the model's weights and vocabulary, and on every argument that changes the table; not
    on the device or the batch size, which change its last digits only.
    """
    n_outcomes = _outcomes(language_model, n_outcomes)
    key: dict[str, Any] = {
        "format": FORMAT,
        "model": [language_model.name, language_model.fingerprint, language_model.dtype],
        "context": [context, context_ids(language_model, context)],
        "n_tokens": whole(n_tokens, "n_tokens", low=1),
        "text": None if text is None else hashlib.sha256(text.encode()).hexdigest(),
        "n_outcomes": n_outcomes,
    }
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return cache_folder("tables") / f"table-{n_tokens}x{n_outcomes}-{digest}.npz"


def _outcomes(language_model: LanguageModel, n_outcomes: int | None) -> int:
    size = language_model.n_outcomes
    if n_outcomes is None:
        return size
    return whole(n_outcomes, f"n_outcomes (of a model with {size})", low=2, high=size)


def _chosen(
    reader: RowReader,
    words: WordTokens,
    n_tokens: int,
    text: str | None,
    batch_size: int,
    notes: dict[str, float],
    progress: Progress | None,
) -> tuple[IntArray, Any, Array]:
    """Return the tokens of the table (T,), their states (T, width) and their mean law (V,)."""
    import torch

    candidates = words.ids if text is None else most_frequent(reader.language_model, words, text)
    _enough(len(candidates), n_tokens, text)
    if text is not None:
        candidates = candidates[:n_tokens]
    tokens: list[int] = []
    states, total, continued = [], np.zeros(reader.language_model.n_outcomes), 0
    for batch in batches(candidates, batch_size):
        given, laws = reader.states(batch)
        _finite(laws, batch, words)
        keep = np.ones(len(batch), dtype=bool) if text is not None else _whole_words(laws, words)
        keep[np.flatnonzero(keep)[n_tokens - len(tokens) :]] = False  # no more than are asked for
        tokens.extend(batch[keep].tolist())
        states.append(given[torch.from_numpy(keep).to(given.device)])
        total += laws[keep].sum(axis=0)
        if progress:
            progress("reading rows", len(tokens), n_tokens)
        if len(tokens) == n_tokens:
            break
        continued += int((~keep).sum())
    _enough(len(tokens), n_tokens, text)
    if text is None:
        notes["excluded: mostly continued by letters"] = float(continued)
    return np.array(tokens, dtype=np.int64), torch.cat(states), total / n_tokens


def _table(
    reader: RowReader,
    tokens: IntArray,
    states: Any,
    outcomes: IntArray,
    batch_size: int,
    progress: Progress | None,
) -> Array:
    """Return the laws of `tokens` over `outcomes`, and over the rest in one last column if there is any."""
    has_rest = len(outcomes) < reader.language_model.n_outcomes
    rows = np.empty((len(tokens), len(outcomes) + has_rest))
    start = 0
    for batch in batches(tokens, batch_size):
        stop = start + len(batch)
        laws = reader.laws_from(states[start:stop], batch)
        rows[start:stop, : len(outcomes)] = laws[:, outcomes]
        if has_rest:
            laws[:, outcomes] = 0.0
            rows[start:stop, -1] = laws.sum(axis=1)
        start = stop
        if progress:
            progress("writing rows", start, len(tokens))
    return rows


def _whole_words(laws: Array, words: WordTokens) -> Any:
    """Mark the rows after which a continuation of the word is less likely than not."""
    n_both = min(laws.shape[1], len(words.continuations))
    return laws[:, :n_both][:, words.continuations[:n_both]].sum(axis=1) < 0.5


def _enough(n_found: int, n_tokens: int, text: str | None) -> None:
    if n_found < n_tokens:
        where = "the tokenizer has" if text is None else "the text has"
        raise ValueError(f"n_tokens is {n_tokens}, but {where} only {n_found} usable whole-word tokens")


def _finite(laws: Array, tokens: IntArray, words: WordTokens) -> None:
    bad = ~np.isfinite(laws).all(axis=1)
    if bad.any():
        raise RuntimeError(f"the model gives no finite law after {_name(words, int(tokens[bad.argmax()]))!r}")


def _name(words: WordTokens, number: int) -> str:
    known = words.names[number] if number < len(words.names) else ""
    return known or f"<id {number}>"
