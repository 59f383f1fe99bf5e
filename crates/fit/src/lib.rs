//! *What does a trace tell about the disk?* Learns the numbers of a drive file from what a disk did.
//!
//! The requests of a trace are replayed on a simulated drive, whose numbers move until its response times have the distributions of the
//! measured ones, among requests that are alike: reads and writes, by their distance from the request before. A part of the trace is
//! held back: its error says how well the file predicts.
//!
//! *Source:* the measure is the demerit of Ruemmler and Wilkes 1994; the numbers move by Levenberg and Marquardt's method.

mod changes;
mod choices;
mod distance;
mod numbers;
mod observed;
mod replayed;
mod search;

pub use changes::{FitChange, write_changes};
pub use distance::FitError;
pub use observed::{LEAST_REQUESTS, ObservedRequest, ObservedTrace, TraceFault};
pub use replayed::replay;
pub use search::{Continues, FitProgress};

use headstack_model::DriveSpec;
use search::FitSearch;

/// Requests of a trace that the search sees; of a longer one, the numbers of the drive found are settled with all.
const SEARCHED: usize = 5_000;

/// The errors of the drive before the fit and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FitComparison {
    pub before: FitError,
    pub after: FitError,
}

/// What a fit found.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The drive.
    pub spec: DriveSpec,
    /// What it changed.
    pub changes: Vec<FitChange>,
    /// The errors on the requests that the fit saw.
    pub seen: FitComparison,
    /// The errors on those that were held back.
    pub held: FitComparison,
    /// Replays that it took.
    pub replays: usize,
}

impl Fitted {
    /// Whether the drive predicts the requests that were held back better than the drive at the start.
    pub fn is_better(&self) -> bool {
        self.held.after.demerit_ms <= self.held.before.demerit_ms
    }
}

/// Fits a drive to traces, of each of which it sees all but the last `hold_back`, a share. It ends early, with the best so far, when
/// `continues` says so. `None` if the drive at the start cannot be built.
pub fn fit(
    start: &DriveSpec,
    traces: &[ObservedTrace],
    hold_back: f64,
    continues: &Continues<'_>,
) -> Option<Fitted> {
    let split: Vec<usize> = traces.iter().map(|trace| trace.split(hold_back)).collect();
    let until = |most: usize| -> Vec<(&[ObservedRequest], usize)> {
        traces.iter().zip(&split).map(|(trace, place)| (&trace.requests[..(*place).min(most)], 0)).collect()
    };
    let short = FitSearch::new(&until(SEARCHED / traces.len().max(1)), continues);
    let whole = FitSearch::new(&until(usize::MAX), continues);
    // The disk remembers what came before.
    let held: Vec<_> =
        traces.iter().zip(&split).map(|(trace, place)| (&trace.requests[..], *place)).collect();
    let held = FitSearch::new(&held, continues);
    let mut spec = short.run(numbers::with_points(start));
    if split.iter().any(|place| *place > SEARCHED / traces.len().max(1)) {
        spec = whole.settle(spec);
    }
    let spec = whole.without_idle_changes(start, changes::rounded(start, &spec));
    let compare = |search: &FitSearch<'_>| {
        Some(FitComparison { before: search.error(start)?, after: search.error(&spec)? })
    };
    let (seen, held) = (compare(&whole)?, compare(&held)?);
    let mut changes = changes::differences(start, &spec);
    for change in &mut changes {
        let without = changes::without(&spec, change).and_then(|spec| whole.error(&spec));
        change.gain_ms = without.map_or(0.0, |error| error.total_ms - seen.after.total_ms);
    }
    Some(Fitted { changes, seen, held, replays: short.replays() + whole.replays(), spec })
}
