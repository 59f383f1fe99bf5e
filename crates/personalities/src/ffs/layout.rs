//! Chooses the places of new blocks of a file.

use super::allocate::{Run, Search};
use super::file::{File, LeadKind, begins_section, section_end};
use super::file_groups::{FileGrouping, FileGroups};
use super::fitted::FittedBlocks;
use super::program::Handle;
use super::reserved::Reserved;
use super::space::Space;
use super::{
    BLOCK_SECTORS, CLUSTER_BLOCKS, DIRECT_BLOCKS, GROUP_BLOCKS, GROUP_HEAD_BLOCKS, POINTERS, TrackList,
    Variant,
};
use std::ops::Range;

/// The group in which a file continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NextGroup {
    /// The next one in order that has room, once it has had half of one.
    #[default]
    Following,
    /// With each indirect block (for as many blocks as half of a group), the next group that has no less room than the average group. The
    /// search begins where the block would be in an otherwise empty file system, as in FreeBSD's sources.
    NoFullerThanAverage,
}

/// Blocks of a group after which a file moves on.
const SHARE: u32 = GROUP_BLOCKS / 2;

/// A file system's blocks: which are free, and the rules by which they are allocated to files.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(super) tracks: TrackList,
    pub(super) space: Space,
    variant: Variant,
    next_group: NextGroup,
    cluster: u32,
    pub(super) grouping: Option<FileGrouping>,
    pub(super) file_groups: FileGroups,
    pub(super) preallocation: bool,
    pub(super) reserved: Reserved,
    fitted: Option<FittedBlocks>,
}

impl Layout {
    /// An empty file system on a partition with these tracks.
    pub fn new(tracks: TrackList, variant: Variant, next_group: NextGroup) -> Layout {
        let space = Space::new(&tracks, variant.excludes_blocks());
        Layout {
            space,
            tracks,
            variant,
            next_group,
            cluster: CLUSTER_BLOCKS,
            grouping: None,
            file_groups: FileGroups::default(),
            preallocation: false,
            reserved: Reserved::default(),
            fitted: None,
        }
    }

    /// An empty file system whose blocks fit to these tracks, with the rules of [`Variant::Traxtent`].
    pub fn with_fitted_blocks(tracks: &TrackList, next_group: NextGroup) -> Layout {
        let fitted = FittedBlocks::new(tracks);
        let mut layout = Layout::new(fitted.counted_tracks(), Variant::Traxtent, next_group);
        layout.fitted = Some(fitted);
        layout
    }

    /// The same with clusters of `blocks` blocks in place of [`CLUSTER_BLOCKS`], at least one.
    pub fn with_clusters(self, blocks: u32) -> Layout {
        Layout { cluster: blocks.max(1), ..self }
    }

    /// The same with small files of a directory in groups.
    pub fn with_grouping(self, grouping: FileGrouping) -> Layout {
        Layout { grouping: Some(grouping), ..self }
    }

    /// The same with whole traxtents reserved for large files being written, where blocks that span two tracks are excluded.
    pub fn with_preallocation(self) -> Layout {
        Layout { preallocation: true, ..self }
    }

    /// The same files, and from now on the rules of another variant: a retrofit. Blocks that it excludes remain in use until they are freed.
    pub fn retrofitted(mut self, variant: Variant) -> Layout {
        if variant.excludes_blocks() {
            self.space.exclude(&self.tracks);
        }
        Layout { variant, ..self }
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

    /// Blocks that no file has, those in groups of small files and those reserved for growing files included.
    pub fn free_blocks(&self) -> u32 {
        let free: u32 = (0..self.space.groups()).map(|group| self.space.left_in(group)).sum();
        free + self.file_groups.free_slots() + self.reserved.blocks()
    }

    /// Blocks that are reserved for files being written.
    pub fn reserved_blocks(&self) -> u32 {
        self.reserved.blocks()
    }

    pub(super) fn groups(&self) -> u32 {
        self.space.groups()
    }

    /// Allocates the next blocks of a file: at most `wanted`, in one run. Returns their number; 0 if the disk is full.
    pub(super) fn allocate(&mut self, file: &mut File, wanted: u32) -> u32 {
        let grouped = self.allocate_in_group(file);
        if grouped > 0 {
            return grouped;
        }
        self.end_reservation(file.handle);
        let mut placed = self.allocate_anywhere(file, wanted);
        if placed == 0 && (self.leave_free_slots() | self.end_reservations()) {
            placed = self.allocate_anywhere(file, wanted);
        }
        self.reserve_rest(file);
        placed
    }

    fn allocate_anywhere(&mut self, file: &mut File, wanted: u32) -> u32 {
        let index = file.blocks.len() as u32;
        let mut prefers = self.preferred(file);
        if begins_section(index) && !self.place_leads(file, index, &mut prefers) {
            return 0;
        }
        let wanted = wanted.min(section_end(index) - index);
        // A file that continues after its direct blocks has one more indirect block.
        let leads = u32::from(index < DIRECT_BLOCKS && file.length() > DIRECT_BLOCKS);
        let rest = file.unplaced() + leads;
        let search = Search { preallocates: self.preallocates(file), ..self.search(prefers.1, rest) };
        let Some(run) = search.for_data(prefers.0, wanted) else { return 0 };
        self.give(file, run);
        file.blocks.extend(run.first..run.first + run.blocks);
        file.in_group += run.blocks;
        run.blocks
    }

    pub(super) fn release(&mut self, file: &File) {
        for block in file.blocks[file.grouped as usize..].iter().chain(&file.leads) {
            self.space.release(*block);
        }
        self.release_from_group(file);
        self.end_reservation(file.handle);
    }

    /// A block for a directory of a group.
    pub(super) fn place_one(&mut self, group: u32) -> Option<u32> {
        let run = self.search(false, 1).for_data(first_of(group), 1)?;
        self.space.reserve(run.first);
        Some(run.first)
    }

    /// Number of blocks, from a file's next one on, that make a complete write.
    pub(super) fn complete(&self, file: &File) -> u32 {
        let left = section_end(file.blocks.len() as u32) - file.blocks.len() as u32;
        if !self.variant.ends_with_tracks() {
            return self.cluster.min(left);
        }
        let (block, follows) = self.preferred(file);
        let is_free = self.space.is_free(block) || self.reserved.holds(file.handle, block);
        let is_next = follows && !begins_section(file.blocks.len() as u32) && is_free;
        if !is_next {
            return self.cluster.min(left);
        }
        let whole = self.tracks.blocks_left(block);
        let over = u32::from(self.variant == Variant::PartialBlocks && self.tracks.split(block + whole));
        (whole + over).max(1).min(left)
    }

    /// Blocks that a file still needs to hold this number of bytes, if blocks vary in size.
    pub(super) fn missing_blocks(&self, blocks: &[u32], bytes: u64) -> u64 {
        let Some(fitted) = &self.fitted else { return 0 };
        let sectors: u64 = blocks.iter().map(|block| u64::from(fitted.sectors(*block))).sum();
        bytes.div_ceil(512).saturating_sub(sectors).div_ceil(u64::from(BLOCK_SECTORS))
    }

    /// The disk's sectors of sectors as the file system counts them.
    pub(super) fn disk_sectors(&self, counted: Range<u64>) -> Range<u64> {
        self.fitted.as_ref().map_or(counted.clone(), |fitted| fitted.disk_sectors(counted))
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

    /// Whether a file has whole traxtents reserved.
    pub(super) fn preallocates(&self, file: &File) -> bool {
        self.preallocation && self.variant().excludes_blocks() && file.length() > DIRECT_BLOCKS
    }

    /// Frees the blocks reserved for a file that is about to grow or to be deleted.
    pub(super) fn end_reservation(&mut self, owner: Handle) {
        if let Some(run) = self.reserved.remove(owner) {
            self.free_run(run);
        }
    }

    /// Reserves the rest of the traxtent of a file's last block.
    pub(super) fn reserve_rest(&mut self, file: &File) {
        if !self.preallocates(file) {
            return;
        }
        let Some(last) = file.blocks.last().copied() else { return };
        let rest = self.tracks.blocks_left(last).saturating_sub(1);
        let is_in_group = (last + 1) / GROUP_BLOCKS == last / GROUP_BLOCKS;
        let blocks = if is_in_group { self.space.run_at(last + 1, rest) } else { 0 };
        if blocks == 0 {
            return;
        }
        (last + 1..last + 1 + blocks).for_each(|block| self.space.reserve(block));
        if let Some(run) = self.reserved.add(file.handle, Run { first: last + 1, blocks }) {
            self.free_run(run);
        }
    }

    /// Frees the blocks reserved for all files, because no other block is free; returns whether there were any.
    pub(super) fn end_reservations(&mut self) -> bool {
        let runs = self.reserved.remove_all();
        runs.iter().for_each(|run| self.free_run(*run));
        !runs.is_empty()
    }

    fn free_run(&mut self, run: Run) {
        (run.first..run.first + run.blocks).for_each(|block| self.space.release(block));
    }

    pub(super) fn give(&mut self, file: &mut File, run: Run) {
        for block in run.first..run.first + run.blocks {
            self.space.reserve(block);
        }
        let group = run.first / GROUP_BLOCKS;
        if group != file.last_group || file.blocks.is_empty() {
            file.in_group = 0;
        }
        file.last_group = group;
    }

    pub(super) fn search(&self, follows: bool, rest: u32) -> Search<'_> {
        Search {
            space: &self.space,
            tracks: &self.tracks,
            variant: self.variant,
            follows,
            rest,
            preallocates: false,
        }
    }
}

/// The first block of a group that may hold data.
pub(super) fn first_of(group: u32) -> u32 {
    group * GROUP_BLOCKS + GROUP_HEAD_BLOCKS
}
