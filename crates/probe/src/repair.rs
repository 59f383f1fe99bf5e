//! Detects that a map no longer matches its disk, and repairs it with queries only near the change.
//!
//! A grown defect that is slipped takes a block from its track; all following tracks begin a block earlier, up to where spares
//! absorb it, as at the end of a zone. So a changed part of the map lies between two boundaries that still match, and inside it
//! the shift only grows. Bisection finds both ends, and the places where the shift grows; the number of queries grows with the
//! logarithm of the tracks between. Changes that follow no such rule are walked track by track.
//!
//! The disk is queried by translation, if it supports that, and else by timing. A remapped defect moves no boundary.

mod foreign;

use crate::Disk;
use crate::places::{self, Places, TranslationError};
use crate::query;
use crate::timing::{Ear, TimingError};
use headstack_model::Lbn;
use headstack_tracks::TrackMap;

/// Maximum shift in blocks; tracks with a larger one are walked one by one.
const MOST_SHIFT: u64 = 32;
/// Maximum number of tracks that are walked.
const MOST_TRACKS: u64 = 5_000;

/// Why a map could not be repaired.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum RepairError {
    #[error(transparent)]
    Translation(#[from] TranslationError),
    #[error(transparent)]
    Timing(#[from] TimingError),
    #[error(
        "the map ends at block {map}, the disk at {disk}: it is the map of another disk, or of a part of one"
    )]
    Foreign { map: u64, disk: u64 },
    #[error("the map is of another disk: {wrong} of {looked} {what}")]
    Other { wrong: u64, looked: u64, what: &'static str },
    #[error(
        "the map is of another disk: a track begins at block {lbn}, within a physical sector of {unit} blocks"
    )]
    Cuts { lbn: u64, unit: u64 },
    #[error(
        "the map is wrong from block {from} to {to}, {tracks} tracks that follow no rule: extract it again"
    )]
    TooMuch { from: u64, to: u64, tracks: u64 },
}

/// Checks the map at random tracks and at the first and the last boundary within each run of tracks; returns a boundary that does
/// not match.
///
/// Random tracks detect a map of another disk; the last ones detect shifts up to the end of their zone.
///
/// *Errors:* a disk that neither translates nor can be timed, and the map of another disk.
pub async fn notice(disk: Disk, map: &TrackMap) -> Result<Option<Lbn>, RepairError> {
    let mut channel = Channel::new(&disk, map).await?;
    let drawn = foreign::refuse(&mut channel, &Tracks { map }).await?;
    for (number, run) in map.runs().iter().enumerate() {
        disk.report_progress("checking the map", number as f64 / map.runs().len() as f64);
        let last = Lbn(run.end().0 - u64::from(run.sectors));
        let second = run.first + u64::from(run.sectors);
        if last.0 > 0 && !channel.begins(last).await? {
            return Ok(Some(last));
        }
        if second < last && !channel.begins(second).await? {
            return Ok(Some(second));
        }
    }
    Ok(drawn)
}

/// Repairs the map around a block where it does not match; returns it unchanged if it does.
///
/// *Errors:* those of [`notice`], and more changes than can be repaired.
pub async fn repair(disk: Disk, map: &TrackMap, at: Lbn) -> Result<TrackMap, RepairError> {
    let mut channel = Channel::new(&disk, map).await?;
    let tracks = Tracks { map };
    let track = tracks.number_of(at);
    let Some(wrong) = channel.wrong_near(&tracks, track).await? else { return Ok(map.clone()) };
    disk.report_progress("finding how far the map is wrong", 0.0);
    let before = channel.good_before(&tracks, wrong).await?;
    let behind = channel.good_behind(&tracks, wrong).await?;
    disk.report_progress("mending the map", 0.0);
    let lengths = match channel.shifts(&tracks, before, behind).await? {
        Some(shifts) => lengths(&tracks, before, behind, &shifts),
        None => None,
    };
    let (from, to) = (tracks.boundary(before), tracks.boundary(behind));
    let lengths = match lengths {
        Some(lengths) => lengths,
        None if behind - before > MOST_TRACKS => {
            return Err(RepairError::TooMuch { from: from.0, to: to.0, tracks: behind - before });
        }
        None => channel.walk(from, to, map).await?,
    };
    Ok(map.replaced(from, &lengths))
}

/// A boundary, and the blocks by which tracks from there on begin earlier than in the map.
type Shift = (u64, u64);

/// Lengths of the tracks between two matching boundaries, with shifts between.
fn lengths(tracks: &Tracks<'_>, before: u64, behind: u64, shifts: &[Shift]) -> Option<Vec<u32>> {
    let shift = |boundary: u64| {
        let reached = shifts.iter().take_while(|(from, _)| *from <= boundary).last();
        if boundary == behind { 0 } else { reached.map_or(0, |(_, shift)| *shift) }
    };
    let at = |boundary: u64| tracks.boundary(boundary).0.checked_sub(shift(boundary));
    let length = |number: u64| {
        let length = at(number + 1)?.checked_sub(at(number)?)?;
        u32::try_from(length).ok().filter(|length| *length > 0)
    };
    (before..behind).map(length).collect()
}

/// The boundaries of a map by number: number *n* begins track *n*; the last one ends the map.
struct Tracks<'a> {
    map: &'a TrackMap,
}

impl Tracks<'_> {
    fn number(&self) -> u64 {
        self.map.tracks()
    }

    fn number_of(&self, lbn: Lbn) -> u64 {
        let mut before = 0;
        for run in self.map.runs() {
            if lbn < run.end() {
                return before + (lbn - run.first) / u64::from(run.sectors);
            }
            before += u64::from(run.tracks);
        }
        before.saturating_sub(1)
    }

    fn boundary(&self, number: u64) -> Lbn {
        let mut before = 0;
        for run in self.map.runs() {
            if number - before < u64::from(run.tracks) {
                return run.first + (number - before) * u64::from(run.sectors);
            }
            before += u64::from(run.tracks);
        }
        self.map.end()
    }
}

/// The first track that begins within a physical sector.
fn cut(map: &TrackMap, unit: u64) -> Option<Lbn> {
    let firsts = map.runs().iter().flat_map(|run| {
        let second = (run.tracks > 1).then(|| run.first + u64::from(run.sectors));
        [Some(run.first), second]
    });
    firsts.flatten().find(|first| first.0 % unit != 0)
}

/// The method that finds where tracks begin.
enum Channel {
    Places(Places),
    Ear(Ear),
}

impl Channel {
    async fn new(disk: &Disk, map: &TrackMap) -> Result<Channel, RepairError> {
        let sectors = disk.info().sectors;
        if map.end().0 != sectors {
            return Err(RepairError::Foreign { map: map.end().0, disk: sectors });
        }
        let unit = u64::from(disk.info().physical_sectors.max(1));
        if let Some(lbn) = cut(map, unit) {
            return Err(RepairError::Cuts { lbn: lbn.0, unit });
        }
        Ok(if disk.info().translates {
            Channel::Places(Places::new(disk.clone())?)
        } else {
            Channel::Ear(Ear::new(disk.clone()).await?)
        })
    }

    /// Whether a track begins at a block other than the disk's first.
    async fn begins(&mut self, lbn: Lbn) -> Result<bool, RepairError> {
        Ok(match self {
            Channel::Places(places) => {
                let before = places.spot_of(Lbn(lbn.0 - 1)).await?;
                !places.spot_of(lbn).await?.is_adjacent(&before)
            }
            Channel::Ear(ear) => ear.begins(lbn).await?,
        })
    }

    /// The length of the track that begins at a block.
    async fn length(&mut self, first: Lbn, guess: u32) -> Result<u32, RepairError> {
        Ok(match self {
            Channel::Places(places) => {
                let (spot, limit) = (places.spot_of(first).await?, places.sectors());
                let (end, _) = query::end_of(places, first, spot, limit, &[guess]).await?;
                places::length(first, end - first)?
            }
            Channel::Ear(ear) => places::length(first, ear.end_of(first, guess).await? - first)?,
        })
    }

    async fn holds(&mut self, tracks: &Tracks<'_>, number: u64) -> Result<bool, RepairError> {
        if number == 0 || number == tracks.number() {
            Ok(true)
        } else {
            self.begins(tracks.boundary(number)).await
        }
    }

    /// A boundary at or near a track that does not match.
    async fn wrong_near(&mut self, tracks: &Tracks<'_>, track: u64) -> Result<Option<u64>, RepairError> {
        for number in [track, track + 1] {
            if !self.holds(tracks, number).await? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The last matching boundary before one that does not match.
    async fn good_before(&mut self, tracks: &Tracks<'_>, wrong: u64) -> Result<u64, RepairError> {
        let (mut wrong, mut step) = (wrong, 1);
        let mut good = loop {
            let number = wrong.saturating_sub(step);
            if self.holds(tracks, number).await? { break number } else { (wrong, step) = (number, step * 2) }
        };
        while good + 1 < wrong {
            let middle = good + (wrong - good) / 2;
            if self.holds(tracks, middle).await? { good = middle } else { wrong = middle }
        }
        Ok(good)
    }

    /// The first matching boundary behind one that does not match.
    async fn good_behind(&mut self, tracks: &Tracks<'_>, wrong: u64) -> Result<u64, RepairError> {
        let (mut wrong, mut step) = (wrong, 1);
        let mut good = loop {
            let number = (wrong + step).min(tracks.number());
            if self.holds(tracks, number).await? { break number } else { (wrong, step) = (number, step * 2) }
        };
        while wrong + 1 < good {
            let middle = wrong + (good - wrong) / 2;
            if self.holds(tracks, middle).await? { good = middle } else { wrong = middle }
        }
        Ok(good)
    }

    /// Blocks, at least as many as given, by which a boundary of the map is too late.
    async fn shift(
        &mut self,
        tracks: &Tracks<'_>,
        number: u64,
        least: u64,
    ) -> Result<Option<u64>, RepairError> {
        let boundary = tracks.boundary(number).0;
        let unit = match self {
            Channel::Places(_) => 1,
            Channel::Ear(ear) => ear.unit(),
        };
        for shift in (least..=MOST_SHIFT * unit).step_by(unit as usize).filter(|shift| *shift < boundary) {
            if self.begins(Lbn(boundary - shift)).await? {
                return Ok(Some(shift));
            }
        }
        Ok(None)
    }

    /// All shifts between two matching boundaries; `None` if boundaries do not just move forward.
    async fn shifts(
        &mut self,
        tracks: &Tracks<'_>,
        before: u64,
        behind: u64,
    ) -> Result<Option<Vec<Shift>>, RepairError> {
        let unit = match self {
            Channel::Places(_) => 1,
            Channel::Ear(ear) => ear.unit(),
        };
        let mut shifts: Vec<Shift> = Vec::new();
        let Some(mut shift) = self.shift(tracks, before + 1, unit).await? else { return Ok(None) };
        let mut from = before + 1;
        loop {
            shifts.push((from, shift));
            let Some(last) = self.shift(tracks, behind - 1, shift).await? else { return Ok(None) };
            if last == shift {
                return Ok(Some(shifts));
            }
            // The shift is valid at `from`, and no longer at `to`.
            let mut to = behind - 1;
            while from + 1 < to {
                let middle = from + (to - from) / 2;
                let moved = Lbn(tracks.boundary(middle).0 - shift);
                if self.begins(moved).await? { from = middle } else { to = middle }
            }
            let Some(next) = self.shift(tracks, to, shift + unit).await? else { return Ok(None) };
            (from, shift) = (to, next);
        }
    }

    /// Lengths of all tracks between two boundaries, one by one.
    async fn walk(&mut self, from: Lbn, to: Lbn, map: &TrackMap) -> Result<Vec<u32>, RepairError> {
        let (mut first, mut lengths) = (from, Vec::new());
        while first < to {
            let guess = map.track_of(first).map_or(0, |track| track.sectors);
            let length = self.length(first, guess).await?;
            lengths.push(length);
            first = first + u64::from(length);
        }
        if first != to {
            let tracks = lengths.len() as u64;
            return Err(RepairError::TooMuch { from: from.0, to: to.0, tracks });
        }
        Ok(lengths)
    }
}
