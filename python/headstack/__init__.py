"""Headstack: what does this disk do with this load?

    import headstack as hs

    rig = hs.Rig("exos-x16")
    run = rig.run(hs.Fio("job.fio"), seed=1)
    run.iops, run.response.p99_ms
    run.requests.to_pandas()

The same rig, load and seed give the same results as the command `headstack sim`, on every machine.
"""

import typing

from ._drive import Drive
from ._errors import CommandError, InputError, InternalError, StoppedWarning
from ._layer import Layer
from ._load import Fio, Generators, Load, Requests, Trace
from ._native import (
    Completion,
    LayerCalls,
    LayerRequest,
    LoadContext,
    Queue,
    Request,
    Sleep,
    drives,
    orders,
    rigs,
    trace_formats,
)
from ._native import version as _version
from ._order import Order
from ._requests import RequestTable
from ._results import Responses, Results
from ._rig import Rig
from ._simulation import Progress, Simulation
from ._source import PythonLoad

if typing.TYPE_CHECKING:
    from ._command import Server, command, emulate, serve
    from ._report import Report
    from ._sweep import Sweep, SweepCell, SweepSummary, SweepTable
    from ._tune import Advice, Change, RebuildCommand, Tuning, TuningFigure, TuningJob, tune

#: Names whose modules are imported when they are first used, because they take as long to import as all others.
_LATER = {
    "Server": "_command",
    "command": "_command",
    "emulate": "_command",
    "serve": "_command",
    "Report": "_report",
    "Sweep": "_sweep",
    "SweepCell": "_sweep",
    "SweepSummary": "_sweep",
    "SweepTable": "_sweep",
    "Advice": "_tune",
    "Change": "_tune",
    "RebuildCommand": "_tune",
    "Tuning": "_tune",
    "TuningFigure": "_tune",
    "TuningJob": "_tune",
    "tune": "_tune",
}


def __getattr__(name: str) -> typing.Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f".{_LATER[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


__version__ = _version()

__all__ = [
    "Advice",
    "Change",
    "CommandError",
    "Completion",
    "Drive",
    "Fio",
    "Generators",
    "InputError",
    "InternalError",
    "Layer",
    "LayerCalls",
    "LayerRequest",
    "Load",
    "LoadContext",
    "Order",
    "Progress",
    "PythonLoad",
    "Queue",
    "RebuildCommand",
    "Report",
    "Request",
    "RequestTable",
    "Requests",
    "Responses",
    "Results",
    "Rig",
    "Server",
    "Simulation",
    "Sleep",
    "StoppedWarning",
    "Sweep",
    "SweepCell",
    "SweepSummary",
    "SweepTable",
    "Trace",
    "Tuning",
    "TuningFigure",
    "TuningJob",
    "command",
    "drives",
    "emulate",
    "orders",
    "rigs",
    "serve",
    "trace_formats",
    "tune",
]
