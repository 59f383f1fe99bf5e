//! Do simulated drives answer as the real ones did? Seven traces with measured response times, replayed one request at
//! a time, beside what DiskSim 4.0 reaches on them.
//!
//! The traces lie in `$HEADSTACK_REFERENCE/disksim/traces`; without that variable there is nothing to replay. What is
//! expected, and what is missed, stands in `studies/validation/expect.tsv`.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_model::{Op, drives};
use headstack_sim::stats::{Agreement, ClassAgreement, Pair};
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::VolumeInfo;
use headstack_workload::trace::{self, Kind, Record, Replay, ReplayOptions, Trace};
use std::path::Path;

const EXPECTED: &str = include_str!("../../../studies/validation/expect.tsv");

/// Drive and trace.
const TRACES: [(&str, &str); 7] = [
    ("atlas-10k", "atlas10k"),
    ("cheetah-9lp", "cheetah9LP"),
    ("ultrastar-18es", "ibm18es"),
    ("hp-c2247a", "hp_c2247a"),
    ("hp-c3323a", "hp_c3323a"),
    ("dec-rz26", "dec_rz26"),
    ("st41601n", "st41601n"),
];

/// What a drive is judged by: the name of the figure, and where it is found.
type Figure = (&'static str, fn(&ClassAgreement) -> f64);

const FIGURES: [Figure; 3] = [
    ("demerit bucketed", |all| all.demerit_bucketed_ms),
    ("demerit exact", |all| all.demerit_ms),
    ("mae", |all| all.mae_ms),
];

#[test]
fn do_real_drives_agree_at_least_as_well_as_in_disksim() {
    let Some(folder) = std::env::var_os("HEADSTACK_REFERENCE") else {
        eprintln!("skipped: HEADSTACK_REFERENCE names no folder with real drives' traces");
        return;
    };
    let traces = Path::new(&folder).join("disksim/traces");
    let limits = limits();
    let (mut wrong, mut judged) = (Vec::new(), 0);
    for (drive, trace) in TRACES {
        let agreement = agreement(drive, &traces.join(format!("{trace}.trace")));
        show(drive, "all", &agreement.all);
        show("", "reads", agreement.reads.as_ref().expect("every trace reads"));
        show("", "writes", agreement.writes.as_ref().expect("every trace writes"));
        for (figure, of) in FIGURES {
            let (limit, reached) = (limits.find(drive, figure, ""), limits.find(drive, figure, " reached"));
            judged += usize::from(limit.is_some()) + usize::from(reached.is_some());
            let value = of(&agreement.all);
            let verdict = Verdict::new(value, limit, reached);
            let disksim = limit.map_or("-".to_string(), |limit| limit.to_string());
            println!("    {figure:16} {value:.4} ms, DiskSim {disksim:6}  {}", verdict.text());
            if matches!(verdict, Verdict::Worse | Verdict::Outdated) {
                wrong.push(format!("{drive} {figure}: {value:.4} ms is {}", verdict.text()));
            }
        }
    }
    assert_eq!(judged, limits.0.len(), "rows of expect.tsv that no trace is judged by");
    assert_eq!(wrong, Vec::<String>::new());
}

/// How a figure compares with its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// No larger than DiskSim's.
    Met,
    /// DiskSim has no figure; no larger than ours was.
    Alone,
    /// Larger than DiskSim's, and known to be.
    Miss,
    /// Larger than DiskSim's or than ours was.
    Worse,
    /// Met by now, but still kept as a miss.
    Outdated,
}

impl Verdict {
    fn new(value: f64, limit: Option<f64>, reached: Option<f64>) -> Verdict {
        let met = |bound: Option<f64>| bound.is_some_and(|bound| value <= bound);
        match (met(limit), met(reached)) {
            (true, _) if reached.is_some() => Verdict::Outdated,
            (true, _) => Verdict::Met,
            (false, true) if limit.is_some() => Verdict::Miss,
            (false, true) => Verdict::Alone,
            (false, false) => Verdict::Worse,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Alone => "no larger than it was",
            Verdict::Miss => "MISS, known",
            Verdict::Worse => "WORSE than expect.tsv allows",
            Verdict::Outdated => "met by now: take its `reached` row out of expect.tsv",
        }
    }
}

#[test]
fn is_a_miss_never_taken_for_a_figure_that_is_met() {
    assert_eq!(Verdict::new(0.5, Some(0.5), None), Verdict::Met);
    assert_eq!(Verdict::new(0.6, Some(0.5), None), Verdict::Worse);
    assert_eq!(Verdict::new(0.6, Some(0.5), Some(0.6)), Verdict::Miss);
    assert_eq!(Verdict::new(0.7, Some(0.5), Some(0.6)), Verdict::Worse);
    assert_eq!(Verdict::new(0.5, Some(0.5), Some(0.6)), Verdict::Outdated);
    assert_eq!(Verdict::new(0.5, None, Some(0.6)), Verdict::Alone);
    assert_eq!(Verdict::new(0.5, None, None), Verdict::Worse);
    assert_eq!(Verdict::new(f64::NAN, Some(0.5), None), Verdict::Worse);
}

/// Metric and bound of each row of `expect.tsv`.
struct Limits(Vec<(&'static str, f64)>);

impl Limits {
    fn find(&self, drive: &str, figure: &str, suffix: &str) -> Option<f64> {
        let name = format!("{drive} {figure}{suffix}");
        self.0.iter().find(|(metric, _)| *metric == name).map(|(_, bound)| *bound)
    }
}

fn limits() -> Limits {
    let rows = EXPECTED.lines().filter(|line| !line.starts_with('#')).skip(1);
    let parse = |row: &'static str| match row.split('\t').collect::<Vec<_>>()[..] {
        [metric, "at-most", bound, "0", "ms", source] if !source.is_empty() => {
            (metric, bound.parse().expect("the bound is a number"))
        }
        _ => panic!("not metric, at-most, bound, 0, ms and source: {row}"),
    };
    Limits(rows.map(parse).collect())
}

fn agreement(drive: &str, trace: &Path) -> Agreement {
    let spec = drives::load(drive).unwrap_or_else(|error| panic!("{error}"));
    let bytes = std::fs::read(trace).unwrap_or_else(|error| panic!("{}: {error}", trace.display()));
    let open = || Trace::open(&bytes[..], drive, trace::named("validate")).expect("it is in memory");
    let records: Vec<Record> =
        open().collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{}: {error}", trace.display()));
    let volume = VolumeInfo {
        name: drive.to_string(),
        sectors: spec.capacity_sectors,
        sector_bytes: spec.sector_bytes,
    };
    let mut replay = Replay::new(open(), &[volume], ReplayOptions::default());
    let device = Device::new(&spec, &DeviceOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut simulated = Vec::with_capacity(records.len());
    Engine::new(vec![device]).run(&mut replay, &mut |finished| {
        simulated.push(finished.completion.response());
    });
    assert_eq!(simulated.len(), records.len(), "{drive}: every request completes");
    let pairs: Vec<Pair> = records
        .iter()
        .zip(simulated)
        .map(|(record, simulated)| Pair {
            op: if record.kind == Kind::Read { Op::Read } else { Op::Write },
            measured: record.response.expect("a validation trace has them"),
            simulated,
        })
        .collect();
    Agreement::new(&pairs).expect("the trace holds requests")
}

fn show(drive: &str, class: &str, of: &ClassAgreement) {
    println!(
        "{drive:14} {class:6} n {:5}  mean {:6.3} -> {:6.3} ms  demerit {:.4} bucketed, {:.4} exact  mae {:.4}, median \
         {:.3} ms  within 10 % {:4.1} %  r {:.3}",
        of.requests,
        of.mean_measured_ms,
        of.mean_simulated_ms,
        of.demerit_bucketed_ms,
        of.demerit_ms,
        of.mae_ms,
        of.median_ae_ms,
        of.within_10_percent * 100.0,
        of.correlation.unwrap_or(f64::NAN),
    );
}
