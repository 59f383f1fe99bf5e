//! Failed members, and their rebuilding on spares.
//!
//! A failed member is neither read nor written. Its spare replaces it run by run: rebuilt runs are read there, and the run being
//! rebuilt is also written there. Spares are numbered after the members, and
//! replace failed members in the order in which those fail. A spare that fails itself is replaced by the next one, from the first block on.

use super::shape::Shape;

#[derive(Clone, Copy, Debug)]
struct Lost {
    member: u32,
    /// The spare that replaces it.
    spare: Option<u32>,
    /// Blocks from the first on that the spare has.
    rebuilt: u64,
    /// Blocks from the first on that it has or is about to get.
    in_flight: u64,
    /// Whether what the spare lacks cannot be recovered.
    is_given_up: bool,
}

impl Lost {
    fn new(member: u32, spare: Option<u32>) -> Lost {
        Lost { member, spare, rebuilt: 0, in_flight: 0, is_given_up: false }
    }

    /// Whether a step of rebuilding it is planned and not complete.
    fn is_in_step(&self) -> bool {
        self.in_flight > self.rebuilt
    }
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
    /// Spares that replace nothing yet; the last one is the next.
    idle: Vec<u32>,
    /// Whether each member, and then each spare, has failed.
    failed: Vec<bool>,
}

impl FailedMembers {
    pub(super) fn new(shape: &Shape) -> FailedMembers {
        let members = shape.members.len();
        let idle = (members..members + shape.spares).rev().map(|spare| spare as u32).collect();
        let mut all = FailedMembers { lost: Vec::new(), idle, failed: vec![false; members + shape.spares] };
        shape.failed.iter().for_each(|member| all.fail(*member));
        all
    }

    /// Whether a member or a spare has failed.
    pub(super) fn has_failed(&self, device: u32) -> bool {
        self.failed[device as usize]
    }

    /// The members that would be incomplete, and so would their spares, if this member or spare failed too; each has `used` blocks.
    pub(super) fn incomplete_without(&self, device: u32, used: u64) -> Vec<u32> {
        let incomplete = self.lost.iter().filter(|lost| lost.rebuilt < used || lost.spare == Some(device));
        let is_member =
            !self.idle.contains(&device) && self.lost.iter().all(|lost| lost.spare != Some(device));
        incomplete.map(|lost| lost.member).chain(is_member.then_some(device)).collect()
    }

    /// Replaces a member, or the member whose spare this is, by the next spare, which is empty.
    pub(super) fn fail(&mut self, device: u32) {
        self.failed[device as usize] = true;
        let idle = self.idle.len();
        self.idle.retain(|spare| *spare != device);
        if self.idle.len() < idle {
            return;
        }
        let spare = self.idle.pop();
        match self.lost.iter_mut().find(|lost| lost.spare == Some(device)) {
            Some(lost) => *lost = Lost::new(lost.member, spare),
            None => self.lost.push(Lost::new(device, spare)),
        }
    }

    /// The member that replaces a member: its spare if it has failed, as far as `has_block` says that the spare has the block.
    fn replacement(&self, member: u32, has_block: impl Fn(&Lost) -> bool) -> Option<u32> {
        match self.lost.iter().find(|lost| lost.member == member) {
            None => Some(member),
            Some(lost) => lost.spare.filter(|_| has_block(lost)),
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
        self.lost.iter_mut().filter(|lost| !lost.is_given_up && lost.rebuilt < used).find_map(|lost| {
            let spare = lost.spare?;
            lost.in_flight = used.min(lost.rebuilt + most);
            Some(RebuildStep { member: lost.member, spare, from: lost.rebuilt, to: lost.in_flight })
        })
    }

    pub(super) fn complete_step(&mut self) {
        self.lost.iter_mut().for_each(|lost| lost.rebuilt = lost.in_flight);
    }

    /// Ends the step without its blocks, and the rebuilding of its member.
    pub(super) fn give_up_step(&mut self) {
        for lost in self.lost.iter_mut().filter(|lost| lost.is_in_step()) {
            (lost.in_flight, lost.is_given_up) = (lost.rebuilt, true);
        }
    }

    /// Blocks of spares that have been rebuilt, and those of all spares that replace a member, of which each has `used`.
    pub(super) fn progress(&self, used: u64) -> (u64, u64) {
        let replaced = self.lost.iter().filter(|lost| lost.spare.is_some());
        replaced.fold((0, 0), |(done, all), lost| (done + lost.rebuilt, all + used))
    }
}
