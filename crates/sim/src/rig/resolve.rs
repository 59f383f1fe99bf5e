//! Resolves a document: looks presets up, sets keys over them, and checks everything.

use super::DriveLookup;
use super::checks::{Checked, NAMELESS, check_names, link};
use super::spec::{DriveGroup, GroupKeys, RigSpec};
use super::{array, attach, document, layers, node_queue, partition, paths, rearrange};
use headstack_model::spec::{Fault, KeyRules, did_you_mean};
use headstack_model::{DriveSpec, SpecError};
use headstack_policy::order;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use toml::Table;

static RULES: LazyLock<KeyRules> = LazyLock::new(KeyRules::from_type::<RigSpec>);

/// Merges a document over its presets and checks all of it. Presets met before are not looked up again.
pub(super) fn resolve(
    document: &Table,
    presets: &mut BTreeMap<String, DriveSpec>,
    find: &mut DriveLookup<'_>,
) -> Result<RigSpec, Fault> {
    paths::check_tables(document)?;
    let mut frame = document.clone();
    frame.remove("drive");
    let mut spec: RigSpec = document::typed(&frame)?;
    RULES.check(&spec, "")?;
    let groups: Vec<&Table> = document::tables(document, "drive").collect();
    if groups.is_empty() {
        let key = if document.contains_key("drive") { "drive" } else { "" };
        return Err(Fault::new(key, "a rig needs a drive: `[drive]` with `preset = \"NAME\"`"));
    }
    for (index, table) in groups.iter().enumerate() {
        let at = |fault: Fault| fault.below(&format!("drive[{index}]"));
        let group = group(table, presets, find).map_err(at)?;
        check_group(&group).map_err(at)?;
        spec.drive.push(group);
    }
    check_volumes(&spec)?;
    array::check(&spec)?;
    let read_ahead_kb = array::read_ahead_kb(&spec);
    if let Some(cache) = &mut spec.host.page_cache {
        cache.read_ahead_kb = cache.read_ahead_kb.or(read_ahead_kb);
    }
    attach::check(&spec)?;
    spec.host.check()?;
    if let Some(config) = &spec.node {
        config.check().map_err(|fault| fault.below("node"))?;
        if !spec.host.cgroup.is_empty() {
            let message = "is for a rig without `[node]`, whose clients are no processes of the host";
            return Err(Fault::new("host.cgroup", message));
        }
    }
    node_queue::check(&spec)?;
    rearrange::check(&spec)?;
    partition::check(&spec)?;
    layers::check(&spec)?;
    Ok(spec)
}

fn group(
    table: &Table,
    presets: &mut BTreeMap<String, DriveSpec>,
    find: &mut DriveLookup<'_>,
) -> Result<DriveGroup, Fault> {
    let (own, over): (Table, Table) =
        table.clone().into_iter().partition(|(key, _)| GroupKeys::NAMES.contains(&key.as_str()));
    let keys: GroupKeys = document::typed(&own)?;
    RULES.check(&keys, "")?;
    let Some(preset) = &keys.preset else {
        return Ok(DriveGroup { keys, spec: whole_drive(&over)? });
    };
    if !presets.contains_key(preset) {
        let spec = find(preset).map_err(|error| Fault::new("preset", error.to_string()))?;
        presets.insert(preset.clone(), spec);
    }
    let spec = &presets[preset];
    if over.contains_key("firmware") {
        let message = "is a key of a drive file, whose other keys depend on it; copy the drive file and change it there";
        return Err(Fault::new("firmware", message));
    }
    if over.is_empty() {
        return Ok(DriveGroup { spec: spec.clone(), keys });
    }
    let mut whole = Table::try_from(spec).expect("a drive is a table");
    document::lay(&mut whole, over);
    Ok(DriveGroup { spec: drive(&whole)?, keys })
}

fn whole_drive(table: &Table) -> Result<DriveSpec, Fault> {
    drive(table).map_err(|fault| {
        if table.contains_key("name") || is_unknown(&fault) {
            fault
        } else {
            Fault::new(
                "",
                "missing field `preset`; without one it must be a whole drive, and that has a `name`",
            )
        }
    })
}

/// Whether the fault is a key that neither a rig nor a drive has, so that other errors need not be listed.
fn is_unknown(fault: &Fault) -> bool {
    fault.message.starts_with("unknown field")
}

fn drive(table: &Table) -> Result<DriveSpec, Fault> {
    DriveSpec::parse(&document::text(table), "").map_err(|SpecError { key, message, .. }| {
        // A key that a drive file has not may be meant for the rig.
        unknown(table).unwrap_or(Fault { key, message })
    })
}

/// The first key that neither a rig nor a drive has.
fn unknown(table: &Table) -> Option<Fault> {
    let schema = DriveSpec::json_schema().to_value();
    let of_drive = schema["properties"].as_object().into_iter().flat_map(|keys| keys.keys());
    let known: Vec<&str> = GroupKeys::NAMES.into_iter().chain(of_drive.map(String::as_str)).collect();
    let key = table.keys().find(|key| !known.contains(&key.as_str()))?;
    let hint = did_you_mean(key, known.iter().copied());
    let names: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
    let message = format!("unknown field `{key}`, expected one of {}", names.join(", "));
    Some(Fault::new(key, format!("{message}{hint}")))
}

fn check_group(group: &DriveGroup) -> Checked {
    if group.keys.volume.as_deref() == Some("") {
        return Err(Fault::new("volume", NAMELESS));
    }
    let orders =
        [("queue.order", &group.spec.queue.order), ("cache.destage_order", &group.spec.cache.destage_order)];
    for (key, name) in orders {
        order::built_in(name).map_err(|error| Fault::new(key, error.to_string()))?;
    }
    Ok(())
}

/// Checks that the names of volumes are unique, and that each device of a trace is assigned to an existing one.
fn check_volumes(spec: &RigSpec) -> Checked {
    let drives = spec.drives().map(|drive| (format!("drive[{}].volume", drive.group), drive.name));
    let arrays = spec.array.iter().enumerate();
    let arrays = arrays.map(|(index, array)| (format!("array[{index}].name"), array.name.clone()));
    let names = check_names("volumes", drives.chain(arrays))?;
    for (device, volume) in &spec.devices {
        link(&format!("devices.{device}"), "volume", Some(volume), names.iter().map(String::as_str))?;
    }
    Ok(())
}
