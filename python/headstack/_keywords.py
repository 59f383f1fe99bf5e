"""The nearest name in the error about an unknown keyword."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import sys
from collections.abc import Callable
from typing import TypeVar

Called = TypeVar("Called", bound=Callable[..., object])

_UNKNOWN = re.compile(r"unexpected keyword argument '(\w+)'")


def names_nearest(function: Called) -> Called:
    """The function, whose TypeError about an unknown keyword names the nearest one that it has, as from Python 3.13 on."""
    if sys.version_info >= (3, 13):
        return function

    @functools.wraps(function)
    def checked(*arguments: object, **keywords: object) -> object:
        try:
            return function(*arguments, **keywords)
        except TypeError as error:
            # Raised by the call itself, not by something that the function calls.
            is_of_call = error.__traceback__ is not None and error.__traceback__.tb_next is None
            unknown = _UNKNOWN.search(str(error)) if is_of_call else None
            if unknown is None:
                raise
            near = difflib.get_close_matches(unknown[1], inspect.signature(function).parameters, 1)
            raise TypeError(f"{error}. Did you mean '{near[0]}'?" if near else str(error)) from None

    return checked  # type: ignore[return-value]
