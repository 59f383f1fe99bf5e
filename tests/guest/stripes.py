#!/usr/bin/env python3
"""Loads, simulation and verdict for `tests/guest/md.sh`.

    stripes.py prepare FOLDER --short|--full       writes fio's jobs and logs, and the list of arrays, into FOLDER/files
    stripes.py judge FOLDER --short|--full --headstack PROGRAM    reads FOLDER/console

A load replays a log of random requests, aligned to their size, at a fixed depth. Each pass has a log of its own and runs it on every
array, so that the chunks of one pass have the same requests, and `headstack sim` is given the same log. A pass covers all arrays
before the next begins: what else the machine does meets all chunks alike.

The verdict compares the mean response with the advised chunk to that with the best measured one. The excess is the ratio of their
means over the passes, less 1. Its noise is twice the standard error of the ratio from pass to pass. The advice fails where the
excess exceeds 5 % by more than the noise, and where it exceeds 5 % in a run whose noise is above 5 %, which cannot tell.
"""

import argparse
import dataclasses
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys

# The striping study's disk: P·X is 79 KiB, so that chunks below and above it differ under requests of 512 KiB.
DRIVE = "ultrastar-dfhc-2gb"
# Members of the arrays: both have four disks' worth of data.
MEMBERS = {0: 4, 5: 5}
SECTOR = 512
KIB = 1024
# Share by which the advised chunk may be slower than the best one.
TOLERANCE = 0.05
# What of each disk the loads use: 2.25 GB less md's superblock and a part of a stripe.
USED_KIB_PER_DISK = 2_200_000


@dataclasses.dataclass(frozen=True)
class Load:
    """Requests of one size at a fixed depth."""

    name: str
    size_kib: int
    depth: int
    kind: str
    requests: int

    def __str__(self) -> str:
        at_once = "1 at a time" if self.depth == 1 else f"{self.depth} at once"
        return f"random {self.kind}s of {self.size_kib} KiB, {at_once}"


@dataclasses.dataclass(frozen=True)
class Form:
    """How much is measured."""

    passes: int
    chunks: tuple[int, ...]
    loads: tuple[Load, ...]


READS = (Load("alone", 512, 1, "read", 50), Load("crowd", 512, 8, "read", 100))
WRITES = (Load("writes", 512, 1, "write", 40),)
SHORT = Form(3, (16, 32, 64, 128, 256, 512), READS + WRITES)
MORE = (Load("quarter", 256, 4, "read", 240), Load("large", 2048, 2, "read", 60), Load("small-writes", 64, 1, "write", 120))
FULL = Form(6, (4, 8, 16, 32, 64, 128, 256, 512, 1024), READS + WRITES + MORE)
# Chunks of the arrays over disks that take no time.
NULL_CHUNKS = (16, 128, 512)


class Failure(Exception):
    """What went wrong, in one line."""


# Loads


def log_name(load: Load, number: int) -> str:
    return f"{load.name}.{number}.log"


def log(load: Load, number: int) -> str:
    """fio's log of the requests of a pass. fio ends a replay without what is then in flight: those are logged in addition."""
    chance = random.Random(f"{load} {number}")
    places = 4 * USED_KIB_PER_DISK // load.size_kib
    size = load.size_kib * KIB
    logged = load.requests + load.depth - 1
    requests = [f"0 /dev/md0 {load.kind} {chance.randrange(places) * size} {size}" for _ in range(logged)]
    return "\n".join(["fio version 3 iolog", "0 /dev/md0 add", "0 /dev/md0 open", *requests, "0 /dev/md0 close", ""])


def job(loads: tuple[Load, ...], number: int, folder: str) -> str:
    """fio's job that runs the loads one after the other."""
    lines = ["[global]", "filename=/dev/md0", "ioengine=libaio", "direct=1", "replay_no_stall=1"]
    for load in loads:
        lines += [f"[{load.name}]", f"iodepth={load.depth}", f"read_iolog={folder}/{log_name(load, number)}", "stonewall"]
    return "\n".join([*lines, ""])


def prepare(folder: pathlib.Path, form: Form) -> None:
    files = folder / "files"
    files.mkdir()
    (folder / "drive").write_text(DRIVE)
    cells = []
    for number in range(form.passes):
        for load in form.loads:
            (files / log_name(load, number)).write_text(log(load, number))
        (files / f"{number}.fio").write_text(job(form.loads, number, "/files"))
        if number == 0:
            cells += [f"0 null {level} {chunk} 0.fio" for level in MEMBERS for chunk in NULL_CHUNKS]
        cells += [f"{number} disk {level} {chunk} {number}.fio" for chunk in form.chunks for level in MEMBERS]
    (files / "cells").write_text("\n".join([*cells, ""]))


# Results


def measured(console: str, form: Form) -> dict[tuple, list[float]]:
    """Mean responses in ms by kind of disks, level, chunk and load, one a pass."""
    loads = {load.name: load for load in form.loads}
    found: dict[tuple, list[float]] = {}
    for line in console.splitlines():
        if not (cell := re.fullmatch(r"guest: cell (\d+) (\w+) (\d) (\d+) (.*)", line)):
            continue
        name, error, *figures = cell[5].split(";")
        read_kib, read_us, written_kib, written_us = map(float, figures)
        load = loads[name]
        kib, us = (read_kib, read_us) if load.kind == "read" else (written_kib, written_us)
        if error != "0" or kib != load.requests * load.size_kib:
            raise Failure(f"fio did {kib:.0f} KiB of {load.requests * load.size_kib}, error {error}: {line}")
        found.setdefault((cell[2], int(cell[3]), int(cell[4]), name), []).append(us / 1000)
    return found


def said_by(*command: str) -> str:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def simulated(headstack: str, folder: pathlib.Path, level: int, chunk: int, load: Load, number: int) -> float:
    """Mean response in ms of the same requests on the same array in `headstack sim`. md splits at each chunk."""
    rig, jobs = folder / "rig.toml", folder / "sim.fio"
    organisation = "striping" if level == 0 else "raid-5"
    rig.write_text(
        f'[drive]\npreset = "{DRIVE}"\ncount = {MEMBERS[level]}\nvolume = "disk"\n'
        f'[array]\nname = "md0"\norganisation = "{organisation}"\ndrives = ["disk"]\n'
        f"stripe_unit_sectors = {chunk * KIB // SECTOR}\n[host.queue]\nmax_sectors_kb = {chunk}\n"
    )
    jobs.write_text(job((load,), number, str(folder / "files")))
    head, *rows = said_by(headstack, "sim", str(rig), str(jobs), "--requests", "-").splitlines()
    begin, response = (head.split(",").index(name) for name in ("time_ns", "response_ns"))
    times = [tuple(int(row.split(",")[column]) for column in (begin, response)) for row in rows]
    # As in fio, without the requests that complete last.
    counted = sorted(times, key=sum)[: load.requests]
    return statistics.mean(took for _, took in counted) / 1e6


def advised(headstack: str, level: int, load: Load) -> int:
    """The chunk in KiB of `headstack stripe advise`."""
    writes = "1" if load.kind == "write" else "0"
    array = ("--drive", DRIVE, "--disks", str(MEMBERS[level]), "--level", str(level))
    asked = ("--mpl", str(load.depth), "--size", f"{load.size_kib}K", "--writes", writes)
    return json.loads(said_by(headstack, "stripe", "advise", *array, *asked, "--json"))["commands"]["chunk_kib"]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """How much slower the advised chunk is than the best measured one."""

    best: int
    excess: float
    noise: float

    @property
    def holds(self) -> bool:
        return self.excess <= TOLERANCE or (self.noise <= TOLERANCE and self.excess - self.noise <= TOLERANCE)

    @property
    def words(self) -> str:
        if self.excess <= TOLERANCE:
            return "holds"
        if self.noise > TOLERANCE:
            return "the run cannot tell"
        return "holds within the noise" if self.holds else "OFF"


def verdict(by_chunk: dict[int, list[float]], advice: int) -> Verdict:
    """Judges the advice by the responses of each chunk, one a pass."""
    if advice not in by_chunk:
        raise Failure(f"the advised chunk of {advice} KiB is not among those measured: {sorted(by_chunk)}")
    means = {chunk: statistics.mean(responses) for chunk, responses in by_chunk.items()}
    best = min(means, key=means.get)
    ratios = [own / other for own, other in zip(by_chunk[advice], by_chunk[best], strict=True)]
    noise = 2 * statistics.stdev(ratios) / len(ratios) ** 0.5
    return Verdict(best, means[advice] / means[best] - 1, noise)


# The report


def spread(responses: list[float]) -> str:
    return f"{statistics.mean(responses):.1f} ± {statistics.stdev(responses) / len(responses) ** 0.5:.1f}"


def print_load(form: Form, load: Load, found: dict, headstack: str, folder: pathlib.Path) -> list[str]:
    """Prints a load's table and verdicts; gives the verdicts that do not hold."""
    print(f"\n{load}: mean response in ms (± standard error over {form.passes} passes)\n")
    print("chunk (KiB)   RAID-0 measured  simulated      off   RAID-5 measured  simulated      off")
    by_level: dict[int, dict[int, list[float]]] = {level: {} for level in MEMBERS}
    for chunk in form.chunks:
        row = f"{chunk:11}"
        for level in MEMBERS:
            responses = found[("disk", level, chunk, load.name)]
            if len(responses) != form.passes:
                raise Failure(f"{load.name}: {len(responses)} of {form.passes} passes with chunks of {chunk} KiB")
            by_level[level][chunk] = responses
            passes = range(form.passes)
            model = statistics.mean(simulated(headstack, folder, level, chunk, load, number) for number in passes)
            row += f"  {spread(responses):>16}  {model:9.1f}  {statistics.mean(responses) / model - 1:+6.1%}"
        print(row)
    print()
    failures = []
    for level, by_chunk in by_level.items():
        advice = advised(headstack, level, load)
        judged = verdict(by_chunk, advice)
        line = (
            f"RAID-{level}: advised {advice} KiB, best measured {judged.best} KiB; the advised chunk is "
            f"{judged.excess:.1%} slower, noise {judged.noise:.1%}: {judged.words}"
        )
        print(line)
        if not judged.holds:
            failures.append(f"{load.name}: {line}")
    return failures


def print_overhead(found: dict, form: Form) -> None:
    """Prints what guest, QEMU and md take where the disks take no time."""
    print("\nOn disks that take no time, ms of guest, QEMU and md for each request (response / depth)\n")
    print("chunk (KiB)  " + "  ".join(f"RAID-{level} {load.name:12}" for level in MEMBERS for load in form.loads))
    for chunk in NULL_CHUNKS:
        cells = [found[("null", level, chunk, load.name)][0] / load.depth for level in MEMBERS for load in form.loads]
        print(f"{chunk:11}  " + "  ".join(f"{ms:19.1f}" for ms in cells))


def judge(folder: pathlib.Path, form: Form, headstack: str) -> list[str]:
    found = measured((folder / "console").read_text(), form)
    print(f"Linux md on emulated disks {DRIVE}: RAID-0 of {MEMBERS[0]}, RAID-5 of {MEMBERS[5]}")
    print_overhead(found, form)
    return [failure for load in form.loads for failure in print_load(form, load, found, headstack, folder)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "judge"))
    parser.add_argument("folder", type=pathlib.Path)
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--short", dest="form", action="store_const", const=SHORT)
    which.add_argument("--full", dest="form", action="store_const", const=FULL)
    parser.add_argument("--headstack", default="headstack")
    given = parser.parse_args()
    try:
        if given.step == "prepare":
            prepare(given.folder, given.form)
            return 0
        failures = judge(given.folder, given.form, given.headstack)
    except Failure as failure:
        print(f"guest: FAILED: {failure}", file=sys.stderr)
        return 1
    for failure in failures:
        print(f"guest: FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
