//! Requests of a track's length on drives of today, with tracks of one to two MB, at three places of each.

use super::access::{Access, AccessTimes, Place, Size};
use super::curves::{figure, line};
use crate::judge::Measured;
use crate::study::{Findings, Setting, StudyError};
use headstack::report::{Chart, Section, Table};
use headstack_model::drives;
use headstack_model::spec::{DriveSpec, ZeroLatency};

const DRIVES: [&str; 4] = ["exos-x16", "exos-x18", "toshiba-x300", "st2000dm006"];

/// Positions on the disk, and the share of the disk that is read there.
const PLACES: [(&str, f64); 3] = [("outer", 0.0), ("middle", 0.5), ("inner", 0.95)];
const SHARE: f64 = 0.05;

const EIGHTHS: [u32; 8] = [1, 2, 4, 6, 8, 12, 16, 32];

/// A drive as its file describes it, or with access on arrival within a track.
pub(super) const RULES: [(&str, ZeroLatency); 2] =
    [("as-is", ZeroLatency::None), ("on-arrival", ZeroLatency::WithinTrack)];

pub(super) fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let requests = setting.length.pick(5000, 1000);
    let mut cases = Vec::new();
    for drive in DRIVES {
        for place in PLACES {
            cases.extend(RULES.map(|rule| (drive, place, rule)));
        }
    }
    let outcomes = setting.map(&cases, |(drive, (_, from), (_, rule))| {
        let place = place(drive, *from, *rule)?;
        let run = |aligned, depth| place.run(Access::reads(aligned, depth), requests);
        Ok([run(true, 1)?, run(false, 1)?, run(true, 2)?, run(false, 2)?])
    })?;
    let columns = [
        "drive",
        "place",
        "zero latency",
        "track KiB",
        "onereq aligned ms",
        "unaligned ms",
        "less %",
        "tworeq aligned ms",
        "unaligned ms",
        "less %",
        "deviation aligned ms",
        "unaligned ms",
    ];
    let mut table = Table::new("Reads of a whole track", columns).with_words(3);
    let mut measured = Vec::new();
    for ((drive, (at, _), (rule, _)), [one, one_off, two, two_off]) in cases.iter().zip(&outcomes) {
        table.named_row(
            [*drive, *at, if *rule == "as-is" { "no" } else { "yes" }],
            [
                two.kib,
                one.head_ms,
                one_off.head_ms,
                one.reduction_of(one_off),
                two.head_ms,
                two_off.head_ms,
                two.reduction_of(two_off),
                one.deviation_ms,
                one_off.deviation_ms,
            ],
        );
        if *at == "outer" {
            let metric = format!("modern.{drive}.{rule}.tworeq.reduction");
            measured.push(Measured::new(metric, two.reduction_of(two_off)));
        }
    }
    let section = Section::new("Drives of today")
        .with_text("Random reads within a twentieth of each drive: at its start, in its middle and at its end. No drive of today is known \
             to read on arrival, and the drive files do not; the comparison shows what they would gain if they did, within \
             one track.")
        .with_chart(curves(setting, requests, "Efficiency over the request's size", "efficiency (%)", AccessTimes::efficiency)?)
        .with_chart(curves(setting, requests, "Standard deviation of the response", "deviation (ms)", |outcome, _| {
                outcome.deviation_ms
            })?)
        .with_table(table);
    Ok(Findings::new(measured, [section]))
}

fn place(drive: &str, from: f64, rule: ZeroLatency) -> Result<Place, StudyError> {
    let mut spec: DriveSpec = drives::load(drive)?;
    spec.mechanics.zero_latency_read = rule;
    Place::part(spec, from, SHARE)
}

/// One drive's curves at its start, with one request outstanding.
fn curves(
    setting: &Setting<'_>,
    requests: u64,
    title: &str,
    y: &str,
    of: impl Fn(&AccessTimes, f64) -> f64,
) -> Result<Chart, StudyError> {
    let mut lines = Vec::new();
    for (family, (name, rule)) in RULES.into_iter().enumerate() {
        let place = place(DRIVES[0], 0.0, rule)?;
        for (word, aligned) in [("aligned", true), ("unaligned", false)] {
            let outcomes = setting.map(&EIGHTHS, |eighths| {
                place.run(Access { size: Size::Eighths(*eighths), ..Access::reads(aligned, 1) }, requests)
            })?;
            let name = match name {
                "as-is" => word.to_string(),
                _ => format!("{word}, if it read on arrival"),
            };
            let values = outcomes.iter().map(|outcome| of(outcome, place.turn_ms));
            lines.push(line(name, &EIGHTHS, values, family, !aligned));
        }
    }
    Ok(figure(format!("{title}: {}", DRIVES[0]), y, lines))
}
