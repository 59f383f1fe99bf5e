"""Runs: whole, step by step, stopped, in threads."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from pathlib import Path

import pytest

import headstack as hs


def test_results_have_the_bytes_of_the_command(needs_command: str, tmp_path: Path) -> None:
    job = tmp_path / "mix.fio"
    job.write_text("[mix]\nrw=randrw\nbs=4k\nsize=1g\nioengine=libaio\niodepth=8\nnumber_ios=2000\nramp_time=1\n")
    arguments = [needs_command, "sim", "atlas-10k", str(job), "--seed", "7", "--json", "-"]
    printed = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    ours = hs.Rig("atlas-10k").run(hs.Fio(job), seed=7).to_json()
    clock = ('"cpu_s"', '"requests_per_cpu_s"')
    lines = [line for line in printed.splitlines() if not line.strip().startswith(clock)]
    assert [line for line in ours.splitlines() if not line.strip().startswith(clock)] == lines
    assert len(printed.splitlines()) == len(lines) + 2


def test_every_way_to_run_gives_the_same_results(rig: hs.Rig, load: hs.Fio) -> None:
    whole = rig.run(load, seed=3).to_json()
    stepped = rig.simulation(load, seed=3)
    while stepped.step(100):
        pass
    assert stepped.is_done
    timed = rig.simulation(load, seed=3)
    until = 0.0
    while timed.run(until=until):
        until += 0.25
    assert stepped.finish().to_json() == whole
    assert timed.finish().to_json() == whole


def test_kept_requests_change_no_result(rig: hs.Rig, load: hs.Fio) -> None:
    assert rig.run(load, keep="summary").to_json() == rig.run(load, keep="all").to_json()


def test_run_until_a_time_says_what_is_missing(rig: hs.Rig, load: hs.Fio) -> None:
    simulation = rig.simulation(load)
    assert simulation.run(until=0.5)
    assert 0 < simulation.progress.now_s <= 0.5
    assert simulation.progress.completed > 0
    run = simulation.finish()
    assert run.partial is not None
    assert run.partial["reason"] == "program"
    with pytest.raises(hs.InputError, match="the simulation is over"):
        simulation.step()


def test_progress_function_stops_the_run(rig: hs.Rig, endless: hs.Fio) -> None:
    seen: list[hs.Progress] = []

    def stop(progress: hs.Progress) -> bool:
        seen.append(progress)
        return len(seen) < 3

    run = rig.run(endless, progress=stop, interval_s=0.001, keep="summary")
    assert len(seen) == 3
    assert seen[0].completed <= seen[2].completed
    assert run.partial is not None
    assert run.partial["reason"] == "progress"
    assert run.response.count >= seen[2].completed


def test_exception_of_the_progress_function_ends_the_run(rig: hs.Rig, endless: hs.Fio) -> None:
    def fail(progress: hs.Progress) -> bool:
        raise ZeroDivisionError("of the test")

    with pytest.raises(ZeroDivisionError, match="of the test"):
        rig.run(endless, progress=fail, interval_s=0.001, keep="summary")


def test_ctrl_c_returns_what_there_is(rig: hs.Rig, endless: hs.Fio) -> None:
    def interrupt(progress: hs.Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    # A shell that starts the tests in the background has them ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.warns(hs.StoppedWarning):
            run = rig.run(endless, progress=interrupt, interval_s=0.001)
    finally:
        signal.signal(signal.SIGINT, before)
    assert run.partial is not None
    assert run.partial["reason"] == "SIGINT"
    assert len(run.requests) == run.response.count > 0


def test_other_threads_continue_during_a_run(rig: hs.Rig, endless: hs.Fio) -> None:
    stop = threading.Event()
    runs: list[hs.Results] = []

    def body() -> None:
        runs.append(rig.run(endless, progress=lambda progress: not stop.is_set(), interval_s=0.001, keep="summary"))

    thread = threading.Thread(target=body)
    thread.start()
    # Were the global lock held, this run would wait for the endless one.
    short = rig.run(hs.Fio(rw="read", bs="4k", size="1m"))
    stop.set()
    thread.join()
    assert short.partial is None
    assert runs[0].partial is not None


def test_figures_agree_with_the_json(rig: hs.Rig, load: hs.Fio) -> None:
    run = rig.run(load, seed=1)
    found = run.to_dict()["headstack"]
    assert run.to_dict() == json.loads(run.to_json())
    assert (run.iops, run.seed, run.bandwidth_mb_s) == (found["iops"], 1, found["bandwidth_mb_s"])
    assert run.response.count == found["requests"] == 500
    assert run.response.p99_ms == found["response_ms"]["p99"]
    assert run.response.mean_ms == found["response_ms"]["mean"]
    assert run.parts_ms == found["parts_ms"]
    assert run.writes.count == 0
    assert list(run.timeline["read_iops"]) == found["timeline"]["read_iops"]
    assert run.devices[0]["commands"] >= 500
    assert run.jobs[0]["name"] == "job"
    assert run.figures()["response_p99_ms"] == run.response.p99_ms


def test_distribution_rises_to_the_longest_response(rig: hs.Rig, load: hs.Fio) -> None:
    run = rig.run(load)
    line = run.response.distribution(100)
    assert len(line["share"]) == 100
    assert line["share"][-1] == 1.0
    assert all(a <= b for a, b in zip(line["response_ms"], line["response_ms"][1:]))
    assert line["response_ms"][-1] == pytest.approx(run.response.max_ms, rel=0.01)


def test_page_escapes_names(tmp_path: Path, rig: hs.Rig) -> None:
    run = rig.run(hs.Requests([0], [0], 8, name="<b>"))
    run.report(tmp_path / "run.html")
    page = (tmp_path / "run.html").read_text()
    assert "&lt;b&gt; on " in page
    assert "<b>" not in page
    assert run._repr_html_() in page
