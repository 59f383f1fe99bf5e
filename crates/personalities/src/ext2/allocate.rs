//! Files and directories: which inodes and blocks they get, and which metadata that changes.

use super::directory::Ext2Directory;
use super::file::{Ext2File, PointerBlock, preallocated};
use super::geometry::Ext2Geometry;
use super::space::Ext2Space;
use std::collections::BTreeMap;
use std::ops::Range;
use thiserror::Error;

/// Inodes that no file has: the first ten.
const RESERVED_INODES: u32 = 10;

/// Bytes of `lost+found` as it is made, and its most and fewest blocks. *Source:* mke2fs.
const LOST_BYTES: u32 = 16 * 1024;
const LOST_BLOCKS: (u32, u32) = (2, 12);

/// Bytes of a file's name. *Source:* assumption: those of Bonnie's file, `Bonnie.` and a process number.
pub(super) const NAME_BYTES: u32 = 11;

/// Why a file cannot be made or lengthened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Ext2Error {
    /// No block is free.
    #[error("no free block is left")]
    NoBlock,
    /// No inode is free.
    #[error("no free inode is left")]
    NoInode,
}

#[derive(Clone, Debug)]
pub(super) struct DirectoryFile {
    pub(super) file: Ext2File,
    pub(super) entries: Ext2Directory,
}

/// An ext2 with its files.
#[derive(Clone, Debug)]
pub struct Ext2Volume {
    geometry: Ext2Geometry,
    pub(super) space: Ext2Space,
    preallocates: u32,
    pub(super) files: BTreeMap<u32, Ext2File>,
    pub(super) directories: BTreeMap<u32, DirectoryFile>,
    /// Blocks that are reserved for hot files.
    pub(super) hot_area: Range<u32>,
    /// Metadata blocks that changed, with whether a block is new, so that nothing of it is on the disk.
    touched: BTreeMap<u32, bool>,
}

impl Ext2Volume {
    /// The file system as mke2fs creates it, with its root (directory 0) and `lost+found`. Growing files get blocks in advance if
    /// `preallocates`.
    ///
    /// *Errors:* the first group has no room for the two directories.
    pub fn new(geometry: Ext2Geometry, preallocates: bool) -> Result<Ext2Volume, Ext2Error> {
        let mut volume = Ext2Volume {
            geometry,
            space: Ext2Space::new(geometry),
            preallocates: preallocated(preallocates),
            files: BTreeMap::new(),
            directories: BTreeMap::new(),
            hot_area: 0..0,
            touched: BTreeMap::new(),
        };
        (0..RESERVED_INODES)
            .try_for_each(|_| volume.space.new_inode(0).map(drop).ok_or(Ext2Error::NoInode))?;
        let mut root = Ext2File { inode: 2, ..Ext2File::default() };
        volume.lengthen(&mut root, 1, 1)?;
        let mut entries = Ext2Directory::new(2, 2, geometry.block_bytes);
        let inode = volume.space.new_inode(0).ok_or(Ext2Error::NoInode)?;
        entries.add(inode, "lost+found".len() as u32, geometry.block_bytes);
        let mut lost = Ext2File { inode, ..Ext2File::default() };
        let blocks = (LOST_BYTES / geometry.block_bytes).clamp(LOST_BLOCKS.0, LOST_BLOCKS.1);
        volume.lengthen(&mut lost, blocks, 1)?;
        volume.directories.insert(0, DirectoryFile { file: root, entries });
        volume.touched.clear();
        Ok(volume)
    }

    /// The layout.
    pub fn geometry(&self) -> &Ext2Geometry {
        &self.geometry
    }

    /// Free blocks of a group.
    pub fn free_blocks(&self, group: u32) -> u32 {
        self.space.free_blocks(group)
    }

    /// Free inodes of a group.
    pub fn free_inodes(&self, group: u32) -> u32 {
        self.space.free_inodes(group)
    }

    /// The data blocks of a file, in order; none if there is no such file.
    pub fn blocks_of(&self, file: u32) -> &[u32] {
        self.files.get(&file).map_or(&[], |file| &file.blocks)
    }

    /// The blocks of pointers of a file.
    pub fn pointers_of(&self, file: u32) -> impl Iterator<Item = (PointerBlock, u32)> {
        let pointers = self.files.get(&file).map(|file| &file.pointers);
        pointers.into_iter().flatten().map(|(kind, block)| (*kind, *block))
    }

    /// The metadata blocks that changed since the last call, with whether a block is new.
    pub(super) fn take_touched(&mut self) -> BTreeMap<u32, bool> {
        std::mem::take(&mut self.touched)
    }

    pub(super) fn touch(&mut self, block: u32, is_new: bool) {
        self.touched.entry(block).or_insert(is_new);
    }

    fn touch_inode(&mut self, inode: u32) {
        self.touch(self.geometry.inode_block(inode), false);
    }

    pub(super) fn touch_counts(&mut self, group: u32) {
        self.touch(self.geometry.descriptor(group), false);
        self.touch(self.geometry.first_block, false);
    }

    /// A free inode: in the directory's group, or in one found by a search by powers of two and then one by one.
    fn inode_near(&mut self, group: u32) -> Result<u32, Ext2Error> {
        let groups = self.geometry.groups;
        let powers = (0..31).map(|power| 1u32 << power).take_while(|step| *step < groups);
        let far = powers.scan(group, |at, step| {
            *at = (*at + step) % groups;
            Some(*at)
        });
        let in_turn = (0..groups).map(|step| (group + 2 + step) % groups);
        let order = std::iter::once(group).chain(far).chain(in_turn);
        let mut with_room = order.filter(|group| self.space.free_inodes(*group) > 0);
        let group = with_room.next().ok_or(Ext2Error::NoInode)?;
        drop(with_room);
        self.new_inode(group)
    }

    fn new_inode(&mut self, group: u32) -> Result<u32, Ext2Error> {
        let inode = self.space.new_inode(group).ok_or(Ext2Error::NoInode)?;
        self.touch(self.geometry.inode_bitmap(group), false);
        self.touch_counts(group);
        self.touch_inode(inode);
        Ok(inode)
    }

    fn group_of_inode(&self, inode: u32) -> u32 {
        (inode - 1) / self.geometry.inodes_per_group
    }

    /// Creates an empty file in a directory; directory 0 is the root. No file of this number may exist.
    ///
    /// *Errors:* the file system has no free inode, or no block for a longer directory.
    pub fn create(&mut self, file: u32, directory: u32) -> Result<(), Ext2Error> {
        assert!(!self.files.contains_key(&file), "a file is made once");
        let parent = self.directories.get(&directory).map_or(0, |it| it.file.group);
        let inode = self.inode_near(parent)?;
        self.add_name(directory, inode)?;
        let group = self.group_of_inode(inode);
        self.files.insert(file, Ext2File { inode, group, directory, ..Ext2File::default() });
        Ok(())
    }

    /// Creates a directory in the root: of the groups with at least the mean number of free inodes, in the one with the most free blocks.
    ///
    /// *Errors:* as [`Ext2Volume::create`].
    pub fn make_directory(&mut self, directory: u32) -> Result<(), Ext2Error> {
        assert!(!self.directories.contains_key(&directory), "a directory is made once");
        let groups = 0..self.geometry.groups;
        let free: u64 = groups.clone().map(|group| u64::from(self.space.free_inodes(group))).sum();
        let mean = free / u64::from(self.geometry.groups);
        let fitting = groups.filter(|group| u64::from(self.space.free_inodes(*group)) >= mean.max(1));
        // Of equal groups the first.
        let best = fitting.rev().max_by_key(|group| self.space.free_blocks(*group));
        let group = best.ok_or(Ext2Error::NoInode)?;
        let inode = self.new_inode(group)?;
        let mut file = Ext2File { inode, group, ..Ext2File::default() };
        self.lengthen(&mut file, 1, 1)?;
        self.touch(file.blocks[0], true);
        self.add_name(0, inode)?;
        let entries = Ext2Directory::new(inode, 2, self.geometry.block_bytes);
        self.directories.insert(directory, DirectoryFile { file, entries });
        Ok(())
    }

    fn add_name(&mut self, directory: u32, inode: u32) -> Result<(), Ext2Error> {
        let Some(mut parent) = self.directories.remove(&directory) else { return Ok(()) };
        let is_full = parent.entries.is_full(NAME_BYTES);
        let added = if is_full {
            let blocks = parent.file.blocks.len() as u32;
            self.lengthen(&mut parent.file, blocks + 1, 1)
        } else {
            Ok(())
        };
        if added.is_ok() {
            let block = parent.entries.add(inode, NAME_BYTES, self.geometry.block_bytes);
            self.touch(parent.file.blocks[block], is_full);
            self.touch_inode(parent.file.inode);
        }
        self.directories.insert(directory, parent);
        added
    }

    /// Extends a file to byte `bytes` if it is shorter. There are no holes.
    ///
    /// *Errors:* the file system is full; what fitted stays in the file.
    pub fn write_to(&mut self, file: u32, bytes: u64) -> Result<(), Ext2Error> {
        let Some(mut open) = self.files.remove(&file) else { return Ok(()) };
        let blocks = bytes.div_ceil(u64::from(self.geometry.block_bytes)) as u32;
        let done = self.lengthen(&mut open, blocks, self.preallocates);
        open.bytes = open.bytes.max(bytes);
        self.touch_inode(open.inode);
        self.files.insert(file, open);
        done
    }

    fn lengthen(&mut self, file: &mut Ext2File, blocks: u32, preallocates: u32) -> Result<(), Ext2Error> {
        for index in file.blocks.len() as u32..blocks {
            let mut parent = self.geometry.inode_block(file.inode);
            for kind in PointerBlock::path(index, self.geometry.block_bytes / 4) {
                parent = match file.pointers.get(&kind) {
                    Some(block) => *block,
                    None => {
                        let block = self.next_block(file, preallocates)?;
                        self.touch(parent, false);
                        self.touch(block, true);
                        file.pointers.insert(kind, block);
                        block
                    }
                };
            }
            let block = self.next_block(file, preallocates)?;
            self.touch(parent, false);
            file.blocks.push(block);
        }
        Ok(())
    }

    fn next_block(&mut self, file: &mut Ext2File, preallocates: u32) -> Result<u32, Ext2Error> {
        let start = self.geometry.group(file.group).start;
        let block = file.allocate(&mut self.space, start, preallocates).ok_or(Ext2Error::NoBlock)?;
        let group = self.geometry.group_of(block);
        self.touch(self.geometry.block_bitmap(group), false);
        self.touch_counts(group);
        Ok(block)
    }

    /// Frees a block, unless it is reserved for hot files.
    pub(super) fn release_block(&mut self, block: u32) {
        if !self.hot_area.contains(&block) {
            self.space.release(block);
        }
    }

    /// Closes a file: its preallocated blocks are free again.
    pub fn close(&mut self, file: u32) {
        if let Some(open) = self.files.get_mut(&file) {
            open.release_ahead(&mut self.space);
        }
    }

    /// Deletes a file with its name. Returns its blocks of pointers, which are then no longer metadata.
    pub fn delete(&mut self, file: u32) -> Vec<u32> {
        let Some(mut gone) = self.files.remove(&file) else { return Vec::new() };
        gone.release_ahead(&mut self.space);
        let mut last = None;
        for block in gone.all() {
            self.release_block(block);
            let group = self.geometry.group_of(block);
            if last.replace(group) != Some(group) {
                self.touch(self.geometry.block_bitmap(group), false);
                self.touch_counts(group);
            }
        }
        self.space.release_inode(gone.inode);
        self.touch(self.geometry.inode_bitmap(gone.group), false);
        self.touch_inode(gone.inode);
        if let Some(parent) = self.directories.get_mut(&gone.directory)
            && let Some(block) = parent.entries.remove(gone.inode)
        {
            let (block, inode) = (parent.file.blocks[block], parent.file.inode);
            self.touch(block, false);
            self.touch_inode(inode);
        }
        gone.pointers.into_values().collect()
    }
}
