"""Sweeps from Python."""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headstack as hs

FILE = """rigs = ["atlas-10k"]
loads = ["job.fio"]
seeds = 3

[grid]
drive.queue_depth = [1, 4]
"""
JOB = "[job]\nrw=randread\nbs=4k\nsize=1g\nioengine=libaio\niodepth=4\nnumber_ios=50\n"

LETHAL = """
import os, signal
from headstack import _executor

run_cell, run_part = _executor.run_cell, _executor.run_part


def arm():
    def cell(source, folder, index, of, call):
        if index == {cell}:
            os.kill(os.getpid(), signal.SIGKILL)
        return run_cell(source, folder, index, of, call)

    def part(source, folder, number, of, call):
        if {cell} % of == number - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return run_part(source, folder, number, of, call)

    _executor.run_cell, _executor.run_part = cell, part
"""
CLIENT = """
import multiprocessing, os, signal
from concurrent.futures import ProcessPoolExecutor
import headstack as hs


def report(done, of):
    if done:
        {progress}


if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as workers:
        hs.Sweep({file!r}).run({folder!r}, executor=workers, parts=6, progress=report)
"""

#: Tests that start many interpreters; `make test-python` runs them.
many_processes = pytest.mark.skipif("HEADSTACK_ALL_TESTS" not in os.environ, reason="make test-python runs it")


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


def pool(method: str = "spawn") -> ProcessPoolExecutor:
    """Two processes, started afresh unless `method` says otherwise."""
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method))


#: From Python 3.12 on, a fork of a process with threads warns, even where nothing waits for them.
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def cells_of(path: str) -> int:
    """A plan that is made in a worker."""
    return len(hs.Sweep(path).plan())


def advice_of(requests: int) -> str:
    """A search in a worker."""
    job = hs.Fio(rw="randread", bs="4k", size="1g", ioengine="libaio", iodepth=4)
    return hs.tune(hs.Rig("workstation"), job, knob="scheduler", requests=requests).goal


@forks
def test_forked_workers_plan_run_and_tune_after_their_parent_did(file: Path, tmp_path: Path) -> None:
    (tmp_path / "two.toml").write_text(FILE.replace('["atlas-10k"]', '["atlas-10k", "cheetah-9lp"]'))
    sweep = hs.Sweep(tmp_path / "two.toml")
    assert sweep.run(tmp_path / "here").ran == 12
    assert advice_of(100) == "throughput"
    with pool("fork") as workers:
        assert workers.submit(cells_of, str(tmp_path / "two.toml")).result(60) == 12
        assert workers.submit(advice_of, 100).result(60) == "throughput"
        assert sweep.run(tmp_path / "rows", executor=workers).ran == 12
    assert values(sweep, tmp_path / "rows") == values(sweep, tmp_path / "here")


GUIDE = Path(os.environ.get("HEADSTACK_ROOT", Path(__file__).resolve().parents[2]))


def test_example_of_the_guide_runs_with_the_default_start_method(tmp_path: Path) -> None:
    text = (GUIDE / "docs/guide/python.md").read_text(encoding="utf-8")
    block = text.split("## Run a sweep")[1].split("```python\n")[1].split("```")[0]
    assert "ProcessPoolExecutor(8)" in block and "sweep.run" in block
    for folder in ("sweeps", "jobs"):
        (tmp_path / folder).symlink_to(GUIDE / folder)
    (tmp_path / "example.py").write_text(block + "assert len(frame) == 48\n")
    subprocess.run([sys.executable, "example.py"], cwd=tmp_path, check=True, timeout=300)


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


def values(sweep: hs.Sweep, folder: Path) -> str:
    """All values of all rows, exactly."""
    return repr({name: column.tolist() for name, column in sweep.results(folder).items()})


def test_settings_with_a_clear_difference_get_no_more_seeds(file: Path, tmp_path: Path) -> None:
    settings: list[dict[str, object]] = [{"drive.queue_depth": 1}, {"drive.queue_depth": 4, "drive.order": "sptf"}]
    sweep = hs.Sweep(rigs="atlas-10k", loads=file.parent / "job.fio", settings=settings, seeds=8, until_clear="iops")
    summary = sweep.run(tmp_path / "rows")
    assert (summary.cells, summary.ran, summary.unneeded) == (16, 6, 10)
    with ThreadPoolExecutor(2) as workers:
        assert sweep.run(tmp_path / "theirs", executor=workers, parts=3) == summary
    assert values(sweep, tmp_path / "theirs") == values(sweep, tmp_path / "rows")
    with pytest.raises(hs.InputError, match="did you mean `p99_ms`"):
        hs.Sweep(rigs="atlas-10k", loads=file.parent / "job.fio", until_clear="p99_m")


def lethal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: int) -> Any:
    """A module that makes a cell end the process that runs it, and its part's process. Workers import it by its path."""
    (tmp_path / "lethal.py").write_text(LETHAL.format(cell=cell))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "lethal", raising=False)
    return importlib.import_module("lethal")


@many_processes
def test_cells_of_a_killed_worker_are_run_by_new_ones(file: Path, tmp_path: Path) -> None:
    sweep, whole, folder = hs.Sweep(file), tmp_path / "whole", tmp_path / "rows"
    sweep.run(whole)
    with pool() as workers:
        victim = workers.submit(os.getpid).result()

        def kill(done: int, of: int) -> None:
            if 0 < done < of:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(victim, signal.SIGKILL)

        summary = sweep.run(folder, executor=workers, parts=6, progress=kill)
    assert (summary.cells, summary.ran, summary.failed) == (6, 6, ())
    assert values(sweep, folder) == values(sweep, whole)


def test_cell_that_ends_its_workers_is_a_row_with_an_error(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep, whole, folder = hs.Sweep(file), tmp_path / "whole", tmp_path / "rows"
    arm = lethal(tmp_path, monkeypatch, 4).arm
    sweep.run(whole)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=arm) as workers:
        calls = list[tuple[int, int]]()
        summary = sweep.run(folder, executor=workers, parts=3, progress=lambda done, of: calls.append((done, of)))
    assert (summary.cells, summary.reused, summary.ran) == (6, 0, 6)
    assert summary.failed == ((sweep.plan()[4].label, "the process that runs this cell ends without a result, twice"),)
    assert calls[-1] == (6, 6)
    table, good = sweep.results(folder), sweep.results(whole)
    assert [error is not None for error in table["error"]] == [index == 4 for index in range(6)]
    assert np.isnan(table["iops"][4])
    others = np.arange(6) != 4
    assert all((table[name][others] == good[name][others]).all() for name in ("key", "iops", "p99_ms", "requests"))
    assert sweep.run(folder).ran == 0, "its row counts as finished"


def test_pool_whose_processes_cannot_start_ends_with_one_error(file: Path, tmp_path: Path) -> None:
    sweep, folder = hs.Sweep(file), tmp_path / "rows"
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context, initializer=os._exit, initargs=(3,)) as workers:
        with pytest.raises(hs.InputError, match="executor: a new process ends before it runs anything"):
            sweep.run(folder, executor=workers, parts=2)
    assert sweep.results(folder).rows == 0, "no cell counts as failed"
    assert sweep.run(folder).ran == 6


def test_exception_of_a_part_is_raised_after_the_other_parts(file: Path, tmp_path: Path) -> None:
    sweep = hs.Sweep(file)
    with pool() as workers:
        (tmp_path / "job.fio").unlink()
        with pytest.raises(hs.InputError, match=r"job\.fio"):
            sweep.run(tmp_path / "rows", executor=workers, parts=2)


def client(file: Path, folder: Path, progress: str) -> subprocess.Popen[bytes]:
    """Another program that runs the sweep on a pool of two, in a session of its own."""
    program = CLIENT.format(file=str(file), folder=str(folder), progress=progress)
    (file.parent / "client.py").write_text(program)
    return subprocess.Popen([sys.executable, str(file.parent / "client.py")], start_new_session=True)


@many_processes
def test_sweep_continues_after_its_client_was_killed(file: Path, tmp_path: Path) -> None:
    sweep, whole, folder = hs.Sweep(file), tmp_path / "whole", tmp_path / "rows"
    sweep.run(whole)
    killed = client(file, folder, "os.kill(os.getpid(), signal.SIGKILL)")
    assert killed.wait() == -signal.SIGKILL
    # Workers of a killed client wait for its calls for ever.
    with contextlib.suppress(ProcessLookupError):
        os.killpg(killed.pid, signal.SIGKILL)
    with pool() as workers:
        summary = sweep.run(folder, executor=workers, parts=6)
    assert summary.reused >= 1 and summary.reused + summary.ran == 6
    assert values(sweep, folder) == values(sweep, whole)


@many_processes
def test_two_clients_of_one_folder_leave_the_rows_of_one(needs_command: str, file: Path, tmp_path: Path) -> None:
    sweep, whole, folder = hs.Sweep(file), tmp_path / "whole", tmp_path / "rows"
    subprocess.run([needs_command, "sweep", str(file), "--out", str(whole)], check=True, capture_output=True)
    with pool() as workers:
        other = client(file, folder, "None")
        summary = sweep.run(folder, executor=workers, parts=6)
        assert other.wait() == 0
    assert summary.cells == 6 and summary.failed == ()
    assert len(rows(folder)) == 6
    assert values(sweep, folder) == values(sweep, whole)


def test_results_are_one_table_of_columns(file: Path, tmp_path: Path) -> None:
    sweep, folder = hs.Sweep(file), tmp_path / "rows"
    assert sweep.run(folder).ran == 6
    table = sweep.results(folder)
    assert (table.rows, len(table)) == (6, len(list(table)))
    assert table["key"].tolist() == [cell.key for cell in sweep.plan()]
    assert table["drive.queue_depth"].tolist() == [1] * 3 + [4] * 3 and table["drive.queue_depth"].dtype == np.int64
    assert table["seed"].dtype == np.uint64 and table["iops"].dtype == np.float64
    assert (table["requests"] == 50).all() and (table["iops"] > 0).all()
    pandas = pytest.importorskip("pandas")
    frame = table.to_pandas()
    assert isinstance(frame, pandas.DataFrame) and list(frame.columns) == list(table)
    assert frame.groupby("drive.queue_depth")["iops"].mean()[4] > frame[frame["seed"] == 0]["iops"].min()


def test_keywords_are_the_keys_of_the_file(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    depths = np.array([1, 4])
    sweep = hs.Sweep(rigs="atlas-10k", loads=["job.fio"], grid={"drive.queue_depth": depths}, seeds=3)
    assert [cell.key for cell in sweep.plan()] == [cell.key for cell in hs.Sweep(file).plan()]
    with pool() as workers:
        assert sweep.run("rows", executor=workers, parts=2).ran == 6
    single = hs.Sweep(rigs="atlas-10k", loads=Path("job.fio"), settings=[{}, {"drive.order": "fcfs"}])
    assert len(single.plan()) == 2
    with pytest.raises(hs.InputError, match="either a file"):
        hs.Sweep(file, seeds=2)
    with pytest.raises(hs.InputError, match=r"drive\.queue_dept"):
        hs.Sweep(rigs="atlas-10k", loads="job.fio", grid={"drive.queue_dept": [1]})
    with pytest.raises(hs.InputError, match="set is not JSON serializable"):
        hs.Sweep(rigs="atlas-10k", loads="job.fio", grid={"drive.queue_depth": [{1}]})


def test_settings_have_the_type_of_their_values(file: Path, tmp_path: Path) -> None:
    settings: list[dict[str, object]] = [{"drive.queue_depth": 16}, {"drive.queue_depth": 2}, {"drive.order": "fcfs"}]
    sweep = hs.Sweep(rigs="atlas-10k", loads=file.parent / "job.fio", settings=settings, grid={"drive.mechanics.rpm": [10000, 10025.5]})
    sweep.run(tmp_path / "rows")
    table = sweep.results(tmp_path / "rows")
    assert table["drive.mechanics.rpm"].dtype == np.float64
    assert np.isnan(table["drive.queue_depth"][2]) and table["drive.queue_depth"][0] == 16.0, "a number where there is one"
    assert table["drive.order"].tolist() == [None, None, "fcfs"] * 2
    frame = pytest.importorskip("polars").read_parquet(tmp_path / "rows" / "parts")
    assert frame["drive.queue_depth"].to_list().count(16) == 2
    assert sorted(table.to_polars().columns) == sorted(frame.columns) == sorted(table.to_arrow().column_names)


YOUNGEST = """
import headstack as hs


class Youngest(hs.Order):
    # A state that another cell must not see.
    choices = 0

    def choose(self, queue):
        self.choices += 1
        if self.choices > 1000:
            raise RuntimeError("more choices than one cell has")
        return len(queue) - 1
"""


def test_objects_are_swept_as_they_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "youngest.py").write_text(YOUNGEST)
    monkeypatch.syspath_prepend(str(tmp_path))
    Youngest = importlib.import_module("youngest").Youngest
    rig = hs.Rig("atlas-10k", drive={"queue_depth": 4})
    load = hs.Fio(rw="randread", bs="4k", size="1g", ioengine="libaio", iodepth=8, number_ios=300)
    own = rig.with_order(Youngest())
    sweep = hs.Sweep(rigs={"built-in": rig, "own": own}, loads=[load, hs.Generators(requests=100, blocks=[{"depth": 8}])], seeds=3)
    assert len(sweep) == 12
    assert sweep.run(tmp_path / "rows").failed == ()
    table = sweep.results(tmp_path / "rows")
    for index, cell in enumerate(sweep.plan()):
        if cell.load == load.name:
            alone = {"built-in": rig, "own": own.with_order(Youngest())}[cell.rig].run(load, seed=cell.seed)
            assert table["p99_ms"][index] == alone.response.p99_ms, cell.label
    with pool() as workers:
        assert sweep.run(tmp_path / "theirs", executor=workers, parts=3).ran == 12
    assert values(sweep, tmp_path / "theirs") == values(sweep, tmp_path / "rows")
    (tmp_path / "youngest.py").unlink()
    with pytest.raises(hs.InputError, match="cannot import .* the classes of the sweep's objects"), pool() as workers:
        sweep.run(tmp_path / "others", executor=workers, parts=3)
    assert sweep.results(tmp_path / "others").rows == 0, "no cell counts as failed"
    with pytest.raises(hs.InputError, match=r"python is written in Python"):
        hs.Sweep(rigs=rig, loads=hs.PythonLoad(lambda context: []))


class Failing(hs.Order):
    def choose(self, queue: hs.Queue) -> int:
        raise KeyError("no choice")


def test_exception_of_an_order_is_the_error_of_its_cell(load: hs.Fio, tmp_path: Path) -> None:
    rig = hs.Rig("atlas-10k")
    summary = hs.Sweep(rigs=[rig, rig.with_order(Failing())], loads=load).run(tmp_path / "rows")
    assert [label for label, _ in summary.failed] == ["atlas-10k #2, job, seed 0"]
    assert "no choice" in summary.failed[0][1]


def test_figures_by_job_are_columns(tmp_path: Path) -> None:
    job = "[global]\nsize=1g\nnumber_ios=50\n[log]\nrw=write\nfdatasync=1\n[scan]\nrw=read\nbs=64k\n"
    sweep = hs.Sweep(rigs="atlas-10k", loads=hs.Fio.from_text(job), by_job=True)
    sweep.run(tmp_path / "rows")
    table = sweep.results(tmp_path / "rows")
    assert table["job.log.flush_p99_ms"] == table["flush_p99_ms"] and table["job.scan.read_requests"] == 50


def test_damaged_file_is_named_and_its_cells_run_again(file: Path, tmp_path: Path) -> None:
    sweep, folder = hs.Sweep(file), tmp_path / "rows"
    sweep.run(folder)
    before = values(sweep, folder)
    (path,) = (folder / "parts").iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(hs.InputError, match="is damaged"):
        sweep.results(folder)
    summary = sweep.run(folder)
    assert (summary.ran, summary.damaged) == (6, (str(path),))
    assert values(sweep, folder) == before


class Sized(ThreadPoolExecutor):
    """An executor as of Dask, which says how many cores its workers have."""

    def __init__(self, cores: dict[str, int]) -> None:
        super().__init__(1)
        del self._max_workers
        self._client = type("Client", (), {"ncores": staticmethod(lambda: cores)})()


def test_number_of_parts_follows_the_workers() -> None:
    from headstack._executor import PARTS, default_parts

    with ThreadPoolExecutor(3) as known:
        assert default_parts(known) == 12
    assert default_parts(Sized({"a": 8, "b": 4})) == 48
    assert default_parts(Sized({})) == PARTS, "a cluster without workers yet"


def test_progress_is_a_bar_where_tqdm_is_installed(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    assert hs.Sweep(file).run(tmp_path / "rows", progress=True).ran == 6
    assert "6/6" in capsys.readouterr().err
    hs.Rig("atlas-10k").run(hs.Fio(rw="randread", size="1g", number_ios=50), progress=True)
    assert "%|" in capsys.readouterr().err


def test_sweep_is_pickled_and_shown(file: Path) -> None:
    sweep = hs.Sweep(rigs=hs.Rig("atlas-10k"), loads=file.parent / "job.fio", grid={"drive.queue_depth": [1, 2]})
    assert [cell.key for cell in pickle.loads(pickle.dumps(sweep)).plan()] == [cell.key for cell in sweep.plan()]
    assert "2 runs" in sweep._repr_html_() and "drive.queue_depth" in sweep._repr_html_()
