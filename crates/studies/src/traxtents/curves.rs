//! Curves over the size of requests, in tracks.

use headstack::report::{Axis, Chart, Series};

/// A number of eighths of a track, in tracks.
pub(super) fn in_tracks(eighths: u32) -> f64 {
    f64::from(eighths) / 8.0
}

/// One curve: a value for each of these sizes, in eighths of a track.
pub(super) fn line(
    name: impl Into<String>,
    eighths: &[u32],
    values: impl Iterator<Item = f64>,
    family: usize,
    dashed: bool,
) -> Series {
    let points = eighths.iter().map(|eighths| in_tracks(*eighths)).zip(values);
    Series::new(name, family, points).with_dashes(dashed)
}

/// Curves in one figure.
pub(super) fn figure(title: impl Into<String>, y: &str, lines: Vec<Series>) -> Chart {
    let x = Axis::log("request size (tracks)").with_ticks([0.125, 0.25, 0.5, 1.0, 2.0, 4.0]);
    Chart::new(title, x, Axis::linear(y), lines)
}
