"""Arguments that are numbers or paths: those of NumPy and pandas count as those of Python, and an error names the argument."""

from __future__ import annotations

import os
from typing import Any, SupportsFloat, SupportsIndex, cast

from ._errors import InputError

__all__ = ["path_name", "plain", "real", "whole"]


def whole(name: str, value: object, least: int, most: int) -> int:
    """`value` as a whole number from `least` to `most`. Raises InputError for anything else."""
    number = plain(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, str) or not hasattr(number, "__index__"):
        raise InputError(f"{name}: {value!r} is no whole number ({least} to {most})")
    found = cast(SupportsIndex, number).__index__()
    if not least <= found <= most:
        raise InputError(f"{name}: {value!r} is outside {least} to {most}")
    return found


def real(name: str, value: object, least: float, most: float, unit: str = "") -> float:
    """`value` as a number from `least` to `most`. Raises InputError for anything else, NaN included."""
    number = plain(value)
    shown = f"{least:.10g} to {most:.10g}{unit and ' ' + unit}"
    if isinstance(number, (str, bytes)) or not (hasattr(number, "__float__") or hasattr(number, "__index__")):
        raise InputError(f"{name}: {value!r} is no number ({shown})")
    found = float(cast(SupportsFloat, number))
    if not least <= found <= most:
        raise InputError(f"{name}: {value!r} is outside {shown}")
    return found


def plain(value: Any) -> Any:
    """A number or text of NumPy as one of Python; anything else unchanged."""
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if is_scalar else value


def path_name(name: str, value: object, wanted: str) -> str:
    """A path as text. Raises InputError, which says what is wanted, for anything that is none."""
    try:
        found = os.fspath(cast("os.PathLike[str]", value))
    except TypeError:
        raise InputError(f"{name}: {type(value).__name__} ({wanted})") from None
    if not isinstance(found, str):
        raise InputError(f"{name}: {type(found).__name__} ({wanted})")
    return found
