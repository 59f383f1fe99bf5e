//! The functions that compute the tables.

mod speed;
mod studies;
mod synthetic;
mod tags;
mod traces;

use crate::Inputs;

/// A table, and the line below it that names the source of its figures. Without such a line the source is this run.
pub(crate) struct EvidenceTable {
    pub(crate) table: String,
    pub(crate) record: Option<String>,
}

/// Computes a table; none if the folder that it needs was not given.
type Generate = fn(&Inputs) -> Result<Option<EvidenceTable>, String>;

/// The tables by name.
pub(crate) const TABLES: [(&str, Generate); 8] = [
    ("real-drives", |inputs| Ok(traces::real_drives(inputs)?.map(of_this_run))),
    ("synthetic-loads", |inputs| Ok(traces::synthetic_loads(inputs)?.map(of_this_run))),
    ("set-ups", |inputs| Ok(traces::set_ups(inputs)?.map(of_this_run))),
    ("synthetic-set-ups", |inputs| Ok(synthetic::set_ups(inputs)?.map(of_this_run))),
    ("st2000dm006", |_| Ok(Some(of_this_run(studies::st2000dm006()?)))),
    ("hc570", |_| Ok(Some(of_this_run(studies::hc570()?)))),
    ("tags", |_| Ok(Some(of_this_run(tags::flushes()?)))),
    ("speed", |_| speed::newest().map(Some)),
];

fn of_this_run(table: String) -> EvidenceTable {
    EvidenceTable { table, record: None }
}
