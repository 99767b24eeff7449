"""The rows p(· | context, v) of a language model, with the context computed once for all v.

The context stands before v, so its keys and values do not depend on v: they are computed for a batch of one
and seen by every row. Each layer joins them to the row's own only while it works, so that memory does not
grow with the number of layers.
"""

from __future__ import annotations

import copy
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markov_theory._checks import Array, IntArray, whole
from markov_theory.llm.model import LanguageModel

SPECIAL = re.compile(r"<\|[^|<>\s]+\|>")


def context_ids(language_model: LanguageModel, context: str) -> list[int]:
    """Return the ids of `context`: special tokens written out in it are read as such, and none is added.

    Raises
    ------
    ValueError
        If it is empty, names a special token that this tokenizer lacks, or is too long for the model.
    """
    tokenizer = language_model.tokenizer
    known = tokenizer.get_vocab()
    for token in SPECIAL.findall(context):
        if token not in known:
            special = ", ".join(tokenizer.all_special_tokens) or "none"
            raise ValueError(f"context names {token}, but {language_model.name} has only {special}")
    ids = list(tokenizer(context, add_special_tokens=False)["input_ids"])
    if not ids:
        raise ValueError(
            "context must have at least one token: at position 0 a model attends to itself only, "
            "and the rows p(· | v) of all tokens v nearly coincide"
        )
    if max(ids) >= (n_rows := len(language_model.embedding)):
        raise ValueError(f"context has token {max(ids)}, beyond the {n_rows} rows of the embedding")
    longest = getattr(language_model.model.config.get_text_config(), "max_position_embeddings", None)
    if longest is not None and len(ids) + 1 > longest:
        raise ValueError(f"context has {len(ids)} tokens, but the model takes {longest} with the row's own")
    return ids


class RowReader:
    """Next-token laws p(· | context, v) of a language model, in batches over v.

    Parameters
    ----------
    language_model : LanguageModel
    context : sequence of int
        Ids of the tokens before v, at least one.
    share_context : bool
        Compute the context once (the default), or again with every row: the plain way, to compare with.

    Notes
    -----
    The shared way is tried on one token against the plain way; a model whose cache does not allow it
    (recurrent layers, or layers that read each other's cache) is read the plain way, with a warning.
    """

    def __init__(self, language_model: LanguageModel, context: Sequence[int], *, share_context: bool = True) -> None:
        if not len(context):
            raise ValueError("context must have at least one token")
        self.language_model = language_model
        highest = len(language_model.embedding) - 1
        self.context = [whole(token, "context token", high=highest) for token in context]
        self._cache = self._shared_cache() if share_context else None
        if share_context and (self._cache is None or not self._agrees()):
            warnings.warn("this model's context cannot be shared: it is computed for every row", stacklevel=2)
            self._cache = None

    def laws(self, tokens: ArrayLike) -> Array:
        """Return the laws after `tokens` (one batch), shape (B, V): softmax in float64 over all outcomes."""
        return self.states(tokens)[1]

    def states(self, tokens: ArrayLike) -> tuple[Any, Array]:
        """Return what goes into the output head, a tensor of shape (B, width), and the laws (B, V)."""
        states, logits = self._forward(tokens)
        return states, self._softmax(logits)

    def laws_from(self, states: Any, tokens: ArrayLike) -> Array:
        """Return the laws (B, V) from kept `states`; the model runs again if its head alone does not do."""
        if not self._plain_head:
            return self.laws(tokens)
        import torch

        with torch.inference_mode():
            return self._softmax(self.language_model.model.get_output_embeddings()(states))

    @cached_property
    def impossible(self) -> Any:
        """Outcomes whose head row is not finite, a mask (V,) in torch: no law can give them."""
        head = self.language_model.model.get_output_embeddings()
        bad = ~head.weight.isfinite().all(dim=1)
        if getattr(head, "bias", None) is not None:
            bad |= ~head.bias.isfinite()
        return bad

    def _softmax(self, logits: Any) -> Array:
        import torch

        with torch.inference_mode():
            logits = logits.masked_fill(self.impossible, -torch.inf)
            if logits.device.type == "mps":  # has no double precision
                logits = logits.cpu()
            return torch.softmax(logits.double(), dim=-1).cpu().numpy()

    def _forward(self, tokens: ArrayLike) -> tuple[Any, Any]:
        """Return states (B, width) and logits (B, V) at the last position, the head applied there only."""
        import torch

        model, device = self.language_model.model, self.language_model.device
        ids = torch.as_tensor(np.asarray(tokens, dtype=np.int64), device=device)[:, None]  # (B, 1)
        options: dict[str, Any] = {"use_cache": False}
        if self._cache is not None:
            options = {"use_cache": True, self._cache_name: self._cache}
        else:
            context = torch.tensor([self.context], device=device).expand(len(ids), -1)
            ids = torch.cat([context, ids], dim=1)
        seen: list[Any] = []
        hook = model.get_output_embeddings().register_forward_pre_hook(lambda _, given: seen.append(given[0]))
        try:
            with torch.inference_mode():
                logits = model(ids, **options, **self._last_only).logits[:, -1]
        finally:
            hook.remove()
        return seen[-1][:, -1], logits

    @cached_property
    def _last_only(self) -> dict[str, int]:
        return {"logits_to_keep": 1} if "logits_to_keep" in self._accepted else {}

    @cached_property
    def _cache_name(self) -> str:
        return "cache" if "cache" in self._accepted else "past_key_values"  # its older name

    @cached_property
    def _accepted(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.language_model.model.forward).parameters)

    @cached_property
    def _plain_head(self) -> bool:
        """Whether the head alone turns states into logits (no capping or scaling after it)."""
        import torch

        states, logits = self._forward(self.context[-1:])
        with torch.inference_mode():
            again = self.language_model.model.get_output_embeddings()(states)
        return bool(torch.allclose(again, logits, rtol=1e-4, atol=1e-4, equal_nan=True))

    def _shared_cache(self) -> Any:
        import torch

        model, device = self.language_model.model, self.language_model.device
        ids = torch.tensor([self.context], device=device)
        with torch.inference_mode():
            cache = getattr(model(ids, use_cache=True, **self._last_only), self._cache_name, None)
        layers = getattr(cache, "layers", None)
        if not layers or any(getattr(layer, "keys", None) is None for layer in layers):
            return None
        for layer in layers:
            layer.update = _joined(layer)
        return cache

    def _agrees(self) -> bool:
        """Whether shared and plain laws of one token agree in total variation, up to rounding."""
        shared = self.laws(self.context[-1:])
        kept, self._cache = self._cache, None
        plain = self.laws(self.context[-1:])
        self._cache = kept
        tolerance = 1e-3 if self.language_model.dtype in ("float32", "float64") else 0.1
        return bool(np.abs(shared - plain).sum() / 2 <= tolerance)


def _joined(layer: Any) -> Callable[..., Any]:
    """Return an `update` for `layer` that joins its keys and values to a batch's own and keeps nothing."""

    def update(keys: Any, values: Any, *args: Any, **options: Any) -> Any:
        twin = copy.copy(layer)
        twin.__dict__.pop("update")
        twin.keys = layer.keys.expand(len(keys), -1, -1, -1)
        twin.values = layer.values.expand(len(values), -1, -1, -1)
        return twin.update(keys, values, *args, **options)

    return update


def batches(tokens: IntArray, size: int) -> Iterator[IntArray]:
    """Cut `tokens` into consecutive batches of `size`, the last one shorter."""
    for start in range(0, len(tokens), size):
        yield tokens[start : start + size]
