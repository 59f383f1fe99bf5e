//! `headstack zones`: the zones of a shingled disk, before and after a load.

use crate::emulate;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::report::Table;
use crate::rig;
use crate::sim::load::{self, LoadArgs};
use crate::sim::run_watched;
use crate::sim::setup::RigArgs;
use crate::units::grouped;
use crate::versioned;
use headstack::{Rig, Simulation};
use headstack_model::zones::{DiskZone, ZoneModel, ZoneState, Zones};
use headstack_sim::Engine;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::Write;
use std::path::PathBuf;

/// Show the zones of a shingled disk: the number in each state, or a list of zones. With a load, show them as they are
/// after it.
#[derive(clap::Args)]
pub(crate) struct ShowZones {
    /// A rig file, a shipped rig or a shipped drive.
    #[arg(value_name = "RIG")]
    rig: String,
    /// Run this load first: a fio job file (.fio), a load file (.toml) or a trace in any format.
    #[arg(value_name = "LOAD")]
    load: Option<String>,
    /// Show the zones that an emulated disk keeps in this file, or in this folder if there are several.
    #[arg(long, value_name = "PATH", conflicts_with = "load")]
    data: Option<PathBuf>,
    #[command(flatten)]
    options: RigArgs,
    #[command(flatten)]
    load_options: LoadArgs,
    /// List the zones from this number on, one per line.
    #[arg(long, value_name = "ZONE")]
    from: Option<u32>,
    /// Number of zones to list.
    #[arg(long, value_name = "N", default_value_t = 32, requires = "from")]
    count: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(JsonSchema, Serialize)]
struct ZonedDisks<'a> {
    disks: Vec<ZonedDisk<'a>>,
}

#[derive(JsonSchema, Serialize)]
struct ZonedDisk<'a> {
    disk: &'a str,
    model: ZoneModel,
    zone_sectors: u64,
    zones: u32,
    /// Number of zones in each state.
    #[schemars(schema_with = "states_schema")]
    states: Map<String, Value>,
    /// Zones that are open, implicitly or explicitly.
    open: u32,
    open_max: u32,
    /// Zones that are open or closed.
    active: u32,
    /// `null` where there is no limit.
    active_max: Option<u32>,
    /// The zones from the number that `--from` names.
    listed: Vec<ListedZone>,
}

#[derive(JsonSchema, Serialize)]
struct ListedZone {
    zone: u32,
    state: &'static str,
    start: u64,
    sectors: u64,
    write_pointer: u64,
}

/// Each state has a number of zones.
fn states_schema(_: &mut SchemaGenerator) -> Schema {
    versioned::numbers_schema(&ZoneState::ALL.map(ZoneState::name), "integer")
}

impl ShowZones {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut rig = rig::load::load(&self.rig)?;
        self.options.apply(&mut rig)?;
        let Some(load) = &self.load else {
            let engine = rig.build(self.options.seed).map_err(|error| Failure::Input(error.to_string()))?;
            return self.print_all(&engine, &rig, out);
        };
        let workload = self.load_options.open(load)?;
        let mut simulation = Simulation::new(&rig, workload, self.options.seed).map_err(load::failure)?;
        let (interrupt, mut progress) = (Interrupt::watch()?, Progress::alone());
        let stopped = run_watched(&mut simulation, &interrupt, &mut progress);
        progress.finish();
        simulation.check_zones().map_err(load::failure)?;
        self.print_all(simulation.engine(), &rig, out)?;
        if let Some(signal) = stopped { Err(Failure::Stopped(signal)) } else { Ok(()) }
    }

    fn print_all(&self, engine: &Engine, rig: &Rig, out: &mut dyn Write) -> Result<(), Failure> {
        let mut shown = Vec::new();
        for (index, drive) in rig.resolved().drives().enumerate() {
            if let Some(zones) = engine.device(index).zones() {
                let zones = match &self.data {
                    Some(path) => emulate::stored_zones(path, &drive.name, zones)?,
                    None => zones.clone(),
                };
                shown.push((drive.name.clone(), zones));
            }
        }
        if shown.is_empty() {
            return Err(Failure::Input(format!(
                "{}: no disk of it has zones; `ultrastar-hc620` has, and `[zones]` in a drive file makes them",
                self.rig
            )));
        }
        if self.json {
            let disks = shown.iter().map(|(name, zones)| self.summary(name, zones)).collect();
            return versioned::print(&ZonedDisks { disks }, out);
        }
        for (number, (name, zones)) in shown.iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            self.print(name, zones, out)?;
        }
        Ok(())
    }

    fn listed<'a>(&self, zones: &'a Zones) -> impl Iterator<Item = (u32, DiskZone)> + use<'a> {
        let first = self.from.unwrap_or(u32::MAX);
        let count = zones.layout().zones();
        let end = first.saturating_add(self.count).min(count);
        (first.min(count)..end).map(|number| (number, zones.zone(number)))
    }

    fn print(&self, name: &str, zones: &Zones, out: &mut dyn Write) -> Result<(), Failure> {
        let layout = zones.layout();
        let count = grouped(u64::from(layout.zones()));
        writeln!(out, "{name}: {count} zones of {} sectors", grouped(layout.zone_sectors))?;
        let table = if self.from.is_none() { states(zones) } else { self.list(zones) };
        writeln!(out, "\n{}", table.to_text().trim_end())?;
        let active = layout.active_max.map_or(String::new(), |most| {
            format!("; open or closed: {} of {} at most", zones.active(), grouped(u64::from(most)))
        });
        writeln!(out, "\nopen: {} of {} at most{active}", zones.open(), grouped(u64::from(layout.open_max)))?;
        Ok(())
    }

    /// A row for each listed zone.
    fn list(&self, zones: &Zones) -> Table {
        let columns = ["zone", "state", "first sector", "write pointer", "written"];
        let mut table = Table::new("Zones", columns).with_words(2);
        for (number, zone) in self.listed(zones) {
            let share = 100.0 * (zone.write_pointer - zone.start) as f64 / zone.sectors as f64;
            let (pointer, written) = match zone.state {
                ZoneState::Conventional => ("-".to_string(), "-".to_string()),
                _ => (grouped(zone.write_pointer.0), format!("{share:.1} %")),
            };
            let state = zone.state.name().to_string();
            table.row([number.to_string(), state, grouped(zone.start.0), pointer, written]);
        }
        table
    }

    fn summary<'a>(&self, name: &'a str, zones: &Zones) -> ZonedDisk<'a> {
        let layout = zones.layout();
        let states = counts(zones).map(|(state, count)| (state.name().to_string(), count.into()));
        let zone = |(zone, found): (u32, DiskZone)| ListedZone {
            zone,
            state: found.state.name(),
            start: found.start.0,
            sectors: found.sectors,
            write_pointer: found.write_pointer.0,
        };
        ZonedDisk {
            disk: name,
            model: layout.model,
            zone_sectors: layout.zone_sectors,
            zones: layout.zones(),
            states: states.collect(),
            open: zones.open(),
            open_max: layout.open_max,
            active: zones.active(),
            active_max: layout.active_max,
            listed: self.listed(zones).map(zone).collect(),
        }
    }
}

/// The number of zones in each state.
fn counts(zones: &Zones) -> impl Iterator<Item = (ZoneState, u64)> {
    ZoneState::ALL
        .map(|state| (state, zones.iter().filter(|zone| zone.state == state).count() as u64))
        .into_iter()
}

/// A row for each state that zones are in.
fn states(zones: &Zones) -> Table {
    let mut table = Table::new("States", ["state", "zones"]);
    for (state, count) in counts(zones).filter(|(_, count)| *count > 0) {
        table.row([state.name().to_string(), grouped(count)]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<ZonedDisks<'_>>("zones");
    }
}
