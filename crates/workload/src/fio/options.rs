//! The one table of fio's keys: what is honoured and where it goes, what is ignored, what is refused and why.
//!
//! It feeds the parser, the errors, the page `docs/formats/fio-jobs.md` and the tests.
//!
//! *Source:* `fio --cmdhelp=all` of fio 3.33 and its HOWTO, whose defaults these are.

use headstack_model::Nanos;

use super::engine::Engine;
use super::error::nearest;
use super::settings::{
    ExitScope, FadviseHint, RateProcess, Rw, Service, Settings, SizePriority, Split, Spread, SteadyRules,
    SteadyTarget, VerifyRules, ZoneMode,
};
use super::value::Given;

const SECOND: Nanos = Nanos::from_secs(1);
const MICROSECOND: Nanos = Nanos(1_000);
/// Maximum of a number of requests, blocks or bytes.
const MANY: u64 = 1 << 60;
/// Maximum of a number of jobs, files or outstanding requests.
const SOME: u64 = 1 << 20;

/// The form of a key's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// One of some words, as the summary lists them.
    Word,
    /// Any text.
    Text,
    /// A whole number.
    Count,
    /// 0 or 1.
    Flag,
    /// 0 or 1; the key alone means 1.
    Switch,
    /// A number of bytes with a suffix.
    Bytes,
    /// A number of bytes or a percentage.
    Amount,
    /// Two numbers of bytes, apart by `-` or `:`, or one.
    Range,
    /// A time with a suffix.
    Time,
    /// A list as the summary shows.
    List,
}

impl ValueKind {
    /// Its name on the page of keys.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Word => "word",
            ValueKind::Text => "text",
            ValueKind::Count => "number",
            ValueKind::Flag => "0 or 1",
            ValueKind::Switch => "switch",
            ValueKind::Bytes => "bytes",
            ValueKind::Amount => "bytes or %",
            ValueKind::Range => "range",
            ValueKind::Time => "time",
            ValueKind::List => "list",
        }
    }
}

/// The treatment of a key.
#[derive(Clone, Copy, Debug)]
pub enum Role {
    /// It shapes the load.
    Honoured(Setter),
    /// It controls fio itself: accepted, and listed.
    Ignored,
    /// The load would differ without it, and its effect is not available.
    Refused {
        /// Why not.
        reason: &'static str,
        /// Accepted values that have no effect.
        harmless: &'static [&'static str],
    },
}

/// Stores the value of a key in the settings of a job.
#[derive(Clone, Copy)]
pub struct Setter(pub(super) fn(&mut Settings, &Given<'_>) -> Result<(), String>);

impl std::fmt::Debug for Setter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Setter")
    }
}

/// A key of fio's job files.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FioOption {
    pub name: &'static str,
    /// Its other name, if it has one.
    pub alias: Option<&'static str>,
    /// Whether it may have a value a direction: `4k,8k` for reads and for writes.
    pub by_direction: bool,
    pub kind: ValueKind,
    pub role: Role,
    pub summary: &'static str,
}

impl FioOption {
    /// Whether any value is accepted: it controls fio itself, or names an export that a rig of one volume
    /// does not need to know.
    pub(super) fn is_idle(&self) -> bool {
        matches!(self.role, Role::Ignored) || self.name == "uri"
    }
}

/// All keys, the honoured ones first.
pub fn options() -> impl Iterator<Item = &'static FioOption> + Clone {
    HONOURED.iter().chain(IGNORED).chain(REFUSED)
}

pub(super) fn find(name: &str) -> Option<&'static FioOption> {
    options().find(|option| option.name == name || option.alias == Some(name))
}

pub(super) fn unknown(name: &str) -> String {
    let names = options().flat_map(|option| std::iter::once(option.name).chain(option.alias));
    format!("unknown key{}", nearest(name, names))
}
const fn first(aliases: &[&'static str]) -> Option<&'static str> {
    if let [alias, ..] = aliases { Some(*alias) } else { None }
}

macro_rules! is_by_direction {
    (by_direction) => {
        true
    };
    ($other:ident) => {
        false
    };
}

/// Rows `FORM "key" or "alias" => WAY PLACE, READER, "summary";`: the reader parses and checks the value, which goes to that place of the
/// [`Settings`] as it is
/// (`store`), as one value for each direction (`by_direction`), or only if it is true (`raise`).
macro_rules! honoured {
    ($($kind:ident $name:literal $(or $alias:literal)? => $way:ident $($place:ident).+, $read:expr, $summary:literal;)*) => {
        &[$(FioOption {
            name: $name,
            alias: first(&[$($alias)?]),
            by_direction: is_by_direction!($way),
            kind: ValueKind::$kind,
            role: Role::Honoured(Setter(|settings, given| given.$way(&mut settings.$($place).+, $read))),
            summary: $summary,
        }),*]
    };
}

/// Rows `"key" or "alias", … => "summary";`.
macro_rules! ignored {
    ($($($name:literal $(or $alias:literal)?),+ => $summary:literal;)*) => {
        &[$($(row($name, &[$($alias)?], Role::Ignored, $summary)),+),*]
    };
}

/// Rows `"key" or "alias" => "summary", [harmless values], "reason";`.
macro_rules! refused {
    ($($name:literal $(or $alias:literal)? => $summary:literal, [$($harmless:literal),*], $reason:literal;)*) => {
        &[$(row($name, &[$($alias)?], Role::Refused { reason: $reason, harmless: &[$($harmless),*] }, $summary)),*]
    };
}

const fn row(name: &'static str, aliases: &[&'static str], role: Role, summary: &'static str) -> FioOption {
    FioOption { name, alias: first(aliases), by_direction: false, kind: ValueKind::Text, role, summary }
}

mod ignored;
mod refused;

use ignored::IGNORED;
use refused::REFUSED;

const HONOURED: &[FioOption] = honoured! {
    // Which files, and which parts of them.
    Word "kb_base" => store decimal_k, |v| v.word(&[("1024", false), ("1000", true)]),
        "What k is: 1024 (and kib 1000) or 1000 (and kib 1024); default 1024";
    Text "name" => store name, Given::owned, "Name of the job; default the section's";
    Text "description" => store description, Given::owned, "A text that goes with the job";
    Text "filename" => store files.list, Given::owned,
        "Files or devices, separated by `:` (a colon in a name is `\\:`), shared by all clones";
    Text "uri" => store files.uri, Given::owned,
        "With `ioengine=nbd`: the export, which is the volume of that name, or the only one of the rig";
    Text "directory" => store files.folder, Given::owned, "Folder of the files";
    Text "filename_format" => store files.format, Given::owned,
        "Names of files without `filename`; default `$jobname.$jobnum.$filenum`";
    Count "nrfiles" or "nr_files" => store files.number, |v| v.count(1, SOME),
        "Number of files without `filename`; default 1";
    Word "file_service_type" => store files.service, Service::read,
        "Choice of the next file: roundrobin (default), sequential or random, each with `:n` requests \
         before a change";
    Amount "size" => store area.size, Given::amount_or_zones,
        "Size of a clone's area, in all its files together, also in zones (`8z`); default all";
    Amount "io_size" or "io_limit" => store area.io_size, Given::amount_or_zones,
        "Bytes that a clone transfers; default `size`";
    Range "filesize" => store area.file_size, |v| v.range(Given::bytes), "Bytes of each file";
    Amount "offset" or "fileoffset" => store area.offset, Given::amount_or_zones,
        "Start of a clone in its file; default 0";
    Amount "offset_increment" => store area.offset_increment, Given::amount_or_zones,
        "Added to `offset` for each further clone; default 0";
    Bytes "offset_align" => store area.offset_align, |v| v.count(0, MANY),
        "Alignment of an offset in percent, rounded up; default the smallest request";
    // Which requests.
    Word "rw" or "readwrite" => store access.rw, Rw::read,
        "read (default), write, rw, randread, randwrite, randrw; `:n` leaves holes of n bytes (sequential) \
         or draws a place every n requests (random). The trims are refused where the rig cannot";
    Word "rw_sequencer" => store access.same_place, |v| v.word(&[("sequential", false), ("identical", true)]),
        "With `rw=rand…:n`, where requests go between two draws: sequential (default) or identical";
    Bytes "bs" or "blocksize" => by_direction blocks.bytes, Given::request_bytes, "Bytes a request; default 4k";
    Range "bsrange" or "blocksize_range" => by_direction blocks.range, |v| v.range(Given::request_bytes),
        "Bytes a request, drawn from a range, in multiples of the smallest";
    List "bssplit" => by_direction blocks.split, Split::read_list, "Bytes a request and their shares: `4k/10:64k/50:32k/40`";
    Switch "bs_unaligned" or "blocksize_unaligned" => store blocks.unaligned, Given::switch,
        "Any size of the range, in bytes";
    Flag "bs_is_seq_rand" => store blocks.by_randomness, Given::flag,
        "Sizes for reads are for sequential requests, those for writes for random ones";
    Bytes "ba" or "blockalign" => by_direction blocks.align, Given::request_bytes,
        "Alignment of random requests; disables the random map; default the smallest request";
    Count "rwmixread" => store access.read_percent, |v| v.count(0, 100),
        "Percentage of reads in a mix; default 50";
    Count "rwmixwrite" => store access.read_percent, |v| v.count(0, 100).map(|writes| 100 - writes),
        "Percentage of writes in a mix";
    Count "percentage_random" => by_direction random.percent, |v| v.count(0, 100),
        "Percentage of random requests in a random load; default 100";
    List "random_distribution" => store random.spread, Spread::read,
        "Where random requests go: random (default), zipf:theta, pareto:power, normal:deviation (each with \
         `:centre`), zoned:access/size:… in percent, zoned_abs:access/bytes:…";
    Switch "norandommap" => store random.without_map, Given::switch,
        "Draw each place independently; default: no block twice until all were used";
    Flag "randrepeat" => store random.repeats, Given::flag,
        "Each pass over the files draws as the first one did; default 1";
    Count "randseed" => store random.seed, |v| v.count(0, MANY), "Another sequence of random numbers";
    // Zones: strides, or those of a shingled disk.
    Word "zonemode" => store zones.mode, ZoneMode::read,
        "strided: requests stay in a part of the file until `zonesize` bytes were transferred; zbd: writes go to the write pointers of zones, \
         and reads to what was written; none (default). Of several jobs on a volume the first says its zones";
    Bytes "zonesize" => store zones.size,
        Given::bytes_or_zero,
        "With `zonemode=zbd`: bytes of a zone; default those of the disk, which may have none. With `zonemode=strided`: bytes to transfer in a \
         zone, required";
    Bytes "zonerange" => store zones.range,
        Given::bytes_or_zero,
        "With `zonemode=strided`: bytes of a zone; default `zonesize`";
    Bytes "zoneskip" => store zones.skip,
        Given::bytes_or_zones,
        "With `zonemode=strided`: bytes between two zones; default 0";
    Count "max_open_zones" => store zones.open_max, |v| v.count(0, MANY),
        "With `zonemode=zbd`: zones written in part at a time; default the limit of the disk";
    Flag "read_beyond_wp" => store zones.read_beyond, Given::flag,
        "With `zonemode=zbd`: read anywhere; default 0, what was written";
    List "zone_reset_frequency" => store zones.resets.frequency, Given::share,
        "With `zonemode=zbd`: resets per write, of the zone that the write goes to, once `zone_reset_threshold` is reached; default 0";
    List "zone_reset_threshold" => store zones.resets.threshold, Given::share,
        "With `zonemode=zbd`: written share of the job's bytes from which on `zone_reset_frequency` counts; default 0";
    Count "fsync" => store flushes.fsync, |v| v.count(0, MANY),
        "A flush after N writes, which the job waits for";
    Count "fdatasync" => store flushes.fdatasync, |v| v.count(0, MANY), "As `fsync`";
    Flag "end_fsync" => store flushes.at_end, Given::flag, "A flush of each file at the end";
    Flag "fill_device" or "fill_fs" => store area.fill, Given::flag,
        "A job without `size` fills its volume, or takes the first volume as its file";
    Flag "fsync_on_close" => raise flushes.at_end, Given::flag, "As `end_fsync`";
    Word "sync" => store flushes.fua,
        |v| v.word(&[("none", false), ("0", false), ("sync", true), ("1", true), ("dsync", true)]),
        "Writes that are on the media when they end, by FUA or a FLUSH after each: none (default), sync, dsync";
    Flag "direct" => store direct, Given::flag,
        "Past the page cache of the rig's host, where it has one; default 0";
    Flag "buffered" => store direct, |v| v.flag().map(|yes| !yes), "The opposite of `direct`";
    Word "fadvise_hint" => store fadvise, FadviseHint::read,
        "What the job says to the kernel about its reads, through the page cache: 1 (default; sequential, or random for \
         `rw=rand…`), 0 (nothing), sequential (read-ahead is twice as long), random (no read-ahead)";
    Count "cmdprio_percentage" => by_direction priority.percent, |v| v.count(0, 100),
        "Percentage of requests with high priority";
    Count "cmdprio_class" => store priority.by_percent, |v| v.count(0, 3).map(|class| class == 1),
        "Class of those requests: 1 (default) is high priority, others none";
    Count "cmdprio_hint" => store priority.limit_by_percent, |v| v.count(0, 7),
        "Duration limit of those requests, 1 to 7; 0 (default) is none";
    List "cmdprio_bssplit" => by_direction priority.by_size, SizePriority::read_list,
        "Percentage by size of request, in place of `cmdprio_percentage`: `4k/10:64k/50`, or with a class and level (and hint) of their own: \
         `4k/10/1/0:64k/50/2/0/3`";
    Count "prioclass" => store priority.class_of_job, |v| v.count(0, 3),
        "Class of the job: with 1 all its requests have high priority, with 3 the elevators `deadline` and `bfq` serve them \
         after those of other jobs (idle)";
    Text "cgroup" => store group.cgroup, Given::owned,
        "Control group of the job, whose limits are those of `[[host.cgroup]]` of the rig, if it has that group";
    Count "priohint" => store priority.limit_of_job, |v| v.count(0, 7),
        "Duration limit of the job's requests, 1 to 7; 0 (default) is none";
    // When, and how many.
    Word "ioengine" => store queue.engine, Engine::named,
        "Whether `iodepth` requests are outstanding (libaio, io_uring, posixaio, nbd, null, …) or one \
         (psync, the default, sync, vsync, pvsync, pvsync2, mmap, …); nbd and others bypass the page cache";
    Count "iodepth" => store queue.iodepth, |v| v.count(1, SOME),
        "Requests outstanding at a time, capped at 1 with a synchronous engine; default 1";
    Count "iodepth_low" => store queue.low, |v| v.count(0, SOME),
        "To how many the queue drains before it is filled again; default `iodepth`";
    Count "iodepth_batch_complete_min" or "iodepth_batch_complete" => store queue.complete_min,
        |v| v.count(0, SOME), "Completions waited for at a time; default 1";
    Word "io_submit_mode" => store queue.offload, |v| v.word(&[("inline", false), ("offload", true)]),
        "Whether a job ahead of its rate waits for outstanding requests (inline, default) or not (offload)";
    Count "numjobs" => store group.clones, |v| v.count(1, SOME), "Clones of the job; default 1";
    Count "loops" => store life.loops, |v| v.count(1, MANY), "Passes over the files; default 1";
    Count "number_ios" => store life.requests, |v| v.count(0, MANY), "Requests after which a clone ends";
    Time "runtime" or "timeout" => store life.runtime, |v| v.time(SECOND), "Time after which a clone ends (s)";
    Switch "time_based" => store life.time_based, Given::switch, "Repeat the files until `runtime`";
    Time "ramp_time" => store life.ramp, |v| v.time(SECOND), "Time before `runtime` that is not measured (s)";
    Time "startdelay" => store life.start_delay, |v| v.range(|v| v.time(SECOND)),
        "Time from the start of the run before which a clone does not begin; of a range, each draws its own \
         (s)";
    Time "thinktime" => store think_time.length, |v| v.time(MICROSECOND),
        "Pause after a request, once all are back (µs)";
    Time "thinktime_spin" => store think_time.spin, |v| v.time(MICROSECOND),
        "Part of that pause spent computing, which makes no difference here (µs)";
    Count "thinktime_blocks" => store think_time.blocks, |v| v.count(1, MANY),
        "Requests between two pauses; default 1";
    Word "thinktime_blocks_type" => store think_time.at_issue, |v| v.word(&[("complete", false), ("issue", true)]),
        "Whether requests that came back count (complete, default) or issued ones (issue)";
    Time "thinktime_iotime" => store think_time.every, |v| v.time(SECOND), "Time between two pauses (s)";
    Bytes "rate" => by_direction rate.bytes, Given::bytes, "Bytes a second at most";
    Count "rate_iops" => by_direction rate.requests, |v| v.count(1, MANY), "Requests a second at most";
    Word "rate_process" => store rate.process,
        |v| v.word(&[("linear", RateProcess::Linear), ("poisson", RateProcess::Poisson)]),
        "How the requests of a rate are spaced: linear (default) or poisson";
    Flag "rate_ignore_thinktime" => store rate.forgives_pauses, Given::flag, "The rate does not make up for pauses";
    // What is read back.
    Word "verify" => store flushes.verify.has_method, VerifyRules::method,
        "What was written is read back after each pass, by any method; the data are not compared. 0 (default) reads nothing";
    Flag "do_verify" => store flushes.verify.reads, Given::flag, "With `verify`: whether the job itself reads what it wrote; default 1";
    Switch "verify_only" => store flushes.verify.only, Given::switch,
        "With `verify`: the writes were made by an earlier run, and are only read";
    Count "verify_backlog" => store flushes.verify.backlog, |v| v.count(0, MANY),
        "With `verify`: writes after which some are read at once; default 0, after the pass";
    Count "verify_backlog_batch" => store flushes.verify.batch, |v| v.count(0, MANY),
        "With `verify_backlog`: how many are read then; default `verify_backlog`";
    Flag "experimental_verify" => store flushes.verify.replays, Given::flag,
        "With `verify`: read the pass as it was written, and in all passes no more than one of them wrote";
    // Jobs that depend on each other, or on their results.
    Count "flow" => store group.flow.weight, |v| v.count(0, 1000),
        "Weight of the job among those of its `flow_id`: none of them is ahead of its share of their requests";
    Count "flow_id" => store group.flow.group, |v| v.count(0, MANY), "The jobs that share their requests by `flow`; default 0";
    Time "flow_sleep" => store group.flow.sleep, |v| v.time(MICROSECOND),
        "Pause of a job that is ahead of its share, once all its requests are back (µs); default 0";
    Word "steadystate" or "ss" => store group.steady.target, SteadyTarget::read,
        "With `steadystate_duration`: a job (a group with `group_reporting`) ends once its requests a second deviate by less than a limit \
         from their mean (`iops:10%`, `bw:…` for bytes), or have less than a slope (`iops_slope:0.01%`, the default, `bw_slope:…`)";
    Time "steadystate_duration" or "ss_dur" => store group.steady.seconds, SteadyRules::duration,
        "Seconds over which the results are to be steady; default 0, no such end (s)";
    Time "steadystate_ramp_time" or "ss_ramp" => store group.steady.ramp, |v| v.time(SECOND),
        "Time after the start that does not count for that (s)";
    Text "read_iolog" => store log.names, Given::owned,
        "Replay a log of fio (v2, v3) or any other trace instead of making requests up; several, separated by \
         `:`, are for a clone each. It goes to the volume that `filename` names, or to those that it names \
         itself; on a rig of one volume a second disk is refused";
    Flag "replay_no_stall" => store log.no_stall, Given::flag,
        "Replay as fast as `iodepth` lets it, whatever the log's times";
    Count "replay_time_scale" => store log.time_percent, |v| v.count(1, 100_000),
        "Percentage to which the log's times are stretched; default 100";
    Switch "stonewall" or "wait_for_previous" => store group.stonewall, Given::switch,
        "Begin once all previous jobs are done; a new group of results";
    Switch "new_group" => store group.new_group, Given::switch, "A new group of results";
    Text "wait_for" => store group.wait_for, Given::owned,
        "Begin once all clones of that job, named before, are done";
    Switch "exitall" => store group.exitall, Given::switch, "When a clone of any job is done, all clones of its group end";
    Word "exit_what" => store group.exit_what,
        |v| v.word(&[("group", ExitScope::Group), ("stonewall", ExitScope::Running), ("all", ExitScope::All)]),
        "Which clones end with `exitall`: group (default), stonewall (all that run), all (also those that have not begun)";
    Switch "group_reporting" => store group.reporting, Given::switch, "Results a group instead of a clone";
};
