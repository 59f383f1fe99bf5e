"""What to set on a Linux system, as for the command `headstack tune`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import _native
from ._errors import InputError
from ._keywords import names_nearest
from ._load import Load
from ._progress import runs_shown
from ._rig import Rig

__all__ = ["Advice", "Change", "RebuildCommand", "Tuning", "TuningFigure", "TuningJob", "tune"]


@dataclass(frozen=True)
class Change:
    """A change of a figure in percent, with the ends of its confidence interval (95 % for all of an answer's comparisons together)."""

    percent: float
    least_percent: float | None
    """None where each seed gave the same, because the load draws nothing at random."""
    most_percent: float | None

    def __str__(self) -> str:
        if self.least_percent is None or self.most_percent is None:
            return f"{self.percent:+.1f} % (the same with each seed)"
        return f"{self.percent:+.1f} % ({self.least_percent:.1f} to {self.most_percent:.1f})"


@dataclass(frozen=True)
class Advice:
    """A setting that is advised."""

    setting: str
    """Its name: `read_ahead_kb`."""
    key: str
    """The key of a rig; empty for `ionice` and `io.max`, which processes have."""
    key_value: str
    """The advised value of that key; of an array's chunk it is in sectors."""
    attribute: str
    """The attribute below `/sys/block/DISK`, the option of mdadm, the field of a partition, the key below `[[disk]]` of a node file, or the key
    of a fio job."""
    now: str
    advised: str
    change: Change
    """What the goal's figure changes by it while the other advised settings stay."""


@dataclass(frozen=True)
class TuningFigure:
    """A figure of the load as the system is set now, and with all that is advised."""

    unit: str
    now: float
    advised: float
    change: Change
    is_worse: bool
    """Whether it gets worse by more than chance explains."""


@dataclass(frozen=True)
class TuningJob:
    """A job's reads, writes or flushes as the system is set now, and with all that is advised."""

    job: str
    """The job and the kind: `wal flush`."""
    now: dict[str, float]
    """`iops`, `mb_s`, `mean_ms`, `p99_ms`."""
    advised: dict[str, float]
    is_loss: bool
    """Whether it gets less than half of its rate, or waits more than twice as long."""


@dataclass(frozen=True)
class RebuildCommand:
    """A command that moves or loses the data on the disks."""

    command: str
    destroys: bool
    """Whether all data are lost by it."""


@dataclass(frozen=True)
class Tuning:
    """What a search found."""

    goal: str
    bounds: tuple[str, ...]
    job: str | None
    """The job whose figures these are; None for the whole load."""
    bounds_kept: bool
    advised: tuple[Advice, ...]
    """The settings, the one with the largest gain first; none where nothing is better than chance explains."""
    change: Change
    """What the goal's figure changes by all of them together."""
    figures: dict[str, TuningFigure]
    """By name: iops, throughput, mean and p99; with a job also others, the throughput of the other jobs."""
    jobs: tuple[TuningJob, ...]
    """The reads, writes and flushes of each job, if there are several."""
    losses: tuple[str, ...]
    """What the advice costs: figures and jobs that become more than twice as bad, each in words."""
    commands: tuple[str, ...]
    """Commands that set what moves no data; attributes of a disk until the next start."""
    rebuild_commands: tuple[RebuildCommand, ...]
    """Commands that move all data of an array, or destroy them; not to be run without a thought."""
    array_layout: dict[str, Any] | None
    """Options of mkfs and the start of partitions that fit an advised chunk: `chunk_kib`, `data_drives`, `partition_multiple_kib`,
    `mkfs_ext4`, `mkfs_xfs`. None where no chunk is advised."""
    udev_rule: str
    """A udev rule that sets those of the disk whenever it appears; empty where none is of the disk."""
    runs: int
    whole_runs: float
    """How many whole runs these were worth."""
    combinations: float
    """Whole runs that all combinations would take, with one seed each."""
    evidence: str
    """What the drive files are based on; the model's error is not in the intervals."""
    not_tuned: tuple[str, ...]
    """Settings that are not simulated, of which nothing is said."""

    def apply(self, rig: Rig) -> Rig:
        """The rig with the advised settings that are of a rig."""
        advised = [(advice.key, advice.key_value) for advice in self.advised if advice.key]
        return rig.set_all({key: int(value) if value.isdigit() else value for key, value in advised})

    def _repr_html_(self) -> str:
        from ._html import grid, page, table

        settings = [(one.setting, one.now, one.advised, one.change) for one in self.advised]
        figures = [
            (name, f"{one.now:.4g} {one.unit}", f"{one.advised:.4g} {one.unit}", one.change, "worse" if one.is_worse else "")
            for name, one in self.figures.items()
        ]
        jobs = [
            (one.job, *(figures[name] for name in ("iops", "mean_ms", "p99_ms") for figures in (one.now, one.advised)))
            for one in self.jobs
        ]
        pairs = [f"{name} {when}" for name in ("IOPS", "mean ms", "p99 ms") for when in ("now", "advised")]
        kept = [("limits", ", ".join(self.bounds) + (" kept" if self.bounds_kept else ": not kept"))] if self.bounds else []
        return page(
            f"{self.goal}: {self.change} with all that is advised" if settings else f"{self.goal}: nothing to set",
            table("Mind", [("with this advice", loss) for loss in self.losses]),
            grid(("setting", "now", "advised", self.goal), settings) if settings else "",
            grid(("figure", "now", "advised", "change", ""), figures),
            grid(("job", *pairs), jobs) if jobs else "",
            table("Limits", kept),
            table("Commands", [("", command) for command in self.commands]),
            table(
                "Commands that move or destroy data",
                [("destroys all data" if one.destroys else "moves all data", one.command) for one in self.rebuild_commands],
            ),
        )


def _texts(values: str | Sequence[str]) -> list[str]:
    return [values] if isinstance(values, str) else list(values)


@names_nearest
def tune(
    rig: Rig,
    load: Load,
    *,
    goal: str = "throughput",
    bound: str | Sequence[str] = (),
    knob: str | Sequence[str] = (),
    job: str | None = None,
    requests: int = 20_000,
    seed: int = 0,
    disk: str | Sequence[str] = (),
    array: str = "mdX",
    progress: Callable[[int], object] | bool | None = None,
) -> Tuning:
    """The settings that serve a load best: of Linux (scheduler, queue depth, read-ahead and others), an array's chunk, a storage node's.

    The rig says what is set now; `Rig("workstation")` has a page cache and a scheduler. `goal` is what to improve: `throughput`, `iops`,
    `mean` or `p99`. `bound` is a limit that the settings must keep, or several: `"p99<200"` (ms), `"iops>500"`, or of a job
    `"batch.iops>5"`. `knob` names the only
    settings that are tried. `job` names the job of a fio job file that counts; `ionice` is then tried for the others, and `io.max` where a
    bound such as `"others>5"` (MB/s) says how much throughput they must keep, or a bound of each. `requests` are those of a whole run, at least 100.
    `disk` names the disks in the commands and in the udev rule, one for each drive of the rig (without it `sda` and those after it), `array` the array.

    The runs are those of the command `headstack tune` with the same arguments, on all cores without Python's global lock, and so is what
    comes out. `progress` is called about every 50 ms with the number of runs; an exception that it raises, or Ctrl-C, ends the search. `True`
    shows a bar, if tqdm is installed.

    Raises `InputError` for an unknown name, a rig that has none of these settings or has an order or a layer in
    Python, a load in Python, and one without a request.
    """
    if rig._orders or rig._layers:
        raise InputError("rig: has an order or a layer in Python, which tune cannot run; tune the rig without it")
    title = f"headstack tune {rig.name}"
    with runs_shown(progress) as report:
        text, udev_rule = _native.tune(
            rig._native,
            load._native,
            goal,
            _texts(bound),
            _texts(knob),
            job,
            requests,
            seed,
            _texts(disk),
            array,
            title,
            report,
        )
    found = json.loads(text)

    def change(value: dict[str, float]) -> Change:
        return Change(**value)

    def figure(value: dict[str, Any]) -> TuningFigure:
        return TuningFigure(**{**value, "change": change(value["change"])})

    return Tuning(
        **{
            **found,
            "bounds": tuple(found["bounds"]),
            "advised": tuple(Advice(**{**one, "change": change(one["change"])}) for one in found["advised"]),
            "change": change(found["change"]),
            "figures": {name: figure(value) for name, value in found["figures"].items()},
            "jobs": tuple(TuningJob(**one) for one in found["jobs"]),
            "losses": tuple(found["losses"]),
            "commands": tuple(found["commands"]),
            "rebuild_commands": tuple(RebuildCommand(**one) for one in found["rebuild_commands"]),
            "not_tuned": tuple(found["not_tuned"]),
            "udev_rule": udev_rule,
        }
    )
