//! Moves files onto tracks, some at a time.

use super::OnlineError;
use super::donor::Donor;
use super::movable::{MovableFile, Unmovable};
use headstack_tracks::relocate::{BlockMove, BlockTracks, Mapping, Rest, TrackPlanner};
use rustix::fs::FallocateFlags;
use std::fs::File;
use std::io;
use std::ops::{ControlFlow, Range};
use std::path::Path;

/// Bytes that one donor replaces: small against the free space of a disk, and many tracks. *Source:* assumption.
const DONOR_BYTES: u64 = 64 << 20;
/// Tracks that one donor replaces at least.
const DONOR_TRACKS: u64 = 4;
/// Times that a donor asks for further tracks. *Source:* assumption: more find nothing on a file system in pieces.
const ROUNDS: u32 = 4;

/// Is called after each piece with its blocks; cancels with [`ControlFlow::Break`].
pub type MoveProgress<'a> = &'a mut dyn FnMut(u64) -> ControlFlow<()>;

/// What happened to a file.
#[derive(Clone, Debug, Default)]
pub struct Moved {
    /// Blocks that were moved.
    pub blocks: u64,
    /// Why the rest of it was not.
    pub failure: Option<Unmovable>,
}

/// What one donor moved.
struct MoveRound {
    blocks: u64,
    is_cancelled: bool,
}

/// Moves files of one mounted ext4 onto tracks.
#[derive(Clone, Copy, Debug)]
pub struct Mover<'a> {
    tracks: BlockTracks<'a>,
    block_bytes: u64,
}

impl<'a> Mover<'a> {
    /// A mover for a file system with these tracks and this block size.
    pub fn new(tracks: BlockTracks<'a>, block_bytes: u64) -> Mover<'a> {
        Mover { tracks, block_bytes }
    }

    /// Blocks that are moved at a time.
    pub fn donor_blocks(&self) -> u64 {
        (DONOR_BYTES / self.block_bytes).max(DONOR_TRACKS * self.tracks.longest_traxtent())
    }

    /// Moves the crossing extents of files onto whole tracks, up to `limit` blocks. The donor is created in the folder. Afterwards
    /// each file has its present extents.
    ///
    /// *Errors:* there is no donor, or the system fails for all files. The files moved so far have moved.
    pub fn relocate(
        &self,
        folder: &Path,
        files: &mut [MovableFile],
        limit: u64,
        progress: MoveProgress<'_>,
    ) -> Result<Vec<Moved>, OnlineError> {
        let mut results = vec![Moved::default(); files.len()];
        let mut left = limit;
        loop {
            let crossings = self.crossings(files);
            let round = self.round(folder, files, &mut results, left, progress)?;
            left -= round.blocks.min(left);
            // A file that others change meanwhile must not keep the loop alive.
            if round.is_cancelled || round.blocks == 0 || self.crossings(files) >= crossings {
                return Ok(results);
            }
        }
    }

    fn round(
        &self,
        folder: &Path,
        files: &mut [MovableFile],
        results: &mut [Moved],
        limit: u64,
        progress: MoveProgress<'_>,
    ) -> Result<MoveRound, OnlineError> {
        let mut round = MoveRound { blocks: 0, is_cancelled: false };
        let is_left = |moved: &Moved| moved.failure.is_none();
        let crossing = files.iter().zip(&*results).filter(|(_, moved)| is_left(moved));
        let need: u64 = crossing.map(|(file, _)| self.crossing_blocks(file.mappings())).sum();
        let need = need.min(limit).min(self.donor_blocks());
        if need == 0 {
            return Ok(round);
        }
        let (donor, plan) = self.acquire(folder, need, |planner| {
            let mut left = need;
            let mut moves: Vec<Vec<BlockMove>> = Vec::new();
            for (file, moved) in files.iter().zip(&*results) {
                let of_file = if is_left(moved) { planner.moves(file.mappings(), left) } else { Vec::new() };
                left -= blocks_of(&of_file);
                moves.push(of_file);
            }
            (moves, need - left)
        })?;
        for ((file, moved), moves) in files.iter_mut().zip(results).zip(plan) {
            if moves.is_empty() || round.is_cancelled {
                continue;
            }
            for one in &moves {
                if let Err(error) = donor.exchange(&file.file, one) {
                    moved.failure = Some(error.into());
                    break;
                }
                let blocks = one.destination.end - one.destination.start;
                moved.blocks += blocks;
                round.blocks += blocks;
                round.is_cancelled = progress(blocks).is_break();
                if round.is_cancelled {
                    break;
                }
            }
            if let Err(reason) = file.refresh() {
                moved.failure.get_or_insert(reason);
            }
        }
        donor.sync()?;
        Ok(round)
    }

    /// Fills a new file with unwritten blocks on whole tracks.
    ///
    /// *Errors:* there are no such tracks, or the system's. The file then has part of the blocks.
    pub fn preallocate(
        &self,
        folder: &Path,
        file: &File,
        blocks: u64,
        progress: MoveProgress<'_>,
    ) -> Result<(), OnlineError> {
        let mut done = 0;
        while done < blocks {
            let need = (blocks - done).min(self.donor_blocks());
            // Only the end of the file may leave a track in part to others.
            let rest = if done + need == blocks { Rest::Placed } else { Rest::Left };
            let (donor, places) = self.acquire(folder, need, |planner| {
                let places = planner.allocate(need, rest);
                let placed: u64 = places.iter().map(|place| place.end - place.start).sum();
                let is_full = rest == Rest::Left && placed + self.tracks.longest_traxtent() > need;
                (places, if is_full { need } else { placed })
            })?;
            let placed: u64 = places.iter().map(|place| place.end - place.start).sum();
            if placed == 0 {
                return Err(OnlineError::NoWholeTracks { placed: done, blocks });
            }
            // The exchange needs blocks on both sides.
            let (offset, length) = (done * self.block_bytes, placed * self.block_bytes);
            rustix::fs::fallocate(file, FallocateFlags::empty(), offset, length).map_err(io::Error::from)?;
            for destination in places {
                let length = destination.end - destination.start;
                // Where its present blocks lie does not matter.
                donor.exchange(file, &BlockMove { logical: done, source: 0, destination })?;
                done += length;
                if progress(length).is_break() {
                    return Err(OnlineError::Interrupted);
                }
            }
        }
        Ok(())
    }

    /// A donor with room for `need` blocks, if there is any, and the plan for them. `plan` returns the blocks that it has placed.
    fn acquire<T>(
        &self,
        folder: &Path,
        need: u64,
        mut plan: impl FnMut(&mut TrackPlanner<'_>) -> (T, u64),
    ) -> Result<(Donor, T), OnlineError> {
        let no_donor = |error| OnlineError::Donor { folder: folder.to_path_buf(), error };
        let mut donor = Donor::create(folder, self.block_bytes).map_err(no_donor)?;
        let longest = self.tracks.longest_traxtent().max(1);
        // Consecutive space first: with a track more at both ends it holds the tracks, wherever it begins.
        donor.grow(1, need + 2 * longest)?;
        let mut plan_in = |donor: &Donor| plan(&mut TrackPlanner::new(self.tracks, donor.free()));
        let (mut planned, mut placed) = plan_in(&donor);
        for _ in 0..ROUNDS {
            if placed >= need {
                break;
            }
            // The shortest length that holds a whole track wherever it begins.
            let has_room = donor.grow((need - placed).div_ceil(longest) + 1, 2 * longest)?;
            (planned, placed) = plan_in(&donor);
            if !has_room {
                break;
            }
        }
        Ok((donor, planned))
    }

    fn crossing_blocks(&self, mappings: &[Mapping]) -> u64 {
        mappings.iter().filter(|mapping| self.crossings_in([&mapping.blocks]) > 0).map(Mapping::len).sum()
    }

    fn crossings(&self, files: &[MovableFile]) -> u64 {
        let extents = files.iter().flat_map(|file| file.mappings());
        self.crossings_in(extents.map(|mapping| &mapping.blocks))
    }

    fn crossings_in<'b>(&self, extents: impl IntoIterator<Item = &'b Range<u64>>) -> u64 {
        self.tracks.count(extents).map_or(0, |counted| counted.crossings)
    }
}

fn blocks_of(moves: &[BlockMove]) -> u64 {
    moves.iter().map(|one| one.destination.end - one.destination.start).sum()
}
