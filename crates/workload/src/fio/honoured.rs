//! The keys that shape the load.

use headstack_model::Nanos;

use super::engine::Engine;
use super::options::{FioOption, Role, Setter, ValueKind};
use super::settings::{RateProcess, Settings};
use super::value::Given;

const SECOND: Nanos = Nanos::from_secs(1);
const MICROSECOND: Nanos = Nanos(1_000);
/// The most of a number of requests, blocks or bytes.
const MANY: u64 = 1 << 60;
/// The most of a number of jobs, files or outstanding requests.
const SOME: u64 = 1 << 20;

type Set = fn(&mut Settings, &Given<'_>) -> Result<(), String>;

/// Writes a value that could be read to its place.
fn put<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

const fn key(name: &'static str, kind: ValueKind, set: Set, summary: &'static str) -> FioOption {
    FioOption { name, alias: None, by_direction: false, kind, role: Role::Honoured(Setter(set)), summary }
}

const fn alias(alias: &'static str, option: FioOption) -> FioOption {
    FioOption { alias: Some(alias), ..option }
}

const fn each(option: FioOption) -> FioOption {
    FioOption { by_direction: true, ..option }
}

use ValueKind::{Amount, Bytes, Count, Flag, List, Range, Switch, Text, Time, Word};

/// Which files, and which parts of them.
pub(super) const WHERE: &[FioOption] = &[
    key(
        "kb_base",
        Word,
        |s, v| put(&mut s.kb_base, v.word(&[("1024", 1024), ("1000", 1000)])),
        "What k is: 1024 (and kib 1000) or 1000 (and kib 1024); default 1024",
    ),
    key("name", Text, |s, v| put(&mut s.name, v.owned().map(Some)), "Name of the job; default the section's"),
    key(
        "description",
        Text,
        |s, v| put(&mut s.description, v.owned().map(Some)),
        "A text that goes with the job",
    ),
    key(
        "filename",
        Text,
        |s, v| put(&mut s.filename, v.owned().map(Some)),
        "Files or devices, separated by `:` (a colon in a name is `\\:`), shared by all clones",
    ),
    key(
        "uri",
        Text,
        |s, v| put(&mut s.uri, v.owned().map(Some)),
        "With `ioengine=nbd`: the export, which is the volume of that name, or the only one of the rig",
    ),
    key("directory", Text, |s, v| put(&mut s.directory, v.owned().map(Some)), "Folder of the files"),
    key(
        "filename_format",
        Text,
        |s, v| put(&mut s.filename_format, v.owned().map(Some)),
        "Names of files without `filename`; default `$jobname.$jobnum.$filenum`",
    ),
    alias(
        "nr_files",
        key(
            "nrfiles",
            Count,
            |s, v| put(&mut s.nrfiles, v.count(1, SOME)),
            "Number of files without `filename`; default 1",
        ),
    ),
    key(
        "file_service_type",
        Word,
        |s, v| s.set_service(v),
        "Choice of the next file: roundrobin (default), sequential or random, each with `:n` requests before a change",
    ),
    key(
        "size",
        Amount,
        |s, v| put(&mut s.size, v.amount()),
        "Size of a clone's area, in all its files together; default all",
    ),
    alias(
        "io_limit",
        key(
            "io_size",
            Amount,
            |s, v| put(&mut s.io_size, v.amount()),
            "Bytes that a clone transfers; default `size`",
        ),
    ),
    key(
        "filesize",
        Range,
        |s, v| put(&mut s.filesize, v.range(Given::bytes).map(Some)),
        "Bytes of each file",
    ),
    alias(
        "fileoffset",
        key(
            "offset",
            Amount,
            |s, v| put(&mut s.offset, v.amount()),
            "Start of a clone in its file; default 0",
        ),
    ),
    key(
        "offset_increment",
        Amount,
        |s, v| put(&mut s.offset_increment, v.amount()),
        "Added to `offset` for each further clone; default 0",
    ),
    key(
        "offset_align",
        Bytes,
        |s, v| put(&mut s.offset_align, v.count(0, MANY)),
        "Alignment of an offset in percent, rounded up; default the smallest request",
    ),
];

/// Which requests.
pub(super) const WHAT: &[FioOption] = &[
    alias(
        "readwrite",
        key(
            "rw",
            Word,
            |s, v| s.set_direction(v),
            "read (default), write, rw, randread, randwrite, randrw; `:n` leaves holes of n bytes (sequential) or draws a \
             place every n requests (random). The trims are refused where the rig cannot",
        ),
    ),
    key(
        "rw_sequencer",
        Word,
        |s, v| put(&mut s.same_place, v.word(&[("sequential", false), ("identical", true)])),
        "With `rw=rand…:n`, where requests go between two draws: sequential (default) or identical",
    ),
    each(alias(
        "blocksize",
        key(
            "bs",
            Bytes,
            |s, v| v.by_direction(&mut s.bs, Given::request_bytes),
            "Bytes a request; default 4k",
        ),
    )),
    each(alias(
        "blocksize_range",
        key(
            "bsrange",
            Range,
            |s, v| v.by_direction(&mut s.bs_range, |v| v.range(Given::request_bytes).map(Some)),
            "Bytes a request, drawn from a range, in multiples of the smallest",
        ),
    )),
    each(key(
        "bssplit",
        List,
        |s, v| s.set_split(v),
        "Bytes a request and their shares: `4k/10:64k/50:32k/40`",
    )),
    alias(
        "blocksize_unaligned",
        key(
            "bs_unaligned",
            Switch,
            |s, v| put(&mut s.bs_unaligned, v.set()),
            "Any size of the range, in bytes",
        ),
    ),
    key(
        "bs_is_seq_rand",
        Flag,
        |s, v| put(&mut s.bs_by_randomness, v.flag()),
        "Sizes for reads are for sequential requests, those for writes for random ones",
    ),
    each(alias(
        "blockalign",
        key(
            "ba",
            Bytes,
            |s, v| v.by_direction(&mut s.align, |v| v.request_bytes().map(Some)),
            "Alignment of random requests; disables the random map; default the smallest request",
        ),
    )),
    key(
        "rwmixread",
        Count,
        |s, v| put(&mut s.rwmix_read, v.count(0, 100)),
        "Percentage of reads in a mix; default 50",
    ),
    key(
        "rwmixwrite",
        Count,
        |s, v| put(&mut s.rwmix_read, v.count(0, 100).map(|writes| 100 - writes)),
        "Percentage of writes in a mix",
    ),
    each(key(
        "percentage_random",
        Count,
        |s, v| v.by_direction(&mut s.percentage_random, |v| v.count(0, 100)),
        "Percentage of random requests in a random load; default 100",
    )),
    key(
        "random_distribution",
        List,
        |s, v| s.set_spread(v),
        "Where random requests go: random (default), zipf:theta, pareto:power, normal:deviation (each with `:centre`), \
         zoned:access/size:… in percent, zoned_abs:access/bytes:…",
    ),
    key(
        "norandommap",
        Switch,
        |s, v| put(&mut s.norandommap, v.set()),
        "Draw each place independently; default: no block twice until all were used",
    ),
    key(
        "randrepeat",
        Flag,
        |s, v| put(&mut s.randrepeat, v.flag()),
        "Each pass over the files draws as the first one did; default 1",
    ),
    key(
        "randseed",
        Count,
        |s, v| put(&mut s.randseed, v.count(0, MANY).map(Some)),
        "Another sequence of random numbers",
    ),
    key(
        "fsync",
        Count,
        |s, v| put(&mut s.fsync, v.count(0, MANY)),
        "A flush after N writes, which the job waits for",
    ),
    key("fdatasync", Count, |s, v| put(&mut s.fdatasync, v.count(0, MANY)), "As `fsync`"),
    key("end_fsync", Flag, |s, v| put(&mut s.end_fsync, v.flag()), "A flush of each file at the end"),
    key("fsync_on_close", Flag, |s, v| v.flag().map(|yes| s.end_fsync |= yes), "As `end_fsync`"),
    key(
        "sync",
        Word,
        |s, v| {
            let words = [("none", false), ("0", false), ("sync", true), ("1", true), ("dsync", true)];
            put(&mut s.sync, v.word(&words))
        },
        "Writes with force unit access: none (default), sync, dsync",
    ),
    key(
        "direct",
        Flag,
        |s, v| put(&mut s.direct, v.flag()),
        "Past the page cache of the rig's host, where it has one; default 0",
    ),
    key("buffered", Flag, |s, v| put(&mut s.direct, v.flag().map(|yes| !yes)), "The opposite of `direct`"),
    each(key(
        "cmdprio_percentage",
        Count,
        |s, v| v.by_direction(&mut s.urgent_percent, |v| v.count(0, 100)),
        "Percentage of requests with high priority",
    )),
    key(
        "cmdprio_class",
        Count,
        |s, v| put(&mut s.urgent_class, v.count(0, 3).map(|class| class == 1)),
        "Class of those requests: 1 (default) is high priority, others none",
    ),
    key(
        "prioclass",
        Count,
        |s, v| put(&mut s.urgent_job, v.count(0, 3).map(|class| class == 1)),
        "Class of the job: with 1 all its requests have high priority",
    ),
];

/// When, and how many.
pub(super) const WHEN: &[FioOption] = &[
    key(
        "ioengine",
        Word,
        |s, v| put(&mut s.engine, Engine::named(v)),
        "Whether `iodepth` requests are outstanding (libaio, io_uring, posixaio, nbd, null, …) or one (psync, the default, \
         sync, vsync, pvsync, pvsync2, mmap, …); nbd and others bypass the page cache",
    ),
    key(
        "iodepth",
        Count,
        |s, v| put(&mut s.iodepth, v.count(1, SOME)),
        "Requests outstanding at a time, capped at 1 with a synchronous engine; default 1",
    ),
    key(
        "iodepth_low",
        Count,
        |s, v| put(&mut s.iodepth_low, v.count(0, SOME)),
        "To how many the queue drains before it is filled again; default `iodepth`",
    ),
    alias(
        "iodepth_batch_complete",
        key(
            "iodepth_batch_complete_min",
            Count,
            |s, v| put(&mut s.complete_min, v.count(0, SOME)),
            "Completions waited for at a time; default 1",
        ),
    ),
    key(
        "io_submit_mode",
        Word,
        |s, v| put(&mut s.offload, v.word(&[("inline", false), ("offload", true)])),
        "Whether a job ahead of its rate waits for outstanding requests (inline, default) or not (offload)",
    ),
    key("numjobs", Count, |s, v| put(&mut s.numjobs, v.count(1, SOME)), "Clones of the job; default 1"),
    key("loops", Count, |s, v| put(&mut s.loops, v.count(1, MANY)), "Passes over the files; default 1"),
    key(
        "number_ios",
        Count,
        |s, v| put(&mut s.number_ios, v.count(0, MANY)),
        "Requests after which a clone ends",
    ),
    alias(
        "timeout",
        key(
            "runtime",
            Time,
            |s, v| put(&mut s.runtime, v.time(SECOND).map(Some)),
            "Time after which a clone ends (s)",
        ),
    ),
    key("time_based", Switch, |s, v| put(&mut s.time_based, v.set()), "Repeat the files until `runtime`"),
    key(
        "ramp_time",
        Time,
        |s, v| put(&mut s.ramp_time, v.time(SECOND)),
        "Time before `runtime` that is not measured (s)",
    ),
    key(
        "startdelay",
        Time,
        |s, v| put(&mut s.startdelay, v.range(|v| v.time(SECOND))),
        "Time from the start of the run before which a clone does not begin; of a range, each draws its own (s)",
    ),
    key(
        "thinktime",
        Time,
        |s, v| put(&mut s.thinktime, v.time(MICROSECOND)),
        "Pause after a request, once all are back (µs)",
    ),
    key(
        "thinktime_spin",
        Time,
        |s, v| put(&mut s.thinktime_spin, v.time(MICROSECOND)),
        "Part of that pause spent computing, which makes no difference here (µs)",
    ),
    key(
        "thinktime_blocks",
        Count,
        |s, v| put(&mut s.thinktime_blocks, v.count(1, MANY).map(Some)),
        "Requests between two pauses; default 1",
    ),
    key(
        "thinktime_blocks_type",
        Word,
        |s, v| put(&mut s.thinktime_at_issue, v.word(&[("complete", false), ("issue", true)])),
        "Whether requests that came back count (complete, default) or issued ones (issue)",
    ),
    key(
        "thinktime_iotime",
        Time,
        |s, v| put(&mut s.thinktime_iotime, v.time(SECOND)),
        "Time between two pauses (s)",
    ),
    each(key("rate", Bytes, |s, v| v.by_direction(&mut s.rate, Given::bytes), "Bytes a second at most")),
    each(key(
        "rate_iops",
        Count,
        |s, v| v.by_direction(&mut s.rate_iops, |v| v.count(1, MANY)),
        "Requests a second at most",
    )),
    key(
        "rate_process",
        Word,
        |s, v| {
            let words = [("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)];
            put(&mut s.rate_process, v.word(&words))
        },
        "How the requests of a rate are spaced: linear (default) or poisson",
    ),
    key(
        "rate_ignore_thinktime",
        Flag,
        |s, v| put(&mut s.rate_ignores_thinktime, v.flag()),
        "A pause is not caught up with",
    ),
    key(
        "read_iolog",
        Text,
        |s, v| put(&mut s.read_iolog, v.owned().map(Some)),
        "Replay a log of fio (v2, v3) or any other trace instead of making requests up; several, apart by `:`, are for a \
         clone each. It goes to the volume that `filename` names, or to those that it names itself",
    ),
    key(
        "replay_no_stall",
        Flag,
        |s, v| put(&mut s.replay_no_stall, v.flag()),
        "Replay as fast as `iodepth` lets it, whatever the log's times",
    ),
    key(
        "replay_time_scale",
        Count,
        |s, v| put(&mut s.replay_time_scale, v.count(1, 100_000)),
        "Percentage to which the log's times are stretched; default 100",
    ),
    alias(
        "wait_for_previous",
        key(
            "stonewall",
            Switch,
            |s, v| put(&mut s.stonewall, v.set()),
            "Begin once all previous jobs are done; a new group of results",
        ),
    ),
    key("new_group", Switch, |s, v| put(&mut s.new_group, v.set()), "A new group of results"),
    key(
        "wait_for",
        Text,
        |s, v| put(&mut s.wait_for, v.owned().map(Some)),
        "Begin once all clones of that job, named before, are done",
    ),
    key("exitall", Switch, |s, v| put(&mut s.exitall, v.set()), "When a clone is done, all of its group end"),
    key(
        "group_reporting",
        Switch,
        |s, v| put(&mut s.group_reporting, v.set()),
        "Results a group instead of a clone",
    ),
];
