//! A map relative to a partition.

use super::{Run, Track, TrackMap};
use headstack_model::Lbn;

/// A partition of a mapped disk. Blocks count from its start; tracks across its ends are cut.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    map: &'a TrackMap,
    start: Lbn,
    sectors: u64,
}

impl<'a> View<'a> {
    pub(super) fn new(map: &'a TrackMap, start: Lbn, sectors: u64) -> View<'a> {
        let sectors = sectors.min(map.end().0.saturating_sub(start.0));
        View { map, start, sectors }
    }

    /// Blocks of the partition that lie on mapped tracks.
    pub fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The part of a track that holds a block.
    pub fn track_of(&self, lbn: Lbn) -> Option<Track> {
        (lbn.0 < self.sectors)
            .then(|| self.map.track_of(self.start + lbn.0))
            .flatten()
            .map(|track| self.part(track))
    }

    /// First block of the track after that of a block; none on the last.
    pub fn next_boundary(&self, lbn: Lbn) -> Option<Lbn> {
        self.track_of(lbn).map(|track| track.end()).filter(|end| end.0 < self.sectors)
    }

    /// First block that begins a track: 0 if the partition begins with one.
    pub fn first_boundary(&self) -> Option<Lbn> {
        let first = self.map.track_of(self.start).filter(|_| self.sectors > 0)?;
        if first.first == self.start { Some(Lbn(0)) } else { self.iter().nth(1).map(|track| track.first) }
    }

    /// Whether the partition contains the whole track.
    pub fn is_whole(&self, track: &Track) -> bool {
        self.map
            .track_of(self.start + track.first.0)
            .is_some_and(|whole| self.part(whole).sectors == whole.sectors)
    }

    /// All tracks, cut at the partition's ends.
    pub fn iter(&self) -> impl Iterator<Item = Track> + use<'a> {
        let view = *self;
        let end = self.start + self.sectors;
        let tracks = self.map.iter_from(self.start);
        tracks.take_while(move |track| track.first < end).map(move |track| view.part(track))
    }

    /// Runs of equal tracks; cut tracks are runs of their own.
    pub fn runs(&self) -> impl Iterator<Item = Run> + use<'a> {
        let view = *self;
        let (start, end) = (self.start, self.start + self.sectors);
        let runs = self.map.runs();
        let from = runs.partition_point(|run| run.end() <= start);
        let overlapping = runs[from..].iter().take_while(move |run| run.first < end);
        overlapping.flat_map(move |run| view.parts(run)).filter(|run| run.tracks > 0)
    }

    /// The part of a run within the partition: a partial track, whole tracks, a partial track.
    fn parts(&self, run: &Run) -> [Run; 3] {
        let length = u64::from(run.sectors);
        let track_at = |lbn: Lbn| (lbn - run.first) / length;
        let (start, end) = (self.start.max(run.first), (self.start + self.sectors).min(run.end()));
        let whole = track_at(start + (length - 1))..track_at(end);
        let partial = |from: Lbn, to: Lbn| {
            let sectors = to.0.saturating_sub(from.0) as u32;
            Run { first: Lbn(from.0 - self.start.0), sectors, tracks: u32::from(sectors > 0) }
        };
        let at = |track: u64| run.first + track * length;
        if whole.is_empty() {
            // The part lies on one track, or on two of which neither is whole.
            let between = at(whole.start).min(end);
            let none = Run { first: Lbn(0), sectors: 1, tracks: 0 };
            return [partial(start, between), none, partial(between, end)];
        }
        let tracks = Run {
            first: Lbn(at(whole.start) - self.start),
            sectors: run.sectors,
            tracks: (whole.end - whole.start) as u32,
        };
        [partial(start, at(whole.start)), tracks, partial(at(whole.end), end)]
    }

    fn part(&self, track: Track) -> Track {
        let first = track.first.max(self.start);
        let end = track.end().min(self.start + self.sectors);
        Track { first: Lbn(first - self.start), sectors: (end - first) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_boundaries_count_from_partition_start() {
        let mut map = TrackMap::new();
        map.push(10, 10);
        let tracks =
            |view: View<'_>| view.iter().map(|track| (track.first.0, track.sectors)).collect::<Vec<_>>();
        let view = map.view(Lbn(13), 24);
        assert_eq!(tracks(view), [(0, 7), (7, 10), (17, 7)]);
        assert_eq!((view.first_boundary(), view.next_boundary(Lbn(3))), (Some(Lbn(7)), Some(Lbn(7))));
        assert_eq!((view.next_boundary(Lbn(16)), view.next_boundary(Lbn(17))), (Some(Lbn(17)), None));
        let whole: Vec<bool> = view.iter().map(|track| view.is_whole(&track)).collect();
        assert_eq!(whole, [false, true, false]);
        assert_eq!(map.view(Lbn(20), 20).first_boundary(), Some(Lbn(0)));
        assert_eq!(map.view(Lbn(20), 4).first_boundary(), Some(Lbn(0)), "it is shorter than the track");
        assert_eq!((map.view(Lbn(95), 90).sectors(), tracks(map.view(Lbn(95), 90))), (5, vec![(0, 5)]));
        assert_eq!(
            (tracks(map.view(Lbn(31), 4)), map.view(Lbn(31), 4).first_boundary()),
            (vec![(0, 4)], None)
        );
        assert_eq!((tracks(map.view(Lbn(200), 4)), map.view(Lbn(200), 4).track_of(Lbn(0))), (vec![], None));
    }
    #[test]
    fn view_runs_expand_to_its_tracks() {
        let mut map = TrackMap::new();
        for (sectors, tracks) in [(10, 4), (7, 3), (3, 1), (10, 2)] {
            map.push(sectors, tracks);
        }
        for (start, sectors) in (0..90).flat_map(|start| (1..90).map(move |sectors| (start, sectors))) {
            let view = map.view(Lbn(start), sectors);
            let of_runs = view.runs().flat_map(|run| {
                (0..run.tracks).map(move |track| (run.first + u64::from(track * run.sectors), run.sectors))
            });
            let tracks = view.iter().map(|track| (track.first, track.sectors));
            assert_eq!(of_runs.collect::<Vec<_>>(), tracks.collect::<Vec<_>>(), "{start}, {sectors}");
        }
    }
}
