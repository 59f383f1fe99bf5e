"""Objects are copied and pickled, and then do the same."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import headstack as hs


class Oldest(hs.Order):
    """The oldest request, with a state of its own."""

    def __init__(self) -> None:
        self.choices = 0

    def choose(self, queue: hs.Queue) -> int:
        self.choices += 1
        return 0


class Passing(hs.Layer):
    """A layer that passes all requests on."""


def source(context: hs.LoadContext) -> list[hs.Request]:
    return [hs.Request(8 * number, 8, time_ns=number * 10**6) for number in range(20)]


def loads(tmp_path: Path) -> list[hs.Load]:
    (tmp_path / "job.fio").write_text("[a]\nrw=randread\nsize=1g\nnumber_ios=20\n")
    (tmp_path / "load.toml").write_text("requests = 20\n[[blocks]]\ndepth = 4\n")
    requests = hs.Requests(np.arange(20) * 10**6, np.arange(20) * 800, 8, time_scale=2.0, name="mine")
    requests.write(tmp_path / "trace.csv")
    return [
        hs.Fio(tmp_path / "job.fio"),
        hs.Fio(rw="randread", size="1g", number_ios=20),
        hs.Fio.from_text((tmp_path / "job.fio").read_text()),
        hs.Generators(tmp_path / "load.toml"),
        hs.Generators(requests=20, blocks=[{"depth": 4}]),
        hs.Load(tmp_path / "load.toml"),
        hs.Trace(tmp_path / "trace.csv", time_scale=0.5),
        requests,
        hs.PythonLoad(source, name="mine"),
    ]


def test_loads_run_the_same_after_a_copy(rig: hs.Rig, tmp_path: Path) -> None:
    for load in loads(tmp_path):
        first = rig.run(load, seed=2)
        for again in (pickle.loads(pickle.dumps(load)), copy.deepcopy(load)):
            assert type(again) is type(load) and again.name == load.name
            assert rig.run(again, seed=2).to_json() == first.to_json(), load


def test_rigs_are_equal_to_their_copies_and_to_equal_rigs(load: hs.Fio) -> None:
    rig = hs.Rig("exos-x16", drive={"queue_depth": 16})
    for again in (pickle.loads(pickle.dumps(rig)), copy.deepcopy(rig), hs.Rig("exos-x16").set("drive.queue_depth", 16)):
        assert again == rig and hash(again) == hash(rig) and again.name == rig.name
        assert again.run(load).to_json() == rig.run(load).to_json()
    assert rig != hs.Rig("exos-x16") and rig != "exos-x16"
    own = rig.with_order(Oldest()).with_layer(Passing())
    assert own != rig and own == own.set("drive.queue_depth", 16)
    assert pickle.loads(pickle.dumps(own)).run(load).to_json() == own.run(load).to_json()
    drive = hs.Drive("exos-x16")
    assert pickle.loads(pickle.dumps(drive)) == drive and drive != hs.Drive("atlas-10k")
    array = hs.Rig("workstation")
    assert pickle.loads(pickle.dumps(array)) == array


@pytest.mark.parametrize("keep", ["all", "summary"])
def test_results_have_the_same_figures_after_a_copy(rig: hs.Rig, keep: str) -> None:
    job = "[global]\nsize=1g\nnumber_ios=300\nramp_time=100ms\n[log]\nrw=randwrite\nfdatasync=1\n[scan]\nrw=randread\n"
    run = rig.run(hs.Fio.from_text(job), keep=keep)
    for again in (pickle.loads(pickle.dumps(run)), copy.deepcopy(run), pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(run))))):
        assert again.to_json() == run.to_json() and again.figures() == run.figures()
        assert repr(again) == repr(run) and again._repr_html_() == run._repr_html_()
        for ours, theirs in ((again.reads, run.reads), (again.writes, run.writes), (again.flushes, run.flushes), (again.response, run.response)):
            assert (ours.count, ours.bytes, ours.mean_ms, ours.std_dev_ms) == (theirs.count, theirs.bytes, theirs.mean_ms, theirs.std_dev_ms)
            for share in np.linspace(0, 1, 1001):
                assert ours.quantile_ms(share) == theirs.quantile_ms(share), share
            for name, values in theirs.distribution(777).items():
                assert np.array_equal(ours.distribution(777)[name], values)
        if keep == "all":
            assert all(np.array_equal(again.requests[name], values) for name, values in run.requests.to_dict().items())
        else:
            with pytest.raises(hs.InputError, match='keep="all"'):
                again.requests


def ran(rig: hs.Rig, load: hs.Load) -> hs.Results:
    return rig.run(load, seed=1)


def test_workers_take_objects_and_return_results(rig: hs.Rig, load: hs.Fio) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as workers:
        assert workers.submit(hs.Rig.run, rig, load, seed=1).result().to_json() == ran(rig, load).to_json()
