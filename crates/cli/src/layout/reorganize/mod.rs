//! `headstack layout reorganize`: moves the files of a mounted ext4 onto whole tracks.

mod report;

use super::partition::{MapArgs, Mapped};
use super::walk::found;
use crate::failure::Failure;
use crate::files;
use crate::interrupt::Interrupt;
use crate::units::{grouped, parse_bytes};
use crate::versioned;
use headstack_host::ext4::online::{self, MovableFile, Mover, OnlineError, SwapFiles, Unmovable};
use headstack_tracks::crossings::Crossings;
use headstack_tracks::relocate::{BlockTracks, Mapping, TrackPlanner, applied};
use indicatif::ProgressBar;
use nix::unistd::{SysconfVar, sysconf};
use report::{FileRecord, Reorganized};
use std::collections::BTreeSet;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Maximum number of files that one donor serves. Each stays open during that.
const OPEN_FILES: usize = 256;

/// Move those extents of files that cross track boundaries onto whole tracks, on a mounted ext4.
///
/// The kernel exchanges the blocks of a file with those of a temporary file on free tracks, and copies the data, while others may use
/// the file. Each file has its content at any time, also after the command was killed.
#[derive(clap::Args)]
#[command(
    after_help = "A folder stands for the files below it on the same file system. Files are moved in the order of the arguments; those of a folder, in the order in which they are found."
)]
pub(crate) struct Reorganize {
    #[command(flatten)]
    map: MapArgs,
    /// Files and folders, all on one mounted ext4.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Print what would be moved, and move nothing.
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Move at most this number of bytes. [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    max_bytes: Option<u64>,
    /// Do not move files that are shorter than this.
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    min_file: Option<u64>,
    /// Print the result as JSON, with all files that cross a boundary now or did before.
    #[arg(long)]
    json: bool,
}

/// A file with crossing extents.
struct CrossingFile {
    /// Its index among the records.
    record: usize,
    mappings: Vec<Mapping>,
    blocks: u64,
}

/// The file system of the files, and its tracks.
struct TrackedVolume<'a> {
    mapped: &'a Mapped,
    tracks: BlockTracks<'a>,
    block_bytes: u64,
    swaps: SwapFiles,
}

impl Reorganize {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let (paths, left_out) = found(&self.files)?;
        let (mapped, source) = self.map.read_around(&paths[0])?;
        let block_bytes = check(&paths[0])?;
        let volume = TrackedVolume::new(&mapped, block_bytes)?;
        let (mut records, crossing) = self.examine(paths, &volume)?;
        let limit = self.max_bytes.map_or(u64::MAX, |bytes| bytes / block_bytes);
        let interrupt = Interrupt::watch()?;
        let ended = if self.dry_run {
            plan_moves(&mut records, &crossing, &volume, limit)
        } else {
            relocate(&mut records, &crossing, &volume, limit, &interrupt)
        };
        let findings =
            Reorganized { mapped: &mapped, source, records, left_out, is_plan: self.dry_run, block_bytes };
        if self.json {
            versioned::print(&findings.to_json(), out)?
        } else {
            write!(out, "{}", findings.to_text())?
        }
        ended?;
        if let Some(signal) = interrupt.received() { Err(Failure::Stopped(signal)) } else { Ok(()) }
    }

    /// Finds the extents of all files.
    fn examine(
        &self,
        paths: Vec<PathBuf>,
        volume: &TrackedVolume<'_>,
    ) -> Result<(Vec<FileRecord>, Vec<CrossingFile>), Failure> {
        let mut seen = BTreeSet::new();
        let (mut records, mut crossing) = (Vec::new(), Vec::new());
        let mut device = None;
        for path in paths {
            let wrong = |reported: String| Failure::Input(format!("{}: {reported}", path.display()));
            let stat = rustix::fs::stat(&path).map_err(|error| wrong(error.to_string()))?;
            if *device.get_or_insert(stat.st_dev) != stat.st_dev {
                let reported = "is on another file system than the first; name files of one at a time";
                return Err(wrong(reported.to_string()));
            }
            if !seen.insert(stat.st_ino) || self.min_file.is_some_and(|least| (stat.st_size as u64) < least) {
                continue;
            }
            let opened = match MovableFile::open(&path, volume.block_bytes, &volume.swaps) {
                Ok(opened) => opened,
                Err(reason) => {
                    records.push(FileRecord::unmovable(path, reason));
                    continue;
                }
            };
            let mappings = opened.mappings().to_vec();
            let before = volume.count(&mappings).map_err(wrong)?;
            if before.crossings > 0 {
                let blocks = volume.crossing_blocks(&mappings);
                crossing.push(CrossingFile { record: records.len(), mappings, blocks });
            }
            records.push(FileRecord { path, before, after: before, moved_blocks: 0, reason: None });
        }
        Ok((records, crossing))
    }
}

/// Checks that files of a file system can be moved, and returns its block size.
pub(super) fn check(path: &Path) -> Result<u64, Failure> {
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten().and_then(|bytes| u64::try_from(bytes).ok());
    let page = page.expect("POSIX requires a page size");
    online::check(&files::open(path)?, page).map_err(|error| failure(path, &error))
}

pub(super) fn failure(path: &Path, error: &OnlineError) -> Failure {
    let message = match error {
        OnlineError::Donor { .. } => error.to_string(),
        _ => format!("{}: {error}", path.display()),
    };
    match error {
        OnlineError::File(_) | OnlineError::Interrupted | OnlineError::NoWholeTracks { .. } => {
            Failure::Check(message)
        }
        _ => Failure::Input(message),
    }
}

impl<'a> TrackedVolume<'a> {
    fn new(mapped: &'a Mapped, block_bytes: u64) -> Result<TrackedVolume<'a>, Failure> {
        let tracks = mapped.block_tracks(block_bytes)?;
        Ok(TrackedVolume { mapped, tracks, block_bytes, swaps: SwapFiles::read() })
    }

    fn count(&self, mappings: &[Mapping]) -> Result<Crossings, String> {
        let counted = self.tracks.count(mappings.iter().map(|mapping| &mapping.blocks));
        counted.map_err(|extent| self.mapped.outside(&extent))
    }

    /// Blocks of the extents that cross.
    fn crossing_blocks(&self, mappings: &[Mapping]) -> u64 {
        let crosses = |mapping: &&Mapping| {
            self.tracks.count([&mapping.blocks]).is_ok_and(|counted| counted.crossings > 0)
        };
        mappings.iter().filter(crosses).map(Mapping::len).sum()
    }
}

/// Plans the moves from the free space of the file system, and records their results without moving anything.
fn plan_moves(
    records: &mut [FileRecord],
    crossing: &[CrossingFile],
    volume: &TrackedVolume<'_>,
    limit: u64,
) -> Result<(), Failure> {
    let Some(first) = crossing.first() else { return Ok(()) };
    let path = records[first.record].path.clone();
    let free = online::free_space(&files::open(&path)?, volume.block_bytes);
    let mut planner = TrackPlanner::new(volume.tracks, free.map_err(|error| failure(&path, &error))?);
    let mut left = limit;
    for file in crossing {
        let moves = planner.moves(&file.mappings, left);
        let moved: u64 = moves.iter().map(|one| one.destination.end - one.destination.start).sum();
        left -= moved;
        let record = &mut records[file.record];
        record.moved_blocks = moved;
        record.after = volume.count(&applied(&file.mappings, &moves)).map_err(Failure::Input)?;
    }
    Ok(())
}

/// Moves files batch by batch.
fn relocate(
    records: &mut [FileRecord],
    crossing: &[CrossingFile],
    volume: &TrackedVolume<'_>,
    limit: u64,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let mover = Mover::new(volume.tracks, volume.block_bytes);
    let total: u64 = crossing.iter().map(|file| file.blocks).sum();
    let bar = bar(total.min(limit) * volume.block_bytes);
    let mut left = limit;
    let mut rest = crossing;
    while let (Some(first), true) = (rest.first(), left > 0 && interrupt.received().is_none()) {
        let mut blocks = 0;
        let count = rest.iter().take(OPEN_FILES).take_while(|file| {
            let fits = blocks < mover.donor_blocks();
            blocks += file.blocks;
            fits
        });
        let (batch, later) = rest.split_at(count.count());
        rest = later;
        let path = records[first.record].path.clone();
        bar.set_message(format!("{} files: {}", grouped(crossing.len() as u64), path.display()));
        let moved = relocate_batch(records, batch, volume, &mover, left, &mut |blocks| {
            bar.inc(blocks * volume.block_bytes);
            match interrupt.received() {
                None => ControlFlow::Continue(()),
                Some(_) => ControlFlow::Break(()),
            }
        });
        left -= moved.inspect_err(|_| bar.finish_and_clear())?.min(left);
    }
    bar.finish_and_clear();
    Ok(())
}

/// Moves a batch of files by means of donors, one after the other. Returns the number of moved blocks.
fn relocate_batch(
    records: &mut [FileRecord],
    batch: &[CrossingFile],
    volume: &TrackedVolume<'_>,
    mover: &Mover<'_>,
    limit: u64,
    progress: online::MoveProgress<'_>,
) -> Result<u64, Failure> {
    let (mut indices, mut opened) = (Vec::new(), Vec::new());
    for file in batch {
        let record = &mut records[file.record];
        match MovableFile::open(&record.path, volume.block_bytes, &volume.swaps) {
            Ok(file_now) => {
                indices.push(file.record);
                opened.push(file_now);
            }
            Err(reason) => record.reason = Some(reason),
        }
    }
    let Some(first) = indices.first() else { return Ok(0) };
    let path = records[*first].path.clone();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let moved =
        mover.relocate(folder, &mut opened, limit, progress).map_err(|error| failure(&path, &error))?;
    for ((index, file), moved) in indices.iter().zip(&opened).zip(&moved) {
        let record = &mut records[*index];
        record.moved_blocks = moved.blocks;
        record.reason = moved.failure.clone();
        match volume.count(file.mappings()) {
            Ok(after) => record.after = after,
            Err(reported) => record.reason = Some(Unmovable::Other(reported)),
        }
    }
    Ok(moved.iter().map(|moved| moved.blocks).sum())
}

/// A bar of moved bytes, on a terminal.
pub(super) fn bar(bytes: u64) -> ProgressBar {
    let style = crate::progress::style("{bar:20} {percent:>3} %  {bytes} of {total_bytes}  {wide_msg}");
    ProgressBar::new(bytes).with_style(style)
}
