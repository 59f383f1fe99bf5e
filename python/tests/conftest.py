"""Loads and rigs that the tests share."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import settings

import headstack as hs

# The same examples in each run: a failure is one of the program, not of chance.
settings.register_profile("repeatable", derandomize=True, deadline=None, database=None, max_examples=40)
settings.load_profile("repeatable")


@pytest.fixture(scope="session")
def rig() -> hs.Rig:
    """A small, old drive, which is built quickly."""
    return hs.Rig("atlas-10k")


@pytest.fixture
def load() -> hs.Fio:
    """Five hundred random reads, four outstanding."""
    return hs.Fio(rw="randread", bs="4k", size="1g", ioengine="libaio", iodepth=4, number_ios=500)


@pytest.fixture
def endless() -> hs.Fio:
    """Reads that no test waits for."""
    return hs.Fio(rw="randread", bs="4k", size="1g", io_size="1000t")


@pytest.fixture
def needs_command() -> str:
    """The command, without which the test is skipped."""
    if not (os.environ.get("HEADSTACK_COMMAND") or shutil.which("headstack")):
        pytest.skip("the command headstack is not built")
    return hs.command()
