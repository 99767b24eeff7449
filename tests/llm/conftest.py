"""Tiny random models with a tiny tokenizer, for structure; and the packaged model, for the real thing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

TEXT = "the cat and the dog sat on the mat and the other cat saw that the dog had the hat of a man in the hall "
SPECIAL = "<|endoftext|>"


def tokenizer(n_extra: int = 0) -> Any:
    """Return a byte-level BPE tokenizer trained on `TEXT`, with `n_extra` words that only it knows."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bare = Tokenizer(models.BPE())
    bare.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bare.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=alphabet, special_tokens=[SPECIAL], show_progress=False
    )
    bare.train_from_iterator([TEXT] * 3, trainer)
    bare.add_tokens([AddedToken(f"Ġextra{i}") for i in range(n_extra)])
    return PreTrainedTokenizerFast(tokenizer_object=bare, eos_token=SPECIAL)


def llama(vocabulary: int, **options: Any) -> Any:
    """Return a random Llama with a tied head."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(vocab_size=vocabulary, num_key_value_heads=2, tie_word_embeddings=True, **sizes, **options)
    return sharpened(LlamaForCausalLM(config))


def gpt2(vocabulary: int, **options: Any) -> Any:
    """Return a random GPT-2 with learned positions and a head of its own."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(1)
    config = GPT2Config(
        vocab_size=vocabulary,
        n_positions=24,
        n_embd=16,
        n_layer=2,
        n_head=4,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=0,
        **options,
    )
    return sharpened(GPT2LMHeadModel(config))


def gemma(vocabulary: int) -> Any:
    """Return a random Gemma-2: window attention in every other layer, and logits capped after the head."""
    import torch
    from transformers import Gemma2Config, Gemma2ForCausalLM

    torch.manual_seed(2)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = Gemma2Config(
        vocab_size=vocabulary,
        num_key_value_heads=2,
        head_dim=4,
        sliding_window=3,
        final_logit_softcapping=2.0,
        pad_token_id=0,
        **sizes,
    )
    return sharpened(Gemma2ForCausalLM(config))


def sharpened(model: Any) -> Any:
    """Return `model` with larger weights, so that its laws differ from token to token."""
    import torch

    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() == 2:
                weights.mul_(15)
    return model.eval().requires_grad_(False)


BUILDERS = {"llama": llama, "gpt2": gpt2, "gemma": gemma}


@pytest.fixture(scope="session")
def tiny() -> SimpleNamespace:
    """The builders above, and `wrapped(model, tokenizer)`."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from markov_theory.llm.model import LanguageModel

    def wrapped(model: Any, tokenizer: Any, name: str = "tiny") -> LanguageModel:
        return LanguageModel(model, tokenizer, name)

    return SimpleNamespace(**BUILDERS, tokenizer=tokenizer, text=TEXT, context=f"{SPECIAL} the", wrapped=wrapped)


@pytest.fixture(params=sorted(BUILDERS))
def tiny_model(request: pytest.FixtureRequest, tiny: SimpleNamespace) -> Any:
    """A language model of each kind."""
    known = tiny.tokenizer()
    return tiny.wrapped(BUILDERS[request.param](len(known)), known, request.param)


@pytest.fixture(scope="session")
def packaged_model() -> Any:
    """The packaged SmolLM2-135M-Instruct (converted once a machine, in the user's cache folder)."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from markov_theory.llm.model import load_model

    return load_model()
