//! Finds the end of a track without skew by the turn lost there.
//!
//! If a track begins at the angle at which the previous one ends, angles do not break between them. But a track switch takes time, so one
//! read over the boundary waits a turn for its second sector. The prober counts turns from the end of a read of a sector just behind.

use super::LatticeResult;
use super::prober::{Prober, REMEMBERED};
use super::reader::Reader;
use std::ops::RangeInclusive;

/// Sectors between the sectors read and the one read just before.
const AHEAD_SECTORS: u64 = 2;
/// Maximum turns from the end of the read just before to the end of this read, if no turn is lost: 1, and 0.3 for the sectors between.
const KEPT: f64 = 1.3;
/// The same if a turn is lost: 2 ± 0.3. Other answers are late.
const LOST: RangeInclusive<f64> = 1.7..=2.3;
/// Number of reads, of which some may be late; it is very unlikely that all are.
const TRIES: usize = 6;

impl Prober {
    /// Whether a track ends before a sector, by lost turns; `None` if they are inconclusive. The expected result is accepted at once.
    pub(super) async fn loses_turn(
        &mut self,
        sector: u64,
        expected: Option<bool>,
    ) -> LatticeResult<Option<bool>> {
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
    ) -> LatticeResult<Option<bool>> {
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
