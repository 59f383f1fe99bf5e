//! Third experiment: reads aligned to tracks against unaligned reads.
//!
//! *Source:* the set-up of Schindler, Griffin, Lumb and Ganger, "Track-aligned extents" (FAST 2002), section 5.1: random reads within the
//! first zone, one outstanding or always one more in the queue; head time is the time from one to the next.

use super::{Bench, Experiment, drive};
use crate::failure::Failure;
use crate::report::{Axis, Chart, Section, Series, Table};
use crate::survey::Survey;
use crate::units::significant;
use headstack::{AccessPattern, PatternSpec};
use headstack_model::{DriveSpec, Geometry, Mechanics};
use headstack_sim::DeviceOptions;

const DRIVE: &str = "atlas-10k-ii";
const REQUESTS: u64 = 5000;
/// Sizes, in eighths of a track.
const SIZES: [u32; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 32];
const LINES: [(&str, AccessPattern, u32); 4] = [
    ("aligned, depth 1", AccessPattern::Aligned, 1),
    ("aligned, depth 2", AccessPattern::Aligned, 2),
    ("unaligned, depth 1", AccessPattern::Unaligned, 1),
    ("unaligned, depth 2", AccessPattern::Unaligned, 2),
];

pub(super) const EXPERIMENT: Experiment = Experiment { runs: LINES.len() * SIZES.len(), section };

struct Zone {
    sectors: u64,
    sectors_per_track: u32,
    turn_ms: f64,
}

/// The results of one kind of read at each size.
struct Line {
    name: &'static str,
    head_ms: Vec<f64>,
    efficiency: Vec<f64>,
}

fn section(bench: &Bench) -> Result<Section, Failure> {
    bench.announce("tracks");
    let spec = drive(DRIVE)?;
    let zone = zone(&spec)?;
    let lines = LINES.iter().map(|line| measure(bench, &spec, &zone, line)).collect::<Result<Vec<_>, _>>()?;
    let whole = SIZES.iter().position(|size| *size == 8).expect("whole tracks are among the sizes");
    let [aligned, unaligned] = [1, 3].map(|index| lines[index].head_ms[whole]);
    let kib = u64::from(zone.sectors_per_track) * u64::from(spec.sector_bytes) / 1024;
    let finding = format!(
        "A track holds {kib} KiB and passes in {} ms. At depth 2 a whole track takes {} ms aligned and {} ms unaligned: {:.0} % less, because the head switch and the wait for the first sector fall away.",
        significant(zone.turn_ms, 3),
        significant(aligned, 3),
        significant(unaligned, 3),
        100.0 * (1.0 - aligned / unaligned),
    );
    Ok(Section::new("Whole tracks: aligned reads or not")
        .with_text(format!("{}: random reads within the first zone, one or two outstanding.", spec.title))
        .with_text(finding)
        .with_chart(chart(
            "Efficiency: share of time in which wanted data pass",
            "efficiency (%)",
            &lines,
            |line| &line.efficiency,
        ))
        .with_chart(chart("Head time: from one request to the next", "head time (ms)", &lines, |line| {
            &line.head_ms
        }))
        .with_table(table("Efficiency (%)", &lines, |line| &line.efficiency))
        .with_table(table("Head time (ms)", &lines, |line| &line.head_ms)))
}

fn zone(spec: &DriveSpec) -> Result<Zone, Failure> {
    let geometry = Geometry::new(spec).map_err(Failure::input)?;
    let first = Survey::new(spec, &geometry).parts[0];
    let turn_ms = Mechanics::new(spec).spindle().period().as_ms();
    Ok(Zone { sectors: first.sectors, sectors_per_track: first.least, turn_ms })
}

fn measure(
    bench: &Bench,
    spec: &DriveSpec,
    zone: &Zone,
    (name, pattern, depth): &(&'static str, AccessPattern, u32),
) -> Result<Line, Failure> {
    let mut line = Line { name, head_ms: Vec::new(), efficiency: Vec::new() };
    for eighths in SIZES {
        let sectors = zone.sectors_per_track * eighths / 8;
        let options = DeviceOptions { seed: 1, depth: Some(*depth), order: None };
        let load = PatternSpec {
            request_bytes: Some(u64::from(sectors) * u64::from(spec.sector_bytes)),
            within_sectors: Some(zone.sectors),
            count: REQUESTS,
            ..PatternSpec::closed(*pattern, *depth)
        };
        let head_ms = 1e3 / bench.run(spec, &options, load)?.iops();
        let passing_ms = f64::from(sectors) / f64::from(zone.sectors_per_track) * zone.turn_ms;
        line.head_ms.push(head_ms);
        line.efficiency.push(100.0 * passing_ms / head_ms);
    }
    Ok(line)
}

fn tracks(eighths: u32) -> f64 {
    f64::from(eighths) / 8.0
}

fn chart(title: &str, y: &str, lines: &[Line], values: fn(&Line) -> &Vec<f64>) -> Chart {
    let series = lines.iter().enumerate().map(|(index, line)| {
        Series::new(
            line.name,
            index / 2,
            SIZES.iter().map(|size| tracks(*size)).zip(values(line).iter().copied()),
        )
        .with_dashes(index % 2 == 0)
    });
    Chart::new(
        title,
        Axis::log("request size (tracks)").with_ticks([0.125, 0.25, 0.5, 1.0, 2.0, 4.0]),
        Axis::linear(y),
        series,
    )
}

fn table(title: &str, lines: &[Line], values: fn(&Line) -> &Vec<f64>) -> Table {
    const SHOWN: [u32; 7] = [1, 2, 4, 8, 12, 16, 32];
    let headings = SHOWN.map(|size| match size {
        8 => "1 track".to_string(),
        size if size % 8 == 0 => format!("{} tracks", size / 8),
        size => format!("{} track", tracks(size)),
    });
    let columns: Vec<&str> = std::iter::once("").chain(headings.iter().map(String::as_str)).collect();
    let mut table = Table::new(title, &columns);
    for line in lines {
        let value = |size: &u32| SIZES.iter().position(|s| s == size).map(|index| values(line)[index]);
        let cells = SHOWN.iter().map(|size| significant(value(size).expect("shown sizes are measured"), 3));
        table.row(std::iter::once(line.name.to_string()).chain(cells));
    }
    table
}
