"""A plugin of pytest: the fixture `headstack_emulate`, which pytest finds once the package is installed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator

import pytest

from ._command import Server, emulate

__all__ = ["headstack_emulate"]


@pytest.fixture
def headstack_emulate() -> Iterator[Callable[..., Server]]:
    """A function that starts emulated disks, as `headstack.emulate`, and returns the running `Server`; all end with the test."""
    with contextlib.ExitStack() as servers:

        def start(*disks: str | os.PathLike[str], **options: object) -> Server:
            return servers.enter_context(emulate(*disks, **options))

        yield start
