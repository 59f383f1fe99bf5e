//! The table of DiskSim's synthetic set-ups.

use crate::Inputs;
use headstack::report::Table;
use headstack_studies::set_ups::synthetic::{self, SYNTHETIC};
use std::fs;

#[allow(clippy::disallowed_methods, reason = "the parameter files are files")]
pub(super) fn set_ups(inputs: &Inputs) -> Result<Option<String>, String> {
    let Some(folder) = &inputs.disksim else { return Ok(None) };
    let read = |path: &str| {
        let path = folder.join(path);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let columns =
        ["set-up", "seeds", "mean response ms (least, median and greatest run)", "DiskSim ms", "difference"];
    let mut table = Table::new("Synthetic set-ups", columns);
    for set_up in &SYNTHETIC {
        let means = synthetic::run(set_up, &read, str::to_string).map_err(|error| error.to_string())?;
        let runs = &means.runs_ms;
        let (least, greatest) = (runs[0], runs[runs.len() - 1]);
        let off = 100.0 * (means.mean_ms / set_up.disksim_ms - 1.0);
        table.row([
            format!("`{}`: {}", set_up.file, set_up.title),
            set_up.seeds.to_string(),
            format!("{:.2} ({least:.2}, {:.2}, {greatest:.2})", means.mean_ms, means.median_ms()),
            format!("{:.3}", set_up.disksim_ms),
            format!("{off:+.2} %"),
        ]);
    }
    Ok(Some(table.to_markdown()))
}
