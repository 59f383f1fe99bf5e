//! How often data cross from one track to the next.

use crate::map::View;
use headstack_model::Lbn;
use std::ops::Range;

/// How many tracks and boundaries some extents of a partition touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Crossings {
    pub extents: u64,
    pub sectors: u64,
    /// Tracks that hold any of the blocks, each counted once.
    pub tracks: u64,
    /// Track boundaries within extents: head switches when each extent is read from end to end.
    pub crossings: u64,
    /// Extents that begin a track.
    pub on_track: u64,
}

impl Crossings {
    /// Counts the crossings of extents. If a file system has blocks of several sectors, an extent that begins less than one block
    /// behind a boundary begins a track, because no block of it can begin nearer.
    ///
    /// *Errors:* the first extent, in disk order, that reaches beyond the partition.
    pub fn count(
        view: &View<'_>,
        block_sectors: u64,
        extents: &[Range<Lbn>],
    ) -> Result<Crossings, Range<Lbn>> {
        let mut sorted = extents.to_vec();
        sorted.sort_by_key(|extent| (extent.start, extent.end));
        let mut counted = Crossings::default();
        // A partition that begins within a track has a partial track first, which no block begins.
        let begins_a_track = view.first_boundary() == Some(Lbn(0));
        // Files may share blocks; blocks below this one are already counted.
        let mut next_new = Lbn(0);
        for extent in sorted.into_iter().filter(|extent| !extent.is_empty()) {
            if extent.end.0 > view.sectors() {
                return Err(extent);
            }
            counted.extents += 1;
            counted.sectors += extent.end - extent.start;
            let first = view.track_of(extent.start).expect("the extent lies in the partition");
            let is_on_track = extent.start - first.first < block_sectors;
            counted.on_track += u64::from(is_on_track && (first.first > Lbn(0) || begins_a_track));
            let mut track = first;
            loop {
                counted.tracks += u64::from(track.first >= next_new);
                next_new = next_new.max(track.end());
                match view.track_of(track.end()).filter(|_| track.end() < extent.end) {
                    None => break,
                    Some(after) => track = after,
                }
                counted.crossings += 1;
            }
        }
        Ok(counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrackMap;

    fn crossings_of(extents: &[Range<u64>]) -> Result<Crossings, Range<Lbn>> {
        let mut map = TrackMap::new();
        map.push(100, 10);
        map.push(80, 10);
        let extents: Vec<_> = extents.iter().map(|extent| Lbn(extent.start)..Lbn(extent.end)).collect();
        Crossings::count(&map.view(Lbn(50), 1700), 8, &extents)
    }

    #[test]
    fn boundaries_inside_extents_are_counted() {
        let counted = crossings_of(&[50..150, 157..158, 250..351, 400..700]).expect("they lie inside");
        let Crossings { extents, sectors, tracks, crossings, on_track } = counted;
        assert_eq!((extents, sectors, tracks), (4, 502, 7));
        assert_eq!(
            (crossings, on_track),
            (4, 3),
            "one in the third, three in the last; that begins mid-track"
        );
    }

    #[test]
    fn crossing_count_matches_walk_block_by_block() {
        let mut map = TrackMap::new();
        for (sectors, tracks) in [(7, 3), (5, 9), (11, 4)] {
            map.push(sectors, tracks);
        }
        let view = map.view(Lbn(4), 90);
        let track = |lbn| view.track_of(Lbn(lbn)).expect("it lies inside").first;
        for (start, end) in (0..90).flat_map(|start| (start + 1..=90).map(move |end| (start, end))) {
            let counted = Crossings::count(&view, 1, &[Lbn(start)..Lbn(end)]).expect("it lies inside");
            let steps = (start + 1..end).filter(|&lbn| track(lbn) != track(lbn - 1)).count() as u64;
            assert_eq!((counted.crossings, counted.tracks), (steps, steps + 1), "{start}..{end}");
        }
    }

    #[test]
    fn partition_start_begins_track_only_on_boundary() {
        let mut map = TrackMap::new();
        map.push(100, 10);
        for (start, on_track) in [(50, 1), (99, 1), (100, 2)] {
            let view = map.view(Lbn(start), 300);
            let next = view.next_boundary(Lbn(0)).expect("there is a track behind the first");
            let extents = [Lbn(0)..Lbn(1), next..next + 10];
            let counted = Crossings::count(&view, 8, &extents).expect("they lie inside");
            assert_eq!(counted.on_track, on_track, "from {start}");
        }
    }

    #[test]
    fn track_shared_by_extents_is_counted_once() {
        let counted = crossings_of(&[0..200, 10..20, 60..90, 140..160]).expect("they lie inside");
        assert_eq!((counted.extents, counted.tracks), (4, 3));
    }

    #[test]
    fn extent_beyond_partition_is_rejected() {
        assert_eq!(crossings_of(&[0..10, 1690..1701]), Err(Lbn(1690)..Lbn(1701)));
    }
}
