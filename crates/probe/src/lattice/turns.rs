//! Finds the end of a track by the turn that is lost there, where there is no skew that angles would show.
//!
//! Where a track begins at the angle at which the one before ends, angles run on as if there were one track. But no head is on
//! another track at once: who reads the last sector of the one and the first of the other together waits a turn for the second.
//! A read of a sector just after them, sent just before, gives the time from which the turns of such a read are counted.

use super::LatticeError;
use super::pattern::wrap;
use super::prober::{Prober, REMEMBERED};
use super::reader::Reader;
use super::walk::Walk;
use std::ops::RangeInclusive;

/// Sectors between the sectors read and the one read just before.
const AHEAD_SECTORS: u64 = 2;
/// Turns that such a read takes at most if none is lost, and if one is. Other answers are late.
const KEPT: f64 = 1.3;
const LOST: RangeInclusive<f64> = 1.7..=2.3;
/// Reads that may be late.
const TRIES: usize = 6;

impl Prober {
    /// Whether a track ends before a sector, by lost turns; `None` if they are inconclusive. The expected result is believed at once.
    pub(super) async fn loses_turn(
        &mut self,
        sector: u64,
        expected: Option<bool>,
    ) -> Result<Option<bool>, LatticeError> {
        if let Some(known) = self.turned.get(&sector) {
            return Ok(Some(*known));
        }
        let reported = self.loses_turn_within(sector - 1, sector, expected).await?;
        if self.turned.len() >= REMEMBERED {
            self.turned.clear();
        }
        if let Some(reported) = reported {
            self.turned.insert(sector, reported);
        }
        Ok(reported)
    }

    /// Whether a track ends between two sectors that are less than half a track apart, so that the disk is ready when the first arrives.
    pub(super) async fn loses_turn_within(
        &mut self,
        first: u64,
        last: u64,
        expected: Option<bool>,
    ) -> Result<Option<bool>, LatticeError> {
        let behind = last + AHEAD_SECTORS;
        if behind >= self.sectors {
            return Ok(None);
        }
        let mut reported = Vec::new();
        for _ in 0..TRIES {
            let (sectors, blocks) = (self.sectors, self.blocks);
            let mut reader = Reader { disk: &self.disk, sectors, blocks, probes: &mut self.probes };
            let count = last - first + 1;
            let Some(took) = reader.between(behind, (first, count), &mut self.cache).await? else { continue };
            let turns = took.0 as f64 / self.clock.period;
            let is_lost = LOST.contains(&turns);
            if turns > KEPT && !is_lost {
                continue;
            }
            if expected.is_none_or(|expected| expected == is_lost) || reported.contains(&is_lost) {
                return Ok(Some(is_lost));
            }
            reported.push(is_lost);
        }
        Ok(None)
    }
}

impl Walk {
    /// Sectors of the track that begins here, within a range, by the turn that is lost at its end.
    pub(super) async fn end_by_turns(
        &mut self,
        (mut least, mut most): (u64, u64),
    ) -> Result<Option<u64>, LatticeError> {
        let at = self.at;
        most = most.min(self.end - at - 1);
        if least == 0 || least >= most {
            return Ok(None);
        }
        // Numbers of sectors from here: one on this track and one on the next.
        least -= 1;
        if self.prober.loses_turn_within(at + least, at + most, None).await? != Some(true) {
            return Ok(None);
        }
        while most - least > 1 {
            let middle = least + (most - least) / 2;
            match self.prober.loses_turn_within(at + least, at + middle, None).await? {
                Some(true) => most = middle,
                Some(false) => least = middle,
                None => return Ok(None),
            }
        }
        Ok(Some(most))
    }

    /// Whether angles continue without a break between two sectors, counted from here, at this number of sectors per turn.
    pub(super) async fn continues_between(
        &mut self,
        (first, last): (u64, u64),
        turn: f64,
    ) -> Result<bool, LatticeError> {
        if self.at + last >= self.end {
            return Ok(false);
        }
        let first_angle = self.prober.angle(self.at + first).await?;
        let last_angle = self.prober.angle(self.at + last).await?;
        let along = (last - first) as f64 / turn;
        let least = 1.6 * self.prober.tolerance();
        Ok(first_angle.zip(last_angle).is_some_and(|(first, last)| wrap(last - first - along).abs() <= least))
    }
}
