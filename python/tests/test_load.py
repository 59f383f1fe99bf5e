"""Loads: fio jobs, generators, traces, columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest

import headstack as hs


def responses(run: hs.Results) -> Any:
    """The response times of a run, which the load's name does not change."""
    return run.to_dict()["headstack"]["response_ms"]


def test_keywords_of_fio_are_its_options(rig: hs.Rig, tmp_path: Path) -> None:
    path = tmp_path / "job"
    path.write_text("[job]\nrw=randread\nbs=8k\nsize=1g\nnumber_ios=100\n")
    by_keywords = hs.Fio(rw="randread", bs="8k", size="1g", number_ios=100)
    assert responses(rig.run(by_keywords)) == responses(rig.run(hs.Fio(path))) == responses(rig.run(hs.Load(path)))


def test_keywords_of_generators_are_the_keys_of_the_file(rig: hs.Rig, tmp_path: Path) -> None:
    path = tmp_path / "load.toml"
    path.write_text("requests = 200\n[[blocks]]\ndepth = 4\n")
    by_keywords = hs.Generators(requests=200, blocks=[{"depth": 4}])
    assert responses(rig.run(by_keywords)) == responses(rig.run(hs.Generators(path)))
    assert responses(rig.run(hs.Generators.from_toml(path.read_text()))) == responses(rig.run(hs.Load(path)))


@pytest.mark.parametrize("format", [name for name, _ in hs.trace_formats() if name != "validate"])
def test_trace_of_every_format_is_written_and_read(format: str, tmp_path: Path) -> None:
    requests = hs.Requests([0, 10**9, 3 * 10**9], [0, 1000, 80], 8, ["read", "write", "read"])
    path = tmp_path / "a.trace.gz"
    assert requests.write(path, format)["written"] == 3
    columns = hs.Trace(path, format=format).to_arrays()
    time = columns["time_ns"] - columns["time_ns"][0]
    # The coarsest format counts seconds.
    assert np.allclose(time, [0, 10**9, 3 * 10**9], rtol=0, atol=10**6)
    assert columns["op"].tolist() == [0, 1, 0]
    assert columns["offset"].tolist() == [0, 512_000, 40_960]
    assert columns["bytes"].tolist() == [4096] * 3


def test_times_of_a_trace_count_from_its_first_record(rig: hs.Rig, tmp_path: Path) -> None:
    # Times of an MSR trace are Windows file times, in nanoseconds beyond 2⁶³; the third record is before the first.
    start = 128166372000471450
    lines = [f"{start + after},srv,0,Read,{8144175104 + 65536 * after},65536,77133" for after in (0, 70, -30, 90000)]
    (tmp_path / "own.csv").write_text("\n".join(lines) + "\n")
    trace = hs.Trace(tmp_path / "own.csv", wrap=True)
    assert trace.origin_ns == start * 100
    assert trace.to_arrays()["time_ns"].tolist() == trace.to_pandas()["time_ns"].tolist() == [0, 7000, -3000, 9_000_000]
    run, again = rig.run(trace), rig.run(trace.to_requests(wrap=True))
    assert sorted(run.requests.submitted_ns) == sorted(again.requests.submitted_ns)
    assert run.requests.submitted_ns.max() == 9_000_000
    assert responses(run) == responses(again)


def test_columns_run_as_their_trace_does(rig: hs.Rig, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    frame = pandas.DataFrame(
        {
            "time_ns": np.cumsum(random.integers(0, 10**7, 300)),
            "lbn": random.integers(0, 10**7, 300),
            "sectors": random.integers(1, 64, 300),
            "op": pandas.Categorical(random.choice(["read", "write"], 300)),
        }
    )
    requests = hs.Requests.from_frame(frame)
    requests.write(tmp_path / "a.csv")
    trace = hs.Trace(tmp_path / "a.csv")
    assert responses(rig.run(requests)) == responses(rig.run(trace)) == responses(rig.run(trace.to_requests()))
    assert len(requests) == len(trace.to_pandas()) == 300
    by_bytes = hs.Requests(frame.time_ns, op=frame.op, offset=frame.lbn * 512, bytes=frame.sectors * 512)
    assert responses(rig.run(by_bytes)) == responses(rig.run(requests))


def test_time_scale_stretches_a_trace(rig: hs.Rig) -> None:
    times = np.arange(100) * 10**7
    slow = rig.run(hs.Requests(times, 0, 8, time_scale=2.0))
    assert slow.simulated_s == pytest.approx(2 * rig.run(hs.Requests(times, 0, 8)).simulated_s, rel=0.02)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hs.Fio(rw="randread", blocksiz="4k"), "blocksize"),
        (lambda: hs.Fio("a.fio", rw="read"), "give one of them"),
        (lambda: hs.Fio(rw="read\n[x]"), "line break"),
        (lambda: hs.Fio("no.fio"), "no.fio: "),
        (lambda: hs.Generators(requests=1, block=[{}]), "blocks"),
        (lambda: hs.Generators(requests=float("nan")), "generators: "),
        (lambda: hs.Generators(requests=None), ""),
        (lambda: hs.Trace("no.trace"), "no.trace: "),
        (lambda: hs.Trace("no.trace", format="spd"), "format: no `spd` (one of disksim"),
        (lambda: hs.Requests([0.5], [0], 8), "time_ns: values of type float64"),
        (lambda: hs.Requests([0], [0, 1], 8), "lbn: 2 rows"),
        (lambda: hs.Requests([[0]], [0], 8), "time_ns: 2 dimensions"),
        (lambda: hs.Requests([0], [-1], 8), "offset[0]: -512 is outside 0 to"),
        (lambda: hs.Requests([0], [0]), "sectors: missing"),
        (lambda: hs.Requests([0], [0], 8, "reed"), "op: 'reed' (one of read, write"),
        (lambda: hs.Requests([0], [0], 8, [7]), "op: a code is outside 0 to 3"),
        (lambda: hs.Requests([0], [0], 8, time_scale=0), "time_scale: 0 is outside"),
        (lambda: hs.Requests([0], [2**60], 8), "do not fit in 64 bits"),
        (lambda: hs.Requests.from_frame({"lbn": [0]}), "no column time_ns"),
    ],
)
def test_fault_of_a_load_says_place_and_cure(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(hs.InputError) as raised:
        call()
    assert message in str(raised.value)


def test_block_beyond_the_volume_is_named(rig: hs.Rig) -> None:
    with pytest.raises(hs.InputError, match="requests: request 1: block "):
        rig.run(hs.Requests([0], [10**12], 8))
    assert rig.run(hs.Requests([0], [10**12], 8, wrap=True)).response.count == 1
