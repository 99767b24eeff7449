"""The transition table: shared context against the plain way, outcomes, words, and what is left out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from markov_theory import divergences
from markov_theory.llm.model import load_model
from markov_theory.llm.rows import RowReader, context_ids
from markov_theory.llm.transitions import REST, table_path, transition_table
from markov_theory.llm.words import most_frequent, word_tokens

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

CONTEXT = "<|endoftext|> the cat sat on"


def plain_laws(language_model: Any, context: list[int], token: int) -> np.ndarray:
    """One row in the most direct way."""
    with torch.inference_mode():
        logits = language_model.model(torch.tensor([[*context, token]])).logits[0, -1]
    return torch.softmax(logits.double(), dim=-1).numpy()


@pytest.mark.filterwarnings("error")
def test_shared_context_gives_the_plain_rows(tiny_model: Any) -> None:
    context = context_ids(tiny_model, CONTEXT)
    tokens = [5, 270, 281, 270]
    plain = np.log([plain_laws(tiny_model, context, token) for token in tokens])
    for share in (True, False):
        reader = RowReader(tiny_model, context, share_context=share)
        for _ in range(2):  # the cache is not used up
            np.testing.assert_allclose(np.log(reader.laws(tokens)), plain, rtol=0, atol=1e-5)
        states, laws = reader.states(tokens)
        np.testing.assert_allclose(reader.laws_from(states, tokens), laws, rtol=1e-5)


def test_a_cache_that_cannot_be_shared_is_not_used(tiny: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    known = tiny.tokenizer()
    language_model = tiny.wrapped(tiny.llama(len(known)), known)
    context = context_ids(language_model, CONTEXT)
    monkeypatch.setattr("markov_theory.llm.rows._joined", lambda layer: lambda keys, values, *_, **__: (keys, values))
    with pytest.warns(UserWarning, match="cannot be shared"):
        reader = RowReader(language_model, context)
    np.testing.assert_allclose(reader.laws([5])[0], plain_laws(language_model, context, 5), atol=1e-6)


def test_rows_are_laws_over_the_chosen_outcomes(tiny_model: Any, tiny: SimpleNamespace) -> None:
    options = {"n_tokens": 9, "context": CONTEXT, "text": tiny.text, "batch_size": 4}
    whole = transition_table(tiny_model, n_outcomes=None, **options)
    assert whole.transitions.shape == (9, tiny_model.n_outcomes)
    mean = whole.transitions.mean(axis=0)
    for n_outcomes in (2, 20, tiny_model.n_outcomes - 1):
        cut = transition_table(tiny_model, n_outcomes=n_outcomes, **options)
        chosen = np.argsort(-mean, kind="stable")[: n_outcomes - 1]
        assert cut.outcomes == (*(whole.outcomes[i] for i in chosen), REST)
        assert cut.tokens == whole.tokens
        np.testing.assert_allclose(cut.transitions[:, :-1], whole.transitions[:, chosen], rtol=1e-5)
        rest = 1 - whole.transitions[:, chosen].sum(axis=1)
        np.testing.assert_allclose(cut.transitions[:, -1], rest, atol=1e-6)
        assert cut.notes["rest mass, mean"] == pytest.approx(rest.mean(), abs=1e-6)
        assert cut.notes["rest mass, max"] == pytest.approx(rest.max(), abs=1e-6)
        assert cut.margin > 0


def test_the_batch_size_changes_nothing_but_rounding(tiny_model: Any, tiny: SimpleNamespace) -> None:
    tables = [
        transition_table(tiny_model, n_tokens=7, context=CONTEXT, text=tiny.text, n_outcomes=None, batch_size=size)
        for size in (1, 3, 64)
    ]
    for other in tables[1:]:
        assert other.tokens == tables[0].tokens
        np.testing.assert_allclose(np.log(other.transitions), np.log(tables[0].transitions), atol=1e-5)


def test_words_are_counted_in_the_text(tiny: SimpleNamespace) -> None:
    known = tiny.tokenizer()
    language_model = tiny.wrapped(tiny.llama(len(known)), known)
    words = word_tokens(language_model)
    ids = most_frequent(language_model, words, "on the\n the  cat, the dogx and sat (dog). the xcat")
    assert [words.names[i] for i in ids] == ["Ġthe", "Ġcat", "Ġand", "Ġsat"]


def test_without_text_mostly_continued_tokens_are_left_out(tiny: SimpleNamespace) -> None:
    known = tiny.tokenizer()
    language_model = tiny.wrapped(tiny.llama(len(known)), known)
    words = word_tokens(language_model)
    laws = RowReader(language_model, context_ids(language_model, CONTEXT)).laws(words.ids)
    whole = laws[:, words.continuations].sum(axis=1) < 0.5
    made = transition_table(language_model, n_tokens=int(whole.sum()), context=CONTEXT, n_outcomes=None, batch_size=5)
    assert made.tokens == tuple(words.names[i] for i in words.ids[whole])
    with pytest.raises(ValueError, match=f"only {whole.sum()} usable"):
        transition_table(language_model, n_tokens=int(whole.sum()) + 1, context=CONTEXT, n_outcomes=None)


def test_unusable_tokens_are_left_out_and_listed_and_the_table_is_finite(tiny: SimpleNamespace) -> None:
    known = tiny.tokenizer(n_extra=1)
    language_model = tiny.wrapped(tiny.llama(len(known) - 2), known)
    names = known.get_vocab()
    with torch.no_grad():
        language_model.embedding[names["Ġcat"]] = 0.0
        language_model.embedding[names["Ġdog"]] = torch.nan
        language_model.embedding[names["Ġhall"]] = language_model.embedding[names["Ġhad"]]
    excluded = word_tokens(language_model).excluded
    assert excluded["embedding row zero"] == ("Ġcat",)
    assert excluded["embedding row not finite"] == ("Ġdog",)
    assert excluded["embedding row equal to an earlier one"] == ("Ġhall",)
    assert excluded["id beyond the embedding"] == ("Ġthat",)
    made = transition_table(language_model, n_tokens=8, context="<|endoftext|> the", text=tiny.text, n_outcomes=None)
    assert not {"Ġcat", "Ġdog", "Ġhall", "Ġthat"} & set(made.tokens)
    assert np.isfinite(made.transitions).all()
    assert made.transitions[:, names["Ġdog"]].max() == 0
    assert made.notes["outcomes without a finite head row"] == 1
    assert made.notes["excluded: embedding row zero"] == 1


def test_added_tokens_are_not_old_tokens(tiny: SimpleNamespace) -> None:
    known = tiny.tokenizer(n_extra=2)
    words = word_tokens(tiny.wrapped(tiny.llama(len(known)), known))
    assert not any("extra" in words.names[i] for i in words.ids)


def test_special_tokens_in_the_context_are_read_as_such_and_none_is_added(tiny_model: Any) -> None:
    ids = context_ids(tiny_model, "<|endoftext|> the")
    assert ids == tiny_model.tokenizer.convert_tokens_to_ids(["<|endoftext|>", "Ġthe"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context": ""}, "at least one token"),
        ({"context": "<|begin|> the"}, r"<\|begin\|>"),
        ({"n_tokens": 0}, "n_tokens"),
        ({"n_tokens": 10_000}, "only .* usable whole-word tokens"),
        ({"n_outcomes": 1}, "n_outcomes"),
        ({"n_outcomes": 10_000}, "n_outcomes"),
        ({"batch_size": 0}, "batch_size"),
        ({"text": " "}, "no words"),
    ],
)
def test_wrong_values_are_named(tiny_model: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        transition_table(tiny_model, **{"n_tokens": 3, "context": "<|endoftext|> the", "n_outcomes": 9} | options)


def test_a_context_longer_than_the_positions_is_refused(tiny: SimpleNamespace) -> None:
    known = tiny.tokenizer()
    language_model = tiny.wrapped(tiny.gpt2(len(known)), known)
    assert len(context_ids(language_model, " the" * 23)) == 23
    with pytest.raises(ValueError, match="24 tokens, but the model takes 24"):
        context_ids(language_model, " the" * 24)


def test_the_path_depends_on_what_changes_the_table(
    tiny: SimpleNamespace, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARKOV_THEORY_CACHE", str(tmp_path))
    known = tiny.tokenizer()
    language_model = tiny.wrapped(tiny.llama(len(known)), known)
    base: dict[str, Any] = {"n_tokens": 3, "context": " the", "n_outcomes": 9}
    changed = [
        {},
        {"n_tokens": 4},
        {"context": " the the"},
        {"n_outcomes": None},
        {"text": "a"},
        {"text": "b"},
    ]
    paths = [table_path(language_model, **base | change) for change in changed]
    other = tiny.wrapped(tiny.llama(len(known), rms_norm_eps=1e-3), known)
    with torch.no_grad():
        other.embedding[4, 4] += 1
    paths.append(table_path(other, **base))
    assert len(set(paths)) == len(paths)
    assert paths[0] == table_path(language_model, **base)


@pytest.mark.real_model
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-4), ("float64", 1e-9)])
def test_packaged_model_shared_context_gives_the_plain_rows(dtype: str, tolerance: float, packaged_model: Any) -> None:
    """In single precision both ways carry the rounding of 30 layers; in double precision they agree."""
    language_model = packaged_model if dtype == "float32" else load_model(dtype=dtype)
    context = context_ids(language_model, "<|endoftext|> The capital of France is Paris, and")
    tokens = word_tokens(language_model).ids[:400:100]
    shared = RowReader(language_model, context).laws(tokens)
    plain = RowReader(language_model, context, share_context=False).laws(tokens)
    np.testing.assert_allclose(np.log(shared), np.log(plain), rtol=0, atol=tolerance)
    np.testing.assert_allclose(shared, plain, rtol=0, atol=1e-5)
    np.testing.assert_allclose(shared.sum(axis=1), 1, rtol=0, atol=1e-12)


@pytest.mark.real_model
def test_packaged_model_rows_coincide_at_position_zero_only(packaged_model: Any) -> None:
    tokens = word_tokens(packaged_model).ids[100:400:10]
    after = RowReader(packaged_model, context_ids(packaged_model, "<|endoftext|> and")).laws(tokens)
    with torch.inference_mode():
        logits = packaged_model.model(torch.from_numpy(tokens)[:, None]).logits[:, -1]
    alone = torch.softmax(logits.double(), dim=-1).numpy()
    assert divergences.jensen_shannon(alone) < 0.2 < 1.0 < divergences.jensen_shannon(after)
