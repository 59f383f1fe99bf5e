//! The walk by translation: from track to track, only by querying the places of blocks.
//!
//! A track probably holds as many blocks as the previous one, so two queries verify its end: the last block must be on the track
//! and the next block must not. Otherwise the end is searched nearby. The walk needs no knowledge of zones, spares or slips. A
//! remapped block does not end its track: if a search ends at a block, the next one is queried, too.
//!
//! *Source:* "expertise-free" extraction, J. Schindler, J. L. Griffin, C. R. Lumb and G. R. Ganger, FAST 2002, section 4.1.

use crate::Disk;
use crate::places::{Places, Spot, TranslationError, length};
use crate::track_end::{Lengths, OnTrack, track_end};
use headstack_model::Lbn;
use headstack_tracks::TrackMap;

/// Result of the walk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryMap {
    /// The tracks.
    pub map: TrackMap,
    /// Number of translations.
    pub translations: u64,
}

/// Walks the whole disk.
///
/// *Errors:* a disk that does not translate addresses.
pub async fn extract(disk: Disk) -> Result<QueryMap, TranslationError> {
    let mut walk = QueryWalk::from(Places::new(disk.clone())?, Lbn(0)).await?;
    let (mut map, end) = (TrackMap::new(), walk.places.sectors());
    while walk.first < end {
        if let Some(sectors) = walk.step(end).await? {
            map.push(sectors, 1);
            if map.tracks() % 256 == 0 {
                disk.report_progress("asking where tracks end", map.end().0 as f64 / end.0 as f64);
            }
        }
    }
    map.push(length(map.end(), walk.held)?, 1);
    Ok(QueryMap { map, translations: walk.places.requested })
}

/// A walk along tracks. It holds the last track back, because one of its blocks may be remapped and look like a track of its own.
pub(crate) struct QueryWalk {
    pub(crate) places: Places,
    /// First block of the next track, and its place.
    first: Lbn,
    spot: Spot,
    /// Blocks of the track that is held back, and its place.
    held: u64,
    held_spot: Spot,
    lengths: Lengths,
}

impl QueryWalk {
    async fn from(mut places: Places, first: Lbn) -> Result<QueryWalk, TranslationError> {
        let spot = places.spot_of(first).await?;
        Ok(QueryWalk { places, first, spot, held: 0, held_spot: spot, lengths: Lengths::default() })
    }

    /// Walks over a track, and returns the blocks of the previous one.
    async fn step(&mut self, limit: Lbn) -> Result<Option<u32>, TranslationError> {
        let guesses = self.lengths.guesses();
        let (mut end, mut next) = end_of(&mut self.places, self.first, self.spot, limit, &guesses).await?;
        let behind = self.first + 1;
        if end == behind && end < limit && self.spot.sector != 0 && self.held > 0 {
            // A single remapped block: if its neighbour begins a track, or lies on the last one, it belongs to the last one, and
            // otherwise to its neighbour's.
            let neighbour = match next {
                Some(next) => next,
                None => self.places.spot_of(behind).await?,
            };
            if neighbour.sector == 0 || neighbour.is_adjacent(&self.held_spot) {
                self.held += 1;
                self.first = behind;
                self.spot = neighbour;
                if !neighbour.is_adjacent(&self.held_spot) {
                    return Ok(None);
                }
                (end, next) = end_of(&mut self.places, behind, neighbour, limit, &[]).await?;
                self.held += end - behind;
                self.first = end;
                return self.go_to(next).await.map(|()| None);
            }
            self.spot = neighbour;
            (end, next) = end_of(&mut self.places, self.first, neighbour, limit, &guesses).await?;
        }
        let (sectors, held_spot) = (end - self.first, self.spot);
        self.lengths.push(length(self.first, sectors)?);
        self.first = end;
        self.go_to(next).await?;
        let before = std::mem::replace(&mut self.held, sectors);
        self.held_spot = held_spot;
        let before = length(self.first, before)?;
        Ok((before > 0).then_some(before))
    }

    async fn go_to(&mut self, next: Option<Spot>) -> Result<(), TranslationError> {
        if let Some(next) = next {
            self.spot = next;
        } else if self.first < self.places.sectors() {
            self.spot = self.places.spot_of(self.first).await?;
        }
        Ok(())
    }
}

/// The end of the track at a spot from `first` on, and the place of the next block, if that was translated.
pub(crate) async fn end_of(
    places: &mut Places,
    first: Lbn,
    spot: Spot,
    limit: Lbn,
    guesses: &[u32],
) -> Result<(Lbn, Option<Spot>), TranslationError> {
    let mut on = Adjacent { places, spot, other: None };
    let (mut from, mut guesses) = (first, guesses);
    loop {
        let end = track_end(&mut on, from, limit, 1, guesses).await?;
        let next = on.other.filter(|(lbn, _)| *lbn == end).map(|(_, spot)| spot);
        let is_expected = guesses.first().is_some_and(|guess| first + u64::from(*guess) == end);
        // A single block elsewhere does not end a track.
        if is_expected || end + 1 >= limit || !on.is_on(end + 1).await? {
            return Ok((end, next));
        }
        (from, guesses) = (end + 1, &[]);
    }
}

/// Whether blocks lie on the track of a spot.
struct Adjacent<'a> {
    places: &'a mut Places,
    spot: Spot,
    /// The first block found that does not, and its place.
    other: Option<(Lbn, Spot)>,
}

impl OnTrack for Adjacent<'_> {
    type Error = TranslationError;

    async fn is_on(&mut self, lbn: Lbn) -> Result<bool, TranslationError> {
        let spot = self.places.spot_of(lbn).await?;
        let is_on = spot.is_adjacent(&self.spot);
        if !is_on && self.other.is_none_or(|(other, _)| lbn < other) {
            self.other = Some((lbn, spot));
        }
        Ok(is_on)
    }
}
