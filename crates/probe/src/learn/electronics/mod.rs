//! A disk's electronics from the times of its answers: overheads, bus, cache, queue.
//!
//! If several settings give the same times, one of them is chosen, and the findings say how certain each key is.

mod bench;
mod cache;
mod overhead;
mod overtaking;
mod queue;
mod scene;
mod writes;

pub use queue::Rate;
pub use writes::FlushCost;

use crate::Disk;
use bench::{Bench, Hits, Kind};
use headstack_model::spec::{BusSpec, CacheSpec, OverheadSpec, QueueSpec, WriteCache, ZeroLatency};
use headstack_model::{DriveSpec, Nanos};
use headstack_tracks::TrackMap;

/// How certain a key's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingConfidence {
    /// The answers show it.
    Measured,
    /// The answers show a lower bound.
    LowerBound,
    /// The answers show an upper bound, or that more would make no difference.
    UpperBound,
    /// The answers do not show it: the value is the default.
    Default,
}

/// Time for which a sequential run keeps the arm. *Source:* assumption, as in the shipped classes of firmware.
const STREAM_HOLD_MS: f64 = 8.0;

/// The confidence of each key that was tested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    found: Vec<(&'static str, FindingConfidence)>,
}

impl Findings {
    pub(super) fn add(&mut self, key: &'static str, sure: FindingConfidence) {
        self.found.retain(|(other, _)| *other != key);
        self.found.push((key, sure));
    }

    /// Adds a key as measured or, failing that, with the other confidence.
    pub(super) fn add_if(&mut self, is_measured: bool, key: &'static str, otherwise: FindingConfidence) {
        self.add(key, if is_measured { FindingConfidence::Measured } else { otherwise });
    }

    /// All keys, in the order in which they were learned.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, FindingConfidence)> {
        self.found.iter().copied()
    }

    /// The confidence of a key; [`FindingConfidence::Default`] if it was not tested.
    pub fn confidence_of(&self, key: &str) -> FindingConfidence {
        self.found
            .iter()
            .find(|(other, _)| *other == key)
            .map_or(FindingConfidence::Default, |(_, sure)| *sure)
    }
}

/// The learned electronics.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LearnedElectronics {
    pub overhead: OverheadSpec,
    pub bus: BusSpec,
    pub cache: CacheSpec,
    pub queue: QueueSpec,
    pub zero_latency_read: ZeroLatency,
    pub zero_latency_write: ZeroLatency,
    /// The wait of a write on the head's track beyond its overhead: for its data, or for a shortest seek. Seeks of writes that were measured
    /// relative to such a write are longer by this time.
    pub write_wait: Nanos,
    pub flushes: Vec<FlushCost>,
    /// Rates of random reads.
    pub rates: Vec<Rate>,
    pub findings: Findings,
    pub probes: u64,
}

impl LearnedElectronics {
    /// Replaces the electronics of a drive file by the learned ones.
    pub fn put_into(&self, spec: &mut DriveSpec) {
        spec.overhead = self.overhead.clone();
        spec.bus = self.bus.clone();
        spec.cache = self.cache.clone();
        spec.queue = self.queue.clone();
        spec.mechanics.zero_latency_read = self.zero_latency_read;
        spec.mechanics.zero_latency_write = self.zero_latency_write;
    }
}

/// Why electronics could not be learned.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LearnError {
    #[error(
        "reads of one block do not end in step with turns of {0} ms: the period differs, or a cache that cannot be bypassed answers"
    )]
    OutOfStep(f64),
    #[error("overheads, cache and queue are learned on disks of {needed} tracks or more; this has {tracks}")]
    TooFewTracks { tracks: u64, needed: u64 },
}

/// Minimum number of tracks: writes lie on 64 consecutive ones, and others far from them.
const LEAST_TRACKS: u64 = 100;

/// Learns a disk's electronics, given its tracks (a part of them suffices) and the time of a turn in nanoseconds.
///
/// *Errors:* a disk whose answers show no rotation, and one with few tracks.
pub async fn electronics(disk: Disk, map: TrackMap, turn_ns: f64) -> Result<LearnedElectronics, LearnError> {
    if map.tracks() < LEAST_TRACKS {
        return Err(LearnError::TooFewTracks { tracks: map.tracks(), needed: LEAST_TRACKS });
    }
    let bench = Bench::new(disk, map, turn_ns);
    let mut findings = Findings::default();
    bench.disk().report_progress("overheads", 0.0);
    let hits = overhead::hits(&bench).await;
    let learned = overhead::learn(&bench, hits.as_ref(), &mut findings).await;
    let (overhead, mut bus, write_wait) = learned.ok_or(LearnError::OutOfStep(turn_ns / 1e6))?;
    bench.disk().report_progress("access on arrival", 0.0);
    let zero_latency_read = overhead::zero_latency(&bench, Kind::Read).await;
    findings.add("mechanics.zero_latency_read", FindingConfidence::Measured);
    let zero_latency_write = if bench.disk().info().may_write {
        overhead::zero_latency(&bench, Kind::Write).await
    } else {
        zero_latency_read
    };
    findings.add_if(
        bench.disk().info().may_write,
        "mechanics.zero_latency_write",
        FindingConfidence::Default,
    );
    let mut cache = cache::learn(&bench, hits.as_ref(), &mut findings).await;
    let mut flushes = Vec::new();
    if bench.disk().info().may_write {
        let after_write = (overhead.after_write.read_hit_ms + overhead.read_completion_ms) * 1e6;
        let hits = hits.map(|hits| Hits { base: after_write, ..hits });
        flushes = writes::learn(&bench, hits.as_ref(), &mut cache, &mut bus, &mut findings).await;
    } else {
        findings.add("cache.write_cache", FindingConfidence::Default);
    }
    let (mut queue, rates) = queue::learn(&bench, &mut findings).await;
    // Drives that cache all writes prefer sequential runs, and destage in pieces; neither is measured.
    if cache.write_cache == WriteCache::Full {
        queue.stream_hold_ms = Some(STREAM_HOLD_MS);
        findings.add("queue.stream_hold_ms", FindingConfidence::Default);
        findings.add("cache.destage_piece_sectors", FindingConfidence::Default);
    }
    let probes = bench.probes();
    Ok(LearnedElectronics {
        overhead,
        bus,
        cache,
        queue,
        zero_latency_read,
        zero_latency_write,
        write_wait,
        flushes,
        rates,
        findings,
        probes,
    })
}
