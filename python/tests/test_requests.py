"""The requests of a run in columns."""

from __future__ import annotations

import numpy as np
import pandas
import pyarrow
import pytest

import headstack as hs
from headstack import _native


@pytest.fixture
def table(rig: hs.Rig) -> hs.RequestTable:
    """Requests of reads and writes."""
    load = hs.Fio(rw="randrw", bs="4k", size="1g", ioengine="libaio", iodepth=4, number_ios=500)
    return rig.run(load).requests


def test_parts_add_up_to_the_response(table: hs.RequestTable) -> None:
    parts = sum(table[f"{part}_ns"] for part in _native.parts())
    assert np.array_equal(parts, table.response_ns)
    assert np.all(table.started_ns >= table.submitted_ns)
    assert np.all(np.diff(table.completed_ns) >= 0)


def test_columns_have_one_type_whatever_their_values(table: hs.RequestTable) -> None:
    types = {name: str(values.dtype) for name, values in table.to_dict().items()}
    assert {types.pop(name) for name in ("urgent", "counted")} == {"bool"}
    assert {types.pop(name) for name in ("op", "cache", "outcome", "limit")} == {"uint8"}
    assert {types.pop(name) for name in ("sectors", "source", "volume", "device")} == {"uint32"}
    assert {types.pop(name) for name in ("from_cylinder", "to_cylinder")} == {"int32"}
    assert set(types.values()) == {"int64"}


def test_frames_share_the_memory_of_the_columns(table: hs.RequestTable) -> None:
    frame = table.to_pandas()
    assert len(frame) == len(table) == 500
    for name in ("lbn", "completed_ns", "seek_ns", "to_cylinder"):
        assert np.shares_memory(frame[name].to_numpy(), table[name])
    assert set(frame["op"].unique()) == {"read", "write"}
    arrow = table.to_arrow()
    assert arrow.column("lbn").chunk(0).buffers()[1].address == table.lbn.ctypes.data
    assert arrow.column("op").to_pylist() == frame["op"].to_list()


def test_arrow_stream_holds_the_table(table: hs.RequestTable) -> None:
    read = pyarrow.table(table)
    assert read.column_names == table.columns
    assert read.num_rows == len(table)


def test_polars_frame_has_the_rows(table: hs.RequestTable) -> None:
    polars = pytest.importorskip("polars")
    frame = table.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame["lbn"].to_list() == table.lbn.tolist()


def test_columns_agree_with_the_statistics(rig: hs.Rig, load: hs.Fio) -> None:
    run = rig.run(load)
    assert run.requests is run.requests
    mean_ms = run.requests.response_ns.mean() / 1e6
    assert mean_ms == pytest.approx(run.response.mean_ms, rel=1e-9)
    assert isinstance(run.requests.to_pandas(), pandas.DataFrame)


def test_rows_of_the_warm_up_are_marked(rig: hs.Rig) -> None:
    load = hs.Fio(rw="randread", bs="4k", size="1g", ioengine="libaio", iodepth=4, ramp_time=1, runtime=3, time_based=True)
    run = rig.run(load)
    table = run.requests
    assert 0 < (~table.counted).sum() == run.requests_not_counted
    assert table.counted.sum() == run.response.count
    assert table.response_ns[table.counted].mean() / 1e6 == pytest.approx(run.response.mean_ms, rel=1e-9)
    assert table.completed_ns[~table.counted].max() < 10**9 <= table.completed_ns[table.counted].min()
    assert run.counted_s == run.to_dict()["headstack"]["counted_s"] < run.simulated_s
    frame = table.to_pandas()
    assert frame["response_ns"].tolist() == table.response_ns.tolist()
    assert frame[frame.counted].response_ns.mean() == table.response_ns[table.counted].mean()
    assert "response_ns" in table.to_arrow().column_names and "counted" in table.columns


def test_urgent_requests_are_marked(rig: hs.Rig) -> None:
    job = "[global]\nrw=randread\nsize=1g\nnumber_ios=50\n[calm]\n[hasty]\nprioclass=1\nprio=1\n"
    table = rig.run(hs.Fio.from_text(job)).requests
    assert table.urgent.tolist() == (table.source == 1).tolist()
    assert table.urgent.sum() == 50


def test_run_without_rows_says_how_to_keep_them(rig: hs.Rig, load: hs.Fio) -> None:
    with pytest.raises(hs.InputError, match='keep="all"'):
        rig.run(load, keep="summary").requests


def test_unknown_column_is_named(table: hs.RequestTable) -> None:
    with pytest.raises(hs.InputError, match="no column 'lba'"):
        table["lba"]
    with pytest.raises(AttributeError, match="no column 'lba'"):
        table.lba
    assert "seek_ns" in dir(table)
    assert hs.RequestTable.names("op") == ["read", "write", "flush"]
