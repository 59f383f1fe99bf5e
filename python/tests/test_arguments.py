"""Arguments: numbers of NumPy are numbers, and what is none is refused with the argument's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headstack as hs


def test_numbers_of_numpy_are_numbers_everywhere(rig: hs.Rig, load: hs.Fio, tmp_path: Path) -> None:
    first = rig.run(load, seed=3)
    again = rig.run(load, seed=np.int64(3), interval_s=np.float32(0.5))
    assert again.to_json() == first.to_json()
    assert [rig.run(load, seed=seed).seed for seed in np.arange(2)] == [0, 1]
    simulation = rig.simulation(load)
    assert simulation.step(np.int32(3))
    assert simulation.run(until=np.float64(0.01))
    assert len(first.response.distribution(np.uint8(9))["share"]) == 9
    assert first.response.quantile_ms(np.float32(0.5)) == first.response.p50_ms
    for depth in (np.int64(4), 4.0, np.float64(4.0), np.array(4)):
        assert rig.set("drive.queue_depth", depth) == rig.set("drive.queue_depth", 4)
    assert hs.Rig("atlas-10k", drive={"queue_depth": np.uint16(4)}) == rig.set_all({"drive.queue_depth": 4})
    count = np.int64(20)
    assert rig.run(hs.Fio(rw="randread", size="1g", number_ios=count)).response.count == 20
    assert rig.run(hs.Generators(requests=count, blocks=[{"depth": np.int8(2)}])).response.count == 20
    requests = hs.Requests(np.arange(3) * 10**6, 0, 8, sector_bytes=np.int64(512), time_scale=np.float32(2))
    assert rig.run(requests).requests.submitted_ns.max() == 4_000_000
    (tmp_path / "job.fio").write_text("[a]\nrw=randread\nsize=1g\nnumber_ios=5\n")
    assert len(hs.Sweep(rigs="atlas-10k", loads=tmp_path / "job.fio", seeds=np.int64(2), first_seed=np.uint8(1))) == 2


class Own(hs.Order):
    def choose(self, queue: Any) -> Any:
        return "first"


class Typo(hs.Order):
    where = "hots"


class Other(hs.Order):
    knows = "positon"


RIG = hs.Rig("atlas-10k")
LOAD = hs.Fio(rw="randread", size="1g", number_ios=50, ioengine="libaio", iodepth=4)
WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: hs.Rig(3), r"^source: int"),  # type: ignore[arg-type]
    (lambda: hs.Rig(None), r"^source: NoneType"),  # type: ignore[arg-type]
    (lambda: hs.Drive(3), r"^name: int"),  # type: ignore[arg-type]
    (lambda: hs.Load(None), r"^path: NoneType"),  # type: ignore[arg-type]
    (lambda: hs.Fio(3), r"^path: int"),  # type: ignore[arg-type]
    (lambda: hs.Trace(b"a"), r"^path: bytes"),  # type: ignore[arg-type]
    (lambda: hs.Requests.from_frame(3), r"^frame: int"),
    (lambda: RIG.set(3, 4), r"^path: int"),  # type: ignore[arg-type]
    (lambda: RIG.set_all(4), r"^keys: int"),  # type: ignore[arg-type]
    (lambda: RIG.run(3), r"^load: int"),  # type: ignore[arg-type]
    (lambda: RIG.run(LOAD, seed="1"), r"^seed: '1' is no whole number"),  # type: ignore[arg-type]
    (lambda: RIG.run(LOAD, seed=1.5), r"^seed: 1\.5 is no whole number"),  # type: ignore[arg-type]
    (lambda: RIG.run(LOAD, seed=-1), r"^seed: -1 is outside 0 to 18446744073709551615"),
    (lambda: RIG.run(LOAD, interval_s=float("nan")), r"^interval_s: nan is outside 0 to 1000000 s"),
    (lambda: RIG.run(LOAD, progress=3), r"^progress: int"),  # type: ignore[arg-type]
    (lambda: RIG.with_order(3), r"^order: int"),  # type: ignore[arg-type]
    (lambda: RIG.with_order(Own), r"^order: type"),  # type: ignore[arg-type]
    (lambda: RIG.with_order(Typo()), r"^order: where is 'hots'; did you mean 'host'\?"),
    (lambda: RIG.with_order(Other()), r"^order: knows is 'positon'; did you mean 'position'\?"),
    (lambda: RIG.with_order(Own()).run(LOAD), r"choose\(\) returned 'first', which is no whole number"),
    (lambda: RIG.run(hs.PythonLoad(lambda context: 3)), r"returned int.*iterable"),  # type: ignore[arg-type, return-value]
    (lambda: hs.Sweep(3), r"^file: int"),  # type: ignore[arg-type]
    (lambda: hs.Sweep(rigs=3, loads=LOAD), r"^rigs: int"),  # type: ignore[arg-type]
    (lambda: hs.Sweep(rigs=RIG, loads=[3]), r"^loads: int"),  # type: ignore[list-item]
    (lambda: hs.Sweep(rigs=RIG, loads=LOAD, grid={"drive.queue_depth": 8}), r"^grid: drive\.queue_depth: int"),  # type: ignore[dict-item]
    (lambda: hs.Sweep(rigs=RIG, loads=LOAD, grid={"drive.order": "fcfs"}), r"^grid: drive\.order: str"),
    (lambda: hs.Sweep(rigs=RIG, loads=LOAD, grid=[1]), r"^grid: list"),  # type: ignore[arg-type]
    (lambda: hs.Sweep(rigs=RIG, loads=LOAD, settings=[3]), r"^settings: int"),  # type: ignore[list-item]
    (lambda: hs.Sweep(rigs=RIG, loads=LOAD, seeds="4"), r"^seeds: '4'"),  # type: ignore[arg-type]
    (lambda: hs.Sweep(rigs=RIG, loads=LOAD).run("s3://bucket/rows"), r"^folder: s3://bucket/rows is a URL"),
    (lambda: hs.Sweep(rigs=RIG, loads=LOAD).results("s3://bucket/rows"), r"^folder: s3://bucket/rows is a URL"),
    (lambda: hs.Sweep(rigs=RIG, loads=LOAD).run(3), r"^folder: int"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("call, message", WRONG, ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_arguments_are_input_errors_that_name_them(call: Callable[[], object], message: str) -> None:
    with pytest.raises(hs.InputError, match=message):
        call()
