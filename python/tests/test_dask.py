"""Sweeps on Dask: two worker processes of this machine. Skipped without `distributed`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headstack as hs

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = [
    # Dask warns of what it meets in other packages.
    pytest.mark.filterwarnings("default"),
    # They start many interpreters; `make test` runs the notebook with Dask.
    pytest.mark.skipif("HEADSTACK_ALL_TESTS" not in os.environ, reason="make test-python runs it"),
]

CELLS = 24
LETHAL = """
import os, signal
from distributed import WorkerPlugin
from headstack import _executor

run_cell, run_part = _executor.run_cell, _executor.run_part


def cell(source, folder, index, of, call):
    if index == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_cell(source, folder, index, of, call)


def part(source, folder, number, of, call):
    if 5 % of == number - 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return run_part(source, folder, number, of, call)


class Lethal(WorkerPlugin):
    name = "lethal"

    def setup(self, worker):
        _executor.run_cell, _executor.run_part = cell, part

    def teardown(self, worker):
        _executor.run_cell, _executor.run_part = run_cell, run_part
"""


@pytest.fixture(scope="module")
def lethal(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A module with a plugin of workers, which makes cell 5 and its part end them. It is on the path before the workers start."""
    folder = tmp_path_factory.mktemp("lethal")
    (folder / "lethal_plugin.py").write_text(LETHAL)
    sys.path.insert(0, str(folder))
    return importlib.import_module("lethal_plugin")


@pytest.fixture
def cluster(lethal: Any) -> Iterator[Any]:
    """Two workers. The death of one fails its tasks at once, so that the sweep has to handle it and not Dask."""
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def sweep(tmp_path: Path) -> hs.Sweep:
    job = "[job]\nrw=randread\nbs=4k\nsize=1g\nioengine=libaio\niodepth=4\nnumber_ios=100\n"
    (tmp_path / "job.fio").write_text(job)
    grid = {"drive.queue_depth": [1, 2, 4, 8]}
    return hs.Sweep(rigs="atlas-10k", loads=tmp_path / "job.fio", grid=grid, seeds=CELLS // 4)


def values(sweep: hs.Sweep, folder: Path) -> dict[str, list[object]]:
    return {name: [repr(value) for value in column] for name, column in sweep.results(folder).items()}


def test_rows_are_those_of_this_process(client: Any, sweep: hs.Sweep, tmp_path: Path) -> None:
    sweep.run(tmp_path / "here")
    summary = sweep.run(tmp_path / "dask", executor=client.get_executor(), parts=6)
    assert (summary.cells, summary.ran, summary.failed) == (CELLS, CELLS, ())
    assert values(sweep, tmp_path / "dask") == values(sweep, tmp_path / "here")
    assert sweep.run(tmp_path / "dask", executor=client.get_executor(), parts=6).reused == CELLS


def test_cells_of_a_killed_worker_are_run_again(client: Any, sweep: hs.Sweep, tmp_path: Path) -> None:
    sweep.run(tmp_path / "here")
    victims = list(client.run(os.getpid).values())

    def kill(done: int, of: int) -> None:
        if victims and done:
            os.kill(victims.pop(), signal.SIGKILL)
            victims.clear()

    summary = sweep.run(tmp_path / "dask", executor=client.get_executor(), parts=CELLS, progress=kill)
    assert (summary.ran, summary.failed) == (CELLS, ())
    assert values(sweep, tmp_path / "dask") == values(sweep, tmp_path / "here")


def test_cell_that_ends_its_workers_is_a_row_with_an_error(
    client: Any, lethal: Any, sweep: hs.Sweep, tmp_path: Path
) -> None:
    sweep.run(tmp_path / "here")
    client.register_plugin(lethal.Lethal())
    try:
        summary = sweep.run(tmp_path / "dask", executor=client.get_executor(), parts=6)
    finally:
        client.unregister_worker_plugin("lethal")
    assert summary.ran == CELLS
    assert [label for label, _ in summary.failed] == [sweep.plan()[5].label]
    ours, theirs = values(sweep, tmp_path / "dask"), values(sweep, tmp_path / "here")
    others = [index for index in range(CELLS) if index != 5]
    assert all([ours[name][i] for i in others] == [theirs[name][i] for i in others] for name in theirs)


def test_two_clients_of_one_folder_leave_the_rows_of_one(
    client: Any, cluster: Any, sweep: hs.Sweep, tmp_path: Path
) -> None:
    sweep.run(tmp_path / "here")
    with distributed.Client(cluster) as second:
        run = {"executor": second.get_executor(), "parts": 6}
        thread = threading.Thread(target=lambda: sweep.run(tmp_path / "dask", **run))
        thread.start()
        summary = sweep.run(tmp_path / "dask", executor=client.get_executor(), parts=6)
        thread.join()
    assert (summary.cells, summary.failed) == (CELLS, ())
    assert values(sweep, tmp_path / "dask") == values(sweep, tmp_path / "here")
