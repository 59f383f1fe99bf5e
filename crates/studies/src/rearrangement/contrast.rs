//! s5fs against ext2: how far the arm travels while the files of an aged file system are read.
//!
//! Modelled: both file systems on the same disk with the same files, some of which were deleted and replaced by new ones. One program reads
//! the inode and then the data of each file, one run of adjacent blocks at a time. Not modelled: directories, caches and writes.
//!
//! *Source:* R. S. Gray's thesis of 2000, chapter 3 and its Fig. 9.

use super::granularity::file_sizes;
use super::seeks::DISK;
use super::shuffling::CYLINDER_SECTORS;
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Section, Series, Table};
use headstack_model::{DriveSpec, Instant, Lbn, Op, Request};
use headstack_personalities::ext2::{Ext2Shape, Ext2Volume};
use headstack_personalities::s5fs::S5Volume;
use headstack_sim::Rig;
use headstack_workload::{Closed, Pick};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Bytes per block, blocks in each file system, and bytes of disk per inode. *Source:* the default of ext2; the disk less a margin.
const BLOCK_BYTES: u32 = 1024;
const BLOCKS: u32 = 640_000;
const BYTES_PER_INODE: u32 = 4096;

/// Sectors of a block.
const SECTORS: u64 = 2;

/// Maximum blocks per read. *Source:* assumption.
const READ_BLOCKS: usize = 64;

const FILES: u32 = 18_000;
const DIRECTORIES: u32 = 180;

/// Files deleted and created since the file system was new, per file that it holds.
const AGES: [f64; 5] = [0.0, 1.0, 2.0, 4.0, 8.0];

/// A file system in which files are created and deleted.
trait AgingVolume {
    fn make(&mut self, file: u32, bytes: u64) -> Result<(), StudyError>;
    fn remove(&mut self, file: u32);
    /// The blocks that reading a file needs, starting with the block of its inode.
    fn read_blocks(&self, file: u32) -> Vec<u32>;
}

fn no_room(file: u32) -> StudyError {
    StudyError::Input(format!("file {file} has no room"))
}

impl AgingVolume for S5Volume {
    fn make(&mut self, file: u32, bytes: u64) -> Result<(), StudyError> {
        self.create(file, bytes).then_some(()).ok_or(no_room(file))
    }

    fn remove(&mut self, file: u32) {
        self.delete(file);
    }

    fn read_blocks(&self, file: u32) -> Vec<u32> {
        self.inode_block_of(file).into_iter().chain(self.blocks_of(file).iter().copied()).collect()
    }
}

impl AgingVolume for Ext2Volume {
    fn make(&mut self, file: u32, bytes: u64) -> Result<(), StudyError> {
        self.create(file, 1 + file % DIRECTORIES).map_err(|_| no_room(file))?;
        self.write_to(file, bytes).map_err(|_| no_room(file))?;
        self.close(file);
        Ok(())
    }

    fn remove(&mut self, file: u32) {
        self.delete(file);
    }

    fn read_blocks(&self, file: u32) -> Vec<u32> {
        self.inode_block_of(file).into_iter().chain(self.blocks_of(file).iter().copied()).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AgedFileSystem {
    S5fs,
    Ext2,
}

impl AgedFileSystem {
    const ALL: [AgedFileSystem; 2] = [AgedFileSystem::S5fs, AgedFileSystem::Ext2];

    fn name(self) -> &'static str {
        match self {
            AgedFileSystem::S5fs => "s5fs",
            AgedFileSystem::Ext2 => "ext2",
        }
    }

    fn volume(self) -> Result<Box<dyn AgingVolume>, StudyError> {
        let inodes = BLOCKS / (BYTES_PER_INODE / BLOCK_BYTES);
        if self == AgedFileSystem::S5fs {
            return Ok(Box::new(S5Volume::new(BLOCK_BYTES, BLOCKS, inodes)));
        }
        let shape = Ext2Shape {
            block_bytes: BLOCK_BYTES,
            blocks: BLOCKS.into(),
            bytes_per_inode: BYTES_PER_INODE,
            reserved_percent: 5,
        };
        let geometry = shape.geometry().map_err(|error| StudyError::Input(error.to_string()))?;
        let made = Ext2Volume::new(geometry, true).and_then(|mut volume| {
            (1..=DIRECTORIES).try_for_each(|directory| volume.make_directory(directory))?;
            Ok(volume)
        });
        Ok(Box::new(made.map_err(|error| StudyError::Input(error.to_string()))?))
    }
}

/// The blocks of each file of an aged file system.
fn aged(kind: AgedFileSystem, age: f64) -> Result<Vec<Vec<u32>>, StudyError> {
    let sizes = file_sizes().sampler().map_err(|error| StudyError::Input(error.to_string()))?;
    let mut random = Pcg64Mcg::seed_from_u64(1);
    let (mut volume, files) = (kind.volume()?, FILES);
    (0..files).try_for_each(|file| volume.make(file, sizes.draw(&mut random) as u64))?;
    for _ in 0..(f64::from(files) * age / 2.0) as u64 {
        // Two files are deleted before two are created, so that the list of free blocks does not act as a stack with one file on it.
        let gone = [(); 2].map(|()| random.random_range(0..files));
        gone.into_iter().for_each(|file| volume.remove(file));
        volume.make(gone[0], sizes.draw(&mut random) as u64)?;
        if gone[1] != gone[0] {
            volume.make(gone[1], sizes.draw(&mut random) as u64)?;
        }
    }
    Ok((0..files).map(|file| volume.read_blocks(file)).collect())
}

/// Reads of runs of adjacent blocks, one after the other.
struct RunReads(std::vec::IntoIter<Request>);

impl Pick for RunReads {
    fn pick(&mut self, _now: Instant) -> Request {
        self.0.next().expect("there are as many requests as the load issues")
    }
}

/// The reads of one file: its inode, then each run of its data.
fn reads(blocks: &[u32]) -> Vec<Request> {
    let request = |first: u32, blocks: usize| {
        let sectors = blocks as u32 * SECTORS as u32;
        Request { op: Op::Read, lbn: Lbn(u64::from(first) * SECTORS), sectors, fua: false }
    };
    let (inode, mut data) = blocks.split_at(1);
    let mut requests = vec![request(inode[0], 1)];
    while let Some(first) = data.first() {
        let run = (*first..).zip(data).take_while(|(next, block)| next == *block).count().min(READ_BLOCKS);
        requests.push(request(*first, run));
        data = &data[run..];
    }
    requests
}

/// Means over the files of a file system.
#[derive(Clone, Copy)]
struct FileTravel {
    /// Cylinders from the inode to the first data block.
    to_data: f64,
    /// Cylinders from each data block to the next, summed over a file.
    within_data: f64,
    reads: f64,
    read_ms: f64,
}

fn measure(kind: AgedFileSystem, age: f64) -> Result<FileTravel, StudyError> {
    let mut files = aged(kind, age)?;
    let cylinder = |block: u32| u64::from(block) * SECTORS / CYLINDER_SECTORS;
    let distance = |pair: &[u32]| cylinder(pair[0]).abs_diff(cylinder(pair[1]));
    let count = files.len() as f64;
    let to_data: u64 = files.iter().map(|blocks| blocks.windows(2).take(1).map(distance).sum::<u64>()).sum();
    let within: u64 = files.iter().map(|blocks| blocks[1..].windows(2).map(distance).sum::<u64>()).sum();
    let mut random = Pcg64Mcg::seed_from_u64(2);
    for file in (1..files.len()).rev() {
        files.swap(file, random.random_range(0..=file));
    }
    let requests: Vec<Request> = files.iter().flat_map(|blocks| reads(blocks)).collect();
    let reads = requests.len();
    let mut load = Closed::from_pick(RunReads(requests.into_iter()), 1, reads as u64)?;
    let drive = DriveSpec::parse(DISK, "studies/rearrangement/disk.toml")?;
    let mut engine = Rig::from_drive(drive).build(1)?;
    engine.run(&mut load, &mut |_| {});
    Ok(FileTravel {
        to_data: to_data as f64 / count,
        within_data: within as f64 / count,
        reads: reads as f64 / count,
        read_ms: engine.now().since(Instant::ZERO).as_ms() / count,
    })
}

/// Ages both file systems, and measures the reads.
///
/// *Errors:* as of a run.
pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let cases: Vec<(AgedFileSystem, f64)> =
        AgedFileSystem::ALL.iter().flat_map(|kind| AGES.iter().map(|age| (*kind, *age))).collect();
    let all = setting.map(&cases, |(kind, age)| measure(*kind, *age))?;
    let columns = [
        "file system",
        "files replaced",
        "inode to data, cylinders",
        "within data, cylinders",
        "reads a file",
        "ms a file",
    ];
    let mut table = Table::new("s5fs and ext2 with age", columns);
    let mut lines = AgedFileSystem::ALL.map(|kind| Series::new(kind.name(), kind as usize, []));
    for ((kind, age), run) in cases.iter().zip(&all) {
        table.named_row([kind.name()], [*age, run.to_data, run.within_data, run.reads, run.read_ms]);
        lines[*kind as usize].points.push((*age, run.to_data + run.within_data));
    }
    let (s5fs, ext2) = all.split_at(AGES.len());
    let [(Some(new), Some(old)), (_, Some(old_ext2))] = [s5fs, ext2].map(|runs| (runs.first(), runs.last()))
    else {
        unreachable!("each file system has ages")
    };
    let measured = vec![
        Measured::new("s5fs inode to data over ext2", old.to_data / old_ext2.to_data),
        Measured::new("s5fs aged over new", old.reads / new.reads),
        Measured::new("s5fs read over ext2", old.read_ms / old_ext2.read_ms),
    ];
    let chart = Chart::new(
        "Travel of the arm within a file",
        Axis::linear("files replaced, for each file"),
        Axis::linear("cylinders from inode to last block"),
        lines,
    );
    let section = Section::new("s5fs and ext2 with age").with_chart(chart).with_table(table);
    Ok(Findings::new(measured, [section]))
}
