"""Every public name is documented, and so is what it has."""

from __future__ import annotations

import inspect
import os
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import headstack as hs

#: What Python itself documents.
INHERITED = {"with_traceback", "add_note", "args", "count", "index"}


def members(thing: Any) -> list[str]:
    """Public members that a class defines itself."""
    return [name for name in vars(thing) if not name.startswith("_") and name not in INHERITED]


@pytest.mark.parametrize("name", hs.__all__)
def test_help_of_every_public_name_is_complete(name: str) -> None:
    thing = getattr(hs, name)
    assert inspect.getdoc(thing), name
    assert pydoc.render_doc(thing)
    if inspect.isclass(thing):
        for member in members(thing):
            value = inspect.getattr_static(thing, member)
            if callable(getattr(value, "__func__", value)) or isinstance(value, property):
                assert inspect.getdoc(getattr(thing, member)), f"{name}.{member}"


def test_every_public_name_is_exported_once() -> None:
    assert len(set(hs.__all__)) == len(hs.__all__)
    assert hs.__version__
    public = {name for name in dir(hs) if not name.startswith("_") and not inspect.ismodule(getattr(hs, name))}
    assert public == set(hs.__all__)


def test_unknown_name_of_the_package_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Rigg'"):
        getattr(hs, "Rigg")


def test_import_leaves_numpy_and_what_starts_programs_for_later() -> None:
    program = "import sys, headstack; print(*[name for name in ('numpy', 'subprocess', 'dataclasses') if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": str(Path(hs.__file__).parent.parent)}
    found = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment)
    assert found.stdout.strip() == ""
