//! Tables of traces: real drives, DiskSim's synthetic loads and its whole set-ups.

use crate::Inputs;
use headstack::report::Table;
use headstack_model::drives;
use headstack_sim::stats::{Agreement, ClassAgreement};
use headstack_studies::set_ups::{self, SET_UPS};
use headstack_studies::{study, validation};
use std::fs;
use std::path::Path;

/// Each drive of [`validation::TRACES`] by its name in the table, and the demerits of DiskSim 4.0 for reads and for writes, in ms.
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
fn read(folder: &Path, trace: &str) -> Result<Vec<u8>, String> {
    let path = folder.join(trace);
    fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn agreement(drive: &str, trace: &str, folder: &Path) -> Result<Agreement, String> {
    let bytes = read(folder, trace)?;
    let spec = drives::load(drive).map_err(|error| error.to_string())?;
    validation::agreement(&spec, trace, &bytes).map_err(|error| error.to_string())
}

pub(super) fn real_drives(inputs: &Inputs) -> Result<Option<String>, String> {
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
pub(super) fn synthetic_loads(inputs: &Inputs) -> Result<Option<String>, String> {
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

pub(super) fn set_ups(inputs: &Inputs) -> Result<Option<String>, String> {
    let Some(folder) = &inputs.traces else { return Ok(None) };
    let columns = ["rig and trace", "requests counted", "mean response ms", "DiskSim ms", "difference"];
    let mut table = Table::new("Whole set-ups", columns);
    for set_up in SET_UPS {
        let counted =
            set_ups::replay(&set_up, &read(folder, set_up.trace)?).map_err(|error| error.to_string())?;
        let mean = counted.mean_ms();
        table.row([
            format!("`{}`, `{}`: {}", set_up.rig, set_up.trace, set_up.title),
            format!("{} of {}", counted.requests, set_up.records),
            format!("{mean:.3}"),
            format!("{:.3}", set_up.disksim_ms),
            format!("{:+.2} %", 100.0 * (mean / set_up.disksim_ms - 1.0)),
        ]);
    }
    Ok(Some(table.to_markdown()))
}
