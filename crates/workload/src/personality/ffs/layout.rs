//! Where new blocks of a file go.

use super::allocate::{Run, Search};
use super::file::{File, LeadKind, begins_section, section_end};
use super::space::Space;
use super::{CLUSTER_BLOCKS, DIRECT_BLOCKS, GROUP_BLOCKS, GROUP_HEAD_BLOCKS, POINTERS, TrackList, Variant};

/// The group in which a file continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextGroup {
    /// The next one in order that has room, once it has had half of one.
    #[default]
    Following,
    /// With each indirect block (as many blocks as half of a group) the next one, from where an otherwise empty file system would
    /// have it, that has no less room than groups have on average: as in FreeBSD's sources.
    NoFullerThanAverage,
}

/// Blocks of a group after which a file moves on.
const SHARE: u32 = GROUP_BLOCKS / 2;

/// A file system's blocks: which are free, and the rules by which they are given to files.
#[derive(Clone, Debug)]
pub struct Layout {
    tracks: TrackList,
    space: Space,
    variant: Variant,
    next_group: NextGroup,
    cluster: u32,
}

impl Layout {
    /// An empty file system on a partition with these tracks.
    pub fn new(tracks: TrackList, variant: Variant, next_group: NextGroup) -> Layout {
        let space = Space::new(&tracks, variant.excludes_blocks());
        Layout { space, tracks, variant, next_group, cluster: CLUSTER_BLOCKS }
    }

    /// The same with clusters of `blocks` blocks in place of [`CLUSTER_BLOCKS`], at least one.
    pub fn with_clusters(self, blocks: u32) -> Layout {
        Layout { cluster: blocks.max(1), ..self }
    }

    /// The most blocks of a cluster.
    pub fn cluster_blocks(&self) -> u32 {
        self.cluster
    }

    /// The tracks of the partition.
    pub fn tracks(&self) -> &TrackList {
        &self.tracks
    }

    /// The variant.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// Unused blocks that hold no data because they span two tracks.
    pub fn excluded_blocks(&self) -> u32 {
        self.space.excluded()
    }

    /// Blocks that files may have, those in use included.
    pub fn blocks(&self) -> u32 {
        self.space.groups() * (GROUP_BLOCKS - GROUP_HEAD_BLOCKS) - self.space.excluded()
    }

    pub(super) fn groups(&self) -> u32 {
        self.space.groups()
    }

    /// Allocates the next blocks of a file: at most `wanted`, in one run. Returns their number; 0 if the disk is full.
    pub(super) fn allocate(&mut self, file: &mut File, wanted: u32) -> u32 {
        let index = file.blocks.len() as u32;
        let mut prefers = self.preferred(file);
        if begins_section(index) && !self.place_leads(file, index, &mut prefers) {
            return 0;
        }
        let wanted = wanted.min(section_end(index) - index);
        // A file that continues after its direct blocks has one more indirect block.
        let leads = u32::from(index < DIRECT_BLOCKS && file.length() > DIRECT_BLOCKS);
        let rest = file.unplaced() + leads;
        let Some(run) = self.search(prefers.1, rest).for_data(prefers.0, wanted) else { return 0 };
        self.give(file, run);
        file.blocks.extend(run.first..run.first + run.blocks);
        file.in_group += run.blocks;
        run.blocks
    }

    pub(super) fn release(&mut self, file: &File) {
        for block in file.blocks.iter().chain(&file.leads) {
            self.space.release(*block);
        }
    }

    /// A block for a directory of a group.
    pub(super) fn place_one(&mut self, group: u32) -> Option<u32> {
        let run = self.search(false, 1).for_data(first_of(group), 1)?;
        self.space.reserve(run.first);
        Some(run.first)
    }

    /// Blocks from a file's next one on that make a complete write; `None` if it does not matter.
    pub(super) fn complete(&self, file: &File) -> u32 {
        let left = section_end(file.blocks.len() as u32) - file.blocks.len() as u32;
        if !self.variant.ends_with_tracks() {
            return self.cluster.min(left);
        }
        let (block, follows) = self.preferred(file);
        let is_next = follows && !begins_section(file.blocks.len() as u32) && self.space.is_free(block);
        if !is_next {
            return self.cluster.min(left);
        }
        let whole = self.tracks.blocks_left(block);
        let over = u32::from(self.variant == Variant::PartialBlocks && self.tracks.split(block + whole));
        (whole + over).max(1).min(left)
    }

    /// The preferred block for a file's next one, and whether the file's last one is before it.
    fn preferred(&self, file: &File) -> (u32, bool) {
        let index = file.blocks.len() as u32;
        let last = file.blocks.last().copied();
        let Some(last) = last else { return (first_of(file.group), false) };
        let begins = begins_section(index) && index > DIRECT_BLOCKS;
        let moves = match self.next_group {
            NextGroup::Following => {
                begins && file.in_group >= SHARE || file.in_group >= SHARE + DIRECT_BLOCKS
            }
            NextGroup::NoFullerThanAverage => begins,
        };
        if moves {
            return (first_of(self.group_after(file, index)), false);
        }
        (last + 1, true)
    }

    fn group_after(&self, file: &File, index: u32) -> u32 {
        let groups = self.space.groups();
        let (from, least) = match self.next_group {
            NextGroup::Following => (file.last_group + 1, self.cluster),
            NextGroup::NoFullerThanAverage => (file.group + index / POINTERS, self.space.mean_left()),
        };
        let mut all = (0..groups).map(|step| (from + step) % groups);
        all.find(|group| self.space.left_in(*group) >= least.max(1)).unwrap_or(from % groups)
    }

    /// Allocates the indirect blocks of a new section; the preferred block is then after them.
    fn place_leads(&mut self, file: &mut File, index: u32, prefers: &mut (u32, bool)) -> bool {
        let kinds = File::leads_to(index);
        let missing = kinds.iter().filter(|kind| File::lead_place(**kind, index) >= file.leads.len());
        for _ in 0..missing.count() {
            let Some(run) = self.search(prefers.1, 1).for_data(prefers.0, 1) else { return false };
            self.give(file, run);
            file.leads.push(run.first);
            *prefers = (run.first + 1, true);
        }
        assert!(kinds.iter().all(|kind: &LeadKind| File::lead_place(*kind, index) < file.leads.len()));
        true
    }

    fn give(&mut self, file: &mut File, run: Run) {
        for block in run.first..run.first + run.blocks {
            self.space.reserve(block);
        }
        let group = run.first / GROUP_BLOCKS;
        if group != file.last_group || file.blocks.is_empty() {
            file.in_group = 0;
        }
        file.last_group = group;
    }

    fn search(&self, follows: bool, rest: u32) -> Search<'_> {
        Search { space: &self.space, tracks: &self.tracks, variant: self.variant, follows, rest }
    }
}

/// The first block of a group that may hold data.
fn first_of(group: u32) -> u32 {
    group * GROUP_BLOCKS + GROUP_HEAD_BLOCKS
}
