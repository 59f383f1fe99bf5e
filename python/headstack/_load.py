"""Loads: fio jobs, traces, columns, generators."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex

from . import _native
from ._arrays import KINDS, int_column, op_column
from ._errors import InputError
from ._numbers import path_name, plain, real, whole
from ._numpy import np

if TYPE_CHECKING:
    import pandas

    from ._arrays import Int64

__all__ = ["Fio", "Generators", "Load", "Requests", "Trace"]


class Load:
    """A load: where the requests of a run come from. Any number of runs can use one.

    `Load(path)` detects what a file holds: a fio job (`.fio`), generators (`.toml`) or a trace. The subclasses say it.
    """

    _native: _native.Load
    #: A function and its arguments, which make the load again.
    _again: tuple[Callable[..., Load], tuple[Any, ...]]

    def __reduce__(self) -> tuple[Any, ...]:
        return self._again

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Loads a file of any kind. Raises InputError with the place of a fault."""
        self._name = path_name("path", path, "a path")
        self._native = _native.Load.file(self._name, False, None, 1.0, False, None, 0)
        self._again = (type(self), (self._name,))

    @property
    def name(self) -> str:
        """The file's name, or that of the load."""
        return self._name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._name}>"


def _read(path: str | os.PathLike[str]) -> tuple[str, str]:
    """The text and the name of a file."""
    name = path_name("path", path, "a path")
    try:
        with open(name, encoding="utf-8-sig") as file:
            return file.read(), name
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{name}: {error}") from error


class Fio(Load):
    """fio jobs: of a file, `Fio("job.fio")`, or one of keywords, `Fio(rw="randread", bs="4k", number_ios=5000)`.

    A keyword is an option of fio. Unknown options and wrong values raise InputError with the line.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, /, *, name: str = "job", **options: Any) -> None:
        """Reads a job file, or makes a job called `name` of the options."""
        if path is not None:
            if options:
                raise InputError(f"{os.fspath(path)}: a job file and options ({', '.join(options)}); give one of them")
            text, origin = _read(path)
        else:
            text, origin = _job_text(name, options), name
        self._name = origin
        self._native = _native.Load.fio(text, origin)
        self._again = (Fio.from_text, (text, origin))

    @classmethod
    def from_text(cls, text: str, origin: str = "job.fio") -> Fio:
        """The jobs of a job file's text; `origin` stands in errors for the file's name."""
        load = cls.__new__(cls)
        load._name = origin
        load._native = _native.Load.fio(text, origin)
        load._again = (cls.from_text, (text, origin))
        return load


def _job_text(name: str, options: Mapping[str, Any]) -> str:
    lines = [f"[{name}]"]
    for key, value in options.items():
        value = plain(value)
        shown = str(int(value)) if isinstance(value, bool) else str(value)
        if any(letter in key + shown + name for letter in "\n\r"):
            raise InputError(f"{key}: a line break in {shown!r} (one line)")
        lines.append(f"{key}={shown}")
    return "\n".join(lines) + "\n"


class Generators(Load):
    """The generators of a load file: `Generators("load.toml")`, or of keywords that are its keys.

    `Generators(requests=1000, blocks=[{"depth": 8}])` is the file with `requests = 1000` and a table `[[blocks]]`.
    Unknown keys raise InputError with the nearest known one.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, /, **keys: Any) -> None:
        """Reads a load file, or makes a load of its keys."""
        if path is not None:
            if keys:
                raise InputError(f"{os.fspath(path)}: a load file and keys ({', '.join(keys)}); give one of them")
            text, self._name = _read(path)
            self._native = _native.Load.generators(text, self._name)
            self._again = (Generators.from_toml, (text, self._name))
            return
        self._name = "generators"
        try:
            text = json.dumps(keys, allow_nan=False, default=_json)
        except (TypeError, ValueError) as error:
            raise InputError(f"generators: {error} (bool, int, float, str, list or dict)") from error
        self._native = _native.Load.generators_of_json(text, self._name)
        self._again = (_generators_of_json, (text,))

    @classmethod
    def from_toml(cls, text: str, origin: str = "load.toml") -> Generators:
        """The generators of a load file's text; `origin` stands in errors for the file's name."""
        load = cls.__new__(cls)
        load._name = origin
        load._native = _native.Load.generators(text, origin)
        load._again = (cls.from_toml, (text, origin))
        return load


def _generators_of_json(text: str) -> Generators:
    """Generators that were pickled."""
    return Generators(**json.loads(text))


def _json(value: Any) -> Any:
    """Numbers and arrays of NumPy as those of Python. Raises TypeError, as JSON wants it, for anything else."""
    found = plain(value)
    if found is value and hasattr(value, "tolist"):
        found = value.tolist()
    if found is value:
        raise TypeError(f"{type(value).__name__} is no value of a key")
    return found


class Requests(Load):
    """Requests in columns, issued at their times: NumPy arrays, lists, or anything that NumPy makes a column of.

    `time_ns` is when each request is issued, from the start of the run; `lbn` its first block, `sectors` its blocks of
    `sector_bytes` bytes. `op` has names (read, write, flush, trim) or their codes 0 to 3; one name holds for all. `device`
    numbers the volumes that are used, in the order in which they appear. Give offsets in bytes with `offset` and `bytes`.
    """

    def __init__(
        self,
        time_ns: Any,
        lbn: Any = None,
        sectors: Any = None,
        op: Any = "read",
        *,
        offset: Any = None,
        bytes: Any = None,
        device: Any = 0,
        sector_bytes: SupportsIndex = 512,
        time_scale: SupportsFloat = 1.0,
        wrap: bool = False,
        all_to: SupportsIndex | None = None,
        name: str = "requests",
    ) -> None:
        """Checks the columns and copies them. Raises InputError with the column and row at fault."""
        self._name = name
        self._columns = _columns(time_ns, lbn, sectors, op, offset, bytes, device, sector_bytes)
        time, devices, ops, offsets, lengths = self._columns
        scale = real("time_scale", time_scale, 1e-6, 1e6)
        volume = None if all_to is None else whole("all_to", all_to, 0, 2**32 - 1)
        self._native = _native.Load.columns(time, devices, ops, offsets, lengths, name, scale, bool(wrap), volume)
        self._again = (_requests, (type(self), self._columns, scale, bool(wrap), volume, name))

    @classmethod
    def from_frame(cls, frame: Any, **options: Any) -> Requests:
        """The requests of a pandas or polars DataFrame, or a dict, whose columns have the names of the arguments."""
        if not hasattr(frame, "columns") and not isinstance(frame, Mapping):
            raise InputError(f"frame: {type(frame).__name__} (a DataFrame of pandas or polars, or a dict of columns)")
        known = ("time_ns", "lbn", "sectors", "op", "offset", "bytes", "device")
        names = [str(name) for name in (frame.keys() if isinstance(frame, Mapping) else frame.columns)]
        if "time_ns" not in names:
            raise InputError(f"frame: no column time_ns (there are {', '.join(names) or 'none'})")
        found = {name: _values(frame[name]) for name in known if name in names}
        if "offset" in found and "lbn" in found:
            del found["lbn"]
            found.pop("sectors", None)
        return cls(**found, **options)

    def __len__(self) -> int:
        return len(self._columns[0])

    def write(self, path: str | os.PathLike[str], format: str = "headstack") -> dict[str, int]:
        """Writes a trace file; a name that ends in .gz or .zst is compressed.

        Returns the number of requests written, `written`, and for what the format cannot express the number that it applies to.
        """
        time, devices, ops, offsets, lengths = self._columns
        written, losses = _native.write_trace(os.fspath(path), format, time, devices, ops, offsets, lengths)
        return {"written": written, **dict(losses)}


def _values(column: Any) -> Any:
    """The values of a column of a frame as something NumPy understands."""
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def _columns(
    time_ns: Any, lbn: Any, sectors: Any, op: Any, offset: Any, length: Any, device: Any, sector_bytes: SupportsIndex
) -> tuple[Int64, Int64, Any, Int64, Int64]:
    time = int_column("time_ns", time_ns)
    rows = len(time)
    bytes_each = whole("sector_bytes", sector_bytes, 1, 1 << 20)
    in_bytes = offset is not None or length is not None
    if in_bytes and (lbn is not None or sectors is not None):
        raise InputError("lbn and sectors, or offset and bytes; give one pair")
    first, count = (offset, length) if in_bytes else (lbn, sectors)
    names = ("offset", "bytes") if in_bytes else ("lbn", "sectors")
    if first is None or count is None:
        raise InputError(f"{names[0] if first is None else names[1]}: missing")
    scale = 1 if in_bytes else bytes_each
    offsets, lengths = (_scaled(n, int_column(n, v, rows), scale) for n, v in zip(names, (first, count)))
    return time, int_column("device", device, rows), op_column(op, rows), offsets, lengths


def _scaled(name: str, column: Int64, scale: int) -> Int64:
    if scale == 1 or len(column) == 0:
        return column
    if int(column.max()) > (2**63 - 1) // scale or int(column.min()) < -(2**63 // scale):
        raise InputError(f"{name}: {int(column.max())} sectors of {scale} bytes do not fit in 64 bits")
    return column * scale


class Trace(Load):
    """A trace file of any format that Headstack reads (`headstack.trace_formats()`), compressed or not.

    `format` is recognized by the first bytes unless given. `time_scale` 0.5 replays twice as fast. `wrap` puts blocks that a
    volume lacks on it by wrapping around; `all_to` sends all devices to one volume; `skip_bad` is the most malformed records
    that are passed over.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        time_scale: SupportsFloat = 1.0,
        wrap: bool = False,
        all_to: SupportsIndex | None = None,
        skip_bad: SupportsIndex = 0,
    ) -> None:
        """Opens the trace; its records are read during each run."""
        self._name = path_name("path", path, "a path")
        self._format = format
        self._skip_bad = skipped = whole("skip_bad", skip_bad, 0, 2**63 - 1)
        scale = real("time_scale", time_scale, 1e-6, 1e6)
        volume = None if all_to is None else whole("all_to", all_to, 0, 2**32 - 1)
        self._again = (_trace, (type(self), self._name, format, scale, wrap, volume, skipped))
        self._origin_ns: int | None = None
        self._native = _native.Load.file(self._name, True, format, scale, bool(wrap), volume, skipped)

    def to_arrays(self) -> dict[str, Any]:
        """All records as columns: time_ns (from the first record's time, as in a run), device, op (codes of read, write, flush, trim),
        offset and bytes, response_ns and think_ns (-1 where unknown)."""
        columns, self._origin_ns, _, _ = _native.read_trace(self._name, self._format, self._skip_bad)
        order = ("time_ns", "device", "op", "offset", "bytes", "response_ns", "think_ns")
        return {name: columns[name] for name in order}

    @property
    def origin_ns(self) -> int:
        """The time of the first record in the trace's own clock, from which `time_ns` counts; of an MSR trace since the year 1601."""
        if self._origin_ns is None:
            self.to_arrays()
        assert self._origin_ns is not None
        return self._origin_ns

    def to_pandas(self) -> pandas.DataFrame:
        """All records as a pandas DataFrame; `op` is a categorical."""
        import pandas

        columns = self.to_arrays()
        columns["op"] = pandas.Categorical.from_codes(columns["op"].astype(np.int8), categories=list(KINDS))
        return pandas.DataFrame(columns, copy=False)

    def to_requests(self, **options: Any) -> Requests:
        """The records in memory, to change or to write in another format."""
        columns = self.to_arrays()
        # A record with an earlier time than the first one is issued at once, as in a run of the trace.
        columns["time_ns"] = np.maximum(columns["time_ns"], 0)
        names = ("time_ns", "op", "offset", "bytes", "device")
        return Requests(**{name: columns[name] for name in names}, name=self._name, **options)


def _requests(
    kind: type[Requests], columns: tuple[Any, ...], time_scale: float, wrap: bool, all_to: int | None, name: str
) -> Requests:
    """Requests that were pickled."""
    time, devices, ops, offsets, lengths = columns
    options: dict[str, Any] = {"time_scale": time_scale, "wrap": wrap, "all_to": all_to, "name": name}
    return kind(time, op=ops, offset=offsets, bytes=lengths, device=devices, **options)


def _trace(
    kind: type[Trace], path: str, format: str | None, time_scale: float, wrap: bool, all_to: int | None, skip_bad: int
) -> Trace:
    """A trace that was pickled."""
    return kind(path, format=format, time_scale=time_scale, wrap=wrap, all_to=all_to, skip_bad=skip_bad)
