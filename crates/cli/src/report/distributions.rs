//! The chart of distributions of times.

use super::{Axis, Chart, Draw, Series};
use headstack_model::Nanos;

/// Number of points of a drawn distribution: enough for any screen.
const STEPS: usize = 1000;

/// The share of requests that took no longer than a time, a line for each named sample; `None` if a sample is empty.
pub(crate) fn distributions<'a>(
    title: &str,
    samples: impl IntoIterator<Item = (&'a str, Vec<Nanos>)>,
) -> Option<Chart> {
    let series = |(hue, (name, mut times)): (usize, (&str, Vec<Nanos>))| {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        let points = (0..=STEPS).map(|step| {
            let index = last * step / STEPS;
            (times[index].as_ms(), 100.0 * (index + 1) as f64 / times.len() as f64)
        });
        Some(Series::new(name, hue, points).with_draw(Draw::Line).with_dashes(hue > 0))
    };
    let series = samples.into_iter().enumerate().map(series).collect::<Option<Vec<_>>>()?;
    Some(Chart::new(title, Axis::linear("response time (ms)"), Axis::linear("requests (%)"), series))
}
