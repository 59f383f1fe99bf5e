"""Measures what orders, layers and loads written in Python cost, as a table in Markdown.

    python python/bench/callbacks.py [REQUESTS]

Each row is the best of three runs of REQUESTS (50,000 by default) random reads, in CPU time, which other programs disturb less. The
additional time is that over the row that does the same without Python.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Generator, Iterator

import numpy as np

import headstack as hs

DEPTH = 16
RIG = hs.Rig("exos-x16")


class Oldest(hs.Order):
    """FCFS."""

    def choose(self, queue: hs.Queue) -> int:
        return 0


class Nearest(hs.Order):
    """SPTF, by NumPy."""

    knows = "position"

    def choose(self, queue: hs.Queue) -> int:
        assert queue.positioning_ns is not None
        return int(np.argmin(queue.positioning_ns))


class Passing(hs.Layer):
    """Passes all requests on; the extension answers them."""


class Observing(hs.Layer):
    """Passes all requests on, and answers them itself."""

    def complete(self, calls: hs.LayerCalls, request: hs.LayerRequest) -> None:
        calls.answer(request)


def closed(requests: int) -> Callable[[hs.LoadContext], Generator[hs.Request | None, hs.Completion, None]]:
    """A source that keeps sixteen requests outstanding."""

    def source(context: hs.LoadContext) -> Generator[hs.Request | None, hs.Completion, None]:
        numbers = random.Random(context.seed)
        blocks = context.sectors // 8
        for _ in range(DEPTH):
            yield hs.Request(numbers.randrange(blocks) * 8, 8)
        for _ in range(requests - DEPTH):
            yield None
            yield hs.Request(numbers.randrange(blocks) * 8, 8)

    return source


def timed(requests: int) -> Callable[[hs.LoadContext], Iterator[hs.Request]]:
    """A source whose requests have times."""

    def source(context: hs.LoadContext) -> Iterator[hs.Request]:
        numbers = random.Random(context.seed)
        blocks = context.sectors // 8
        return (hs.Request(numbers.randrange(blocks) * 8, 8, time_ns=i * 20_000_000) for i in range(requests))

    return source


def cpu_s(rig: hs.Rig, load: hs.Load) -> float:
    """The shortest CPU time of a run, without that of building the rig."""
    found = []
    for _ in range(3):
        simulation = rig.simulation(load, seed=1, keep="summary")
        start = time.process_time()
        simulation.run()
        found.append(time.process_time() - start)
    return min(found)


def main(requests: int) -> None:
    """Prints the table."""
    fio = hs.Fio(rw="randread", bs="4k", ioengine="libaio", iodepth=DEPTH, size="1t", number_ios=requests)
    numbers = np.random.default_rng(1)
    columns = hs.Requests(np.arange(requests) * 20_000_000, numbers.integers(0, RIG.volumes[0]["sectors"] // 8, requests) * 8, 8)
    rows: list[tuple[str, hs.Rig, hs.Load, int]] = [
        ("nothing: a fio job, `sptf` in the drive", RIG.set("drive.order", "sptf"), fio, 0),
        ("nothing: a fio job, `fcfs` in the drive", RIG.set("drive.order", "fcfs"), fio, 1),
        ("an order that returns a constant", RIG.with_order(Oldest()), fio, 1),
        ("an order that reads the positioning times of all 16 requests", RIG.with_order(Nearest()), fio, 0),
        ("a layer with `submit`", RIG.set("drive.order", "fcfs").with_layer(Passing()), fio, 1),
        ("a layer with `submit` and `complete`", RIG.set("drive.order", "fcfs").with_layer(Observing()), fio, 1),
        ("a load that waits for each completion", RIG.set("drive.order", "fcfs"), hs.PythonLoad(closed(requests)), 1),
        ("nothing: requests with times, as arrays", RIG, columns, 7),
        ("a load that yields requests with times", RIG, hs.PythonLoad(timed(requests)), 7),
    ]
    print("| part written in Python | requests per CPU second | additional CPU time per request (µs) |\n|---|---|---|")
    times: list[float] = []
    for name, rig, load, base in rows:
        times.append(cpu_s(rig, load))
        more = "" if base == len(times) - 1 else f"{(times[-1] - times[base]) / requests * 1e6:.1f}"
        print(f"| {name} | {round(requests / times[-1], -3):,.0f} | {more} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
