"""Headstack: what does this disk do with this load?

    import headstack as hs

    rig = hs.Rig("exos-x16")
    run = rig.run(hs.Fio("job.fio"), seed=1)
    run.iops, run.response.p99_ms
    run.requests.to_pandas()

The same rig, load and seed give the same results as the command `headstack sim`, on every machine.
"""

from ._command import Server, command, emulate, serve
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
from ._sweep import Sweep, SweepCell, SweepSummary, SweepTable
from ._tune import Advice, Change, Tuning, TuningFigure, tune

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
    "command",
    "drives",
    "emulate",
    "orders",
    "rigs",
    "serve",
    "trace_formats",
    "tune",
]
