"""Progress bars, with tqdm where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ._errors import InputError

if TYPE_CHECKING:
    from ._simulation import Progress

__all__ = ["cells_shown", "runs_shown", "shown"]


def _bar(**options: Any) -> Any:
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install tqdm") from error
    return tqdm(**options)


def _function(progress: Any) -> Any:
    """The function of the argument `progress`; None for none and for False."""
    if progress is None or progress is False:
        return None
    if not callable(progress):
        raise InputError(f"progress: {type(progress).__name__} (a function, or True for a bar)")
    return progress


@contextmanager
def shown(
    progress: Callable[[Progress], bool | None] | bool | None,
) -> Iterator[Callable[[Progress], bool | None] | None]:
    """What is called with the progress of a run: the function, or a bar."""
    if progress is not True:
        yield _function(progress)
        return
    with _bar(total=1.0, bar_format="{l_bar}{bar}| {elapsed}<{remaining} {postfix}") as bar:

        def report(now: Progress) -> None:
            bar.set_postfix_str(f"{now.completed:,} requests, {now.now_s:,.1f} s simulated", refresh=False)
            bar.update(max((now.share or 0.0) - bar.n, 0.0))

        yield report


@contextmanager
def cells_shown(
    progress: Callable[[int, int], object] | bool | None,
) -> Iterator[Callable[[int, int], object] | None]:
    """What is called with the numbers of finished and of all cells: the function, or a bar."""
    if progress is not True:
        yield _function(progress)
        return
    with _bar(unit=" cells") as bar:

        def report(done: int, cells: int) -> None:
            bar.total = cells
            bar.update(done - bar.n)

        yield report


@contextmanager
def runs_shown(progress: Callable[[int], object] | bool | None) -> Iterator[Callable[[int], object] | None]:
    """What is called with the number of runs of a search: the function, or a bar. How many there will be is not known before."""
    if progress is not True:
        yield _function(progress)
        return
    with _bar(unit=" runs") as bar:

        def report(done: int) -> None:
            bar.update(done - bar.n)

        yield report
