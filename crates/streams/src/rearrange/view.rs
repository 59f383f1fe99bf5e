//! What the rearranger has done, for monitoring and results.

use headstack_model::{Instant, QuantityReport};
use std::collections::VecDeque;

/// Counts since the start, or in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RearrangeCounters {
    /// Reads and writes.
    pub requests: u64,
    /// Reads and writes that copies in the region served completely.
    pub hits: u64,
    /// References to blocks that were counted.
    pub references: u64,
    /// Blocks copied into the region.
    pub copied_in: u64,
    /// Written copies that were copied home.
    pub written_home: u64,
    /// Copies that left without a transfer because they were not written.
    pub left_clean: u64,
    /// Copies that a request made useless while they were in flight.
    pub spoiled: u64,
    /// Planned copies that were given up until the next period.
    pub abandoned: u64,
    /// Copies that a fault of the disk ended.
    pub failed: u64,
}

impl RearrangeCounters {
    /// The counts since an earlier state.
    pub fn since(&self, earlier: &RearrangeCounters) -> RearrangeCounters {
        RearrangeCounters {
            requests: self.requests - earlier.requests,
            hits: self.hits - earlier.hits,
            references: self.references - earlier.references,
            copied_in: self.copied_in - earlier.copied_in,
            written_home: self.written_home - earlier.written_home,
            left_clean: self.left_clean - earlier.left_clean,
            spoiled: self.spoiled - earlier.spoiled,
            abandoned: self.abandoned - earlier.abandoned,
            failed: self.failed - earlier.failed,
        }
    }

    /// Adds the counts.
    pub fn report(&self, into: &mut QuantityReport) {
        into.counter("requests", self.requests, "Requests that reached the disk")
            .detail()
            .metric("copy_requests");
        into.counter("hits", self.hits, "Requests that only copies served").detail().metric("copy_hits");
        into.share("hit_share", self.hit_share(), "Share of the requests that only copies served")
            .detail()
            .metric("copy_hit_share");
        into.counter("copied_in", self.copied_in, "Blocks copied to the region")
            .detail()
            .metric("blocks_copied_in");
        into.counter("written_home", self.written_home, "Written copies copied home")
            .detail()
            .metric("blocks_written_home");
        into.counter("left_clean", self.left_clean, "Copies that left unwritten").detail();
        into.counter("spoiled", self.spoiled, "Copies that a request made useless").detail();
        into.counter("abandoned", self.abandoned, "Copies given up until the next period").detail();
        into.counter("failed", self.failed, "Copies that a fault of the disk ended").detail();
    }

    /// Share of the requests that only copies served; 0 without requests.
    pub fn hit_share(&self) -> f64 {
        self.hits as f64 / self.requests.max(1) as f64
    }
}

/// A period that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeriodRecord {
    /// Its number, from 0 on.
    pub number: u64,
    /// When it ended.
    pub end: Instant,
    /// What happened in it.
    pub counters: RearrangeCounters,
    /// Hot blocks that were planned into the region at its end.
    pub hot_blocks: u32,
    /// Copies in the region at its end.
    pub copies: u32,
}

/// A snapshot of the rearranger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RearrangeView {
    /// Slots of the region.
    pub slots: u32,
    /// Copies in force.
    pub copies: u32,
    /// Copies in force that were written.
    pub dirty: u32,
    /// Copies out of the region that have not begun.
    pub pending_out: u32,
    /// Copies into the region that have not begun.
    pub pending_in: u32,
    /// Counters of blocks in use.
    pub block_counters: u32,
    /// Periods that have ended.
    pub periods: u64,
    /// Counts since the start.
    pub counters: RearrangeCounters,
}

impl RearrangeView {
    /// Adds the state of the copies. The key of written copies is `dirty` in a node and `dirty_copies` in results.
    pub fn report_state(&self, dirty: &'static str, into: &mut QuantityReport) {
        into.gauge("slots", self.slots, "Copies for which the region has room").detail().metric("copy_slots");
        into.gauge("copies", self.copies, "Blocks that have a copy in the region").detail().metric("copies");
        into.gauge(dirty, self.dirty, "Copies that are newer than their homes")
            .detail()
            .metric("copies_dirty");
    }
}

/// Periods whose records are kept.
const PERIODS_KEPT: usize = 1000;

/// The periods that have ended, and the counters at the start of the one that has not.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedPeriods {
    records: VecDeque<PeriodRecord>,
    ended: u64,
    start: RearrangeCounters,
}

impl EndedPeriods {
    pub(super) fn ended(&self) -> u64 {
        self.ended
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &PeriodRecord> {
        self.records.iter()
    }

    /// The counts of the current period, from the counters now.
    pub(super) fn counters_since(&self, now: &RearrangeCounters) -> RearrangeCounters {
        now.since(&self.start)
    }

    /// Ends the current period at a time, with the counters then.
    pub(super) fn end(&mut self, at: Instant, counters: &RearrangeCounters, hot_blocks: u32, copies: u32) {
        let own = self.counters_since(counters);
        if self.records.len() == PERIODS_KEPT {
            self.records.pop_front();
        }
        self.records.push_back(PeriodRecord {
            number: self.ended,
            end: at,
            counters: own,
            hot_blocks,
            copies,
        });
        self.ended += 1;
        self.start = *counters;
    }
}
