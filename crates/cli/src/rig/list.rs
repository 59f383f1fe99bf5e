//! `headstack rig list`.

use crate::failure::Failure;
use crate::list;
use headstack_sim::rig::{Rig, shipped};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;

/// List the shipped rigs. The name of a shipped drive is also a rig, with that drive alone.
#[derive(clap::Args)]
pub(crate) struct List {
    /// Print a JSON array, with the volumes of each rig.
    #[arg(long)]
    json: bool,
}

/// A rig in the list.
#[derive(JsonSchema, Serialize)]
struct Entry {
    name: String,
    title: String,
    drives: Vec<String>,
    volumes: Vec<Volume>,
}

#[derive(JsonSchema, Serialize)]
struct Volume {
    name: String,
    bytes: u64,
}

impl Entry {
    fn new(name: &str, rig: &Rig) -> Entry {
        let mut drives: Vec<String> =
            rig.resolved().drive.iter().map(|group| group.spec.name.clone()).collect();
        drives.dedup();
        let volumes = rig.volumes();
        let volumes =
            volumes.iter().map(|volume| Volume { name: volume.name.clone(), bytes: volume.bytes() });
        Entry {
            name: name.to_string(),
            title: rig.resolved().title.clone(),
            drives,
            volumes: volumes.collect(),
        }
    }
}

impl List {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let load = |(name, _): &(&str, &str)| shipped::load(name).map(|rig| Entry::new(name, &rig));
        let entries =
            shipped::all().iter().map(load).collect::<Result<Vec<_>, _>>().map_err(Failure::input)?;
        let row = |entry: &Entry| {
            let volumes = entry.volumes.len().to_string();
            [entry.name.clone(), entry.title.clone(), entry.drives.join(", "), volumes]
        };
        list::write(&entries, self.json, ("Rigs", ["name", "title", "drive", "volumes"]), row, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        crate::versioned::schema::check::<Vec<Entry>>("rig list");
    }
}
