//! The extractor by timing alone: a track begins where the angle at which blocks end jumps.
//!
//! Reads of blocks of one track end at angles that grow with the block; behind the track's last block they jump by the skew. From a track's
//! first block, a binary search finds the jump. The next track probably holds as many blocks, so its end is only verified: its last block
//! must be at the predicted angle, and the next block must not. If that fails, a full search follows. (A track of *n* blocks that begins at
//! *S* ends at *S + n*, which is where the next one begins: the original text is off by one there.)
//!
//! A hundred such walks, spread over the disk, alternate, so that the disk's cache has evicted a place, with its read-ahead, when its walk
//! continues. At the end of a zone, the last track may by chance continue into the next zone without a jump; the turn lost to the arm's
//! motion shows that end, if the disk has a command to read from the media. Not found: ends of tracks on a disk without skews. Runs of
//! slipped sectors whose gap is as wide as a skew are taken for ends.
//!
//! *Source:* J. Schindler, J. L. Griffin, C. R. Lumb and G. R. Ganger, "Track-aligned extents", FAST 2002, section 4.1.

mod clock;
mod search;

use crate::Disk;
use crate::spin::SpinError;
use crate::track_end::Lengths;
use clock::{Clock, apart};
use headstack_model::{Lbn, Nanos};
use headstack_tracks::TrackMap;
use search::{End, end_of, jump, slope};

const WALKS: u64 = 100;
/// Minimum number of blocks of a walk.
const LEAST_BLOCKS: u64 = 20_000;

/// Result of the extractor.
#[derive(Clone, Debug, PartialEq)]
pub struct TimingMap {
    /// The tracks.
    pub map: TrackMap,
    /// Length of a turn.
    pub turn: Nanos,
    /// Standard deviation of the time of an answer.
    pub noise: Nanos,
}

/// Why it failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TimingError {
    #[error(transparent)]
    Spin(#[from] SpinError),
    #[error("answers come at times that vary by {us:.0} us; at most {most:.0} us tell tracks apart")]
    Noisy { us: f64, most: f64 },
    #[error("block {lbn} cannot be read from the media")]
    Unreadable { lbn: u64 },
    #[error("block {lbn} ends at another angle each time")]
    Restless { lbn: u64 },
    #[error("block {lbn}: the end of its track cannot be found by timing")]
    Unsure { lbn: u64 },
    #[error("block {lbn}: two walks found tracks that do not meet")]
    Apart { lbn: u64 },
}

/// Extracts the tracks of the whole disk.
///
/// *Errors:* reads without angles, and places where they are inconclusive.
pub async fn extract(disk: Disk) -> Result<TimingMap, TimingError> {
    disk.report_progress("learning the turn", 0.0);
    let clock = Clock::new(disk.clone()).await?;
    let mut walks = walks(&clock).await?;
    while !advance(&clock, &mut walks).await? {
        let tracks: u64 = walks.iter().map(|walk| walk.first - walk.begin).sum();
        disk.report_progress("looking for the ends of tracks", tracks as f64 / clock.sectors().0 as f64);
    }
    let mut map = TrackMap::new();
    for walk in &walks {
        if walk.begin != map.end() {
            return Err(TimingError::Apart { lbn: walk.begin.0 });
        }
        walk.tracks.iter().for_each(|(sectors, tracks)| map.push(*sectors, *tracks));
    }
    Ok(TimingMap { map, turn: Nanos(clock.turn.round() as u64), noise: Nanos(clock.noise.round() as u64) })
}

/// Finds single track boundaries by timing.
pub(crate) struct Ear {
    clock: Clock,
    /// Angle of a unit of the last track measured.
    slope: Option<f64>,
}

impl Ear {
    pub(crate) async fn new(disk: Disk) -> Result<Ear, TimingError> {
        Ok(Ear { clock: Clock::new(disk).await?, slope: None })
    }

    /// Blocks of a unit; tracks are whole numbers of units.
    pub(crate) fn unit(&self) -> u64 {
        self.clock.unit()
    }

    /// Whether a track begins at a block. The tolerance exceeds the angle of a sector.
    pub(crate) async fn begins(&self, lbn: Lbn) -> Result<bool, TimingError> {
        Ok(jump(&self.clock, lbn, 0.0).await?.is_some())
    }

    /// Whether a track may begin in a number of units before a block; also true if inconclusive.
    pub(crate) async fn begins_before(&self, lbn: Lbn, units: u64) -> Result<bool, TimingError> {
        let back = units * self.clock.unit();
        let angle = self.clock.sure_angle(lbn).await?;
        match slope(&self.clock, lbn, angle).await? {
            Some(slope) if lbn.0 >= back => {
                let before = self.clock.sure_angle(Lbn(lbn.0 - back)).await?;
                let off = apart(angle - before, slope * units as f64).abs();
                Ok(off > 3.0 * self.clock.tolerance)
            }
            _ => Ok(true),
        }
    }

    /// Whether the blocks from one to another pass within a turn, as those of a track; also true if inconclusive.
    pub(crate) async fn fits_a_turn(&self, first: Lbn, end: Lbn) -> Result<bool, TimingError> {
        let angle = self.clock.sure_angle(first).await?;
        let units = ((end - first) / self.clock.unit()) as f64;
        let slope = slope(&self.clock, first, angle).await?;
        Ok(slope.is_none_or(|slope| units * slope <= 1.0 + 2.0 * self.clock.tolerance))
    }

    pub(crate) async fn end_of(&mut self, first: Lbn, guess: u32) -> Result<Lbn, TimingError> {
        let (end, slope) = end_of(&self.clock, first, self.slope, &[guess]).await?;
        self.slope = Some(slope);
        Ok(end.map_or(self.clock.sectors(), |end| end.lbn))
    }
}

/// A walk along the tracks of a part of the disk.
struct TimingWalk {
    /// First block of its first track.
    begin: Lbn,
    /// Where the next walk began.
    stop: Lbn,
    /// First block of the next track, and its angle.
    first: Lbn,
    angle: f64,
    /// Angle of a unit, in turns.
    slope: Option<f64>,
    lengths: Lengths,
    /// Tracks so far: sectors, and the number of equal ones in a row.
    tracks: Vec<(u32, u32)>,
}

/// Starts walks at tracks spread over the disk.
async fn walks(clock: &Clock) -> Result<Vec<TimingWalk>, TimingError> {
    let (sectors, unit) = (clock.sectors(), clock.unit());
    let number = (sectors.0 / LEAST_BLOCKS).clamp(1, WALKS);
    let angle = clock.sure_angle(Lbn(0)).await?;
    let mut begins = vec![(End { lbn: Lbn(0), angle }, None)];
    for walk in 1..number {
        let mut from = Lbn(sectors.0 / number * walk / unit * unit);
        // Near the end of a track the angle of a sector cannot be measured; further on it can.
        let begin = loop {
            match end_of(clock, from, None, &[]).await {
                Ok((Some(end), slope)) => break (end, Some(slope)),
                Ok((None, _)) => return Err(TimingError::Unsure { lbn: from.0 }),
                Err(TimingError::Unsure { .. }) if from.0 < sectors.0 / number * walk + LEAST_BLOCKS / 4 => {
                    from = from + 100 * unit;
                }
                Err(error) => return Err(error),
            }
        };
        begins.push(begin);
    }
    let stops = begins.iter().skip(1).map(|(begin, _)| begin.lbn).chain([sectors]).collect::<Vec<_>>();
    let walk = |((begin, slope), stop): ((End, Option<f64>), Lbn)| TimingWalk {
        begin: begin.lbn,
        stop,
        first: begin.lbn,
        angle: begin.angle,
        slope,
        lengths: Lengths::default(),
        tracks: Vec::new(),
    };
    Ok(begins.into_iter().zip(stops).map(walk).collect())
}

/// Advances every walk by a track; returns whether all are done.
///
/// The last block of each track is read in one round, and the next block in another, so that neither comes from read-ahead.
async fn advance(clock: &Clock, walks: &mut [TimingWalk]) -> Result<bool, TimingError> {
    let mut lasts = Vec::with_capacity(walks.len());
    for walk in walks.iter() {
        lasts.push(walk.last(clock).await?);
    }
    let mut is_done = true;
    for (walk, last) in walks.iter_mut().zip(lasts) {
        walk.step(clock, last).await?;
        is_done &= walk.first == walk.stop;
        if walk.first > walk.stop {
            return Err(TimingError::Apart { lbn: walk.stop.0 });
        }
    }
    Ok(is_done)
}

impl TimingWalk {
    /// The expected end of the next track, from those before.
    fn expected(&self) -> Option<Lbn> {
        let guess = self.lengths.guesses().first().copied()?;
        Some(self.first + u64::from(guess)).filter(|end| *end <= self.stop)
    }

    /// The angle of the expected last block.
    async fn last(&self, clock: &Clock) -> Result<Option<f64>, TimingError> {
        match self.expected() {
            Some(end) if self.first < self.stop => clock.angle(Lbn(end.0 - clock.unit())).await.map(Some),
            _ => Ok(None),
        }
    }

    /// Accepts the next track if its last block is at the predicted angle and the next block is not; else searches its end.
    async fn step(&mut self, clock: &Clock, last: Option<f64>) -> Result<(), TimingError> {
        if self.first == self.stop {
            return Ok(());
        }
        if let (Some(last), Some(end), Some(slope)) = (last, self.expected(), self.slope)
            && let Some(slope) = self.continues(clock, end, last, slope)
        {
            if end == self.stop {
                self.add_end(end, self.angle);
                return Ok(());
            }
            let angle = clock.angle(end).await?;
            let has_jumped = apart(angle - last, slope).abs() > 3.0 * clock.tolerance;
            // Before the length is established, a late answer must not pass for a jump.
            let is_sure =
                has_jumped && (self.lengths.is_steady() || jump(clock, end, slope).await?.is_some());
            if is_sure {
                self.slope = Some(slope);
                self.add_end(end, angle);
                return Ok(());
            }
        }
        let guesses = self.lengths.guesses();
        let (end, slope) = end_of(clock, self.first, self.slope, &guesses).await?;
        self.slope = Some(slope);
        match end {
            Some(end) => self.add_end(end.lbn, end.angle),
            None => self.add_end(clock.sectors(), 0.0),
        }
        Ok(())
    }

    /// Whether the last block is at the angle that the first one predicts; returns the slope between both.
    fn continues(&self, clock: &Clock, end: Lbn, last: f64, slope: f64) -> Option<f64> {
        let units = ((end - self.first) / clock.unit() - 1) as f64;
        let off = apart(last - self.angle, slope * units);
        (off.abs() < clock.tolerance).then(|| if units > 0.0 { slope + 0.25 * off / units } else { slope })
    }

    fn add_end(&mut self, end: Lbn, angle: f64) {
        let sectors = (end - self.first) as u32;
        self.lengths.push(sectors);
        match self.tracks.last_mut() {
            Some((last, tracks)) if *last == sectors => *tracks += 1,
            _ => self.tracks.push((sectors, 1)),
        }
        (self.first, self.angle) = (end, angle);
    }
}
