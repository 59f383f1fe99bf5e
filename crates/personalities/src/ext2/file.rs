//! A file's blocks: data, and the blocks of pointers that lead to them.

use super::space::Ext2Space;
use super::{DIRECT_POINTERS, PREALLOCATED_BLOCKS};
use std::collections::BTreeMap;

/// A block of pointers of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PointerBlock {
    /// Points to data.
    Single,
    /// Points to blocks that point to data.
    Double,
    /// A block that the double indirect one points to.
    DoubleLeaf(u32),
    /// Points to blocks that each point to blocks, as the double indirect one does.
    Triple,
    /// A block that the triple indirect one points to.
    TripleBranch(u32),
    /// A block that one of these points to, counted over all of them.
    TripleLeaf(u32),
}

impl PointerBlock {
    /// The blocks of pointers that lead to a block of a file, outermost first, where each has `pointers` of them.
    pub fn path(index: u32, pointers: u32) -> impl Iterator<Item = PointerBlock> {
        let direct = u64::from(DIRECT_POINTERS);
        let (index, pointers) = (u64::from(index), u64::from(pointers));
        let single = index.checked_sub(direct);
        let double = index.checked_sub(direct + pointers);
        let triple = index.checked_sub(direct + pointers + pointers * pointers);
        let path = match (single, double, triple) {
            (.., Some(rest)) => [
                Some(PointerBlock::Triple),
                Some(PointerBlock::TripleBranch((rest / pointers / pointers) as u32)),
                Some(PointerBlock::TripleLeaf((rest / pointers) as u32)),
            ],
            (_, Some(rest), _) => {
                [Some(PointerBlock::Double), Some(PointerBlock::DoubleLeaf((rest / pointers) as u32)), None]
            }
            (Some(_), ..) => [Some(PointerBlock::Single), None, None],
            _ => [None; 3],
        };
        path.into_iter().flatten()
    }
}

/// A file, or a directory.
#[derive(Clone, Debug, Default)]
pub(super) struct Ext2File {
    pub(super) inode: u32,
    pub(super) group: u32,
    pub(super) directory: u32,
    pub(super) bytes: u64,
    pub(super) blocks: Vec<u32>,
    pub(super) pointers: BTreeMap<PointerBlock, u32>,
    /// The block that was allocated to the file last.
    pub(super) last: Option<u32>,
    /// The first preallocated block, and how many follow it, itself included.
    pub(super) ahead: (u32, u32),
}

impl Ext2File {
    /// Allocates a block for the file near its last one; for a new file near `start`.
    ///
    /// The block, or nothing if the file system is full.
    pub(super) fn allocate(&mut self, space: &mut Ext2Space, start: u32, preallocates: u32) -> Option<u32> {
        let (next, count) = self.ahead;
        let follows = self.last.is_none_or(|last| last + 1 == next);
        if count > 0 && follows {
            self.ahead = (next + 1, count - 1);
            self.last = Some(next);
            return Some(next);
        }
        self.release_ahead(space);
        let block = space.find(self.last.map_or(start, |last| last + 1))?;
        space.occupy(block);
        let is_in_group = |next: u32| space.is_same_group(block, next) && space.is_free(next);
        let ahead = (1..preallocates).take_while(|step| is_in_group(block + step)).count() as u32;
        (block + 1..=block + ahead).for_each(|next| space.occupy(next));
        self.ahead = (block + 1, ahead);
        self.last = Some(block);
        Some(block)
    }

    /// Frees the file's preallocated blocks.
    pub(super) fn release_ahead(&mut self, space: &mut Ext2Space) {
        let (next, count) = std::mem::take(&mut self.ahead);
        (next..next + count).for_each(|block| space.release(block));
    }

    /// All blocks of the file.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        self.blocks.iter().chain(self.pointers.values()).copied()
    }
}

/// Blocks that are preallocated for a file of data.
pub(super) fn preallocated(is_on: bool) -> u32 {
    if is_on { PREALLOCATED_BLOCKS } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::PointerBlock::*;
    use super::*;

    #[test]
    fn pointers_lead_to_each_block() {
        let path = |index| PointerBlock::path(index, 256).collect::<Vec<_>>();
        assert_eq!(path(11), []);
        assert_eq!(path(12), [Single]);
        assert_eq!(path(267), [Single]);
        assert_eq!(path(268), [Double, DoubleLeaf(0)]);
        assert_eq!(path(268 + 256), [Double, DoubleLeaf(1)]);
        assert_eq!(path(268 + 65_535), [Double, DoubleLeaf(255)]);
        assert_eq!(path(268 + 65_536), [Triple, TripleBranch(0), TripleLeaf(0)]);
        assert_eq!(path(268 + 2 * 65_536), [Triple, TripleBranch(1), TripleLeaf(256)]);
    }
}
