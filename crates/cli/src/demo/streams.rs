//! Second experiment: many sequential streams on a disk with its cache.

use super::{Bench, Experiment, drive};
use crate::failure::Failure;
use crate::report::{Axis, Chart, Draw, Section, Series, Table};
use crate::units::significant;
use headstack::{AccessPattern, PatternSpec};
use headstack_model::DriveSpec;
use headstack_sim::DeviceOptions;

const DRIVE: &str = "wd800jd";
const STREAMS_MAX: u32 = 100;
const KIB: u64 = 1024;

pub(super) const EXPERIMENT: Experiment = Experiment { runs: 3 * STREAMS_MAX as usize, section };

/// One kind of reader on one kind of drive.
struct Line {
    name: &'static str,
    mb_s: Vec<f64>,
}

/// How firmware reads ahead while another stream's request waits is not published. So the section shows both cases: the drive fills the
/// segment first, or it stops at once.
fn section(bench: &Bench) -> Result<Section, Failure> {
    bench.announce("streams");
    let spec = drive(DRIVE)?;
    let mut filling = spec.clone();
    filling.cache.read_ahead_min_sectors = filling.cache.read_ahead_max_sectors;
    let mut yielding = spec.clone();
    yielding.cache.read_ahead_min_sectors = 0;
    let lines = [
        line(bench, "64 KiB reads, read-ahead fills a segment", &filling, 64 * KIB)?,
        line(bench, "64 KiB reads, read-ahead gives way", &yielding, 64 * KIB)?,
        line(bench, "1 MiB reads", &yielding, 1024 * KIB)?,
    ];
    let segments = spec.cache.segments;
    let at = |line: &Line, streams: u32| significant(line.mb_s[streams.min(STREAMS_MAX) as usize - 1], 3);
    let finding = format!(
        "The cache has {segments} segments, one for each stream's read-ahead. Filled before the arm moves on, they carry {segments} streams at {} MB/s together; one stream more pushes out data not fetched yet, and {} MB/s are left. Reads of 1 MiB need no read-ahead: {} MB/s at {STREAMS_MAX} streams.",
        at(&lines[0], segments),
        at(&lines[0], segments + 1),
        at(&lines[2], STREAMS_MAX),
    );
    let streams = (1..=STREAMS_MAX).map(f64::from);
    let series = lines.iter().enumerate().map(|(hue, line)| {
        Series::new(line.name, hue, streams.clone().zip(line.mb_s.iter().copied()))
            .with_draw(Draw::Line)
            .with_dashes(hue == 1)
    });
    Ok(Section::new("Sequential streams: a disk and its cache")
        .with_text(format!(
            "{}: readers spaced evenly over the disk, each with one request outstanding.",
            spec.title
        ))
        .with_text(finding)
        .with_chart(Chart::new("All streams together", Axis::linear("streams"), Axis::linear("MB/s"), series))
        .with_table(table(&lines)))
}

fn line(bench: &Bench, name: &'static str, spec: &DriveSpec, size: u64) -> Result<Line, Failure> {
    let mut line = Line { name, mb_s: Vec::new() };
    for streams in 1..=STREAMS_MAX {
        let load = PatternSpec {
            request_bytes: Some(size),
            streams,
            // Long enough that the first request of each stream, a miss, has little weight.
            count: u64::from(streams) * 50 + 1000,
            ..PatternSpec::closed(AccessPattern::Streams, 1)
        };
        line.mb_s.push(bench.run(spec, &DeviceOptions::default(), load)?.bandwidth_mb_s());
    }
    Ok(line)
}

fn table(lines: &[Line]) -> Table {
    const SHOWN: [u32; 9] = [1, 2, 5, 10, 20, 32, 33, 50, 100];
    let headings =
        SHOWN.map(|streams| if streams == 1 { "1 stream".to_string() } else { streams.to_string() });
    let columns: Vec<&str> = std::iter::once("").chain(headings.iter().map(String::as_str)).collect();
    let mut table = Table::new("All streams together (MB/s)", &columns);
    for line in lines {
        let cells = SHOWN.map(|streams| significant(line.mb_s[streams as usize - 1], 3));
        table.row(std::iter::once(line.name.to_string()).chain(cells));
    }
    table
}
