//! The file that holds excluded blocks, so that no other data are put there.
//!
//! The file's extents are all *unwritten* and lie beyond its end: its length is 0, it copies as an empty file, and reading it
//! reads nothing from the disk. It is immutable against accidental removal. Its extent tree is written from the leaves up while
//! the list of blocks is read, so that memory does not grow with the list.
//!
//! *Source:* the kernel's description of the format, Documentation/filesystems/ext4; unwritten extents beyond the end of a file
//! are those of fallocate(2) with `FALLOC_FL_KEEP_SIZE`.

use crate::Shape;
use crate::bytes::{checksum, put_u16, put_u32, read_u16, read_u32};
use crate::error::FormatError;
use crate::filesystem::{Bitmap, Filesystem};
use std::fs::File;

const MAGIC: u16 = 0xF30A;
/// Bytes of a node's header, and of each of its entries.
const ENTRY: usize = 12;
/// Entries in the root.
const ROOT_ENTRIES: usize = 4;
/// Bytes of the root, which is in the inode.
const ROOT_BYTES: usize = ENTRY + ROOT_ENTRIES * ENTRY;
/// Blocks of the longest unwritten extent.
const LONGEST_EXTENT: u32 = 0x7FFF;
/// The bit of an extent's length that marks it as unwritten.
const UNWRITTEN: u16 = 0x8000;
/// Immutable, not dumped, no access times, with extents.
const FLAGS: u32 = 0x10 | 0x40 | 0x80 | 0x8_0000;

/// Result of [`hold`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Blocks that the file holds.
    pub blocks: u64,
    /// Blocks of its extent tree.
    pub tree_blocks: u64,
    /// Blocks of the list that were already in use.
    pub used: u64,
}

/// Puts all free blocks of a list into the file with this inode, which exists and is empty. The list ascends; it is read three
/// times. Until all is on the disk, the file system cannot be mounted.
///
/// *Errors:* those of the file, a file system unlike those of mke2fs, and no space for the extent tree.
pub fn hold<I: Iterator<Item = u64>>(
    file: &File,
    inode: u32,
    list: impl Fn() -> I,
) -> Result<Held, FormatError> {
    let mut filesystem = Filesystem::open(file)?;
    filesystem.mark_unfinished()?;
    let survey = survey(&filesystem, list())?;
    let shape = filesystem.shape().clone();
    let leaf_entries = entries_per_node(shape.block_bytes);
    let wanted = tree_blocks(survey.extents, leaf_entries);
    let tree = free_blocks_for_tree(&filesystem, list(), &survey.free_in_group, wanted)?;
    let (offset, mut bytes) = filesystem.inode(inode)?;
    let generation = &bytes[0x64..0x68];
    let seed = shape.seed.map(|seed| checksum(checksum(seed, &inode.to_le_bytes()), generation));
    let mut writer = TreeWriter {
        node_blocks: tree.iter().copied(),
        levels: vec![Vec::new()],
        leaf_entries,
        seed,
        next_logical: 0,
    };
    allocate(&mut filesystem, list(), &tree, &mut writer)?;
    let root = writer.finish(&filesystem)?;

    let held = Held { blocks: survey.free, tree_blocks: tree.len() as u64, used: survey.used };
    write_inode(&mut bytes, held, &shape, &root);
    if let Some(seed) = seed {
        sign_inode(&mut bytes, seed);
    }
    filesystem.write_bytes(offset, &bytes)?;
    filesystem.finish(held.blocks + held.tree_blocks)?;
    Ok(held)
}

/// Sets the inode's size in sectors, its flags and the root of its extent tree.
fn write_inode(bytes: &mut [u8], held: Held, shape: &Shape, root: &[u8; ROOT_BYTES]) {
    let sectors = (held.blocks + held.tree_blocks) * (shape.block_bytes / 512);
    put_u32(bytes, 0x1C, sectors as u32);
    put_u16(bytes, 0x74, (sectors >> 32) as u16);
    let flags = read_u32(bytes, 0x20) | FLAGS;
    put_u32(bytes, 0x20, flags);
    bytes[0x28..0x28 + ROOT_BYTES].copy_from_slice(root);
}

/// The free blocks of an ascending list.
///
/// *Errors:* as of [`hold`].
pub fn free_blocks(file: &File, list: impl Iterator<Item = u64>) -> Result<Vec<u64>, FormatError> {
    let filesystem = Filesystem::open(file)?;
    let mut free = Vec::new();
    for_each_group(&filesystem, list, |_, start, bitmap, blocks| {
        free.extend(blocks.iter().filter(|block| !bitmap.is_set(*block - start)));
        Ok(())
    })?;
    Ok(free)
}

/// Calls `visit` for each group with blocks of the list: its number, first block and bitmap, and those blocks.
fn for_each_group(
    filesystem: &Filesystem<'_>,
    list: impl Iterator<Item = u64>,
    mut visit: impl FnMut(u64, u64, &Bitmap, &[u64]) -> Result<(), FormatError>,
) -> Result<(), FormatError> {
    let shape = filesystem.shape();
    let mut list = list.filter(|block| (shape.first_block..shape.blocks).contains(block)).peekable();
    let mut blocks = Vec::new();
    while let Some(first) = list.peek() {
        let group = shape.group_of(*first);
        let end = shape.group_start(group) + shape.group_blocks;
        blocks.clear();
        blocks.extend(std::iter::from_fn(|| list.next_if(|block| *block < end)));
        visit(group, shape.group_start(group), &filesystem.used_blocks(group)?, &blocks)?;
    }
    Ok(())
}

/// The numbers of blocks and extents of a list on a file system.
#[derive(Default)]
struct BlockSurvey {
    free: u64,
    used: u64,
    extents: u64,
    free_in_group: Vec<u64>,
}

fn survey(filesystem: &Filesystem<'_>, list: impl Iterator<Item = u64>) -> Result<BlockSurvey, FormatError> {
    let groups = filesystem.shape().groups() as usize;
    let mut survey = BlockSurvey { free_in_group: vec![0; groups], ..BlockSurvey::default() };
    let mut joined = ExtentBuilder::default();
    for_each_group(filesystem, list, |group, start, bitmap, blocks| {
        for block in blocks {
            if bitmap.is_set(block - start) {
                survey.used += 1;
                continue;
            }
            survey.free += 1;
            survey.free_in_group[group as usize] += 1;
            survey.extents += u64::from(joined.push(*block).is_some());
        }
        Ok(())
    })?;
    survey.extents += u64::from(joined.finish().is_some());
    Ok(survey)
}

fn entries_per_node(block_bytes: u64) -> usize {
    (block_bytes as usize - ENTRY) / ENTRY
}

/// Blocks of the tree of `extents` extents, without the root.
fn tree_blocks(extents: u64, leaf_entries: usize) -> u64 {
    let node_entries = leaf_entries as u64;
    let levels = std::iter::successors(Some(extents), |below| Some(below.div_ceil(node_entries)));
    levels
        .take_while(|entries| *entries > ROOT_ENTRIES as u64)
        .map(|entries| entries.div_ceil(node_entries))
        .sum()
}

/// `wanted` free blocks outside the list, from the last groups on, where the disk is slowest.
fn free_blocks_for_tree(
    filesystem: &Filesystem<'_>,
    list: impl Iterator<Item = u64>,
    free_in_group: &[u64],
    wanted: u64,
) -> Result<Vec<u64>, FormatError> {
    let shape = filesystem.shape();
    let (mut from, mut found) = (shape.groups(), 0);
    while found < wanted {
        from = from.checked_sub(1).ok_or(FormatError::NoRoom)?;
        found += filesystem.free_in(from).saturating_sub(free_in_group[from as usize]);
    }
    let begin = shape.group_start(from);
    let mut list = list.skip_while(|block| *block < begin).peekable();
    let mut places = Vec::new();
    for group in from..shape.groups() {
        let (bitmap, start) = (filesystem.used_blocks(group)?, shape.group_start(group));
        for block in start..start + shape.blocks_in(group) {
            let is_listed = list.next_if_eq(&block).is_some();
            if !is_listed && !bitmap.is_set(block - start) && (places.len() as u64) < wanted {
                places.push(block);
            }
        }
    }
    if places.len() as u64 == wanted { Ok(places) } else { Err(FormatError::NoRoom) }
}

/// Marks the blocks of list and tree as used, and writes the leaves of the tree.
fn allocate<N: Iterator<Item = u64>>(
    filesystem: &mut Filesystem<'_>,
    list: impl Iterator<Item = u64>,
    tree: &[u64],
    writer: &mut TreeWriter<N>,
) -> Result<(), FormatError> {
    let shape = filesystem.shape().clone();
    let mut list = list.filter(|block| (shape.first_block..shape.blocks).contains(block)).peekable();
    let mut tree = tree.iter().copied().peekable();
    let mut joined = ExtentBuilder::default();
    while let Some(next) = [list.peek().copied(), tree.peek().copied()].into_iter().flatten().min() {
        let group = shape.group_of(next);
        let (start, end) = (shape.group_start(group), shape.group_start(group) + shape.group_blocks);
        let mut bitmap = filesystem.used_blocks(group)?;
        let mut taken = 0;
        while let Some(block) = list.next_if(|block| *block < end) {
            if bitmap.is_set(block - start) {
                continue;
            }
            bitmap.set(block - start);
            taken += 1;
            if let Some(extent) = joined.push(block) {
                writer.push_extent(filesystem, extent)?;
            }
        }
        while let Some(block) = tree.next_if(|block| *block < end) {
            bitmap.set(block - start);
            taken += 1;
        }
        filesystem.write_used_blocks(group, &bitmap, taken)?;
    }
    match joined.finish() {
        Some(extent) => writer.push_extent(filesystem, extent),
        None => Ok(()),
    }
}

#[derive(Default)]
struct ExtentBuilder {
    /// First block and length of the extent that may still grow.
    open: Option<(u64, u32)>,
}

impl ExtentBuilder {
    /// Adds a block; returns the previous extent if this block begins another.
    fn push(&mut self, block: u64) -> Option<(u64, u32)> {
        match &mut self.open {
            Some((first, length)) if *first + u64::from(*length) == block && *length < LONGEST_EXTENT => {
                *length += 1;
                None
            }
            open => open.replace((block, 1)),
        }
    }

    fn finish(&mut self) -> Option<(u64, u32)> {
        self.open.take()
    }
}

struct TreeWriter<N> {
    node_blocks: N,
    /// Entries of the unfinished node of each level, the leaves first.
    levels: Vec<Vec<[u8; ENTRY]>>,
    leaf_entries: usize,
    seed: Option<u32>,
    /// Block of the file at which the next extent begins.
    next_logical: u32,
}

impl<N: Iterator<Item = u64>> TreeWriter<N> {
    fn push_extent(
        &mut self,
        filesystem: &Filesystem<'_>,
        (first, length): (u64, u32),
    ) -> Result<(), FormatError> {
        let mut entry = [0; ENTRY];
        put_u32(&mut entry, 0, self.next_logical);
        put_u16(&mut entry, 4, length as u16 | UNWRITTEN);
        put_u16(&mut entry, 6, (first >> 32) as u16);
        put_u32(&mut entry, 8, first as u32);
        self.next_logical += length;
        self.push_entry(filesystem, 0, entry)
    }

    /// Adds an entry to a level; a full node is written first.
    fn push_entry(
        &mut self,
        filesystem: &Filesystem<'_>,
        level: usize,
        entry: [u8; ENTRY],
    ) -> Result<(), FormatError> {
        if level == self.levels.len() {
            self.levels.push(Vec::new());
        }
        if self.levels[level].len() == self.leaf_entries {
            self.write_level(filesystem, level)?;
        }
        self.levels[level].push(entry);
        Ok(())
    }

    /// Writes the unfinished node of a level, and adds its entry to the level above.
    fn write_level(&mut self, filesystem: &Filesystem<'_>, level: usize) -> Result<(), FormatError> {
        let entries = std::mem::take(&mut self.levels[level]);
        let block = self.node_blocks.next().expect("blocks were counted for every node");
        let mut bytes = vec![0; filesystem.shape().block_bytes as usize];
        write_node(&mut bytes, level, self.leaf_entries, &entries);
        if let Some(seed) = self.seed {
            let end = ENTRY + ENTRY * self.leaf_entries;
            let sum = checksum(seed, &bytes[..end]);
            put_u32(&mut bytes, end, sum);
        }
        filesystem.write_block(block, &bytes)?;
        let mut index = [0; ENTRY];
        index[..4].copy_from_slice(&entries[0][..4]);
        put_u32(&mut index, 4, block as u32);
        put_u16(&mut index, 8, (block >> 32) as u16);
        self.push_entry(filesystem, level + 1, index)
    }

    fn finish(mut self, filesystem: &Filesystem<'_>) -> Result<[u8; ROOT_BYTES], FormatError> {
        let mut level = 0;
        while level + 1 < self.levels.len() || self.levels[level].len() > ROOT_ENTRIES {
            self.write_level(filesystem, level)?;
            level += 1;
        }
        let mut root = [0; ROOT_BYTES];
        write_node(&mut root, level, ROOT_ENTRIES, &self.levels[level]);
        Ok(root)
    }
}

fn write_node(bytes: &mut [u8], level: usize, most: usize, entries: &[[u8; ENTRY]]) {
    put_u16(bytes, 0, MAGIC);
    put_u16(bytes, 2, entries.len() as u16);
    put_u16(bytes, 4, most as u16);
    put_u16(bytes, 6, level as u16);
    for (place, entry) in bytes[ENTRY..].chunks_exact_mut(ENTRY).zip(entries) {
        place.copy_from_slice(entry);
    }
}

/// Writes an inode's checksum into it; inodes of 128 bytes have only its low half.
fn sign_inode(bytes: &mut [u8], seed: u32) {
    let is_whole = bytes.len() > 128 && read_u16(bytes, 0x80) >= 4;
    put_u16(bytes, 0x7C, 0);
    if is_whole {
        put_u16(bytes, 0x82, 0);
    }
    let sum = checksum(seed, bytes);
    put_u16(bytes, 0x7C, sum as u16);
    if is_whole {
        put_u16(bytes, 0x82, (sum >> 16) as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn consecutive_blocks_join_into_one_extent() {
        let mut joined = ExtentBuilder::default();
        let mut extents: Vec<_> = [5, 6, 7, 9].into_iter().filter_map(|block| joined.push(block)).collect();
        extents.extend(joined.finish());
        assert_eq!(extents, [(5, 3), (9, 1)]);
        let pushed =
            (0..u64::from(LONGEST_EXTENT) + 1).filter_map(|block| joined.push(block)).collect::<Vec<_>>();
        assert_eq!(
            (pushed, joined.finish()),
            (vec![(0, LONGEST_EXTENT)], Some((u64::from(LONGEST_EXTENT), 1)))
        );
    }

    #[test]
    fn node_count_covers_every_level_of_the_extent_tree() {
        assert_eq!([0, 1, 4].map(|extents| tree_blocks(extents, 340)), [0, 0, 0]);
        assert_eq!([5, 340, 341, 1360].map(|extents| tree_blocks(extents, 340)), [1, 1, 2, 4]);
        assert_eq!([1361, 462_400].map(|extents| tree_blocks(extents, 340)), [5 + 1, 1360 + 4]);
        assert_eq!(tree_blocks(10_000_000, 340), 29_412 + 87 + 1);
    }

    /// An ext4 with an empty file, and the file's inode; none if e2fsprogs are not installed.
    fn small() -> Option<(tempfile::NamedTempFile, u32)> {
        if !headstack_prerequisites::have_programs(&["mke2fs", "e2fsck", "debugfs"]) {
            return None;
        }
        let image = tempfile::NamedTempFile::new().expect("there is room for a file");
        image.as_file().set_len(64 << 20).expect("it may have holes");
        let path = image.path().to_str().expect("its name is UTF-8");
        run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", path]);
        run("debugfs", &["-w", "-R", "write /dev/null held", path]);
        let stat = run("debugfs", &["-R", "stat /held", path]).1;
        let inode = stat.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        Some((image, inode.expect("debugfs prints its number")))
    }

    fn run(program: &'static str, args: &[&str]) -> (i32, String) {
        let search = headstack_prerequisites::PROGRAM_FOLDERS;
        let output = Command::new(program).args(args).env("PATH", search).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code().expect("no signal ends it"), text)
    }

    #[test]
    fn interrupted_image_is_rejected_until_all_blocks_are_held() {
        let Some((image, inode)) = small() else { return };
        let path = image.path().to_str().expect("its name is UTF-8");
        let list = || (1..1600).map(|k| k * 10);
        // Checks the image in the middle of each pass over the list: an interruption would leave it in this state.
        let (passes, file) = (std::cell::Cell::new(0), image.as_file());
        let checked = || {
            let is_checked = passes.replace(passes.get() + 1) < 3;
            list().inspect(move |block| {
                if is_checked && *block == 8000 {
                    let error = Filesystem::open(file).expect_err("it is unfinished").to_string();
                    assert!(error.contains("interrupted"), "{error}");
                    let (code, out) = run("e2fsck", &["-fp", path]);
                    assert!(code & 8 != 0, "{code}: {out}");
                }
            })
        };
        let held = hold(file, inode, checked).expect("there is room");
        assert!(passes.get() >= 3 && held.blocks > 1000, "{held:?}");
        assert_eq!(run("e2fsck", &["-fn", path]).0, 0);
        assert!(run("debugfs", &["-R", "show_super_stats -h", path]).1.contains("state:         clean"));
    }
}
