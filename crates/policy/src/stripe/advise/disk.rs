//! The times of a disk, as far as an advisor has to know them.
//!
//! Modelled: seek between two random blocks, rotational latency, the rate of a long transfer with its head and cylinder
//! switches, over the whole disk. Not modelled: what a cache does.

use headstack_model::spec::SpecError;
use headstack_model::{DriveSpec, Geometry, Lbn, Mechanics, Nanos, TrackPlace};

/// Random accesses that the times are taken from.
const SAMPLES: u64 = 4096;

/// How long a disk takes.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskTimes {
    positioning: Nanos,
    sector_ns: f64,
}

impl DiskTimes {
    /// A disk that takes so long to position its arm on the mean, and so many ns to transfer a sector.
    pub fn plain(positioning: Nanos, sector_ns: f64) -> DiskTimes {
        DiskTimes { positioning, sector_ns }
    }

    /// The times of a drive.
    ///
    /// *Errors:* the drive's geometry does not hold.
    pub fn of(spec: &DriveSpec) -> Result<DiskTimes, SpecError> {
        let (geometry, mechanics) = (Geometry::new(spec)?, Mechanics::new(spec));
        let turn = mechanics.spindle().period().0 as f64;
        let (mut positioning, mut sector) = (0.0, 0.0);
        for index in 1..=SAMPLES {
            let [from, to, angle] = point(index);
            let [from, to] = [from, to].map(|share| share_of(geometry.sectors(), share));
            let [start, end] = [from, to].map(|lbn| {
                let place = geometry.locate(lbn);
                TrackPlace { cylinder: place.cylinder, head: place.head }
            });
            let latency = angle as f64 / 2f64.powi(64) * turn;
            positioning += mechanics.reposition(start, end, false).0 as f64 + latency;
            sector += turns_a_sector(&geometry, to) * turn;
        }
        let samples = SAMPLES as f64;
        Ok(DiskTimes::plain(Nanos((positioning / samples) as u64), sector / samples))
    }

    /// Mean time of seek and rotational latency (P).
    pub fn positioning(&self) -> Nanos {
        self.positioning
    }

    /// Blocks that a long transfer moves in a second (X).
    pub fn sectors_per_second(&self) -> f64 {
        1e9 / self.sector_ns
    }

    /// Blocks that a long transfer would move in the mean positioning time (P·X).
    pub fn reach(&self) -> f64 {
        self.positioning.0 as f64 / self.sector_ns
    }
}

/// A point of a sequence that fills the cube evenly, with less scatter than a generator's; each coordinate in 2⁻⁶⁴.
///
/// *Source:* additive sequences by the powers of the root of x⁴ = x + 1 (Roberts's R₃).
fn point(index: u64) -> [u64; 3] {
    [15_111_065_706_836_454_659, 12_378_569_675_163_806_722, 10_140_184_033_053_478_359]
        .map(|step: u64| step.wrapping_mul(index))
}

/// The block at this share, in 2⁻⁶⁴, of so many.
fn share_of(sectors: u64, share: u64) -> Lbn {
    Lbn(((u128::from(sectors) * u128::from(share)) >> 64) as u64)
}

/// Turns of the platter for a sector of a long transfer over the track of a block, with the switch to the next track.
fn turns_a_sector(geometry: &Geometry, lbn: Lbn) -> f64 {
    let track = geometry.track_at(lbn);
    let sectors = f64::from(track.sectors.max(1));
    let reading = sectors / f64::from(track.sectors_per_track);
    let Some(next) = geometry.next_track_boundary(lbn) else { return reading / sectors };
    let angle = |lbn| geometry.extent_at(lbn).angle;
    let skew = ((angle(next) - angle(track.first)).as_turns() - reading).rem_euclid(1.0);
    // An angle is rounded: what is a hair short of a whole turn is no turn at all.
    let skew = if skew > 1.0 - 1e-6 { 0.0 } else { skew };
    (reading + skew) / sectors
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;

    #[test]
    fn are_the_times_of_the_striping_study_those_of_its_drive() {
        let drive = drives::load("ultrastar-dfhc-2gb").expect("the drive is shipped");
        let disk = DiskTimes::of(&drive).expect("shipped drives hold");
        // The drive's own file: 7.5 ms of seek over random pairs of blocks, half a turn of 4.17 ms; sustained 5.5 to
        // 7.48 MB/s with most blocks in the outer notches.
        assert!((disk.positioning().as_ms() / 11.67 - 1.0).abs() < 0.01, "{}", disk.positioning());
        let rate = disk.sectors_per_second() * 512e-6;
        assert!((6.9..7.5).contains(&rate), "{rate} MB/s");
    }

    #[test]
    fn have_all_drives_times() {
        for (name, _) in drives::all() {
            let disk = DiskTimes::of(&drives::load(name).expect("the drive is shipped"));
            let disk = disk.expect("shipped drives hold");
            let ms = disk.positioning().as_ms();
            assert!((2.0..30.0).contains(&ms), "{name}: {ms} ms");
            assert!(disk.reach() > 10.0, "{name}: {} sectors", disk.reach());
        }
    }
}
