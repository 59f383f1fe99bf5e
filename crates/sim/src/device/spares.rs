//! A write that waits for its data on a track with sectors that hold no block: spares, or the gap at the end of a zone.
//!
//! *Source:* physically, the platter rotates under all of these sectors. DiskSim 4.0 steps from block to block while it waits, one
//! sector's time each, so that the sectors between the last block and the first are missing from its revolution;
//! `mechanics.waits_skip_spares` does the same (studies/validation/disksim.md).

use super::drive::Drive;
use super::media::Arm;
use super::pass::Pass;
use headstack_model::{Extent, Lbn, Nanos};

impl Drive {
    /// Time until the first sector of a pass arrives again.
    pub(super) fn round(&self, pass: &Pass) -> Nanos {
        let spindle = self.mechanics.spindle();
        if !self.mechanics.waits_skip_spares() {
            return spindle.period();
        }
        let (first, end) = self.track_of(&pass.extent, pass.first);
        pass.end_of(self, (end - first) as u32) - pass.begins
    }

    /// The next pass of a write whose last one ended at the arm's present position and time.
    pub(super) fn plan_on(&self, near: &Extent, arm: Arm, lbn: Lbn, most: u64) -> Pass {
        let mut pass = self.plan(near, arm, lbn, most, true);
        if self.mechanics.waits_skip_spares() && pass.on_track == arm.at {
            // The block follows the last one, wherever the platter is after a revolution without spares.
            pass.begins = arm.at;
        }
        pass
    }
}
