//! A file that holds blocks, so that nothing else is ever put there.
//!
//! The file's extents are all *unwritten* and lie beyond its end: it is of no length, copies as an empty file, and reads nothing from
//! the disk. It is immutable, so that nobody removes it by accident. Its extent tree is made whole, from the leaves up, while
//! the list of blocks streams by; so memory does not grow with the list.
//!
//! *Source:* as of the format (`format.rs`); that extents beyond the end of a file are allowed where they are unwritten is
//! fallocate(2) with FALLOC_FL_KEEP_SIZE.

use super::Ext4Error;
use super::format::{Bitmap, Filesystem, checksum, number, put, put_short, short};
use std::fs::File;

const MAGIC: u16 = 0xF30A;
/// Bytes of a node's head, and of each of its entries.
const ENTRY: usize = 12;
/// Entries in the inode itself.
const ROOT_ENTRIES: usize = 4;
/// Blocks of the longest unwritten extent.
const LONGEST: u32 = 0x7FFF;
/// What an extent's length begins with where it is unwritten.
const UNWRITTEN: u16 = 0x8000;
/// Immutable, not dumped, no access times, with extents.
const FLAGS: u32 = 0x10 | 0x40 | 0x80 | 0x8_0000;

/// What was put into the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Blocks that the file holds.
    pub(super) blocks: u64,
    /// Blocks of its extent tree.
    pub(super) tree: u64,
    /// Blocks of the list that were used already.
    pub(super) used: u64,
}

/// Puts all free blocks of an ascending list into a file that is there and empty.
///
/// *Errors:* those of the file, a file system that is not as mke2fs makes them, and no room left for the tree.
pub(super) fn hold<I: Iterator<Item = u64>>(
    file: &File,
    inode: u32,
    list: impl Fn() -> I,
) -> Result<Held, Ext4Error> {
    let mut filesystem = Filesystem::open(file)?;
    filesystem.withhold()?;
    let seen = survey(&filesystem, list())?;
    let leaf = entries_of(filesystem.shape.block_bytes);
    let tree = room(&filesystem, list(), &seen.listed, nodes(seen.extents, leaf))?;
    let (place, mut bytes) = filesystem.inode(inode)?;
    let seed =
        filesystem.shape.seed.map(|seed| checksum(checksum(seed, &inode.to_le_bytes()), &bytes[0x64..0x68]));
    let mut writer = Writer { nodes: tree.iter().copied(), levels: vec![Vec::new()], leaf, seed };
    fill(&mut filesystem, list(), &tree, &mut writer)?;
    let root = writer.finish(&filesystem)?;

    let held = Held { blocks: seen.free, tree: tree.len() as u64, used: seen.used };
    let sectors = (held.blocks + held.tree) * (filesystem.shape.block_bytes / 512);
    put(&mut bytes, 0x1C, sectors as u32);
    put_short(&mut bytes, 0x74, (sectors >> 32) as u16);
    let flags = number(&bytes, 0x20) | FLAGS;
    put(&mut bytes, 0x20, flags);
    bytes[0x28..0x64].copy_from_slice(&root);
    if let Some(seed) = seed {
        sign(&mut bytes, seed);
    }
    filesystem.write_at(place, &bytes)?;
    filesystem.close(held.blocks + held.tree)?;
    Ok(held)
}

/// Of an ascending list, those blocks that are free.
///
/// *Errors:* as of [`hold`].
pub(super) fn free_of(file: &File, list: impl Iterator<Item = u64>) -> Result<Vec<u64>, Ext4Error> {
    let filesystem = Filesystem::open(file)?;
    let mut free = Vec::new();
    each_group(&filesystem, list, |_, start, bitmap, blocks| {
        free.extend(blocks.iter().filter(|block| !bitmap.is_set(*block - start)));
        Ok(())
    })?;
    Ok(free)
}

/// Calls for each group that has blocks of the list: its number, first block, bitmap, and those blocks.
fn each_group(
    filesystem: &Filesystem<'_>,
    list: impl Iterator<Item = u64>,
    mut tell: impl FnMut(u64, u64, &Bitmap, &[u64]) -> Result<(), Ext4Error>,
) -> Result<(), Ext4Error> {
    let shape = &filesystem.shape;
    let mut list = list.filter(|block| (shape.first_block..shape.blocks).contains(block)).peekable();
    let mut blocks = Vec::new();
    while let Some(first) = list.peek() {
        let group = shape.group_of(*first);
        let end = shape.group_start(group) + shape.group_blocks;
        blocks.clear();
        blocks.extend(std::iter::from_fn(|| list.next_if(|block| *block < end)));
        tell(group, shape.group_start(group), &filesystem.used(group)?, &blocks)?;
    }
    Ok(())
}

/// What there is to hold.
#[derive(Default)]
struct Seen {
    free: u64,
    used: u64,
    extents: u64,
    /// Blocks of the list that are free, of each group.
    listed: Vec<u64>,
}

fn survey(filesystem: &Filesystem<'_>, list: impl Iterator<Item = u64>) -> Result<Seen, Ext4Error> {
    let mut seen = Seen { listed: vec![0; filesystem.shape.groups() as usize], ..Seen::default() };
    let mut joined = Joined::default();
    each_group(filesystem, list, |group, start, bitmap, blocks| {
        for block in blocks {
            if bitmap.is_set(block - start) {
                seen.used += 1;
                continue;
            }
            seen.free += 1;
            seen.listed[group as usize] += 1;
            seen.extents += u64::from(joined.push(*block).is_some());
        }
        Ok(())
    })?;
    seen.extents += u64::from(joined.end().is_some());
    Ok(seen)
}

/// Entries of a node that is a block.
fn entries_of(block_bytes: u64) -> usize {
    (block_bytes as usize - ENTRY) / ENTRY
}

/// Blocks of a tree of so many extents.
fn nodes(extents: u64, leaf: usize) -> u64 {
    let levels = std::iter::successors(Some(extents), |below| Some(below.div_ceil(leaf as u64)));
    levels
        .take_while(|entries| *entries > ROOT_ENTRIES as u64)
        .map(|entries| entries.div_ceil(leaf as u64))
        .sum()
}

/// Free blocks for the tree that are not of the list, together at the end of the disk, where it is slowest.
fn room(
    filesystem: &Filesystem<'_>,
    list: impl Iterator<Item = u64>,
    listed: &[u64],
    wanted: u64,
) -> Result<Vec<u64>, Ext4Error> {
    let shape = &filesystem.shape;
    let (mut from, mut found) = (shape.groups(), 0);
    while found < wanted {
        from = from.checked_sub(1).ok_or(Ext4Error::NoRoom)?;
        found += filesystem.free_in(from).saturating_sub(listed[from as usize]);
    }
    let begin = shape.group_start(from);
    let mut list = list.skip_while(|block| *block < begin).peekable();
    let mut places = Vec::new();
    for group in from..shape.groups() {
        let (bitmap, start) = (filesystem.used(group)?, shape.group_start(group));
        for block in start..start + shape.blocks_in(group) {
            let is_listed = list.next_if_eq(&block).is_some();
            if !is_listed && !bitmap.is_set(block - start) && (places.len() as u64) < wanted {
                places.push(block);
            }
        }
    }
    match places.len() as u64 == wanted {
        true => Ok(places),
        false => Err(Ext4Error::NoRoom),
    }
}

/// Marks the blocks of list and tree as used, and writes the leaves.
fn fill<N: Iterator<Item = u64>>(
    filesystem: &mut Filesystem<'_>,
    list: impl Iterator<Item = u64>,
    tree: &[u64],
    writer: &mut Writer<N>,
) -> Result<(), Ext4Error> {
    let shape = filesystem.shape.clone();
    let mut list = list.filter(|block| (shape.first_block..shape.blocks).contains(block)).peekable();
    let mut tree = tree.iter().copied().peekable();
    let mut joined = Joined::default();
    let mut logical = 0;
    while let Some(next) = [list.peek().copied(), tree.peek().copied()].into_iter().flatten().min() {
        let group = shape.group_of(next);
        let (start, end) = (shape.group_start(group), shape.group_start(group) + shape.group_blocks);
        let mut bitmap = filesystem.used(group)?;
        let mut more = 0;
        while let Some(block) = list.next_if(|block| *block < end) {
            if bitmap.is_set(block - start) {
                continue;
            }
            bitmap.set(block - start);
            more += 1;
            if let Some(extent) = joined.push(block) {
                writer.extent(filesystem, extent, &mut logical)?;
            }
        }
        while let Some(block) = tree.next_if(|block| *block < end) {
            bitmap.set(block - start);
            more += 1;
        }
        filesystem.keep(group, &bitmap, more)?;
    }
    match joined.end() {
        Some(extent) => writer.extent(filesystem, extent, &mut logical),
        None => Ok(()),
    }
}

/// Blocks that follow each other, as one extent.
#[derive(Default)]
struct Joined {
    /// First block and length.
    open: Option<(u64, u32)>,
}

impl Joined {
    /// Adds a block; gives the extent before it where it begins another.
    fn push(&mut self, block: u64) -> Option<(u64, u32)> {
        match &mut self.open {
            Some((first, length)) if *first + u64::from(*length) == block && *length < LONGEST => {
                *length += 1;
                None
            }
            open => open.replace((block, 1)),
        }
    }

    fn end(&mut self) -> Option<(u64, u32)> {
        self.open.take()
    }
}

/// Writes a tree of extents from the leaves up.
struct Writer<N> {
    /// Where the next nodes lie.
    nodes: N,
    /// Entries of the node that is being filled, of each level from the leaves.
    levels: Vec<Vec<[u8; ENTRY]>>,
    leaf: usize,
    seed: Option<u32>,
}

impl<N: Iterator<Item = u64>> Writer<N> {
    fn extent(
        &mut self,
        filesystem: &Filesystem<'_>,
        (first, length): (u64, u32),
        logical: &mut u32,
    ) -> Result<(), Ext4Error> {
        let mut entry = [0; ENTRY];
        put(&mut entry, 0, *logical);
        put_short(&mut entry, 4, length as u16 | UNWRITTEN);
        put_short(&mut entry, 6, (first >> 32) as u16);
        put(&mut entry, 8, first as u32);
        *logical += length;
        self.put(filesystem, 0, entry)
    }

    /// Adds an entry to a level; a node that is full goes to the disk first.
    fn put(
        &mut self,
        filesystem: &Filesystem<'_>,
        level: usize,
        entry: [u8; ENTRY],
    ) -> Result<(), Ext4Error> {
        if level == self.levels.len() {
            self.levels.push(Vec::new());
        }
        if self.levels[level].len() == self.leaf {
            self.end_node(filesystem, level)?;
        }
        self.levels[level].push(entry);
        Ok(())
    }

    /// Writes the node that is being filled, and tells the level above of it.
    fn end_node(&mut self, filesystem: &Filesystem<'_>, level: usize) -> Result<(), Ext4Error> {
        let entries = std::mem::take(&mut self.levels[level]);
        let place = self.nodes.next().expect("room was made for every node");
        let mut bytes = vec![0; filesystem.shape.block_bytes as usize];
        write_node(&mut bytes, level, self.leaf, &entries);
        if let Some(seed) = self.seed {
            let end = ENTRY + ENTRY * self.leaf;
            let sum = checksum(seed, &bytes[..end]);
            put(&mut bytes, end, sum);
        }
        filesystem.write_block(place, &bytes)?;
        let mut index = [0; ENTRY];
        index[..4].copy_from_slice(&entries[0][..4]);
        put(&mut index, 4, place as u32);
        put_short(&mut index, 8, (place >> 32) as u16);
        self.put(filesystem, level + 1, index)
    }

    /// The root, as it lies in the inode.
    fn finish(mut self, filesystem: &Filesystem<'_>) -> Result<[u8; 60], Ext4Error> {
        let mut level = 0;
        while level + 1 < self.levels.len() || self.levels[level].len() > ROOT_ENTRIES {
            self.end_node(filesystem, level)?;
            level += 1;
        }
        let mut root = [0; 60];
        write_node(&mut root, level, ROOT_ENTRIES, &self.levels[level]);
        Ok(root)
    }
}

fn write_node(bytes: &mut [u8], level: usize, most: usize, entries: &[[u8; ENTRY]]) {
    put_short(bytes, 0, MAGIC);
    put_short(bytes, 2, entries.len() as u16);
    put_short(bytes, 4, most as u16);
    put_short(bytes, 6, level as u16);
    for (place, entry) in bytes[ENTRY..].chunks_exact_mut(ENTRY).zip(entries) {
        place.copy_from_slice(entry);
    }
}

/// Puts an inode's checksum into it; small inodes have half of it.
fn sign(bytes: &mut [u8], seed: u32) {
    let is_whole = bytes.len() > 128 && short(bytes, 0x80) >= 4;
    put_short(bytes, 0x7C, 0);
    if is_whole {
        put_short(bytes, 0x82, 0);
    }
    let sum = checksum(seed, bytes);
    put_short(bytes, 0x7C, sum as u16);
    if is_whole {
        put_short(bytes, 0x82, (sum >> 16) as u16);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consecutive_blocks_join_into_one_extent() {
        let mut joined = Joined::default();
        let mut extents: Vec<_> = [5, 6, 7, 9].into_iter().filter_map(|block| joined.push(block)).collect();
        extents.extend(joined.end());
        assert_eq!(extents, [(5, 3), (9, 1)]);
        let pushed = (0..u64::from(LONGEST) + 1).filter_map(|block| joined.push(block)).collect::<Vec<_>>();
        assert_eq!((pushed, joined.end()), (vec![(0, LONGEST)], Some((u64::from(LONGEST), 1))));
    }

    #[test]
    fn node_count_covers_every_level_of_the_extent_tree() {
        assert_eq!([0, 1, 4].map(|extents| nodes(extents, 340)), [0, 0, 0]);
        assert_eq!([5, 340, 341, 1360].map(|extents| nodes(extents, 340)), [1, 1, 2, 4]);
        assert_eq!([1361, 462_400].map(|extents| nodes(extents, 340)), [5 + 1, 1360 + 4]);
        assert_eq!(nodes(10_000_000, 340), 29_412 + 87 + 1);
    }

    /// An ext4 with an empty file in it, and the number of that; nothing where e2fsprogs are not here.
    fn small() -> Option<(tempfile::NamedTempFile, u32)> {
        if !headstack_prerequisites::have_programs(&["mke2fs", "e2fsck", "debugfs"]) {
            return None;
        }
        let image = tempfile::NamedTempFile::new().expect("there is room for a file");
        image.as_file().set_len(64 << 20).expect("it may have holes");
        let path = image.path().to_str().expect("its name is UTF-8");
        run("mke2fs", &["-q", "-F", "-t", "ext4", "-b", "4096", path]);
        run("debugfs", &["-w", "-R", "write /dev/null held", path]);
        let told = run("debugfs", &["-R", "stat /held", path]).1;
        let inode = told.split_whitespace().nth(1).and_then(|word| word.parse().ok());
        Some((image, inode.expect("it is there")))
    }

    fn run(program: &'static str, args: &[&str]) -> (i32, String) {
        let said = super::super::tools::run(program, args).expect("it is here");
        (said.code, said.out)
    }

    #[test]
    fn interrupted_image_is_rejected_until_all_blocks_are_held() {
        let Some((image, inode)) = small() else { return };
        let path = image.path().to_str().expect("its name is UTF-8");
        let list = || (1..1600).map(|k| k * 10);
        // The list is gone through more than once; looked at is what an interruption would leave.
        let (looks, file) = (std::cell::Cell::new(0), image.as_file());
        let looked = || {
            let is_looked_at = looks.replace(looks.get() + 1) < 3;
            list().inspect(move |block| {
                if is_looked_at && *block == 8000 {
                    let told = Filesystem::open(file).err().expect("it is not whole").to_string();
                    assert!(told.contains("interrupted"), "{told}");
                    let (code, out) = run("e2fsck", &["-fp", path]);
                    assert!(code & 8 != 0, "{code}: {out}");
                }
            })
        };
        let held = hold(file, inode, looked).expect("there is room");
        assert!(looks.get() >= 3 && held.blocks > 1000, "{held:?}");
        assert_eq!(run("e2fsck", &["-fn", path]).0, 0);
        assert!(run("debugfs", &["-R", "show_super_stats -h", path]).1.contains("state:         clean"));
    }
}
