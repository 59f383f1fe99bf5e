"""Emulated disks and storage nodes that tests start."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

import headstack as hs

#: What every NBD server sends first.
NBD_MAGIC = b"NBDMAGIC"


def greeting(uri: str) -> bytes:
    """The first bytes that the server at a URI sends."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(uri.split("socket=")[1])
        return client.recv(8)


def test_emulated_disk_answers_within_the_block(needs_command: str) -> None:
    with hs.emulate("atlas-10k", speed=100, set={"drive.queue_depth": 16}) as disk:
        assert greeting(disk.uri) == NBD_MAGIC
        assert list(disk.uris) == ["disk0"]
        path = disk.uri.split("socket=")[1]
    assert not os.path.exists(path)
    assert "requests" in disk.output


def test_storage_node_serves_a_file(needs_command: str, tmp_path: Path) -> None:
    image = tmp_path / "disk.img"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    with hs.serve(image) as node:
        assert greeting(node.uri) == NBD_MAGIC


def test_command_that_fails_is_an_exception_with_its_words(needs_command: str) -> None:
    with pytest.raises(hs.CommandError, match="exos-x16"), hs.emulate("exos-x19"):
        pass
    with pytest.raises(hs.CommandError, match="speed"), hs.emulate("exos-x16", speed="x"):
        pass


def test_missing_command_says_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADSTACK_COMMAND", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(hs.CommandError, match="HEADSTACK_COMMAND"):
        hs.command()
    with pytest.raises(hs.InputError, match="no disk"):
        hs.emulate()


def test_fixture_starts_disks(needs_command: str, headstack_emulate: Callable[..., hs.Server]) -> None:
    assert greeting(headstack_emulate("atlas-10k", speed=100).uri) == NBD_MAGIC
