//! Number of requests outstanding over time, for traces with response times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headstack_model::{Instant, Nanos};

use super::bins::Bins;

/// Largest number of outstanding requests; beyond it the first completions are counted early.
const MOST: usize = 1 << 20;
pub(super) const TIME_BIN: u64 = 1_000_000;

#[derive(Debug)]
pub(super) struct Depth {
    completions: BinaryHeap<Reverse<Instant>>,
    now: Instant,
    most: usize,
    /// Integral of the depth over time.
    over_time: Bins,
    area: f64,
    busy: f64,
}

impl Depth {
    pub(super) fn new() -> Depth {
        Depth {
            completions: BinaryHeap::new(),
            now: Instant::ZERO,
            most: 0,
            over_time: Bins::new(TIME_BIN),
            area: 0.0,
            busy: 0.0,
        }
    }

    /// Records a request that is issued at `time`, counted from the first one, with this response time.
    pub(super) fn observe(&mut self, time: Instant, response: Nanos) {
        while let Some(Reverse(completed)) = self.completions.peek().copied() {
            if completed > time && self.completions.len() < MOST {
                break;
            }
            self.advance(completed);
            self.completions.pop();
        }
        self.advance(time);
        self.completions.push(Reverse(time.saturating_add(response)));
        self.most = self.most.max(self.completions.len());
    }

    fn advance(&mut self, to: Instant) {
        let depth = self.completions.len() as f64;
        if to > self.now {
            self.over_time.add_span(self.now.0, to.0, depth);
            let span = (to - self.now).0 as f64;
            self.area += depth * span;
            self.busy += if depth > 0.0 { span } else { 0.0 };
            self.now = to;
        }
    }

    pub(super) fn finish(&mut self) {
        while let Some(Reverse(completed)) = self.completions.peek().copied() {
            self.advance(completed);
            self.completions.pop();
        }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The mean over all time, over the time in which any is outstanding, and the share of that time.
    pub(super) fn means(&self) -> (f64, f64, f64) {
        let ratio = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
        let all = self.now.0 as f64;
        (ratio(self.area, all), ratio(self.area, self.busy), ratio(self.busy, all))
    }

    pub(super) fn over_time(&self) -> Vec<(Instant, f64)> {
        let width = self.over_time.width();
        let mean = |(bin, sum): (usize, &f64)| (Instant(bin as u64 * width), sum / width as f64);
        self.over_time.sums().iter().enumerate().map(mean).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queue_depth_is_averaged_over_time() {
        let mut depth = Depth::new();
        let (at, ms) = (|ms: u64| Instant(ms * 1_000_000), |ms: u64| Nanos(ms * 1_000_000));
        depth.observe(at(0), ms(4));
        depth.observe(at(2), ms(4));
        depth.observe(at(8), ms(2));
        depth.finish();
        assert_eq!(depth.most(), 2);
        let (mean, busy, share) = depth.means();
        assert_eq!((mean, busy, share), (1.0, 1.25, 0.8));
        let means: Vec<f64> = depth.over_time().into_iter().map(|(_, mean)| mean).collect();
        assert_eq!(means, [1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]);
    }
}
