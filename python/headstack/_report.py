"""The report of a run: one HTML page that needs nothing else."""

from __future__ import annotations

import base64
import html
import io
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._results import Results

__all__ = ["Report"]

STYLE = (
    "body { font: 14px sans-serif; margin: 1rem; color: #222 } img { max-width: 100%; height: auto }"
    " table { border-collapse: collapse; float: left; margin: 0 2rem 1rem 0 }"
    " caption { text-align: left; font-weight: bold; padding: .2rem 0 } td { padding: .1rem 1rem .1rem 0 }"
    " td + td { text-align: right; font-variant-numeric: tabular-nums } footer { clear: both; color: #666 }"
)

#: Height of the page in a notebook, in pixels.
HEIGHT = 640


class Report:
    """A page with the tables of a run, and with charts if matplotlib is installed. Jupyter shows it; `write` makes a file of it."""

    def __init__(self, results: Results) -> None:
        """Makes the page of these results."""
        title = html.escape(results._title())
        charts = _charts(results)
        self._html = (
            f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n<style>{STYLE}</style>\n'
            f"{charts}{results._repr_html_()}\n"
            f"<footer>headstack, {html.escape(results._version())}; {results.response.count:,} requests</footer>\n</html>\n"
        )

    @property
    def html(self) -> str:
        """The page."""
        return self._html

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._html)

    def _repr_html_(self) -> str:
        # A frame, so that the page's style does not change the notebook's; without scripts, which it has none of.
        page = html.escape(self._html, quote=True)
        return f'<iframe sandbox="allow-same-origin" srcdoc="{page}" style="width: 100%; height: {HEIGHT}px; border: 1px solid #ccc"></iframe>'

    def __repr__(self) -> str:
        return f"<Report of {len(self._html):,} characters>"


def _charts(results: Results) -> str:
    """The figure of `plot()` as a picture; nothing without matplotlib."""
    try:
        figure = results.plot()
    except ImportError:
        return ""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    data = base64.b64encode(file.getvalue()).decode("ascii")
    return f'<img alt="response times, requests over time, parts of the response" src="data:image/svg+xml;base64,{data}">'
