//! How long requests wait, by the depth of the drive's queue.
//!
//! The load is thirty-two random readers. A request for which the drive has no free tag waits at the host, in order of arrival. The study's
//! curves are lost, so nothing here is judged.

use super::{HostRun, SMALL, play, random, rig, with_ncq};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Axis, Chart, Draw, Section, Series, Table};
use headstack_workload::Region;

const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

const STEPS: u32 = 200;

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let spec = with_ncq()?;
    let count = setting.length.pick(200_000, 10_000);
    let outcomes = setting.map(&DEPTHS, |depth| {
        let rig = rig(&spec, &[("host.queue.depth", &depth.to_string())])?;
        play(&rig, &mut random(Region::whole(spec.capacity_sectors), SMALL, 32, count, 1)?)
    })?;
    let tail = |outcome: &HostRun| outcome.responses.quantile_ms(0.999) / outcome.responses.mean_ms();
    let all = || DEPTHS.iter().zip(&outcomes);
    let measured = all()
        .map(|(depth, outcome)| Measured::new(format!("delay.depth_{depth}.p999_by_mean"), tail(outcome)));
    let columns = ["depth", "IOPS", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "longest ms", "p99.9 / mean"];
    let mut table = Table::new("Response times of 32 random readers", columns);
    for (depth, outcome) in all() {
        let responses = &outcome.responses;
        let numbers = [
            responses.rate(),
            responses.mean_ms(),
            responses.quantile_ms(0.5),
            responses.quantile_ms(0.99),
            responses.quantile_ms(0.999),
            responses.quantile_ms(1.0),
            tail(outcome),
        ];
        table.named_row([depth.to_string()], numbers);
    }
    let section = Section::new("Delay over queue depth")
        .with_text("4 KiB all over the HD400LD with NCQ, shortest positioning first. A deeper queue serves more, and the mean falls; \
             the slowest wait ever longer.")
        .with_chart(figure("Delay", "requests (%)", &outcomes, distribution))
        .with_chart(Chart {
                y: Axis::log("requests that took longer (%)"),
                ..figure("The slowest", "", &outcomes, slowest)
            })
        .with_table(table);
    Ok(Findings::new(measured.collect(), [section]))
}

fn figure(title: &str, y: &str, outcomes: &[HostRun], points: fn(&HostRun) -> Vec<(f64, f64)>) -> Chart {
    let line = |(family, outcome): (usize, &HostRun)| {
        Series::new(format!("depth {}", DEPTHS[family]), family, points(outcome)).with_draw(Draw::Line)
    };
    Chart::new(title, Axis::log("response time (ms)"), Axis::linear(y), outcomes.iter().enumerate().map(line))
}

/// The distribution of response times: the share of the requests in percent that took no longer than each time.
fn distribution(outcome: &HostRun) -> Vec<(f64, f64)> {
    let share = |step: u32| f64::from(step) / f64::from(STEPS);
    (1..=STEPS).map(|step| (outcome.responses.quantile_ms(share(step)), 100.0 * share(step))).collect()
}

/// The share of the requests in percent that took longer than each time, down to a thousandth of them.
fn slowest(outcome: &HostRun) -> Vec<(f64, f64)> {
    let shares = std::iter::successors(Some(1.0f64), |share| Some(share / 1.1));
    let shares = shares.take_while(|share| *share >= 1e-3);
    shares.map(|share| (outcome.responses.quantile_ms(1.0 - share), 100.0 * share)).collect()
}
