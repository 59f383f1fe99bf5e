"""Python values as keys of rig files."""

from __future__ import annotations

import json
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

from ._errors import InputError
from ._numbers import plain


def toml_value(path: str, value: Any) -> str:
    """The value in TOML. Raises InputError where no key has such a value."""
    value = plain(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        value = value.tolist() if hasattr(value, "tolist") else value
        return "[" + ", ".join(toml_value(path, item) for item in value) + "]"
    raise InputError(f"{path}: {type(value).__name__} is no value of a key (bool, int, float, str, list or dict)")


def dotted(keys: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Each key by its dotted path, with its value in TOML."""
    for key, value in keys.items():
        if not isinstance(key, str):
            raise InputError(f"{before or 'keys'}: {key!r} is no name of a key (str)")
        path = f"{before}.{key}" if before else key
        if isinstance(value, Mapping):
            yield from dotted(value, path)
        else:
            yield path, toml_value(path, value)
