//! Hot files in the middle of the disk: their data are re-allocated by temperature, which is accesses over size.
//!
//! An area around the middle of the file system is reserved when it is made. At the end of a period the hottest files get its blocks:
//! the hottest file the middle ones, and each next file those on the side whose edge is nearer the middle. Data are moved, not copied.
//! Inodes, directories and blocks of pointers stay where they are. A file that is no longer hot gets blocks near its inode.
//!
//! *Source:* C. Staelin, "High performance file system design" (iPcress; Princeton TR-347-91, 1991), as R. S. Gray's thesis of 2000
//! describes it: temperature and the centre of the disk. The order within the area and the way out of it are ours.

use super::allocate::{Ext2Error, Ext2Volume};
use super::file::PointerBlock;
use std::collections::BTreeMap;
use std::ops::Range;

/// Accesses to each file in a period.
#[derive(Clone, Debug, Default)]
pub struct FileTemperatures {
    accesses: BTreeMap<u32, u64>,
}

impl FileTemperatures {
    /// Counts an access to a file.
    pub fn observe(&mut self, file: u32) {
        *self.accesses.entry(file).or_default() += 1;
    }

    /// Ends the period.
    pub fn clear(&mut self) {
        self.accesses.clear();
    }

    /// The accessed files of a volume that have data, the hottest first; of equally hot ones the lower number.
    pub fn ranked(&self, volume: &Ext2Volume) -> Vec<u32> {
        let sized = self.accesses.iter().map(|(file, accesses)| (*file, *accesses, volume.bytes_of(*file)));
        let mut files: Vec<(u32, u64, u64)> = sized.filter(|(.., bytes)| *bytes > 0).collect();
        // Quotients are compared by their cross products, which are exact.
        let product = |accesses: u64, bytes: u64| u128::from(accesses) * u128::from(bytes);
        files.sort_by(|one, other| product(other.1, one.2).cmp(&product(one.1, other.2)));
        files.into_iter().map(|(file, ..)| file).collect()
    }
}

/// A file whose data have new blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelocatedFile {
    /// The file.
    pub file: u32,
    /// The blocks that had its data, in the file's order.
    pub from: Vec<u32>,
    /// The blocks that get them.
    pub to: Vec<u32>,
}

impl Ext2Volume {
    /// Reserves adjacent free blocks for hot files, as near the middle of the file system as the tables of its group permit.
    ///
    /// *Errors:* the middle group has no such area, or one is reserved already.
    pub fn reserve_hot_area(&mut self, blocks: u32) -> Result<(), Ext2Error> {
        let middle = self.geometry().blocks / 2;
        let group = self.geometry().group_of(middle);
        let data = self.geometry().first_data(group)..self.geometry().group(group).end;
        if !self.hot_area.is_empty() || blocks > data.len() as u32 {
            return Err(Ext2Error::NoBlock);
        }
        let start = middle.saturating_sub(blocks / 2).clamp(data.start, data.end - blocks);
        let area = start..start + blocks;
        if !area.clone().all(|block| self.space.is_free(block)) {
            return Err(Ext2Error::NoBlock);
        }
        area.clone().for_each(|block| self.space.occupy(block));
        self.hot_area = area;
        Ok(())
    }

    /// The blocks that are reserved for hot files.
    pub fn hot_area(&self) -> Range<u32> {
        self.hot_area.clone()
    }

    /// Bytes of a file; 0 if there is no such file.
    pub fn bytes_of(&self, file: u32) -> u64 {
        self.files.get(&file).map_or(0, |file| file.bytes)
    }

    /// The block with a file's inode; none if there is no such file.
    pub fn inode_block_of(&self, file: u32) -> Option<u32> {
        self.files.get(&file).map(|file| self.geometry().inode_block(file.inode))
    }

    /// The blocks of its directory that a search for a file's name reads, from the directory's start.
    pub fn lookup_blocks(&self, file: u32) -> &[u32] {
        let open = self.files.get(&file);
        let found = open.and_then(|open| Some((open.inode, self.directories.get(&open.directory)?)));
        found.map_or(&[], |(inode, directory)| {
            let last = directory.entries.block_of(inode).map_or(0, |block| block + 1);
            &directory.file.blocks[..last]
        })
    }

    /// Reallocates the hottest files to the area until no further one has room, and moves files that are in it and no longer among
    /// them to blocks near their inodes. Returns the files whose blocks have changed; the caller reads the data of all before it writes any.
    ///
    /// *Errors:* too few blocks are free for the files that leave; then nothing has changed.
    pub fn move_hot_files(
        &mut self,
        temperatures: &FileTemperatures,
    ) -> Result<Vec<RelocatedFile>, Ext2Error> {
        let placed = self.placed(temperatures);
        let area = self.hot_area();
        let lies_there = |blocks: &[u32]| blocks.iter().any(|block| area.contains(block));
        let cooled =
            self.files.iter().filter(|(file, open)| !placed.contains_key(*file) && lies_there(&open.blocks));
        let cooled: Vec<u32> = cooled.map(|(file, _)| *file).collect();
        let needed: u64 = cooled.iter().map(|file| self.blocks_of(*file).len() as u64).sum();
        let free: u64 = (0..self.geometry().groups).map(|group| u64::from(self.free_blocks(group))).sum();
        if needed > free {
            return Err(Ext2Error::NoBlock);
        }
        let before: BTreeMap<u32, Vec<u32>> =
            placed.keys().chain(&cooled).map(|file| (*file, self.blocks_of(*file).to_vec())).collect();
        before.keys().for_each(|file| self.release_data(*file));
        for (file, first) in &placed {
            let blocks = before[file].len() as u32;
            self.set_data(*file, (*first..first + blocks).collect());
        }
        for file in &cooled {
            let blocks = self.blocks_near_inode(*file, before[file].len())?;
            self.set_data(*file, blocks);
        }
        let relocated = before.into_iter().map(|(file, from)| {
            let to = self.blocks_of(file).to_vec();
            RelocatedFile { file, from, to }
        });
        let relocated: Vec<RelocatedFile> = relocated.filter(|moved| moved.from != moved.to).collect();
        relocated.iter().for_each(|moved| self.touch_relocated(moved));
        Ok(relocated)
    }

    /// The first block in the area of each file that has room there.
    fn placed(&self, temperatures: &FileTemperatures) -> BTreeMap<u32, u32> {
        let area = self.hot_area();
        let middle = area.start + area.len() as u32 / 2;
        let (mut low, mut high) = (middle, middle);
        let mut placed = BTreeMap::new();
        for file in temperatures.ranked(self) {
            let blocks = self.blocks_of(file).len() as u32;
            let (fits_below, fits_above) = (blocks <= low - area.start, blocks <= area.end - high);
            if fits_above && (high - middle <= middle - low || !fits_below) {
                placed.insert(file, high);
                high += blocks;
            } else if fits_below {
                low -= blocks;
                placed.insert(file, low);
            }
        }
        placed
    }

    /// Frees a file's data blocks, except those in the area, which stay reserved, and frees those that it has in advance.
    fn release_data(&mut self, file: u32) {
        let Some(open) = self.files.get_mut(&file) else { return };
        open.release_ahead(&mut self.space);
        let blocks = std::mem::take(&mut open.blocks);
        blocks.iter().for_each(|block| self.release_block(*block));
    }

    fn set_data(&mut self, file: u32, blocks: Vec<u32>) {
        if let Some(open) = self.files.get_mut(&file) {
            open.last = blocks.last().copied();
            open.blocks = blocks;
        }
    }

    fn blocks_near_inode(&mut self, file: u32, count: usize) -> Result<Vec<u32>, Ext2Error> {
        let Some(mut open) = self.files.remove(&file) else { return Ok(Vec::new()) };
        let start = self.geometry().group(open.group).start;
        open.last = None;
        let found: Option<Vec<u32>> = (0..count).map(|_| open.allocate(&mut self.space, start, 1)).collect();
        self.files.insert(file, open);
        found.ok_or(Ext2Error::NoBlock)
    }

    /// Records the metadata that a relocation changes: bitmaps, counts, and pointers to the data.
    fn touch_relocated(&mut self, moved: &RelocatedFile) {
        let area = self.hot_area();
        for block in moved.from.iter().chain(&moved.to).filter(|block| !area.contains(block)) {
            let group = self.geometry().group_of(*block);
            let bitmap = self.geometry().block_bitmap(group);
            self.touch(bitmap, false);
            self.touch_counts(group);
        }
        let inode = self.inode_block_of(moved.file);
        let pointers: Vec<u32> = self.pointers_of(moved.file).filter_map(leaf).collect();
        inode.into_iter().chain(pointers).for_each(|block| self.touch(block, false));
    }
}

/// The block, if its pointers are to data.
fn leaf((kind, block): (PointerBlock, u32)) -> Option<u32> {
    let leads_to_data =
        matches!(kind, PointerBlock::Single | PointerBlock::DoubleLeaf(_) | PointerBlock::TripleLeaf(_));
    leads_to_data.then_some(block)
}

#[cfg(test)]
mod tests {
    use super::super::Ext2Shape;
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Files of these sizes in blocks, in turn in four directories of two groups.
    fn volume(area: u32, sizes: &[u32]) -> Ext2Volume {
        let shape =
            Ext2Shape { block_bytes: 1024, blocks: 16_000, bytes_per_inode: 4096, reserved_percent: 5 };
        let mut volume =
            Ext2Volume::new(shape.geometry().expect("the shape is valid"), true).expect("there is room");
        volume.reserve_hot_area(area).expect("the middle is free");
        (1..=4).for_each(|directory| volume.make_directory(directory).expect("there is room"));
        for (file, blocks) in (0..).zip(sizes) {
            volume.create(file, 1 + file % 4).expect("there is room");
            volume.write_to(file, u64::from(*blocks) * 1024).expect("there is room");
            volume.close(file);
        }
        volume.take_touched();
        volume
    }

    fn temperatures(accesses: &[u64]) -> FileTemperatures {
        FileTemperatures { accesses: (0..).zip(accesses.iter().copied()).collect() }
    }

    /// Where the metadata of the files lie.
    fn metadata(volume: &Ext2Volume, files: u32) -> Vec<Vec<u32>> {
        let of_file = |file| {
            let inode = volume.inode_block_of(file).into_iter();
            let pointers = volume.pointers_of(file).map(|(_, block)| block);
            inode.chain(volume.lookup_blocks(file).iter().copied()).chain(pointers).collect()
        };
        (0..files).map(of_file).collect()
    }

    #[test]
    fn file_with_most_accesses_to_its_bytes_lies_in_the_middle() {
        let mut volume = volume(20, &[4, 2, 2, 2]);
        let area = volume.hot_area();
        assert_eq!(area.len(), 20);
        assert_eq!(area.start + 10, volume.geometry().blocks / 2);
        // Temperatures are 2, 3 and 1 for each block; the last file is not accessed.
        volume.move_hot_files(&temperatures(&[8, 6, 2])).expect("files of the area have homes");
        assert_eq!(volume.blocks_of(1)[0], area.start + 10);
        assert_eq!(volume.blocks_of(0)[0], area.start + 6);
        assert_eq!(volume.blocks_of(2)[0], area.start + 12);
        assert!(!area.contains(&volume.blocks_of(3)[0]));
    }

    #[test]
    fn equal_temperatures_move_nothing_in_the_next_period() {
        let mut volume = volume(100, &[7, 30, 13, 1, 60]);
        let hot = temperatures(&[9, 8, 7, 6, 5]);
        assert!(!volume.move_hot_files(&hot).expect("there is room").is_empty());
        assert_eq!(volume.move_hot_files(&hot), Ok(Vec::new()));
    }

    #[test]
    fn deleted_hot_file_leaves_its_blocks_to_hot_files() {
        let mut volume = volume(20, &[4, 4]);
        volume.move_hot_files(&temperatures(&[1])).expect("there is room");
        let free = |volume: &Ext2Volume| (0..2).map(|group| volume.free_blocks(group)).sum::<u32>();
        let before = free(&volume);
        volume.delete(0);
        assert_eq!(free(&volume), before, "blocks of the area stay reserved");
        volume.move_hot_files(&temperatures(&[0, 1])).expect("there is room");
        assert_eq!(free(&volume), before + 4, "the home of file 1 is free");
    }

    #[test]
    fn area_must_lie_in_one_group_and_is_reserved_once() {
        let mut volume = volume(10, &[]);
        assert_eq!(volume.reserve_hot_area(10), Err(Ext2Error::NoBlock));
        let geometry = *volume.geometry();
        let mut other = Ext2Volume::new(geometry, true).expect("there is room");
        assert_eq!(other.reserve_hot_area(geometry.blocks_per_group), Err(Ext2Error::NoBlock));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn data_read_back_at_the_new_place_and_metadata_stay(
            sizes in prop::collection::vec(0u32..300, 1..24),
            periods in prop::collection::vec(prop::collection::vec(0u64..50, 24), 1..4),
        ) {
            let mut volume = volume(500, &sizes);
            let files = sizes.len() as u32;
            let stays = metadata(&volume, files);
            // What each block holds.
            let mut disk = BTreeMap::new();
            for file in 0..files {
                (0..).zip(volume.blocks_of(file)).for_each(|(index, block)| _ = disk.insert(*block, (file, index)));
            }
            for accesses in periods {
                let hot = temperatures(&accesses[..sizes.len()]);
                let moved = volume.move_hot_files(&hot).expect("half of the disk is free");
                let read: Vec<_> = moved.iter().flat_map(|one| &one.from).map(|block| disk[block]).collect();
                let written = moved.iter().flat_map(|one| &one.to);
                written.zip(read).for_each(|(block, data)| _ = disk.insert(*block, data));
                prop_assert_eq!(&metadata(&volume, files), &stays);
                let mut used: BTreeSet<u32> = stays.iter().flatten().copied().collect();
                let distinct = used.len();
                let mut blocks = 0;
                for (file, size) in (0..).zip(&sizes) {
                    prop_assert_eq!(volume.blocks_of(file).len() as u32, *size);
                    for (index, block) in (0u32..).zip(volume.blocks_of(file)) {
                        prop_assert_eq!(disk[block], (file, index));
                        prop_assert!(!volume.space.is_free(*block));
                        used.insert(*block);
                        blocks += 1;
                    }
                }
                prop_assert_eq!(used.len(), distinct + blocks, "each block has one owner");
            }
        }
    }
}
