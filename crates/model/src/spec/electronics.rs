//! Keys of `[overhead]`, `[cache]`, `[bus]` and `[queue]`.

use super::limits::DurationLimits;
use super::with_defaults::with_defaults;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[overhead]`: time the electronics take for a command, before the arm moves or data flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverheadSpec {
    /// Overheads of a command that follows a read.
    pub after_read: OverheadSet,
    /// Overheads of a command that follows a write.
    pub after_write: OverheadSet,
    /// Added to a command that finds the drive idle (no other command outstanding).
    #[schemars(range(min = 0.0, max = 10_000.0))]
    pub first_ms: f64,
    /// Replaces the command's overhead when it starts where the previous one of its direction ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub sequential_ms: Option<f64>,
    /// The part of a command's overhead in which the electronics can do nothing for another command: the rest overlaps the work for
    /// others, as in a pipeline. Default: the whole overhead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 100.0))]
    pub pipelined_ms: Option<f64>,
    /// From the last byte of a read to its completion.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub read_completion_ms: f64,
    /// From the end of a write to its completion.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub write_completion_ms: f64,
    /// Before data flow over the bus, each time they start.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub data_preparation_ms: f64,
}

/// Overheads by kind of command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OverheadSet {
    /// Read whose first block is in the cache.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub read_hit_ms: f64,
    /// Read from the media.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub read_miss_ms: f64,
    /// Write (the arm may move after it; with a write cache, data may flow after it).
    #[schemars(range(min = 0.0, max = 100.0))]
    pub write_ms: f64,
}

/// How the cache is cut into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Segmentation {
    /// `segments` of `segment_sectors` each.
    #[default]
    Fixed,
    /// Segments are halved in size and doubled in number, from `segments` up to `segments_max`, when a stream's data
    /// are evicted before they are used, and back when fewer streams are seen.
    Adaptive,
}

/// How far the drive reads beyond a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReadAhead {
    /// Not at all.
    #[default]
    None,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// Until the segment is full.
    Segment,
    /// To the end of the track; of the next track once the track before was read too (one track ahead of a stream).
    Stream,
    /// To the end of the track; `read_ahead_max_sectors` once a read continued the one before it in its segment.
    Sequence,
    /// The whole track, from wherever the head arrives.
    OnArrival,
}

/// Which segment is evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The one unused for longest.
    #[default]
    Lru,
    /// The one filled first.
    Fifo,
    /// One drawn at random from the seed.
    Random,
}

/// When a write is reported done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteCache {
    /// Once it is on the media (write-through).
    #[default]
    None,
    /// Once its data are in the buffer, if it continues the write that is being written to the media; else write-through. Drives
    /// of about 1990 call it immediate reporting.
    Sequential,
    /// Once its data are in a write segment, whatever its LBN. The drive accepts the data as soon as a write segment is free and,
    /// without `write_prebuffering`, the arm is free or can be stopped. It destages them at once, before other media work.
    Segment,
    /// Once its data are in the cache; destaged when the drive is idle or too many sectors are dirty (`dirty_…`).
    Full,
}

/// Treatment of a write that continues the one that is being written to the media.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JoinedWrites {
    /// The drive accepts its data as long as the segment has room, and writes them without a gap.
    #[default]
    Stream,
    /// The drive accepts its data if no other write and no other command waits. The destage in progress covers the data received
    /// by then, and a destage of their own writes them to the media again, a revolution later. DiskSim does this.
    Again,
}

with_defaults! {
    /// `[cache]`: the drive's buffer.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct CacheSpec {
        /// Whether the drive has memory for data. Without it, each sector must cross the bus as it passes under the head: where the bus
        /// is busy or slower than the media, the drive loses a revolution and tries again. Nothing is cached then, read ahead, written
        /// back or accessed out of order, whatever the other keys say.
        pub buffered: bool = true,
        /// Whether data stay in the buffer after the command that brought them.
        pub enabled: bool = true,
        /// How the cache is cut into segments.
        pub segmentation: Segmentation,
        /// Number of segments (the smallest number, when adaptive).
        #[schemars(range(min = 1, max = 1_000_000))]
        pub segments: u32 = 1,
        /// Largest number of segments, when adaptive.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub segments_max: Option<u32>,
        /// Size of a segment (with `segments` of them).
        #[schemars(range(min = 1, max = 100_000_000))]
        pub segment_sectors: u32 = 512,
        /// How far the drive reads beyond a request.
        pub read_ahead: ReadAhead,
        /// Read-ahead that no other command may cut off.
        pub read_ahead_min_sectors: u32,
        /// Most that is read beyond a request.
        pub read_ahead_max_sectors: u32,
        /// Whether read-ahead may overwrite the request's own data in its segment.
        pub read_ahead_over_requested: bool = true,
        /// Whether the read-ahead of `read_ahead = "stream"` continues to the end of its track when the segment is full, and
        /// overwrites the front of the segment (else it ends when it has filled the segment).
        pub read_ahead_past_segment: bool,
        /// Whether a read-ahead that has filled its segment waits, revolution by revolution, while it would overwrite data that are
        /// being sent to the host (else the model assumes that they are sent in time).
        pub read_ahead_waits_for_room: bool,
        /// Whether a full hit on a segment that was cut off starts its read-ahead again.
        pub read_ahead_on_hit: bool,
        /// Whether the read-ahead stops between sectors when another command needs the arm (else at the end of a sector).
        pub read_ahead_stops_in_sector: bool,
        /// Whether a read-ahead that waits for its first sector on a track holds the arm until that sector arrives (else the arm
        /// leaves at once).
        /// DiskSim's drives hold it. Reads of whole tracks would then lose a revolution that an Atlas 10K II was measured not to lose.
        pub read_ahead_holds_for_sector: bool,
        /// Whether the sectors between arrival and the first wanted one are cached.
        pub read_on_arrival: bool,
        /// Whether a read that starts at the very sector that the read-ahead is reading joins it (else it starts a new access).
        pub almost_hits: bool = true,
        /// Whether data written by the host may answer a read.
        pub read_hits_on_written: bool = true,
        /// Whether a read that the buffer can answer needs the arm: it waits while the arm works for another command or destages, and
        /// stops the read-ahead into another segment (else its data are sent at once and the arm continues).
        pub hits_take_arm: bool,
        /// Which segment is evicted.
        pub replacement: Replacement,
        /// When a write is reported done.
        pub write_cache: WriteCache,
        /// Treatment of a write that continues the one that is being written to the media, with `write_cache = "segment"`.
        pub joined_writes: JoinedWrites,
        /// Segments that may hold dirty data.
        pub write_segments: u32 = 1,
        /// Whether one segment is kept for writes alone.
        pub dedicated_write_segment: bool,
        /// Whether the drive accepts a write's data while the arm works for another command, with `write_cache = "segment"` or
        /// `"none"` (else once the arm is free for it).
        pub write_prebuffering: bool = true,
        /// Dirty sectors at which new writes wait, with `write_cache = "full"`.
        pub dirty_max_sectors: u64,
        /// Scattered dirty runs of blocks at which new writes wait, with `write_cache = "full"`.
        #[schemars(range(min = 1, max = 8192), extend("x-unit" = "runs"))]
        pub dirty_runs_max: u32 = 1024,
        /// Dirty sectors at which destaging starts even while commands wait.
        pub dirty_start_sectors: u64,
        /// Idle time after which destaging starts.
        #[schemars(range(min = 0.0, max = 1e6))]
        pub destage_idle_ms: f64,
        /// Name of the order policy that chooses the next destage. A destage that continues the last access goes first.
        pub destage_order: String = "c-look".to_string(),
        /// Most sectors of a dirty run that are written before others get the arm and their room in the cache is free; 0 for whole runs.
        #[schemars(range(min = 0, max = 100_000_000))]
        pub destage_piece_sectors: u32,
        /// Work of the drive for each FLUSH in addition to the destaging itself.
        #[schemars(range(min = 0.0, max = 10_000.0))]
        pub flush_ms: f64,
        /// Work the drive does after a destage (settling, verification), in which the arm is busy. A seek over less than a 256th of the
        /// cylinders costs its share of that: a destage that continues the last access costs nothing.
        #[schemars(range(min = 0.0, max = 1000.0))]
        pub destage_extra_ms: f64,
    }
}

/// The drive's host interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Interface {
    /// Serial ATA: NCQ where the drive has a queue.
    Sata,
    /// Parallel ATA: most drives have no queue.
    Ide,
    /// Parallel SCSI.
    Scsi,
    /// Serial Attached SCSI.
    Sas,
    /// SCSI over Fibre Channel.
    Fc,
    /// SCSI over the Serial Storage Architecture.
    Ssa,
    /// Storage Module Drive: the controller does the work that later drives do themselves.
    Smd,
}

impl Interface {
    /// Every interface.
    pub const ALL: [Interface; 7] = {
        use Interface::*;
        [Sata, Ide, Scsi, Sas, Fc, Ssa, Smd]
    };

    /// The word that a drive file uses for it.
    pub fn word(self) -> &'static str {
        ["sata", "ide", "scsi", "sas", "fc", "ssa", "smd"][self as usize]
    }

    /// The kind of tags that its standard has.
    pub fn tagging(self) -> Tagging {
        if matches!(self, Interface::Sata | Interface::Ide) { Tagging::Ncq } else { Tagging::Tcq }
    }
}

/// What the ratios of `[bus]` are shares of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WatermarkOf {
    /// Of the request.
    #[default]
    Request,
    /// Of the segment.
    Segment,
}

/// In which order a read's data cross the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// In ascending LBN order.
    #[default]
    InOrder,
    /// In ascending LBN order, and where the head lands inside the request not before all of it is in the buffer.
    InOrderWhole,
    /// In the order in which they come off the media.
    OutOfOrder,
}

// The default is a bus that takes no time and is released whenever it idles.
with_defaults! {
    /// `[bus]`: the path to the host.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    pub struct BusSpec {
        /// The drive's host interface. It decides which kind of tags the drive's queue has (`queue.tagging`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub interface: Option<Interface>,
        /// Time a sector takes to the host.
        #[schemars(range(min = 0.0, max = 1e5))]
        pub read_us_per_sector: f64,
        /// Time a sector takes from the host.
        #[schemars(range(min = 0.0, max = 1e5))]
        pub write_us_per_sector: f64,
        /// Whether the bus is held from command to completion.
        #[serde(default)]
        pub never_disconnects: bool,
        /// Whether a read, once it transfers, keeps the bus while it waits for the media.
        #[serde(default)]
        pub holds_for_reads: bool,
        /// Whether a write, once it transfers, keeps the bus while it waits for the media.
        #[serde(default)]
        pub holds_for_writes: bool,
        /// Share of the data that must be in the buffer before a read reconnects.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 1.0))]
        pub buffer_full_ratio: f64,
        /// Share of the segment left in the buffer at which a write longer than a segment reconnects for more; 0 leaves it to the
        /// drive, which then never runs out of data.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 1.0))]
        pub buffer_empty_ratio: f64,
        /// What the ratios are shares of.
        #[serde(default)]
        pub ratio_of: WatermarkOf,
        /// Order of a read's data on the bus.
        #[serde(default)]
        pub delivery: Delivery,
        /// To release the bus in a read that follows a read.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 100.0))]
        pub disconnect_read_after_read_ms: f64,
        /// To release the bus in a read that follows a write.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 100.0))]
        pub disconnect_read_after_write_ms: f64,
        /// To release the bus in a write.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 100.0))]
        pub disconnect_write_ms: f64,
        /// To win the bus back the first time in a command.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 100.0))]
        pub reconnect_first_ms: f64,
        /// To win the bus back later in a command that disconnects twice.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 100.0))]
        pub reconnect_other_ms: f64,
        /// The shortest seek before a write, except for a write that continues the previous one without a stop.
        #[serde(default)]
        #[schemars(range(min = 0.0, max = 100.0))]
        pub write_seek_min_ms: f64,
        /// Sectors of a write that must be in the buffer before it goes to the media (or all, for a shorter one).
        #[serde(default = "one_sector")]
        #[schemars(range(min = 1, max = 1_000_000))]
        pub write_start_sectors: u32 = one_sector(),
        /// A disconnection before the data of a write that follows a write elsewhere, as some early SCSI drives make.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub write_disconnect: Option<WriteDisconnect>,
    }
}

fn one_sector() -> u32 {
    1
}

/// `[bus.write_disconnect]`: the bus is released between a write's command and its data.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteDisconnect {
    /// Command overhead of such a write.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub command_ms: f64,
    /// Time to release the bus before the data.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub disconnect_ms: f64,
    /// Time from releasing the bus to requesting it again.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub away_ms: f64,
    /// Time to release the bus again after the data.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub second_disconnect_ms: f64,
    /// Time from the end of the command overhead to the start of the seek.
    #[schemars(range(min = 0.0, max = 100.0))]
    pub seek_delay_ms: f64,
}

with_defaults! {
    /// `[queue]`: commands the drive holds.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields, default)]
    pub struct QueueSpec {
        /// Commands that may be outstanding.
        #[schemars(range(min = 1, max = 1024), extend("x-unit" = "commands"))]
        pub depth: u32 = 1,
        /// Name of the order policy that chooses the next one, with its parameters in parentheses.
        pub order: String = "fcfs".to_string(),
        /// Time from the end of an access to the choice of the next command, where several may wait: commands that arrive meanwhile
        /// can be chosen. A command that begins where the access ended continues at once.
        #[schemars(range(min = 0.0, max = 1000.0))]
        pub choice_ms: f64,
        /// Time for which a sequential run keeps the arm while other commands wait: waiting commands that continue it go first, without
        /// waiting for their overhead, and the drive reads ahead of it. It ends early where a command is as old as `age_limit_ms`, or goes
        /// before all others. Without it, a command that continues an access waits for its turn and its overhead like any other, and no
        /// drive reads ahead while a command waits.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 0.0, max = 10_000.0))]
        pub stream_hold_ms: Option<f64>,
        /// Times `stream_hold_ms` for which waiting commands continue a run: what they ask for is wanted, what is read ahead may not be.
        #[schemars(range(min = 1, max = 1000), extend("x-unit" = "times"))]
        pub stream_holds: u32 = 3,
        /// Commands that the drive has chosen and carries out in that order, the one at work included. With 1 it chooses when the arm is
        /// free; with 8 a command waits for seven others that were chosen before it.
        #[schemars(range(min = 1, max = 256), extend("x-unit" = "commands"))]
        pub committed: u32 = 1,
        /// As `committed`, for an urgent command: it overtakes all but this number of chosen commands, the one at work included. Default:
        /// `committed`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub committed_urgent: Option<u32>,
        /// Order among the commands that are not urgent, where `urgent_first` puts urgent ones first. Default: `order`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub others_order: Option<String>,
        /// Number of the oldest outstanding commands among which it chooses.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1, max = 1024), extend("x-unit" = "commands"))]
        pub window: Option<u32>,
        /// Age from which on a command goes before all younger ones, whatever the order.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(range(min = 1.0, max = 1e7))]
        pub age_limit_ms: Option<f64>,
        /// The kind of tags of queued commands. Default: that of `bus.interface` (`"ncq"` with `"sata"` and `"ide"`, else `"tcq"`).
        #[serde(skip_serializing_if = "Option::is_none")]
        pub tagging: Option<Tagging>,
        /// Whether urgent commands go before others, as those of high NCQ priority.
        pub urgent_first: bool,
        /// Command duration limits; none if the drive does not have them.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub duration_limits: Option<DurationLimits>,
        /// Whether the drive reads ahead after queued reads. A drive with a `depth` of more than 1 gets all its reads queued, one with 1
        /// none. Some drives of about 2007, such as the WD Raptor, do not.
        pub read_ahead: bool = true,
    }
}

/// How commands are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tagging {
    /// As on SCSI: simple, ordered and head-of-queue tags; a FLUSH (SYNCHRONIZE CACHE) is queued like any other, and its writes
    /// alternate with the waiting commands.
    Tcq,
    /// As on ATA: up to 32 reads and writes. A FLUSH is not queued: the host sends it once no other command is in flight, and
    /// sends no other before it has ended.
    Ncq,
}

impl Tagging {
    /// The tags that NCQ has.
    pub const NCQ_TAGS: u32 = 32;
}
