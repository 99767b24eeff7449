"""The shape of the project: imports only go up the tree, files stay short, documents speak of the project alone."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "markov_theory"
# From the top down: a module imports only from lines above its own, and within its own line.
ORDER = (
    ("_checks", "_command", "_compile", "_processes", "_progress"),
    ("randomness", "divergences", "caratheodory"),
    ("chain", "dictionary"),
    ("higher_order", "higher_order_families"),
    ("families",),
    ("solvers",),
    ("instance", "embedding_instance", "misspecified"),
    ("sampling",),
    ("bounds",),
    ("estimators",),
    ("corpus",),
    ("success", "provenance"),
    ("verify",),
    ("plots",),
    ("sweep",),
    ("dependence",),
    ("recovery",),
    ("plan",),
    ("report",),
)


def modules():
    return [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__main__.py"]


def place(path):
    """The line of ORDER that a file stands on; a package's folder stands for its files."""
    name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for level, names in enumerate(ORDER):
        if name in names:
            return level
    return len(ORDER)


def imported(path):
    """Top-level names of the package's modules that a file imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "markov_theory":
            parts = node.module.split(".")[1:]
            yield from [parts[0]] if parts else [alias.name for alias in node.names]
        if isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("markov_theory."))


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_only_go_up(path):
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own in ("__init__", "llm"):
        return
    for name in imported(path):
        assert name != "llm", "nothing above the bridge imports it"
        level = next((i for i, names in enumerate(ORDER) if name in names), None)
        assert level is not None, f"{name} has no place in the order"
        assert level <= place(path), f"{own} imports {name}, which stands below it"


def test_every_module_has_a_place():
    names = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in modules()}
    assert names == {name for line in ORDER for name in line} | {"llm", "__init__"}


def test_the_core_imports_neither_torch_nor_numba_by_itself():
    heavy = {"torch", "transformers", "peft", "dask"}
    for path in modules():
        if path.relative_to(PACKAGE).parts[0] == "llm":
            continue
        found = {
            name.split(".")[0]
            for node in ast.walk(ast.parse(path.read_text()))
            for name in (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            )
        }  # fmt: skip
        assert not found & heavy, path
        if path.name != "_compile.py":
            assert "numba" not in found, path


def test_files_are_short():
    long = {str(p.relative_to(ROOT)): n for p in PACKAGE.rglob("*.py") if (n := len(p.read_text().splitlines())) > 320}
    assert long == {}


def tracked():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return [ROOT / name for name in listed.splitlines() if (ROOT / name).suffix in {".py", ".md", ".toml", ".cff", ""}]


def test_documents_name_no_path_of_one_machine():
    pattern = re.compile(r"(?<![\w.])/(work|root|home|mnt)/")
    files = tracked()
    assert files or not (ROOT / ".git").exists()
    for path in files:
        if path.is_file() and path != Path(__file__):
            assert not pattern.search(path.read_text()), path
