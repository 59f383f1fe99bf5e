//! What lies where in a file system that mke2fs has just made: superblock, group descriptors, block bitmaps, checksums.
//!
//! Only what it takes to mark blocks as used is here, for the features that mke2fs gives ext4 today; others are refused.
//!
//! *Source:* the kernel's description of the format, Documentation/filesystems/ext4 ("Data Structures and Algorithms"): offsets of
//! fields, where groups have copies of the superblock, what a bitmap that is not initialised stands for, what checksums cover.

use super::Ext4Error;
use rustix::fs::SeekFrom;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where the superblock lies, in bytes.
const PLACE: u64 = 1024;
const MAGIC: u16 = 0xEF53;
const EXTENTS: u32 = 0x40;
const BITS64: u32 = 0x80;
const CSUM_SEED: u32 = 0x2000;
const RO_SPARSE_SUPER: u32 = 0x1;
const RO_METADATA_CSUM: u32 = 0x400;
/// Features that change nothing of what is done here, or are seen to. Not among them: clusters of blocks (bigalloc), descriptors in other
/// places (meta_bg), two copies of the superblock only (sparse_super2), checksums of descriptors alone (uninit_bg), quotas, data in inodes.
const KNOWN: [(&str, u32); 3] = [("compatible", 0x1C3F), ("incompatible", 0x366C2), ("read-only", 0x1A46F)];
/// A feature that nobody knows, so that neither the kernel nor e2fsck takes a file system on which work goes on.
const UNFINISHED: u32 = 0x4000_0000;
/// The journal holds what is not in its place yet.
const RECOVER: u32 = 0x4;
/// Where the superblock says in which state the file system is, and which features it needs.
const STATE: usize = 0x3A;
const INCOMPATIBLE: usize = 0x60;
/// The bitmap of a group's blocks is not on the disk: only its own metadata are used.
const BLOCK_UNINIT: u16 = 2;
/// None of a group's inodes is used.
const INODE_UNINIT: u16 = 1;
/// What mke2fs empties at the start of a disk before all else.
const HEAD_BYTES: usize = 4096;

/// What a superblock says of its file system.
///
/// *Source:* as of the format; `s_state` is 1 for cleanly unmounted, 2 for errors detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Whole and clean.
    Clean = 1,
    /// Not to be trusted: e2fsck has to look at it, and the kernel says so where it is mounted.
    Errors = 2,
}

/// Checksum of bytes after others, as the format takes it: CRC-32C without the last inversion.
pub(super) fn checksum(seed: u32, bytes: &[u8]) -> u32 {
    !crc32c::crc32c_append(!seed, bytes)
}

/// A number of the format at a place.
pub(super) fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(super) fn short(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

pub(super) fn put_short(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// What the superblock tells of groups.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) blocks: u64,
    pub(super) block_bytes: u64,
    pub(super) first_block: u64,
    pub(super) group_blocks: u64,
    pub(super) group_inodes: u64,
    pub(super) inode_bytes: u64,
    pub(super) inodes: u64,
    pub(super) descriptor_bytes: u64,
    reserved_descriptors: u64,
    /// Whether only few groups have copies of the superblock.
    is_sparse: bool,
    /// Whether files may have extents.
    pub(super) has_extents: bool,
    /// Where all checksums begin, if there are any.
    pub(super) seed: Option<u32>,
}

impl Shape {
    fn of(sector: &[u8]) -> Result<Shape, Ext4Error> {
        let word = |at| u64::from(number(sector, at));
        let [compatible, incompatible, read_only] = [0x5C, INCOMPATIBLE, 0x64].map(|at| number(sector, at));
        if short(sector, 0x38) != MAGIC || number(sector, 0x18) > 6 || word(0x20) == 0 || word(0x28) == 0 {
            return Err(Ext4Error::Format("its superblock".to_string()));
        }
        if incompatible & UNFINISHED != 0 {
            return Err(Ext4Error::Unfinished);
        }
        if incompatible & RECOVER != 0 {
            return Err(Ext4Error::Journal);
        }
        for ((kind, known), found) in KNOWN.iter().zip([compatible, incompatible, read_only]) {
            let odd = found & !known;
            if odd != 0 {
                return Err(Ext4Error::Feature(format!("{kind} {odd:#x}")));
            }
        }
        let high = if incompatible & BITS64 != 0 { word(0x150) } else { 0 };
        let descriptor_bytes = if incompatible & BITS64 != 0 { u64::from(short(sector, 0xFE)) } else { 32 };
        let (block_bytes, inode_bytes) = (1024 << number(sector, 0x18), u64::from(short(sector, 0x58)));
        let blocks = word(0x4) | high << 32;
        let is_sound = (32..=block_bytes).contains(&descriptor_bytes)
            && (128..=block_bytes).contains(&inode_bytes)
            && word(0x20) <= 8 * block_bytes
            && word(0x28) <= 8 * block_bytes
            && blocks > word(0x14);
        if !is_sound {
            return Err(Ext4Error::Format("its superblock".to_string()));
        }
        let own = checksum(!0, &sector[0x68..0x78]);
        let seed = if incompatible & CSUM_SEED != 0 { number(sector, 0x270) } else { own };
        Ok(Shape {
            blocks,
            block_bytes,
            first_block: word(0x14),
            group_blocks: word(0x20),
            group_inodes: word(0x28),
            inode_bytes,
            inodes: word(0),
            descriptor_bytes,
            reserved_descriptors: u64::from(short(sector, 0xCE)),
            is_sparse: read_only & RO_SPARSE_SUPER != 0,
            has_extents: incompatible & EXTENTS != 0,
            seed: (read_only & RO_METADATA_CSUM != 0).then_some(seed),
        })
    }

    /// The same on a disk of so many blocks.
    pub(super) fn with_blocks(&self, blocks: u64) -> Shape {
        Shape { blocks, ..self.clone() }
    }

    pub(super) fn groups(&self) -> u64 {
        (self.blocks - self.first_block).div_ceil(self.group_blocks)
    }

    /// The group that holds a block.
    pub(super) fn group_of(&self, block: u64) -> u64 {
        block.saturating_sub(self.first_block) / self.group_blocks
    }

    /// First block of a group.
    pub(super) fn group_start(&self, group: u64) -> u64 {
        self.first_block + group * self.group_blocks
    }

    /// Blocks of a group; the last has fewer.
    pub(super) fn blocks_in(&self, group: u64) -> u64 {
        self.group_blocks.min(self.blocks - self.group_start(group))
    }

    /// Blocks of a copy of the superblock with its descriptors.
    pub(super) fn head_blocks(&self) -> u64 {
        1 + (self.groups() * self.descriptor_bytes).div_ceil(self.block_bytes)
    }

    pub(super) fn inode_table_blocks(&self) -> u64 {
        (self.group_inodes * self.inode_bytes).div_ceil(self.block_bytes)
    }

    /// Whether a group has a copy of the superblock.
    pub(super) fn has_copy(&self, group: u64) -> bool {
        let is_power = |base: u64| {
            std::iter::successors(Some(base), |power| power.checked_mul(base))
                .take_while(|power| *power <= group)
                .any(|power| power == group)
        };
        !self.is_sparse || group <= 1 || [3, 5, 7].into_iter().any(is_power)
    }
}

/// A group's descriptor.
pub(super) struct Descriptor<'a>(&'a [u8]);

impl Descriptor<'_> {
    fn wide(&self, low: usize, high: usize) -> u64 {
        let high = if self.0.len() >= 64 { number(self.0, high) } else { 0 };
        u64::from(number(self.0, low)) | u64::from(high) << 32
    }

    pub(super) fn block_bitmap(&self) -> u64 {
        self.wide(0, 0x20)
    }

    fn inode_bitmap(&self) -> u64 {
        self.wide(0x4, 0x24)
    }

    pub(super) fn inode_table(&self) -> u64 {
        self.wide(0x8, 0x28)
    }

    fn free_blocks(&self) -> u64 {
        let high = if self.0.len() >= 64 { short(self.0, 0x2C) } else { 0 };
        u64::from(short(self.0, 0xC)) | u64::from(high) << 16
    }

    fn is_uninit(&self) -> bool {
        short(self.0, 0x12) & BLOCK_UNINIT != 0
    }

    /// Inodes from the first on that may be used; where nobody keeps count of them, all.
    pub(super) fn used_inodes(&self, shape: &Shape) -> u64 {
        let high = if self.0.len() >= 64 { short(self.0, 0x32) } else { 0 };
        let unused = u64::from(short(self.0, 0x1C)) | u64::from(high) << 16;
        match shape.seed {
            Some(_) if short(self.0, 0x12) & INODE_UNINIT != 0 => 0,
            Some(_) => shape.group_inodes.saturating_sub(unused),
            None => shape.group_inodes,
        }
    }
}

/// A file system that nobody uses, open to be changed.
pub(super) struct Filesystem<'a> {
    file: &'a File,
    pub(super) shape: Shape,
    pub(super) superblock: Vec<u8>,
    descriptors: Vec<u8>,
    /// First block and length of all bitmaps and tables, in ascending order.
    metadata: Vec<(u64, u64)>,
}

/// Blocks of a group, a bit each: set where used.
pub(super) struct Bitmap {
    pub(super) bytes: Vec<u8>,
}

impl Bitmap {
    pub(super) fn is_set(&self, bit: u64) -> bool {
        self.bytes[(bit / 8) as usize] & 1 << (bit % 8) != 0
    }

    pub(super) fn set(&mut self, bit: u64) {
        self.bytes[(bit / 8) as usize] |= 1 << (bit % 8);
    }
}

impl<'a> Filesystem<'a> {
    pub(super) fn open(file: &'a File) -> Result<Filesystem<'a>, Ext4Error> {
        let mut superblock = vec![0; 1024];
        read(file, &mut superblock, PLACE)?;
        let shape = Shape::of(&superblock)?;
        let bytes =
            rustix::fs::seek(file, SeekFrom::End(0)).map_err(|error| Ext4Error::File(error.into()))?;
        if bytes / shape.block_bytes < shape.blocks {
            return Err(Ext4Error::Format("its superblock, of more than there is,".to_string()));
        }
        let mut descriptors = vec![0; (shape.groups() * shape.descriptor_bytes) as usize];
        read(file, &mut descriptors, (shape.first_block + 1) * shape.block_bytes)?;
        let mut opened = Filesystem { file, shape, superblock, descriptors, metadata: Vec::new() };
        let table = opened.shape.inode_table_blocks();
        let mut metadata = Vec::new();
        for group in 0..opened.shape.groups() {
            let it = opened.descriptor(group);
            metadata.extend([(it.block_bitmap(), 1), (it.inode_bitmap(), 1), (it.inode_table(), table)]);
        }
        metadata.sort_unstable();
        opened.metadata = metadata;
        Ok(opened)
    }

    pub(super) fn descriptor(&self, group: u64) -> Descriptor<'_> {
        let size = self.shape.descriptor_bytes as usize;
        Descriptor(&self.descriptors[group as usize * size..][..size])
    }

    /// Blocks that a group has free.
    pub(super) fn free_in(&self, group: u64) -> u64 {
        self.descriptor(group).free_blocks()
    }

    /// Which blocks of a group are used.
    ///
    /// *Errors:* those of the file.
    pub(super) fn used(&self, group: u64) -> Result<Bitmap, Ext4Error> {
        let descriptor = self.descriptor(group);
        let mut bitmap = Bitmap { bytes: vec![0; self.shape.block_bytes as usize] };
        if !descriptor.is_uninit() {
            read(self.file, &mut bitmap.bytes, descriptor.block_bitmap() * self.shape.block_bytes)?;
            return Ok(bitmap);
        }
        let (start, blocks) = (self.shape.group_start(group), self.shape.blocks_in(group));
        if self.shape.has_copy(group) {
            let head = self.shape.head_blocks() + self.shape.reserved_descriptors;
            (0..head.min(blocks)).for_each(|bit| bitmap.set(bit));
        }
        let longest = self.shape.inode_table_blocks();
        let from = self.metadata.partition_point(|(first, _)| first + longest <= start);
        let within = self.metadata[from..].iter().take_while(|(first, _)| *first < start + blocks);
        for (first, length) in within {
            (*first.max(&start)..(first + length).min(start + blocks))
                .for_each(|block| bitmap.set(block - start));
        }
        (blocks..self.shape.block_bytes * 8).for_each(|bit| bitmap.set(bit));
        Ok(bitmap)
    }

    /// Keeps which blocks of a group are used, so many more than before.
    ///
    /// *Errors:* those of the file.
    pub(super) fn keep(&mut self, group: u64, bitmap: &Bitmap, more: u64) -> Result<(), Ext4Error> {
        let free = self.free_in(group).checked_sub(more);
        let free = free.ok_or_else(|| Ext4Error::Format(format!("the free blocks of group {group}")))?;
        let at = self.descriptor(group).block_bitmap() * self.shape.block_bytes;
        write(self.file, &bitmap.bytes, at)?;
        let covered = (self.shape.group_blocks / 8) as usize;
        let sum = self.shape.seed.map(|seed| checksum(seed, &bitmap.bytes[..covered]));
        let (seed, size) = (self.shape.seed, self.shape.descriptor_bytes as usize);
        let bytes = &mut self.descriptors[group as usize * size..][..size];
        put_short(bytes, 0xC, free as u16);
        let flags = short(bytes, 0x12) & !BLOCK_UNINIT;
        put_short(bytes, 0x12, flags);
        let sum = sum.unwrap_or(0);
        put_short(bytes, 0x18, sum as u16);
        if size >= 64 {
            put_short(bytes, 0x2C, (free >> 16) as u16);
            put_short(bytes, 0x38, (sum >> 16) as u16);
        }
        if let Some(seed) = seed {
            put_short(bytes, 0x1E, 0);
            let sum = checksum(checksum(seed, &(group as u32).to_le_bytes()), bytes);
            put_short(bytes, 0x1E, sum as u16);
        }
        Ok(())
    }

    /// Writes a block.
    ///
    /// *Errors:* those of the file.
    pub(super) fn write_block(&self, block: u64, bytes: &[u8]) -> Result<(), Ext4Error> {
        write(self.file, bytes, block * self.shape.block_bytes)
    }

    /// Reads an inode; gives its place in bytes too.
    ///
    /// *Errors:* those of the file.
    pub(super) fn inode(&self, inode: u32) -> Result<(u64, Vec<u8>), Ext4Error> {
        let (group, index) =
            (u64::from(inode - 1) / self.shape.group_inodes, u64::from(inode - 1) % self.shape.group_inodes);
        let table = self.descriptor(group).inode_table() * self.shape.block_bytes;
        let at = table + index * self.shape.inode_bytes;
        let mut bytes = vec![0; self.shape.inode_bytes as usize];
        read(self.file, &mut bytes, at)?;
        Ok((at, bytes))
    }

    /// Bytes of some inodes of a group.
    ///
    /// *Errors:* those of the file.
    pub(super) fn inodes_of(&self, group: u64, first: u64, count: u64) -> Result<Vec<u8>, Ext4Error> {
        let table = self.place(self.descriptor(group).inode_table())?;
        let mut bytes = vec![0; (count * self.shape.inode_bytes) as usize];
        read(self.file, &mut bytes, table + first * self.shape.inode_bytes)?;
        Ok(bytes)
    }

    /// Reads a block, if there is one of this number.
    ///
    /// *Errors:* those of the file.
    pub(super) fn block(&self, block: u64) -> Result<Option<Vec<u8>>, Ext4Error> {
        let Ok(at) = self.place(block) else { return Ok(None) };
        let mut bytes = vec![0; self.shape.block_bytes as usize];
        read(self.file, &mut bytes, at)?;
        Ok(Some(bytes))
    }

    /// Where a block lies, in bytes.
    fn place(&self, block: u64) -> Result<u64, Ext4Error> {
        match block < self.shape.blocks {
            true => Ok(block * self.shape.block_bytes),
            false => Err(Ext4Error::Format(format!("block {block}, which lies beyond its end,"))),
        }
    }

    /// Writes bytes somewhere.
    ///
    /// *Errors:* those of the file.
    pub(super) fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), Ext4Error> {
        write(self.file, bytes, at)
    }

    /// Makes it one that cannot be mounted until it is closed, whatever happens meanwhile.
    ///
    /// *Errors:* those of the file.
    pub(super) fn withhold(&self) -> Result<(), Ext4Error> {
        let mut withheld = self.superblock.clone();
        put_short(&mut withheld, STATE, State::Errors as u16);
        let features = number(&withheld, INCOMPATIBLE) | UNFINISHED;
        put(&mut withheld, INCOMPATIBLE, features);
        write_superblock(self.file, withheld)
    }

    /// Writes descriptors, and once they and all else are on the disk the superblock of a clean file system, of so many blocks fewer that
    /// are free.
    ///
    /// *Errors:* those of the file.
    pub(super) fn close(mut self, fewer: u64) -> Result<(), Ext4Error> {
        write(self.file, &self.descriptors, (self.shape.first_block + 1) * self.shape.block_bytes)?;
        self.file.sync_all().map_err(Ext4Error::File)?;
        let bytes = &mut self.superblock;
        let free = u64::from(number(bytes, 0xC)) | u64::from(number(bytes, 0x158)) << 32;
        let free = free.checked_sub(fewer);
        let free = free.ok_or_else(|| Ext4Error::Format("its number of free blocks".to_string()))?;
        put(bytes, 0xC, free as u32);
        put(bytes, 0x158, (free >> 32) as u32);
        put_short(bytes, STATE, State::Clean as u16);
        write_superblock(self.file, self.superblock)
    }
}

/// Writes a superblock with its checksum, and waits until it is on the disk.
fn write_superblock(file: &File, mut bytes: Vec<u8>) -> Result<(), Ext4Error> {
    if number(&bytes, 0x64) & RO_METADATA_CSUM != 0 {
        let sum = checksum(!0, &bytes[..0x3FC]);
        put(&mut bytes, 0x3FC, sum);
    }
    write(file, &bytes, PLACE)?;
    file.sync_all().map_err(Ext4Error::File)
}

/// Empties the start of a disk, so that nothing on it is taken for whole while another file system is made there.
///
/// *Errors:* those of the file.
pub(super) fn empty_head(file: &File) -> Result<(), Ext4Error> {
    write(file, &[0; HEAD_BYTES], 0)?;
    file.sync_all().map_err(Ext4Error::File)
}

/// Has the superblock say in which state the file system is.
///
/// *Errors:* those of the file, and what is no ext4.
pub(super) fn put_state(file: &File, state: State) -> Result<(), Ext4Error> {
    let mut bytes = vec![0; 1024];
    read(file, &mut bytes, PLACE)?;
    Shape::of(&bytes)?;
    put_short(&mut bytes, STATE, state as u16);
    write_superblock(file, bytes)
}

fn read(file: &File, bytes: &mut [u8], at: u64) -> Result<(), Ext4Error> {
    file.read_exact_at(bytes, at).map_err(Ext4Error::File)
}

fn write(file: &File, bytes: &[u8], at: u64) -> Result<(), Ext4Error> {
    file.write_all_at(bytes, at).map_err(Ext4Error::File)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_is_crc32c_without_the_last_inversion() {
        // The check value of CRC-32C is 0xE3069283; the format leaves the last inversion out.
        assert_eq!(!checksum(!0, b"123456789"), 0xE306_9283);
        assert_eq!(checksum(checksum(!0, b"1234"), b"56789"), checksum(!0, b"123456789"));
    }
}
