//! Counters of what a device has done; they do not affect it.

use super::media::Span;
use headstack_model::report::QuantityUnit;
use headstack_model::{Nanos, QuantityReport, TrackPlace};
use headstack_policy::Guard;

/// How the cache served a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheUse {
    /// Not at all: all of it was read from or written to the media, or it was a flush.
    #[default]
    Miss,
    /// The buffer held a read's first blocks; the arm fetched the rest.
    Part,
    /// A read waited until the read-ahead in progress had read its blocks.
    Joined,
    /// The buffer held all of a read.
    Whole,
    /// A write was acknowledged before it was on the media.
    Buffered,
}

impl CacheUse {
    /// The names of the uses, in the order of [`CacheUse::index`].
    pub const NAMES: [&'static str; 5] = ["miss", "part", "joined", "whole", "buffered"];

    /// The place of the use in a list of counts.
    pub fn index(self) -> usize {
        self as usize
    }

    /// Its name: `miss`, `part`, `joined`, `whole` or `buffered`.
    pub fn name(self) -> &'static str {
        CacheUse::NAMES[self.index()]
    }
}

/// Where the arm went for a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Travel {
    /// Cylinder it came from.
    pub from: u32,
    /// Cylinder of the first block it accessed; of an access to the log of a shingled disk, of the last one.
    pub to: u32,
    /// Head of that block.
    pub head: u32,
}

impl Travel {
    /// From a cylinder to the track of the first block.
    pub(super) fn to_track(from: u32, track: TrackPlace) -> Travel {
        Travel { from, to: track.cylinder, head: track.head }
    }

    /// The track of the first block.
    pub(crate) fn track(self) -> TrackPlace {
        TrackPlace { cylinder: self.to, head: self.head }
    }

    /// Cylinders between the two.
    pub fn distance(self) -> u32 {
        self.from.abs_diff(self.to)
    }
}

/// The arm's time for accesses of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArmTime {
    /// How many accesses.
    pub accesses: u64,
    /// Seek, head switch and settle.
    pub seek: Nanos,
    /// Rotational latency, with retries and with the time for which the firmware keeps the arm after an access.
    pub rotational_latency: Nanos,
    /// Media transfer.
    pub media: Nanos,
}

impl ArmTime {
    /// The time of all accesses together.
    pub fn total(&self) -> Nanos {
        self.seek + self.rotational_latency + self.media
    }

    /// Adds the accesses and their times.
    fn report(&self, into: &mut QuantityReport) {
        into.counter("accesses", self.accesses, "Accesses").detail();
        into.counter("seek", self.seek, "Seek, head switch and settle").detail();
        into.counter("rotational_latency", self.rotational_latency, "Rotational latency").detail();
        into.counter("media", self.media, "Media transfer").detail();
    }

    fn add(&mut self, span: &Span) {
        self.accesses += 1;
        self.seek += span.seek;
        self.rotational_latency += span.rotation;
        self.media += span.media;
    }
}

/// Distances of the arm from access to access, counted in classes that double.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SeekDistances {
    counts: [u64; SeekDistances::CLASSES],
    sum: u64,
    longest: u32,
}

impl SeekDistances {
    /// Distance 0, then 1, 2 and 3, 4 to 7 …
    const CLASSES: usize = 32;

    fn add(&mut self, distance: u32) {
        let class = (u32::BITS - distance.leading_zeros()) as usize;
        self.counts[class.min(SeekDistances::CLASSES - 1)] += 1;
        self.sum += u64::from(distance);
        self.longest = self.longest.max(distance);
    }

    /// Number of accesses.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Cylinders per access, 0 without one.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count().max(1) as f64
    }

    /// The greatest distance.
    pub fn longest(&self) -> u32 {
        self.longest
    }

    fn report(&self, into: &mut QuantityReport) {
        into.counter("accesses", self.count(), "Seeks").detail();
        into.counter("same_cylinder", self.none(), "Accesses that stayed on their cylinder").detail();
        into.gauge("mean_cylinders", self.mean(), "Mean distance").detail();
        into.gauge("longest_cylinders", self.longest(), "Greatest distance").detail();
        into.list("classes", self.classes(), |(from, count), into| {
            into.fact("from_cylinders", from);
            into.counter("accesses", count, "Seeks of at least this distance, up to the next class");
        });
    }

    /// Accesses that stayed on their cylinder.
    pub fn none(&self) -> u64 {
        self.counts[0]
    }

    /// The least distance of each class up to the longest distance met, and how many accesses were in it.
    pub fn classes(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let least = |class: usize| if class == 0 { 0 } else { 1u32 << (class - 1) };
        let used = self.counts.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
        self.counts[..used].iter().enumerate().map(move |(class, count)| (least(class), *count))
    }
}

/// The work of a device since time 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// The arm's time for commands.
    pub commands: ArmTime,
    /// The arm's time for destages.
    pub destages: ArmTime,
    /// The arm's time for read-ahead that has ended.
    pub read_ahead: Nanos,
    /// Servo recalibrations.
    pub recalibration: Nanos,
    /// Reads by how the cache served them, in the order of [`CacheUse::index`].
    pub reads: [u64; CacheUse::NAMES.len()],
    /// Writes by how the cache served them, in the order of [`CacheUse::index`].
    pub writes: [u64; CacheUse::NAMES.len()],
    /// Flushes.
    pub flushes: u64,
    /// The seeks to the accesses of commands and destages.
    pub seeks: SeekDistances,
    /// Accesses that slow periods delayed.
    pub slowed: SlowedAccesses,
    /// The persistent cache and the bands of a shingled disk.
    pub shingled: ShingleActivity,
}

/// What a shingled disk did with its persistent cache and its bands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShingleActivity {
    /// Records that were appended to the log.
    pub records: u64,
    /// Bands that were written as a whole with new data.
    pub bands_streamed: u64,
    /// Bands that were cleaned.
    pub bands_cleaned: u64,
    /// Bands of which the persistent cache has data now.
    pub bands_to_clean: u64,
    /// Bytes that cleaning read and wrote.
    pub bytes_moved: u64,
    /// Writes that found the cache full.
    pub full_stalls: u64,
    /// Time that writes waited because the cache was full.
    pub stalled: Nanos,
    /// The arm's time for cleaning.
    pub cleaning: ArmTime,
}

impl ShingleActivity {
    fn report(&self, into: &mut QuantityReport) {
        into.counter("records", self.records, "Records appended to the persistent cache").detail();
        into.counter("bands_streamed", self.bands_streamed, "Bands written as a whole with new data")
            .detail();
        into.counter("bands_cleaned", self.bands_cleaned, "Bands cleaned").detail();
        into.gauge("bands_to_clean", self.bands_to_clean, "Bands with data in the cache").detail();
        into.counter("bytes_moved", self.bytes_moved, "Bytes that cleaning read and wrote")
            .unit(QuantityUnit::Bytes)
            .detail();
        into.counter("full_stalls", self.full_stalls, "Writes that found the cache full").detail();
        into.counter("stalled_s", self.stalled, "Time that writes waited for room in the cache").detail();
        self.cleaning.report(into.group("cleaning_s"));
    }
}

/// Accesses that slow periods delayed, and the time that they lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowedAccesses {
    /// Number of such accesses.
    pub count: u64,
    /// The sum of the time that they lost.
    pub lost: Nanos,
}

impl SlowedAccesses {
    fn report(&self, into: &mut QuantityReport) {
        into.counter("accesses", self.count, "Accesses that slow periods delayed").detail();
        into.counter("lost_s", self.lost, "Time that they lost").detail();
    }

    /// Counts an access that lost this time; none if it is 0.
    pub(super) fn add(&mut self, lost: Nanos) {
        self.count += u64::from(lost > Nanos::ZERO);
        self.lost += lost;
    }
}

impl Activity {
    /// Adds what the device has counted, with its guard and the longest time that a command spent there, if known.
    pub fn report(&self, guard: Option<&Guard>, longest_command: Option<Nanos>, into: &mut QuantityReport) {
        into.counter("commands", self.ended(), "Commands that the device ended").detail();
        self.report_cache(into.group("cache"));
        self.seeks.report(into.group("seeks"));
        into.time_share("utilisation", self.busy(), "Share of the time in which the arm worked").detail();
        into.gauge("head_time_ms", self.head_time_ms(), "Mean time of an access").detail();
        into.group_of("guard", guard, Guard::report);
        let arm = into.group("arm_s");
        self.commands.report(arm.group("commands"));
        self.destages.report(arm.group("destages"));
        arm.counter("read_ahead", self.read_ahead, "The arm's time for read-ahead").detail();
        arm.counter("recalibration", self.recalibration, "The arm's time for recalibration").detail();
        let longest = into.gauge("longest_command_ms", longest_command, "Longest time of a command");
        longest.unit(QuantityUnit::Milliseconds).detail();
        let slowed = Some(self.slowed).filter(|slowed| slowed.count > 0);
        into.group_of("slowed", slowed, |slowed, into| slowed.report(into));
        let shingled = Some(self.shingled).filter(|shingled| *shingled != ShingleActivity::default());
        into.group_of("shingled", shingled, |shingled, into| shingled.report(into));
    }

    /// Adds the arm's time and the reads by use of the cache, for metrics.
    pub fn report_uses(&self, into: &mut QuantityReport) {
        into.counter("arm_busy_s", self.busy(), "The arm's time for commands and destages");
        // Only a write can be buffered, so the metric of reads leaves this use out.
        let reads = CacheUse::NAMES.into_iter().zip(self.reads).filter(|(name, _)| *name != "buffered");
        into.list("reads", reads, |(name, count), into| {
            into.fact("cache", name).label("cache");
            into.counter("reads", count, "Reads by how the cache served them");
        });
    }

    fn report_cache(&self, into: &mut QuantityReport) {
        let reads = |cache: CacheUse| self.reads[cache.index()];
        into.counter("read_hits", reads(CacheUse::Whole), "Reads that the cache served").detail();
        into.counter("read_joined", reads(CacheUse::Joined), "Reads that waited for read-ahead").detail();
        into.counter("read_part_hits", reads(CacheUse::Part), "Reads of which the cache had a part").detail();
        into.counter("read_misses", reads(CacheUse::Miss), "Reads from the media alone").detail();
        let share =
            into.share("read_hit_share", self.read_hit_share(), "Reads without an access of their own");
        share.detail();
        let writes = |cache: CacheUse| self.writes[cache.index()];
        into.counter("writes_buffered", writes(CacheUse::Buffered), "Writes acknowledged from the cache")
            .detail();
        into.counter("writes_through", writes(CacheUse::Miss), "Writes acknowledged from the media").detail();
    }

    /// Time that the arm was at work for commands, for destages and for cleaning bands.
    pub fn busy(&self) -> Nanos {
        self.commands.total() + self.destages.total() + self.shingled.cleaning.total()
    }

    /// Commands that the device ended.
    pub fn ended(&self) -> u64 {
        self.reads.iter().sum::<u64>() + self.writes.iter().sum::<u64>() + self.flushes
    }

    /// Mean time that an access of a command or a destage takes of the arm, in milliseconds; 0 where there was none.
    pub fn head_time_ms(&self) -> f64 {
        let accesses = self.commands.accesses + self.destages.accesses;
        let busy = self.commands.total() + self.destages.total();
        if accesses > 0 { busy.as_ms() / accesses as f64 } else { 0.0 }
    }

    /// Share of the reads that needed no access of their own; 0 where there were none.
    pub fn read_hit_share(&self) -> f64 {
        let hits = [CacheUse::Whole, CacheUse::Joined].map(|cache| self.reads[cache.index()]);
        let (hits, reads) = (hits.iter().sum::<u64>(), self.reads.iter().sum::<u64>());
        if reads > 0 { hits as f64 / reads as f64 } else { 0.0 }
    }

    pub(super) fn command(&mut self, span: &Span, travel: Travel) {
        self.commands.add(span);
        self.seeks.add(travel.distance());
    }

    /// Counts a seek to an edge of the disk without an access.
    pub(super) fn sweep_to_edge(&mut self, travel: Travel, took: Nanos) {
        self.commands.seek += took;
        self.seeks.add(travel.distance());
    }

    /// Counts a destage, after which the firmware keeps the arm for the time `extra`.
    pub(super) fn destage(&mut self, span: &Span, travel: Travel, extra: Nanos) {
        self.destages.add(span);
        self.destages.rotational_latency += extra;
        self.seeks.add(travel.distance());
    }

    /// Counts an access of cleaning that moves `bytes`.
    pub(super) fn clean(&mut self, span: &Span, bytes: u64) {
        self.shingled.cleaning.add(span);
        self.shingled.bytes_moved += bytes;
    }

    /// Counts a command that joined a read-ahead.
    pub(super) fn join(&mut self, span: &Span) {
        self.commands.add(span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seek_distance_classes_double_in_width() {
        let mut seeks = SeekDistances::default();
        [0, 1, 2, 3, 4, 7, 8, 0].into_iter().for_each(|distance| seeks.add(distance));
        assert_eq!(seeks.classes().collect::<Vec<_>>(), [(0, 2), (1, 1), (2, 2), (4, 2), (8, 1)]);
        assert_eq!((seeks.count(), seeks.none(), seeks.longest()), (8, 2, 8));
        assert_eq!(seeks.mean(), 25.0 / 8.0);
        seeks.add(u32::MAX);
        assert_eq!(seeks.classes().last(), Some((1 << 30, 1)));
        assert_eq!(SeekDistances::default().classes().count(), 0);
    }

    #[test]
    fn every_cache_use_is_named_as_listed() {
        let uses = [CacheUse::Miss, CacheUse::Part, CacheUse::Joined, CacheUse::Whole, CacheUse::Buffered];
        assert_eq!(uses.map(CacheUse::name), CacheUse::NAMES);
    }
}
