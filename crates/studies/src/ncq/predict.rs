//! How precisely a host predicts the completion times of a disk that it has probed.
//!
//! The prober learns a simulated disk from outside, through a noisy clock. The host then reads random blocks from the media, one at a time.
//! When it sends a read, it predicts its end from the probed drive file and from the phase of the spindle, which it tracks by the ends of
//! earlier reads. All reads count, including those whose answers are late.

use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Section, Table};
use headstack_model::{DriveSpec, Lbn, Nanos, Request, drives};
use headstack_probe::drive::{self, ProbeTarget};
use headstack_probe::learn::{electronics, mechanics};
use headstack_probe::simulated::{Noise, SimulatedDisk};
use headstack_probe::{Disk, Extraction, lattice, spec};
use headstack_streams::position::{DriveModel, PositionEstimator};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A disk without a queue, one of 15,000 rpm, and one with NCQ that occasionally loses turns.
const DRIVES: [&str; 3] = ["wd800jd", "cheetah-x15", "st2000dm006"];

/// Blocks of a read.
const SECTORS: u32 = 8;

/// Reads that do not count, in which the host finds the phase.
const WARM_UP: usize = 200;

/// Seed of the noise and of the blocks read.
const SEED: u64 = 11;

/// Errors of predictions, in turns.
struct PredictionErrors {
    name: &'static str,
    /// Absolute errors, ascending.
    sorted: Vec<f64>,
    period: Nanos,
}

impl PredictionErrors {
    fn quantile(&self, share: f64) -> f64 {
        let last = self.sorted.len().saturating_sub(1);
        self.sorted.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    /// Share of the reads that were served in the predicted turn.
    fn same_turn(&self) -> f64 {
        self.sorted.partition_point(|error| *error < 0.5) as f64 / self.sorted.len() as f64
    }

    fn rows(&self) -> [Measured; 3] {
        let metric = |what: &str, value| Measured::new(format!("predict.{}.{what}", self.name), value);
        [
            metric("median", 100.0 * self.quantile(0.5)),
            metric("p90", 100.0 * self.quantile(0.9)),
            metric("same_turn", self.same_turn()),
        ]
    }
}

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let reads = setting.length.pick(5_000, 500);
    let found = setting.map(&DRIVES, |name| errors(name, reads))?;
    let columns =
        ["drive", "median us", "p90 us", "p99 us", "median, % of a turn", "p90", "in the turn predicted"];
    let mut table = Table::new("Errors of the predicted service of random reads", columns);
    for errors in &found {
        let us = |share: f64| errors.quantile(share) * errors.period.as_us();
        let turns = |share: f64| 100.0 * errors.quantile(share);
        let numbers = [us(0.5), us(0.9), us(0.99), turns(0.5), turns(0.9), errors.same_turn()];
        table.named_row([errors.name.to_string()], numbers);
    }
    let section = Section::new("Exact timing from a probe")
        .with_text(
            "Each drive is probed through a noisy clock (8 us, one answer in 200 up to 3 ms late). Then random reads of 4 KiB from the media, \
             one at a time, are predicted when they are sent. An error of a turn is a sector that the arm just missed or just met.",
        )
        .with_table(table);
    Ok(Findings::new(found.iter().flat_map(PredictionErrors::rows).collect(), [section]))
}

/// Probes a drive, then predicts `reads` random reads.
fn errors(name: &'static str, reads: usize) -> Result<PredictionErrors, StudyError> {
    let mut disk = SimulatedDisk::new(&drives::load(name)?, Noise::USUAL, SEED)?;
    let file = probed(name, &mut disk)?;
    let estimator = PositionEstimator::new(DriveModel::new(&file)?);
    let mut extraction = Extraction::new(disk.info(), |handle: Disk| predict(handle, estimator, reads));
    let Ok(found) = drive::run(&mut extraction, &mut disk, |_, _, _| true);
    let period = Nanos((60e9 / file.mechanics.rpm) as u64);
    let turns = |error: &Nanos| error.0 as f64 / period.0 as f64;
    let mut sorted: Vec<f64> = found.expect("the callback never stops it").iter().map(turns).collect();
    sorted.sort_by(f64::total_cmp);
    Ok(PredictionErrors { name, sorted, period })
}

/// The drive file that the prober makes without writing to the disk.
fn probed(name: &str, disk: &mut SimulatedDisk) -> Result<DriveSpec, StudyError> {
    let info = disk.info();
    let named = name.to_string();
    let mut extraction = Extraction::new(info, async move |handle: Disk| {
        let lattice = lattice::extract(handle.clone()).await.map_err(|error| error.to_string())?;
        let mechanics = mechanics(handle.clone(), &lattice).await;
        let turn = 60e9 / mechanics.rpm;
        let electronics = electronics(handle, lattice.map, turn).await.map_err(|error| error.to_string())?;
        spec::drive_file(&named, &info, &mechanics, &electronics).map_err(|error| error.to_string())
    });
    let Ok(found) = drive::run(&mut extraction, disk, |_, _, _| true);
    found.expect("the callback never stops it").map_err(|error| StudyError::Input(format!("{name}: {error}")))
}

/// Prediction errors for the ends of random reads.
async fn predict(disk: Disk, mut estimator: PositionEstimator, reads: usize) -> Vec<Nanos> {
    let mut random = Pcg64Mcg::seed_from_u64(SEED);
    let sectors = disk.info().sectors;
    let mut errors = Vec::with_capacity(reads);
    for read in 0..WARM_UP + reads {
        let block = random.random_range(0..sectors / u64::from(SECTORS));
        let request = Request::read(Lbn(block * u64::from(SECTORS)), SECTORS);
        let answer = disk.read(request.lbn, SECTORS).await;
        // The prediction uses the time of sending only.
        let predicted = estimator.predict(answer.issued, &request);
        estimator.issued(answer.issued, 0, &request);
        estimator.completed(answer.ended, 0, answer.is_done());
        if let Some(predicted) = predicted.filter(|_| read >= WARM_UP) {
            errors.push(Nanos(answer.ended.0.abs_diff(predicted.ends.0)));
        }
    }
    errors
}
