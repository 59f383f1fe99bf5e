//! Determines whether a device rotates, the length of a turn, and the noise of the answers' times.
//!
//! A block passes its head at the same angle in every turn. So the ends of reads of one block are whole turns apart, whenever they were
//! requested. They are requested at random times, because a device that takes equally long for every read would otherwise seem to rotate.
//! Answers from a cache show no angle; in that case more and more blocks are read in turn, until no cache holds them.
//!
//! Not detected: a turn if every answer is late by more than half of it at random, and a varying speed.
//!
//! *Source:* Worthington, Ganger, Patt and Wilkes, "On-line extraction of SCSI disk drive parameters" (1995), section 4: times between
//! completions of the same block; the rest is arithmetic.

use crate::{Disk, ProbeCommand};
use headstack_model::{Lbn, Nanos};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::f64::consts::TAU;

/// Rotation of a disk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spin {
    /// Length of a turn in nanoseconds.
    pub turn_ns: f64,
    /// Median deviation of the end of a read.
    pub noise: Nanos,
    /// Blocks that had to be read in turn, so that they came from the media.
    pub blocks: u64,
}

impl Spin {
    /// Revolutions per minute.
    pub fn rpm(&self) -> f64 {
        60e9 / self.turn_ns
    }
}

/// Why a disk cannot be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum SpinError {
    #[error("the disk has no blocks")]
    Empty,
    #[error("the disk cannot be read: reads at its beginning, in its middle and at its end failed")]
    Unreadable,
    #[error("the disk reports {reported} blocks, but none can be read from block {end} on")]
    Short { reported: u64, end: u64 },
    #[error("the disk cannot be relied upon: {failed} of {reads} reads spread over it failed")]
    Failing { failed: u64, reads: u64 },
    #[error(
        "every read is answered from a cache (of {blocks} blocks far apart, read in turn, most within {quick}): there is nothing to learn of the media"
    )]
    Cached { blocks: u64, quick: Nanos },
    #[error(
        "no rotation shows in its response times (the best fit is {fit_per_mille} of 1000, at least {least} is needed): it does not rotate, or something before it delays answers at will"
    )]
    NoTurn { fit_per_mille: u32, least: u32 },
}

/// Maximum time of an answer that comes from a cache: a disk's electronics need up to this time, and the media more.
pub const QUICK: Nanos = Nanos(300_000);

/// Range of turns: 60,000 to 1,500 rpm.
const TURNS_NS: [f64; 2] = [1e6, 40e6];

/// Least fit of a turn, in thousandths: 1000 if all ends have the same angle, 0 if they are spread evenly.
const FIT: u32 = 800;

/// Reads of the last block before it counts as missing.
const LAST_READS: u32 = 3;

/// Reads of each trial.
const READS: u64 = 48;

/// Checks that a disk can be read, and measures its rotation.
///
/// *Errors:* why it cannot be measured.
pub async fn spin(disk: &Disk) -> Result<Spin, SpinError> {
    readable(disk).await?;
    let mut random = Pcg64Mcg::seed_from_u64(7);
    let mut refusal = SpinError::Cached { blocks: 96, quick: QUICK };
    for blocks in [1, 2, 16, 96] {
        let places = spread(disk, blocks);
        let rounds = READS.div_ceil(blocks).max(4);
        disk.report_progress("does it turn", (blocks as f64).log2() / 7.0);
        let (ends, failed) = ends(disk, &places, rounds, &mut random).await;
        let reads = rounds * places.len() as u64;
        if failed > reads / 4 {
            return Err(SpinError::Failing { failed, reads });
        }
        let found: usize = ends.iter().map(Vec::len).sum();
        if (found as u64 + failed) < reads * 3 / 4 {
            continue;
        }
        // On a busy host a cache may be as slow as the media, and no turn shows until no cache holds the blocks.
        match fit_turn(&ends, blocks) {
            Ok(spin) => return Ok(spin),
            Err(why) => refusal = why,
        }
    }
    Err(refusal)
}

/// First blocks of places that are far apart.
fn spread(disk: &Disk, places: u64) -> Vec<Lbn> {
    let info = disk.info();
    let unit = u64::from(info.physical_sectors.max(1));
    let units = info.sectors / unit;
    // In an order in which none follows its neighbour, so that none comes from read-ahead.
    let stride = (0..places).map(|place| place * 37 % places);
    stride.map(|place| Lbn((units / 16 + units / 2 * place / places) * unit)).collect()
}

/// The ends of reads of each place, in nanoseconds, without cache hits; and how many failed.
async fn ends(disk: &Disk, places: &[Lbn], rounds: u64, random: &mut Pcg64Mcg) -> (Vec<Vec<f64>>, u64) {
    let sectors = disk.info().physical_sectors.max(1);
    let (mut ends, mut failed) = (vec![Vec::new(); places.len()], 0);
    for _ in 0..rounds {
        for (place, lbn) in places.iter().enumerate() {
            let pause = Nanos(random.random_range(0..25_000_000));
            let command = ProbeCommand::Read { lbn: *lbn, sectors, from_media: true };
            let ticket = disk.send(command, disk.now() + pause);
            let answer = disk.answer(ticket).await;
            failed += u64::from(!answer.is_done());
            if answer.is_done() && answer.took() >= QUICK {
                ends[place].push(answer.ended.0 as f64);
            }
        }
    }
    (ends, failed)
}

/// The turn that fits the ends of reads.
fn fit_turn(ends: &[Vec<f64>], blocks: u64) -> Result<Spin, SpinError> {
    let pairs = ends.iter().flat_map(|ends| ends.windows(2));
    let apart: Vec<f64> = pairs.map(|pair| pair[1] - pair[0]).collect();
    let longest = apart.iter().copied().fold(0.0, f64::max);
    // Steps so fine that the longest distance changes by a twentieth of a turn at most.
    let step = 1.0 + 0.05 * TURNS_NS[0] / longest.max(TURNS_NS[1]);
    let mut trials = Vec::new();
    let mut trial = TURNS_NS[1];
    while trial > TURNS_NS[0] {
        trials.push((fit(&apart, trial), trial));
        trial /= step;
    }
    let best = trials.iter().map(|(fit, _)| *fit).fold(0.0, f64::max);
    if best < f64::from(FIT) / 1000.0 {
        return Err(SpinError::NoTurn { fit_per_mille: (best * 1000.0) as u32, least: FIT });
    }
    // Half of a fitting turn fits as well, or better if some answers are half a turn late; longer turns fit far worse.
    let first = trials.iter().position(|(fit, _)| *fit > 0.8 * best).expect("the best is one");
    let peak = trials[first..].iter().take_while(|(fit, _)| *fit > 0.7 * best);
    let rough = peak.max_by(|a, b| a.0.total_cmp(&b.0)).expect("there is a first").1;
    let (turn_ns, noise) = refine(ends, rough);
    Ok(Spin { turn_ns, noise: Nanos(noise as u64), blocks })
}

/// How well distances are whole turns, from 0 to 1.
fn fit(apart: &[f64], turn: f64) -> f64 {
    let (mut x, mut y) = (0.0, 0.0);
    for distance in apart {
        let turns = distance / turn;
        let (sine, cosine) = libm::sincos(TAU * (turns - turns as u64 as f64));
        x += cosine;
        y += sine;
    }
    libm::hypot(x, y) / apart.len().max(1) as f64
}

/// The exact turn, by lines through ends over longer and longer times, and the noise as the median deviation.
fn refine(ends: &[Vec<f64>], rough: f64) -> (f64, f64) {
    let mut turn = rough;
    let longest = ends.iter().map(Vec::len).max().unwrap_or(0);
    let mut many = 3;
    loop {
        let points = |ends: &Vec<f64>| -> Vec<(f64, f64)> {
            let mut turns = 0.0;
            let mut points = vec![(0.0, 0.0)];
            for pair in ends[..many.min(ends.len())].windows(2) {
                turns += libm::round((pair[1] - pair[0]) / turn);
                points.push((turns, pair[1] - ends[0]));
            }
            points
        };
        let lines: Vec<Vec<(f64, f64)>> = ends.iter().filter(|ends| ends.len() > 1).map(points).collect();
        let mut slopes: Vec<f64> = lines.iter().flat_map(|line| slopes(line)).collect();
        turn = middle(&mut slopes).unwrap_or(turn);
        if many >= longest {
            let offs = lines.iter().flat_map(|line| offs(line, turn));
            let mut offs: Vec<f64> = offs.collect();
            return (turn, middle(&mut offs).unwrap_or(0.0));
        }
        many = (many * 2).min(longest);
    }
}

/// Slopes between points at least a third of the range apart: few late answers do not change their median.
fn slopes(line: &[(f64, f64)]) -> Vec<f64> {
    let apart = (line.len() / 3).max(1);
    let each = (0..line.len()).flat_map(|a| (a + apart..line.len()).map(move |b| (line[a], line[b])));
    each.filter(|(a, b)| b.0 > a.0).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect()
}

/// Distances of points from the line with this slope through their middle.
fn offs(line: &[(f64, f64)], turn: f64) -> Vec<f64> {
    let mut offs: Vec<f64> = line.iter().map(|(turns, at)| at - turns * turn).collect();
    let base = middle(&mut offs).unwrap_or(0.0);
    offs.iter().map(|off| (off - base).abs()).collect()
}

/// The median of some values.
pub(crate) fn middle(values: &mut [f64]) -> Option<f64> {
    let at = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable_by(at, f64::total_cmp).1)
}

/// Checks that blocks can be read, up to the last.
async fn readable(disk: &Disk) -> Result<(), SpinError> {
    let sectors = disk.info().sectors;
    if sectors == 0 {
        return Err(SpinError::Empty);
    }
    let near_end: Vec<u64> = (0..20).map(|power| sectors.saturating_sub(1 << power)).collect();
    // The last block is read again, so that one failure does not shorten the disk.
    for _ in 0..LAST_READS {
        if is_readable(disk, sectors - 1).await {
            return Ok(());
        }
    }
    let mut bad = sectors - 1;
    let mut good = None;
    let others = near_end.iter().skip(1).copied();
    let lower = (1..48).map(|power| sectors >> power);
    for lbn in others.chain(lower).filter(|lbn| *lbn < sectors) {
        if is_readable(disk, lbn).await {
            good = Some(lbn);
            break;
        }
        bad = bad.min(lbn);
    }
    let Some(mut good) = good else { return Err(SpinError::Unreadable) };
    while bad - good > 1 {
        let half = good + (bad - good) / 2;
        if is_readable(disk, half).await { good = half } else { bad = half }
    }
    Err(SpinError::Short { reported: sectors, end: good + 1 })
}

async fn is_readable(disk: &Disk, lbn: u64) -> bool {
    disk.read(Lbn(lbn), 1).await.is_done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive::{self, ProbeTarget};
    use crate::simulated::{Noise, SimulatedDisk};
    use crate::{Answer, DiskInfo, Extraction, Outcome, Probe};
    use headstack_model::{Instant, drives};
    use std::convert::Infallible;

    fn of<D: ProbeTarget<Error = Infallible>>(disk: &mut D) -> Result<Spin, SpinError> {
        let mut extraction = Extraction::new(disk.info(), async |disk: Disk| spin(&disk).await);
        let found = drive::run(&mut extraction, disk, |_, _, _| true);
        found.expect("it cannot fail").expect("it is not cancelled")
    }

    /// A disk that answers by a function.
    struct Made<F> {
        info: DiskInfo,
        now: Instant,
        requested: Option<Probe>,
        answer: F,
    }

    impl<F: FnMut(Instant, u64) -> Option<Nanos>> ProbeTarget for Made<F> {
        type Error = Infallible;

        fn info(&self) -> DiskInfo {
            self.info
        }

        fn submit(&mut self, probe: Probe) -> Result<(), Infallible> {
            self.requested = Some(probe);
            Ok(())
        }

        fn wait(&mut self) -> Result<(Probe, Answer), Infallible> {
            let probe = self.requested.take().expect("one was asked");
            let ProbeCommand::Read { lbn, .. } = probe.command else { panic!("{probe:?} is no read") };
            let issued = self.now.max(probe.at);
            let took = (self.answer)(issued, lbn.0);
            self.now = issued + took.unwrap_or(Nanos(1_000_000));
            let outcome = if took.is_some() { Outcome::Done } else { Outcome::Failed };
            Ok((probe, Answer { issued, ended: self.now, outcome }))
        }
    }

    fn made(answer: impl FnMut(Instant, u64) -> Option<Nanos>) -> Result<Spin, SpinError> {
        let info = DiskInfo {
            sectors: 1_000_000,
            sector_bytes: 512,
            physical_sectors: 8,
            depth: 1,
            may_write: false,
            translates: false,
        };
        of(&mut Made { info, now: Instant::ZERO, requested: None, answer })
    }

    #[test]
    fn every_shipped_drive_speed_is_measured() {
        for (name, _) in drives::all() {
            let spec = drives::load(name).expect("it is shipped");
            let mut disk = SimulatedDisk::new(&spec, Noise::USUAL, 5).expect("it holds");
            let spin = of(&mut disk).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
            let rpm = spec.mechanics.rpm * (1.0 + spec.mechanics.rpm_deviation_percent / 100.0);
            let off = spin.rpm() / rpm - 1.0;
            assert!(off.abs() < 1e-5, "{}: {} rpm", spec.name, spin.rpm());
            assert!((2_000..20_000).contains(&spin.noise.0), "{}: {}", spec.name, spin.noise);
        }
    }

    #[test]
    fn device_shorter_than_reported_is_rejected() {
        let short = |end: u64| made(move |_, lbn| (lbn < end).then_some(Nanos(5_000_000)));
        for end in [999_999, 999_998, 999_993, 999_990, 900_001, 123_457, 3, 1] {
            assert_eq!(short(end), Err(SpinError::Short { reported: 1_000_000, end }));
        }
        assert_eq!(short(0), Err(SpinError::Unreadable));
    }

    #[test]
    fn device_without_rotation_is_rejected() {
        let no_turn = |found: Result<Spin, SpinError>| matches!(found, Err(SpinError::NoTurn { .. }));
        assert!(no_turn(made(|_, _| Some(Nanos(7_000_000)))), "equally long every time");
        let mut random = Pcg64Mcg::seed_from_u64(1);
        assert!(no_turn(made(|_, _| Some(Nanos(random.random_range(20_000_000..90_000_000))))));
    }

    #[test]
    fn one_failed_read_of_last_block_is_tolerated() {
        let mut failures = 1;
        let found = made(move |now, lbn| {
            if lbn == 999_999 && failures > 0 {
                failures -= 1;
                return None;
            }
            let turn = 5_000_000;
            Some(Nanos((lbn * 7919 + turn - now.0 % turn) % turn + turn))
        });
        assert!(found.is_ok(), "{found:?}");
    }

    #[test]
    fn failed_reads_are_not_counted_as_cached() {
        let mut number = 0;
        let found = made(move |_, lbn| {
            number += 1;
            (lbn == 999_999 || number % 2 == 0).then_some(Nanos(7_000_000))
        });
        assert_eq!(found, Err(SpinError::Failing { failed: READS / 2, reads: READS }));
    }

    #[test]
    fn device_answering_from_cache_is_rejected() {
        assert_eq!(made(|_, _| Some(Nanos(90_000))), Err(SpinError::Cached { blocks: 96, quick: QUICK }));
    }

    #[test]
    fn late_answers_do_not_halve_measured_turn() {
        let mut number = 0;
        let found = made(move |now, lbn| {
            number += 1;
            let turn = 5_000_000;
            let away = (lbn * 7919 + turn - now.0 % turn) % turn;
            let late = if number % 24 == 0 { 2_300_000 } else { 0 };
            Some(Nanos(away + turn + late))
        });
        let spin = found.expect("it turns");
        assert!((spin.turn_ns - 5e6).abs() < 100.0, "{}", spin.turn_ns);
    }

    #[test]
    fn turn_is_measured_behind_cache() {
        // It caches the last forty places read.
        let mut kept = std::collections::VecDeque::new();
        let found = made(move |now, lbn| {
            let is_kept = kept.contains(&lbn);
            kept.retain(|other| *other != lbn);
            kept.push_back(lbn);
            if kept.len() > 40 {
                kept.pop_front();
            }
            let turn = 8_333_333;
            let away = (lbn * 7919 + turn - now.0 % turn) % turn;
            Some(if is_kept { Nanos(90_000) } else { Nanos(away + 2 * turn) })
        });
        let spin = found.expect("it turns");
        assert!((spin.turn_ns - 8_333_333.0).abs() < 1.0, "{}", spin.turn_ns);
        assert_eq!(spin.blocks, 96);
    }
}
