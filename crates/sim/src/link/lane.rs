//! The capacity of a link over time, and the part of it that is reserved.
//!
//! A transfer is a flow: its source delivers it at an even rate, and it gets the capacity that earlier flows leave. A flow that
//! fell behind its source catches up as fast as capacity allows. So transfers interleave, and each one's end is known when it
//! begins. A later flow does not slow an earlier one; hardware that interleaves frame by frame ends both at the later of the two
//! ends instead, and the last of all at the same time as here.

use headstack_model::{Instant, Nanos};
use std::collections::VecDeque;

/// Nanoseconds in a second: amounts are counted in 10⁻⁹ of a unit, so that a rate times a time in ns is an amount.
const NANO: u128 = 1_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// When its first unit arrives.
    pub(crate) begins: Instant,
    /// Time over which its source delivers it; the flow does not end before that.
    pub(crate) least: Nanos,
    pub(crate) units: u64,
}

/// From a time on, until the next step, this much of the rate is reserved.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: Instant,
    used: u64,
}

#[derive(Clone, Copy, Debug)]
struct Taken {
    from: Instant,
    to: Instant,
    rate: u64,
}

/// A rate that flows share.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    /// Units a second.
    rate: u64,
    /// In order of time; before the first step and from the last one on nothing is reserved.
    steps: VecDeque<Step>,
    taken: Vec<Taken>,
    /// Units that have crossed or are reserved.
    units: u64,
}

impl Lane {
    /// A lane of `rate` units a second, at least one.
    pub(crate) fn new(rate: u64) -> Lane {
        Lane { rate: rate.max(1), steps: VecDeque::new(), taken: Vec::new(), units: 0 }
    }

    /// Time that all its flows would take one after the other.
    pub(crate) fn busy(&self) -> Nanos {
        Nanos((u128::from(self.units) * NANO / u128::from(self.rate)) as u64)
    }

    /// The end of a flow if it were added.
    pub(crate) fn predict_end(&self, flow: Flow) -> Instant {
        self.walk(flow, |_| {})
    }

    /// Adds a flow; returns its end. No later flow begins before `now`.
    pub(crate) fn take(&mut self, now: Instant, flow: Flow) -> Instant {
        while self.steps.get(1).is_some_and(|next| next.from <= now) {
            self.steps.pop_front();
        }
        let mut taken = std::mem::take(&mut self.taken);
        let end = self.walk(flow, |part| taken.push(part));
        for Taken { from, to, rate } in taken.drain(..) {
            let (first, last) = (self.step_at(from), self.step_at(to));
            self.steps.range_mut(first..last).for_each(|step| step.used += rate);
        }
        self.taken = taken;
        self.units += flow.units;
        end
    }

    /// Index of the step that begins at a time, created if there is none.
    fn step_at(&mut self, at: Instant) -> usize {
        let index = self.steps.partition_point(|step| step.from < at);
        if self.steps.get(index).is_none_or(|step| step.from != at) {
            let used = index.checked_sub(1).map_or(0, |before| self.steps[before].used);
            self.steps.insert(index, Step { from: at, used });
        }
        index
    }

    /// Calls `take` with the rate left for a flow, part by part, up to its end.
    fn walk(&self, flow: Flow, mut take: impl FnMut(Taken)) -> Instant {
        let amount = u128::from(flow.units) * NANO;
        let pace = match flow.least.0 {
            0 => u128::from(self.rate),
            least => amount.div_ceil(u128::from(least)),
        };
        // The amount still to arrive from the source, and the amount that has arrived and waits.
        let (mut coming, mut behind) = if pace >= u128::from(self.rate) { (0, amount) } else { (amount, 0) };
        let mut index = self.steps.partition_point(|step| step.from <= flow.begins);
        let mut now = flow.begins;
        while coming + behind > 0 {
            let used = index.checked_sub(1).map_or(0, |before| self.steps[before].used);
            let free = u128::from(self.rate - used);
            let inflow = if coming > 0 { pace } else { 0 };
            let rate = if behind > 0 { free } else { free.min(inflow) };
            let until = self.steps.get(index).map_or(Instant::MAX, |next| next.from);
            let mut time = u128::from((until - now).0);
            if coming > 0 {
                time = time.min(coming.div_ceil(pace));
            }
            if behind > 0 && rate > inflow {
                time = time.min(behind.div_ceil(rate - inflow));
            }
            let to = now + Nanos(time as u64);
            let arrived = coming.min(inflow * time);
            coming -= arrived;
            behind = (behind + arrived).saturating_sub(rate * time);
            if rate > 0 {
                take(Taken { from: now, to, rate: rate as u64 });
            }
            now = to;
            index += usize::from(now == until);
        }
        now.max(flow.begins + flow.least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte a nanosecond.
    const RATE: u64 = 1_000_000_000;

    fn flow(begins: u64, least: u64, units: u64) -> Flow {
        Flow { begins: Instant(begins), least: Nanos(least), units }
    }

    #[test]
    fn lone_flow_runs_at_the_slower_of_source_and_lane_rate() {
        let mut lane = Lane::new(RATE);
        assert_eq!(lane.take(Instant(0), flow(100, 0, 50)), Instant(150));
        assert_eq!(lane.take(Instant(0), flow(200, 30, 50)), Instant(250));
        assert_eq!(lane.take(Instant(0), flow(300, 500, 50)), Instant(800));
        assert_eq!(lane.take(Instant(0), flow(900, 7, 0)), Instant(907));
        assert_eq!(lane.busy(), Nanos(150));
    }

    #[test]
    fn slow_flows_share_the_lane_without_delay() {
        let mut lane = Lane::new(RATE);
        for _ in 0..4 {
            assert_eq!(lane.take(Instant(0), flow(0, 400, 100)), Instant(400));
        }
        assert_eq!(lane.take(Instant(0), flow(0, 0, 10)), Instant(410));
    }

    #[test]
    fn delayed_flow_catches_up_at_the_lane_rate() {
        let mut lane = Lane::new(RATE);
        lane.take(Instant(0), flow(0, 0, 100));
        // Half of it has arrived when the lane becomes free; the rest arrives meanwhile.
        assert_eq!(lane.predict_end(flow(0, 200, 100)), Instant(200));
        // All but a tenth of it has arrived: it ends like one that was there from the beginning.
        assert_eq!(lane.predict_end(flow(0, 110, 100)), Instant(200));
        lane.take(Instant(0), flow(0, 200, 100));
        assert_eq!(lane.predict_end(flow(50, 0, 10)), Instant(210));
    }

    #[test]
    fn gap_before_a_later_flow_is_used() {
        let mut lane = Lane::new(RATE);
        lane.take(Instant(0), flow(1000, 0, 500));
        assert_eq!(lane.take(Instant(0), flow(900, 0, 150)), Instant(1550));
        assert_eq!(lane.take(Instant(1600), flow(1600, 0, 5)), Instant(1605));
        assert!(lane.steps.len() <= 3, "what is past is forgotten: {:?}", lane.steps);
    }

    #[test]
    fn lane_rate_is_neither_exceeded_nor_wasted() {
        let mut lane = Lane::new(RATE / 7);
        let (mut sum, mut first, mut last) = (0, u64::MAX, 0);
        for index in 0..200u64 {
            let begins = index * 37 % 5000;
            let units = 1 + index * 7919 % 300;
            let end = lane.take(Instant(0), flow(begins, index * 31 % 900, units)).0;
            assert!(end - begins >= units * 7, "{index}: {begins} to {end}");
            (sum, first, last) = (sum + units, first.min(begins), last.max(end));
            assert!(lane.steps.iter().all(|step| step.used <= lane.rate));
        }
        // It never idles while something waits: all flows begin early, so its end is known up to rounding.
        let least = sum * 7;
        assert!((least..=least + 400).contains(&(last - first)), "{first} to {last} for {least}");
    }
}
