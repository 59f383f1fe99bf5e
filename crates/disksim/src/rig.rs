//! DiskSim's parameter files as a rig and a load.
//!
//! A drive whose geometry and mechanics are those of a shipped drive is written as that preset and the differences; any other is
//! written out. What a rig cannot express is listed; what a rig can express but not yet run is carried over.

use crate::not_carried::NotCarried;
use crate::setup::{Setup, SetupBus, SetupDrive, SetupLoad, SetupProcess, SetupQueue, import_setup};
use headstack_model::drives;
use headstack_model::spec::{DriveSpec, SpecError};
use headstack_personalities::{LoadFile, LoadSpec};
use headstack_sim::rig::{ControllerSpec, GroupKeys, Rig, RigBusSpec, RigError, Sharing, lay};
use headstack_workload::VolumeInfo;
use headstack_workload::process::SyntheticSpec;
use toml::{Table, Value};

/// A rig and its load from a parameter file.
#[derive(Clone, Debug, PartialEq)]
pub struct ImportedRig {
    /// The rig file.
    pub rig: String,
    /// The load file, if the parameter file has a synthetic load.
    pub load: Option<String>,
    /// What could not be carried over, in the order of the files.
    pub not_carried: Vec<NotCarried>,
}

/// Imports the set-up in `text`, the content of the file `origin`. `read` returns the files that it names.
///
/// *Errors:* the first syntax error or invalid value, with its file and line; a rig or a load that breaks a rule of the formats,
/// with the key of the rig or load file.
pub fn import(
    text: &str,
    origin: &str,
    read: impl FnMut(&str) -> Result<String, String>,
) -> Result<ImportedRig, SpecError> {
    let setup = import_setup(text, origin, read)?;
    let text = rig(&setup, origin);
    let whole = |error| SpecError { line: 0, ..error };
    let rig = Rig::parse(&text, origin, &mut |name| drives::load(name))
        .map_err(|RigError::Fault(error)| whole(error))?;
    let drive_heeds = |drive: &SetupDrive| drive.spec.queue.urgent_first;
    let urgent_waits = setup.queue.urgent_first || setup.drives.iter().any(drive_heeds);
    let mut not_carried = setup.not_carried;
    let load = setup.load.map(|mut load| {
        let volumes = rig.volumes();
        load.processes.iter_mut().for_each(|process| not_carried.extend(fit(process, &volumes)));
        self::load(&load, setup.processors, urgent_waits).to_toml()
    });
    if let Some(load) = &load {
        LoadFile::parse(load, origin).map_err(whole)?;
    }
    not_carried.sort();
    Ok(ImportedRig { rig: text, load, not_carried })
}

/// Limits a process to the size of its volumes, and notes it.
fn fit(process: &mut SetupProcess, volumes: &[VolumeInfo]) -> Option<NotCarried> {
    let used = volumes.iter().filter(|volume| process.spec.volumes.contains(&volume.name));
    let most = used.map(|volume| volume.sectors).min()?;
    let sectors = process.spec.capacity_sectors.filter(|sectors| most < *sectors)?;
    process.spec.capacity_sectors = Some(most);
    Some(NotCarried {
        file: process.file.clone(),
        line: process.line,
        key: "Storage capacity per device".to_string(),
        why: format!("{sectors} is more than the volume holds; carried over as {most}"),
    })
}

/// The rig file, with its tables in the format's order.
fn rig(setup: &Setup, origin: &str) -> String {
    let buses = Buses::of(setup);
    let over = |usual: &Table, tables: Vec<Table>| -> Vec<Table> {
        tables.iter().map(|wanted| difference(usual, wanted).unwrap_or_else(|| wanted.clone())).collect()
    };
    let top = Table::from_iter([
        ("title".to_string(), Value::String(format!("The set-up of {origin}"))),
        (
            "sources".to_string(),
            Value::Table(Table::from_iter([(
                "disksim".to_string(),
                Value::String(format!("DiskSim parameters, imported from {origin}")),
            )])),
        ),
    ]);
    let bus = over(&table(&RigBusSpec::default()), buses.specs.iter().map(table).collect());
    let controllers = setup.controllers.iter().map(table).collect();
    let controllers = over(&table(&ControllerSpec::default()), controllers);
    let parts = [
        ("devices", devices(setup)),
        ("drive", list(groups(setup, &buses))),
        ("bus", list(bus)),
        ("controller", list(controllers)),
        ("array", list(setup.arrays.iter().map(table).collect())),
        ("host", host(setup)),
    ];
    let mut text = document_text(&top);
    for (key, value) in parts.into_iter().filter_map(|(key, value)| Some((key, value?))) {
        text.push('\n');
        text.push_str(&document_text(&Table::from_iter([(key.to_string(), value)])));
    }
    text
}

/// Tables under one key; a single table is no list.
fn list(mut tables: Vec<Table>) -> Option<Value> {
    match tables.len() {
        0 => None,
        1 => tables.pop().map(Value::Table),
        _ => Some(Value::Array(tables.into_iter().map(Value::Table).collect())),
    }
}

/// The devices of traces. Without a map, DiskSim takes the number of a trace's device for that of a drive.
fn devices(setup: &Setup) -> Option<Value> {
    let numbered =
        || setup.drives.iter().enumerate().map(|(index, drive)| (index as u64, drive.name.clone()));
    let devices: Vec<(u64, String)> =
        if setup.devices.is_empty() { numbered().collect() } else { setup.devices.clone() };
    let in_array = |name: &String| setup.arrays.iter().any(|array| array.drives.contains(name));
    let devices = devices.into_iter().filter(|(_, name)| !in_array(name));
    let devices: Table = devices.map(|(device, name)| (device.to_string(), Value::String(name))).collect();
    (!devices.is_empty()).then_some(Value::Table(devices))
}

fn host(setup: &Setup) -> Option<Value> {
    let mut queue = Table::new();
    let SetupQueue { order, urgent_first } = &setup.queue;
    if *urgent_first || !order.is_empty() && order != "fcfs" {
        queue.insert("order".to_string(), Value::String(order.clone()));
    }
    if *urgent_first {
        queue.insert("urgent_first".to_string(), Value::Boolean(true));
    }
    if setup.one_at_a_time {
        queue.insert("depth".to_string(), Value::Integer(1));
    }
    let queue = (!queue.is_empty()).then_some(Value::Table(queue));
    queue.map(|queue| Value::Table(Table::from_iter([("queue".to_string(), queue)])))
}

fn document_text(table: &Table) -> String {
    toml::to_string(table).expect("rigs are expressible in TOML")
}

fn table<T: serde::Serialize>(value: &T) -> Table {
    Table::try_from(value).expect("every part of a rig is a table")
}

/// The buses of a rig, and the one of each bus of the set-up.
struct Buses {
    specs: Vec<RigBusSpec>,
    of: Vec<usize>,
}

impl Buses {
    /// Equal buses with one drive each become one bus without sharing.
    fn of(setup: &Setup) -> Buses {
        let carried = |index: usize| setup.drives.iter().filter(|drive| drive.bus == Some(index)).count();
        let mut buses = Buses { specs: Vec::new(), of: Vec::new() };
        for (index, bus) in setup.buses.iter().enumerate() {
            let spec = buses.spec(setup, bus, carried(index));
            let alike = |known: &RigBusSpec| {
                spec.sharing == Sharing::None
                    && *known == RigBusSpec { name: known.name.clone(), ..spec.clone() }
            };
            let known = buses.specs.iter().position(alike);
            buses.of.push(known.unwrap_or(buses.specs.len()));
            if known.is_none() {
                buses.specs.push(spec);
            }
        }
        buses
    }

    fn spec(&self, setup: &Setup, bus: &SetupBus, drives: usize) -> RigBusSpec {
        let controller = bus.controller.map(|index| setup.controllers[index].name.clone());
        RigBusSpec {
            name: bus.name.clone(),
            sharing: match (drives > 1, bus.exclusive) {
                (false, _) => Sharing::None,
                (true, false) => Sharing::Interleaved,
                (true, true) => Sharing::Exclusive,
            },
            read_us_per_sector: bus.read_us_per_sector,
            write_us_per_sector: bus.write_us_per_sector,
            // DiskSim never arbitrates for an interleaved bus either.
            arbitration_us: if drives > 1 && !bus.exclusive { 0.0 } else { bus.arbitration_us },
            controller,
            ..RigBusSpec::default()
        }
    }
}

/// The drives, with successive equal ones in one table.
fn groups(setup: &Setup, buses: &Buses) -> Vec<Table> {
    let on = |drive: &SetupDrive| drive.bus.map(|bus| buses.of[bus]);
    let mut groups = Vec::new();
    let mut rest = &setup.drives[..];
    let mut first = 0;
    while let Some(drive) = rest.first() {
        let alike = |other: &&SetupDrive| other.spec == drive.spec && on(other) == on(drive);
        let most = rest.iter().take_while(alike).count();
        let (count, volume) = named(&rest[..most], first);
        let on = on(drive).filter(|_| buses.specs.len() > 1).map(|bus| buses.specs[bus].name.clone());
        let keys = GroupKeys { preset: None, count: count as u32, volume, on };
        let usual = table(&GroupKeys::default());
        let mut group = difference(&usual, &table(&keys)).unwrap_or_default();
        lay(&mut group, drive_table(&drive.spec));
        groups.push(group);
        rest = &rest[count..];
        first += count;
    }
    groups
}

/// How many of the drives from `first` on one table can name, and the name that it needs.
fn named(drives: &[SetupDrive], first: usize) -> (usize, Option<String>) {
    let run = |stem: &str, from: usize| {
        let as_named =
            |(index, drive): &(usize, &SetupDrive)| drive.name == format!("{stem}{}", from + index);
        drives.iter().enumerate().take_while(as_named).count()
    };
    // Unnamed drives are called `disk` and their number in the rig.
    let usual = run("disk", first);
    if usual > 0 {
        return (usual, None);
    }
    let name = &drives[0].name;
    let stem = name.strip_suffix('0').unwrap_or(name);
    match run(stem, 0) {
        0 | 1 => (1, Some(name.clone())),
        several => (several, Some(stem.to_string())),
    }
}

/// The drive as a preset and the differences from it, or written out.
fn drive_table(spec: &DriveSpec) -> Table {
    let shipped = drives::all().iter().filter_map(|(name, _)| drives::load(name).ok());
    for preset in shipped.filter(|one| one.geometry == spec.geometry && one.mechanics == spec.mechanics) {
        let titled = DriveSpec {
            name: preset.name.clone(),
            title: preset.title.clone(),
            year: preset.year,
            evidence: preset.evidence,
            sources: preset.sources.clone(),
            ..spec.clone()
        };
        if let Some(mut over) = difference(&table(&preset), &table(&titled)) {
            over.insert("preset".to_string(), Value::String(preset.name));
            return over;
        }
    }
    table(spec)
}

/// The keys to set on `under` to get `wanted`; none if a key would have to be removed.
fn difference(under: &Table, wanted: &Table) -> Option<Table> {
    let mut over = Table::new();
    if under.keys().any(|key| !wanted.contains_key(key)) {
        return None;
    }
    for (key, value) in wanted {
        match (under.get(key), value) {
            (Some(known), value) if known == value => {}
            (Some(Value::Table(known)), Value::Table(value)) => {
                over.insert(key.clone(), Value::Table(difference(known, value)?));
            }
            (_, value) => {
                over.insert(key.clone(), value.clone());
            }
        }
    }
    Some(over)
}

fn load(load: &SetupLoad, processors: u32, urgent_waits: bool) -> LoadSpec {
    let mut processes: Vec<SyntheticSpec> = Vec::new();
    // DiskSim starts its processes in reverse order.
    for process in load.processes.iter().rev() {
        let process = SyntheticSpec { urgent_waits, ..process.spec.clone() };
        match processes.last_mut() {
            Some(last) if SyntheticSpec { processes: 1, ..last.clone() } == process => last.processes += 1,
            _ => processes.push(process),
        }
    }
    LoadSpec {
        requests: Some(u64::from(load.requests)),
        max_time_s: Some(load.max_time_s),
        processors: Some(processors),
        idle_cpu_never_wakes: processors > 1,
        process: processes,
        ..LoadSpec::default()
    }
}
