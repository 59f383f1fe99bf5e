"""Charts of results, with matplotlib if it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._results import Results


def plot_results(results: Results) -> Any:
    """The figure: distribution of the response times, time line, parts of the mean response."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plot() needs matplotlib: pip install 'headstack[plot]'") from error
    figure = Figure(figsize=(13, 3.6), layout="constrained")
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
