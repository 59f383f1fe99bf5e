//! Where each track begins: the map in memory, as a [file](write()) and as [text](write_text), and as a
//! [partition](TrackMap::view) sees it.
//!
//! In memory, a map is a list of runs of equal tracks, which makes searches fast for any disk size. It has no heads, angles or
//! defects.

mod code;
mod error;
mod file;
mod grammar;
mod text;
mod view;

pub use error::{ForeignMap, MapError, TextError};
pub use file::{Identity, read, write};
pub use text::{read_text, write_text};
pub use view::View;

use headstack_model::{Geometry, Lbn};

/// Consecutive tracks with the same number of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First block of the first track.
    pub first: Lbn,
    /// Blocks of each track.
    pub sectors: u32,
    /// Number of tracks.
    pub tracks: u32,
}

impl Run {
    /// The block after the last.
    pub fn end(&self) -> Lbn {
        self.first + u64::from(self.sectors) * u64::from(self.tracks)
    }
}

/// The blocks of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// First block.
    pub first: Lbn,
    /// Number of blocks.
    pub sectors: u32,
}

impl Track {
    /// The block after the last.
    pub fn end(&self) -> Lbn {
        self.first + u64::from(self.sectors)
    }
}

/// The tracks of a disk, in the order of their blocks, without a gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrackMap {
    runs: Vec<Run>,
}

impl TrackMap {
    /// A map without tracks.
    pub fn new() -> TrackMap {
        TrackMap::default()
    }

    /// The tracks of a drive's layout.
    pub fn of_geometry(geometry: &Geometry) -> TrackMap {
        let mut map = TrackMap::new();
        let mut first = Lbn(0);
        while first.0 < geometry.sectors() {
            let next = geometry.next_track_boundary(first).unwrap_or(Lbn(geometry.sectors()));
            map.push((next - first) as u32, 1);
            first = next;
        }
        map
    }

    /// Appends tracks.
    pub fn push(&mut self, sectors: u32, tracks: u32) {
        assert!(sectors > 0, "a track holds blocks");
        let first = self.end();
        match self.runs.last_mut() {
            _ if tracks == 0 => {}
            Some(run) if run.sectors == sectors && run.tracks.checked_add(tracks).is_some() => {
                run.tracks += tracks;
            }
            _ => self.runs.push(Run { first, sectors, tracks }),
        }
    }

    /// Runs of equal tracks.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The block after the last of all tracks.
    pub fn end(&self) -> Lbn {
        self.runs.last().map_or(Lbn(0), Run::end)
    }

    /// Number of tracks.
    pub fn tracks(&self) -> u64 {
        self.runs.iter().map(|run| u64::from(run.tracks)).sum()
    }

    /// The track that holds a block; none behind the last.
    pub fn track_of(&self, lbn: Lbn) -> Option<Track> {
        let place = self.runs.partition_point(|run| run.first <= lbn).checked_sub(1)?;
        let run = self.runs[place];
        let inside = (lbn - run.first) / u64::from(run.sectors);
        let first = run.first + inside * u64::from(run.sectors);
        (lbn < run.end()).then_some(Track { first, sectors: run.sectors })
    }

    /// First block of the track after that of a block; none on the last track.
    pub fn next_boundary(&self, lbn: Lbn) -> Option<Lbn> {
        self.track_of(lbn).map(|track| track.end()).filter(|end| *end < self.end())
    }

    /// The tracks from that of a block on.
    pub fn iter_from(&self, lbn: Lbn) -> impl Iterator<Item = Track> {
        let mut next = lbn;
        std::iter::from_fn(move || {
            let track = self.track_of(next)?;
            next = track.end();
            Some(track)
        })
    }

    /// A map in which `tracks` replace those from `from` on, up to where they end.
    ///
    /// `from` must begin a track, and the end of `tracks` must be a boundary or the end of the map.
    pub fn replaced(&self, from: Lbn, tracks: &[u32]) -> TrackMap {
        let mut map = TrackMap::new();
        for run in self.runs.iter().take_while(|run| run.first < from) {
            map.push(run.sectors, ((from.0.min(run.end().0) - run.first.0) / u64::from(run.sectors)) as u32);
        }
        assert_eq!(map.end(), from, "a track begins where others are put");
        for sectors in tracks {
            map.push(*sectors, 1);
        }
        let to = map.end();
        for run in self.runs.iter().filter(|run| run.end() > to) {
            let begin = run.first.max(to);
            assert_eq!(map.end(), begin, "a track ends where others end");
            map.push(run.sectors, ((run.end() - begin) / u64::from(run.sectors)) as u32);
        }
        assert_eq!(map.end(), self.end().max(to), "tracks hold as much as those they replace");
        map
    }

    /// The map relative to a partition of `sectors` blocks from `start` on.
    pub fn view(&self, start: Lbn, sectors: u64) -> View<'_> {
        View::new(self, start, sectors)
    }

    /// All tracks.
    pub fn iter(&self) -> impl Iterator<Item = Track> + Clone {
        self.runs.iter().flat_map(|run| {
            let sectors = u64::from(run.sectors);
            (0..u64::from(run.tracks))
                .map(move |track| Track { first: run.first + track * sectors, sectors: run.sectors })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;

    #[test]
    fn map_agrees_with_its_geometry() {
        let spec = drives::load("atlas-10k").expect("it is shipped");
        let geometry = Geometry::new(&spec).expect("it holds");
        let map = TrackMap::of_geometry(&geometry);
        assert_eq!(map.end(), Lbn(geometry.sectors()));
        for lbn in (0..geometry.sectors()).step_by(7919).map(Lbn) {
            let track = geometry.track_at(lbn);
            let found = map.track_of(lbn).expect("it lies on the disk");
            assert_eq!((found.first, found.sectors), (track.first, track.sectors));
            assert_eq!(map.next_boundary(lbn), geometry.next_track_boundary(lbn));
        }
        assert_eq!(map.track_of(map.end()), None);
        assert_eq!(map.iter().count() as u64, map.tracks());
        assert_eq!(map.iter().last().map(|track| track.end()), Some(map.end()));
    }

    #[test]
    fn replacement_leaves_other_tracks_unchanged() {
        let mut map = TrackMap::new();
        map.push(10, 5);
        map.push(8, 3);
        let lengths = |map: &TrackMap| map.iter().map(|track| track.sectors).collect::<Vec<_>>();
        assert_eq!(lengths(&map.replaced(Lbn(20), &[9, 11])), [10, 10, 9, 11, 10, 8, 8, 8]);
        assert_eq!(lengths(&map.replaced(Lbn(40), &[9, 9])), [10, 10, 10, 10, 9, 9, 8, 8]);
        assert_eq!(lengths(&map.replaced(Lbn(66), &[7, 1])), [10, 10, 10, 10, 10, 8, 8, 7, 1]);
        assert_eq!(map.iter_from(Lbn(45)).map(|track| track.first.0).collect::<Vec<_>>(), [40, 50, 58, 66]);
    }
}
