//! A directory's entries: each has an inode, its own length and a name, and is found by a search from the start.

/// Bytes of an entry before its name.
const HEAD_BYTES: u32 = 8;

/// An entry; its length reaches to the next entry or the end of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DirectoryEntry {
    length: u32,
    /// 0 for an entry that was removed.
    inode: u32,
    name_bytes: u32,
}

impl DirectoryEntry {
    /// Bytes that an entry needs.
    fn needs(name_bytes: u32) -> u32 {
        (HEAD_BYTES + name_bytes).next_multiple_of(4)
    }

    fn used(self) -> u32 {
        if self.inode == 0 { 0 } else { DirectoryEntry::needs(self.name_bytes) }
    }
}

/// The entries of a directory, by block.
#[derive(Clone, Debug, Default)]
pub(super) struct Ext2Directory {
    blocks: Vec<Vec<DirectoryEntry>>,
}

impl Ext2Directory {
    /// A directory that has the entries of itself and of its parent.
    pub(super) fn new(inode: u32, parent: u32, block_bytes: u32) -> Ext2Directory {
        let own = DirectoryEntry { length: DirectoryEntry::needs(1), inode, name_bytes: 1 };
        let rest = block_bytes - own.length;
        Ext2Directory {
            blocks: vec![vec![own, DirectoryEntry { length: rest, inode: parent, name_bytes: 2 }]],
        }
    }

    /// The block that has, or would have, an entry with a name of this length; the number of blocks if there is no room.
    fn room(&self, name_bytes: u32) -> (usize, usize) {
        let needs = DirectoryEntry::needs(name_bytes);
        let has_room = |entry: &DirectoryEntry| entry.length - entry.used() >= needs;
        let found = self
            .blocks
            .iter()
            .enumerate()
            .find_map(|(block, entries)| entries.iter().position(has_room).map(|entry| (block, entry)));
        found.unwrap_or((self.blocks.len(), 0))
    }

    /// Whether a new entry needs a new block.
    pub(super) fn is_full(&self, name_bytes: u32) -> bool {
        self.room(name_bytes).0 == self.blocks.len()
    }

    /// Adds an entry; returns the block, counted from 0, that has it.
    pub(super) fn add(&mut self, inode: u32, name_bytes: u32, block_bytes: u32) -> usize {
        let (block, index) = self.room(name_bytes);
        if block == self.blocks.len() {
            self.blocks.push(vec![DirectoryEntry { length: block_bytes, inode, name_bytes }]);
            return block;
        }
        let entries = &mut self.blocks[block];
        let used = entries[index].used();
        if used == 0 {
            (entries[index].inode, entries[index].name_bytes) = (inode, name_bytes);
        } else {
            let length = entries[index].length - used;
            entries[index].length = used;
            entries.insert(index + 1, DirectoryEntry { length, inode, name_bytes });
        }
        block
    }

    /// Removes an inode's entry; returns its block. The entry before it in the block gets its length.
    pub(super) fn remove(&mut self, inode: u32) -> Option<usize> {
        let block = self.block_of(inode)?;
        let entries = &mut self.blocks[block];
        let index = entries.iter().position(|entry| entry.inode == inode)?;
        if index == 0 {
            entries[0].inode = 0;
        } else {
            entries[index - 1].length += entries.remove(index).length;
        }
        Some(block)
    }

    /// The block that has an inode's entry.
    pub(super) fn block_of(&self, inode: u32) -> Option<usize> {
        self.blocks.iter().position(|entries| entries.iter().any(|entry| entry.inode == inode))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_fill_their_block_before_another_begins() {
        let mut directory = Ext2Directory::new(2, 2, 1024);
        // 24 B for itself and its parent, and 20 B for each name of 9 to 12 characters.
        let blocks: Vec<usize> = (0..51).map(|file| directory.add(12 + file, 12, 1024)).collect();
        assert!(blocks[..50].iter().all(|block| *block == 0), "{blocks:?}");
        assert_eq!(blocks[50], 1);
    }

    #[test]
    fn removed_entry_leaves_its_room_to_the_next_one() {
        let mut directory = Ext2Directory::new(2, 2, 1024);
        (0..60).for_each(|file| _ = directory.add(12 + file, 12, 1024));
        assert_eq!(directory.remove(30), Some(0));
        assert_eq!(directory.block_of(30), None);
        assert_eq!(directory.add(99, 12, 1024), 0);
        assert_eq!(directory.add(100, 12, 1024), 1);
    }
}
