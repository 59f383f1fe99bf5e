//! Measures the disk's bandwidth and positioning time, from which N follows.
//!
//! The disk transfers `b` bytes a second and needs `p` to position to a stream. A turn of `b p e / (1 - e)` bytes then reaches the
//! share `e` of its bandwidth. A turn of less than `b p` would lose more than half (C. Li, K. Shen, A. Papathanasiou, "Competitive
//! prefetching for concurrent sequential I/O", EuroSys 2007): that is the lower bound.

use super::config::Config;
use headstack_model::{Instant, Nanos};

/// Commands of a turn after which the disk has caught up: while the first of them passed through the host, the disk read ahead, so that
/// the next ones complete faster than the media transfer.
const CATCHES_UP: u32 = 4;

/// Samples that suffice for an estimate.
const ENOUGH: f64 = 16.0;

#[derive(Clone, Copy, Debug)]
pub(super) struct Tuning {
    /// Nanoseconds per byte of commands that continued where the last one ended: of all, and of those after the disk had caught up.
    byte_ns: Mean,
    settled_byte_ns: Mean,
    positioning_ns: Mean,
    last: Option<(Instant, u64)>,
    /// The commands since the last seek.
    turn: Option<Turn>,
    /// The share of the bandwidth and the longest round that turns aim at.
    efficiency: f64,
    round_ns: f64,
}

/// A command that needed a seek, and the commands that continued it.
#[derive(Clone, Copy, Debug)]
struct Turn {
    took_ns: f64,
    bytes: u64,
    commands: u32,
    /// The part of the commands after the disk had caught up.
    settled_ns: f64,
    settled_bytes: u64,
}

pub(super) struct Sample {
    pub(super) issued: Instant,
    pub(super) ended: Instant,
    pub(super) place: u64,
    pub(super) bytes: u64,
    /// Whether nothing but the command before it can have delayed it at the disk.
    pub(super) is_clean: bool,
}

/// A mean over all samples, and later over about the last `most`: over more than a round of all streams, because zones differ in
/// bandwidth and streams are to get equal shares.
#[derive(Clone, Copy, Debug)]
struct Mean {
    value: f64,
    samples: f64,
    most: f64,
}

impl Mean {
    /// A mean before the first sample, which replaces this value.
    fn guess(value: f64, most: f64) -> Mean {
        Mean { value, samples: 0.0, most }
    }

    fn add(&mut self, sample: f64) {
        self.samples = (self.samples + 1.0).min(self.most);
        self.value += (sample - self.value) / self.samples;
    }
}

impl Tuning {
    /// The values before anything was measured: those of a drive of the 2000s.
    pub(super) fn new(config: &Config) -> Tuning {
        Tuning {
            byte_ns: Mean::guess(1e9 / 60e6, 8192.0),
            settled_byte_ns: Mean::guess(0.0, 8192.0),
            positioning_ns: Mean::guess(10e6, 512.0),
            last: None,
            turn: None,
            efficiency: config.efficiency,
            round_ns: config.round_ms * 1e6,
        }
    }

    pub(super) fn learn(&mut self, sample: &Sample) {
        let Sample { issued, ended, place, bytes, is_clean } = *sample;
        let before = self.last.replace((ended, place + bytes)).filter(|_| is_clean);
        let Some((last, last_end)) = before else {
            self.turn = None;
            return;
        };
        let took_ns = ended.since(issued.max(last)).0 as f64;
        if place != last_end {
            self.finish_turn();
            let (commands, settled_ns, settled_bytes) = (1, 0.0, 0);
            self.turn = Some(Turn { took_ns, bytes, commands, settled_ns, settled_bytes });
            return;
        }
        // Whether the command was at the disk before the one before ended.
        let is_on_time = issued <= last;
        let mut is_settled = false;
        if let Some(turn) = &mut self.turn {
            turn.commands += 1;
            (turn.took_ns, turn.bytes) = (turn.took_ns + took_ns, turn.bytes + bytes);
            is_settled = is_on_time && turn.commands > CATCHES_UP;
            if is_settled {
                (turn.settled_ns, turn.settled_bytes) =
                    (turn.settled_ns + took_ns, turn.settled_bytes + bytes);
            }
        }
        if is_on_time {
            self.byte_ns.add(took_ns / bytes as f64);
        }
        if is_settled {
            self.settled_byte_ns.add(took_ns / bytes as f64);
        }
    }

    /// Computes the positioning time: what a turn took beyond the transfer of its bytes. The transfer is assumed as fast as in the rest of the
    /// turn, where that is known: zones of a disk differ by more than the positioning time.
    fn finish_turn(&mut self) {
        let Some(turn) = self.turn.take() else { return };
        let is_long = turn.settled_bytes * 2 >= turn.bytes;
        let byte_ns = if is_long { turn.settled_ns / turn.settled_bytes as f64 } else { self.byte_ns() };
        self.positioning_ns.add((turn.took_ns - turn.bytes as f64 * byte_ns).max(0.0));
    }

    fn byte_ns(&self) -> f64 {
        let is_settled = self.settled_byte_ns.samples >= ENOUGH;
        if is_settled { self.settled_byte_ns.value } else { self.byte_ns.value }
    }

    /// Commands measured that continued where the last one ended.
    pub(super) fn samples(&self) -> f64 {
        self.byte_ns.samples
    }

    /// Discards the current measurement because another request used the disk.
    pub(super) fn disturb(&mut self) {
        (self.last, self.turn) = (None, None);
    }

    /// The bandwidth in bytes per second.
    pub(super) fn bandwidth(&self) -> f64 {
        1e9 / self.byte_ns()
    }

    pub(super) fn positioning(&self) -> Nanos {
        Nanos(self.positioning_ns.value as u64)
    }

    /// Bytes of a turn when this number of streams wants one.
    pub(super) fn turn_bytes(&self, streams: usize) -> u64 {
        let (byte_ns, positioning_ns) = (self.byte_ns(), self.positioning_ns.value);
        let floor = positioning_ns / byte_ns;
        let wanted = floor * self.efficiency / (1.0 - self.efficiency);
        let round_ns = self.round_ns / streams.max(1) as f64;
        let longest = (round_ns - positioning_ns) / byte_ns;
        wanted.min(longest).max(floor) as u64
    }
}
