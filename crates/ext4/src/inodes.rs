//! Locations of the files of an unmounted file system, from its inodes.
//!
//! Extents are read, as of ext4; a file with block lists, as of ext3, is reported without extents. The image is untrusted, so
//! everything is checked.
//!
//! *Source:* the kernel's description of the format, Documentation/filesystems/ext4: fields of inodes, extent trees, reserved
//! inodes.

use crate::Filesystem;
use crate::bytes::{read_u16, read_u32};
use crate::error::FormatError;
use std::ops::Range;

const ROOT: u32 = 2;
const JOURNAL: u32 = 8;
/// `EXTENTS_FL` and `EA_INODE_FL` of an inode's flags.
const HAS_EXTENTS: u32 = 0x8_0000;
const HOLDS_ATTRIBUTES: u32 = 0x20_0000;
/// File types in the upper bits of `i_mode`.
const KIND_MASK: u16 = 0xF000;
const REGULAR_FILE: u16 = 0x8000;
const FOLDER: u16 = 0x4000;
const TREE_MAGIC: u16 = 0xF30A;
const ENTRY: usize = 12;
/// Maximum depth of a tree.
const DEEPEST: u16 = 5;
/// Blocks of the longest written extent. A greater length is that of an unwritten extent plus this number.
const LONGEST_WRITTEN: u32 = 0x8000;
/// Bytes of inodes read at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Type of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InodeKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// The journal, or the orphan file.
    Journal,
    /// The file that holds blocks, made by [`hold`](crate::hold).
    Holder,
}

/// An inode and its extents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub kind: InodeKind,
    /// Its extents in file order, merged if consecutive in the file and on the disk. None if the inode has blocks without
    /// extents.
    pub extents: Option<Vec<Range<u64>>>,
}

/// Calls `visit` for every file, folder and journal. `holder` is the inode of the file that holds blocks, if there is one.
///
/// *Errors:* those of the file, and invalid extents.
pub fn each_inode(
    filesystem: &Filesystem<'_>,
    holder: Option<u32>,
    mut visit: impl FnMut(Inode),
) -> Result<(), FormatError> {
    let shape = filesystem.shape();
    let special = SpecialInodes::new(filesystem, holder);
    let chunk = (CHUNK_BYTES / shape.inode_bytes).max(1);
    for group in 0..shape.groups() {
        let used = filesystem.descriptor(group).used_inodes(shape);
        for first in (0..used).step_by(chunk as usize) {
            let count = chunk.min(used - first);
            let bytes = filesystem.inodes_in(group, first, count)?;
            for (index, inode) in (first..).zip(bytes.chunks_exact(shape.inode_bytes as usize)) {
                let number = (group * shape.group_inodes + index + 1) as u32;
                if let Some(kind) = special.kind_of(number, inode) {
                    visit(Inode { number, kind, extents: extents(filesystem, number, inode)? });
                }
            }
        }
    }
    Ok(())
}

/// Inode numbers whose type is not in the mode.
struct SpecialInodes {
    /// The first that is not reserved.
    first: u32,
    orphans: u32,
    holder: Option<u32>,
}

impl SpecialInodes {
    fn new(filesystem: &Filesystem<'_>, holder: Option<u32>) -> SpecialInodes {
        let first = filesystem.superblock_u32(0x54).max(JOURNAL + 1);
        SpecialInodes { first, orphans: filesystem.superblock_u32(0x280), holder }
    }

    /// The type of an inode; none if it is unused or has no data blocks.
    fn kind_of(&self, number: u32, inode: &[u8]) -> Option<InodeKind> {
        let (mode, links) = (read_u16(inode, 0), read_u16(inode, 0x1A));
        if links == 0 || mode == 0 || read_u32(inode, 0x20) & HOLDS_ATTRIBUTES != 0 {
            return None;
        }
        if number == JOURNAL || number == self.orphans {
            return Some(InodeKind::Journal);
        }
        if number < self.first && number != ROOT {
            return None;
        }
        match mode & KIND_MASK {
            REGULAR_FILE if Some(number) == self.holder => Some(InodeKind::Holder),
            REGULAR_FILE => Some(InodeKind::File),
            FOLDER => Some(InodeKind::Folder),
            _ => None,
        }
    }
}

/// The extents of an inode; none if it has blocks without extents.
fn extents(
    filesystem: &Filesystem<'_>,
    number: u32,
    inode: &[u8],
) -> Result<Option<Vec<Range<u64>>>, FormatError> {
    if read_u32(inode, 0x20) & HAS_EXTENTS == 0 {
        let has_blocks = read_u32(inode, 0x1C) != 0 || read_u16(inode, 0x74) != 0;
        return Ok((!has_blocks).then(Vec::new));
    }
    let mut walk = TreeWalk { filesystem, inode: number, extents: Vec::new(), next: None, nodes: 0 };
    walk.node(&inode[0x28..0x64], None)?;
    Ok(Some(walk.extents))
}

struct TreeWalk<'a> {
    filesystem: &'a Filesystem<'a>,
    inode: u32,
    extents: Vec<Range<u64>>,
    /// Block of the file and of the disk behind the last extent.
    next: Option<(u64, u64)>,
    nodes: u64,
}

impl TreeWalk<'_> {
    /// Reads a node of this depth; `None` for the root allows any.
    fn node(&mut self, bytes: &[u8], depth: Option<u16>) -> Result<(), FormatError> {
        let (entries, own_depth) = (usize::from(read_u16(bytes, 2)), read_u16(bytes, 6));
        let fits = (entries + 1) * ENTRY <= bytes.len();
        let has_depth = own_depth <= DEEPEST && depth.is_none_or(|depth| own_depth == depth);
        self.nodes += 1;
        // A tree with more nodes than the disk has blocks contains a cycle.
        let is_tree = self.nodes <= self.filesystem.shape().blocks;
        if read_u16(bytes, 0) != TREE_MAGIC || !fits || !has_depth || !is_tree {
            return Err(self.malformed());
        }
        for entry in bytes[ENTRY..].chunks_exact(ENTRY).take(entries) {
            match own_depth.checked_sub(1) {
                None => self.extent(entry)?,
                Some(below) => {
                    let block = u64::from(read_u32(entry, 4)) | u64::from(read_u16(entry, 8)) << 32;
                    let node = self.filesystem.block(block)?.ok_or_else(|| self.malformed())?;
                    self.node(&node, Some(below))?;
                }
            }
        }
        Ok(())
    }

    fn extent(&mut self, entry: &[u8]) -> Result<(), FormatError> {
        let (logical, length) = (u64::from(read_u32(entry, 0)), u32::from(read_u16(entry, 4)));
        let length = u64::from(if length > LONGEST_WRITTEN { length - LONGEST_WRITTEN } else { length });
        let first = u64::from(read_u32(entry, 8)) | u64::from(read_u16(entry, 6)) << 32;
        let end = first + length;
        if length == 0 || end > self.filesystem.shape().blocks {
            return Err(self.malformed());
        }
        match self.extents.last_mut() {
            Some(last) if self.next == Some((logical, first)) => last.end = end,
            _ => self.extents.push(first..end),
        }
        self.next = Some((logical + length, end));
        Ok(())
    }

    fn malformed(&self) -> FormatError {
        FormatError::Malformed(format!("the extent tree of inode {}", self.inode))
    }
}
