"""Measures a sweep of 1,000 points: on one worker and on two, and what each point costs beyond its simulation.

    python python/bench/sweep_speed.py [POINTS]

The elapsed times are of one machine at one time, in turns, so that other programs disturb both alike; the CPU times say what they did not.
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
number_ios=33000
"""
TURNS = 3
#: How many times two workers have to be as fast as one, and how much more CPU time than the command's Python may take.
RATIO_LEAST, OVERHEAD_MOST = 1.8, 0.05

#: A way to run a sweep file into a folder with a number of workers.
Way = Callable[[Path, Path, int], None]


def definition(folder: Path, points: int) -> Path:
    """A sweep of this many points of about 50 ms."""
    (folder / "job.fio").write_text(JOB)
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


def measure(ways: dict[str, Way], file: Path, folder: Path) -> dict[str, Measured]:
    """Runs all ways in turns, so that other programs disturb them alike."""
    found = {way: Measured() for way in ways}
    for turn in range(TURNS):
        for way, run in ways.items():
            for workers in (1, 2):
                start, spent = time.perf_counter(), cpu_s()
                run(file, folder / f"{way}-{turn}-{workers}".replace(" ", "-"), workers)
                found[way].elapsed[workers].append(time.perf_counter() - start)
                found[way].cpu[workers].append(cpu_s() - spent)
    return found


def main(points: int) -> int:
    """Prints the times; 1 where two workers are less than 1.8 times as fast as one, or a way of Python takes 5 % more CPU time than the command."""
    ways: dict[str, Way] = {"processes": pool, "threads": threads}
    try:
        hs.command()
        ways["the command"] = command
    except hs.CommandError:
        print("the command headstack is not installed: its times and the overhead are left out")
    with tempfile.TemporaryDirectory() as name:
        found = measure(ways, definition(Path(name), points), Path(name))
    faults = []
    for way, measured in found.items():
        ratio = statistics.median(measured.ratios)
        elapsed, cpu = ({workers: min(times) for workers, times in kind.items()} for kind in (measured.elapsed, measured.cpu))
        print(
            f"{points} points, {way}: one worker {elapsed[1]:.1f} s (CPU {cpu[1]:.1f} s, {1000 * cpu[1] / points:.1f} ms a point), two"
            f" {elapsed[2]:.1f} s (CPU {cpu[2]:.1f} s); ratio {ratio:.2f} (each turn {', '.join(f'{one:.2f}' for one in measured.ratios)})"
        )
        if ratio < RATIO_LEAST:
            faults.append(f"{way}: two workers are {ratio:.2f} times as fast as one, not {RATIO_LEAST}")
        if "the command" in found:
            # CPU time of one worker, which other programs change least.
            overhead = cpu[1] / min(found["the command"].cpu[1]) - 1.0
            print(f"  {100 * overhead:+.1f} % CPU time against the command")
            if overhead > OVERHEAD_MOST:
                faults.append(f"{way}: {100 * overhead:.1f} % more CPU time than the command, not at most {100 * OVERHEAD_MOST:.0f} %")
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
