//! Real drives of the 1990s: traces with measured response times, replayed one request at a time. The errors are compared with those of
//! DiskSim 4.0 with the same parameters.
//!
//! The traces are not part of Headstack: they are the validation data of DiskSim 4.0, `valid/` in Western Digital's
//! release of it. Without them the rows are not comparable.

use crate::judge::Measured;
use crate::study::{Findings, Setting, Study, StudyError};
use headstack::report::{Section, Table};
use headstack::validation::replay;
use headstack_model::{DriveSpec, drives};
use headstack_sim::stats::{Agreement, ClassAgreement};
use headstack_workload::trace::{self, Trace};

pub(crate) const STUDY: Study = Study {
    id: "validation",
    title: "Seven real drives, request by request",
    summary: "Traces of measured response times, replayed, compared with DiskSim 4.0; needs the traces (--traces).",
    expect: include_str!("../studies/validation/expect.tsv"),
    run,
};

/// Name of each drive, and of the file with its trace.
pub const TRACES: [(&str, &str); 7] = [
    ("atlas-10k", "atlas10k.trace"),
    ("cheetah-9lp", "cheetah9LP.trace"),
    ("ultrastar-18es", "ibm18es.trace"),
    ("hp-c2247a", "hp_c2247a.trace"),
    ("hp-c3323a", "hp_c3323a.trace"),
    ("dec-rz26", "dec_rz26.trace"),
    ("st41601n", "st41601n.trace"),
];

/// DiskSim's names of the drives whose synthetic loads it has replayed, and ours.
pub const ORACLE_DRIVES: [(&str, &str); 10] = [
    ("atlas10k", "atlas-10k"),
    ("atlas_III", "atlas-iii"),
    ("barracuda", "barracuda-st32171w"),
    ("cheetah4LP", "cheetah-4lp"),
    ("cheetah9LP", "cheetah-9lp"),
    ("dec_rz26", "dec-rz26"),
    ("hp_c2247a", "hp-c2247a"),
    ("hp_c2490a", "hp-c2490a"),
    ("hp_c3323a", "hp-c3323a"),
    ("ibm18es", "ultrastar-18es"),
];

/// Largest mean absolute error at which a synthetic load agrees with DiskSim, as a share of its mean response time.
pub const ORACLE_AGREES: f64 = 0.01;

/// The figures by which a drive is judged: the name, and the way to compute it.
type Judge = (&'static str, fn(&ClassAgreement) -> f64);

const FIGURES: [Judge; 3] = [
    ("demerit bucketed", |all| all.demerit_bucketed_ms),
    ("demerit exact", |all| all.demerit_ms),
    ("mae", |all| all.mae_ms),
];

fn run(setting: &Setting<'_>) -> Result<Findings, StudyError> {
    let mut files = Vec::new();
    for (drive, name) in TRACES {
        files.push((drive, name, read(setting, name)?));
    }
    let agreements = setting.map(&files, |(drive, name, bytes)| match bytes {
        Some(bytes) => Ok(Some(agreement(&drives::load(drive)?, name, bytes)?)),
        None => Ok(None),
    })?;
    let mut findings = Findings::default();
    let mut table = table();
    for ((drive, name, _), agreement) in files.iter().zip(&agreements) {
        for row in setting.rows {
            let Some(figure) = row.metric.strip_prefix(drive).and_then(|rest| rest.strip_prefix(' ')) else {
                continue;
            };
            let Some((_, of)) = FIGURES.iter().find(|(known, _)| *known == figure) else { continue };
            findings.measured.push(match agreement {
                Some(agreement) => Measured::new(&row.metric, of(&agreement.all)),
                None => Measured::left_out(&row.metric, format!("{name} is not at hand (--traces)")),
            });
        }
        if let Some(agreement) = agreement {
            show(drive, agreement, &mut table);
        }
    }
    if !table.rows.is_empty() {
        let text = "One request outstanding. The demerit is the rms distance between the two distributions.";
        findings.sections.push(Section::new("Agreement").with_text(text).with_table(table));
    }
    Ok(findings)
}

fn read(setting: &Setting<'_>, name: &str) -> Result<Option<Vec<u8>>, StudyError> {
    let Some(mut reader) = setting.bench.open(name).map_err(StudyError::Input)? else { return Ok(None) };
    let mut bytes = Vec::new();
    let done = reader.read_to_end(&mut bytes);
    done.map_err(|error| StudyError::Input(format!("{name}: {error}")))?;
    Ok(Some(bytes))
}

/// How far a drive agrees with a trace of its response times, from the bytes of the file `name`.
///
/// *Errors:* the trace is malformed or empty, or does not fit on the drive.
pub fn agreement(spec: &DriveSpec, name: &str, bytes: &[u8]) -> Result<Agreement, StudyError> {
    let open = || Trace::open(bytes, name, trace::named("validate")).map_err(input);
    let pairs = replay(spec, open()?, open()?)?;
    Agreement::new(&pairs).ok_or_else(|| StudyError::Input(format!("{name}: the trace is empty")))
}

fn input(error: impl ToString) -> StudyError {
    StudyError::Input(error.to_string())
}

fn table() -> Table {
    Table::new(
        "Reads and writes apart",
        [
            "drive",
            "requests",
            "n",
            "measured ms",
            "simulated ms",
            "demerit ms",
            "bucketed ms",
            "MAE ms",
            "median AE ms",
            "within 10 %",
        ],
    )
    .with_words(2)
}

fn show(drive: &str, agreement: &Agreement, table: &mut Table) {
    let classes = [
        ("all", Some(&agreement.all)),
        ("reads", agreement.reads.as_ref()),
        ("writes", agreement.writes.as_ref()),
    ];
    for (class, of) in classes {
        let Some(of) = of else { continue };
        table.named_row(
            [drive, class],
            [
                of.requests as f64,
                of.mean_measured_ms,
                of.mean_simulated_ms,
                of.demerit_ms,
                of.demerit_bucketed_ms,
                of.mae_ms,
                of.median_ae_ms,
                100.0 * of.within_10_percent,
            ],
        );
    }
}
