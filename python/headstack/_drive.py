"""Drives."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ._native import Drive as NativeDrive
from ._arrays import int_column
from ._numbers import path_name
from ._numpy import np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ._arrays import Int64

__all__ = ["Drive"]


class Drive:
    """A drive: shipped with Headstack, or from a drive file.

    `name` is a shipped drive (`headstack.drives()` lists them) or, with a `/` or the ending `.toml`, a file.
    Raises InputError for an unknown name, with the nearest, and for a file with a fault, with its line and key.
    """

    _native: NativeDrive

    def __init__(self, name: str | os.PathLike[str]) -> None:
        """Loads the shipped drive of this name, or a drive file."""
        self._native = NativeDrive.load(path_name("name", name, "the name of a drive, or a path"))

    @classmethod
    def from_toml(cls, text: str, origin: str = "drive.toml") -> Drive:
        """The drive of a drive file's text; `origin` stands in errors for the file's name."""
        drive = cls.__new__(cls)
        drive._native = NativeDrive.from_toml(text, origin)
        return drive

    def to_toml(self) -> str:
        """The drive as a drive file."""
        return self._native.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """All keys of the drive file, with their values."""
        return self._native.to_dict()

    @property
    def name(self) -> str:
        """Name of the drive."""
        return str(self.to_dict()["name"])

    @property
    def title(self) -> str:
        """Maker, model and capacity."""
        return str(self.to_dict()["title"])

    @property
    def capacity_bytes(self) -> int:
        """Bytes that the host can address."""
        keys = self.to_dict()
        return int(keys["capacity_sectors"]) * int(keys["sector_bytes"])

    @property
    def zones(self) -> dict[str, npt.NDArray[Any]]:
        """The zones, outermost first: columns first_lbn, sectors, first_cylinder and sectors_per_track (mean over the heads)."""
        names = ("first_lbn", "sectors", "first_cylinder", "sectors_per_track")
        return dict(zip(names, self._native.zones()))

    def seek_curve(self) -> dict[str, npt.NDArray[Any]]:
        """Time of a seek over each distance: columns distance (cylinders), read_ms and write_ms."""
        reads, writes = self._native.seek_curves()
        return {"distance": np.arange(len(reads)), "read_ms": reads / 1e6, "write_ms": writes / 1e6}

    def locate(self, lbn: Any) -> dict[str, Int64]:
        """Where blocks lie: columns cylinder, head and sector. Raises InputError for a block that the drive does not have."""
        places = self._native.locate(int_column("lbn", [lbn] if isinstance(lbn, (int, np.integer)) else lbn))
        return dict(zip(("cylinder", "head", "sector"), places))

    def _repr_html_(self) -> str:
        from ._html import ends, grid, page, table

        keys, zones = self.to_dict(), self.zones
        rows, left = ends(len(zones["first_lbn"]))
        names = list(zones)
        facts = [
            ("capacity", f"{self.capacity_bytes / 1e9:,.1f} GB"),
            ("speed", f"{keys['mechanics']['rpm']:g} rpm"),
            ("cylinders", f"{keys['geometry']['cylinders']:,}"),
            ("zones", f"{len(zones['first_lbn']):,}" + (f", of which {left:,} are left out below" if left else "")),
        ]
        shown = grid(names, ([zones[name][row].item() for name in names] for row in rows))
        return page(f"{self.name}: {self.title}", table("Drive", facts), shown)

    def __eq__(self, other: object) -> bool:
        """Whether both have equal keys."""
        return self.to_toml() == other.to_toml() if isinstance(other, Drive) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __repr__(self) -> str:
        return f"<Drive {self.name}: {self.title}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Drive.from_toml, (self.to_toml(), self.name))
