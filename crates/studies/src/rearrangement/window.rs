//! The window of measured requests: after the copies of the first period, and before those of the second.

use headstack_model::{Instant, Nanos};

/// Counts completions and tells which of them are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredWindow {
    /// Requests that the analyzer counts.
    counted: u64,
    from: u64,
    /// The last request that is measured.
    pub(super) to: u64,
    /// Requests completed.
    pub(super) met: u64,
    begin: Instant,
    end: Instant,
    /// When the last of the requests that the analyzer counts completed.
    pub(super) counted_s: f64,
}

impl MeasuredWindow {
    pub(super) fn new(counted: u64) -> MeasuredWindow {
        // Three tenths of the counted number of requests are left for copying.
        let (from, to) = (counted * 13 / 10, counted * 18 / 10);
        let (begin, end) = (Instant::ZERO, Instant::ZERO);
        MeasuredWindow { counted, from, to, met: 0, begin, end, counted_s: 0.0 }
    }

    /// Counts a completion. Returns whether it is measured.
    pub(super) fn note(&mut self, completed: Instant) -> bool {
        self.met += 1;
        if self.met == self.counted {
            self.counted_s = completed.since(Instant::ZERO).as_secs();
        }
        if self.met == self.from {
            self.begin = completed;
        }
        let is_measured = self.met > self.from && self.met <= self.to;
        if is_measured {
            self.end = completed;
        }
        is_measured
    }

    /// A sum over the measured requests, divided by their number.
    pub(super) fn mean_ms(&self, sum: Nanos) -> f64 {
        sum.as_ms() / (self.to - self.from) as f64
    }

    /// Mean time from one completion to the next.
    pub(super) fn io_ms(&self) -> f64 {
        self.mean_ms(self.end.since(self.begin))
    }
}
