"""Rigs and drives."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

import headstack as hs


def test_keywords_are_the_keys_of_the_file() -> None:
    rig = hs.Rig("atlas-10k", drive={"queue_depth": 16}, title="mine")
    assert rig.title == "mine"
    assert rig.to_dict()["drive"][0]["queue"]["depth"] == 16


def test_set_returns_a_new_rig(rig: hs.Rig) -> None:
    changed = rig.set("drive.queue_depth", 16).set("drive.order", "sptf")
    assert changed.to_dict()["drive"][0]["queue"]["order"] == "sptf"
    assert rig.to_dict()["drive"][0]["queue"]["depth"] != 16


def test_keys_set_together_are_checked_together() -> None:
    drive = hs.Rig("exos-x16")
    most, start = "drive.cache.dirty_max_sectors", "drive.cache.dirty_start_sectors"
    with pytest.raises(hs.InputError, match="dirty_start_sectors"):
        drive.set(most, 512)
    for keys in ({most: 512, start: 256}, {start: 256, most: 512}):
        cache = drive.set_all(keys).to_dict()["drive"][0]["cache"]
        assert (cache["dirty_max_sectors"], cache["dirty_start_sectors"]) == (512, 256)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hs.Rig("exos-x19"), "did you mean `exos-x16`"),
        (lambda: hs.Rig("atlas-10k", drive={"queue_dept": 1}), "did you mean `drive.queue_depth`"),
        (lambda: hs.Rig("atlas-10k").set("drive.queue_depth", None), "NoneType is no value of a key"),
        (lambda: hs.Rig("atlas-10k").set("drive.queue_depth", -1), "queue"),
        (lambda: hs.Rig("no/such.toml"), "no/such.toml: "),
        (lambda: hs.Drive("exos-x19"), "did you mean `exos-x16`"),
        (lambda: hs.Drive.from_toml("name = 1", "mine.toml"), "mine.toml:1"),
    ],
)
def test_fault_says_place_and_cure(call: object, message: str) -> None:
    assert callable(call)
    with pytest.raises(hs.InputError) as raised:
        call()
    assert message in str(raised.value)


def test_rig_and_drive_survive_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(hs.Drive("atlas-10k").to_toml())
    assert hs.Drive(path).to_dict() == hs.Drive("atlas-10k").to_dict()
    rig = hs.Rig("raid5")
    assert hs.Rig.from_toml(rig.to_toml()).to_dict()["array"] == rig.to_dict()["array"]
    assert len(rig.devices) > len(rig.volumes)


def test_rig_of_a_drive_runs_as_the_shipped_one(load: hs.Fio) -> None:
    own = hs.Rig(hs.Drive("atlas-10k")).run(load).to_dict()["headstack"]
    assert own["response_ms"] == hs.Rig("atlas-10k").run(load).to_dict()["headstack"]["response_ms"]


def test_zones_cover_the_disk() -> None:
    for name in ("atlas-10k", "exos-x16"):
        drive = hs.Drive(name)
        zones = drive.zones
        sectors = drive.to_dict()["capacity_sectors"]
        assert zones["sectors"].sum() == sectors
        assert np.array_equal(np.cumsum(zones["sectors"])[:-1], zones["first_lbn"][1:])
        assert np.all(np.diff(zones["first_cylinder"]) > 0)
        first = drive.locate(zones["first_lbn"])["cylinder"]
        before = drive.locate(zones["first_lbn"][1:] - 1)["cylinder"]
        assert np.all(before < zones["first_cylinder"][1:])
        assert np.all(first >= zones["first_cylinder"])


def test_seek_curve_starts_at_zero_and_rises() -> None:
    curve = hs.Drive("exos-x16").seek_curve()
    assert curve["read_ms"][0] == 0
    assert np.all(np.diff(curve["read_ms"]) >= 0)
    assert len(curve["distance"]) == hs.Drive("exos-x16").to_dict()["geometry"]["cylinders"]


def test_block_outside_the_drive_is_named() -> None:
    drive = hs.Drive("atlas-10k")
    assert drive.locate([0])["cylinder"].tolist() == [0]
    with pytest.raises(hs.InputError, match=r"lbn\[1\]: -1 is outside 0 to"):
        drive.locate([0, -1])


def test_drive_is_pickled_as_its_file() -> None:
    drive = hs.Drive("atlas-10k")
    assert pickle.loads(pickle.dumps(drive)).to_dict() == drive.to_dict()
    assert drive.title in repr(drive)
    assert drive.capacity_bytes > 9e9


def test_everything_shipped_is_listed() -> None:
    assert "exos-x16" in hs.drives()
    assert "raid5" in hs.rigs()
    assert "sptf" in hs.orders()
    assert {"disksim", "msr", "biosnoop", "table", "tsv"} <= {name for name, _ in hs.trace_formats()}
