"""A sweep on an executor of `concurrent.futures`: parts first, then the cells of lost parts one by one.

A part is lost when its worker dies. A cell that is run on its own and ends two workers, the second one with no other cell in it, is the
reason: it becomes a row with an error.
"""

from __future__ import annotations

import multiprocessing
import os
import uuid
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, as_completed, wait
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from . import _native
from ._errors import InputError
from ._sweep import Source

#: Exceptions of task engines, by name, that say that the worker of a task died; they need not be installed.
DEATHS = {"KilledWorker", "WorkerLost", "ManagerLost"}

#: The error of a cell that ends its worker.
LETHAL = "the process that runs this cell ends without a result, twice"


Report = Callable[[int, int], object]
PartSummary = tuple[int, int, int, int, list[tuple[str, str]], list[str]]

#: Parts for each worker, and for an executor that does not say how many workers it has. A part costs little where it has nothing to do.
PARTS_PER_WORKER, PARTS = 4, 256

#: The last plan of this worker, by its call.
_plans: dict[str, _native.Sweep] = {}


def planned(source: Source, call: str) -> _native.Sweep:
    """The plan of a sweep, made once in each worker for all parts of a call."""
    found = _plans.get(call)
    if found is None:
        found = source.plan()
        _plans.clear()
        _plans[call] = found
    return found


def workers(executor: Executor) -> int | None:
    """The number of workers of an executor; None if it does not say."""
    known = getattr(executor, "_max_workers", None)
    if isinstance(known, int):
        return known
    cores = getattr(getattr(executor, "_client", None), "ncores", None)
    if not callable(cores):
        return None
    return sum(cores().values()) or None


def default_parts(executor: Executor) -> int:
    """The number of parts for an executor."""
    known = workers(executor)
    return PARTS if known is None else PARTS_PER_WORKER * known


def run_part(source: Source, folder: str, number: int, of: int, call: str) -> PartSummary:
    """Runs a part of a sweep, in a worker. `call` is another text for each call, because some engines keep results by arguments.

    It uses one thread, because an executor has a worker for each core.
    """
    threads = int(os.environ.get("RAYON_NUM_THREADS") or 1)
    return planned(source, call).run(folder, number, of, threads, None)


def run_cell(source: Source, folder: str, index: int, of: int, call: str) -> None:
    """Runs a cell of a sweep of `of` parts, in a worker."""
    source.plan().run_cell(folder, index, of)


def start(source: Source) -> None:
    """Nothing, in a worker that has started and has read the sweep."""


def is_death(error: BaseException | None) -> bool:
    """Whether the error says that a worker died, and not what went wrong in it."""
    return isinstance(error, BrokenExecutor) or any(kind.__name__ in DEATHS for kind in type(error).__mro__)


def submitted(pool: Executor, function: Callable[..., Any], *arguments: object) -> Future[Any]:
    """The future of a call. Of a pool that is broken it has the exception, as those of its other calls have."""
    try:
        return pool.submit(function, *arguments)
    except BrokenExecutor as error:
        future: Future[Any] = Future()
        future.set_exception(error)
        return future


class Isolation:
    """Runs cells one by one, so that one that ends its worker is found."""

    def __init__(self, executor: Executor, source: Source, folder: str, of: int, ended: Callable[[], object]) -> None:
        """`of` is the number of parts; `ended` is called after each cell."""
        self._executor, self._source, self._folder, self._ended = executor, source, folder, ended
        self._of = of
        self._plan = source.plan()

    def run(self, cells: Iterable[int]) -> None:
        """Runs these cells. Raises what a worker raised, and InputError where no worker starts."""
        self._check_start()
        queue = deque(cells)
        while queue:
            for cell in self._batch(queue):
                self._alone(cell)

    def _pool(self, workers: int | None) -> AbstractContextManager[Executor]:
        """Where cells run. A process pool with a dead process is of no use any more, so there it is a new one with the same settings."""
        old = self._executor
        if not isinstance(old, ProcessPoolExecutor):
            return nullcontext(old)
        return ProcessPoolExecutor(
            workers or getattr(old, "_max_workers", None),
            mp_context=getattr(old, "_mp_context", None) or multiprocessing.get_context("spawn"),
            initializer=getattr(old, "_initializer", None),
            initargs=getattr(old, "_initargs", ()),
        )

    def _check_start(self) -> None:
        """Raises InputError if a new process of a process pool ends before it runs anything: then no cell is the reason."""
        if not isinstance(self._executor, ProcessPoolExecutor):
            return
        with self._pool(1) as pool:
            error = submitted(pool, start, self._source).exception()
        if is_death(error):
            reasons = "its initializer fails, or it cannot import the program's main module or the classes of the sweep's objects"
            raise InputError(f"executor: a new process ends before it runs anything ({reasons}; see its output)") from error
        if error is not None:
            raise error

    def _submit(self, pool: Executor, cell: int) -> Future[Any]:
        return submitted(pool, run_cell, self._source, self._folder, cell, self._of, uuid.uuid4().hex)

    def _batch(self, queue: deque[int]) -> list[int]:
        """Runs cells until the queue is empty or a worker died, and returns those that a worker's death ended."""
        suspects: list[int] = []
        with self._pool(None) as pool:
            # Of a process pool only as many as run at once, because all that it has are lost together.
            most = getattr(pool, "_max_workers", 1) if isinstance(pool, ProcessPoolExecutor) else len(queue)
            running: dict[Future[Any], int] = {}
            while running or (queue and not suspects):
                while queue and not suspects and len(running) < most:
                    cell = queue.popleft()
                    running[self._submit(pool, cell)] = cell
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    cell, error = running.pop(future), future.exception()
                    if is_death(error):
                        suspects.append(cell)
                    elif error is not None:
                        raise error
                    else:
                        self._ended()
        return suspects

    def _alone(self, cell: int) -> None:
        """Runs a cell while nothing else runs."""
        with self._pool(1) as pool:
            error = self._submit(pool, cell).exception()
        if is_death(error):
            self._plan.store_failure(self._folder, cell, self._of, LETHAL)
        elif error is not None:
            raise error
        self._ended()


def run_parts(
    executor: Executor, source: Source, folder: str, parts: int, cells: int, progress: Report | None
) -> tuple[int, int, int, int, list[tuple[str, str]], list[str], bool]:
    """Runs all parts, then the cells of those that were lost. The sums of the parts' summaries, and whether one was lost.

    Raises the first exception of a part or cell that is not the death of its worker, after the other parts.
    """
    call = uuid.uuid4().hex
    futures = [submitted(executor, run_part, source, folder, number, parts, call) for number in range(1, parts + 1)]
    done, reused, ran, unneeded = 0, 0, 0, 0
    failed: list[tuple[str, str]] = []
    damaged: list[str] = []
    raised: BaseException | None = None
    death: BaseException | None = None

    def report() -> None:
        if progress is not None:
            progress(done, cells)

    for future in as_completed(futures):
        error = future.exception()
        if error is None:
            summary = future.result()
            done, reused, ran, unneeded = (total + one for total, one in zip((done, reused, ran, unneeded), summary))
            failed += summary[4]
            damaged += [str(path) for path in summary[5]]
        elif is_death(error):
            death = error
        else:
            raised = raised or error
        report()
    if raised is not None:
        raise raised
    if death is None:
        return done, reused, ran, unneeded, failed, damaged, False
    if isinstance(death, BrokenExecutor) and not isinstance(executor, ProcessPoolExecutor):
        raise death

    def ended() -> None:
        nonlocal done
        done += 1
        report()

    # Where settings are compared until the answer is clear, the rows of these cells decide which run next.
    while left := source.plan().unfinished(folder):
        done = cells - len(left)
        Isolation(executor, source, folder, parts, ended).run(left)
    return done, reused, ran, unneeded, failed, damaged, True
