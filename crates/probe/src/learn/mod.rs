//! The mechanics of a disk, from its tracks and their angles and from the times of its answers.
//!
//! Learned: the order of blocks over surfaces and cylinders, the number of heads, seek times for reads and writes, head switch and write
//! settle, the rate of each zone. Not learned: heads whose switch no seek shows, cylinders without a block except between zones.
//!
//! *Source:* distances between two commands that just need no extra turn: B. Worthington, G. Ganger, Y. Patt, J. Wilkes, "On-line
//! extraction of SCSI disk drive parameters" (1995); layouts: H. Wong, "Discovering hard disk physical geometry through microbenchmarking"
//! (2019).

mod bands;
pub mod electronics;
pub(crate) mod fit;
mod gaps;
mod heads_first;
mod layout;
mod prober;
mod seek;
mod tracks;

pub use electronics::{LearnedElectronics, electronics};
pub use seek::{SeekPoint, Seeks};
pub use tracks::{Piece, Stretch};
pub(crate) use tracks::{mean_off, middle_angle, most_off, turn_between, within};

use crate::Disk;
use crate::lattice::Lattice;
use headstack_model::Lbn;
use headstack_model::spec::Layout;
use prober::Prober;
use std::collections::BTreeMap;

/// The mechanics of a disk.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct LearnedMechanics {
    pub rpm: f64,
    /// Standard deviation of the angles at which tracks begin, in turns.
    pub noise: f64,
    pub layout: Layout,
    /// Surfaces that could be distinguished.
    pub heads: u32,
    /// Cylinders from the first that holds a block to the last.
    pub cylinders: u32,
    /// The places of all tracks, in the order of their blocks.
    pub pieces: Vec<Piece>,
    pub seeks: Seeks,
}

/// The rate at which a zone is read sequentially.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ZoneRate {
    pub first: Lbn,
    pub blocks: u64,
    /// Blocks per second, skews included.
    pub blocks_a_second: f64,
}

impl LearnedMechanics {
    /// The rate of each zone: of bands, or cylinders, whose tracks hold equally many blocks.
    pub fn rates(&self) -> Vec<ZoneRate> {
        let turns_a_second = self.rpm / 60.0;
        let densest = |band: &[Piece]| band.iter().map(|piece| piece.tracks.sectors_per_track).max();
        let bands: Vec<&[Piece]> = self.pieces.chunk_by(|a, b| a.band == b.band).collect();
        let zones = bands.chunk_by(|a, b| densest(a) == densest(b));
        let rate = |zone: &[&[Piece]]| {
            let tracks = || zone.iter().flat_map(|band| band.iter()).map(|piece| &piece.tracks);
            let blocks = tracks().map(|tracks| tracks.run.end() - tracks.run.first).sum();
            let turns: f64 = tracks().map(|tracks| tracks.turns(self.noise)).sum();
            let first = zone[0][0].tracks.run.first;
            ZoneRate { first, blocks, blocks_a_second: blocks as f64 / turns * turns_a_second }
        };
        zones.map(rate).collect()
    }
}

/// Learns the mechanics of a disk from its lattice.
pub async fn mechanics(disk: Disk, lattice: &Lattice) -> LearnedMechanics {
    let period = lattice.period.0 as f64;
    let noise = lattice.noise.0 as f64 / period;
    let stretches = tracks::of_lattice(lattice, disk.info().physical_sectors, noise);
    mechanics_of(disk, &stretches, period, noise).await
}

/// Learns the mechanics of a disk with these tracks, whose turn takes `period` nanoseconds.
///
/// *Units:* `noise`, the standard deviation of the tracks' angles, in turns.
pub async fn mechanics_of(disk: Disk, stretches: &[Stretch], period: f64, noise: f64) -> LearnedMechanics {
    let mut prober = Prober::new(disk, period);
    if let Some(stretch) = stretches.first() {
        prober.set_clock(&stretch.spot(0)).await;
    }
    let mut stretches = stretches.to_vec();
    measure_turns(&mut prober, &mut stretches).await;
    settle_turns(&mut stretches);
    let mut placing = layout::find(&mut prober, &stretches, noise).await;
    if placing.is_heads_first() {
        gaps::widen(&mut prober, &mut placing).await;
    }
    let seeks = seek::measure(&mut prober, &placing).await;
    LearnedMechanics {
        rpm: 60e9 / period,
        noise,
        layout: placing.layout,
        heads: placing.heads,
        cylinders: placing.cylinders(),
        pieces: placing.pieces,
        seeks,
    }
}

/// Sectors per track below which they are counted again: one more or less is a large angle.
const FEW: u32 = 600;

/// Counts the sectors of a turn again for short tracks, and for tracks with fewer blocks than sectors.
async fn measure_turns(prober: &mut Prober, stretches: &mut [Stretch]) {
    let mut longest = BTreeMap::<u32, Stretch>::new();
    for stretch in stretches.iter().filter(|stretch| stretch.run.tracks > 1) {
        let known = longest.entry(stretch.sectors_per_track).or_insert(*stretch);
        if known.run.tracks < stretch.run.tracks {
            *known = *stretch;
        }
    }
    let mut counted = BTreeMap::new();
    for (said, stretch) in longest {
        if said < FEW || said != stretch.run.sectors {
            counted.insert(said, prober.sectors_of_turn(&stretch.spot(0)).await);
        }
    }
    for stretch in stretches {
        if let Some(sectors) = counted.get(&stretch.sectors_per_track) {
            stretch.sectors_per_track = stretch.run.sectors.max(*sectors);
        }
    }
}

/// Maximum error of the turn of one track, as a share.
const MISCOUNTED: f64 = 0.012;

/// Sets the turn of single tracks to that of both neighbours if it is nearly equal: a single track gives it less accurately.
fn settle_turns(stretches: &mut [Stretch]) {
    let turn_of = |stretch: &Stretch| (stretch.run.tracks > 1).then_some(stretch.sectors_per_track);
    let mut next: Vec<Option<u32>> = stretches.iter().map(turn_of).collect();
    for index in (1..next.len()).rev() {
        next[index - 1] = next[index - 1].or(next[index]);
    }
    let mut before = None;
    for (stretch, next) in stretches.iter_mut().zip(next) {
        let longer = turn_of(stretch);
        if longer.is_none()
            && before == next
            && let Some(turn) = next.filter(|turn| *turn >= stretch.run.sectors)
            && f64::from(turn.abs_diff(stretch.sectors_per_track)) <= 1.0 + MISCOUNTED * f64::from(turn)
        {
            stretch.sectors_per_track = turn;
        }
        before = longer.or(before);
    }
}

#[cfg(test)]
pub(crate) mod tests;
