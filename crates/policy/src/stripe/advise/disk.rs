//! The times of a disk that an advisor uses.
//!
//! Modelled: seek between two random blocks and rotational latency with their variance, the rate of a long transfer with its
//! head and cylinder switches, overheads of commands, the time lost between two commands of one transfer. All means are over
//! the whole disk. Not modelled: hits in a cache.

use headstack_model::spec::{ReadAhead, SpecError};
use headstack_model::{DriveSpec, Geometry, Lbn, Mechanics, Nanos, TrackPlace};

/// Random accesses from which the times are computed.
const SAMPLES: u64 = 4096;

/// The times of a disk.
#[derive(Clone, Debug, PartialEq)]
pub struct DiskTimes {
    /// Seek and latency of random accesses in ns, ascending; all equally likely.
    positionings: Vec<f64>,
    mean: f64,
    variance: f64,
    turn: f64,
    sector: f64,
    /// The electronics' time for a command.
    overhead: f64,
    /// The most blocks of a command, and the time lost from one to the next.
    command: Option<(u32, f64)>,
    reads_ahead: bool,
}

impl DiskTimes {
    /// A disk with a constant positioning time, and a constant time in ns per sector.
    pub fn plain(positioning: Nanos, sector_ns: f64) -> DiskTimes {
        DiskTimes::new(vec![positioning.0 as f64], sector_ns)
    }

    fn new(mut positionings: Vec<f64>, sector: f64) -> DiskTimes {
        positionings.sort_by(f64::total_cmp);
        let count = positionings.len() as f64;
        let mean = positionings.iter().sum::<f64>() / count;
        let variance = positionings.iter().map(|time| (time - mean) * (time - mean)).sum::<f64>() / count;
        let (turn, overhead) = (0.0, 0.0);
        DiskTimes { positionings, mean, variance, turn, sector, overhead, command: None, reads_ahead: false }
    }

    /// The times of a drive.
    ///
    /// *Errors:* the drive's geometry is invalid.
    pub fn from_spec(spec: &DriveSpec) -> Result<DiskTimes, SpecError> {
        let (geometry, mechanics) = (Geometry::new(spec)?, Mechanics::new(spec));
        let turn = mechanics.spindle().period().0 as f64;
        let (mut positionings, mut sector) = (Vec::new(), 0.0);
        for index in 1..=SAMPLES {
            let [from, to, angle] = point(index);
            let [from, to] = [from, to].map(|share| share_of(geometry.sectors(), share));
            let [start, end] = [from, to].map(|lbn| {
                let place = geometry.locate(lbn);
                TrackPlace { cylinder: place.cylinder, head: place.head }
            });
            let latency = angle as f64 / 18_446_744_073_709_551_616.0 * turn;
            positionings.push(mechanics.reposition(start, end, false).0 as f64 + latency);
            sector += turns_a_sector(&geometry, to) * turn;
        }
        let overhead = (spec.overhead.after_read.read_miss_ms + spec.overhead.read_completion_ms) * 1e6;
        let reads_ahead = spec.cache.read_ahead != ReadAhead::None;
        let times = DiskTimes::new(positionings, sector / SAMPLES as f64);
        Ok(DiskTimes { turn, overhead, reads_ahead, ..times })
    }

    /// The same disk behind a host that transfers at most `sectors` blocks with one command. The next command is sent when the
    /// last is complete; a drive that does not read ahead then waits for a revolution.
    pub fn with_commands_of(self, sectors: u32) -> DiskTimes {
        let lost = if self.reads_ahead { 0.0 } else { (self.overhead / self.turn).ceil() * self.turn };
        DiskTimes { command: Some((sectors.max(1), lost)), ..self }
    }

    /// Mean time of seek and rotational latency (P).
    pub fn positioning(&self) -> Nanos {
        Nanos(self.mean as u64)
    }

    /// Blocks that a long transfer moves in a second (X).
    pub fn sectors_per_second(&self) -> f64 {
        1e9 / self.sector
    }

    /// Blocks that a long transfer would move in the mean positioning time (P·X).
    pub fn reach(&self) -> f64 {
        self.mean / self.sector
    }

    /// Variance of the positioning time, in ns².
    pub(super) fn variance(&self) -> f64 {
        self.variance
    }

    /// Mean time in ns to reach and transfer `sectors` consecutive blocks.
    pub(super) fn service(&self, sectors: f64) -> f64 {
        let lost = self.command.map_or(0.0, |(most, lost)| {
            let commands = (sectors / f64::from(most)).ceil().max(1.0);
            (commands - 1.0) * lost
        });
        self.overhead + self.mean + sectors * self.sector + lost
    }

    /// Mean time in ns to write consecutive blocks that the disk has just read: their first block returns to the head after whole turns.
    pub(super) fn rewrite(&self, sectors: f64) -> f64 {
        let busy = self.overhead + sectors * self.sector;
        if self.turn > 0.0 { (busy / self.turn).ceil() * self.turn } else { busy }
    }

    /// By how many ns the slowest of 1, 2 … `most` independent positionings exceeds the mean one.
    pub(super) fn slowest(&self, most: u32) -> Vec<f64> {
        let count = self.positionings.len() as f64;
        // The share of positionings up to each, to the power of their number.
        let mut below: Vec<f64> = vec![1.0; self.positionings.len() + 1];
        (0..most)
            .map(|_| {
                for (index, power) in below.iter_mut().enumerate() {
                    *power *= index as f64 / count;
                }
                let weighed = |(index, time): (usize, &f64)| time * (below[index + 1] - below[index]);
                self.positionings.iter().enumerate().map(weighed).sum::<f64>() - self.mean
            })
            .collect()
    }

    /// By how many ns the longest of `disks` rotational latencies exceeds the mean one.
    pub(super) fn longest_latency(&self, disks: f64) -> f64 {
        self.turn * (disks / (disks + 1.0) - 0.5)
    }
}

/// A point of a sequence that fills the cube more evenly than random points do; each coordinate in 2⁻⁶⁴.
///
/// *Source:* additive sequences by the powers of the root of x⁴ = x + 1 (Roberts's R₃).
fn point(index: u64) -> [u64; 3] {
    [15_111_065_706_836_454_659, 12_378_569_675_163_806_722, 10_140_184_033_053_478_359]
        .map(|step: u64| step.wrapping_mul(index))
}

/// The block at this share, in 2⁻⁶⁴, of `sectors`.
fn share_of(sectors: u64, share: u64) -> Lbn {
    Lbn(((u128::from(sectors) * u128::from(share)) >> 64) as u64)
}

/// Revolutions per sector of a long transfer over the track of a block, with the switch to the next track.
fn turns_a_sector(geometry: &Geometry, lbn: Lbn) -> f64 {
    let track = geometry.track_at(lbn);
    let sectors = f64::from(track.sectors.max(1));
    let reading = sectors / f64::from(track.sectors_per_track);
    let Some(next) = geometry.next_track_boundary(lbn) else { return reading / sectors };
    let angle = |lbn| geometry.extent_at(lbn).angle;
    let skew = ((angle(next) - angle(track.first)).as_turns() - reading).rem_euclid(1.0);
    // An angle is rounded: a value just below a whole revolution is zero.
    let skew = if skew > 1.0 - 1e-6 { 0.0 } else { skew };
    (reading + skew) / sectors
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::drives;

    fn times_of(name: &str) -> DiskTimes {
        DiskTimes::from_spec(&drives::load(name).expect("the drive is shipped")).expect("shipped drives hold")
    }

    #[test]
    fn striping_study_drive_has_its_documented_times() {
        let disk = times_of("ultrastar-dfhc-2gb");
        // The drive's own file: 7.5 ms of seek over random pairs of blocks, half a turn of 4.17 ms; sustained 5.5 to
        // 7.48 MB/s with most blocks in the outer notches.
        assert!((disk.positioning().as_ms() / 11.67 - 1.0).abs() < 0.01, "{}", disk.positioning());
        let rate = disk.sectors_per_second() * 512e-6;
        assert!((6.9..7.5).contains(&rate), "{rate} MB/s");
    }

    #[test]
    fn every_shipped_drive_has_plausible_times() {
        for (name, _) in drives::all() {
            let disk = times_of(name);
            let ms = disk.positioning().as_ms();
            assert!((2.0..30.0).contains(&ms), "{name}: {ms} ms");
            assert!(disk.reach() > 10.0, "{name}: {} sectors", disk.reach());
        }
    }

    #[test]
    fn slowest_of_n_disks_matches_order_statistics() {
        // Evenly spread over 0 to 1,000,000: the slowest of k is k / (k + 1) on the mean.
        let disk = DiskTimes::new((0..1000).map(|step| (f64::from(step) + 0.5) * 1000.0).collect(), 1.0);
        for (disks, slowest) in (1u32..).zip(disk.slowest(8)) {
            let expected = 1e6 * (f64::from(disks) / f64::from(disks + 1) - 0.5);
            assert!((slowest - expected).abs() < 1500.0, "{disks}: {slowest}, expected {expected}");
        }
    }

    #[test]
    fn each_extra_command_loses_a_turn_without_read_ahead() {
        let mut spec = drives::load("ultrastar-dfhc-2gb").expect("the drive is shipped");
        let extra = |spec: &DriveSpec| {
            let disk = DiskTimes::from_spec(spec).expect("the drive holds");
            disk.clone().with_commands_of(256).service(1024.0) - disk.service(1024.0)
        };
        assert!(extra(&spec).abs() < 1.0, "with read-ahead nothing is lost");
        spec.cache.read_ahead = ReadAhead::None;
        let turns = extra(&spec) / (60e9 / 7200.0);
        assert!((turns - 3.0).abs() < 1e-6, "{turns} turns for three commands more");
    }
}
