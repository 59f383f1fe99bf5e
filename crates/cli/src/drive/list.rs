//! `headstack drive list`.

use super::show::word;
use crate::catalog;
use crate::failure::Failure;
use crate::report::Table;
use crate::units::{capacity, grouped};
use headstack_model::drives;
use std::io::Write;

/// List the shipped drives.
#[derive(clap::Args)]
pub(crate) struct List {}

impl List {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let columns = ["name", "title", "evidence", "capacity", "rpm", "heads", "tracks"];
        let mut table = Table::new("Drives", &columns);
        table.words = 3;
        for (name, _) in drives::all() {
            let spec = catalog::load(name)?;
            let geometry = &spec.geometry;
            table.row([
                spec.name.clone(),
                spec.title.clone(),
                word(&spec.evidence),
                capacity(spec.capacity_bytes()),
                format!("{:.0}", spec.mechanics.rpm),
                geometry.heads.to_string(),
                grouped(u64::from(geometry.heads) * u64::from(geometry.cylinders)),
            ]);
        }
        write!(out, "{}", table.to_text())?;
        Ok(())
    }
}
