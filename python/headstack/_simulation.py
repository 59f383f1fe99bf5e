"""Simulations step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, SupportsFloat, SupportsIndex

from . import _native
from ._errors import InputError, StoppedWarning
from ._keywords import names_nearest
from ._load import Load
from ._numbers import real, whole
from ._results import Results

if TYPE_CHECKING:
    from ._rig import Rig

__all__ = ["Progress", "Simulation"]

KEEPS = ("all", "summary")
LATEST_NS = 2**63 - 1


class Progress(NamedTuple):
    """Progress of a run."""

    #: Virtual time in seconds.
    now_s: float
    #: Completed requests.
    completed: int
    #: Share of the load that is done, 0 to 1; None if its size is unknown.
    share: float | None


class Simulation:
    """A load on a rig, as a machine that a program moves: `step()`, `run(until=…)`, then `finish()` for the results.

    The results do not depend on how it is moved.
    """

    @names_nearest
    def __init__(self, rig: Rig, load: Load, *, seed: SupportsIndex = 0, keep: str = "all") -> None:
        """An idle rig at time 0. `keep` is `all` for a row a request, or `summary`."""
        if not isinstance(load, Load):
            raise InputError(f"load: {type(load).__name__} (a headstack.Load: Fio, Trace, Requests or Generators)")
        if keep not in KEEPS:
            raise InputError(f"keep: {keep!r} (one of {', '.join(KEEPS)})")
        orders, layers = rig._python_parts()
        self._native = _native.Simulation(rig._native, load._native, whole("seed", seed, 0, 2**64 - 1), keep == "all", orders, layers)
        self._remains = True

    def step(self, events: SupportsIndex = 1) -> bool:
        """Processes a number of events, of which a request takes a few; returns whether any remain."""
        self._remains = self._native.step(whole("events", events, 0, 2**63 - 1))
        return self._remains

    @names_nearest
    def run(
        self,
        until: SupportsFloat | None = None,
        *,
        progress: Callable[[Progress], bool | None] | None = None,
        interval_s: SupportsFloat = 0.2,
    ) -> bool:
        """Runs until a time in seconds, or until the load is done; returns whether events remain.

        `progress` is called every `interval_s` seconds and stops the run by returning False, as Ctrl-C does.
        """
        until_ns = None if until is None else _as_ns(until)
        seconds = real("interval_s", interval_s, 0.0, 1e6, "s")
        report = None if progress is None else _reporter(progress)
        self._remains, interrupted = self._native.advance(until_ns, report, seconds)
        if interrupted:
            warnings.warn("the run was stopped; its results are partial", StoppedWarning, stacklevel=3)
        return self._remains

    @property
    def is_done(self) -> bool:
        """Whether the load is done, or the run was stopped."""
        return not self._remains

    @property
    def progress(self) -> Progress:
        """Progress after the last step or run."""
        now_ns, completed, share = self._native.progress()
        return Progress(now_ns / 1e9, completed, share)

    def finish(self) -> Results:
        """The results up to now; the simulation is then over."""
        return Results(self._native.finish())


def _as_ns(until: SupportsFloat) -> int:
    return min(round(real("until", until, 0.0, LATEST_NS / 1e9, "s") * 1e9), LATEST_NS)


def _reporter(progress: Callable[[Progress], bool | None]) -> Callable[[int, int, float | None], bool | None]:
    def report(now_ns: int, completed: int, share: float | None) -> bool | None:
        return progress(Progress(now_ns / 1e9, completed, share))

    return report
