//! `headstack rig list`.

use crate::failure::Failure;
use crate::report::Table;
use headstack_sim::rig::shipped;
use std::io::Write;

/// List the shipped rigs. The name of a drive is a rig, too: that drive alone.
#[derive(clap::Args)]
pub(crate) struct List {}

impl List {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut table = Table::new("Rigs", &["name", "title", "drive", "volumes"]);
        table.words = 3;
        for (name, _) in shipped::all() {
            let rig = shipped::load(name).map_err(Failure::input)?;
            let mut drives: Vec<&str> =
                rig.resolved().drive.iter().map(|group| group.spec.name.as_str()).collect();
            drives.dedup();
            table.row([
                name.to_string(),
                rig.resolved().title.clone(),
                drives.join(", "),
                rig.volumes().len().to_string(),
            ]);
        }
        write!(out, "{}", table.to_text())?;
        Ok(())
    }
}
