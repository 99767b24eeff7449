"""Load a causal language model with its tokenizer: offline by default, and never with random weights."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from markov_theory.llm.packaged import converted_folder

PACKAGED = "smollm2-135m"
DTYPES = ("float32", "bfloat16", "float16", "float64")
INSTALL = "pip install 'markov-theory[llm]'"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "spiece.model", "tekken.json")


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A causal language model in evaluation mode, its weights frozen, with its tokenizer.

    Parameters
    ----------
    model : transformers.PreTrainedModel
    tokenizer : transformers.PreTrainedTokenizerBase
    name : str
        What was asked for, for provenance.
    """

    model: Any
    tokenizer: Any
    name: str

    @property
    def device(self) -> Any:
        """The device of the input embedding."""
        return self.embedding.device

    @property
    def dtype(self) -> str:
        """Name of the type of the weights, for example ``"float32"``."""
        return str(self.embedding.dtype).removeprefix("torch.")

    @property
    def embedding(self) -> Any:
        """The input embedding, shape (rows, width)."""
        return self.model.get_input_embeddings().weight

    @property
    def n_outcomes(self) -> int:
        """Number of logits: tokens that the model can give next."""
        return self.model.get_output_embeddings().weight.shape[0]

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with the weights (at loading), their type, or the vocabulary.

        Of each tensor: name, shape, type, 64 of its numbers, and the exact integer sum of its bits, which is
        the same on every device and for every number of threads.
        """
        import torch

        digest = hashlib.sha256(repr(sorted(self.tokenizer.get_vocab().items())).encode())
        for name, weights in sorted(self.model.state_dict().items()):
            flat = weights.detach().reshape(-1)
            digest.update(f"{name} {tuple(weights.shape)} {weights.dtype}".encode())
            bits = flat.view({1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[flat.element_size()])
            some = bits[:: max(1, len(bits) // 64)]
            digest.update(repr([*some.tolist(), int(bits.sum(dtype=torch.int64))]).encode())
        return digest.hexdigest()[:16]


def load_model(
    name: str | Path | None = None, *, device: str = "cpu", dtype: str = "float32", online: bool = False
) -> LanguageModel:
    """Load a language model and its tokenizer, with nothing left random and nothing fetched unasked.

    Parameters
    ----------
    name : str or Path, optional
        ``None`` or ``"smollm2-135m"``: the packaged SmolLM2-135M-Instruct, converted once (20 s) and kept in
        the cache folder. Otherwise a local folder, or the id of a model on the Hugging Face hub.
    device : str
        As PyTorch names it, for example ``"cpu"`` or ``"cuda"``.
    dtype : {"float32", "bfloat16", "float16", "float64"}
        Type of the weights.
    online : bool
        Whether a hub id may be downloaded. Otherwise it must already be in the local hub cache, unless the
        environment says ``HF_HUB_OFFLINE=0``.

    Returns
    -------
    LanguageModel

    Raises
    ------
    ModuleNotFoundError
        If the extra ``llm`` or the packaged model is not installed; the message is the command to run.
    ValueError
        If there is no such model, tokenizer, device or dtype.
    RuntimeError
        If the checkpoint lacks weights, or its output head should be tied to the embedding and is not.
    """
    offline = stay_offline(online)
    require_extra()
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, got {dtype!r}")
    place = _device(device)
    name = PACKAGED if name is None else str(name)
    source = converted_folder() if name == PACKAGED else _source(name)
    model, tokenizer = _read(source, name, dtype, offline)
    return LanguageModel(model.to(place).eval().requires_grad_(False), tokenizer, name)


def stay_offline(online: bool = False) -> bool:
    """Keep the hub's libraries offline, unless `online` or the environment says otherwise; return whether."""
    allowed = os.environ.get("HF_HUB_OFFLINE", "1").lower() in ("0", "false", "no", "off", "")
    offline = not (online or allowed)
    if offline:
        os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when they are imported
    return offline


def require_extra() -> None:
    """Raise ModuleNotFoundError with the command to run, if PyTorch or transformers is not installed."""
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        missing = error.name or str(error)
        raise ModuleNotFoundError(f"language models need {missing}: {INSTALL}", name=missing) from None


def check_head(model: Any) -> None:
    """Raise RuntimeError if the output head should be the input embedding and is not the same storage."""
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    if head is None:
        raise RuntimeError(f"{type(model).__name__} has no output head")
    tied = getattr(model.config.get_text_config(), "tie_word_embeddings", False)
    if tied and head.weight.data_ptr() != embedding.weight.data_ptr():
        raise RuntimeError("the output head should be tied to the embedding, but is separate: perhaps random")


def _device(device: str) -> Any:
    import torch

    try:
        place = torch.device(device)
        torch.empty(1, device=place)
    except (RuntimeError, AssertionError, NotImplementedError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"device {device!r} is not usable here ({reason})") from None
    return place


def _source(name: str) -> str:
    """Return the folder or hub id to read; a folder must have a configuration and a tokenizer."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if folder.is_file() or name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
            raise ValueError(f"no model folder {name}")
        return name
    if not (folder / "config.json").is_file():
        raise ValueError(f"{name} is not a model folder: it has no config.json")
    if not any((folder / file).is_file() for file in TOKENIZER_FILES):
        raise ValueError(f"{name} has no tokenizer; save its own there with tokenizer.save_pretrained")
    return str(folder)


def _read(source: str | Path, name: str, dtype: str, offline: bool) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(source, local_files_only=offline)
        model, report = AutoModelForCausalLM.from_pretrained(
            source, dtype=getattr(torch, dtype), local_files_only=offline, output_loading_info=True
        )
    except (OSError, ValueError, KeyError) as error:
        if Path(source).is_dir():
            raise ValueError(f"{name} cannot be read as a causal language model ({_line(error)})") from None
        remedy = f"`hf download {name}`, or allow it with online=True (--online)" if offline else _line(error)
        raise ValueError(f"no model {name!r}: not a folder, nor in the local hub cache; {remedy}") from None
    if report["missing_keys"] or report["mismatched_keys"]:
        lacking = sorted(map(str, {*report["missing_keys"], *report["mismatched_keys"]}))
        some = ", ".join(lacking[:3]) + (", ..." if len(lacking) > 3 else "")
        raise RuntimeError(f"{name} lacks weights, which would be random: {some}")
    check_head(model)
    return model, tokenizer


def _line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
