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
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import headstack as hs

JOB = """[job]
rw=randread
bs=4k
size=100g
ioengine=libaio
iodepth=32
number_ios=20000
"""
TURNS = 3


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


def main(points: int) -> None:
    """Prints the times."""
    ways = {"processes": pool, "threads": threads}
    try:
        hs.command()
        ways["the command"] = command
    except hs.CommandError:
        print("the command headstack is not installed: left out")
    with tempfile.TemporaryDirectory() as name:
        file = definition(Path(name), points)
        for way, run in ways.items():
            elapsed: dict[int, list[float]] = {1: [], 2: []}
            cpu: dict[int, list[float]] = {1: [], 2: []}
            for turn in range(TURNS):
                for workers in (1, 2):
                    start, spent = time.perf_counter(), cpu_s()
                    run(file, Path(name) / f"{way}-{turn}-{workers}".replace(" ", "-"), workers)
                    elapsed[workers].append(time.perf_counter() - start)
                    cpu[workers].append(cpu_s() - spent)
            ratios = [one / two for one, two in zip(elapsed[1], elapsed[2])]
            print(
                f"{points} points, {way}: one worker {min(elapsed[1]):.1f} s (CPU {min(cpu[1]):.1f} s), two {min(elapsed[2]):.1f} s"
                f" (CPU {min(cpu[2]):.1f} s); ratio {statistics.median(ratios):.2f} (each turn {', '.join(f'{ratio:.2f}' for ratio in ratios)})",
                flush=True,
            )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
