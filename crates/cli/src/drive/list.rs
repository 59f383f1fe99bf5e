//! `headstack drive list`.

use super::show::word;
use crate::catalog;
use crate::failure::Failure;
use crate::list;
use headstack_model::spec::{Evidence, Interface, Tagging};
use headstack_model::{DriveSpec, drives};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;

/// List the shipped drives.
#[derive(clap::Args)]
pub(crate) struct List {
    /// Print a JSON array, which also has the capacity, speed, surfaces and interface of each drive.
    #[arg(long)]
    json: bool,
}

/// A drive in the list.
#[derive(JsonSchema, Serialize)]
struct Entry {
    name: String,
    title: String,
    year: Option<u32>,
    evidence: Evidence,
    firmware: Option<String>,
    capacity_bytes: u64,
    sector_bytes: u32,
    rpm: f64,
    heads: u32,
    cylinders: u32,
    interface: Option<Interface>,
    tagging: Tagging,
    queue_depth: u32,
}

impl Entry {
    fn new(spec: DriveSpec) -> Entry {
        Entry {
            capacity_bytes: spec.capacity_bytes(),
            tagging: spec.tagging(),
            name: spec.name,
            title: spec.title,
            year: spec.year,
            evidence: spec.evidence,
            firmware: spec.firmware,
            sector_bytes: spec.sector_bytes,
            rpm: spec.mechanics.rpm,
            heads: spec.geometry.heads,
            cylinders: spec.geometry.cylinders,
            interface: spec.bus.interface,
            queue_depth: spec.queue.depth,
        }
    }
}

impl List {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let load = |(name, _): &(&str, &str)| catalog::load(name).map(Entry::new);
        let entries = drives::all().iter().map(load).collect::<Result<Vec<_>, _>>()?;
        // Three columns fit a terminal of 80.
        let row = |entry: &Entry| [entry.name.clone(), entry.title.clone(), word(&entry.evidence)];
        list::write(&entries, self.json, ("Drives", ["name", "title", "evidence"]), row, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        crate::versioned::schema::check::<Vec<Entry>>("drive list");
    }
}
