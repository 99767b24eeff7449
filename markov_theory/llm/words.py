"""Which old tokens make rows: whole words, in order of frequency, without those whose embedding is unusable.

A *whole-word* token begins with the tokenizer's mark of a word boundary (``Ġ`` in byte-level, ``▁`` in
SentencePiece vocabularies), goes on with letters only, and is not continued: what follows it does not belong
to the same word. Whether it is continued depends on the place, not on the token alone (``Ġcon`` begins
``contrast``, and is a word in "pro and con"), so it is judged where the token stands.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markov_theory._checks import IntArray
from markov_theory.llm.model import LanguageModel

BOUNDARIES = ("Ġ", "▁")
CONTINUES = re.compile(r"['’]?\w")
CHUNK = 50_000  # words of a text that are tokenised at once


@dataclass(frozen=True, eq=False)
class WordTokens:
    """The whole-word tokens of a model, in the tokenizer's order, and those that were left out.

    Parameters
    ----------
    ids : ndarray of int, shape (W,)
        Usable tokens, ascending.
    names : tuple of str
        The tokenizer's own string of every id, ``""`` for an id without one; longer than the embedding if the
        tokenizer is.
    continuations : ndarray of bool, shape (len(names),)
        Whether a token, standing after a word, continues it: it begins with a letter, a digit, an underscore,
        or an apostrophe and one of these.
    excluded : dict of str to tuple of str
        Whole-word tokens that are not used, by reason.
    """

    ids: IntArray
    names: tuple[str, ...]
    continuations: NDArray[np.bool_]
    excluded: dict[str, tuple[str, ...]]


def word_tokens(language_model: LanguageModel) -> WordTokens:
    """Find the usable whole-word tokens of `language_model`.

    Left out, and listed by reason: special and added tokens, ids beyond the embedding, rows of the embedding
    that are zero or not finite, and rows equal to that of an earlier token.
    """
    names, texts = _strings(language_model.tokenizer)
    marked = np.array([name.startswith(BOUNDARIES) for name in names])
    words = np.array([mark and _letters(text.strip()) for mark, text in zip(marked, texts, strict=True)])
    continues = np.array([not m and bool(CONTINUES.match(t)) for m, t in zip(marked, texts, strict=True)])
    excluded: dict[str, tuple[str, ...]] = {}

    def leave_out(reason: str, bad: NDArray[np.bool_]) -> None:
        if (gone := words & bad).any():
            excluded[reason] = tuple(names[i] for i in np.flatnonzero(gone))
            words[gone] = False

    special = np.zeros(len(names), dtype=bool)
    special[[i for i in _special_ids(language_model.tokenizer) if i < len(names)]] = True
    leave_out("special or added token", special)
    rows = language_model.embedding.detach().float().cpu().numpy()
    leave_out("id beyond the embedding", np.arange(len(names)) >= len(rows))
    known = rows[: len(names)]  # the embedding may have more rows than there are tokens, and fewer
    leave_out("embedding row not finite", _padded(~np.isfinite(known).all(axis=1), len(names)))
    leave_out("embedding row zero", _padded(~known.any(axis=1), len(names)))
    leave_out("embedding row equal to an earlier one", _repeated(known, words))
    return WordTokens(np.flatnonzero(words), names, continues, excluded)


def most_frequent(language_model: LanguageModel, words: WordTokens, text: str) -> IntArray:
    """Return the usable whole-word tokens of `text`, the most frequent first, equals by id.

    A word counts if it is a single token in the text; runs of white space count as one space.

    Raises
    ------
    ValueError
        If the text is empty.
    """
    if not text.strip():
        raise ValueError("text has no words")
    counts = np.zeros(len(words.names), dtype=np.int64)
    for ids in _tokenised(language_model.tokenizer, text.split()):
        ends = ~np.append(words.continuations[ids[1:]], False)
        counts += np.bincount(ids[ends], minlength=len(counts))
    order = words.ids[np.argsort(-counts[words.ids], kind="stable")]
    return order[counts[order] > 0]


def _tokenised(tokenizer: Any, words: list[str]) -> Iterator[IntArray]:
    for start in range(0, len(words), CHUNK):
        chunk = " ".join(words[start : start + CHUNK])
        ids = tokenizer(chunk, add_special_tokens=False, verbose=False)["input_ids"]
        yield np.asarray(ids, dtype=np.int64)


def _strings(tokenizer: Any) -> tuple[tuple[str, ...], list[str]]:
    """Return, for every id up to the largest, the tokenizer's own string and the text that it stands for."""
    by_id = {number: name for name, number in tokenizer.get_vocab().items()}
    size = max(by_id) + 1
    known = sorted(by_id)
    decoded = tokenizer.batch_decode([[i] for i in known], clean_up_tokenization_spaces=False)
    texts = dict(zip(known, decoded, strict=True))
    return tuple(by_id.get(i, "") for i in range(size)), [texts.get(i, "") for i in range(size)]


def _special_ids(tokenizer: Any) -> set[int]:
    return {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}


def _letters(text: str) -> bool:
    """Whether `text` is a letter followed by letters and combining marks."""
    kinds = [unicodedata.category(character)[0] for character in text]
    return bool(kinds) and kinds[0] == "L" and set(kinds) <= {"L", "M"}


def _padded(flags: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    return np.pad(flags, (0, length - len(flags)))


def _repeated(rows: NDArray[np.float32], words: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the words whose row equals that of an earlier word (zeros of either sign are equal)."""
    seen: set[bytes] = set()
    repeated = np.zeros_like(words)
    for i in np.flatnonzero(words):
        key = hashlib.blake2b((rows[i] + 0.0).tobytes(), digest_size=16).digest()
        repeated[i] = key in seen
        seen.add(key)
    return repeated
