//! What a fit changed in a drive, key by key, and the drive file with it.

use headstack_model::DriveSpec;
use toml::{Table, Value};
use toml_edit::{DocumentMut, Item};

/// A key that a fit changed.
#[derive(Clone, Debug, PartialEq)]
pub struct FitChange {
    /// The key in the drive file.
    pub key: String,
    /// Its value before; `None` if the file had none.
    pub before: Option<Value>,
    /// Its value now; `None` if the file has none any more.
    pub after: Option<Value>,
    /// How much larger the error on the part that the fit saw is with the value before, in ms; 0 where a drive with the value before alone
    /// cannot be built.
    pub gain_ms: f64,
}

/// Keys that the fit itself states.
const NOT_COMPARED: [&str; 3] = ["name", "evidence", "sources"];

/// The seek curve, whose forms exclude each other, is one value.
const SEEK: &str = "mechanics.seek";

/// The differences of two drives, without their gains.
pub(crate) fn differences(before: &DriveSpec, after: &DriveSpec) -> Vec<FitChange> {
    let table = |spec| Table::try_from(spec).expect("a drive is a table");
    let mut changes = Vec::new();
    collect("", &table(before), &table(after), &mut changes);
    changes.retain(|change| !NOT_COMPARED.contains(&change.key.split('.').next().unwrap_or_default()));
    changes
}

fn collect(prefix: &str, before: &Table, after: &Table, into: &mut Vec<FitChange>) {
    let keys = after.keys().chain(before.keys().filter(|key| !after.contains_key(*key)));
    for name in keys {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match (before.get(name), after.get(name)) {
            (Some(Value::Table(before)), Some(Value::Table(after))) if key != SEEK => {
                collect(&key, before, after, into)
            }
            (before, after) if before != after => {
                into.push(FitChange { key, before: before.cloned(), after: after.cloned(), gain_ms: 0.0 });
            }
            _ => {}
        }
    }
}

/// The drive with the value that a key had before; `None` if there is no such drive.
pub(crate) fn without(spec: &DriveSpec, change: &FitChange) -> Option<DriveSpec> {
    let mut table = Table::try_from(spec).ok()?;
    let mut at = &mut table;
    let mut names: Vec<&str> = change.key.split('.').collect();
    let last = names.pop()?;
    for name in names {
        at = at.get_mut(name)?.as_table_mut()?;
    }
    match &change.before {
        Some(value) => at.insert(last.to_string(), value.clone()),
        None => at.remove(last),
    };
    table.try_into().ok()
}

/// A drive whose numbers that differ from another's are rounded to four digits.
pub(crate) fn rounded(start: &DriveSpec, spec: &DriveSpec) -> DriveSpec {
    let table = |spec| Table::try_from(spec).expect("a drive is a table");
    let mut rounded = table(spec);
    round(&table(start), &mut rounded);
    rounded.try_into().unwrap_or_else(|_| spec.clone())
}

fn round(start: &Table, table: &mut Table) {
    for (key, value) in table.iter_mut() {
        let before = start.get(key);
        if before != Some(value) {
            round_value(before, value);
        }
    }
}

fn round_value(before: Option<&Value>, value: &mut Value) {
    match value {
        Value::Float(number) => *number = digits(*number),
        Value::Array(values) => values.iter_mut().for_each(|value| round_value(None, value)),
        Value::Table(table) => round(before.and_then(Value::as_table).unwrap_or(&Table::new()), table),
        _ => {}
    }
}

fn digits(number: f64) -> f64 {
    format!("{number:.3e}").parse::<f64>().ok().filter(|number| number.abs() >= 1e-4).unwrap_or(0.0)
}

/// The text of a drive file with these changes, each marked with its source, and the name of the source.
///
/// *Errors:* the text is not TOML.
pub fn write_changes(
    text: &str,
    changes: &[FitChange],
    name: &str,
    source: &str,
) -> Result<String, toml_edit::TomlError> {
    let mut document: DocumentMut = text.parse()?;
    document["name"] = toml_edit::value(name);
    document["evidence"] = toml_edit::value("fitted");
    document["sources"]["fit"] = toml_edit::value(source);
    for change in changes {
        let mut names: Vec<&str> = change.key.split('.').collect();
        let last = names.pop().expect("a key has a name");
        let mut table = document.as_table_mut() as &mut dyn toml_edit::TableLike;
        for name in names {
            let item = table.entry(name).or_insert_with(|| Item::Table(toml_edit::Table::new()));
            table = item.as_table_like_mut().expect("a drive's key below another is in a table");
        }
        match &change.after {
            Some(Value::Table(keys)) => {
                let mut edited = toml_edit::Table::new();
                keys.iter().for_each(|(key, value)| insert(&mut edited, key, value));
                table.insert(last, Item::Table(edited));
            }
            Some(value) => insert(table, last, value),
            None => {
                table.remove(last);
            }
        }
    }
    Ok(document.to_string())
}

fn insert(table: &mut dyn toml_edit::TableLike, key: &str, value: &Value) {
    if let Some(mut value) = edited(value) {
        value.decor_mut().set_suffix(" # fit");
        table.insert(key, Item::Value(value));
    }
}

/// The same value in an edited document.
fn edited(value: &Value) -> Option<toml_edit::Value> {
    format!("value = {value}").parse::<DocumentMut>().ok()?.remove("value")?.into_value().ok()
}
