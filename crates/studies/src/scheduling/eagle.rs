//! The Fujitsu Eagle: every order on queues of 1 to 1,000.
//!
//! The shipped drive is that of the studies: 840 cylinders of 20 tracks of 67 sectors, 3,600 rpm, and the seek curve of the check. The
//! check has no overheads. The drive file assumes a head switch of 0.2 ms, which is therefore set to zero here.

use super::queue::{self, Case, Grid, OrderTimes, PUBLISHED};
use super::show;
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series};
use headstack_model::{DriveSpec, drives};

/// Time per request under FCFS, rounded; WSTF's longest allowed response is varied in multiples of it.
const TURN_MS: u32 = 30;

/// Queue lengths of the check's table.
const CHECKED: [u32; 4] = [1, 10, 100, 500];

/// Queue lengths at which the longest response allowed by WSTF is varied; the short form has only the first.
const WEIGHED: [u32; 3] = [100, 10, 1000];

/// The longest allowed response, in eighths of the time in which FCFS serves the whole queue.
const ALLOWED: [u32; 15] = [1, 2, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 64, 128, 256];

/// Mean seek and mean latency of the Seagate Medalist Pro in ms, from the thesis's table 3.
const MEDALIST_PRO_MS: (f64, f64) = (9.5, 5.58);

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let mut spec = drives::load("eagle-m2361a")?;
    spec.mechanics.head_switch_ms = 0.0;
    let grid = Grid::run(setting, &spec, queue::every(setting, checked_weight_ms))?;
    let weights = Weights::run(setting, &spec, &grid)?;
    Ok(Findings { measured: measure(&grid), sections: vec![orders(setting, &grid), weights.section()] })
}

/// The longest response that the check's WSTF allows on a queue of this length, in ms: 60 per request, and at least 4,000.
fn checked_weight_ms(length: u32) -> u32 {
    (60 * length).max(4000)
}

fn measure(grid: &Grid) -> Vec<Measured> {
    let mut all = Vec::new();
    let mut found = |metric: String, value: Option<f64>| {
        all.extend(value.map(|value| Measured::new(metric, value)));
    };
    for length in CHECKED {
        for (order, _) in PUBLISHED {
            let mean = grid.get(order, length).map(|outcome| outcome.mean_io_ms);
            found(format!("eagle.{order}.q{length}.mean_io_ms"), mean);
        }
        let order = if length == 1 { "fcfs" } else { "sptf" };
        found(format!("eagle.{order}.q{length}.utilisation_percent"), utilisation(grid, order, length));
    }
    for order in ["fcfs", "gstf", "wstf", "sptf"] {
        let longest = grid.get(order, 100).map(|outcome| outcome.longest_ms / 1e3);
        found(format!("eagle.{order}.q100.max_response_s"), longest);
    }
    for length in [10, 100, 500] {
        let below = grid.gain("c-look-cylinder", "sptf", length);
        found(format!("eagle.sptf-below-c-scan.q{length}_percent"), saved(below));
        found(format!("eagle.wstf.q{length}.loss_percent"), saved(grid.gain("wstf", "sptf", length)));
    }
    found("thesis.wstf-loss.q100_percent".to_string(), saved(grid.gain("wstf", "sptf", 100)));
    found("thesis.stf-like-c-scan.q100".to_string(), grid.gain("sptf", "c-look-cylinder", 100));
    let fcfs = grid.get("fcfs", 1);
    found("thesis.fcfs-positioning_ms".to_string(), fcfs.map(|fcfs| fcfs.seek_ms + fcfs.rotation_ms));
    let share = fcfs.map(|fcfs| 100.0 * fcfs.rotation_ms / (fcfs.seek_ms + fcfs.rotation_ms));
    found("thesis.rotation-share_percent".to_string(), share);
    let (seek_ms, latency_ms) = MEDALIST_PRO_MS;
    let share = 100.0 * latency_ms / (seek_ms + latency_ms);
    found("thesis.rotation-share.medalist-pro_percent".to_string(), Some(share));
    let long = grid.get("fcfs", 1000).zip(fcfs).map(|(long, short)| long.mean_io_ms / short.mean_io_ms);
    found("thesis.fcfs-independent".to_string(), long);
    found("thesis.gain.q100".to_string(), grid.gain("sptf", "fcfs", 100));
    found("seltzer.gain.q1000".to_string(), grid.gain("sptf", "fcfs", 1000));
    found("seltzer.wstf-gain.q1000".to_string(), grid.gain("wstf", "fcfs", 1000));
    for study in ["seltzer", "lfs"] {
        found(format!("{study}.utilisation.q1000_percent"), utilisation(grid, "sptf", 1000));
    }
    found("short-queue.gain.q2".to_string(), grid.gain("sptf", "fcfs", 2));
    all
}

fn utilisation(grid: &Grid, order: &str, length: u32) -> Option<f64> {
    grid.get(order, length).map(|outcome| 100.0 * outcome.utilisation)
}

/// What a speed below that of another saves, in percent.
fn saved(speed: Option<f64>) -> Option<f64> {
    speed.map(|speed| 100.0 * (1.0 - speed))
}

fn orders(setting: &Setting<'_>, grid: &Grid) -> Section {
    let mut figures = show::figures(grid);
    figures.push(differences(setting, grid));
    Section::new("Fujitsu Eagle: the order over the queue")
        .with_text("Random reads of 4 KiB. The order chooses from a queue of this length while one more request is served.")
        .with_text(show::other_names())
        .with_text("WSTF allows a response of 60 ms for each request of the queue, twice what FCFS takes for all of it, and no less than 4 s: the check's choice.")
        .with_charts(figures)
        .with_tables(show::tables(grid, queue::lengths(setting)))
}

/// Difference between our mean times and those of the check, in percent.
fn differences(setting: &Setting<'_>, grid: &Grid) -> Chart {
    let lines = PUBLISHED.iter().enumerate().map(|(family, (order, _))| {
        let point = |length: &u32| {
            let theirs = setting.published(&format!("eagle.{order}.q{length}.mean_io_ms"))?;
            let ours = grid.get(order, *length)?;
            Some((f64::from(*length), ours, theirs))
        };
        let points: Vec<_> = CHECKED.iter().filter_map(point).collect();
        Series::new(
            *order,
            family,
            points.iter().map(|(at, ours, theirs)| (*at, 100.0 * (ours.mean_io_ms / theirs - 1.0))),
        )
        .with_draw(Draw::Marks)
        .with_errors(points.iter().map(|(_, ours, theirs)| 100.0 * ours.half_width_ms / theirs))
    });
    Chart::new("Mean time an I/O, off the check's", show::queue_axis(), Axis::linear("%"), lines)
}

/// A longest response allowed to WSTF, and the results.
struct Weight {
    length: u32,
    allowed_s: f64,
    longest_s: f64,
    loss_percent: f64,
}

/// The throughput that WSTF loses and the longest response that results, over the longest response allowed.
struct Weights(Vec<Weight>);

impl Weights {
    fn run(setting: &Setting<'_>, spec: &DriveSpec, grid: &Grid) -> Result<Weights, StudyError> {
        let lengths = setting.length.pick(&WEIGHED[..], &WEIGHED[..1]);
        let cases = lengths.iter().flat_map(|length| {
            ALLOWED.iter().map(move |eighths| {
                let allowed_ms = f64::from(TURN_MS * length * eighths) / 8.0;
                (
                    allowed_ms / 1e3,
                    Case { order: "wstf", form: format!("wstf({allowed_ms})"), length: *length },
                )
            })
        });
        let (allowed, cases): (Vec<f64>, Vec<Case>) = cases.unzip();
        let ran = Grid::run(setting, spec, cases)?;
        let weight = |(allowed_s, (case, outcome)): (&f64, &(Case, OrderTimes))| {
            let sptf = grid.get("sptf", case.length)?;
            Some(Weight {
                length: case.length,
                allowed_s: *allowed_s,
                longest_s: outcome.longest_ms / 1e3,
                loss_percent: 100.0 * (1.0 - sptf.mean_io_ms / outcome.mean_io_ms),
            })
        };
        Ok(Weights(allowed.iter().zip(ran.cases()).filter_map(weight).collect()))
    }

    fn section(&self) -> Section {
        let figure = |title: &str, y: Axis, of: fn(&Weight) -> f64| {
            let lines = WEIGHED.iter().enumerate().map(|(family, length)| {
                let here = self.0.iter().filter(|weight| weight.length == *length);
                let points = here.map(|weight| (weight.allowed_s, of(weight)));
                Series::new(format!("queue {length}"), family, points)
            });
            let x = Axis::log("longest response allowed (s)");
            Chart::new(title, x, y, lines)
        };
        Section::new("Fujitsu Eagle: the weight of WSTF")
            .with_text("The longest response that WSTF allows, M, varied. Requests older than M go first, the oldest before the others, so that a small M makes it FCFS; a large one makes it STF.")
            .with_chart(figure("Throughput lost to STF", Axis::linear("%"), |weight| weight.loss_percent))
            .with_chart(figure("Longest response in 10,000 requests", Axis::log("s"), |weight| weight.longest_s))
    }
}
