//! Where the files of a file system lie that nobody has mounted, read from its inodes.
//!
//! Seen are extents, as ext4 keeps them; files that are kept in another way (lists of blocks, as of ext3) are told of and not followed.
//! Nothing of what is read is trusted: it may be anybody's image.
//!
//! *Source:* as of the format (`format.rs`): fields of inodes, extent trees, which inodes are reserved.

use super::format::{Filesystem, number, short};
use super::{Ext4Error, make, tools};
use crate::probe::user;
use rustix::fs::FileType;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

const ROOT: u32 = 2;
const JOURNAL: u32 = 8;
/// Flags of inodes: with extents, with extended attributes of others.
const HAS_EXTENTS: u32 = 0x8_0000;
const OF_ATTRIBUTES: u32 = 0x20_0000;
const TREE_MAGIC: u16 = 0xF30A;
const ENTRY: usize = 12;
/// Levels of the deepest tree.
const DEEPEST: u16 = 5;
/// Blocks of the longest extent that is written; longer ones are unwritten and by so much too long.
const LONGEST_WRITTEN: u32 = 0x8000;
/// Bytes of inodes that are read at a time.
const PIECE: u64 = 1 << 20;

/// What an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A file with a name.
    File,
    /// A folder.
    Folder,
    /// The journal, and what belongs to it.
    Journal,
    /// The file that holds the blocks at boundaries.
    Holder,
}

/// An inode, and where it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inode {
    /// Its number.
    pub number: u32,
    /// What it is.
    pub kind: Kind,
    /// Blocks of its extents, in its own order; those that go on from one another in it and on the disk are one. Nothing where it is
    /// kept without extents.
    pub extents: Option<Vec<Range<u64>>>,
}

/// Tells all files, folders and journals of an image or a device, and gives bytes of its blocks.
///
/// *Errors:* it is in use or no ext4, or what it says of itself cannot be.
pub fn each(path: &Path, mut tell: impl FnMut(Inode)) -> Result<u64, Ext4Error> {
    let file = opened(path)?;
    let special = Special::of(path, &file)?;
    let filesystem = Filesystem::open(&file)?;
    let shape = &filesystem.shape;
    for group in 0..shape.groups() {
        let used = filesystem.descriptor(group).used_inodes(shape);
        let in_piece = (PIECE / shape.inode_bytes).max(1);
        for first in (0..used).step_by(in_piece as usize) {
            let count = in_piece.min(used - first);
            let bytes = filesystem.inodes_of(group, first, count)?;
            for (index, inode) in (first..).zip(bytes.chunks_exact(shape.inode_bytes as usize)) {
                let number = (group * shape.group_inodes + index + 1) as u32;
                if let Some(kind) = special.kind(number, inode) {
                    tell(Inode { number, kind, extents: extents(&filesystem, number, inode)? });
                }
            }
        }
    }
    Ok(shape.block_bytes)
}

/// Opens what nobody uses, to look at it.
fn opened(path: &Path) -> Result<File, Ext4Error> {
    let wrong = |error: io::Error| Ext4Error::Target { path: path.to_path_buf(), error };
    let in_use = |by: String| Ext4Error::InUse { path: path.to_path_buf(), by };
    #[allow(clippy::disallowed_methods, reason = "the host has the real bytes")]
    let file = File::open(path).map_err(wrong)?;
    let found = rustix::fs::fstat(&file).map_err(|error| wrong(error.into()))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::BlockDevice => match user::of(found.st_rdev) {
            Some(by) => Err(in_use(by)),
            None => Ok(file),
        },
        FileType::RegularFile => match user::loop_over(&found) {
            Some(device) => Err(in_use(format!("{device} is a loop device over it"))),
            None => Ok(file),
        },
        _ => Err(wrong(io::Error::other("it is neither a block device nor a file"))),
    }
}

/// Inodes that are not what they look like.
struct Special {
    /// The first that is not reserved.
    first: u32,
    orphans: u32,
    holder: Option<u32>,
}

impl Special {
    fn of(path: &Path, file: &File) -> Result<Special, Ext4Error> {
        tools::look_for(&["debugfs"])?;
        let superblock = Filesystem::open(file)?.superblock;
        let first = number(&superblock, 0x54).max(JOURNAL + 1);
        let holder = make::holder(path)?.0;
        Ok(Special { first, orphans: number(&superblock, 0x280), holder })
    }

    /// What an inode is, if it is anything with a place.
    fn kind(&self, number_of: u32, inode: &[u8]) -> Option<Kind> {
        let is_used = short(inode, 0x1A) > 0 && short(inode, 0) != 0;
        if !is_used || number(inode, 0x20) & OF_ATTRIBUTES != 0 {
            return None;
        }
        if number_of == JOURNAL || number_of == self.orphans {
            return Some(Kind::Journal);
        }
        if number_of < self.first && number_of != ROOT {
            return None;
        }
        match FileType::from_raw_mode(short(inode, 0).into()) {
            FileType::RegularFile if Some(number_of) == self.holder => Some(Kind::Holder),
            FileType::RegularFile => Some(Kind::File),
            FileType::Directory => Some(Kind::Folder),
            _ => None,
        }
    }
}

/// The extents of an inode; nothing where it has blocks without extents.
fn extents(filesystem: &Filesystem<'_>, of: u32, inode: &[u8]) -> Result<Option<Vec<Range<u64>>>, Ext4Error> {
    if number(inode, 0x20) & HAS_EXTENTS == 0 {
        let has_blocks = number(inode, 0x1C) != 0 || short(inode, 0x74) != 0;
        return Ok((!has_blocks).then(Vec::new));
    }
    let mut tree = Tree { filesystem, of, extents: Vec::new(), follows: None, nodes: 0 };
    tree.node(&inode[0x28..0x64], None)?;
    Ok(Some(tree.extents))
}

/// A tree of extents that is gone through.
struct Tree<'a> {
    filesystem: &'a Filesystem<'a>,
    of: u32,
    extents: Vec<Range<u64>>,
    /// Block of the file and of the disk that would go on.
    follows: Option<(u64, u64)>,
    nodes: u64,
}

impl Tree<'_> {
    /// Goes through a node, which must have this depth.
    fn node(&mut self, bytes: &[u8], depth: Option<u16>) -> Result<(), Ext4Error> {
        let (entries, own) = (usize::from(short(bytes, 2)), short(bytes, 6));
        let has_room = (entries + 1) * ENTRY <= bytes.len();
        let is_of_depth = own <= DEEPEST && depth.is_none_or(|depth| own == depth);
        self.nodes += 1;
        // More nodes than blocks are those of a tree that leads back into itself.
        let is_tree = self.nodes <= self.filesystem.shape.blocks;
        if short(bytes, 0) != TREE_MAGIC || !has_room || !is_of_depth || !is_tree {
            return Err(self.wrong());
        }
        for entry in bytes[ENTRY..].chunks_exact(ENTRY).take(entries) {
            match own.checked_sub(1) {
                None => self.extent(entry)?,
                Some(below) => {
                    let block = u64::from(number(entry, 4)) | u64::from(short(entry, 8)) << 32;
                    let node = self.filesystem.block(block)?.ok_or_else(|| self.wrong())?;
                    self.node(&node, Some(below))?;
                }
            }
        }
        Ok(())
    }

    fn extent(&mut self, entry: &[u8]) -> Result<(), Ext4Error> {
        let (logical, told) = (u64::from(number(entry, 0)), u32::from(short(entry, 4)));
        let length = u64::from(if told > LONGEST_WRITTEN { told - LONGEST_WRITTEN } else { told });
        let first = u64::from(number(entry, 8)) | u64::from(short(entry, 6)) << 32;
        let end = first + length;
        if length == 0 || end > self.filesystem.shape.blocks {
            return Err(self.wrong());
        }
        match self.extents.last_mut() {
            Some(last) if self.follows == Some((logical, first)) => last.end = end,
            _ => self.extents.push(first..end),
        }
        self.follows = Some((logical + length, end));
        Ok(())
    }

    fn wrong(&self) -> Ext4Error {
        Ext4Error::Format(format!("the extents of inode {}", self.of))
    }
}

/// Paths of inodes, as far as they have one.
///
/// *Errors:* debugfs cannot be run.
pub fn paths(path: &Path, inodes: &[u32]) -> Result<Vec<(u32, String)>, Ext4Error> {
    if inodes.is_empty() {
        return Ok(Vec::new());
    }
    let numbers = inodes.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let said =
        tools::run("debugfs", &["-R".as_ref(), format!("ncheck {numbers}").as_ref(), path.as_os_str()])?;
    let lines = said.out.lines().filter_map(|line| line.split_once('\t'));
    // debugfs puts a second `/` before what lies in the root.
    let path = |path: &str| format!("/{}", path.trim_start_matches('/'));
    Ok(lines.filter_map(|(inode, named)| Some((inode.trim().parse().ok()?, path(named)))).collect())
}
