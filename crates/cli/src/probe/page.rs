//! The results as a report, for `--report`.

use super::{Outcome, findings, text};
use crate::report::{Axis, Chart, Draw, Report, Section, Series, Table};
use headstack_probe::lattice::{Lattice, LatticeRun};
use headstack_probe::learn::{LearnedElectronics, SeekPoint, Seeks};
use headstack_tracks::{Run, TrackMap};

/// Maximum number of parts of a disk in charts: about the number of columns that a chart has on a screen.
const PARTS: u64 = 1200;

/// Minimum number of tracks in a part. With fewer, the skews between them would dominate.
const TRACKS: u64 = 40;

/// Maximum dots of a chart.
const DOTS: usize = 4000;

/// Number of runs whose angles are shown in detail.
const CLOSE: usize = 160;

pub(super) fn report(outcome: &Outcome) -> Report {
    let found = &outcome.found;
    let mut sections = vec![summary(outcome)];
    let turn_ns = found.spin.map(|spin| spin.turn_ns);
    if let (Some(map), Some(turn_ns)) = (&found.map, turn_ns) {
        let bytes = f64::from(outcome.disk.info.sector_bytes);
        let runs = found.lattice.as_ref().map_or(&[][..], |lattice| &lattice.runs);
        sections.push(zones(map, runs, bytes, turn_ns));
    }
    sections.extend(found.mechanics.as_ref().map(|learned| seeks(&learned.seeks)));
    sections.extend(found.lattice.as_ref().map(phases));
    sections.extend(found.electronics.as_ref().map(electronics));
    Report {
        title: outcome.disk.name.clone(),
        text: vec!["What headstack learned of it from the times of its answers.".to_string()],
        sections,
    }
}

fn summary(outcome: &Outcome) -> Section {
    let mut table = Table::new("What was learned", &["", ""]).with_words(2);
    text::lines(outcome).into_iter().for_each(|(name, value)| table.row([name.to_string(), value]));
    Section::new("Summary").with_table(table)
}

/// A part of the disk: its first block in millions, and minimum, mean and maximum of a value over its tracks.
struct Part {
    at: f64,
    least: f64,
    mean: f64,
    most: f64,
}

/// Combines values of runs of blocks into parts of `size` blocks.
fn parts(runs: &mut dyn Iterator<Item = (Run, f64)>, size: u64) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut held = 0.0;
    for (run, value) in runs {
        let (mut first, run_end) = (run.first.0, run.end().0);
        while first < run_end {
            let next = (first / size * size + size).min(run_end);
            let (at, blocks) = ((first / size * size) as f64 / 1e6, (next - first) as f64);
            match parts.last_mut().filter(|part| part.at == at) {
                Some(part) => {
                    part.mean = (part.mean * held + value * blocks) / (held + blocks);
                    (part.least, part.most) = (part.least.min(value), part.most.max(value));
                    held += blocks;
                }
                None => {
                    parts.push(Part { at, least: value, mean: value, most: value });
                    held = blocks;
                }
            }
            first = next;
        }
    }
    parts
}

/// The means of the parts as a step line, up to the end of the disk.
fn means(name: &str, hue: usize, parts: &[Part], end: u64) -> Series {
    let mut points: Vec<(f64, f64)> = parts.iter().map(|part| (part.at, part.mean)).collect();
    points.extend(parts.last().map(|part| (end as f64 / 1e6, part.mean)));
    Series::new(name, hue, points).with_draw(Draw::Steps)
}

/// The means of the parts, and dots for the shortest and longest track of a part whose tracks differ.
fn sizes(parts: &[Part], end: u64) -> Vec<Series> {
    let dots = |name: &str, hue: usize, value: fn(&Part) -> f64| {
        let apart = parts.iter().filter(|part| part.most - part.least > 1e-6 * part.most);
        let points: Vec<(f64, f64)> = apart.map(|part| (part.at, value(part))).collect();
        Series::new(name, hue, points).with_draw(Draw::Dots)
    };
    let least = dots("fewest on a track", 1, |part| part.least);
    let most = dots("most on a track", 2, |part| part.most);
    let all = [means("mean", 0, parts, end), least, most];
    all.into_iter().filter(|series| !series.points.is_empty()).collect()
}

fn zones(map: &TrackMap, runs: &[LatticeRun], bytes: f64, turn_ns: f64) -> Section {
    let end = map.end().0;
    let longest = map.runs().iter().map(|run| u64::from(run.sectors)).max().unwrap_or(1);
    let size = end.div_ceil(PARTS).max(TRACKS * longest);
    let parts = |values: &mut dyn Iterator<Item = (Run, f64)>| parts(values, size);
    let held = parts(&mut map.runs().iter().map(|run| (*run, f64::from(run.sectors))));
    let mb_s = |sectors: f64, turns: f64| sectors * bytes / (turns * turn_ns) * 1e3;
    let mut passing = map.runs().iter().map(|run| (*run, mb_s(f64::from(run.sectors), 1.0)));
    let mut long =
        runs.iter().map(|found| (found.run, mb_s(f64::from(found.run.sectors), turns_a_track(found))));
    let rates =
        [("while a track passes", parts(&mut passing)), ("long reads, skew included", parts(&mut long))];
    let x = || Axis::linear("LBN (millions)");
    let met = rates.iter().enumerate().filter(|(_, (_, parts))| !parts.is_empty());
    let series = met.map(|(hue, (name, parts))| means(name, hue, parts, end));
    Section::new("Zone map")
        .with_text("From the first block to the last; means of parts of the disk of equal size.")
        .with_chart(Chart::new("Sectors a track", x(), Axis::linear("blocks"), sizes(&held, end)))
        .with_chart(Chart::new("Bandwidth", x(), Axis::linear("MB/s"), series))
}

/// Turns from the start of a track to the start of the next one in a sequential read.
fn turns_a_track(found: &LatticeRun) -> f64 {
    let over = f64::from(found.run.sectors) / found.turn;
    found.skew + (over - found.skew).ceil()
}

fn seeks(seeks: &Seeks) -> Section {
    let curve = |name: &str, hue: usize, points: &[SeekPoint]| {
        Series::new(name, hue, points.iter().map(|point| (f64::from(point.distance), point.time.as_ms())))
            .with_dashes(hue > 0)
    };
    let chart = |title: &str, x: Axis| {
        let series = vec![curve("read", 0, &seeks.reads), curve("write", 1, &seeks.writes)];
        Chart::new(
            title,
            x,
            Axis::linear("ms"),
            series.into_iter().filter(|series| !series.points.is_empty()),
        )
    };
    Section::new("Seek curve")
        .with_text("Time from one cylinder to another, settling included, rotation and commands not.")
        .with_chart(chart("All distances", Axis::linear("distance (cylinders)")))
        .with_chart(chart("Short distances in view", Axis::log("distance (cylinders)")))
}

fn electronics(learned: &LearnedElectronics) -> Section {
    Section::new("Electronics")
        .with_text("Keys of a drive file, and whether the answers showed their values.")
        .with_table(findings::table(learned))
}

/// Angles at which runs begin.
fn phases(lattice: &Lattice) -> Section {
    let runs = &lattice.runs;
    let dot = |found: &LatticeRun| (found.run.first.0 as f64 / 1e6, found.angle);
    let dots = |name: &str, points: Vec<(f64, f64)>| Series::new(name, 0, points).with_draw(Draw::Dots);
    let every = runs.len().div_ceil(DOTS).max(1);
    let all = runs.iter().step_by(every).map(dot).collect();
    let close: Vec<(f64, f64)> = runs.iter().take(CLOSE).map(dot).collect();
    let skew = |found: &LatticeRun| (found.run.first.0 as f64 / 1e6, found.skew);
    let skews = runs.iter().step_by(every).map(skew).collect();
    let chart = |title: &str, y: &str, points| {
        Chart::new(title, Axis::linear("LBN (millions)"), Axis::linear(y), [dots(y, points)])
    };
    Section::new("Phases")
        .with_text("A run is a stretch of equal tracks; a dot is where its first sector begins, as a part of a turn. Lines of dots are \
             regular; what leaves them is a defect, a spare or the edge of a zone.")
        .with_chart(chart("Angle at which runs begin", "turns", all))
        .with_chart(chart("The first of them", "turns", close))
        .with_chart(chart("Skew from track to track", "turns a track", skews))
}

#[cfg(test)]
mod tests {
    use super::*;
    use headstack_model::Lbn;

    #[test]
    fn rotations_per_track_of_a_long_read_follow_the_skew() {
        let run = Run { first: Lbn(0), sectors: 100, tracks: 9 };
        let turns = |skew: f64, turn: f64| turns_a_track(&LatticeRun { run, angle: 0.0, skew, turn });
        assert_eq!(turns(0.125, 100.0), 1.125);
        assert_eq!(turns(-0.25, 100.0), 1.75);
        assert_eq!(turns(-0.0625, 110.0), 0.9375);
    }

    #[test]
    fn part_mean_is_weighted_by_blocks() {
        let run = |first, sectors, tracks| Run { first: Lbn(first), sectors, tracks };
        let runs = [(run(0, 30, 1), 10.0), (run(30, 10, 2), 20.0), (run(50, 5, 12), 4.0)];
        let parts = parts(&mut runs.into_iter(), 100);
        let found: Vec<_> = parts.iter().map(|part| (part.at, part.least, part.mean, part.most)).collect();
        assert_eq!(found, [(0.0, 4.0, 9.0, 20.0), (0.0001, 4.0, 4.0, 4.0)]);
    }
}
