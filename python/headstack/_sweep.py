"""Sweeps: many runs from one definition, as rows of Parquet files."""

from __future__ import annotations

import inspect
import json
import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, TypeVar

from . import _native
from ._errors import InputError
from ._keywords import names_nearest
from ._load import Load
from ._numbers import path_name, plain, whole
from ._numpy import np
from ._progress import cells_shown
from ._rig import Rig
from ._source import PythonLoad

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import numpy.typing as npt
    import pandas
    import polars
    import pyarrow

#: What a sweep takes as rigs and as loads: names, paths, objects, several of them, or objects with names.
Rigs: TypeAlias = "str | os.PathLike[str] | Rig | Sequence[str | os.PathLike[str] | Rig] | Mapping[str, Rig]"
Loads: TypeAlias = "str | os.PathLike[str] | Load | Sequence[str | os.PathLike[str] | Load] | Mapping[str, Load]"


@dataclass(frozen=True)
class SweepCell:
    """One run of a sweep."""

    key: str
    """The hash of all that determines the run's results."""
    label: str
    rig: str
    load: str
    seed: int


@dataclass(frozen=True)
class SweepSummary:
    """What a run of a sweep has done."""

    cells: int
    reused: int
    """Cells that had a row before."""
    ran: int
    unneeded: int
    """Cells that need no run, because the difference of their settings is clear (`until_clear`)."""
    failed: tuple[tuple[str, str], ...]
    """The label and the error of each cell that failed, now or before."""
    damaged: tuple[str, ...] = ()
    """Files of rows that were damaged: they were renamed to `….damaged`, and their cells run again."""


class SweepTable(Mapping[str, "npt.NDArray[Any]"]):
    """The rows of a sweep as NumPy columns by name, in the order of the plan: `table["p99_ms"]`.

    Text is in columns of objects, `None` where there is none; `seed` is unsigned. Numbers are `float64`, NaN where a cell failed or has no
    such value; keys whose values are all whole numbers are `int64` where every cell sets them. `histogram_ns` and `histogram_requests` have
    an array for each row. Columns and units are those of the sweep's files. `len(table)` is the number of columns, and `table.rows` that of
    the rows.
    """

    def __init__(self, columns: dict[str, npt.NDArray[Any]]) -> None:
        self._columns = columns

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self._columns["key"]) if self._columns else 0

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas DataFrame."""
        import pandas

        return pandas.DataFrame(self._columns)

    def to_arrow(self) -> pyarrow.Table:
        """The table as a pyarrow Table."""
        import pyarrow

        return pyarrow.table({name: pyarrow.array(list(values) if values.dtype == object else values) for name, values in self._columns.items()})

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars DataFrame."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def _repr_html_(self) -> str:
        from ._html import ends, grid, page

        rows, left = ends(self.rows)
        cells = ([plain(values[row]) for values in self._columns.values()] for row in rows)
        title = f"{self.rows:,} rows" + (f", of which {left:,} are left out" if left else "")
        return page(title, grid(list(self._columns), cells))

    def __repr__(self) -> str:
        return f"<SweepTable of {self.rows} rows and {len(self)} columns>"


def _array(values: Any) -> npt.NDArray[Any]:
    """A column of the extension as an array; lists have text or arrays."""
    if not isinstance(values, list):
        array: npt.NDArray[Any] = values
        return array
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


Made = TypeVar("Made", Rig, Load)


def _named(argument: str, values: Any, kind: type[Made]) -> tuple[list[str], tuple[tuple[str, Made], ...]]:
    """The names of rigs or loads, and the objects among them by name. Objects of equal names get a number; a dict names them."""
    wanted = f"a name, a path, a headstack.{kind.__name__}, or several of them"
    if isinstance(values, (str, os.PathLike, kind)):
        values = [values]
    if isinstance(values, Mapping):
        pairs = [(_text(argument, name, "text, the name of an object"), value) for name, value in values.items()]
        if any(not isinstance(value, kind) for _, value in pairs):
            raise InputError(f"{argument}: a dict of names and headstack.{kind.__name__} objects")
        return [name for name, _ in pairs], tuple(pairs)
    if not isinstance(values, Iterable):
        raise InputError(f"{argument}: {type(values).__name__} ({wanted})")
    names: list[str] = []
    objects: list[tuple[str, Made]] = []
    for value in values:
        name = value.name if isinstance(value, kind) else path_name(argument, value, wanted)
        if isinstance(value, kind):
            if (name, value) in objects:
                continue
            count = 1
            while name in names:
                count += 1
                name = f"{value.name} #{count}"
            objects.append((name, value))
        names.append(name)
    return names, tuple(objects)


def _text(argument: str, value: object, wanted: str) -> str:
    if not isinstance(value, str):
        raise InputError(f"{argument}: {type(value).__name__} ({wanted})")
    return value


def _settings(argument: str, values: Any) -> Mapping[str, Any]:
    """A dict whose names are keys of rigs."""
    if not isinstance(values, Mapping):
        raise InputError(f"{argument}: {type(values).__name__} (a dict of keys of the rigs)")
    for key in values:
        _text(argument, key, "text, a key such as drive.queue_depth")
    return values


def _values(key: str, values: Any) -> list[object]:
    """The values of a key of the grid."""
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InputError(f"grid: {key}: {type(values).__name__} (a list of values, such as [1, 8, 32])")
    return [plain(value) for value in values]


def _content(parts: tuple[Any, Any]) -> bytes:
    """All that decides about the orders and layers in Python of a rig: their values and their code."""
    orders, layers = parts
    objects = [entry[0] for entry in (*orders, *layers)]
    if not objects:
        return b""
    try:
        state = pickle.dumps([(entry[0], *entry[1:]) for entry in (*orders, *layers)])
    except Exception as error:
        raise InputError(f"rigs: an order or layer cannot be pickled, which its workers need: {error}") from error
    code = []
    for kind in (parent for one in objects for parent in type(one).__mro__[:-1]):
        try:
            code.append(inspect.getsource(kind))
        except (OSError, TypeError):
            code.append(f"{kind.__module__}.{kind.__qualname__}")
    return state + "\0".join(code).encode()


@dataclass(frozen=True)
class Source:
    """A sweep's definition, from which each worker makes the plan."""

    text: str
    origin: str
    is_json: bool
    rigs: tuple[tuple[str, Rig], ...] = ()
    loads: tuple[tuple[str, Load], ...] = ()

    def plan(self) -> _native.Sweep:
        """The plan. Raises InputError if the definition is invalid."""
        if not self.is_json:
            return _native.Sweep.from_toml(self.text, self.origin)
        rigs = []
        for name, rig in self.rigs:
            orders, layers = rig._python_parts()
            rigs.append((name, rig._native, orders, layers, list(_content((orders, layers)))))
        loads = [(name, load._native) for name, load in self.loads]
        return _native.Sweep.from_json(self.text, self.origin, rigs, loads)


class Sweep:
    """Every rig with every load, setting and seed, as for the command `headstack sweep`.

    `Sweep("sweep.toml")` has the definition in a file. The keywords are the keys of that file: `Sweep(rigs="exos-x16",
    loads=["mix.fio"], grid={"drive.queue_depth": [1, 8, 32]}, seeds=4)` runs every combination of the grid; `settings` is a list of
    single ones. Rigs and loads may also be objects: `Sweep(rigs=[rig, rig.with_order(Own())], loads=load)`; a dict gives them names. A cell
    then runs with copies of the rig's orders and layers, and workers import their classes. With `until_clear="p99_ms"`, or another column with figures, settings whose difference from the first is clear get no
    more seeds; with `by_job` each row has the figures of each job. Paths in keywords count from the working directory. Raises `InputError` if the definition cannot be read or is invalid.
    """

    @names_nearest
    def __init__(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        rigs: Rigs = (),
        loads: Loads = (),
        grid: Mapping[str, Sequence[object] | npt.NDArray[Any]] | None = None,
        settings: Sequence[Mapping[str, object]] = (),
        seeds: SupportsIndex = 1,
        first_seed: SupportsIndex = 0,
        histograms: bool = False,
        by_job: bool = False,
        until_clear: str = "",
    ) -> None:
        rig_names, rig_objects = _named("rigs", rigs, Rig)
        load_names, load_objects = _named("loads", loads, Load)
        others = (seeds, first_seed, histograms, by_job, until_clear) != (1, 0, False, False, "")
        keywords = bool(rig_names) or bool(load_names) or grid is not None or bool(settings) or others
        if (file is not None) == keywords:
            raise InputError("Sweep: either a file, or rigs and loads as keywords")
        if file is not None:
            self._source = self._of_file(Path(path_name("file", file, "the path of a sweep file")))
            self._native = self._source.plan()
            return
        for _, load in load_objects:
            if isinstance(load, PythonLoad):
                raise InputError(f"loads: {load.name} is written in Python, which only Rig.run and Simulation run; write it as a Requests load")
        if isinstance(settings, (str, Mapping)) or not isinstance(settings, Iterable):
            raise InputError(f"settings: {type(settings).__name__} (a list of dicts)")
        document = {
            "rigs": rig_names,
            "loads": load_names,
            "seeds": whole("seeds", seeds, 0, 2**63 - 1),
            "first_seed": whole("first_seed", first_seed, 0, 2**63 - 1),
            "histograms": bool(histograms),
            "by_job": bool(by_job),
            "until_clear": _text("until_clear", until_clear, "text, the name of a column with figures"),
            "grid": {key: _values(key, values) for key, values in _settings("grid", grid or {}).items()},
            "list": [{key: plain(value) for key, value in _settings("settings", one).items()} for one in settings],
        }
        try:
            text = json.dumps(document)
        except TypeError as error:
            raise InputError(f"Sweep: {error}; values are text, numbers and booleans") from error
        self._source = Source(text, str(Path.cwd() / "keywords"), True, rig_objects, load_objects)
        self._native = self._source.plan()

    @staticmethod
    def _of_file(path: Path) -> Source:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: {error}") from error
        return Source(text, str(path), False)

    def plan(self) -> list[SweepCell]:
        """The runs, in the order of the definition."""
        return [SweepCell(*cell) for cell in self._native.cells()]

    def __len__(self) -> int:
        """Number of runs."""
        return len(self._native)

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (self._source,)

    def _repr_html_(self) -> str:
        from ._html import page, table

        return page(f"Sweep of {len(self):,} runs", table("Definition", _facts(self._source)))

    def __repr__(self) -> str:
        return f"<Sweep of {len(self):,} runs>"

    def results(self, folder: str | os.PathLike[str]) -> SweepTable:
        """All rows that the folder has of this sweep, as one table. Cells that were not run yet have none."""
        return SweepTable({name: _array(values) for name, values in self._native.rows(_local(folder))})

    @names_nearest
    def run(
        self,
        folder: str | os.PathLike[str],
        *,
        executor: Executor | None = None,
        parts: SupportsIndex | None = None,
        progress: Callable[[int, int], object] | bool | None = None,
    ) -> SweepSummary:
        """Runs the cells that have no row in the folder yet.

        Without an executor they run on all cores of this machine, without Python's global lock, and the folder has the same bytes as that
        of the command. `progress` is then called about every 50 ms with the numbers of finished and of all cells; an exception that it
        raises, or Ctrl-C, ends the run. `True` shows a bar, if tqdm is installed.

        With an executor of `concurrent.futures`, or one with its interface (a process pool, `dask.distributed.Client.get_executor()`,
        MPI), its workers run `parts` parts of the sweep, by default four for each worker, or 256 where the executor
        does not say how many it has. Each part uses one thread, or as many as the variable `RAYON_NUM_THREADS` says in the worker. They read the sweep's files and
        write the rows into the folder themselves, so both must be visible to them under the same paths. `progress` is called after
        each part.

        When a worker dies, the cells of its part are run again one by one, and a cell that ends its worker twice becomes a row with an
        error. A process pool is broken by the death of a process; new pools with its settings then run the rest. When a part raises an
        exception, the other parts still run, and then `run` raises it.

        The rows of finished cells are kept in any case, and the same call continues the sweep.
        """
        target = _local(folder)
        with cells_shown(progress) as report:
            if executor is None:
                return _summary(self._native.run(target, 1, 1, 0, report))
            return self._run_parts(executor, str(Path(target).resolve()), parts, report)

    def _run_parts(
        self, executor: Executor, target: str, parts: SupportsIndex | None, report: Callable[[int, int], object] | None
    ) -> SweepSummary:
        # Imported here, because it takes longer to import than the rest of the package.
        from ._executor import default_parts, run_parts

        count = len(self._native)
        source = replace(self._source, origin=str(Path(self._source.origin).resolve()))
        number = default_parts(executor) if parts is None else whole("parts", parts, 1, 2**31)
        number = min(number, count)
        Path(target).mkdir(parents=True, exist_ok=True)
        before = self._native.finished(target)
        *summary, is_lost = run_parts(executor, source, target, number, count, report)
        if not is_lost:
            return _summary(tuple(summary))
        rows = self._native.finished(target)
        return SweepSummary(count, before, rows - before, count - rows, tuple(self._native.failed(target)), ())


def _summary(found: Any) -> SweepSummary:
    cells, reused, ran, unneeded, failed, damaged = found
    return SweepSummary(cells, reused, ran, unneeded, tuple(failed), tuple(str(path) for path in damaged))


def _made_again(source: Source) -> Sweep:
    """A sweep that was pickled."""
    sweep = Sweep.__new__(Sweep)
    sweep._source, sweep._native = source, source.plan()
    return sweep


def _local(folder: str | os.PathLike[str]) -> str:
    """The folder as text. Raises InputError for a URL, which would become a folder of that name."""
    name = path_name("folder", folder, "a path")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", name):
        raise InputError(f"folder: {name} is a URL (a folder of the file system; copy its files afterwards)")
    return name


def _facts(source: Source) -> list[tuple[str, str]]:
    """The definition as names and values."""
    if not source.is_json:
        return [("file", source.origin)]
    document = json.loads(source.text)
    facts = [("rigs", ", ".join(document["rigs"])), ("loads", ", ".join(document["loads"])), ("seeds", str(document["seeds"]))]
    facts += [(key, ", ".join(map(str, values))) for key, values in document["grid"].items()]
    return facts + ([("settings", str(len(document["list"])))] if document["list"] else [])
