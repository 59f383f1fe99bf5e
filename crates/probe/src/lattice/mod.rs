//! *Phase-lattice extraction*: where every track begins, from the angles at which sectors end.
//!
//! A read ends at an angle of the spindle, whatever seeks and turns precede it. Within equal tracks four numbers predict the angle of every
//! sector: the angle of the first one, the sectors per track and per turn, and the skew from track to track. One read far away therefore
//! shows whether all tracks between are equal, and repetitions on a larger scale (cylinders, bands over all surfaces) are followed in the
//! same way. The cost grows with the irregular tracks, not with all. Where tracks follow without skew, a lost turn shows where one ends.
//!
//! Modelled: slipped sectors and tracks, spares at the ends of tracks, cylinders and zones, remapped sectors, any order of surfaces. Not
//! modelled: disks that have no skew from the first track on.

mod boundary;
mod clock;
mod error;
mod history;
mod hypothesis;
mod irregular;
mod new_track;
mod pattern;
mod prober;
mod reach;
mod reader;
mod turns;
mod verify;
mod walk;

pub use error::LatticeError;
pub use verify::Verification;

use crate::Disk;
use boundary::BoundaryVerifier;
use headstack_model::{Lbn, Nanos};
use headstack_tracks::{Run, TrackMap};
use history::Piece;
use prober::Prober;
use verify::Verifier;
use walk::Walk;

/// A result of the extraction, or why the disk has no lattice.
type LatticeResult<T> = Result<T, LatticeError>;

/// Equal tracks, each turned against the one before by the same angle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatticeRun {
    /// Their blocks.
    pub run: Run,
    /// The angle at which the first sector of the first track begins.
    ///
    /// *Units:* turns, 0 to 1, from an origin common to all runs; the delay between the end of a sector and the end of its read
    /// is part of it.
    pub angle: f64,
    /// The angle from the start of a track to that of the next, without whole turns.
    ///
    /// *Units:* turns, −0.5 to 0.5. For a run of one track it is that of the tracks around it.
    pub skew: f64,
    /// Blocks per whole turn: more than a track holds if some sectors are spare.
    pub turn: f64,
}

impl LatticeRun {
    /// The angle at which a block of the run begins, without slips within its track.
    ///
    /// *Units:* turns, 0 to 1.
    pub fn angle_of(&self, lbn: Lbn) -> f64 {
        let into = lbn - self.run.first;
        let (track, sector) = (into / u64::from(self.run.sectors), into % u64::from(self.run.sectors));
        let angle = self.angle + track as f64 * self.skew + sector as f64 / self.turn;
        angle - libm::floor(angle)
    }
}

/// The lattice of a disk.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Lattice {
    /// Time of a turn.
    pub period: Nanos,
    /// Standard deviation of the times of answers.
    pub noise: Nanos,
    /// Runs of tracks, in the order of their blocks.
    pub runs: Vec<LatticeRun>,
    pub map: TrackMap,
    pub verification: Verification,
    pub probes: u64,
}

/// Share of the verified boundaries that may be wrong in a map that is still returned. By trial.
const MOST_WRONG: f64 = 0.1;

/// Finds the tracks of a disk from the times of its answers.
///
/// *Errors:* a disk whose answers are inconsistent, and tracks that the verification refutes.
pub async fn extract(disk: Disk) -> Result<Lattice, LatticeError> {
    let mut prober = Prober::begin(disk).await?;
    let angle = prober.angle(0).await?.ok_or(LatticeError::Unreadable { lbn: Lbn(0) })?;
    let end = prober.sectors;
    let mut walk = Walk::new(BoundaryVerifier { prober, end, is_unskewed: false }, angle);
    walk.run().await?;
    let verification = Verifier(&mut walk).verify().await?;
    let info = walk.boundaries.prober.disk.info();
    let doubtful: u64 = verification.doubtful.iter().map(|range| range.end - range.start).sum();
    let doubtful_share = doubtful as f64 / info.sectors as f64;
    if verification.wrong_share > MOST_WRONG {
        return Err(LatticeError::Unreliable {
            percent_wrong: (100.0 * verification.wrong_share) as u32,
            percent_doubtful: (100.0 * doubtful_share) as u32,
            physical_sectors: info.physical_sectors,
        });
    }
    Ok(lattice(&walk.boundaries.prober, &walk.history.pieces, verification))
}

fn lattice(prober: &Prober, pieces: &[Piece], verification: Verification) -> Lattice {
    let info = prober.disk.info();
    let mut map = TrackMap::new();
    let mut runs = Vec::new();
    let mut push = |first: Lbn, sectors: u32, tracks: u32, piece: &Piece, track: u64| {
        let angle = piece.angle + track as f64 * piece.shape.skew - 1.0 / piece.shape.turn;
        runs.push(LatticeRun {
            run: Run { first, sectors, tracks },
            angle: angle - libm::floor(angle),
            skew: piece.shape.skew,
            turn: piece.shape.turn * prober.blocks as f64,
        });
        map.push(sectors, tracks);
    };
    // Blocks behind the last whole physical sector belong to the last track.
    let rest = info.sectors - prober.sectors * prober.blocks;
    for (index, piece) in pieces.iter().enumerate() {
        let sectors = (piece.shape.sectors * prober.blocks) as u32;
        let alone = u64::from(rest > 0 && index + 1 == pieces.len());
        let tracks = piece.tracks - alone;
        if tracks > 0 {
            push(prober.lbn(piece.first), sectors, tracks as u32, piece, 0);
        }
        if alone > 0 {
            push(
                prober.lbn(piece.first + tracks * piece.shape.sectors),
                sectors + rest as u32,
                1,
                piece,
                tracks,
            );
        }
    }
    Lattice {
        period: Nanos(libm::round(prober.clock.period) as u64),
        noise: Nanos(libm::round(prober.clock.sigma * prober.clock.period) as u64),
        runs,
        map,
        verification,
        probes: prober.probes,
    }
}
