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
    byte_ns: Mean,
    positioning_ns: Mean,
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

/// A mean over all samples, and later over about so many: over more than a round of all streams, since the zones of a disk differ and
/// each is to have as much as another.
#[derive(Clone, Copy, Debug)]
struct Mean {
    value: f64,
    samples: f64,
    most: f64,
}

impl Mean {
    /// Before the first sample, which replaces it.
    fn guess(value: f64, most: f64) -> Mean {
        Mean { value, samples: 0.0, most }
    }

    fn add(&mut self, sample: f64) {
        self.samples = (self.samples + 1.0).min(self.most);
        self.value += (sample - self.value) / self.samples;
    }
}

impl Tuning {
    /// Before anything was measured: a drive of the 2000s.
    pub(super) fn new() -> Tuning {
        Tuning {
            byte_ns: Mean::guess(1e9 / 60e6, 8192.0),
            positioning_ns: Mean::guess(10e6, 512.0),
            last: None,
        }
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
            self.byte_ns.add(took / bytes as f64);
        } else if place != last_end {
            let positioning = (took - bytes as f64 * self.byte_ns.value).max(0.0);
            self.positioning_ns.add(positioning);
        }
    }

    /// Something else kept the disk busy.
    pub(super) fn disturb(&mut self) {
        self.last = None;
    }

    /// Bytes a second.
    pub(super) fn bandwidth(&self) -> f64 {
        1e9 / self.byte_ns.value
    }

    /// What it takes to get to a stream.
    pub(super) fn positioning(&self) -> Nanos {
        Nanos(self.positioning_ns.value as u64)
    }

    /// Bytes of a turn, where so many streams want one.
    pub(super) fn turn_bytes(&self, config: &Config, streams: usize) -> u64 {
        let (byte_ns, positioning_ns) = (self.byte_ns.value, self.positioning_ns.value);
        let floor = positioning_ns / byte_ns;
        let wanted = floor * config.efficiency / (1.0 - config.efficiency);
        let round_ns = config.round_ms * 1e6 / streams.max(1) as f64;
        let longest = (round_ns - positioning_ns) / byte_ns;
        wanted.min(longest).max(floor) as u64
    }
}
