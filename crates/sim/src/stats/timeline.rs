//! Counts over time in a fixed number of bins, whose width doubles when the run outgrows them.

use headstack_model::{Instant, Nanos, Op};

const BINS: usize = 512;

const FIRST_WIDTH: Nanos = Nanos(1_000_000);

/// The counts of a span of time: what completed in it, and how many requests were outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Bin {
    pub reads: u64,
    pub writes: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Sum of the response times of all that completed, in nanoseconds.
    pub response_ns: u128,
    /// Integral of the number of outstanding requests over time, in request-nanoseconds.
    pub depth_ns: u128,
}

impl Bin {
    /// The sum of bins.
    pub fn sum(bins: &[Bin]) -> Bin {
        let mut sum = Bin::default();
        bins.iter().for_each(|bin| sum.join(bin));
        sum
    }

    fn join(&mut self, next: &Bin) {
        self.reads += next.reads;
        self.writes += next.writes;
        self.read_bytes += next.read_bytes;
        self.written_bytes += next.written_bytes;
        self.response_ns += next.response_ns;
        self.depth_ns += next.depth_ns;
    }
}

/// Bins over the time of a run, in constant memory.
#[derive(Clone, Debug)]
pub struct Timeline {
    width: Nanos,
    bins: Vec<Bin>,
    outstanding: u64,
    /// Time up to which the outstanding requests are counted.
    counted: Instant,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline {
            width: FIRST_WIDTH,
            bins: vec![Bin::default(); BINS],
            outstanding: 0,
            counted: Instant::ZERO,
        }
    }
}

impl Timeline {
    /// Records that a request was issued at `now`. Times must not decrease.
    #[inline]
    pub fn issued(&mut self, now: Instant) {
        self.count_outstanding(now);
        self.outstanding += 1;
    }

    /// Records that a request completed at `now`.
    #[inline]
    pub fn completed(&mut self, now: Instant, op: Op, bytes: u64, response: Nanos) {
        self.count_outstanding(now);
        self.outstanding = self.outstanding.saturating_sub(1);
        let bin = self.bin(now);
        bin.response_ns += u128::from(response.0);
        match op {
            Op::Read => (bin.reads, bin.read_bytes) = (bin.reads + 1, bin.read_bytes + bytes),
            Op::Write => (bin.writes, bin.written_bytes) = (bin.writes + 1, bin.written_bytes + bytes),
            Op::Flush => {}
        }
    }

    #[inline]
    fn count_outstanding(&mut self, now: Instant) {
        while self.counted < now {
            let width = self.width.0;
            let from = self.counted;
            let end = Instant((from.0 / width).saturating_add(1).saturating_mul(width)).min(now);
            let depth = u128::from(self.outstanding);
            self.bin(from).depth_ns += depth * u128::from((end - from).0);
            self.counted = end;
        }
    }

    /// The bin of a time; the bins are widened if they end before it.
    #[inline]
    fn bin(&mut self, at: Instant) -> &mut Bin {
        while at.0 / self.width.0 >= BINS as u64 {
            self.widen();
        }
        &mut self.bins[(at.0 / self.width.0) as usize]
    }

    fn widen(&mut self) {
        for index in 0..BINS / 2 {
            let mut joined = self.bins[2 * index];
            joined.join(&self.bins[2 * index + 1]);
            self.bins[index] = joined;
        }
        self.bins[BINS / 2..].fill(Bin::default());
        self.width = Nanos(self.width.0 * 2);
    }

    /// The width of a bin.
    pub fn width(&self) -> Nanos {
        self.width
    }

    /// The bins from time 0 up to the last recorded event.
    pub fn bins(&self) -> &[Bin] {
        let used = self.bins.iter().rposition(|bin| *bin != Bin::default()).map_or(0, |last| last + 1);
        &self.bins[..used]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bins_widen_with_run_length() {
        let mut line = Timeline::default();
        for step in 0..100_000u64 {
            let now = Instant(step * 1_000_000);
            line.issued(now);
            line.completed(now + Nanos(500_000), Op::Read, 4096, Nanos(500_000));
        }
        assert_eq!(line.width(), Nanos(256_000_000));
        assert_eq!(line.bins().len(), 391);
        assert_eq!(line.bins()[7].reads, 256);
        assert_eq!(line.bins()[7].depth_ns, 256 * 500_000);
        assert_eq!(line.bins().iter().map(|bin| bin.reads).sum::<u64>(), 100_000);
    }

    #[test]
    fn single_long_request_stays_within_the_bin_limit() {
        let mut line = Timeline::default();
        line.issued(Instant::ZERO);
        line.completed(Instant::from_secs(100 * 86_400), Op::Write, 512, Nanos::from_secs(100 * 86_400));
        let total: u128 = line.bins().iter().map(|bin| bin.depth_ns).sum();
        assert_eq!(total, u128::from(Nanos::from_secs(100 * 86_400).0));
        assert!(line.bins().len() <= BINS);
    }

    proptest! {
        #[test]
        fn bins_account_for_every_request_at_any_time(gaps in prop::collection::vec((0..1u64 << 32, 0..3u8), 1..300)) {
            let (mut line, mut now, mut area, mut out) = (Timeline::default(), 0u64, 0u128, 0u128);
            let mut done = 0;
            for (gap, kind) in gaps {
                now += gap;
                area += out * u128::from(gap);
                if kind > 0 {
                    line.issued(Instant(now));
                    out += 1;
                } else if out > 0 {
                    line.completed(Instant(now), Op::Write, 512, Nanos(7));
                    (out, done) = (out - 1, done + 1);
                } else {
                    line.count_outstanding(Instant(now));
                }
            }
            prop_assert_eq!(line.bins().iter().map(|bin| bin.depth_ns).sum::<u128>(), area);
            prop_assert_eq!(line.bins().iter().map(|bin| bin.writes).sum::<u64>(), done);
            prop_assert_eq!(line.bins().iter().map(|bin| bin.written_bytes).sum::<u64>(), done * 512);
        }
    }
}
