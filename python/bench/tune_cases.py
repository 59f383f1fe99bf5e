"""`tune` on eight made-up systems whose best settings are known, because all combinations of the values that it tries were run.

    python python/bench/tune_cases.py [--write] [CASE ...]

Runs all combinations of each case, then `headstack.tune`, and prints a line a case; `--write` keeps the lines in `tune_cases.tsv`. The exit code
is 1 where an advice is more than 3 % worse than the best, breaks the limit, or took more than a tenth of the work of all combinations.
"""

from __future__ import annotations

import itertools
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import headstack as hs

TABLE = Path(__file__).with_name("tune_cases.tsv")
HEAD = (
    "case", "goal", "combinations", "now", "best", "best settings", "advised", "advised settings", "loss %", "runs", "whole runs",
)
#: Seeds of the round of all combinations, and of the figures in the table. The search uses neither.
ROUND_SEEDS, FINAL_SEEDS = range(101, 102), range(200, 208)
#: How many of the best combinations of the first round run on the final seeds.
FINALISTS = 12
LOSS_MAX, WORK_MAX = 0.03, 0.1

#: The values that `headstack tune` tries (guide, "What it tries"), each with its key of a rig.
VALUES: dict[str, tuple[str, list[str]]] = {
    "scheduler": ("host.queue.elevator", ["none", "mq-deadline", "bfq", "kyber"]),
    "queue_depth": ("host.queue.depth", ["1", "2", "4", "8", "16", "32"]),
    "nr_requests": ("host.queue.nr_requests", ["32", "64", "128", "256", "512", "1024"]),
    "read_ahead_kb": ("host.page_cache.read_ahead_kb", ["0", "32", "128", "512", "1024", "4096"]),
    "max_sectors_kb": ("host.queue.max_sectors_kb", ["128", "512", "1280", "4096"]),
    "fifo_batch": ("host.queue.deadline.fifo_batch", ["1", "4", "16", "64"]),
    "read_expire": ("host.queue.deadline.read_expire", ["50", "150", "500", "1500"]),
    "slice_idle": ("host.queue.bfq.slice_idle", ["0", "4", "8"]),
}
#: The scheduler to which a setting belongs: with another one it has no effect.
BELONGS = {"fifo_batch": "mq-deadline", "read_expire": "mq-deadline", "slice_idle": "bfq"}
GROWS = {"iops", "throughput"}

Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Case:
    """A system with its present settings, its load, the goal, and the settings that may change."""

    name: str
    rig: str
    now: dict[str, object]
    job: str
    goal: str
    knobs: tuple[str, ...]
    requests: int
    p99_most_ms: float | None = None

    @property
    def bounds(self) -> list[str]:
        """The limits, as `tune` takes them."""
        return [] if self.p99_most_ms is None else [f"p99<{self.p99_most_ms:g}"]

    def system(self) -> hs.Rig:
        """The rig before the advice."""
        rig = hs.Rig(self.rig)
        for key, value in self.now.items():
            rig = rig.set(key, value)
        return rig

    def load(self) -> hs.Fio:
        return hs.Fio.from_text(self.job)


COMMON = "[global]\nfilename=/dev/sdX\nthread\ntime_based\nruntime=1000\n"
DIRECT = COMMON + "direct=1\nioengine=libaio\n"
CASES = [
    # The depth of the disk's queue.
    Case(
        "queue-depth", "st2000dm006", {"host.queue.depth": 1},
        DIRECT + "[r]\nrw=randread\nbs=4k\nsize=100g\niodepth=1\nnumjobs=32\n",
        "iops", ("scheduler", "queue_depth", "nr_requests", "max_sectors_kb"), 3000,
    ),
    # Read-ahead of the page cache.
    Case(
        "read-ahead", "workstation", {},
        COMMON + "fadvise_hint=0\n[s]\nrw=read\nbs=64k\nioengine=psync\nnumjobs=30\noffset_increment=3%\n",
        "throughput", ("scheduler", "queue_depth", "nr_requests", "read_ahead_kb"), 3000,
    ),
    # Read-ahead that no program uses. Long enough for BFQ to serve each process several times: reads that wait at the end do not count.
    Case(
        "random-buffered", "workstation", {"host.page_cache.read_ahead_kb": 1024},
        COMMON + "fadvise_hint=0\n[r]\nrw=randread:8\nbs=16k\nsize=100g\nioengine=psync\nnumjobs=16\n",
        "mean", ("scheduler", "queue_depth", "nr_requests", "read_ahead_kb"), 16000,
    ),
    # The scheduler and its parameters: a reader beside a writer that always has many requests.
    Case(
        "reader-beside-writer", "st2000dm006", {"host.queue.elevator": "none"},
        DIRECT + "[reader]\nrw=randread\nbs=4k\nsize=100g\niodepth=1\n"
        "[writer]\nrw=randwrite\nbs=64k\noffset=200g\nsize=100g\niodepth=64\n",
        "p99", ("scheduler", "queue_depth", "nr_requests", "fifo_batch", "read_expire", "slice_idle"), 2000,
    ),
    # The host has to order the requests, because the drive does not: the longer its queue, the shorter the way.
    Case(
        "drive-in-order", "st2000dm006",
        {"drive.order": "fcfs", "host.queue.elevator": "mq-deadline", "host.queue.nr_requests": 32},
        DIRECT + "[r]\nrw=randread\nbs=4k\nsize=100g\niodepth=96\n",
        "iops", ("scheduler", "queue_depth", "nr_requests", "fifo_batch", "read_expire"), 2000,
    ),
    # The largest command.
    Case(
        "large-requests", "st2000dm006", {"host.queue.elevator": "mq-deadline", "host.queue.max_sectors_kb": 128},
        DIRECT + "[s]\nrw=read\nbs=4m\niodepth=1\nnumjobs=8\noffset_increment=10%\n",
        "throughput", ("scheduler", "queue_depth", "nr_requests", "max_sectors_kb", "slice_idle"), 400,
    ),
    # More read-ahead is faster, and the most of it is too late.
    Case(
        "limit", "workstation", {},
        COMMON + "fadvise_hint=0\n[s]\nrw=read\nbs=64k\nioengine=psync\nnumjobs=40\noffset_increment=2%\n",
        "throughput", ("scheduler", "queue_depth", "read_ahead_kb", "max_sectors_kb", "slice_idle"), 4000, 400.0,
    ),
    # One request at a time leaves nothing to order.
    Case(
        "nothing-matters", "st2000dm006", {},
        DIRECT + "[r]\nrw=randread\nbs=4k\nsize=100g\niodepth=1\n",
        "throughput", ("scheduler", "queue_depth", "nr_requests", "max_sectors_kb", "slice_idle"), 1000,
    ),
]


def figures(rig: hs.Rig, load: hs.Fio, seed: int, requests: int) -> dict[str, float]:
    """Figures of a run that ends after this number of requests, as those of the search do."""
    simulation = rig.simulation(load, seed=seed, keep="summary")
    while simulation.progress.completed < requests and simulation.step(64):
        pass
    run = simulation.finish()
    response = run.response
    return {"iops": run.iops, "throughput": run.bandwidth_mb_s, "mean": response.mean_ms, "p99": response.p99_ms}


def mean(runs: list[dict[str, float]]) -> dict[str, float]:
    return {name: sum(run[name] for run in runs) / len(runs) for name in runs[0]}


def combinations(case: Case) -> list[Settings]:
    """All combinations that differ in effect. Settings of a scheduler count with that scheduler only."""
    lists = [[(knob, value) for value in VALUES[knob][1]] for knob in case.knobs]
    found: dict[Settings, None] = {}
    for choice in itertools.product(*lists):
        scheduler = dict(choice).get("scheduler")
        found[tuple(one for one in choice if BELONGS.get(one[0], scheduler) == scheduler)] = None
    return list(found)


def with_settings(rig: hs.Rig, settings: Settings) -> hs.Rig:
    for knob, value in settings:
        rig = rig.set(VALUES[knob][0], int(value) if value.isdigit() else value)
    return rig


def order(case: Case, found: dict[str, float]) -> tuple[float, float]:
    """Smaller is better: the excess over the limit first, then the goal."""
    excess = max(0.0, found["p99"] / case.p99_most_ms - 1.0) if case.p99_most_ms else 0.0
    return excess, -found[case.goal] if case.goal in GROWS else found[case.goal]


def measured(case: Case, rig: hs.Rig, settings: list[Settings], seeds: range) -> list[dict[str, float]]:
    """The means over the seeds for each of these settings."""
    load = case.load()

    def one(settings: Settings) -> dict[str, float]:
        set_up = with_settings(rig, settings)
        return mean([figures(set_up, load, seed, case.requests) for seed in seeds])

    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, settings))


def best(case: Case) -> tuple[int, Settings, dict[str, float]]:
    """The number of combinations, the best of them, and its figures on the final seeds."""
    rig, every = case.system(), combinations(case)
    first = measured(case, rig, every, ROUND_SEEDS)
    ranked = sorted(range(len(every)), key=lambda index: order(case, first[index]))
    finalists = [every[index] for index in ranked[:FINALISTS]]
    found = measured(case, rig, finalists, FINAL_SEEDS)
    winner = min(range(len(finalists)), key=lambda index: order(case, found[index]))
    return len(every), finalists[winner], found[winner]


def tuned(case: Case) -> hs.Tuning:
    """What `tune` says."""
    return hs.tune(
        case.system(), case.load(), goal=case.goal, bound=case.bounds, knob=case.knobs, requests=case.requests, seed=1
    )


def advised(found: hs.Tuning) -> Settings:
    return tuple((advice.setting, advice.advised) for advice in found.advised)


def loss(case: Case, found: dict[str, float], best: dict[str, float]) -> float:
    """By how much the goal is worse than with the best settings, as a share."""
    ratio = found[case.goal] / best[case.goal]
    return 1.0 - ratio if case.goal in GROWS else ratio - 1.0


def words(settings: Settings) -> str:
    return " ".join(f"{name}={value}" for name, value in settings) or "-"


def row(case: Case) -> tuple[tuple[str, ...], list[str]]:
    """A case's line, and what is wrong."""
    count, settings, top = best(case)
    found = tuned(case)
    now, ours = measured(case, case.system(), [(), advised(found)], FINAL_SEEDS)
    lost = loss(case, ours, top)
    faults = []
    if lost > LOSS_MAX:
        faults.append(f"{case.name}: {100 * lost:.1f} % worse than the best")
    if order(case, ours)[0] > 0.0:
        faults.append(f"{case.name}: breaks its limit")
    if found.whole_runs > WORK_MAX * count:
        faults.append(f"{case.name}: {found.whole_runs} whole runs of {count}")
    line = (
        case.name, " ".join([case.goal, *case.bounds]), str(count), f"{now[case.goal]:.2f}", f"{top[case.goal]:.2f}", words(settings),
        f"{ours[case.goal]:.2f}", words(advised(found)), f"{100 * lost:.1f}", str(found.runs), f"{found.whole_runs:.1f}",
    )
    return line, faults


def main(arguments: list[str]) -> int:
    names = [argument for argument in arguments if argument != "--write"]
    lines: list[tuple[str, ...]] = [HEAD]
    faults: list[str] = []
    for case in CASES:
        if not names or case.name in names:
            line, wrong = row(case)
            print("\t".join(line), flush=True)
            lines.append(line)
            faults += wrong
    if "--write" in arguments:
        TABLE.write_text("".join("\t".join(line) + "\n" for line in lines))
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
