//! The search for free blocks: the closest cluster that is large enough, or the closest traxtent.

use super::space::Space;
use super::{GROUP_BLOCKS, GROUP_HEAD_BLOCKS, TrackList, Variant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) blocks: u32,
}

pub(super) struct Search<'a> {
    pub(super) space: &'a Space,
    pub(super) tracks: &'a TrackList,
    pub(super) variant: Variant,
    /// Whether the block before the preferred one is the file's last.
    pub(super) follows: bool,
    /// Number of all blocks of the file not allocated yet, including the wanted ones and their indirect blocks.
    pub(super) rest: u32,
    /// Whether the file continues in a free traxtent if it cannot continue behind its last block.
    pub(super) preallocates: bool,
}

impl Search<'_> {
    /// Up to `wanted` blocks for data, preferably at `preferred`: all of them, unless they end with a track or no run is long
    /// enough. `None` if no block is free.
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

    /// The closest cluster of free blocks with all wanted ones.
    pub(super) fn cluster(&self, preferred: u32, wanted: u32) -> Option<Run> {
        let first = self.closest(preferred, |block| self.space.run_at(block, wanted) >= wanted)?;
        Some(Run { first, blocks: wanted })
    }

    /// The rest of the traxtent if the file continues in it. Else a place in one traxtent if the whole file fits into one.
    /// Else, where the file begins or changes its group, the closest cluster, as without traxtents; after an excluded block or one
    /// of another file, the closest free traxtent.
    fn traxtent(&self, preferred: u32, wanted: u32) -> Option<Run> {
        if self.follows && self.space.is_free(preferred) {
            return Some(self.run(preferred, wanted));
        }
        let cluster = || (!self.follows).then(|| self.within_a_track(preferred, wanted)).flatten();
        let whole = self.preallocates.then(|| self.free_traxtent(preferred)).flatten();
        let first = whole.or_else(|| self.on_one_track(preferred)).or_else(cluster);
        let first = first.or_else(|| self.free_traxtent(preferred));
        first.map(|first| self.run(first, wanted))
    }

    /// The first block of the closest traxtent that is wholly free.
    pub(super) fn free_traxtent(&self, preferred: u32) -> Option<u32> {
        let whole = |block: u32| {
            let blocks = self.tracks.blocks_left(block);
            self.tracks.begins_traxtent(block) && self.space.run_at(block, blocks) >= blocks
        };
        self.closest(preferred, whole)
    }

    /// After the file's last block, including blocks on two tracks; else on one track if the whole file fits there; else as a
    /// cluster.
    fn over_tracks(&self, preferred: u32, wanted: u32) -> Option<Run> {
        if self.follows && self.space.is_free(preferred) {
            return Some(Run { first: preferred, blocks: self.space.run_at(preferred, wanted) });
        }
        let first = self.on_one_track(preferred);
        first.map(|first| Run { first, blocks: wanted }).or_else(|| self.cluster(preferred, wanted))
    }

    /// The closest place on one track for all unallocated blocks of the file; `None` if there is none.
    fn on_one_track(&self, preferred: u32) -> Option<u32> {
        self.within_a_track(preferred, self.rest)
    }

    /// The closest run of `blocks` free blocks on one track.
    fn within_a_track(&self, preferred: u32, blocks: u32) -> Option<u32> {
        let holds = |block: u32| {
            self.tracks.blocks_left(block) >= blocks && self.space.run_at(block, blocks) >= blocks
        };
        (blocks <= self.tracks.longest_blocks()).then(|| self.closest(preferred, holds)).flatten()
    }

    /// Free blocks from a free one on, up to the end of its track if blocks on two tracks are excluded.
    fn run(&self, first: u32, most: u32) -> Run {
        let most =
            if self.variant.excludes_blocks() { most.min(self.tracks.blocks_left(first)) } else { most };
        Run { first, blocks: self.space.run_at(first, most) }
    }

    /// The first free block that satisfies `holds`: from the preferred one to the end of its group, then from the group's start,
    /// then in the following groups.
    fn closest(&self, preferred: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
        self.closest_in_group(preferred, &holds).or_else(|| {
            let groups = self.space.groups();
            // The preferred block may be the one after the last group.
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
