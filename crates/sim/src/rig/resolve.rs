//! From a document to all that it stands for: presets looked up, keys laid over them, everything checked.

use super::DriveLookup;
use super::document;
use super::spec::{DriveGroup, GroupKeys, RigSpec};
use headstack_model::spec::Fault;
use headstack_model::{DriveSpec, SpecError};
use headstack_policy::order;
use std::collections::{BTreeMap, BTreeSet};
use toml::Table;

/// Drives of one kind that a rig may hold.
const COUNT_MAX: u32 = 1024;

/// Lays a document over its presets and checks all of it. Presets met before are not looked up again.
pub(super) fn resolve(
    document: &Table,
    presets: &mut BTreeMap<String, DriveSpec>,
    find: &mut DriveLookup<'_>,
) -> Result<RigSpec, Fault> {
    let mut frame = document.clone();
    frame.remove("drive");
    let mut spec: RigSpec = document::typed(&frame)?;
    let groups: Vec<&Table> = document::tables(document, "drive").collect();
    if groups.is_empty() {
        return Err(Fault::new("", "a rig needs a drive: `[drive]` with `preset = \"NAME\"`"));
    }
    for (index, table) in groups.iter().enumerate() {
        let path = if groups.len() == 1 { "drive".to_string() } else { format!("drive[{index}]") };
        let at = |fault| below(&path, fault);
        let group = group(table, presets, find).map_err(at)?;
        check_group(&group).map_err(at)?;
        spec.drive.push(group);
    }
    check_names(&spec)?;
    Ok(spec)
}

/// Drives of one kind, laid over their preset.
fn group(
    table: &Table,
    presets: &mut BTreeMap<String, DriveSpec>,
    find: &mut DriveLookup<'_>,
) -> Result<DriveGroup, Fault> {
    let (own, over): (Table, Table) =
        table.clone().into_iter().partition(|(key, _)| GroupKeys::NAMES.contains(&key.as_str()));
    let keys: GroupKeys = document::typed(&own)?;
    let Some(preset) = &keys.preset else {
        return Ok(DriveGroup { keys, spec: drive(&over)? });
    };
    if !presets.contains_key(preset) {
        let spec = find(preset).map_err(|error| Fault::new("preset", error.to_string()))?;
        presets.insert(preset.clone(), spec);
    }
    let spec = &presets[preset];
    if over.is_empty() {
        return Ok(DriveGroup { spec: spec.clone(), keys });
    }
    let mut whole = Table::try_from(spec).expect("a drive is a table");
    document::lay(&mut whole, over);
    Ok(DriveGroup { spec: drive(&whole)?, keys })
}

/// A whole drive.
fn drive(table: &Table) -> Result<DriveSpec, Fault> {
    DriveSpec::parse(&document::text(table), "")
        .map_err(|SpecError { key, message, .. }| Fault { key, message })
}

/// A fault of a table, seen from the top.
fn below(path: &str, fault: Fault) -> Fault {
    let key = if fault.key.is_empty() { path.to_string() } else { format!("{path}.{}", fault.key) };
    Fault { key, message: fault.message }
}

/// What the parts of a group must keep beyond their types.
fn check_group(group: &DriveGroup) -> Result<(), Fault> {
    let count = group.keys.count;
    if !(1..=COUNT_MAX).contains(&count) {
        return Err(Fault::new("count", format!("{count} is outside 1 to {COUNT_MAX} drives")));
    }
    let orders =
        [("queue.order", &group.spec.queue.order), ("cache.destage_order", &group.spec.cache.destage_order)];
    for (key, name) in orders {
        order::built_in(name).map_err(|error| Fault::new(key, error.to_string()))?;
    }
    Ok(())
}

/// Every volume has a name of its own.
fn check_names(spec: &RigSpec) -> Result<(), Fault> {
    let mut names = BTreeSet::new();
    for (name, _) in spec.drives() {
        if let Some(twice) = names.replace(name) {
            return Err(Fault::new("drive", format!("two volumes are called `{twice}`")));
        }
    }
    Ok(())
}
