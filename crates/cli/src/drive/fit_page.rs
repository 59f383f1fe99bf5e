//! The page of a fit: distributions of the requests that were held back, measured and simulated before and after.

use crate::report::{Chart, Report, Section, Table, distributions};
use headstack_fit::{ObservedRequest, replay};
use headstack_model::{DriveSpec, Nanos, Op};

/// Times of a request: measured, simulated with the drive at the start, simulated with the fitted one.
type Times = [Nanos; 3];

/// The page for traces, each with the place from which its requests were held back, the drive at the start and the fitted one, and the
/// tables of the command.
pub(super) fn page(
    held: &[(&[ObservedRequest], usize)],
    drives: [&DriveSpec; 2],
    tables: [Table; 2],
) -> Report {
    let mut times: Vec<(Op, Times)> = Vec::new();
    for (requests, from) in held {
        let [before, after] = drives.map(|drive| replay(drive, requests).unwrap_or_default());
        let simulated = before.into_iter().zip(after);
        let all = requests.iter().zip(simulated);
        times.extend(
            all.skip(*from).map(|(one, (before, after))| (one.request.op, [one.response, before, after])),
        );
    }
    let kinds = [("All requests", None), ("Reads", Some(Op::Read)), ("Writes", Some(Op::Write))];
    let charts = kinds.into_iter().filter_map(|(title, op)| distribution(title, &times, op));
    let [keys, errors] = tables;
    Report {
        title: format!("{}: fitted", drives[1].title),
        text: vec!["The requests that were held back, replayed on the drive at the start and on the fitted one.".to_string()],
        sections: vec![
            Section::new("Response times")
                .with_text("The share of requests that took no longer than a time. Demerit is the rms horizontal distance between two lines.")
                .with_charts(charts)
                .with_table(errors),
            Section::new("What changed")
                .with_text("The error without a change is that of the requests that the fit saw, with the value before.")
                .with_table(keys),
        ],
    }
}

fn distribution(title: &str, times: &[(Op, Times)], op: Option<Op>) -> Option<Chart> {
    let chosen = times.iter().filter(|(of, _)| op.is_none_or(|op| *of == op));
    let samples = ["measured", "start", "fitted"].into_iter().enumerate();
    let samples =
        samples.map(|(place, name)| (name, chosen.clone().map(|(_, times)| times[place]).collect()));
    distributions(title, samples)
}
