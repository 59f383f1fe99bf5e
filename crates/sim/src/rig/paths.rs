//! Dotted paths into a rig: their list, their short forms, and how a value is set at the end of one.

use super::document;
use super::spec::RigSpec;
use headstack_model::DriveSpec;
use headstack_model::spec::{Fault, did_you_mean};
use schemars::schema_for;
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::sync::LazyLock;
use toml::{Table, Value};

/// Short paths and their full forms.
pub const ALIASES: [(&str, &str); 11] = [
    ("drive.queue_depth", "drive.queue.depth"),
    ("drive.order", "drive.queue.order"),
    ("drive.queue_order", "drive.queue.order"),
    ("drive.window", "drive.queue.window"),
    ("drive.rpm", "drive.mechanics.rpm"),
    ("drive.read_ahead", "drive.cache.read_ahead"),
    ("drive.write_cache", "drive.cache.write_cache"),
    ("drive.segments", "drive.cache.segments"),
    ("host.elevator", "host.queue.elevator"),
    ("host.order", "host.queue.order"),
    ("host.depth", "host.queue.depth"),
];

/// The form of rig files as JSON Schema: every key with its type, default and documentation, except those of the drive, which are
/// in [`DriveSpec::json_schema`].
pub fn json_schema() -> Json {
    schema_for!(RigSpec).to_value()
}

/// Every path that can be set, tables among them, without the short ones.
pub fn all() -> Vec<String> {
    let mut paths = Vec::new();
    collect(&json_schema(), "", &mut paths);
    collect(&DriveSpec::json_schema().to_value(), "drive", &mut paths);
    paths
}

fn collect(schema: &Json, prefix: &str, paths: &mut Vec<String>) {
    let mut open = vec![(prefix.to_string(), schema)];
    while let Some((prefix, table)) = open.pop() {
        let Some(properties) = table["properties"].as_object() else { continue };
        for (key, value) in properties {
            let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
            // The contents of a list of tables are set with the list, except for the rig's own lists, whose tables have names.
            let inner = if value.get("items").is_some() && !prefix.is_empty() {
                None
            } else {
                definition(schema, value)
            };
            open.extend(inner.map(|inner| (path.clone(), inner)));
            paths.push(path);
        }
    }
}

static TABLES: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
    all().iter().filter_map(|path| path.rsplit_once('.')).map(|(table, _)| table.to_string()).collect()
});

/// Checks that no table is written as a list of its values, which would be read in the order of the keys.
pub(super) fn check_tables(document: &Table) -> Result<(), Fault> {
    let mut open = vec![(String::new(), String::new(), document)];
    while let Some((path, place, table)) = open.pop() {
        for (key, value) in table {
            let below = |path: &str| if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let (path, place) = (below(&path), below(&place));
            match value {
                Value::Table(inner) => open.push((path, place, inner)),
                Value::Array(items) if document::LISTED.contains(&path.as_str()) => {
                    let inner =
                        items.iter().enumerate().filter_map(|(at, item)| Some((at, item.as_table()?)));
                    open.extend(inner.map(|(at, inner)| (path.clone(), format!("{place}[{at}]"), inner)));
                }
                Value::Array(_) if TABLES.contains(&path) => {
                    return Err(Fault::new(place, "must be a table, not a list"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The table that a key's value has: itself, in a list, or as an option.
fn definition<'a>(schema: &'a Json, value: &'a Json) -> Option<&'a Json> {
    let choices = value.get("anyOf").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let places = [Some(value), value.get("items")].into_iter().flatten().chain(choices);
    let reference = places.filter_map(|value| value.get("$ref")).next()?.as_str()?;
    schema.pointer(reference.strip_prefix('#')?).filter(|inner| inner.get("properties").is_some())
}

/// The full path of `path`.
///
/// *Errors:* there is no such key; the error names the nearest.
pub(super) fn full(path: &str) -> Result<String, Fault> {
    if let Some((_, full)) = ALIASES.iter().find(|(short, _)| *short == path) {
        return Ok(full.to_string());
    }
    let known = all();
    let open = ["sources", "drive.sources"]
        .iter()
        .any(|table| path.strip_prefix(table).is_some_and(|rest| rest.starts_with('.')));
    if open || known.iter().any(|known| known == path) {
        return Ok(path.to_string());
    }
    let shown: String = path.chars().take(80).collect();
    let candidates = known.iter().map(String::as_str).chain(ALIASES.iter().map(|(short, _)| *short));
    let hint = did_you_mean(path, candidates);
    Err(Fault::new("", format!("a rig has no key `{shown}`{hint}")))
}

/// Sets a value at an existing path: in all drives, buses, controllers or arrays, or in those that its second part names.
pub(super) fn put_at(document: &mut Table, path: &str, value: &Value) -> Result<(), Fault> {
    let parts: Vec<&str> = path.split('.').collect();
    let list = document::LISTED.into_iter().find(|list| *list == parts[0] && parts.len() > 1);
    let Some(list) = list else {
        let path = full(path)?;
        let parts: Vec<&str> = path.split('.').collect();
        return document::put(document, &parts, value).map_err(|gone| through(&parts[..gone]));
    };
    let named = parts
        .get(2)
        .and_then(|_| document::tables(document, list).find_map(|table| name(list, table, parts[1])));
    let path = match named {
        Some(_) => full(&format!("{list}.{}", parts[2..].join(".")))?,
        None => full(path)?,
    };
    let parts: Vec<&str> = path.split('.').collect();
    let mut met = false;
    let tables = document.get_mut(list).and_then(Value::as_array_mut);
    for table in tables.into_iter().flatten().filter_map(Value::as_table_mut) {
        if named.is_none_or(|wanted| name(list, table, wanted).is_some()) {
            document::put(table, &parts[1..], value).map_err(|gone| through(&parts[..=gone]))?;
            met = true;
        }
    }
    if met { Ok(()) } else { Err(Fault::new("", format!("the rig has no `[{list}]`"))) }
}

/// Returns `wanted` if a table of a list has that name.
fn name<'a>(list: &str, table: &Table, wanted: &'a str) -> Option<&'a str> {
    let key = if list == "drive" { "volume" } else { "name" };
    (table.get(key).and_then(Value::as_str) == Some(wanted)).then_some(wanted)
}

fn through(gone: &[&str]) -> Fault {
    Fault::new("", format!("`{}` is no table", gone.join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_short_path_maps_to_an_existing_key() {
        let known = all();
        for (short, full) in ALIASES {
            assert!(known.iter().any(|path| path == full), "{full}");
            assert!(!known.iter().any(|path| path == short), "{short} is a key itself");
        }
    }

    #[test]
    fn unknown_path_is_rejected_with_the_nearest_key() {
        let hint = |path: &str| full(path).expect_err("there is none").message;
        assert_eq!(
            hint("drive.queue.dept"),
            "a rig has no key `drive.queue.dept`; did you mean `drive.queue.depth`?"
        );
        assert_eq!(
            hint("drive.queue_dpeth"),
            "a rig has no key `drive.queue_dpeth`; did you mean `drive.queue_depth`?"
        );
        assert_eq!(hint("gyroscope.xyz"), "a rig has no key `gyroscope.xyz`");
        assert_eq!(hint("drvie.order"), "a rig has no key `drvie.order`; did you mean `drive.order`?");
        assert_eq!(
            hint("drive.mechanics.head_switch"),
            "a rig has no key `drive.mechanics.head_switch`; did you mean `drive.mechanics.head_switch_ms`?"
        );
    }
}
