"""Layers written in Python."""

from __future__ import annotations

from . import _native

__all__ = ["Layer"]


class Layer:
    """A layer of your own between the load and a volume or a drive: `rig.with_layer(layer)`.

    `submit` gets each request, and must send it on with `calls.send` or answer it with `calls.answer`, now or later. A request that is
    neither when nothing happens any more ends the run with an error. This class passes all requests on.
    """

    def start(self) -> None:
        """Called before each run; sets what the layer keeps."""

    def submit(self, calls: _native.LayerCalls, request: _native.LayerRequest) -> None:
        """A request has arrived. An exception ends the run with it."""
        calls.send(request)

    def complete(self, calls: _native.LayerCalls, request: _native.LayerRequest) -> None:
        """All that was sent for a request has completed: answers it. `calls.outcome(request)` says how it went."""
        calls.answer(request)

    def timeout(self, calls: _native.LayerCalls) -> None:
        """The time of `calls.call_at` has come."""
