"""The search for settings from Python."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

import headstack as hs

JOB = """[readers]
rw=randread
bs=4k
size=10g
numjobs=16
ioengine=libaio
direct=1
iodepth=1
time_based
runtime=1000
thread
"""


@pytest.fixture
def shallow() -> hs.Rig:
    """A disk without NCQ."""
    return hs.Rig("st2000dm006").set("host.queue.depth", 1)


def test_advice_is_that_of_the_command(needs_command: str, shallow: hs.Rig, tmp_path: Path) -> None:
    (tmp_path / "job.fio").write_text(JOB)
    calls = list[int]()
    found = hs.tune(
        shallow, hs.Fio(tmp_path / "job.fio"), knob="queue_depth", goal="iops", requests=400, progress=calls.append
    )
    line = [needs_command, "tune", "st2000dm006", str(tmp_path / "job.fio"), "--json", "--requests", "400"]
    line += ["--set", "host.queue.depth=1", "--knob", "queue_depth", "--goal", "iops"]
    said = json.loads(subprocess.run(line, check=True, capture_output=True).stdout)
    assert [dataclasses.asdict(advice) for advice in found.advised] == said["advised"]
    assert {name: dataclasses.asdict(one) for name, one in found.figures.items()} == said["figures"]
    assert (list(found.commands), found.runs, found.evidence) == (said["commands"], said["runs"], said["evidence"])
    [advice] = found.advised
    assert (advice.setting, advice.now) == ("queue_depth", "1")
    assert advice.change.least_percent is not None and advice.change.least_percent > 10
    assert str(advice.change).startswith("+")
    assert f'ATTR{{device/queue_depth}}="{advice.advised}"' in found.udev_rule
    assert found.apply(shallow).to_dict()["host"]["queue"]["depth"] == int(advice.advised)
    assert calls == sorted(calls) and calls[-1] <= found.runs


def test_advice_is_shown_in_a_notebook_and_its_progress_as_a_bar(
    shallow: hs.Rig, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tqdm")
    (tmp_path / "job.fio").write_text(JOB)
    found = hs.tune(shallow, hs.Fio(tmp_path / "job.fio"), knob="queue_depth", goal="iops", requests=400, progress=True)
    assert " runs" in capsys.readouterr().err
    page = found._repr_html_()
    [advice] = found.advised
    row = f"<tr><td>queue_depth</td><td>1</td><td>{advice.advised}</td><td>{advice.change}</td></tr>"
    assert row in page and "Commands" in page and found.commands[0].split(" > ")[1] in page
    nothing = dataclasses.replace(found, advised=(), commands=(), losses=("a job <starves>",))
    assert "nothing to set" in nothing._repr_html_() and "a job &lt;starves&gt;" in nothing._repr_html_()
    with pytest.raises(hs.InputError, match="progress"):
        hs.tune(shallow, hs.Fio(tmp_path / "job.fio"), knob="queue_depth", progress=5)  # type: ignore[arg-type]


def test_limit_of_a_job_is_kept_and_names_a_job(tmp_path: Path) -> None:
    jobs = "[global]\ndirect=1\ntime_based\nruntime=1000\nrw=randread\nbs=4k\nsize=100g\n[reader]\n[backup]\nioengine=libaio\niodepth=32\n"
    (tmp_path / "job.fio").write_text(jobs)
    load = hs.Fio(tmp_path / "job.fio")
    rig = hs.Rig("workstation").set("host.queue.elevator", "bfq")
    found = hs.tune(rig, load, goal="mean", job="reader", knob="ionice", requests=600, bound="backup.iops>20")
    assert (found.bounds, found.bounds_kept, found.advised) == (("backup.iops>20",), True, ())
    with pytest.raises(hs.InputError, match="did you mean `backup`"):
        hs.tune(rig, load, job="reader", bound="backp.iops>20")


def test_idle_class_of_the_other_jobs_is_advised_and_is_no_key_of_the_rig() -> None:
    # The backup keeps 32 commands at the disk, behind which each read of the other job waits.
    jobs = """[global]
direct=1
time_based
runtime=1000
thread
[reader]
rw=randread
bs=4k
size=100g
[backup]
rw=randread
bs=64k
size=100g
ioengine=libaio
iodepth=32
"""
    rig = hs.Rig("workstation").set("host.queue.elevator", "bfq")
    found = hs.tune(rig, hs.Fio.from_text(jobs), goal="mean", knob="ionice", job="reader", requests=600)
    [advice] = found.advised
    assert (found.job, advice.setting, advice.advised) == ("reader", "ionice", "idle")
    assert found.apply(rig).to_dict() == rig.to_dict()
    assert found.figures["others"].is_worse
    assert any(loss.startswith("backup read falls from ") for loss in found.losses), found.losses
    assert [(job.job, job.is_loss) for job in found.jobs] == [("reader read", False), ("backup read", True)]
    limited = hs.tune(rig, hs.Fio.from_text(jobs), goal="mean", bound="others>5", knob="io.max", job="reader", requests=600)
    assert [(advice.setting, advice.advised) for advice in limited.advised] == [("io.max", "8388608")]
    with pytest.raises(hs.InputError, match="load: no job is called `raeder`; did you mean `reader`"):
        hs.tune(rig, hs.Fio.from_text(jobs), knob="ionice", job="raeder")


def test_wrong_arguments_name_the_nearest(shallow: hs.Rig, load: hs.Fio) -> None:
    for arguments, message in [
        ({"goal": "p98"}, "goal: nothing is called `p98`; did you mean `p99`"),
        ({"bound": "p99>200"}, "bound: a limit of p99 is p99<NUMBER"),
        ({"knob": ["read_ahaed_kb"]}, "did you mean `read_ahead_kb`"),
        ({"knob": "read_ahead_kb"}, "st2000dm006: has none of the settings"),
    ]:
        with pytest.raises(hs.InputError, match=message):
            hs.tune(shallow, load, **arguments)  # type: ignore[arg-type]
    with pytest.raises(hs.InputError, match="requests: 5 is below 100"):
        hs.tune(shallow, load, requests=5)


def test_exception_of_the_report_ends_the_search(shallow: hs.Rig, endless: hs.Fio) -> None:
    def refuse(runs: int) -> None:
        raise KeyError(runs)

    with pytest.raises(KeyError):
        hs.tune(shallow, endless, requests=1000, progress=refuse)
