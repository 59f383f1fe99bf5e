//! Cleaning a band: read, merge, save to the scratch area, write over the band.

use super::extents::CachedExtent;
use super::layout::ShingleLayout;
use super::messages::{CleaningStep, ScratchHeader};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CleaningPhase {
    ReadBand,
    ReadLog,
    WriteScratch,
    Commit,
    ReadScratch,
    WriteBand,
}

/// The next action of a cleaning.
pub(super) enum CleaningPlan {
    Step(CleaningStep),
    /// The record that the band is clean.
    Done(ScratchHeader),
}

/// The band that is being cleaned.
#[derive(Clone, Debug)]
pub(super) struct BandCleaning {
    header: ScratchHeader,
    /// First block of the band, and of what is cleaned of it: a write damages only the tracks behind it.
    first: u64,
    from: u64,
    end: u64,
    /// Its cached extents, in the order of their places.
    cached: Vec<CachedExtent>,
    phase: CleaningPhase,
    /// Block, or index of the extent, with which the phase continues.
    next: u64,
}

impl BandCleaning {
    /// *Shapes:* `cached` are all extents of the band that the map has, in the order of the blocks.
    pub(super) fn new(
        layout: &ShingleLayout,
        header: ScratchHeader,
        mut cached: Vec<CachedExtent>,
    ) -> BandCleaning {
        let (first, end) = layout.band(header.band);
        let from = header.from;
        let sectors: u64 = cached.iter().map(|extent| extent.sectors).sum();
        cached.sort_unstable_by_key(|extent| extent.place);
        // No old data are left where all blocks from the first one on are in the cache.
        let (phase, next) =
            if sectors == end - from { (CleaningPhase::ReadLog, 0) } else { (CleaningPhase::ReadBand, from) };
        BandCleaning { header, first, from, end, cached, phase, next }
    }

    /// The scratch area has the merged band already; the buffer has nothing.
    pub(super) fn from_scratch(layout: &ShingleLayout, header: ScratchHeader) -> BandCleaning {
        let (first, end) = layout.band(header.band);
        BandCleaning {
            header,
            first,
            from: header.from,
            end,
            cached: Vec::new(),
            phase: CleaningPhase::ReadScratch,
            next: header.from,
        }
    }

    pub(super) fn band(&self) -> u64 {
        self.header.band
    }

    /// The cleaned blocks of the band while they are to be read from the scratch area.
    pub(super) fn scratch_band(&self) -> Option<(u64, u64)> {
        matches!(self.phase, CleaningPhase::ReadScratch | CleaningPhase::WriteBand)
            .then_some((self.from, self.end))
    }

    /// The next step, which moves at most `most` sectors.
    pub(super) fn next_step(&mut self, layout: &ShingleLayout, most: u64) -> CleaningPlan {
        if self.phase == CleaningPhase::ReadLog {
            if let Some(extent) = self.cached.get(self.next as usize) {
                self.next += 1;
                let CachedExtent { lbn, sectors, place, .. } = *extent;
                return CleaningPlan::Step(CleaningStep::ReadLog { place, lbn, sectors });
            }
            (self.phase, self.next) = (CleaningPhase::WriteScratch, self.from);
        }
        if self.phase == CleaningPhase::Commit {
            (self.phase, self.next) = (CleaningPhase::WriteBand, self.from);
            return CleaningPlan::Step(CleaningStep::CommitScratch(self.header));
        }
        if self.next == self.end {
            return CleaningPlan::Done(self.header);
        }
        let lbn = self.next;
        let sectors = most.min(self.end - lbn);
        let place = layout.scratch_first() + (lbn - self.first);
        let step = match self.phase {
            CleaningPhase::ReadBand => CleaningStep::ReadBand { lbn, sectors },
            CleaningPhase::ReadScratch => CleaningStep::ReadScratch { place, lbn, sectors },
            CleaningPhase::WriteBand => CleaningStep::WriteBand { lbn, sectors },
            CleaningPhase::WriteScratch | CleaningPhase::ReadLog | CleaningPhase::Commit => {
                CleaningStep::WriteScratch { place, lbn, sectors }
            }
        };
        self.next += sectors;
        if self.next == self.end {
            self.enter_next_phase();
        }
        CleaningPlan::Step(step)
    }

    /// Enters the next phase after the last block of this one.
    fn enter_next_phase(&mut self) {
        (self.phase, self.next) = match self.phase {
            CleaningPhase::ReadBand => (CleaningPhase::ReadLog, 0),
            CleaningPhase::WriteScratch => (CleaningPhase::Commit, 0),
            CleaningPhase::ReadScratch => (CleaningPhase::WriteBand, self.from),
            CleaningPhase::WriteBand | CleaningPhase::ReadLog | CleaningPhase::Commit => {
                (self.phase, self.next)
            }
        };
    }
}
