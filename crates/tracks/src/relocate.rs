//! Where the blocks of files go so that no extent crosses a track boundary: a plan, without I/O.
//!
//! A *traxtent* is the blocks that lie on one track as a whole, here without the block that ends with the track if there is one: two
//! traxtents are never adjacent, so that extents end at boundaries, as with [excluded blocks](crate::exclude). An extent moves onto
//! whole free tracks in disk order, and its rest onto one traxtent that holds it, so that each piece lies on one track and the file
//! has no more pieces than these tracks require. Extents that cross no boundary stay where they are.
//!
//! *Source:* J. Schindler, J. L. Griffin, C. R. Lumb, G. R. Ganger, "Track-aligned Extents: Matching Access Patterns to Disk Drive
//! Characteristics", FAST 2002, section 4.2 (allocation in traxtents, and reorganization of aged file systems). Which free tracks are
//! chosen is an assumption: best fit.

use crate::crossings::Crossings;
use crate::exclude::OddBlock;
use crate::map::{Track, View};
use headstack_model::Lbn;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Blocks that are consecutive in a file and on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First block, counted in the file.
    pub logical: u64,
    /// The blocks, counted on the partition.
    pub blocks: Range<u64>,
}

impl Mapping {
    /// Number of blocks.
    pub fn len(&self) -> u64 {
        self.blocks.end - self.blocks.start
    }

    /// Whether it has no blocks.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

/// Sorts mappings by their place in the file, and merges those that are adjacent both in the file and on the disk.
pub fn merged(mut mappings: Vec<Mapping>) -> Vec<Mapping> {
    mappings.retain(|mapping| !mapping.is_empty());
    mappings.sort_by_key(|mapping| mapping.logical);
    let mut merged: Vec<Mapping> = Vec::new();
    for mapping in mappings {
        match merged.last_mut() {
            Some(last)
                if last.logical + last.len() == mapping.logical
                    && last.blocks.end == mapping.blocks.start =>
            {
                last.blocks.end = mapping.blocks.end;
            }
            _ => merged.push(mapping),
        }
    }
    merged
}

/// The blocks of a file system on the tracks of its partition.
///
/// *Shapes:* the first block begins with the partition.
#[derive(Clone, Copy, Debug)]
pub struct BlockTracks<'a> {
    view: View<'a>,
    block_sectors: u64,
}

impl<'a> BlockTracks<'a> {
    /// The blocks of a file system with this block size in bytes.
    ///
    /// *Errors:* the block size is no whole number of sectors.
    pub fn new(view: View<'a>, block_bytes: u64, sector_bytes: u32) -> Result<BlockTracks<'a>, OddBlock> {
        let sector = u64::from(sector_bytes);
        if block_bytes > 0 && block_bytes.is_multiple_of(sector) {
            Ok(BlockTracks { view, block_sectors: block_bytes / sector })
        } else {
            Err(OddBlock { block_bytes, sector_bytes })
        }
    }

    /// Counts the crossings of extents.
    ///
    /// *Errors:* the first extent, in disk order, that reaches beyond the partition, in sectors.
    pub fn count<'b>(
        &self,
        extents: impl IntoIterator<Item = &'b Range<u64>>,
    ) -> Result<Crossings, Range<Lbn>> {
        let sector = |block: u64| Lbn(block * self.block_sectors);
        let extents: Vec<_> =
            extents.into_iter().map(|blocks| sector(blocks.start)..sector(blocks.end)).collect();
        Crossings::count(&self.view, self.block_sectors, &extents)
    }

    /// Blocks of the longest traxtent.
    pub fn longest_traxtent(&self) -> u64 {
        self.view.runs().map(|run| u64::from(run.sectors) / self.block_sectors).max().unwrap_or(0)
    }

    /// Boundaries within an extent that lies in the partition.
    fn crossings(&self, extent: &Range<u64>) -> u64 {
        self.count([extent]).expect("a planned extent lies in the partition").crossings
    }

    /// The track on which a block begins; none behind the partition.
    fn track_of(&self, block: u64) -> Option<Track> {
        self.view.track_of(Lbn(block * self.block_sectors))
    }

    /// The blocks on a track that an extent may use without touching the next one.
    fn traxtent(&self, track: &Track) -> Range<u64> {
        let size = self.block_sectors;
        let (first, end) = (track.first.0.div_ceil(size), track.end().0 / size);
        let ends_with_block = track.end().0.is_multiple_of(size) && track.end().0 < self.view.sectors();
        first..(end - u64::from(ends_with_block && end > first)).max(first)
    }

    /// The traxtent in which a block lies; none for a block at a boundary.
    fn traxtent_of(&self, block: u64) -> Option<Range<u64>> {
        self.track_of(block).map(|track| self.traxtent(&track)).filter(|blocks| blocks.contains(&block))
    }

    /// The traxtent of the track behind one, if there is a track.
    fn next_traxtent(&self, traxtent: &Range<u64>) -> Option<Range<u64>> {
        let end = self.track_of(traxtent.start)?.end();
        self.view.track_of(end).map(|track| self.traxtent(&track))
    }
}

/// What happens to the end of a file that fills no track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It gets part of a traxtent.
    Placed,
    /// It gets no place.
    Left,
}

/// A move of blocks of a file onto one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockMove {
    /// First block, counted in the file.
    pub logical: u64,
    /// Its present place on the partition.
    pub source: u64,
    /// Its new place.
    pub destination: Range<u64>,
}

/// Chooses tracks for extents out of free space.
#[derive(Clone, Debug)]
pub struct TrackPlanner<'a> {
    tracks: BlockTracks<'a>,
    /// Free parts of traxtents: number of blocks, first block.
    parts: BTreeSet<(u64, u64)>,
    /// Consecutive tracks that are free as a whole: blocks of their traxtents, and first block; with the end of the last one.
    stretches: BTreeMap<(u64, u64), u64>,
}

impl<'a> TrackPlanner<'a> {
    /// A planner of free space. Ranges may be in any order but must not overlap; what lies behind the map is not used.
    pub fn new(tracks: BlockTracks<'a>, free: impl IntoIterator<Item = Range<u64>>) -> TrackPlanner<'a> {
        let mut planner = TrackPlanner { tracks, parts: BTreeSet::new(), stretches: BTreeMap::new() };
        let mut free: Vec<_> = free.into_iter().collect();
        free.sort_by_key(|range| range.start);
        // Whole tracks so far: the first block, the end, the sum of blocks.
        let mut open: Option<(Range<u64>, u64)> = None;
        for range in free {
            let mut next = range.start;
            while next < range.end {
                let Some(track) = tracks.track_of(next) else { break };
                let traxtent = tracks.traxtent(&track);
                let part = next.max(traxtent.start)..range.end.min(traxtent.end);
                next = track.end().0.div_ceil(tracks.block_sectors).max(next + 1);
                if part.is_empty() {
                    continue;
                }
                if part != traxtent || !tracks.view.is_whole(&track) {
                    planner.parts.insert((part.end - part.start, part.start));
                    continue;
                }
                open = Some(match open.take() {
                    Some((before, blocks))
                        if tracks.next_traxtent(&last_traxtent(&tracks, &before))
                            == Some(traxtent.clone()) =>
                    {
                        (before.start..traxtent.end, blocks + (traxtent.end - traxtent.start))
                    }
                    before => {
                        planner.close(before);
                        (traxtent.clone(), traxtent.end - traxtent.start)
                    }
                });
            }
        }
        planner.close(open);
        planner
    }

    fn close(&mut self, stretch: Option<(Range<u64>, u64)>) {
        if let Some((range, blocks)) = stretch.filter(|(range, _)| !range.is_empty()) {
            self.stretches.insert((blocks, range.start), range.end);
        }
    }

    /// Blocks on tracks that are free as a whole.
    pub fn whole_blocks(&self) -> u64 {
        self.stretches.keys().map(|(blocks, _)| blocks).sum()
    }

    /// Chooses tracks for the crossing extents of a file, at most `limit` blocks in all. Extents that no whole tracks hold are
    /// moved as far as there are any, if fewer boundaries remain.
    pub fn moves(&mut self, mappings: &[Mapping], limit: u64) -> Vec<BlockMove> {
        let mut moves = Vec::new();
        let mut left = limit;
        for mapping in mappings {
            let (mut logical, mut source) = (mapping.logical, mapping.blocks.start);
            for destination in self.relocate(&mapping.blocks, left) {
                let blocks = destination.end - destination.start;
                moves.push(BlockMove { logical, source, destination });
                (logical, source, left) = (logical + blocks, source + blocks, left - blocks);
            }
        }
        moves
    }

    /// Places for the beginning of an extent, in its order; none if that would not leave fewer boundaries.
    fn relocate(&mut self, extent: &Range<u64>, limit: u64) -> Vec<Range<u64>> {
        let (crossings, blocks) = (self.tracks.crossings(extent), extent.end - extent.start);
        if crossings == 0 {
            return Vec::new();
        }
        let pieces = if blocks <= limit {
            self.allocate(blocks, Rest::Placed)
        } else {
            self.allocate(limit, Rest::Left)
        };
        let moved: u64 = pieces.iter().map(|piece| piece.end - piece.start).sum();
        let remaining = extent.start + moved..extent.end;
        if !remaining.is_empty() && self.tracks.crossings(&remaining) >= crossings {
            // Only whole tracks were chosen.
            pieces
                .into_iter()
                .for_each(|traxtent| self.close(Some((traxtent.clone(), traxtent.end - traxtent.start))));
            return Vec::new();
        }
        pieces
    }

    /// Chooses whole tracks for the first of `blocks` blocks, and a part of a traxtent for what is left of them. If whole tracks run
    /// out, what remains gets no place.
    pub fn allocate(&mut self, blocks: u64, rest: Rest) -> Vec<Range<u64>> {
        let mut left = blocks;
        let mut pieces = Vec::new();
        while left > 0 {
            if rest == Rest::Placed
                && let Some(piece) = self.part_of_traxtent(left)
            {
                pieces.push(piece);
                break;
            }
            let before = left;
            self.whole_tracks(&mut left, rest, &mut pieces);
            if left == before {
                break;
            }
        }
        pieces
    }

    /// Takes `blocks` blocks from the shortest traxtent that holds them; whole tracks come after parts.
    fn part_of_traxtent(&mut self, blocks: u64) -> Option<Range<u64>> {
        let part = self.parts.range((blocks, 0)..).next().copied();
        let traxtent = match part {
            Some(part) => {
                self.parts.remove(&part);
                part.1..part.1 + part.0
            }
            None => {
                let holds = |start: u64| {
                    self.first_traxtent(start).is_some_and(|traxtent| traxtent.end - traxtent.start >= blocks)
                };
                let key = self.stretches.keys().copied().find(|(_, start)| holds(*start))?;
                self.split_first(key)
            }
        };
        let piece = traxtent.start..traxtent.start + blocks;
        self.keep_part(piece.end..traxtent.end);
        Some(piece)
    }

    /// Takes tracks from the front of the shortest stretch that holds all that is left, or else of the longest. The rest goes onto
    /// the next track of the same stretch.
    fn whole_tracks(&mut self, left: &mut u64, rest: Rest, pieces: &mut Vec<Range<u64>>) {
        let fitting = self.stretches.range((*left, 0)..).next().or(self.stretches.last_key_value());
        let Some((mut key, mut end)) = fitting.map(|(key, end)| (*key, *end)) else { return };
        while *left > 0 {
            let Some(traxtent) = self.first_traxtent(key.1) else { return };
            let length = traxtent.end - traxtent.start;
            if *left < length && rest == Rest::Left {
                return;
            }
            self.split_first(key);
            let piece = traxtent.start..traxtent.start + length.min(*left);
            self.keep_part(piece.end..traxtent.end);
            *left -= piece.end - piece.start;
            pieces.push(piece);
            if traxtent.end == end {
                return;
            }
            let next = self.tracks.next_traxtent(&traxtent).expect("the stretch continues");
            key = (key.0 - length, next.start);
            end = self.stretches[&key];
        }
    }

    fn first_traxtent(&self, start: u64) -> Option<Range<u64>> {
        self.tracks.traxtent_of(start)
    }

    /// Removes the first track from a stretch, and returns its traxtent.
    fn split_first(&mut self, key: (u64, u64)) -> Range<u64> {
        let end = self.stretches.remove(&key).expect("the key is of a stretch");
        let traxtent = self.first_traxtent(key.1).expect("a stretch begins with a traxtent");
        if traxtent.end < end {
            let next = self.tracks.next_traxtent(&traxtent).expect("the stretch continues");
            self.stretches.insert((key.0 - (traxtent.end - traxtent.start), next.start), end);
        }
        traxtent
    }

    fn keep_part(&mut self, part: Range<u64>) {
        if !part.is_empty() {
            self.parts.insert((part.end - part.start, part.start));
        }
    }
}

/// The last traxtent of a stretch.
fn last_traxtent(tracks: &BlockTracks<'_>, stretch: &Range<u64>) -> Range<u64> {
    tracks.traxtent_of(stretch.end - 1).expect("a stretch ends with a traxtent")
}

/// The mappings of a file after moves.
pub fn applied(mappings: &[Mapping], moves: &[BlockMove]) -> Vec<Mapping> {
    let mut result: Vec<Mapping> =
        moves.iter().map(|one| Mapping { logical: one.logical, blocks: one.destination.clone() }).collect();
    for mapping in mappings {
        let is_within =
            |one: &&BlockMove| mapping.blocks.contains(&one.source) && one.logical >= mapping.logical;
        let moved: u64 =
            moves.iter().filter(is_within).map(|one| one.destination.end - one.destination.start).sum();
        // Moves of an extent are a beginning of it.
        let blocks = mapping.blocks.start + moved..mapping.blocks.end;
        result.push(Mapping { logical: mapping.logical + moved, blocks });
    }
    merged(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrackMap;

    /// Tracks of 84 sectors: blocks of 8 sectors span the boundaries at 10 and 31, and one ends at 21.
    fn odd() -> TrackMap {
        let mut map = TrackMap::new();
        map.push(84, 12);
        map
    }

    fn tracks(map: &TrackMap) -> BlockTracks<'_> {
        BlockTracks::new(map.view(Lbn(0), map.end().0), 4096, 512).expect("they are whole")
    }

    fn mapping(logical: u64, blocks: Range<u64>) -> Mapping {
        Mapping { logical, blocks }
    }

    #[test]
    fn traxtents_leave_out_the_block_at_each_boundary() {
        let map = odd();
        let tracks = tracks(&map);
        let runs: Vec<_> =
            [0, 11, 21, 32].map(|block| tracks.traxtent_of(block)).into_iter().flatten().collect();
        assert_eq!(runs, [0..10, 11..20, 21..31, 32..41]);
        assert_eq!([10, 20, 31].map(|block| tracks.traxtent_of(block)), [None, None, None]);
        assert_eq!(tracks.traxtent_of(125), Some(116..126), "no boundary follows the last track");
        assert_eq!(tracks.traxtent_of(126), None);
    }

    #[test]
    #[allow(clippy::single_range_in_vec_init, reason = "each row lists ranges, also where there is one")]
    fn extents_move_onto_whole_tracks() {
        /// Free space, an extent, and the places it gets.
        type Row = (&'static [Range<u64>], Range<u64>, &'static [Range<u64>]);
        let rows: &[Row] = &[
            (&[42..63], 5..9, &[]),
            (&[42..63], 5..13, &[42..50]),
            (&[42..63], 0..20, &[42..52, 53..62]),
            (&[40..80], 0..25, &[42..52, 53..62, 63..69]),
            // A track is not free as a whole, but holds the extent.
            (&[43..52], 5..13, &[43..51]),
            // The shortest part that holds it, before whole tracks.
            (&[43..52, 53..62, 64..72], 5..13, &[64..72]),
            // The shortest stretch that holds it.
            (&[42..73, 84..105], 0..19, &[84..94, 95..104]),
            // Whole tracks run out: two boundaries of three stay.
            (&[42..52], 5..40, &[42..52]),
            // The only track would take no boundary away.
            (&[53..62], 0..40, &[]),
            (&[43..52], 0..20, &[]),
            (&[], 0..20, &[]),
            // Two stretches, the longest first.
            (&[42..62, 84..94], 0..29, &[42..52, 53..62, 84..94]),
        ];
        for (free, extent, expected) in rows {
            let map = odd();
            let mut planner = TrackPlanner::new(tracks(&map), free.iter().cloned());
            let moves = planner.moves(&[mapping(7, extent.clone())], u64::MAX);
            let places: Vec<_> = moves.iter().map(|one| one.destination.clone()).collect();
            assert_eq!(&places, expected, "{extent:?} into {free:?}");
        }
    }

    #[test]
    fn moves_stay_within_the_limit() {
        let map = odd();
        let moves = |limit| {
            let mut planner = TrackPlanner::new(tracks(&map), [Range { start: 42, end: 126 }]);
            let file = [mapping(0, 0..20), mapping(30, 20..40)];
            let moves = planner.moves(&file, limit);
            moves.into_iter().map(|one| (one.logical, one.source, one.destination)).collect::<Vec<_>>()
        };
        assert_eq!(moves(5), []);
        assert_eq!(moves(20), [(0, 0, 42..52), (10, 10, 53..62), (19, 19, 63..64)]);
        // The second extent crosses at 21 already, so that one track takes a boundary away.
        assert_eq!(moves(32)[3..], [(30, 20, 74..83)]);
    }

    #[test]
    fn rejected_tracks_stay_available() {
        let map = odd();
        let mut planner = TrackPlanner::new(tracks(&map), [Range { start: 53, end: 62 }]);
        assert_eq!(planner.moves(&[mapping(0, 0..40)], u64::MAX), []);
        assert_eq!(planner.whole_blocks(), 9);
        assert_eq!(planner.moves(&[mapping(0, 16..25)], u64::MAX).len(), 1);
    }

    #[test]
    fn part_of_a_track_at_the_partition_start_is_no_whole_track() {
        let map = odd();
        let view = map.view(Lbn(40), 84 * 5);
        let tracks = BlockTracks::new(view, 4096, 512).expect("they are whole");
        let mut planner = TrackPlanner::new(tracks, [Range { start: 0, end: 52 }]);
        let first = tracks.traxtent_of(0).expect("it lies in the partition");
        assert_eq!(first, 0..5);
        let places = planner.allocate(20, Rest::Left);
        assert!(!places.contains(&first) && places.len() == 2, "{places:?}");
        assert_eq!(planner.allocate(5, Rest::Placed), [first]);
    }

    #[test]
    fn moves_are_applied_to_the_beginnings_of_extents() {
        let file = [mapping(0, 100..120), mapping(20, 50..60)];
        let moves = [
            BlockMove { logical: 0, source: 100, destination: 0..9 },
            BlockMove { logical: 9, source: 109, destination: 9..12 },
            BlockMove { logical: 20, source: 50, destination: 30..40 },
        ];
        assert_eq!(applied(&file, &moves), [mapping(0, 0..12), mapping(12, 112..120), mapping(20, 30..40)]);
    }
}
