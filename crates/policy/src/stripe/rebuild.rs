//! Failed members, and their rebuilding on spares.
//!
//! A failed member is neither read nor written. Its spare replaces it run by run: rebuilt runs are read there, and the run being
//! rebuilt is also written there. Spares are numbered after the members, in the order of the failed ones.

use super::shape::Shape;

#[derive(Clone, Copy, Debug)]
struct Lost {
    member: u32,
    /// Blocks from the first on that the spare has.
    rebuilt: u64,
    /// Blocks from the first on that it has or is about to get.
    in_flight: u64,
}

/// A run of a failed member's blocks that is rebuilt on its spare.
#[derive(Clone, Copy, Debug)]
pub(super) struct RebuildStep {
    pub(super) member: u32,
    pub(super) spare: u32,
    pub(super) from: u64,
    pub(super) to: u64,
}

#[derive(Clone, Debug)]
pub(super) struct FailedMembers {
    lost: Vec<Lost>,
    members: usize,
    spares: usize,
}

impl FailedMembers {
    pub(super) fn new(shape: &Shape) -> FailedMembers {
        let lost = shape.failed.iter().map(|member| Lost { member: *member, rebuilt: 0, in_flight: 0 });
        FailedMembers { lost: lost.collect(), members: shape.members.len(), spares: shape.spares }
    }

    /// The member that replaces a member: its spare if it has failed, as far as `has_block` says that the spare has the block.
    fn replacement(&self, member: u32, has_block: impl Fn(&Lost) -> bool) -> Option<u32> {
        match self.lost.iter().position(|lost| lost.member == member) {
            None => Some(member),
            Some(index) => has_block(&self.lost[index]).then_some(self.spare(index)),
        }
    }

    /// The member that can read a run of a member's blocks up to `to`.
    pub(super) fn readable(&self, member: u32, to: u64) -> Option<u32> {
        self.replacement(member, |lost| to <= lost.rebuilt)
    }

    /// The member that must write the blocks from a block of a member on.
    pub(super) fn writable(&self, member: u32, from: u64) -> Option<u32> {
        self.replacement(member, |lost| from < lost.in_flight)
    }

    /// Begins the next step, of at most `most` of the `used` blocks of a member; `None` when all is rebuilt.
    pub(super) fn begin_step(&mut self, used: u64, most: u64) -> Option<RebuildStep> {
        let index = self.lost.iter().take(self.spares).position(|lost| lost.rebuilt < used)?;
        let spare = self.spare(index);
        let lost = &mut self.lost[index];
        lost.in_flight = used.min(lost.rebuilt + most);
        Some(RebuildStep { member: lost.member, spare, from: lost.rebuilt, to: lost.in_flight })
    }

    pub(super) fn complete_step(&mut self) {
        self.lost.iter_mut().for_each(|lost| lost.rebuilt = lost.in_flight);
    }

    /// Blocks of spares that have been rebuilt, and those of all spares, of which each has `used`.
    pub(super) fn progress(&self, used: u64) -> (u64, u64) {
        let done = self.lost.iter().take(self.spares).map(|lost| lost.rebuilt).sum();
        (done, self.spares as u64 * used)
    }

    fn spare(&self, index: usize) -> u32 {
        (self.members + index) as u32
    }
}
