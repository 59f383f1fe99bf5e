"""Results of runs."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from . import _native
from ._errors import InputError
from ._numbers import real, whole
from ._numpy import np
from ._requests import RequestTable
from ._stored import StoredResults

if TYPE_CHECKING:
    import os

    import numpy.typing as npt
    from matplotlib.figure import Figure

    from ._report import Report

__all__ = ["Responses", "Results"]

KINDS = ("all", "read", "write", "flush")


class Responses:
    """The response times of the requests of one kind that counted."""

    def __init__(self, native: _native.Results | StoredResults, kind: str) -> None:
        """The response times of `all` requests, or of each `read`, `write` or `flush`."""
        self._native, self._kind = native, kind

    @property
    def count(self) -> int:
        """Number of requests."""
        return self._native.count(self._kind)[0]

    @property
    def bytes(self) -> int:
        """Bytes that they transferred."""
        return self._native.count(self._kind)[1]

    @property
    def mean_ms(self) -> float:
        """Mean in ms."""
        return self._native.moments_ms(self._kind)[0]

    @property
    def std_dev_ms(self) -> float:
        """Standard deviation in ms."""
        return self._native.moments_ms(self._kind)[1]

    @property
    def min_ms(self) -> float:
        """Shortest in ms."""
        return self._native.moments_ms(self._kind)[2]

    @property
    def max_ms(self) -> float:
        """Longest in ms."""
        return self._native.moments_ms(self._kind)[3]

    @property
    def p50_ms(self) -> float:
        """Median in ms."""
        return self.quantile_ms(0.5)

    @property
    def p90_ms(self) -> float:
        """Time in ms that 90 % do not exceed."""
        return self.quantile_ms(0.9)

    @property
    def p99_ms(self) -> float:
        """Time in ms that 99 % do not exceed."""
        return self.quantile_ms(0.99)

    def quantile_ms(self, share: SupportsFloat) -> float:
        """Time in ms that this share of the requests does not exceed."""
        return self._native.quantile_ms(self._kind, real("share", share, 0.0, 1.0))

    def distribution(self, steps: SupportsIndex = 500) -> dict[str, npt.NDArray[np.float64]]:
        """The distribution in `steps` rows: columns share and response_ms."""
        shares, times = self._native.distribution(self._kind, whole("steps", steps, 1, 1_000_000))
        return {"share": shares, "response_ms": times}

    def __repr__(self) -> str:
        return f"<Responses of {self.count} requests: mean {self.mean_ms:.3g} ms, p99 {self.p99_ms:.3g} ms>"


class Results:
    """Results of a run. `to_json()` is what `headstack sim --json` prints for it, with a CPU time of null."""

    def __init__(self, native: _native.Results | StoredResults) -> None:
        """Results of the extension; `Rig.run` makes them."""
        self._native = native
        self._dict: dict[str, Any] | None = None
        self._requests: RequestTable | None = None

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return self._native.seed

    @property
    def iops(self) -> float:
        """Reads and writes a second; flushes do not count."""
        return self._native.iops

    @property
    def bandwidth_mb_s(self) -> float:
        """MB (10⁶ bytes) a second."""
        return self._native.bandwidth_mb_s

    @property
    def simulated_s(self) -> float:
        """Virtual time of the run in seconds."""
        return self._native.simulated_s

    @property
    def counted_s(self) -> float:
        """Virtual time in seconds in which requests counted: without the warm-up (`ramp_time`)."""
        return self._native.counted_s

    @property
    def requests_not_counted(self) -> int:
        """Number of requests that completed in the warm-up: rows of `requests` whose `counted` is false."""
        return int(self.to_dict()["headstack"]["requests_not_counted"])

    @property
    def response(self) -> Responses:
        """Response times of all requests that counted."""
        return Responses(self._native, "all")

    @property
    def reads(self) -> Responses:
        """Response times of the reads."""
        return Responses(self._native, "read")

    @property
    def writes(self) -> Responses:
        """Response times of the writes."""
        return Responses(self._native, "write")

    @property
    def flushes(self) -> Responses:
        """Response times of the flushes."""
        return Responses(self._native, "flush")

    @property
    def parts_ms(self) -> dict[str, float]:
        """Mean of each part of the response time in ms; they add up to its mean."""
        return dict(self._native.parts_ms())

    @property
    def confidence(self) -> dict[str, Any] | None:
        """Confidence intervals of 95 % by batch means; None for too few requests."""
        found = self.to_dict()["headstack"]["confidence"]
        return None if found is None else dict(found)

    @property
    def devices(self) -> list[dict[str, Any]]:
        """Each device: commands, cache, seeks, utilisation, time of the arm."""
        return list(self.to_dict()["headstack"]["devices"])

    @property
    def volumes(self) -> list[dict[str, Any]]:
        """Each volume: its requests, response times and parts."""
        return list(self.to_dict()["headstack"]["volumes"])

    @property
    def jobs(self) -> list[dict[str, Any]]:
        """Each job of the load: requests, IOPS, bandwidth and response times of its reads, writes and flushes."""
        return list(self.to_dict()["headstack"]["jobs"])

    @property
    def timeline(self) -> dict[str, npt.NDArray[np.float64]]:
        """Columns over time: time_s (start of a bin), read_iops, write_iops, read_mb_s, write_mb_s, response_ms, outstanding."""
        line = dict(self.to_dict()["headstack"]["timeline"])
        width = line.pop("bin_s")
        columns = {name: np.array(values) for name, values in line.items()}
        return {"time_s": np.arange(len(columns["read_iops"])) * width, **columns}

    @property
    def requests(self) -> RequestTable:
        """A row for each completed request. Raises InputError if the run kept none (`keep="summary"`)."""
        if self._requests is None:
            columns = self._native.take_requests()
            if columns is None:
                raise InputError('requests: the run kept none; run with keep="all"')
            self._requests = RequestTable(columns)
        return self._requests

    @property
    def partial(self) -> dict[str, Any] | None:
        """What is missing of a run that ended before its load: reason, share that was done, outstanding requests; else None."""
        stop = self._native.early_stop()
        return None if stop is None else dict(zip(("reason", "share", "outstanding"), stop))

    @property
    def remarks(self) -> list[str]:
        """What was ignored, as messages."""
        return self._native.remarks()

    @property
    def notes(self) -> dict[str, str]:
        """What is suspicious in the results, by the name of the check: what was met, and the key to look at."""
        return dict(self._native.notes())

    @property
    def setup(self) -> dict[str, Any]:
        """What decides about the figures: each kind of drive's write_cache, fua, order, queue_depth; scheduler; page_cache_mb."""
        return dict(self.to_dict()["headstack"]["setup"])

    @property
    def read_iops(self) -> float:
        """Reads per second."""
        return self._native.rates()[0]

    @property
    def write_iops(self) -> float:
        """Writes per second."""
        return self._native.rates()[1]

    @property
    def flushes_per_s(self) -> float:
        """Flushes per second, which `iops` does not count."""
        return self._native.rates()[2]

    def to_json(self) -> str:
        """The results as JSON in the form of fio, with the object `headstack` for all others."""
        return self._native.to_json()

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict."""
        if self._dict is None:
            self._dict = json.loads(self.to_json())
        return self._dict

    def figures(self) -> dict[str, float]:
        """The figures of most use, by name, for a row of a table."""
        response = self.response
        return {
            "requests": response.count,
            "iops": self.iops,
            "bandwidth_mb_s": self.bandwidth_mb_s,
            "response_mean_ms": response.mean_ms,
            "response_p50_ms": response.p50_ms,
            "response_p99_ms": response.p99_ms,
            "response_max_ms": response.max_ms,
            "simulated_s": self.simulated_s,
        }

    def plot(self) -> Figure:
        """Draws the distribution of the response times, the time line and the parts with matplotlib; returns the figure, which notebooks
        show."""
        from ._plot import plot_results

        return plot_results(self)

    def report(self, path: str | os.PathLike[str] | None = None) -> Report:
        """One HTML page with the tables of the results, and charts if matplotlib is installed: Jupyter shows it; `path` is a file that it
        is also written to."""
        from ._report import Report

        page = Report(self)
        if path is not None:
            page.write(path)
        return page

    @staticmethod
    def _version() -> str:
        return _native.version()

    def _title(self) -> str:
        rig, load, _ = self._native.titles()
        return f"{load} on {rig}"

    def _tables(self) -> Iterator[tuple[str, list[tuple[str, str]]]]:
        yield "Figures", [(name, f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}") for name, value in self.figures().items()]
        yield "Parts of the response (ms)", [(name, f"{value:.4g}") for name, value in self.parts_ms.items()]
        yield "Utilisation", [(device["name"], f"{device['utilisation']:.1%}") for device in self.devices]

    def _repr_html_(self) -> str:
        rows = [f"<h3>{html.escape(self._title())}, seed {self.seed}</h3>"]
        for name, lines in self._tables():
            cells = "".join(f"<tr><td>{html.escape(key)}</td><td>{html.escape(value)}</td></tr>" for key, value in lines)
            rows.append(f"<table><caption>{html.escape(name)}</caption>{cells}</table>")
        if self.partial is not None:
            rows.append(f"<p>Partial: {html.escape(str(self.partial))}</p>")
        rows += [f"<p>Note: {html.escape(text)}</p>" for text in self.notes.values()]
        return "\n".join(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        if isinstance(self._native, StoredResults):
            return Results, (self._native,)
        try:
            columns: dict[str, Any] | None = self.requests.__reduce__()[1][0]
        except InputError:
            columns = None
        return Results, (StoredResults(self._native, columns),)

    def __repr__(self) -> str:
        partial = ", partial" if self.partial else ""
        line = f"<Results of {self._title()}: {self.response.count} requests, {self.iops:.4g} IOPS{partial}>"
        return "\n".join([line, *(f"note: {text}" for text in self.notes.values())])
