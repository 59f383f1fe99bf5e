"""Sweeps: many runs from one definition, as rows of Parquet files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _native
from ._keywords import names_nearest
from ._numpy import np

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import numpy.typing as npt
    import pandas

#: The columns with text. Those of the keys that are set have text, too.
TEXTS = ("key", "rig", "load", "error")
#: The columns with an array for each row, of a sweep with histograms.
LISTS = ("histogram_ns", "histogram_requests")


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


class SweepTable(Mapping[str, "npt.NDArray[Any]"]):
    """The rows of a sweep as NumPy columns by name, in the order of the plan: `table["p99_ms"]`.

    Text is in columns of objects, `None` where there is none; `seed` is unsigned; all other columns are `float64`, NaN where a cell
    failed or has no such figure; `histogram_ns` and `histogram_requests` have an array for each row. Columns and units are those of the sweep's files. `len(table)` is the number of columns, and
    `table.rows` that of the rows.
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

    def __repr__(self) -> str:
        return f"<SweepTable of {self.rows} rows and {len(self)} columns>"


def _words(names: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """One name or several as text."""
    if isinstance(names, (str, os.PathLike)):
        names = [names]
    return [os.fspath(name) for name in names]


def _plain(value: object) -> object:
    """A number of NumPy as one of Python, for JSON."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True)
class Source:
    """A sweep's definition, from which each worker makes the plan."""

    text: str
    origin: str
    is_json: bool

    def plan(self) -> _native.Sweep:
        """The plan. Raises InputError if the definition is invalid."""
        make = _native.Sweep.from_json if self.is_json else _native.Sweep.from_toml
        return make(self.text, self.origin)


class Sweep:
    """Every rig with every load, setting and seed, as for the command `headstack sweep`.

    `Sweep("sweep.toml")` has the definition in a file. The keywords are the keys of that file: `Sweep(rigs="exos-x16",
    loads=["mix.fio"], grid={"drive.queue_depth": [1, 8, 32]}, seeds=4)` runs every combination of the grid; `settings` is a list of
    single ones. With `until_clear="p99_ms"`, or another column with figures, settings whose difference from the first is clear get no
    more seeds. Paths in keywords count from the working directory. Raises `InputError` if the definition cannot be read or is invalid.
    """

    @names_nearest
    def __init__(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        rigs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        loads: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        grid: Mapping[str, Sequence[object] | npt.NDArray[Any]] | None = None,
        settings: Sequence[Mapping[str, object]] = (),
        seeds: int = 1,
        first_seed: int = 0,
        histograms: bool = False,
        until_clear: str = "",
    ) -> None:
        keywords = bool(rigs) or bool(loads) or bool(grid) or bool(settings) or (seeds, first_seed, histograms, until_clear) != (1, 0, False, "")
        if (file is not None) == keywords:
            raise _native.InputError("Sweep: either a file, or rigs and loads as keywords")
        if file is not None:
            self._source = self._of_file(Path(file))
        else:
            document = {
                "rigs": _words(rigs),
                "loads": _words(loads),
                "seeds": seeds,
                "first_seed": first_seed,
                "histograms": histograms,
                "until_clear": until_clear,
                "grid": {key: [_plain(value) for value in values] for key, values in (grid or {}).items()},
                "list": [{key: _plain(value) for key, value in one.items()} for one in settings],
            }
            try:
                text = json.dumps(document)
            except TypeError as error:
                raise _native.InputError(f"Sweep: {error}; values are text, numbers and booleans") from error
            self._source = Source(text, str(Path.cwd() / "keywords"), True)
        self._native = self._source.plan()

    @staticmethod
    def _of_file(path: Path) -> Source:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _native.InputError(f"{path}: {error}") from error
        return Source(text, str(path), False)

    def plan(self) -> list[SweepCell]:
        """The runs, in the order of the definition."""
        return [SweepCell(*cell) for cell in self._native.cells()]

    def results(self, folder: str | os.PathLike[str]) -> SweepTable:
        """All rows that the folder has of this sweep, as one table. Cells that were not run yet have none."""
        texts = {*TEXTS, *self._native.setting_keys()}
        columns: dict[str, npt.NDArray[Any]] = {}
        for name, values in json.loads(self._native.rows(os.fspath(folder))).items():
            if name in LISTS:
                lists = columns[name] = np.empty(len(values), dtype=object)
                lists[:] = [np.array(value, dtype=np.int64) for value in values]
                continue
            kind = object if name in texts else np.uint64 if name == "seed" else np.float64
            columns[name] = np.array(values, dtype=kind)
        return SweepTable(columns)

    @names_nearest
    def run(
        self,
        folder: str | os.PathLike[str],
        *,
        executor: Executor | None = None,
        parts: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> SweepSummary:
        """Runs the cells that have no row in the folder yet.

        Without an executor they run on all cores of this machine, without Python's global lock, and the folder has the same bytes as that
        of the command. `progress` is then called about every 50 ms with the numbers of finished and of all cells; an exception that it
        raises, or Ctrl-C, ends the run.

        With an executor of `concurrent.futures`, or one with its interface (a process pool, `dask.distributed.Client.get_executor()`,
        MPI), its workers run `parts` parts of the sweep, by default four for each CPU of this machine, each on one thread, or on as many
        as the variable `RAYON_NUM_THREADS` says in the worker. They read the sweep's files and
        write the rows into the folder themselves, so both must be visible to them under the same paths. `progress` is called after
        each part.

        When a worker dies, the cells of its part are run again one by one, and a cell that ends its worker twice becomes a row with an
        error. A process pool is broken by the death of a process; new pools with its settings then run the rest. When a part raises an
        exception, the other parts still run, and then `run` raises it.

        The rows of finished cells are kept in any case, and the same call continues the sweep.
        """
        if executor is None:
            cells, reused, ran, unneeded, failed = self._native.run(os.fspath(folder), 1, 1, 0, progress)
            return SweepSummary(cells, reused, ran, unneeded, tuple(failed))
        # Imported here, because it takes longer to import than the rest of the package.
        from ._executor import run_parts

        count = len(self._native.cells())
        target = str(Path(folder).resolve())
        origin = str(Path(self._source.origin).resolve())
        source = Source(self._source.text, origin, self._source.is_json)
        Path(target).mkdir(parents=True, exist_ok=True)
        before = self._native.finished(target)
        number = min(parts or 4 * (os.cpu_count() or 1), count)
        cells, reused, ran, unneeded, failed, is_lost = run_parts(executor, source, target, number, count, progress)
        if is_lost:
            return self._summary(target, before)
        return SweepSummary(cells, reused, ran, unneeded, tuple(failed))

    def _summary(self, folder: str, reused: int) -> SweepSummary:
        """What a complete run has done after which the folder has these rows, and before which it had this number."""
        cells, table = self._native.cells(), self.results(folder)
        labels = {cell[0]: cell[1] for cell in cells}
        errors = zip(table["key"], table["error"], strict=True) if table.rows else iter(())
        failed = tuple((labels[key], error) for key, error in errors if error is not None)
        return SweepSummary(len(cells), reused, table.rows - reused, len(cells) - table.rows, failed)
