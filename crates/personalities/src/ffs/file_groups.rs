//! File groups: runs of blocks that small files of one directory share, and that are read and written whole.
//!
//! *Source:* G. Ganger and M. F. Kaashoek, "Embedded inodes and explicit grouping: exploiting disk bandwidth for small files" (USENIX
//! 1997), whose "groups" these are; groups of the length of a track from Schindler, Griffin, Lumb and Ganger 2002, sections 3.3 and 5.2.

use super::allocate::Run;
use super::program::Handle;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Where small files lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileGrouping {
    /// What a file group is.
    pub extent: GroupExtent,
    /// Blocks of the largest file that lies in a file group. A file that grows beyond it keeps its blocks there; further ones lie anywhere.
    pub most_file_blocks: u32,
}

/// A run of blocks that is a file group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupExtent {
    /// This number of blocks, anywhere.
    Blocks(u32),
    /// All blocks of a track.
    Traxtent,
}

/// A block of a file group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupSlot {
    Free,
    Of(Handle),
    /// Free, and available to files outside file groups because the disk was full.
    Left,
}

#[derive(Clone, Debug)]
struct FileGroup {
    directory: u32,
    slots: Vec<GroupSlot>,
}

impl FileGroup {
    /// The first free slots in a row, from `from` on.
    fn free_run(&self, from: usize, blocks: u32) -> Option<u32> {
        let wanted = blocks as usize;
        let mut starts = from..(self.slots.len() + 1).saturating_sub(wanted);
        let is_free =
            |first: &usize| self.slots[*first..*first + wanted].iter().all(|slot| *slot == GroupSlot::Free);
        starts.find(is_free).map(|first| first as u32)
    }
}

/// All file groups, by their first blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct FileGroups {
    of: BTreeMap<u32, FileGroup>,
    /// File groups of each directory that may have free slots.
    open: BTreeMap<u32, BTreeSet<u32>>,
}

impl FileGroups {
    /// Consecutive free slots in the lowest file group of a directory that has them: the file group and the run.
    pub(super) fn find(&self, directory: u32, blocks: u32) -> Option<(u32, Run)> {
        let open = self.open.get(&directory)?;
        open.iter().find_map(|first| self.find_in(*first, *first, blocks).map(|run| (*first, run)))
    }

    /// Free slots in a row in one file group, preferably from a block on.
    pub(super) fn find_in(&self, group: u32, preferred: u32, blocks: u32) -> Option<Run> {
        let slots = self.of.get(&group)?;
        let from = (preferred - group) as usize;
        let found = slots.free_run(from, blocks).or_else(|| slots.free_run(0, blocks))?;
        Some(Run { first: group + found, blocks })
    }

    /// Makes a file group of blocks that its caller has reserved.
    pub(super) fn add(&mut self, run: Run, directory: u32) {
        let slots = vec![GroupSlot::Free; run.blocks as usize];
        let before = self.of.insert(run.first, FileGroup { directory, slots });
        assert!(before.is_none(), "a block is in one group");
        self.open.entry(directory).or_default().insert(run.first);
    }

    /// Assigns free slots to a file.
    pub(super) fn fill(&mut self, group: u32, run: Run, owner: Handle) {
        let Some(FileGroup { directory, slots }) = self.of.get_mut(&group) else { return };
        for block in run.first..run.first + run.blocks {
            let slot = &mut slots[(block - group) as usize];
            assert_eq!(*slot, GroupSlot::Free, "block {block} is given to one owner");
            *slot = GroupSlot::Of(owner);
        }
        if !slots.contains(&GroupSlot::Free) {
            self.open.entry(*directory).or_default().remove(&group);
        }
    }

    /// Frees the slots of a file. Returns the blocks that files outside may then use: all that are left of the file group, once it is empty.
    pub(super) fn release(&mut self, group: u32, owner: Handle) -> Vec<u32> {
        let Some(FileGroup { directory, slots }) = self.of.get_mut(&group) else { return Vec::new() };
        slots
            .iter_mut()
            .filter(|slot| **slot == GroupSlot::Of(owner))
            .for_each(|slot| *slot = GroupSlot::Free);
        self.open.entry(*directory).or_default().insert(group);
        if slots.iter().any(|slot| matches!(slot, GroupSlot::Of(_))) {
            return Vec::new();
        }
        self.dissolve(group)
    }

    /// Makes all free slots available to files outside file groups, because no other block is free.
    pub(super) fn leave_free_slots(&mut self) -> Vec<u32> {
        let mut left = Vec::new();
        for (first, group) in &mut self.of {
            for (block, slot) in (*first..).zip(&mut group.slots) {
                if *slot == GroupSlot::Free {
                    *slot = GroupSlot::Left;
                    left.push(block);
                }
            }
        }
        self.open.clear();
        left
    }

    fn dissolve(&mut self, group: u32) -> Vec<u32> {
        let Some(FileGroup { directory, slots }) = self.of.remove(&group) else { return Vec::new() };
        self.open.entry(directory).or_default().remove(&group);
        (group..).zip(slots).filter(|(_, slot)| *slot != GroupSlot::Left).map(|(block, _)| block).collect()
    }

    /// Free slots of all file groups.
    pub(super) fn free_slots(&self) -> u32 {
        let free = |group: &FileGroup| group.slots.iter().filter(|slot| **slot == GroupSlot::Free).count();
        self.of.values().map(free).sum::<usize>() as u32
    }

    /// The blocks of a file group from the first one in use to the last one.
    pub(super) fn span(&self, group: u32) -> Range<u32> {
        let slots = self.slots(group);
        let in_use = |slot: &GroupSlot| matches!(slot, GroupSlot::Of(_));
        let first = slots.iter().position(in_use).unwrap_or(0) as u32;
        let end = slots.iter().rposition(in_use).map_or(0, |last| last + 1) as u32;
        group + first..group + end.max(first)
    }

    /// All blocks of a file group.
    pub(super) fn extent(&self, group: u32) -> Range<u32> {
        group..group + self.slots(group).len() as u32
    }

    /// Whether a block of a file group belongs to one of its files; `None` if it was made available to files outside.
    pub(super) fn is_in_use(&self, group: u32, block: u32) -> Option<bool> {
        match self.slots(group).get((block - group) as usize)? {
            GroupSlot::Free => Some(false),
            GroupSlot::Of(_) => Some(true),
            GroupSlot::Left => None,
        }
    }

    /// Blocks of a file group that belong to its files.
    pub(super) fn used(&self, group: u32) -> u32 {
        self.slots(group).iter().filter(|slot| matches!(slot, GroupSlot::Of(_))).count() as u32
    }

    fn slots(&self, group: u32) -> &[GroupSlot] {
        self.of.get(&group).map_or(&[][..], |group| &group.slots)
    }

    /// The files of a file group, each once.
    pub(super) fn owners(&self, group: u32) -> BTreeSet<Handle> {
        let slots = self.slots(group);
        let owner = |slot: &GroupSlot| if let GroupSlot::Of(owner) = slot { Some(*owner) } else { None };
        slots.iter().filter_map(owner).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_filled_from_its_start_and_dissolved_when_empty() {
        let mut groups = FileGroups::default();
        groups.add(Run { first: 100, blocks: 4 }, 7);
        let (group, run) = groups.find(7, 2).expect("all four are free");
        assert_eq!((group, run), (100, Run { first: 100, blocks: 2 }));
        assert_eq!(groups.find(8, 1), None, "another directory has none");
        groups.fill(group, run, 1);
        let (_, run) = groups.find(7, 2).expect("two are free");
        groups.fill(group, run, 2);
        assert_eq!((groups.find(7, 1), groups.free_slots()), (None, 0));
        assert_eq!(groups.release(100, 1), Vec::<u32>::new());
        assert_eq!((groups.span(100), groups.free_slots()), (102..104, 2));
        assert_eq!(groups.release(100, 2), [100, 101, 102, 103]);
        assert_eq!((groups.find(7, 1), groups.free_slots()), (None, 0));
    }

    #[test]
    fn free_slots_left_to_others_are_not_returned_again() {
        let mut groups = FileGroups::default();
        groups.add(Run { first: 100, blocks: 4 }, 0);
        groups.fill(100, Run { first: 101, blocks: 1 }, 5);
        assert_eq!(groups.leave_free_slots(), [100, 102, 103]);
        assert_eq!((groups.find(0, 1), groups.owners(100).len()), (None, 1));
        assert_eq!(groups.release(100, 5), [101]);
    }
}
