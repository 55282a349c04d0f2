"""`report.html`: one page that needs nothing beside it, with every figure, its numbers and what they say."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-top: 1px solid #8886; padding-top: 1rem; }
img { max-width: 100%; height: auto; background: white; border-radius: 4px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.85rem; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.6rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child, td.text, th.text { text-align: left; } td { white-space: nowrap; }
td.text:last-child { white-space: normal; }
caption { caption-side: top; text-align: left; font-weight: 600; padding: 0.4rem 0; }
nav a { margin-right: 0.8rem; white-space: nowrap; } .note { color: GrayText; font-size: 0.85rem; }
"""


@dataclass(frozen=True)
class Table:
    """A table: columns by key and heading, rows of plain values, and how to show each column."""

    caption: str
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Section:
    """A part of the page: what it is about, its sentences, a picture, tables, and the files behind them."""

    title: str
    sentences: Sequence[str] = ()
    picture: Path | None = None
    tables: Sequence[Table] = ()
    files: Sequence[Path] = field(default=())


def show(name: str, value: Any) -> str:
    """Format a number by what its column is called; what is undefined or infinite is a dash."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return escape(value)
    if name.endswith("rate"):
        return f"{value:.0%}"
    if name.endswith(("ratio", "factor")):
        return f"{value:.2f}"
    if isinstance(value, float) and abs(value) < 10.0 and value != int(value):
        return f"{value:g}"
    return f"{value:,.0f}"


def show_span(rates: Iterable[float]) -> str:
    """Format the smallest and the largest of some rates."""
    ordered = sorted(rates)
    low, high = f"{ordered[0]:.0%}", f"{ordered[-1]:.0%}"
    return low if low == high else f"{low} to {high}"


def _render_table(table: Table) -> Iterable[str]:
    text = {key for key in table.columns if any(isinstance(row.get(key), str) for row in table.rows)}

    def mark(key: str) -> str:
        return ' class="text"' if key in text else ""

    yield f'<div class="wide"><table><caption>{escape(table.caption)}</caption><thead><tr>'
    yield "".join(f'<th scope="col"{mark(key)}>{escape(heading)}</th>' for key, heading in table.columns.items())
    yield "</tr></thead><tbody>"
    for row in table.rows:
        cells = (f"<td{mark(key)}>{show(key, row.get(key))}</td>" for key in table.columns)
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _render_section(section: Section, anchor: str) -> Iterable[str]:
    yield f'<section id="{anchor}"><h2>{escape(section.title)}</h2>'
    if section.picture is not None:
        data = base64.b64encode(section.picture.read_bytes()).decode()
        yield f'<img alt="{escape(section.title, quote=True)}" src="data:image/png;base64,{data}">'
    yield from (f"<p>{escape(sentence)}</p>" for sentence in section.sentences)
    for table in section.tables:
        yield from _render_table(table)
    if section.files:
        links = ", ".join(f'<a href="{quote(path.name)}">{escape(path.name)}</a>' for path in section.files)
        yield f'<p class="note">Files beside this page: {links}</p>'
    yield "</section>"


def render(title: str, introduction: Sequence[str], sections: Sequence[Section]) -> str:
    """Return the page."""
    anchors = [f"part-{place}" for place in range(1, len(sections) + 1)]
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<style>{_STYLE}</style></head><body><h1>{escape(title)}</h1>",
        *(f"<p>{escape(sentence)}</p>" for sentence in introduction),
        "<nav>",
        *(f'<a href="#{a}">{escape(s.title.partition(":")[0])}</a>' for a, s in zip(anchors, sections, strict=True)),
        "</nav>",
    ]
    for section, anchor in zip(sections, anchors, strict=True):
        parts += _render_section(section, anchor)
    return "\n".join([*parts, "</body></html>\n"])
