//! What the disk was measured to do, and the R, D and N that follow.
//!
//! A turn of `b p e / (1 - e)` bytes, where the disk transfers `b` bytes a second and needs `p` to get to a stream, reaches the
//! share `e` of its bandwidth. Of less than `b p` it would lose more than half (C. Li, K. Shen, A. Papathanasiou, "Competitive
//! prefetching for concurrent sequential I/O", EuroSys 2007): that is the floor.

use super::config::Config;
use headstack_model::Nanos;

/// Estimates that follow the disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Nanoseconds a byte.
    byte_ns: f64,
    positioning_ns: f64,
    /// When the last command ended, and where; whether it was a read of a stream.
    last: Option<(Nanos, u64)>,
}

/// A command of a stream that has ended.
pub(super) struct Sample {
    pub(super) issued: Nanos,
    pub(super) ended: Nanos,
    pub(super) place: u64,
    pub(super) bytes: u64,
    /// Whether nothing but the one before it can have kept the disk from it.
    pub(super) is_clean: bool,
}

/// How much a sample counts against those before.
const WEIGHT: f64 = 1.0 / 16.0;

impl Tuning {
    /// Before anything was measured: a drive of the 2000s.
    pub(super) fn new() -> Tuning {
        Tuning { byte_ns: 1e9 / 60e6, positioning_ns: 10e6, last: None }
    }

    /// Learns from a command.
    pub(super) fn learn(&mut self, sample: &Sample) {
        let Sample { issued, ended, place, bytes, is_clean } = *sample;
        let before = self.last.replace((ended, place + bytes)).filter(|_| is_clean);
        let Some((last, last_end)) = before else { return };
        let began = issued.max(last);
        let took = ended.since(began).0 as f64;
        if place == last_end && issued <= last {
            // It went on where the one before ended, and was there by then.
            self.byte_ns += (took / bytes as f64 - self.byte_ns) * WEIGHT;
        } else if place != last_end {
            let positioning = (took - bytes as f64 * self.byte_ns).max(0.0);
            self.positioning_ns += (positioning - self.positioning_ns) * WEIGHT;
        }
    }

    /// Something else kept the disk busy.
    pub(super) fn disturb(&mut self) {
        self.last = None;
    }

    /// Bytes a second.
    pub(super) fn bandwidth(&self) -> f64 {
        1e9 / self.byte_ns
    }

    /// What it takes to get to a stream.
    pub(super) fn positioning(&self) -> Nanos {
        Nanos(self.positioning_ns as u64)
    }

    /// Bytes of a turn, where so many streams want one.
    pub(super) fn turn_bytes(&self, config: &Config, streams: usize) -> u64 {
        let floor = self.positioning_ns / self.byte_ns;
        let wanted = floor * config.efficiency / (1.0 - config.efficiency);
        let round_ns = config.round_ms * 1e6 / streams.max(1) as f64;
        let longest = (round_ns - self.positioning_ns) / self.byte_ns;
        wanted.min(longest).max(floor) as u64
    }
}
