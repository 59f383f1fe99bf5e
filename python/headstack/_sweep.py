"""Sweeps: many runs from one definition, as rows of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from pathlib import Path

from . import _native


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
    failed: tuple[tuple[str, str], ...]
    """The label and the error of each cell that failed, now or before."""


def _add(first: SweepSummary, second: SweepSummary) -> SweepSummary:
    return SweepSummary(
        first.cells + second.cells,
        first.reused + second.reused,
        first.ran + second.ran,
        first.failed + second.failed,
    )


def _run_part(file: str, folder: str, number: int, of: int) -> SweepSummary:
    """Runs a part of a sweep, in a worker of an executor."""
    return Sweep(file)._run_part(folder, number, of, None)


class Sweep:
    """Every rig with every load, setting and seed of a sweep file, as for the command `headstack sweep`.

    Raises `InputError` if the file cannot be read or is invalid.
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        path = Path(file)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _native.InputError(f"{path}: {error}") from error
        self._file = path
        self._native = _native.Sweep.from_toml(text, str(path))

    def plan(self) -> list[SweepCell]:
        """The runs, in the order of the file."""
        return [SweepCell(*cell) for cell in self._native.cells()]

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
        MPI), its workers run `parts` parts of the sweep, by default four for each CPU of this machine. They read the sweep's files and
        write the rows into the folder themselves, so both must be visible to them under the same paths. `progress` is called after
        each part. When a part raises, or its worker dies, the other parts still run, and then `run` raises that exception.

        The rows of finished cells are kept in any case, and the same call continues the sweep.
        """
        if executor is None:
            return self._run_part(os.fspath(folder), 1, 1, progress)
        cells = len(self._native.cells())
        count = min(parts or 4 * (os.cpu_count() or 1), cells)
        file, target = str(self._file.resolve()), str(Path(folder).resolve())
        futures = [executor.submit(_run_part, file, target, number, count) for number in range(1, count + 1)]
        return self._gathered(futures, cells, progress)

    def _gathered(
        self,
        futures: list[Future[SweepSummary]],
        cells: int,
        progress: Callable[[int, int], object] | None,
    ) -> SweepSummary:
        """The sum of the parts' summaries, once all have ended."""
        total, first_error = SweepSummary(0, 0, 0, ()), None
        for future in as_completed(futures):
            try:
                total = _add(total, future.result())
            except Exception as error:  # noqa: BLE001: whatever a part raises, the others go on
                first_error = first_error or error
            if progress is not None:
                progress(total.cells, cells)
        if first_error is not None:
            raise first_error
        return total

    def _run_part(
        self, folder: str, number: int, of: int, progress: Callable[[int, int], object] | None
    ) -> SweepSummary:
        cells, reused, ran, failed = self._native.run(folder, number, of, progress)
        return SweepSummary(cells, reused, ran, tuple(failed))
