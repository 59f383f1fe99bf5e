//! The search for free blocks: the closest cluster that is large enough, or the closest traxtent.

use super::space::Space;
use super::{GROUP_BLOCKS, GROUP_HEAD_BLOCKS, TrackList, Variant};

/// Blocks in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) blocks: u32,
}

/// A search in the map of free blocks.
pub(super) struct Search<'a> {
    pub(super) space: &'a Space,
    pub(super) tracks: &'a TrackList,
    pub(super) variant: Variant,
    /// Whether the block before the preferred one is the file's last.
    pub(super) follows: bool,
    /// All blocks that the file has without a place, the wanted ones and what leads to any of them included.
    pub(super) rest: u32,
}

impl Search<'_> {
    /// Up to `wanted` blocks for data that would best begin at `preferred`: all of them, but where they end with a track or no
    /// run is so long. None where no block is free.
    pub(super) fn for_data(&self, preferred: u32, wanted: u32) -> Option<Run> {
        let found = match self.variant {
            Variant::Unmodified | Variant::FastStart => self.cluster(preferred, wanted),
            Variant::Traxtent => self.traxtent(preferred, wanted),
            Variant::PartialBlocks => self.over_tracks(preferred, wanted),
        };
        found.or_else(|| {
            self.closest(preferred, |block| self.space.is_free(block)).map(|first| self.run(first, wanted))
        })
    }

    /// The closest cluster of free blocks that has all that are wanted.
    fn cluster(&self, preferred: u32, wanted: u32) -> Option<Run> {
        let first = self.closest(preferred, |block| self.space.run_at(block, wanted) >= wanted)?;
        Some(Run { first, blocks: wanted })
    }

    /// What is left of the traxtent where the file goes on in it. Else a place in one traxtent where all of the file fits into one.
    /// Else, where the file begins or moves, the closest cluster, as without traxtents; where it met an excluded block or one of
    /// another file, the closest free traxtent.
    fn traxtent(&self, preferred: u32, wanted: u32) -> Option<Run> {
        if self.follows && self.space.is_free(preferred) {
            return Some(self.run(preferred, wanted));
        }
        let whole = |block: u32| {
            let blocks = self.tracks.blocks_left(block);
            self.tracks.begins_traxtent(block) && self.space.run_at(block, blocks) >= blocks
        };
        let cluster = || (!self.follows).then(|| self.within_a_track(preferred, wanted)).flatten();
        let first = self.on_one_track(preferred).or_else(cluster);
        let first = first.or_else(|| self.closest(preferred, whole));
        first.map(|first| self.run(first, wanted))
    }

    /// On behind the file's last block, blocks on two tracks included; else on one track where all of the file fits there;
    /// else as a cluster.
    fn over_tracks(&self, preferred: u32, wanted: u32) -> Option<Run> {
        if self.follows && self.space.is_free(preferred) {
            return Some(Run { first: preferred, blocks: self.space.run_at(preferred, wanted) });
        }
        let first = self.on_one_track(preferred);
        first.map(|first| Run { first, blocks: wanted }).or_else(|| self.cluster(preferred, wanted))
    }

    /// The closest place on one track for all that the file has without one; none where there is no such place.
    fn on_one_track(&self, preferred: u32) -> Option<u32> {
        self.within_a_track(preferred, self.rest)
    }

    /// The closest free blocks in a row, so many, that lie on one track.
    fn within_a_track(&self, preferred: u32, blocks: u32) -> Option<u32> {
        let holds = |block: u32| {
            self.tracks.blocks_left(block) >= blocks && self.space.run_at(block, blocks) >= blocks
        };
        (blocks <= self.tracks.longest_blocks()).then(|| self.closest(preferred, holds)).flatten()
    }

    /// Free blocks from a free one on; to its track's end, where blocks on two tracks are excluded.
    fn run(&self, first: u32, most: u32) -> Run {
        let most =
            if self.variant.excludes_blocks() { most.min(self.tracks.blocks_left(first)) } else { most };
        Run { first, blocks: self.space.run_at(first, most) }
    }

    /// The first free block of which this holds: from the preferred one to the end of its group, then from the group's start, then
    /// in the groups that follow.
    fn closest(&self, preferred: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
        self.closest_in_group(preferred, &holds).or_else(|| {
            let groups = self.space.groups();
            // The preferred block may be the one behind the last group.
            let mut others = (1..=groups).map(|step| (preferred / GROUP_BLOCKS + step) % groups);
            others.find_map(|group| self.closest_in_group(group * GROUP_BLOCKS + GROUP_HEAD_BLOCKS, &holds))
        })
    }

    fn closest_in_group(&self, preferred: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
        let group = preferred / GROUP_BLOCKS;
        if group >= self.space.groups() || self.space.left_in(group) == 0 {
            return None;
        }
        let (start, end) = (group * GROUP_BLOCKS + GROUP_HEAD_BLOCKS, (group + 1) * GROUP_BLOCKS);
        let mut all = (preferred..end).chain(start..preferred);
        all.find(|block| self.space.is_free(*block) && holds(*block))
    }
}
