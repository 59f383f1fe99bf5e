//! Places for the blocks of small files, in file groups.

use super::allocate::Run;
use super::file::File;
use super::file_groups::{FileGrouping, FileGroups, GroupExtent};
use super::layout::{Layout, first_of};

impl Layout {
    /// The first block of the group of small files in which a block of a file lies.
    pub(super) fn group_of(&self, file: &File, index: u32) -> Option<u32> {
        file.file_group.filter(|_| index < file.grouped)
    }

    pub(super) fn file_groups(&self) -> &FileGroups {
        &self.file_groups
    }

    /// Allocates all unplaced blocks of a small file in a group of its directory, next to its first ones if it has any. Returns their
    /// number; 0 if the file is not small or there is no room.
    pub(super) fn allocate_in_group(&mut self, file: &mut File) -> u32 {
        let Some(grouping) = self.grouping else { return 0 };
        let is_grouped = file.grouped as usize == file.blocks.len();
        if !is_grouped || file.length() > grouping.most_file_blocks {
            return 0;
        }
        let wanted = file.unplaced();
        let directory = file.entry.directory;
        let found = match (file.file_group, file.blocks.last()) {
            (Some(group), Some(last)) => {
                self.file_groups.find_in(group, last + 1, wanted).map(|run| (group, run))
            }
            _ => self
                .file_groups
                .find(directory, wanted)
                .or_else(|| self.add_group(file.group, directory, grouping, wanted)),
        };
        let Some((group, run)) = found else { return 0 };
        self.file_groups.fill(group, run, file.handle);
        file.file_group = Some(group);
        file.blocks.extend(run.first..run.first + run.blocks);
        file.grouped += run.blocks;
        file.last_group = run.first / super::GROUP_BLOCKS;
        run.blocks
    }

    /// Reserves a group for a directory with room for `wanted` blocks, and returns it with that room.
    fn add_group(
        &mut self,
        group: u32,
        directory: u32,
        grouping: FileGrouping,
        wanted: u32,
    ) -> Option<(u32, Run)> {
        let preferred = first_of(group);
        let extent = match grouping.extent {
            GroupExtent::Blocks(blocks) => self.search(false, blocks).cluster(preferred, blocks)?,
            GroupExtent::Traxtent => {
                let first = self.search(false, wanted).free_traxtent(preferred)?;
                Run { first, blocks: self.tracks.blocks_left(first) }
            }
        };
        if extent.blocks < wanted {
            return None;
        }
        (extent.first..extent.first + extent.blocks).for_each(|block| self.space.reserve(block));
        self.file_groups.add(extent, directory);
        Some((extent.first, Run { first: extent.first, blocks: wanted }))
    }

    pub(super) fn release_from_group(&mut self, file: &File) {
        let Some(group) = file.file_group else { return };
        for block in self.file_groups.release(group, file.handle) {
            self.space.release(block);
        }
    }

    /// Makes the groups' free blocks available to files outside groups; returns whether there were any.
    pub(super) fn leave_free_slots(&mut self) -> bool {
        let left = self.file_groups.leave_free_slots();
        left.iter().for_each(|block| self.space.release(*block));
        !left.is_empty()
    }
}
