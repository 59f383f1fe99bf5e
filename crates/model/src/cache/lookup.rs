//! Which segment answers a read.

use super::{Cache, Hit, SegmentState};
use crate::Lbn;

impl Cache {
    /// Looks a read of `start..end` up in the cache. Whole hits precede partial ones, and longer partial hits precede shorter
    /// ones. Of several segments with all of it, the one being filled precedes others, because its read-ahead then continues.
    pub fn find(&self, start: Lbn, end: Lbn) -> Hit {
        /// Longer than any part.
        const WHOLE: u64 = u64::MAX;
        let mut best = Hit::Miss;
        if !self.enabled || !self.coarse.may_hold(start.0) {
            return best;
        }
        let mut best_end = 0;
        for (index, (from, to)) in self.spans.iter().enumerate() {
            if start.0 < *from || start.0 > *to || !self.may_answer(index, start.0 < *to) {
                continue;
            }
            if *to >= end.0 {
                if self.states[index] == SegmentState::Filling {
                    return Hit::Whole(index);
                }
                if best_end < WHOLE {
                    (best, best_end) = (Hit::Whole(index), WHOLE);
                }
                continue;
            }
            // The rest of a read is stored behind its first part, and no read is stored in a segment reserved for writes.
            let takes_rest = index != 0 || !self.dedicated_write_segment;
            if *to >= best_end && takes_rest {
                (best, best_end) = (Hit::Part(index), *to);
            }
        }
        best
    }

    /// Whether a segment may answer a read that starts inside it, or where it ends.
    fn may_answer(&self, index: usize, inside: bool) -> bool {
        match self.states[index] {
            SegmentState::Empty => false,
            SegmentState::Read => inside,
            SegmentState::Filling => inside || self.almost_hits,
            SegmentState::Written | SegmentState::Dirty => inside && self.hits_on_written,
        }
    }
}
