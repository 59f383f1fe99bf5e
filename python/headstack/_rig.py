"""Rigs: drives and what stands around them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ._native import Rig as NativeRig
from ._drive import Drive
from ._errors import InputError
from ._keywords import names_nearest
from ._keys import dotted, toml_value
from ._layer import Layer
from ._load import Load
from ._order import Order
from ._results import Results
from ._simulation import Progress, Simulation

__all__ = ["Rig"]


class Rig:
    """A rig: drives, and the bus, array, controller and host around them. It does not change.

    `source` is a shipped rig or drive (`headstack.rigs()`, `headstack.drives()`), a file, or a `Drive`. Keywords are keys of
    the rig file: `Rig("exos-x16", drive={"queue_depth": 16})`. An unknown key raises InputError with the nearest.
    """

    _native: NativeRig
    _orders: tuple[Order, ...]
    #: Layers, each with the number of its volume or drive, and whether it is above a drive.
    _layers: tuple[tuple[Layer, int, bool], ...]

    def __init__(self, source: str | os.PathLike[str] | Drive, /, **keys: Any) -> None:
        """Loads the rig and sets keys over it."""
        if isinstance(source, Drive):
            rig = NativeRig.of_drive(source._native)
        else:
            rig = NativeRig.load(os.fspath(source))
        self._native = rig.with_keys(list(dotted(keys))) if keys else rig
        self._orders, self._layers = (), ()

    @classmethod
    def from_toml(cls, text: str, origin: str = "rig.toml") -> Rig:
        """The rig of a rig file's text, whose drives are shipped ones; `origin` stands in errors for the file's name."""
        return cls._made(NativeRig.from_toml(text, origin))

    @classmethod
    def _made(
        cls, native: NativeRig, orders: tuple[Order, ...] = (), layers: tuple[tuple[Layer, int, bool], ...] = ()
    ) -> Rig:
        rig = cls.__new__(cls)
        rig._native, rig._orders, rig._layers = native, orders, layers
        return rig

    def set(self, path: str, value: Any) -> Rig:
        """The same rig with one key set: `rig.set("drive.queue_depth", 16)`. A path into the drives changes all of them."""
        keys = dotted(value, path) if isinstance(value, dict) else [(path, toml_value(path, value))]
        return Rig._made(self._native.with_keys(list(keys)), self._orders, self._layers)

    def set_all(self, keys: dict[str, Any]) -> Rig:
        """The same rig with several keys set by their paths, which are checked together."""
        pairs = [(path, toml_value(path, value)) for path, value in keys.items()]
        return Rig._made(self._native.with_keys(pairs), self._orders, self._layers)

    def with_order(self, order: Order) -> Rig:
        """The same rig with an order written in Python in each drive, or in the host's queues if `order.where` is `host`."""
        if not isinstance(order, Order):
            raise InputError(f"order: {type(order).__name__} (a subclass of headstack.Order)")
        others = tuple(other for other in self._orders if other.where != order.where)
        return Rig._made(self._native, (*others, order), self._layers)

    @names_nearest
    def with_layer(self, layer: Layer, *, volume: int | None = None, drive: int | None = None) -> Rig:
        """The same rig with a layer written in Python on top of a volume (the first, unless given), or above a drive and its queue.

        Of several layers in one place, the last is the topmost. Raises InputError for a volume or drive that there is not.
        """
        if not isinstance(layer, Layer):
            raise InputError(f"layer: {type(layer).__name__} (a subclass of headstack.Layer)")
        if volume is not None and drive is not None:
            raise InputError(f"volume and drive: {volume} and {drive}; give one of them")
        name, count = ("volume", len(self.volumes)) if drive is None else ("drive", len(self.devices))
        number = (volume or 0) if drive is None else drive
        if not isinstance(number, int) or not 0 <= number < count:
            raise InputError(f"{name}: {number!r} is outside 0 to {count - 1}")
        return Rig._made(self._native, self._orders, (*self._layers, (layer, number, drive is not None)))

    @property
    def name(self) -> str:
        """The name by which it was loaded."""
        return self._native.name

    @property
    def title(self) -> str:
        """What it is, for people."""
        return self._native.title

    @property
    def volumes(self) -> list[dict[str, Any]]:
        """The volumes that a load sees: name, sectors, sector_bytes."""
        names = ("name", "sectors", "sector_bytes")
        return [dict(zip(names, volume)) for volume in self._native.volumes()]

    @property
    def devices(self) -> list[str]:
        """Names of the drives, by number."""
        return self._native.devices()

    def to_toml(self) -> str:
        """The whole rig as a rig file that needs no other."""
        return self._native.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """All keys of the rig with their values, those of its drives included."""
        return self._native.to_dict()

    @names_nearest
    def simulation(self, load: Load, *, seed: int = 0, keep: str = "all") -> Simulation:
        """A run that goes step by step or until a time. See `run` for the arguments."""
        return Simulation(self, load, seed=seed, keep=keep)

    @names_nearest
    def run(
        self,
        load: Load,
        *,
        seed: int = 0,
        keep: str = "all",
        progress: Callable[[Progress], bool | None] | None = None,
        interval_s: float = 0.2,
    ) -> Results:
        """Runs the load on the idle rig until it is done. Same rig, load and seed: same results on every machine.

        `keep` is `all` for a row a request, some 90 bytes each, or `summary`. `progress` is called every `interval_s` seconds
        and stops the run by returning False. Ctrl-C stops the run, too: the results are then those up to there, with
        `partial`, and a StoppedWarning says so. Other Python threads continue meanwhile.
        """
        simulation = self.simulation(load, seed=seed, keep=keep)
        simulation.run(progress=progress, interval_s=interval_s)
        return simulation.finish()


    def __repr__(self) -> str:
        return f"<Rig {self.name}: {self.title}>"
