"""The page: one HTML file with its style, script, figures and tables inside, that asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from markov_theory.report.content import Part

LONG = 320  # letters of a cell that are shown at once


def render(parts: Sequence[Part], title: str) -> str:
    """Return the page as HTML; every text of the results is escaped.

    Parameters
    ----------
    parts : sequence of Part
    title : str
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style, script = _file("page.css"), _file("page.js")
    return environment.from_string(_file("page.html.j2")).render(
        parts=parts,
        title=title,
        long=LONG,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
    )


def write(page: str, path: Path) -> None:
    """Write a page whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        partial.write_text(page, encoding="utf-8", errors="replace")
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _file(name: str) -> str:
    return files("markov_theory.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """What a browser may load: pictures within the page, this style and this script, and nothing else."""
    allowed = {"style-src": style, "script-src": script}
    rules = ["default-src 'none'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    return "; ".join([*rules, *(f"{kind} 'sha256-{_digest(text)}'" for kind, text in allowed.items())])


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
