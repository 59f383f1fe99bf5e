"""Rigs: drives and what stands around them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias

from ._native import Rig as NativeRig
from ._native import drives, rigs
from ._drive import Drive
from ._errors import InputError
from ._keywords import names_nearest
from ._keys import dotted, toml_value
from ._layer import Layer
from ._load import Load
from ._numbers import path_name, whole
from ._order import Order, checked
from ._progress import shown
from ._results import Results
from ._simulation import Progress, Simulation

__all__ = ["Rig"]

#: The keys that were set on a shipped rig, step by step; None for a rig that does not ship.
Recipe: TypeAlias = "tuple[list[tuple[str, str]], ...] | None"


def _with_keys(rig: NativeRig, keys: list[tuple[str, str]]) -> NativeRig:
    """The rig with keys set. A float that is whole, as of a column of pandas, is a whole number where the key needs one."""
    try:
        return rig.with_keys(keys)
    except InputError:
        wholes = [(path, value[:-2] if re.fullmatch(r"-?\d+\.0", value) else value) for path, value in keys]
        if wholes == keys:
            raise
        try:
            return rig.with_keys(wholes)
        except InputError:
            pass
        raise


def _made_again(
    text: str, name: str, orders: tuple[Order, ...], layers: tuple[tuple[Layer, int, bool], ...], recipe: Recipe
) -> Rig:
    """A rig that was pickled. Results name the shipped drives of a shipped rig, so that it is made again from these, unless another version
    ships others."""
    native = NativeRig.from_toml(text, name) if recipe is None else NativeRig.load(name)
    for keys in recipe or ():
        native = _with_keys(native, list(keys))
    if native.to_toml() != text:
        native, recipe = NativeRig.from_toml(text, name), None
    return Rig._made(native, orders, layers, recipe)


class Rig:
    """A rig: drives, and the bus, array, controller and host around them. It does not change.

    `source` is a shipped rig or drive (`headstack.rigs()`, `headstack.drives()`), a file, or a `Drive`. Keywords are keys of
    the rig file: `Rig("exos-x16", drive={"queue_depth": 16})`. An unknown key raises InputError with the nearest.
    """

    _native: NativeRig
    _orders: tuple[Order, ...]
    #: Layers, each with the number of its volume or drive, and whether it is above a drive.
    _layers: tuple[tuple[Layer, int, bool], ...]
    _recipe: Recipe

    def __init__(self, source: str | os.PathLike[str] | Drive, /, **keys: Any) -> None:
        """Loads the rig and sets keys over it."""
        if isinstance(source, Drive):
            rig = NativeRig.of_drive(source._native)
        else:
            rig = NativeRig.load(path_name("source", source, "the name of a rig or drive, a path, or a headstack.Drive"))
        pairs = list(dotted(keys))
        self._native = _with_keys(rig, pairs) if pairs else rig
        self._orders, self._layers = (), ()
        is_shipped = isinstance(source, str) and (source in rigs() or source in drives())
        self._recipe = (((pairs,) if pairs else ()) if is_shipped else None)

    @classmethod
    def from_toml(cls, text: str, origin: str = "rig.toml") -> Rig:
        """The rig of a rig file's text, whose drives are shipped ones; `origin` stands in errors for the file's name."""
        return cls._made(NativeRig.from_toml(text, origin))

    @classmethod
    def _made(
        cls,
        native: NativeRig,
        orders: tuple[Order, ...] = (),
        layers: tuple[tuple[Layer, int, bool], ...] = (),
        recipe: Recipe = None,
    ) -> Rig:
        rig = cls.__new__(cls)
        rig._native, rig._orders, rig._layers, rig._recipe = native, orders, layers, recipe
        return rig

    def _set(self, pairs: list[tuple[str, str]]) -> Rig:
        """The same rig with keys set together, each a path and a value in TOML."""
        recipe = None if self._recipe is None else (*self._recipe, pairs)
        return Rig._made(_with_keys(self._native, pairs), self._orders, self._layers, recipe)

    def set(self, path: str, value: Any) -> Rig:
        """The same rig with one key set: `rig.set("drive.queue_depth", 16)`. A path into the drives changes all of them."""
        if not isinstance(path, str):
            raise InputError(f"path: {type(path).__name__} (str, a key such as drive.queue_depth)")
        keys = dotted(value, path) if isinstance(value, dict) else [(path, toml_value(path, value))]
        return self._set(list(keys))

    def set_all(self, keys: Mapping[str, Any]) -> Rig:
        """The same rig with several keys set by their paths, which are checked together."""
        if not isinstance(keys, Mapping):
            raise InputError(f"keys: {type(keys).__name__} (a dict of keys and their values)")
        pairs = [(path, toml_value(path, value)) for path, value in keys.items()]
        return self._set(pairs)

    def with_order(self, order: Order) -> Rig:
        """The same rig with an order written in Python in each drive, or in the host's queues if `order.where` is `host`."""
        checked(order)
        others = tuple(other for other in self._orders if other.where != order.where)
        return Rig._made(self._native, (*others, order), self._layers, self._recipe)

    @names_nearest
    def with_layer(self, layer: Layer, *, volume: SupportsIndex | None = None, drive: SupportsIndex | None = None) -> Rig:
        """The same rig with a layer written in Python on top of a volume (the first, unless given), or above a drive and its queue.

        Of several layers in one place, the last is the topmost. Raises InputError for a volume or drive that there is not.
        """
        if not isinstance(layer, Layer):
            raise InputError(f"layer: {type(layer).__name__} (an object of a subclass of headstack.Layer)")
        if volume is not None and drive is not None:
            raise InputError(f"volume and drive: {volume} and {drive}; give one of them")
        name, count = ("volume", len(self.volumes)) if drive is None else ("drive", len(self.devices))
        number = whole(name, (0 if volume is None else volume) if drive is None else drive, 0, count - 1)
        layers = (*self._layers, (layer, number, drive is not None))
        return Rig._made(self._native, self._orders, layers, self._recipe)

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
    def simulation(self, load: Load, *, seed: SupportsIndex = 0, keep: str = "all") -> Simulation:
        """A run that goes step by step or until a time. See `run` for the arguments."""
        return Simulation(self, load, seed=seed, keep=keep)

    @names_nearest
    def run(
        self,
        load: Load,
        *,
        seed: SupportsIndex = 0,
        keep: str = "all",
        progress: Callable[[Progress], bool | None] | bool | None = None,
        interval_s: SupportsFloat = 0.2,
    ) -> Results:
        """Runs the load on the idle rig until it is done. Same rig, load and seed: same results on every machine.

        `keep` is `all` for a row a request, some 90 bytes each, or `summary`. `progress` is called every `interval_s` seconds
        and stops the run by returning False; `True` shows a bar, if tqdm is installed. Ctrl-C stops the run, too: the results are then those up to there, with
        `partial`, and a StoppedWarning says so. Other Python threads continue meanwhile.
        """
        simulation = self.simulation(load, seed=seed, keep=keep)
        with shown(progress) as report:
            simulation.run(progress=report, interval_s=interval_s)
        return simulation.finish()

    def _python_parts(self) -> tuple[list[tuple[Order, bool, bool]], list[tuple[Layer, int, bool, bool]]]:
        """The orders and layers in Python, as the extension takes them."""
        orders = [(order, order.knows == "position", order.where == "host") for order in map(checked, self._orders)]
        layers = [
            (layer, number, above_drive, type(layer).complete is not Layer.complete)
            for layer, number, above_drive in self._layers
        ]
        return orders, layers

    def __eq__(self, other: object) -> bool:
        """Whether both are the same rig: equal keys, and the same orders and layers in Python."""
        if not isinstance(other, Rig):
            return NotImplemented
        return (self.to_toml(), self._orders, self._layers) == (other.to_toml(), other._orders, other._layers)

    def __hash__(self) -> int:
        return hash((self.to_toml(), len(self._orders), len(self._layers)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self.to_toml(), self.name, self._orders, self._layers, self._recipe)

    def _repr_html_(self) -> str:
        from ._html import page, table

        volumes = [(one["name"], f"{one['sectors'] * one['sector_bytes'] / 1e9:,.1f} GB") for one in self.volumes]
        own = [(type(order).__name__, f"order in the {order.where}") for order in self._orders]
        own += [(type(layer).__name__, f"layer above {'drive' if drive else 'volume'} {number}") for layer, number, drive in self._layers]
        drives = [(str(number), name) for number, name in enumerate(self.devices)]
        return page(f"{self.name}: {self.title}", table("Volumes", volumes), table("Drives", drives), table("In Python", own))

    def __repr__(self) -> str:
        return f"<Rig {self.name}: {self.title}>"
