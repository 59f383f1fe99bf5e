"""Measures the Python package: import, results into a DataFrame, overhead of short runs.

    python python/bench/measure.py [REQUESTS]

REQUESTS (10 million by default) is the number of rows of the DataFrame.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import headstack as hs


def best_s(call: Callable[[], object], times: int) -> float:
    """Shortest time of a call."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def resident_bytes() -> int:
    """Memory of the process that is resident now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def imports() -> None:
    """The time of `import headstack` in a new interpreter, and that of NumPy; CPU time is what other programs disturb less."""
    for clock, name in (("perf_counter", "elapsed"), ("process_time", "CPU")):
        program = "from time import {0}; t = {0}(); import {1}; print({0}() - t)"
        for module in ("numpy", "headstack"):
            arguments = [sys.executable, "-c", program.format(clock, module)]
            times = [float(subprocess.run(arguments, check=True, capture_output=True).stdout) for _ in range(10)]
            print(f"import {module}: {name} time, median {statistics.median(times):.3f} s, best {min(times):.3f} s")


def frames(requests: int) -> None:
    """A run that keeps its requests, and their frame."""
    load = hs.Fio(rw="randread", bs="4k", ioengine="libaio", iodepth=32, io_size=f"{4 * requests}k", size="1t")
    rig = hs.Rig("exos-x16")
    rig.run(hs.Fio(rw="read", bs="4k", size="1m")).requests.to_pandas()
    start = time.perf_counter()
    rig.run(load, seed=1, keep="summary")
    bare_s = time.perf_counter() - start
    before, start = resident_bytes(), time.perf_counter()
    run = rig.run(load, seed=1)
    kept_s = time.perf_counter() - start
    table = run.requests
    kept = resident_bytes() - before
    start = time.perf_counter()
    frame = table.to_pandas()
    frame_s = time.perf_counter() - start
    grown = resident_bytes() - before
    print(f"{len(frame):,} requests: run {bare_s:.1f} s, with rows {kept_s:.1f} s")
    print(f"rows: {kept / len(frame):.1f} bytes a request; with the DataFrame {grown / len(frame):.1f}")
    print(f"DataFrame in {frame_s:.3f} s: {len(frame) / frame_s / 1e6:.1f} million requests a second")
    print(f"Arrow table in {best_s(table.to_arrow, 3):.3f} s")


def overhead() -> None:
    """Calls around a run of some 50 ms: a rig with a key set, a simulation, its figures."""
    load = hs.Fio(rw="randread", bs="4k", ioengine="libaio", iodepth=32, size="100g", number_ios=20000)
    empty = hs.Requests([0], [0], 8)
    rig = hs.Rig("exos-x16")
    whole = best_s(lambda: rig.set("drive.queue_depth", 16).run(load, keep="summary").figures(), 10)
    one = best_s(lambda: rig.run(empty, keep="summary"), 10)
    setting = best_s(lambda: rig.set("drive.queue_depth", 16), 10)
    simulation = rig.simulation(load, keep="summary")
    start = time.perf_counter()
    simulation.run()
    inside = time.perf_counter() - start
    print(f"point of 20,000 requests: {whole * 1e3:.1f} ms, of which the run {inside * 1e3:.1f} ms")
    print(f"rig.set {setting * 1e3:.2f} ms; a run of one request, in which the drive is built, {one * 1e3:.2f} ms")
    step = rig.simulation(load, keep="summary")
    print(f"a call that goes to the simulation's thread and back: {best_s(lambda: step.step(1), 1000) * 1e6:.0f} µs")


if __name__ == "__main__":
    imports()
    overhead()
    frames(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000)
