//! Names and inodes: which numbers files get, and in which blocks these lie.

use super::{BLOCK_BYTES, GROUP_BLOCKS, INODES, INODES_A_BLOCK, Layout, NAMES_A_BLOCK};
use std::collections::BTreeSet;

/// Bytes of an inode and its name where the inode lies in the directory.
const EMBEDDED_BYTES: u32 = 16 + 128;

/// Names of a block of a directory that holds inodes, too.
const EMBEDDED_A_BLOCK: u32 = BLOCK_BYTES as u32 / EMBEDDED_BYTES;

/// Numbers from 0 on; freed ones are used again, the lowest first.
#[derive(Clone, Debug, Default)]
struct Numbers {
    free: BTreeSet<u32>,
    next: u32,
}

impl Numbers {
    fn has_below(&self, end: u32) -> bool {
        !self.free.is_empty() || self.next < end
    }

    fn draw(&mut self) -> u32 {
        self.free.pop_first().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

#[derive(Clone, Debug, Default)]
struct Directory {
    names: Numbers,
    blocks: Vec<u32>,
}

/// Where the name and the inode of a file are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NameEntry {
    pub(super) directory: u32,
    /// Its place in the directory.
    name: u32,
    /// Number of its inode.
    inode: u32,
}

/// Directories and inodes. Directories are spread over the groups of the file system, one after the other.
///
/// *Source:* FreeBSD 4.0, `ffs_dirpref`: a directory's group is the one with the fewest directories.
#[derive(Clone, Debug)]
pub(super) struct Directories {
    of: Vec<Directory>,
    /// Numbers of inodes, for each group.
    inodes: Vec<Numbers>,
    embedded: bool,
}

impl Directories {
    pub(super) fn new(groups: u32) -> Directories {
        Directories { of: Vec::new(), inodes: vec![Numbers::default(); groups as usize], embedded: false }
    }

    /// The same directories, with inodes in the blocks of their names.
    pub(super) fn with_embedded_inodes(self) -> Directories {
        Directories { embedded: true, ..self }
    }

    /// Adds an entry to a directory; returns it and the group of its inode. The directory grows by a block if it must.
    pub(super) fn add(&mut self, directory: u32, layout: &mut Layout) -> (NameEntry, u32) {
        if self.of.len() <= directory as usize {
            self.of.resize_with(directory as usize + 1, Directory::default);
        }
        let groups = self.inodes.len() as u32;
        let has_room = |group: &u32| self.inodes[*group as usize].has_below(INODES);
        let mut all = (0..groups).map(|step| (directory + step) % groups);
        // With all inodes in use, further files share the last one.
        let group = all.find(has_room).unwrap_or(groups - 1);
        let inode = group * INODES + self.inodes[group as usize].draw().min(INODES - 1);
        let names_a_block = self.names_a_block();
        let to = &mut self.of[directory as usize];
        let name = to.names.draw();
        while to.blocks.len() <= (name / names_a_block) as usize {
            // A full disk has room for names in any block: their place is then wrong by a block.
            to.blocks.push(layout.place_one(group).unwrap_or_default());
        }
        (NameEntry { directory, name, inode }, group)
    }

    pub(super) fn remove(&mut self, entry: NameEntry) {
        self.of[entry.directory as usize].names.free.insert(entry.name);
        self.inodes[(entry.inode / INODES) as usize].free.insert(entry.inode % INODES);
    }

    /// The block with the name and, unless inodes lie there too, the one with the inode.
    pub(super) fn blocks_of(&self, entry: NameEntry) -> (u32, Option<u32>) {
        let name = self.of[entry.directory as usize].blocks[(entry.name / self.names_a_block()) as usize];
        (name, (!self.embedded).then(|| inode_block(entry.inode)))
    }

    /// Places the blocks of all directories in another layout; `None` if it has no room.
    pub(super) fn place_again(&mut self, layout: &mut Layout) -> Option<()> {
        let groups = self.inodes.len() as u32;
        for (number, directory) in (0..).zip(&mut self.of) {
            for block in &mut directory.blocks {
                *block = layout.place_one(number % groups)?;
            }
        }
        Some(())
    }

    /// The blocks of these directories, each with the corresponding block of `other`.
    pub(super) fn paired_blocks(&self, other: &Directories) -> Vec<(u32, u32)> {
        let pairs = self.of.iter().zip(&other.of);
        let blocks = pairs.flat_map(|(from, to)| from.blocks.iter().zip(&to.blocks));
        blocks.map(|(from, to)| (*from, *to)).collect()
    }

    fn names_a_block(&self) -> u32 {
        if self.embedded { EMBEDDED_A_BLOCK } else { NAMES_A_BLOCK }
    }
}

fn inode_block(number: u32) -> u32 {
    number / INODES * GROUP_BLOCKS + 2 + number % INODES / INODES_A_BLOCK
}
