//! Curves over the size of requests, in tracks.

use crate::figure::{Axis, Figure, Line};

/// What eighths of a track are in tracks.
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
) -> Line {
    let points = eighths.iter().map(|eighths| in_tracks(*eighths)).zip(values).collect();
    Line { name: name.into(), points, family, dashed, ..Line::default() }
}

/// Curves in one figure.
pub(super) fn figure(title: impl Into<String>, y: &str, lines: Vec<Line>) -> Figure {
    let x = Axis::log("request size (tracks)").with_ticks([0.125, 0.25, 0.5, 1.0, 2.0, 4.0]);
    Figure { title: title.into(), x, y: Axis::linear(y), lines }
}
