"""A page as a test reads it: its tables with what is shown and what is exact, its text, and every attribute."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "link", "input", "hr"}


@dataclass
class Seen:
    """One table: headings, and rows of (shown, exact, tone of the verdict in it)."""

    columns: list[str] = field(default_factory=list)
    rows: list[list[tuple[str, str, str]]] = field(default_factory=list)

    def exact(self) -> list[list[str]]:
        return [[exact for _, exact, _ in row] for row in self.rows]

    def column(self, name: str) -> list[str]:
        return [row[self.columns.index(name)][1] for row in self.rows]

    def tones(self, name: str) -> list[str]:
        return [row[self.columns.index(name)][2] for row in self.rows]


class Page(HTMLParser):
    """A parsed page.

    Attributes
    ----------
    tables : dict of str to list of Seen
        By caption.
    tags : list of (tag, attributes)
    text : str
        Without scripts and styles.
    order : list of str
        Ids of the sections.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tables: dict[str, list[Seen]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[str] = []
        self.captions: dict[str, str] = {}
        self.text, self.order = "", []
        self.raw: dict[str, str] = {"script": "", "style": "", "pre": "", "title": ""}
        self._name: str | None = None
        self._table = Seen()
        self._cell: dict[str, str] | None = None
        self.feed(html)
        self.close()
        assert self.inside == [], f"tags left open: {self.inside}"

    def table(self, caption: str) -> Seen:
        """The only table whose caption begins so."""
        (found,) = [one for name, tables in self.tables.items() if name.startswith(caption) for one in tables]
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = dict(attrs)
        self.tags.append((tag, told))
        if tag in VOID:
            return
        self.inside.append(tag)
        if tag == "section":
            self.order.append(told["id"] or "")
        if told.get("id", "").startswith("table-"):
            self._name, self.captions[told["id"]] = told["id"], ""
        if tag == "table":
            self._table = Seen()
            self.tables.setdefault(self.captions[told["aria-labelledby"]], []).append(self._table)
        if tag == "tr" and "tbody" in self.inside:
            self._table.rows.append([])
        if tag in ("td", "th"):
            self._cell = {"text": "", "tone": ""} | ({"exact": told["data-value"]} if "data-value" in told else {})
        if tag == "span" and self._cell is not None:
            self._cell["tone"] = told["class"].removeprefix("verdict ")
        if tag == "summary" and self._cell is not None:
            self._cell["skip"] = "yes"

    def handle_endtag(self, tag: str) -> None:
        assert self.inside.pop() == tag
        self._name = None
        if tag == "pre":
            self.raw["pre"] += "\n"
        if tag == "summary" and self._cell is not None:
            del self._cell["skip"]
        if tag == "th":
            self._table.columns.append(self._cell["text"])
        if tag == "td":
            shown = self._cell["text"]
            self._table.rows[-1].append((shown, self._cell.get("exact", shown), self._cell["tone"]))
        if tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data: str) -> None:
        here = self.inside[-1] if self.inside else ""
        for tag in self.raw:
            if tag in self.inside:
                self.raw[tag] += data
        if here in ("script", "style"):
            return
        self.text += data
        if self._name is not None:
            self.captions[self._name] += data
        if self._cell is not None and "skip" not in self._cell:
            self._cell["text"] += data
