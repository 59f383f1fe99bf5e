#!/usr/bin/env python3
"""Predictions and verdict for `tests/guest/desk.sh`.

    desk.py judge FOLDER --headstack PROGRAM DRIVE…        reads FOLDER/console and FOLDER/desk.plan

FOLDER/console has what hdparm, Bonnie++ and IOzone printed on each emulated disk, and on a disk that takes no time. For each drive
`headstack sim` gets the same requests: the sizes of the plan, at the blocks where ext2 put the files (filefrag), through a page
cache with the guest's memory and read-ahead. Three things are not in it: ext2's own blocks (bitmaps, indirect blocks), the places that
Bonnie++ draws (others are drawn, as many), and the guest's processor, in whose place each page takes the time that it took in the
same phase on the disk that takes no time.
"""

import argparse
import dataclasses
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

KIB = 1024
MIB = 1024 * 1024
# ext2's block and the kernel's page.
PAGE = 4096
# What Bonnie++ reads and writes at a time: its chunk, as the plan's command has it.
BONNIE_CHUNK = 8 * KIB
# Bonnie++ writes the chunk back after every tenth seek.
REWRITE_EVERY = 10
# What hdparm -t reads at a time.
HDPARM_READ = 2 * MIB
# The entry of a log that waits until all that was written is on the disk. Bonnie++ flushes before it closes a file, within the
# time of the phase, and so do its seeking processes; IOzone does with -e.
FLUSH = ("sync", 0, 0)
# Largest difference of a measured figure from the simulated one.
TOLERANCE = 0.1
NULL = "null"


class Failure(Exception):
    """What went wrong, in one line."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What ran: the keys of desk.plan."""

    hdparm_runs: int
    bonnie_mib: int
    bonnie_seeks: int
    bonnie_seekers: int
    iozone_mib: int
    iozone_record_kib: int
    iozone_processes: tuple[int, ...]

    @staticmethod
    def parse(text: str) -> "Plan":
        found = dict(re.findall(r'^(\w+)="?([\d ]+)"?$', text, re.MULTILINE))
        missing = [field.name for field in dataclasses.fields(Plan) if field.name not in found]
        if missing:
            raise Failure(f"desk.plan: no {', '.join(missing)}")
        processes = tuple(int(number) for number in found.pop("iozone_processes").split())
        return Plan(**{key: int(value) for key, value in found.items()}, iozone_processes=processes)


# What the programs said


@dataclasses.dataclass(frozen=True)
class Extent:
    """Blocks of a file that follow each other on the disk."""

    logical: int
    physical: int
    blocks: int


@dataclasses.dataclass
class Said:
    """What one guest printed: settings, rates in KiB/s by phase (seeks: in seeks/s), the layout of each run's files, bytes read."""

    guest: dict[str, int] = dataclasses.field(default_factory=dict)
    rates: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    files: dict[str, list[list[Extent]]] = dataclasses.field(default_factory=dict)
    hdparm_bytes: list[int] = dataclasses.field(default_factory=list)
    lateness: str = ""

    def rate(self, phase: str) -> float:
        if phase not in self.rates:
            raise Failure(f"no rate of {phase}")
        return sum(self.rates[phase]) / len(self.rates[phase])


def read_console(console: str) -> dict[str, Said]:
    """What each disk's guest said."""
    disks: dict[str, Said] = {}
    for line in console.splitlines():
        if end := re.fullmatch(r"guest: end (\S+) (.*late.*)", line):
            disks.setdefault(end[1], Said()).lateness = end[2].strip()
        if not (match := re.fullmatch(r"guest: said (\S+) (\w+) (\S+) (.*)", line)):
            continue
        disk, program, part, text = match.groups()
        READERS[program](disks.setdefault(disk, Said()), part, text)
    return disks


def read_guest(said: Said, part: str, text: str) -> None:
    said.guest[part] = int(text)


def read_hdparm(said: Said, _part: str, text: str) -> None:
    if match := re.search(r"Timing buffered disk reads:\s*(\d+) MB in\s+([\d.]+) seconds", text):
        said.hdparm_bytes.append(int(match[1]) * MIB)
        said.rates.setdefault("hdparm -t", []).append(int(match[1]) * KIB / float(match[2]))


def read_bonnie(said: Said, _part: str, text: str) -> None:
    """Its line of comma-separated values, format 1.98; a phase that was too short to judge has pluses."""
    fields = text.split(",")
    if fields[0] != "1.98" or len(fields) < 21:
        raise Failure(f"Bonnie++ prints another format than 1.98: {text}")
    for column, phase in ((11, "bonnie write"), (13, "bonnie rewrite"), (17, "bonnie read"), (19, "bonnie seeks")):
        if not re.fullmatch(r"[\d.]+", fields[column]):
            raise Failure(f"Bonnie++ has no figure for {phase}: {text}")
        said.rates.setdefault(phase, []).append(float(fields[column]))


def read_iozone(said: Said, part: str, text: str) -> None:
    if match := re.match(r"Children see throughput for\s+(\d+) (initial writers|readers)\s*=\s*([\d.]+) kB/sec", text):
        phase = "write" if match[2] == "initial writers" else "read"
        said.rates.setdefault(f"iozone {part} {phase}", []).append(float(match[3]))


def read_layout(said: Said, part: str, text: str) -> None:
    files = said.files.setdefault(part, [])
    if text.startswith("File size of"):
        files.append([])
    elif match := re.match(r"\d+:\s+(\d+)\.\.\s*\d+:\s+(\d+)\.\.\s*\d+:\s+(\d+):", text):
        files[-1].append(Extent(*map(int, match.groups())))


READERS = {"guest": read_guest, "hdparm": read_hdparm, "bonnie": read_bonnie, "iozone": read_iozone, "layout": read_layout}


# What the simulator is given


def places(file: list[Extent], offset: int, size: int) -> list[tuple[int, int]]:
    """Where bytes of a file are on the disk: offsets and lengths."""
    found = []
    for extent in file:
        begin, end = max(offset, extent.logical * PAGE), min(offset + size, (extent.logical + extent.blocks) * PAGE)
        if begin < end:
            place = extent.physical * PAGE + begin - extent.logical * PAGE
            if found and sum(found[-1]) == place:
                found[-1] = (found[-1][0], found[-1][1] + end - begin)
            else:
                found.append((place, end - begin))
    if sum(length for _, length in found) != size:
        raise Failure(f"the layout lacks {size} bytes at {offset} of a file")
    return found


class Jobs:
    """A fio job file whose jobs replay logs, in a folder."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.lines = ["[global]", "filename=/dev/sda", "ioengine=psync", "direct=0", "replay_no_stall=1"]
        # Unlike fio, the programs that were logged say nothing to the kernel about their reads.
        self.lines += ["fadvise_hint=0"]
        self.logs = 0

    def add(self, name: str, requests: list[tuple[str, int, int]], *keys: str) -> None:
        """A process that issues requests one after the other."""
        self.logs += 1
        log = self.folder / f"{self.logs}.log"
        lines = [f"0 disk {kind} {offset} {size}" for kind, offset, size in requests]
        log.write_text("\n".join(["fio version 3 iolog", "0 disk add", "0 disk open", *lines, "0 disk close", ""]))
        self.lines += [f"[{name}]", f"read_iolog={log}", *keys]

    def run(self, headstack: str, drive: str, guest: dict[str, int], us_per_page: float) -> list[dict]:
        """The results of the jobs on a drive, in a host like the guest."""
        file = self.folder / "jobs.fio"
        file.write_text("\n".join([*self.lines, ""]))
        keys = {
            "page_cache.memory_mb": guest["memory_kib"] // KIB,
            "page_cache.read_ahead_kb": guest["read_ahead_kb"],
            "page_cache.copy_us_per_page": round(us_per_page, 3),
            "queue.elevator": "none",
            "queue.nr_requests": guest["nr_requests"],
            "queue.max_sectors_kb": guest["max_sectors_kb"],
        }
        sets = [part for key, value in keys.items() for part in ("--set", f"host.{key}={value}")]
        done = subprocess.run(
            [headstack, "sim", drive, str(file), *sets, "--json", "-"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise Failure(f"headstack sim: {done.stderr.strip() or done.stdout.strip()}")
        return json.loads(done.stdout)["jobs"]


def sequential(file: list[Extent], size: int, record: int, *kinds: str) -> list[tuple[str, int, int]]:
    """Each record of a file in turn, with one request of each kind."""
    return [
        (kind, place, length)
        for offset in range(0, size, record)
        for kind in kinds
        for place, length in places(file, offset, min(record, size - offset))
    ]


def seeks(file: list[Extent], plan: Plan, seeker: int) -> list[tuple[str, int, int]]:
    """What one seeking process of Bonnie++ asks."""
    chance = random.Random(f"seeker {seeker}")
    chunks = plan.bonnie_mib * MIB // BONNIE_CHUNK
    requests = []
    for number in range(plan.bonnie_seeks // plan.bonnie_seekers):
        kinds = ("read", "write") if number % REWRITE_EVERY == 0 else ("read",)
        offset = chance.randrange(chunks) * BONNIE_CHUNK
        requests += [(kind, *place) for kind in kinds for place in places(file, offset, BONNIE_CHUNK)]
    return [*requests, FLUSH]


def job_rate(job: dict, kind: str) -> float:
    """KiB/s of a job."""
    return job[kind]["io_bytes"] / KIB / (job["job_runtime"] / 1000)


class Prediction:
    """What `headstack sim` says of the plan on one drive."""

    def __init__(self, headstack: str, drive: str, plan: Plan, said: Said, null: Said):
        self.headstack, self.drive, self.plan, self.said, self.null = headstack, drive, plan, said, null
        self.file = null.files["bonnie"][0]

    def run(self, phase: str, units: float, jobs_of) -> list[dict]:
        """Simulates jobs in a host whose processor has each page as long as in the same phase on the disk that takes no time.

        `units` is what one unit of that phase's rate (a KiB, a seek) reads and writes, in pages.
        """
        with tempfile.TemporaryDirectory(prefix="desk-") as folder:
            jobs = Jobs(pathlib.Path(folder))
            jobs_of(jobs)
            us_per_page = 1e6 / self.null.rate(phase) / units
            return jobs.run(self.headstack, self.drive, self.said.guest, us_per_page)

    def hdparm(self) -> float:
        whole = [Extent(0, 0, max(self.said.hdparm_bytes) // PAGE)]
        rates = []
        for size in self.said.hdparm_bytes:
            requests = sequential(whole, size, HDPARM_READ, "read")
            done = self.run("hdparm -t", KIB / PAGE, lambda jobs, requests=requests: jobs.add("read", requests))
            rates.append(job_rate(done[0], "read"))
        return sum(rates) / len(rates)

    def bonnie(self, phase: str) -> float:
        """A phase after those before it, which leave their pages in the cache."""
        size = self.plan.bonnie_mib * MIB
        seeks_pages = BONNIE_CHUNK / PAGE * (1 + 1 / REWRITE_EVERY)
        units = {"write": KIB / PAGE, "rewrite": 2 * KIB / PAGE, "read": KIB / PAGE, "seeks": seeks_pages}
        phases = list(units)

        def jobs_of(jobs: Jobs) -> None:
            for number, name in enumerate(phases[: phases.index(phase) + 1]):
                keys = ["stonewall"] * (number > 0)
                if name == "seeks":
                    for seeker in range(self.plan.bonnie_seekers):
                        jobs.add(name, seeks(self.file, self.plan, seeker), *keys * (seeker == 0))
                elif name == "read":
                    jobs.add(name, sequential(self.file, size, BONNIE_CHUNK, "read"), *keys)
                else:
                    kinds = ("read", "write") if name == "rewrite" else ("write",)
                    jobs.add(name, [*sequential(self.file, size, BONNIE_CHUNK, *kinds), FLUSH], *keys)

        jobs = [job for job in self.run(f"bonnie {phase}", units[phase], jobs_of) if job["jobname"] == phase]
        if phase == "seeks":
            return self.plan.bonnie_seeks / max(job["job_runtime"] / 1000 for job in jobs)
        return job_rate(jobs[0], "write" if phase == "write" else "read")

    def iozone(self, processes: int, phase: str) -> float:
        size = self.plan.iozone_mib * MIB // processes
        record = self.plan.iozone_record_kib * KIB
        files = self.said.files[str(processes)]

        def jobs_of(jobs: Jobs) -> None:
            for file in files:
                jobs.add("write", [*sequential(file, size, record, "write"), FLUSH])
            for number, file in enumerate(files):
                jobs.add("read", sequential(file, size, record, "read"), *["stonewall"] * (number == 0))

        jobs = self.run(f"iozone {processes} {phase}", KIB / PAGE, jobs_of)
        return sum(job_rate(job, phase) for job in jobs if job["jobname"] == phase)


# The report


@dataclasses.dataclass(frozen=True)
class Row:
    """A figure of a program on a disk."""

    name: str
    unit: str
    real: float
    simulated: float
    null: float

    @property
    def off(self) -> float:
        return self.real / self.simulated - 1

    @property
    def holds(self) -> bool:
        return abs(self.off) <= TOLERANCE


def rows(prediction: Prediction) -> list[Row]:
    plan, said, null = prediction.plan, prediction.said, prediction.null

    def row(phase: str, name: str, unit: str, simulated: float) -> Row:
        factor = 1 if unit == "seeks/s" else KIB / 1e6
        return Row(name, unit, said.rate(phase) * factor, simulated * factor, null.rate(phase) * factor)

    found = [row("hdparm -t", "hdparm -t", "MB/s", prediction.hdparm())]
    for phase in ("write", "rewrite", "read", "seeks"):
        unit = "seeks/s" if phase == "seeks" else "MB/s"
        found.append(row(f"bonnie {phase}", f"Bonnie++ {phase}", unit, prediction.bonnie(phase)))
    for processes in plan.iozone_processes:
        for phase in ("write", "read"):
            name = f"IOzone {phase}, {processes} process{'es' * (processes > 1)}"
            found.append(row(f"iozone {processes} {phase}", name, "MB/s", prediction.iozone(processes, phase)))
    return found


def judge(folder: pathlib.Path, headstack: str, drives: list[str]) -> list[str]:
    """Prints a table for each drive; gives the rows that do not hold."""
    plan = Plan.parse((folder / "desk.plan").read_text())
    disks = read_console((folder / "console").read_text())
    failures = []
    for drive in drives:
        name = pathlib.Path(drive).stem
        for needed in (name, NULL):
            if needed not in disks:
                raise Failure(f"{folder}/console has nothing of {needed}")
        found = rows(Prediction(headstack, drive, plan, disks[name], disks[NULL]))
        print(f"\n{name}\n\n{'':<28}{'measured':>10}{'simulated':>11}{'off':>9}{'no disk time':>14}")
        for row in found:
            verdict = "" if row.holds else "  OFF"
            print(f"{row.name:<28}{row.real:>10.2f}{row.simulated:>11.2f}{row.off:>+9.1%}{row.null:>14.1f} {row.unit}{verdict}")
        if disks[name].lateness:
            print(f"\nemulator: {disks[name].lateness}")
        failures += [f"{name}: {row.name} is {row.off:+.1%} off the simulated figure" for row in found if not row.holds]
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("judge",))
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("drives", nargs="+")
    parser.add_argument("--headstack", default="headstack")
    given = parser.parse_args()
    try:
        failures = judge(given.folder, given.headstack, given.drives)
    except Failure as failure:
        failures = [str(failure)]
    for failure in failures:
        print(f"guest: FAILED: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
