"""Loads written in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from . import _native
from ._errors import InputError
from ._keywords import names_nearest
from ._load import Load

__all__ = ["PythonLoad"]

#: What makes the requests of a source.
Source = Callable[[_native.LoadContext], Iterable["_native.Request | _native.Sleep | None"]]


class PythonLoad(Load):
    """A load of your own: functions that return the requests of a run, most easily generators.

    Each function is called once a run with a `LoadContext`, and is a source of its own in the results. What it yields is a `Request`,
    which is issued at once or at its `time_ns`; a `Sleep`; or `None`, which waits for a completion of its requests:
    `completion = yield`. All sources run at the same virtual time. An exception in one ends the run.
    """

    @names_nearest
    def __init__(self, *sources: Source, name: str = "python") -> None:
        """A load of these sources; give the same function twice for two equal ones."""
        if not sources:
            raise InputError("sources: none (a function that returns an iterable of requests)")
        for source in sources:
            if not callable(source):
                raise InputError(f"sources: {type(source).__name__} cannot be called (a function that returns an iterable of requests)")
        if not isinstance(name, str):
            raise InputError(f"name: {type(name).__name__} (str)")
        self._name, self._sources = name, sources
        named = [(str(getattr(source, "__name__", type(source).__name__)), source) for source in sources]
        self._native = _native.Load.python(name, named)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self._sources, self._name)


def _made_again(kind: type[PythonLoad], sources: tuple[Source, ...], name: str) -> PythonLoad:
    """A load that was pickled."""
    return kind(*sources, name=name)
