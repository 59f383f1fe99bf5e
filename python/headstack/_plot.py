"""Charts of results, with matplotlib if it is installed."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ._results import Results


def plot_results(results: Results) -> Figure:
    """The figure: distribution of the response times, time line, parts of the mean response. A notebook shows it as a picture, whether or
    not pyplot is used in it."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: pip install 'headstack[plot]'") from error

    class Picture(Figure):
        """A figure that knows how a notebook shows it; without pyplot, nothing else tells it."""

        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=100)
            return file.getvalue()

    figure = Picture(figsize=(13, 3.6), layout="constrained")
    responses, timeline, parts = figure.subplots(1, 3)
    for name, times in (("reads", results.reads), ("writes", results.writes)):
        if times.count:
            line = times.distribution()
            responses.plot(line["response_ms"], 100 * line["share"], label=name)
    responses.set(xscale="log", xlabel="response time (ms)", ylabel="requests (%)")
    if responses.lines:
        responses.legend()
    columns = results.timeline
    timeline.plot(columns["time_s"], columns["read_iops"] + columns["write_iops"])
    timeline.set(xlabel="time (s)", ylabel="requests a second", ylim=(0, None))
    names, values = zip(*results.parts_ms.items())
    parts.barh(names, values)
    parts.invert_yaxis()
    parts.set(xlabel="mean of the response (ms)")
    figure.suptitle(results._title())
    return figure
