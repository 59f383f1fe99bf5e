//! Requests of a track's length on drives of today, with tracks of one to two MB, at three places of each.

use super::Part;
use super::access::{Access, Outcome, Place, Size};
use crate::figure::{Axis, Cell, Figure, Line, Section, Table};
use crate::judge::Measured;
use crate::study::{Setting, StudyError};
use headstack_model::drives;
use headstack_model::spec::{DriveSpec, ZeroLatency};

const DRIVES: [&str; 4] = ["exos-x16", "exos-x18", "toshiba-x300", "st2000dm006"];

/// How far into the disk, and how much of it is read there.
const PLACES: [(&str, f64); 3] = [("outer", 0.0), ("middle", 0.5), ("inner", 0.95)];
const SHARE: f64 = 0.05;

/// Sizes of the curves.
const EIGHTHS: [u32; 8] = [1, 2, 4, 6, 8, 12, 16, 32];

/// A drive as its file has it, or as if it read on arrival.
const RULES: [(&str, ZeroLatency); 2] =
    [("as-is", ZeroLatency::None), ("on-arrival", ZeroLatency::WithinTrack)];

pub(super) fn run(setting: &Setting<'_>) -> Result<Part, StudyError> {
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
    let mut table = Table::new("Reads of a whole track", columns);
    table.words = 3;
    let mut measured = Vec::new();
    for ((drive, (at, _), (rule, _)), [one, one_off, two, two_off]) in cases.iter().zip(&outcomes) {
        let less = |with: &Outcome, of: &Outcome| 100.0 * (1.0 - with.head_ms / of.head_ms);
        table.row([
            Cell::from(*drive),
            Cell::from(*at),
            Cell::from(if *rule == "as-is" { "no" } else { "yes" }),
            two.kib.into(),
            one.head_ms.into(),
            one_off.head_ms.into(),
            less(one, one_off).into(),
            two.head_ms.into(),
            two_off.head_ms.into(),
            less(two, two_off).into(),
            one.deviation_ms.into(),
            one_off.deviation_ms.into(),
        ]);
        if *at == "outer" {
            measured
                .push(Measured::new(format!("modern.{drive}.{rule}.tworeq.reduction"), less(two, two_off)));
        }
    }
    let section = Section {
        title: "Drives of today".to_string(),
        text: vec![
            "Random reads within a twentieth of each drive: at its start, in its middle and at its end. No drive of today is known \
             to read on arrival, and the drive files do not; beside them stands what they would gain if they did, within \
             one track."
                .to_string(),
        ],
        figures: vec![
            figure(setting, requests, "Efficiency over the request's size", "efficiency (%)", |outcome, turn_ms| {
                100.0 * outcome.turns * turn_ms / outcome.head_ms
            })?,
            figure(setting, requests, "Standard deviation of the response", "deviation (ms)", |outcome, _| {
                outcome.deviation_ms
            })?,
        ],
        tables: vec![table],
    };
    Ok((measured, vec![section]))
}

fn place(drive: &str, from: f64, rule: ZeroLatency) -> Result<Place, StudyError> {
    let mut spec: DriveSpec = drives::load(drive)?;
    spec.mechanics.zero_latency_read = rule;
    Place::part(spec, from, SHARE)
}

/// One drive's curves at its start, one outstanding.
fn figure(
    setting: &Setting<'_>,
    requests: u64,
    title: &str,
    y: &str,
    of: impl Fn(&Outcome, f64) -> f64,
) -> Result<Figure, StudyError> {
    let mut lines = Vec::new();
    for (family, (name, rule)) in RULES.into_iter().enumerate() {
        let place = place(DRIVES[0], 0.0, rule)?;
        for (word, aligned) in [("aligned", true), ("unaligned", false)] {
            let outcomes = setting.map(&EIGHTHS, |eighths| {
                place.run(Access { size: Size::Eighths(*eighths), ..Access::reads(aligned, 1) }, requests)
            })?;
            let points = EIGHTHS.iter().zip(&outcomes);
            let points =
                points.map(|(eighths, outcome)| (f64::from(*eighths) / 8.0, of(outcome, place.turn_ms)));
            let name = match name {
                "as-is" => word.to_string(),
                _ => format!("{word}, if it read on arrival"),
            };
            lines.push(Line { name, points: points.collect(), family, dashed: !aligned, ..Line::default() });
        }
    }
    let x = Axis::log("request size (tracks)").with_ticks([0.125, 0.25, 0.5, 1.0, 2.0, 4.0]);
    Ok(Figure { title: format!("{title}: {}", DRIVES[0]), x, y: Axis::linear(y), lines })
}
