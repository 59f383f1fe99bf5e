//! `headstack drive plot`: zone map and seek curve as a report.

use crate::catalog;
use crate::failure::Failure;
use crate::files;
use crate::report::{self, Axis, Chart, Draw, Report, Section, Series, Table};
use crate::survey::{Part, Survey};
use crate::units::{capacity, grouped, significant};
use headstack_model::{DriveSpec, Geometry, Mechanics, TrackPlace};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Draw a drive's zone map and seek curve into one self-contained HTML file.
#[derive(clap::Args)]
pub(crate) struct Plot {
    /// A shipped drive or a drive file.
    #[arg(value_name = "NAME|FILE")]
    drive: String,
    /// Where to write the page. [default: the name of the drive or of its file, with .html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Plot {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let spec = catalog::load(&self.drive)?;
        let geometry = Geometry::new(&spec).map_err(Failure::input)?;
        let file = catalog::file_name(&self.drive);
        let report = Report {
            title: spec.title.clone(),
            text: vec![format!(
                "{}, {} rpm, drive file {file}.",
                capacity(spec.capacity_bytes()),
                spec.mechanics.rpm
            )],
            sections: vec![zones(&Survey::new(&spec, &geometry)), seeks(&spec)],
        };
        let path = self.output.clone().unwrap_or_else(|| PathBuf::from(&file).with_extension("html"));
        files::check_apart(&[Path::new(&self.drive)], &[("--output", Some(&path))])?;
        files::write_whole(&path, report::to_html(&report).as_bytes())?;
        writeln!(out, "{}", path.display())?;
        Ok(())
    }
}

pub(crate) fn zones(survey: &Survey) -> Section {
    let parts = &survey.parts;
    let x = || Axis::linear("LBN (millions)");
    let steps = |name: &str, hue: usize, value: &dyn Fn(&Part) -> f64| {
        let at = |part: &Part, lbn: u64| (lbn as f64 / 1e6, value(part));
        let mut points: Vec<(f64, f64)> = parts.iter().map(|part| at(part, part.first)).collect();
        points.extend(parts.last().map(|part| at(part, part.first + part.sectors)));
        Series::new(name, hue, points).with_draw(Draw::Steps).with_dashes(hue > 1)
    };
    let mut density = vec![steps("mean", 0, &Part::density)];
    if parts.iter().any(|part| part.least < part.most) {
        density.push(steps("least", 2, &|part| f64::from(part.least)));
        density.push(steps("most", 3, &|part| f64::from(part.most)));
    }
    let speed = vec![
        steps("while a track passes", 0, &|part| survey.media_mb_s(part)),
        steps("long reads, skew included", 1, &|part| survey.streaming_mb_s(part)),
    ];
    Section::new("Zone map")
        .with_text("From the first block, at the rim, to the last.")
        .with_chart(Chart::new("Media rate", x(), Axis::linear("MB/s"), speed))
        .with_chart(Chart::new("Density", x(), Axis::linear("sectors per track"), density))
        .with_table(zone_table(survey))
}

fn zone_table(survey: &Survey) -> Table {
    let columns = ["first LBN", "sectors", "tracks", "sectors per track", "media MB/s", "long reads MB/s"];
    let mut table = Table::new("Zones", &columns).with_words(0);
    for part in &survey.parts {
        table.row([
            grouped(part.first),
            grouped(part.sectors),
            grouped(part.tracks),
            significant(part.density(), 4),
            significant(survey.media_mb_s(part), 3),
            significant(survey.streaming_mb_s(part), 3),
        ]);
    }
    table
}

pub(crate) fn seeks(spec: &DriveSpec) -> Section {
    let mechanics = Mechanics::new(spec);
    let curve = |name: &str, hue: usize, write: bool| {
        Series::new(
            name,
            hue,
            distances(spec.geometry.cylinders).into_iter().map(|distance| {
                let to = TrackPlace { cylinder: distance, ..TrackPlace::default() };
                (f64::from(distance), mechanics.reposition(TrackPlace::default(), to, write).as_ms())
            }),
        )
        .with_draw(Draw::Line)
        .with_dashes(write)
    };
    let chart = |title: &str, x: Axis| {
        Chart::new(title, x, Axis::linear("ms"), [curve("read", 0, false), curve("write", 1, true)])
    };
    Section::new("Seek curve")
        .with_text(
            "Time from one cylinder to another, settling included. Head switches and rotation come on top.",
        )
        .with_chart(chart("All distances", Axis::linear("distance (cylinders)")))
        .with_chart(chart("Short distances in view", Axis::log("distance (cylinders)")))
}

/// The seek distances at which a curve is drawn: every short one, then at growing intervals.
fn distances(cylinders: u32) -> Vec<u32> {
    let mut distances = Vec::new();
    let mut distance = 1;
    while distance < cylinders {
        distances.push(distance);
        distance += (distance / 40).max(1);
    }
    distances.extend((cylinders > 1 && distances.last() != Some(&(cylinders - 1))).then_some(cylinders - 1));
    distances
}
