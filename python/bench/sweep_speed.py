"""Measures a sweep of 1,000 points: on one worker and on two, and what a point costs more from Python than by the command.

    python python/bench/sweep_speed.py [POINTS]

The elapsed times are of one machine at one time, in turns, so that other programs disturb both alike. The cost of a point is the CPU time of points
that simulate next to nothing, because that of the simulation itself varies more from run to run than this cost.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import headstack as hs

JOB = """[job]
rw=randread
bs=4k
size=100g
ioengine=libaio
iodepth=32
number_ios={requests}
"""
#: Requests of points of about 50 ms, and of points of half a millisecond.
LONG, SHORT = 33_000, 330
POINT_S = 0.050
TURNS = 3
#: How many times two workers have to be as fast as one, and how much more CPU time than the command's Python may take for a point of 50 ms.
RATIO_LEAST, OVERHEAD_MOST = 1.8, 0.05

#: A way to run a sweep file into a folder with a number of workers.
Way = Callable[[Path, Path, int], None]


def definition(folder: Path, points: int, requests: int) -> Path:
    """A sweep of this many points with this number of requests each."""
    (folder / "job.fio").write_text(JOB.format(requests=requests))
    file = folder / "sweep.toml"
    file.write_text(f'rigs = ["st2000dm006"]\nloads = ["job.fio"]\nseeds = {points // 4}\n[grid]\ndrive.queue_depth = [1, 4, 16, 32]\n')
    return file


def cpu_s() -> float:
    """CPU time of this process and of its children that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def pool(file: Path, folder: Path, workers: int) -> None:
    """The sweep on processes."""
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as executor:
        summary = hs.Sweep(file).run(folder, executor=executor, parts=32)
    assert summary.failed == () and summary.ran == summary.cells


def threads(file: Path, folder: Path, workers: int) -> None:
    """The sweep without an executor, in a process with this many cores: rayon has a thread for each that it may use."""
    program = f"import headstack as hs; s = hs.Sweep({str(file)!r}).run({str(folder)!r}); assert s.ran == s.cells"
    environment = {**os.environ, "RAYON_NUM_THREADS": str(workers)}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment)


def command(file: Path, folder: Path, workers: int) -> None:
    """The sweep by the command."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(workers)}
    arguments = [hs.command(), "sweep", str(file), "--out", str(folder)]
    subprocess.run(arguments, check=True, env=environment, capture_output=True)


@dataclass
class Measured:
    """Elapsed and CPU times of a way, by the number of workers, one for each turn."""

    elapsed: dict[int, list[float]] = field(default_factory=lambda: {1: [], 2: []})
    cpu: dict[int, list[float]] = field(default_factory=lambda: {1: [], 2: []})

    @property
    def ratios(self) -> list[float]:
        """How many times faster two workers were, in each turn."""
        return [one / two for one, two in zip(self.elapsed[1], self.elapsed[2])]


def measure(ways: dict[str, Way], points: int, requests: int, numbers: tuple[int, ...]) -> dict[str, Measured]:
    """Runs all ways in turns, with these numbers of workers, so that other programs disturb them alike."""
    found = {way: Measured() for way in ways}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = definition(folder, points, requests)
        for turn in range(TURNS):
            for way, run in ways.items():
                for workers in numbers:
                    start, spent = time.perf_counter(), cpu_s()
                    run(file, folder / f"{way}-{turn}-{workers}".replace(" ", "-"), workers)
                    found[way].elapsed[workers].append(time.perf_counter() - start)
                    found[way].cpu[workers].append(cpu_s() - spent)
    return found


def report_ratios(ways: dict[str, Way], points: int) -> list[str]:
    """Prints how much faster two workers are; returns what falls short."""
    faults = []
    for way, measured in measure(ways, points, LONG, (1, 2)).items():
        ratio = statistics.median(measured.ratios)
        elapsed, cpu = ({workers: min(times) for workers, times in kind.items()} for kind in (measured.elapsed, measured.cpu))
        print(
            f"{points} points, {way}: one worker {elapsed[1]:.1f} s (CPU {cpu[1]:.1f} s, {1000 * cpu[1] / points:.1f} ms a point), two"
            f" {elapsed[2]:.1f} s (CPU {cpu[2]:.1f} s); ratio {ratio:.2f} (each turn {', '.join(f'{one:.2f}' for one in measured.ratios)})"
        )
        if ratio < RATIO_LEAST:
            faults.append(f"{way}: two workers are {ratio:.2f} times as fast as one, not {RATIO_LEAST}")
    return faults


def report_overhead(ways: dict[str, Way], points: int) -> list[str]:
    """Prints what a point costs more from Python than by the command; returns what falls short."""
    faults = []
    found = measure(ways, points, SHORT, (1,))
    command_s = min(found.pop("the command").cpu[1])
    print(f"{points} short points, the command: {1000 * command_s / points:.2f} ms of CPU time a point")
    for way, measured in found.items():
        extra_s = (min(measured.cpu[1]) - command_s) / points
        share = extra_s / POINT_S
        print(f"{points} short points, {way}: {1000 * extra_s:.2f} ms more, {100 * share:.1f} % of a point of 50 ms")
        if share > OVERHEAD_MOST:
            faults.append(f"{way}: {100 * share:.1f} % more CPU time than the command, not at most {100 * OVERHEAD_MOST:.0f} %")
    return faults


def main(points: int) -> int:
    """Prints the times; 1 where two workers are less than 1.8 times as fast as one, or a way of Python takes 5 % more CPU time than the command."""
    ways: dict[str, Way] = {"processes": pool, "threads": threads}
    faults = []
    try:
        hs.command()
        ways["the command"] = command
        faults = report_overhead(ways, points)
    except hs.CommandError:
        print("the command headstack is not installed: its times and the overhead are left out")
    faults += report_ratios(ways, points)
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
