"""Sweeps from Python."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

import headstack as hs

FILE = """rigs = ["atlas-10k"]
loads = ["job.fio"]
seeds = 3

[grid]
drive.queue_depth = [1, 4]
"""
JOB = "[job]\nrw=randread\nbs=4k\nsize=1g\nioengine=libaio\niodepth=4\nnumber_ios=50\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "job.fio").write_text(JOB)
    (tmp_path / "sweep.toml").write_text(FILE)
    return tmp_path / "sweep.toml"


def rows(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "parts").iterdir()}


def test_rows_are_those_of_the_command_and_are_reused(needs_command: str, file: Path, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    sweep, calls = hs.Sweep(file), list[tuple[int, int]]()
    assert len({cell.key for cell in sweep.plan()}) == 6
    summary = sweep.run(ours, progress=lambda done, of: calls.append((done, of)))
    assert (summary.cells, summary.reused, summary.ran, summary.failed) == (6, 0, 6, ())
    assert calls[-1] == (6, 6)
    subprocess.run([needs_command, "sweep", str(file), "--out", str(theirs)], check=True, capture_output=True)
    assert rows(ours) and rows(ours) == rows(theirs)
    assert sweep.run(ours).reused == 6


def test_exception_of_the_report_ends_the_run(file: Path, tmp_path: Path) -> None:
    def refuse(done: int, of: int) -> None:
        raise KeyError(of)

    with pytest.raises(KeyError):
        hs.Sweep(file).run(tmp_path / "rows", progress=refuse)
    assert hs.Sweep(file).run(tmp_path / "rows").failed == ()


def test_bad_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(hs.InputError, match=r"absent\.toml"):
        hs.Sweep(tmp_path / "absent.toml")


def pool() -> ProcessPoolExecutor:
    """Two processes that are started afresh, since threads do not survive a fork."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def test_workers_of_an_executor_write_the_rows_of_the_command(needs_command: str, file: Path, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for part in ("1/2", "2/2"):
        line = [needs_command, "sweep", str(file), "--out", str(theirs), "--part", part]
        subprocess.run(line, check=True, capture_output=True)
    with pool() as workers:
        summary = hs.Sweep(file).run(ours, executor=workers, parts=2)
        assert (summary.cells, summary.ran, summary.failed) == (6, 6, ())
        assert rows(ours) == rows(theirs)
        assert hs.Sweep(file).run(ours, executor=workers, parts=2).reused == 6


def test_sweep_continues_after_its_workers_were_killed(file: Path, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole", tmp_path / "rows"
    with pool() as workers:
        hs.Sweep(file).run(whole, executor=workers, parts=6)

    with pool() as workers:
        victim = workers.submit(os.getpid).result()

        def kill(done: int, of: int) -> None:
            if 0 < done < of:
                os.kill(victim, signal.SIGKILL)

        # The part in progress is lost, or the last one had ended already.
        try:
            hs.Sweep(file).run(folder, executor=workers, parts=6, progress=kill)
        except (BrokenProcessPool, ProcessLookupError):
            pass
    with pool() as workers:
        summary = hs.Sweep(file).run(folder, executor=workers, parts=6)
    assert summary.cells == 6 and summary.failed == ()
    assert rows(folder) == rows(whole)
