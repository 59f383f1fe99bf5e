//! Group descriptors, block bitmaps and inodes of an unmounted file system.
//!
//! *Source:* the kernel's description of the format, Documentation/filesystems/ext4: offsets of fields, the meaning of an
//! uninitialised bitmap, and what checksums cover.

use crate::Shape;
use crate::bytes::{checksum, put_u16, read_at, read_u16, read_u32, write_at};
use crate::error::FormatError;
use crate::superblock;
use std::fs::File;
use std::io::{Seek, SeekFrom};

/// `BLOCK_UNINIT`: the group's block bitmap is not on the disk; only the group's own metadata are used.
const BLOCK_UNINIT: u16 = 2;
/// `INODE_UNINIT`: none of a group's inodes is used.
const INODE_UNINIT: u16 = 1;
/// Descriptor size in bytes from which it has the high halves of its fields.
const WIDE_DESCRIPTOR: usize = 64;

pub(crate) struct Descriptor<'a>(&'a [u8]);

impl Descriptor<'_> {
    fn is_wide(&self) -> bool {
        self.0.len() >= WIDE_DESCRIPTOR
    }

    fn block_number(&self, low: usize, high: usize) -> u64 {
        let high = if self.is_wide() { read_u32(self.0, high) } else { 0 };
        u64::from(read_u32(self.0, low)) | u64::from(high) << 32
    }

    fn count(&self, low: usize, high: usize) -> u64 {
        let high = if self.is_wide() { read_u16(self.0, high) } else { 0 };
        u64::from(read_u16(self.0, low)) | u64::from(high) << 16
    }

    fn flags(&self) -> u16 {
        read_u16(self.0, 0x12)
    }

    fn block_bitmap(&self) -> u64 {
        self.block_number(0, 0x20)
    }

    fn inode_bitmap(&self) -> u64 {
        self.block_number(0x4, 0x24)
    }

    fn inode_table(&self) -> u64 {
        self.block_number(0x8, 0x28)
    }

    fn free_blocks(&self) -> u64 {
        self.count(0xC, 0x2C)
    }

    /// Number of leading inodes that may be in use. A file system without checksums does not count them: then all.
    pub(crate) fn used_inodes(&self, shape: &Shape) -> u64 {
        let unused = self.count(0x1C, 0x32);
        match shape.seed {
            Some(_) if self.flags() & INODE_UNINIT != 0 => 0,
            Some(_) => shape.group_inodes.saturating_sub(unused),
            None => shape.group_inodes,
        }
    }
}

/// A group's blocks, a bit each: set if used.
pub(crate) struct Bitmap {
    bytes: Vec<u8>,
}

impl Bitmap {
    pub(crate) fn is_set(&self, bit: u64) -> bool {
        self.bytes[(bit / 8) as usize] & 1 << (bit % 8) != 0
    }

    pub(crate) fn set(&mut self, bit: u64) {
        self.bytes[(bit / 8) as usize] |= 1 << (bit % 8);
    }
}

/// An unmounted ext4.
#[derive(Debug)]
pub struct Filesystem<'a> {
    file: &'a File,
    shape: Shape,
    superblock: Vec<u8>,
    descriptors: Vec<u8>,
    /// First block and length of all bitmaps and inode tables, in ascending order.
    metadata: Vec<(u64, u64)>,
}

impl<'a> Filesystem<'a> {
    /// Reads superblock and descriptors of an image or a block device.
    ///
    /// *Errors:* those of the file, and whatever the superblock says that is not supported.
    pub fn open(file: &'a File) -> Result<Filesystem<'a>, FormatError> {
        let superblock = superblock::read(file)?;
        let shape = Shape::new(&superblock)?;
        let mut end = file;
        let bytes = end.seek(SeekFrom::End(0)).map_err(FormatError::File)?;
        if bytes / shape.block_bytes < shape.blocks {
            let what = "the superblock, which claims more blocks than the disk has,";
            return Err(FormatError::Malformed(what.to_string()));
        }
        let mut descriptors = vec![0; (shape.groups() * shape.descriptor_bytes) as usize];
        read_at(file, &mut descriptors, (shape.first_block + 1) * shape.block_bytes)?;
        let mut opened = Filesystem { file, shape, superblock, descriptors, metadata: Vec::new() };
        opened.metadata = opened.list_metadata();
        Ok(opened)
    }

    fn list_metadata(&self) -> Vec<(u64, u64)> {
        let table_blocks = self.shape.inode_table_blocks();
        let mut metadata = Vec::new();
        for group in 0..self.shape.groups() {
            let descriptor = self.descriptor(group);
            metadata.push((descriptor.block_bitmap(), 1));
            metadata.push((descriptor.inode_bitmap(), 1));
            metadata.push((descriptor.inode_table(), table_blocks));
        }
        metadata.sort_unstable();
        metadata
    }

    /// Sizes and counts of the file system.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(crate) fn superblock_u32(&self, offset: usize) -> u32 {
        read_u32(&self.superblock, offset)
    }

    pub(crate) fn descriptor(&self, group: u64) -> Descriptor<'_> {
        let size = self.shape.descriptor_bytes as usize;
        Descriptor(&self.descriptors[group as usize * size..][..size])
    }

    pub(crate) fn free_in(&self, group: u64) -> u64 {
        self.descriptor(group).free_blocks()
    }

    pub(crate) fn used_blocks(&self, group: u64) -> Result<Bitmap, FormatError> {
        let descriptor = self.descriptor(group);
        let mut bitmap = Bitmap { bytes: vec![0; self.shape.block_bytes as usize] };
        if descriptor.flags() & BLOCK_UNINIT == 0 {
            let offset = descriptor.block_bitmap() * self.shape.block_bytes;
            read_at(self.file, &mut bitmap.bytes, offset)?;
        } else {
            self.set_own_metadata(group, &mut bitmap);
        }
        Ok(bitmap)
    }

    /// Sets the blocks used in a group whose bitmap is not on the disk: its copy of the superblock, all metadata in it, and what
    /// is beyond the end of the last group.
    fn set_own_metadata(&self, group: u64, bitmap: &mut Bitmap) {
        let (start, blocks) = (self.shape.group_start(group), self.shape.blocks_in(group));
        if self.shape.has_superblock(group) {
            let head = self.shape.head_blocks() + self.shape.reserved_descriptors;
            (0..head.min(blocks)).for_each(|bit| bitmap.set(bit));
        }
        let longest = self.shape.inode_table_blocks();
        let from = self.metadata.partition_point(|(first, _)| first + longest <= start);
        let within = self.metadata[from..].iter().take_while(|(first, _)| *first < start + blocks);
        for (first, length) in within {
            let (first, end) = (*first.max(&start), (first + length).min(start + blocks));
            (first..end).for_each(|block| bitmap.set(block - start));
        }
        (blocks..self.shape.block_bytes * 8).for_each(|bit| bitmap.set(bit));
    }

    /// Writes the bitmap of a group in which `taken` more blocks are used than before.
    ///
    /// *Errors:* those of the file, and a group with fewer free blocks.
    pub(crate) fn write_used_blocks(
        &mut self,
        group: u64,
        bitmap: &Bitmap,
        taken: u64,
    ) -> Result<(), FormatError> {
        let free = self.free_in(group).checked_sub(taken);
        let free = free
            .ok_or_else(|| FormatError::Malformed(format!("the number of free blocks of group {group}")))?;
        let offset = self.descriptor(group).block_bitmap() * self.shape.block_bytes;
        write_at(self.file, &bitmap.bytes, offset)?;
        let covered = (self.shape.group_blocks / 8) as usize;
        let bitmap_sum = self.shape.seed.map_or(0, |seed| checksum(seed, &bitmap.bytes[..covered]));
        let (seed, size) = (self.shape.seed, self.shape.descriptor_bytes as usize);
        let bytes = &mut self.descriptors[group as usize * size..][..size];
        put_u16(bytes, 0xC, free as u16);
        let flags = read_u16(bytes, 0x12) & !BLOCK_UNINIT;
        put_u16(bytes, 0x12, flags);
        put_u16(bytes, 0x18, bitmap_sum as u16);
        if size >= WIDE_DESCRIPTOR {
            put_u16(bytes, 0x2C, (free >> 16) as u16);
            put_u16(bytes, 0x38, (bitmap_sum >> 16) as u16);
        }
        if let Some(seed) = seed {
            put_u16(bytes, 0x1E, 0);
            let sum = checksum(checksum(seed, &(group as u32).to_le_bytes()), bytes);
            put_u16(bytes, 0x1E, sum as u16);
        }
        Ok(())
    }

    pub(crate) fn write_block(&self, block: u64, bytes: &[u8]) -> Result<(), FormatError> {
        write_at(self.file, bytes, block * self.shape.block_bytes)
    }

    /// The byte offset of an inode, and its content.
    pub(crate) fn inode(&self, inode: u32) -> Result<(u64, Vec<u8>), FormatError> {
        let index = u64::from(inode - 1);
        let (group, index) = (index / self.shape.group_inodes, index % self.shape.group_inodes);
        let table = self.descriptor(group).inode_table() * self.shape.block_bytes;
        let offset = table + index * self.shape.inode_bytes;
        let mut bytes = vec![0; self.shape.inode_bytes as usize];
        read_at(self.file, &mut bytes, offset)?;
        Ok((offset, bytes))
    }

    /// Bytes of `count` inodes of a group from its inode `first` on, counted from 0.
    pub(crate) fn inodes_in(&self, group: u64, first: u64, count: u64) -> Result<Vec<u8>, FormatError> {
        let table = self.offset_of(self.descriptor(group).inode_table())?;
        let mut bytes = vec![0; (count * self.shape.inode_bytes) as usize];
        read_at(self.file, &mut bytes, table + first * self.shape.inode_bytes)?;
        Ok(bytes)
    }

    /// Reads a block; none if the number is beyond the file system.
    pub(crate) fn block(&self, block: u64) -> Result<Option<Vec<u8>>, FormatError> {
        let Ok(offset) = self.offset_of(block) else { return Ok(None) };
        let mut bytes = vec![0; self.shape.block_bytes as usize];
        read_at(self.file, &mut bytes, offset)?;
        Ok(Some(bytes))
    }

    fn offset_of(&self, block: u64) -> Result<u64, FormatError> {
        if block < self.shape.blocks {
            Ok(block * self.shape.block_bytes)
        } else {
            Err(FormatError::Malformed(format!("block {block}, which lies beyond the end,")))
        }
    }

    pub(crate) fn write_bytes(&self, offset: u64, bytes: &[u8]) -> Result<(), FormatError> {
        write_at(self.file, bytes, offset)
    }

    /// Marks the file system as unfinished, so that it cannot be mounted until [`Filesystem::finish`], even after a crash.
    pub(crate) fn mark_unfinished(&self) -> Result<(), FormatError> {
        superblock::write_unfinished(self.file, &self.superblock)
    }

    /// Writes the descriptors and syncs the disk; then writes the superblock of a clean file system with `taken` fewer free
    /// blocks.
    pub(crate) fn finish(self, taken: u64) -> Result<(), FormatError> {
        write_at(self.file, &self.descriptors, (self.shape.first_block + 1) * self.shape.block_bytes)?;
        self.file.sync_all().map_err(FormatError::File)?;
        superblock::write_clean(self.file, self.superblock, taken)
    }
}
