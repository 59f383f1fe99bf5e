//! What each table is computed from.

use crate::Inputs;
use headstack_model::drives;
use headstack_sim::stats::{Agreement, ClassAgreement};
use headstack_studies::report::Table;
use headstack_studies::study::{self, Alone, Length, Reproduction};
use headstack_studies::validation;
use std::fs;
use std::path::Path;

/// Computes a table; none where the folder that it needs was not given.
type Generate = fn(&Inputs) -> Result<Option<String>, String>;

/// The tables by name.
pub(crate) const TABLES: [(&str, Generate); 3] = [
    ("real-drives", real_drives),
    ("synthetic-loads", synthetic_loads),
    ("st2000dm006", |_| st2000dm006().map(Some)),
];

/// A drive of [`validation::TRACES`] as the table names it, and the demerits of DiskSim 4.0 of reads and writes apart, in ms.
///
/// *Source:* DiskSim's own run of `valid/runvalid`, recomputed request by request. It aborts on the ST41601N.
const DRIVES: [(&str, &str); 7] = [
    ("Atlas 10K", "0.385, 0.175"),
    ("Cheetah 9LP", "0.123, 0.161"),
    ("Ultrastar 18ES", "0.165, 0.061"),
    ("HP C2247A", "0.149, 0.124"),
    ("HP C3323A", "0.246, 0.774"),
    ("DEC RZ26", "0.273, 1.060"),
    ("ST41601N", "–"),
];

#[allow(clippy::disallowed_methods, reason = "the traces are files")]
fn agreement(drive: &str, trace: &str, folder: &Path) -> Result<Agreement, String> {
    let path = folder.join(trace);
    let place = path.display();
    let bytes = fs::read(&path).map_err(|error| format!("{place}: {error}"))?;
    let spec = drives::load(drive).map_err(|error| error.to_string())?;
    validation::agreement(&spec, trace, &bytes).map_err(|error| error.to_string())
}

fn real_drives(inputs: &Inputs) -> Result<Option<String>, String> {
    let Some(folder) = &inputs.traces else { return Ok(None) };
    let columns = [
        "drive",
        "requests",
        "mean ms, measured → simulated",
        "demerit ms",
        "DiskSim",
        "MAE ms",
        "DiskSim",
        "within 10 %",
        "demerit of reads, writes",
        "DiskSim",
    ];
    let mut table = Table::new("Real drives", columns);
    let study = study::named("validation").map_err(|error| error.to_string())?;
    let published = study.expected().map_err(|error| error.to_string())?;
    for ((drive, trace), (title, disksim_classes)) in validation::TRACES.into_iter().zip(DRIVES) {
        let disksim = |figure: &str, decimals: usize| {
            let row = published.iter().find(|row| row.metric == format!("{drive} {figure}"));
            row.and_then(|row| row.value).map_or("–".to_string(), |value| format!("{value:.decimals$}"))
        };
        let (demerit, mae) = (disksim("demerit bucketed", 4), disksim("mae", 3));
        let agreement = agreement(drive, trace, folder)?;
        let all = &agreement.all;
        let demerit_of =
            |class: &Option<ClassAgreement>| class.as_ref().map_or(0.0, |class| class.demerit_ms);
        let (reads, writes) = (demerit_of(&agreement.reads), demerit_of(&agreement.writes));
        table.row([
            title.to_string(),
            all.requests.to_string(),
            format!("{:.3} → {:.3}", all.mean_measured_ms, all.mean_simulated_ms),
            format!("{:.4}", all.demerit_bucketed_ms),
            demerit,
            format!("{:.3}", all.mae_ms),
            mae,
            format!("{:.1} %", 100.0 * all.within_10_percent),
            format!("{reads:.3}, {writes:.3}"),
            disksim_classes.to_string(),
        ]);
    }
    Ok(Some(table.to_markdown()))
}

/// Mean absolute errors of the synthetic loads as shares of their mean response time, by drive, with the shipped drive files.
#[allow(clippy::disallowed_methods, reason = "the loads are files")]
fn synthetic_loads(inputs: &Inputs) -> Result<Option<String>, String> {
    let Some(folder) = &inputs.oracle else { return Ok(None) };
    let columns = ["drive", "loads", "agree", "largest error of those", "do not agree"];
    let mut table = Table::new("Synthetic loads", columns);
    let mut files: Vec<String> = fs::read_dir(folder)
        .map_err(|error| format!("{}: {error}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    files.sort();
    for (disksim_name, drive) in validation::ORACLE_DRIVES {
        let (mut agree, mut largest, mut others) = (0, 0.0f64, Vec::new());
        let is_own = |file: &&String| file.split('.').next() == Some(disksim_name);
        for file in files.iter().filter(is_own) {
            let all = agreement(drive, file, folder)?.all;
            let error = all.mae_ms / all.mean_measured_ms;
            if error <= validation::ORACLE_AGREES {
                (agree, largest) = (agree + 1, largest.max(error));
            } else {
                let load = file.split('.').nth(1).unwrap_or_default();
                others.push(format!("`{load}` ({:.1} %)", 100.0 * error));
            }
        }
        let title = drives::load(drive).map_err(|error| error.to_string())?.title;
        let (loads, largest) = (agree + others.len(), format!("{:.3} %", 100.0 * largest));
        table.row([title, loads.to_string(), agree.to_string(), largest, others.join(", ")]);
    }
    Ok(Some(table.to_markdown()))
}

/// `published / simulated` of this metric, with four digits of ours.
fn compared(done: &Reproduction, metric: &str) -> Result<String, String> {
    let row = done.rows.iter().find(|row| row.expected.metric == metric);
    let values = row.and_then(|row| row.expected.value.zip(row.ours));
    let (published, ours) = values.ok_or_else(|| format!("the study has no value of {metric}"))?;
    let decimals = (3 - ours.abs().log10().floor() as i32).clamp(0, 3) as usize;
    let ours = format!("{ours:.decimals$}");
    let ours = if ours.contains('.') { ours.trim_end_matches('0').trim_end_matches('.') } else { &ours };
    Ok(format!("{published} / {ours}"))
}

fn st2000dm006() -> Result<String, String> {
    let study = study::named("st2000dm006").map_err(|error| error.to_string())?;
    let done = study.reproduce(Length::Full, &Alone).map_err(|error| error.to_string())?;
    let mut table = Table::new("ST2000DM006", ["measured / simulated", ""]);
    let depths: Vec<String> =
        [1, 2, 4, 8, 16, 32].map(|depth| format!("random_read_qd{depth}_iops")).to_vec();
    let depths: Vec<&str> = depths.iter().map(String::as_str).collect();
    let quantiles: Vec<String> = [1, 10, 50, 90, 99].map(|p| format!("random_read_qd1_p{p}_ms")).to_vec();
    let quantiles: Vec<&str> = quantiles.iter().map(String::as_str).collect();
    let rows: [(&str, &[&str]); 5] = [
        ("random reads at depth 1, 2, 4, 8, 16, 32 (IOPS)", &depths),
        ("response at depth 1: p1, p10, p50, p90, p99 (ms)", &quantiles),
        ("sequential reads, writes (MB/s)", &["sequential_read_mb_s", "sequential_write_mb_s"]),
        ("random writes (IOPS)", &["random_write_iops"]),
        ("FLUSH after 8, 64 random writes (ms)", &["flush_after_8_ms", "flush_after_64_ms"]),
    ];
    for (what, metrics) in rows {
        let pairs: Result<Vec<String>, String> =
            metrics.iter().map(|metric| compared(&done, metric)).collect();
        table.row([what.to_string(), pairs?.join(", ")]);
    }
    Ok(table.to_markdown())
}
