//! Plans over any map, free space and files.

use headstack_model::Lbn;
use headstack_tracks::TrackMap;
use headstack_tracks::relocate::{BlockMove, BlockTracks, Mapping, Rest, TrackPlanner, applied, merged};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;

const BLOCK_SECTORS: u64 = 8;

/// Tracks of a disk; where its partition begins.
fn maps() -> impl Strategy<Value = (TrackMap, u64)> {
    let tracks = prop::collection::vec((1u32..200, 1u32..6), 1..20);
    (tracks, 0u64..300).prop_map(|(tracks, start)| {
        let mut map = TrackMap::new();
        tracks.iter().for_each(|(sectors, count)| map.push(*sectors, *count));
        let start = start.min(map.end().0 - 1);
        (map, start)
    })
}

/// Uses of consecutive ranges of blocks: of a file, free, or of others.
fn uses() -> impl Strategy<Value = Vec<(u8, u64)>> {
    prop::collection::vec((0u8..3, 1u64..60), 1..80)
}

/// The file's extents in an order of its own, and the free space.
fn laid(uses: &[(u8, u64)], blocks: u64, order: u64) -> (Vec<Mapping>, Vec<Range<u64>>) {
    let (mut extents, mut free, mut next) = (Vec::new(), Vec::new(), 0);
    for (kind, length) in uses {
        let range = next..(next + length).min(blocks);
        next = range.end;
        match kind {
            0 => extents.push(range),
            1 => free.push(range),
            _ => {}
        }
    }
    extents.retain(|range| !range.is_empty());
    let count = extents.len().max(1);
    extents.rotate_left(order as usize % count);
    let mut logical = 0;
    let mappings = extents.into_iter().map(|blocks| {
        let first = logical;
        // A hole follows some extents.
        logical += blocks.end - blocks.start + (blocks.start + order) % 2;
        Mapping { logical: first, blocks }
    });
    (merged(mappings.collect()), free)
}

fn blocks_of(mappings: &[Mapping]) -> Vec<(u64, u64)> {
    let each = |mapping: &Mapping| (mapping.logical..).zip(mapping.blocks.clone()).collect::<Vec<_>>();
    mappings.iter().flat_map(each).collect()
}

fn crossings(tracks: &BlockTracks<'_>, mappings: &[Mapping]) -> u64 {
    tracks.count(mappings.iter().map(|mapping| &mapping.blocks)).expect("they lie in the partition").crossings
}

/// Every block of the file that moves keeps its content, and takes one free block that nothing else takes.
fn check_blocks(before: &[Mapping], free: &[Range<u64>], moves: &[BlockMove]) -> Result<(), TestCaseError> {
    let free: BTreeSet<u64> = free.iter().cloned().flatten().collect();
    let file: BTreeSet<(u64, u64)> = blocks_of(before).into_iter().collect();
    let (mut sources, mut destinations) = (BTreeSet::new(), BTreeSet::new());
    for one in moves {
        for (offset, destination) in one.destination.clone().enumerate() {
            let (logical, source) = (one.logical + offset as u64, one.source + offset as u64);
            prop_assert!(file.contains(&(logical, source)), "the file has no block {source} at {logical}");
            prop_assert!(free.contains(&destination), "{destination} is not free");
            prop_assert!(sources.insert(source) && destinations.insert(destination));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn plan_never_adds_a_crossing_and_maps_each_block_once(
        (map, start) in maps(), uses in uses(), order in 0u64..40, limit in prop_oneof![Just(u64::MAX), 0u64..300],
    ) {
        let view = map.view(Lbn(start), map.end().0 - start);
        let tracks = BlockTracks::new(view, BLOCK_SECTORS * 512, 512).expect("they are whole");
        let (before, free) = laid(&uses, view.sectors() / BLOCK_SECTORS, order);
        let moves = TrackPlanner::new(tracks, free.iter().cloned()).moves(&before, limit);
        check_blocks(&before, &free, &moves)?;
        let moved: u64 = moves.iter().map(|one| one.destination.end - one.destination.start).sum();
        prop_assert!(moved <= limit);
        for one in &moves {
            let alone = Mapping { logical: 0, blocks: one.destination.clone() };
            prop_assert_eq!(crossings(&tracks, &[alone]), 0, "{:?} crosses", one);
        }

        let after = applied(&before, &moves);
        let logical = |mappings: &[Mapping]| blocks_of(mappings).into_iter().map(|pair| pair.0).collect::<Vec<_>>();
        prop_assert_eq!(logical(&after), logical(&before));
        let (now, then) = (crossings(&tracks, &after), crossings(&tracks, &before));
        prop_assert!(now < then || (now == then && moves.is_empty()), "{} crossings became {}", then, now);
    }

    #[test]
    fn whole_tracks_come_first_and_each_is_given_once(
        (map, start) in maps(), uses in uses(), wanted in prop::collection::vec((1u64..200, any::<bool>()), 1..12),
    ) {
        let view = map.view(Lbn(start), map.end().0 - start);
        let tracks = BlockTracks::new(view, BLOCK_SECTORS * 512, 512).expect("they are whole");
        let (_, free) = laid(&uses, view.sectors() / BLOCK_SECTORS, 0);
        let mut planner = TrackPlanner::new(tracks, free.iter().cloned());
        let available: BTreeSet<u64> = free.iter().cloned().flatten().collect();
        let mut used = BTreeSet::new();
        for (blocks, is_placed) in wanted {
            let whole_before = planner.whole_blocks();
            let rest = if is_placed { Rest::Placed } else { Rest::Left };
            let places = planner.allocate(blocks, rest);
            let lengths: Vec<u64> = places.iter().map(|place| place.end - place.start).collect();
            let sum: u64 = lengths.iter().sum();
            prop_assert!(sum <= blocks);
            for (index, place) in places.iter().enumerate() {
                prop_assert!(place.clone().all(|block| available.contains(&block) && used.insert(block)));
                // Only the last piece of what is placed to its end may be shorter than the blocks of its track.
                let grown = [place.start.saturating_sub(1)..place.end, place.start..place.end + 1];
                let is_rest = index + 1 == places.len() && sum == blocks && is_placed;
                let fills = grown.iter().all(|grown| grown == place || !fits(&tracks, &view, grown));
                prop_assert!(fills || is_rest, "{:?} of {:?}", place, places);
            }
            prop_assert!(planner.whole_blocks() <= whole_before);
        }
    }
}

/// Whether a range lies on one track and holds no block that ends with it.
fn fits(tracks: &BlockTracks<'_>, view: &headstack_tracks::map::View<'_>, range: &Range<u64>) -> bool {
    let end = range.end * BLOCK_SECTORS;
    let is_inside = end <= view.sectors();
    let ends_with_track = view.next_boundary(Lbn(end.saturating_sub(1))) == Some(Lbn(end));
    is_inside && !ends_with_track && tracks.count([range]).is_ok_and(|counted| counted.crossings == 0)
}
