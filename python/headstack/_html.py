"""Tables for notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

__all__ = ["grid", "page", "table"]


def table(caption: str, rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values; nothing without rows."""
    cells = "".join(f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>" for name, value in rows)
    return f"<table><caption>{html.escape(caption)}</caption>{cells}</table>" if cells else ""


def grid(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a head."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_word(value))}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def page(title: str, *parts: str) -> str:
    """A title above tables."""
    return "\n".join([f"<h4>{html.escape(title)}</h4>", *(part for part in parts if part)])


def ends(rows: int, most: int = 5) -> tuple[list[int], int]:
    """The first and last rows of a long table, and how many are left out between them."""
    if rows <= 2 * most:
        return list(range(rows)), 0
    return [*range(most), *range(rows - most, rows)], rows - 2 * most


def _word(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.6g}"
    return "" if value is None else str(value)
