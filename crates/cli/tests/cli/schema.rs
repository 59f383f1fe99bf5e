//! The published schemas of what commands print as JSON: `docs/formats/schema`, a file per command.
//!
//! Every output that a test reads is compared with its schema: each required key is there, each value has its type, and no key is missing
//! in the schema. `HEADSTACK_UPDATE=1` adds keys to the schemas. It removes none, because programs read them: that takes a new version,
//! which `HEADSTACK_SCHEMA=new` begins.

#![allow(clippy::disallowed_types, reason = "tests run in threads and share the files of the schemas")]

use serde_json::{Map, Value, json};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Held while schemas are read or written, because tests run in threads.
static SCHEMAS: Mutex<()> = Mutex::new(());

/// Keys whose objects have keys of a file or of the user's: any, with values of any type.
const OPEN: [&str; 3] = ["rig", "job options", "settings"];

/// What may change in a schema.
#[derive(Clone, Copy, PartialEq)]
enum Change {
    /// Nothing.
    Forbidden,
    /// Keys and types may be added.
    Additions,
    /// Keys that are not always there stop being required, too.
    NewVersion,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/schema")
}

/// The words of a command, as its schema is named: `trace-stat`.
pub(crate) fn name(command: &[&str]) -> String {
    command.join("-")
}

/// The schema of the longest command with which the arguments begin.
pub(crate) fn file(args: &[&str]) -> Option<PathBuf> {
    let lengths = (1..=args.len().min(3)).rev();
    let mut files = lengths.map(|length| folder().join(format!("{}.json", name(&args[..length]))));
    files.find(|path| path.exists())
}

/// Compares what a command printed with its schema, and brings the schema up to date where that is asked for.
///
/// # Panics
///
/// The output does not match, or the command has no schema.
pub(crate) fn check(args: &[&str], found: &Value) {
    let _held = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    let change = match (env::var_os("HEADSTACK_SCHEMA"), env::var_os("HEADSTACK_UPDATE")) {
        (Some(word), _) if word == "new" => Change::NewVersion,
        (_, Some(_)) => Change::Additions,
        _ => Change::Forbidden,
    };
    let path = file(args).unwrap_or_else(|| panic!("{args:?} has no schema in {}", folder().display()));
    let text = fs::read_to_string(&path).expect("the schema can be read");
    let old: Value = serde_json::from_str(&text).expect("a schema is JSON");
    let new = merged(Some(&old), found, "", change)
        .unwrap_or_else(|fault| panic!("{args:?} does not match {}: {fault}", path.display()));
    if new != old {
        let text = serde_json::to_string_pretty(&new).expect("a schema is JSON") + "\n";
        fs::write(&path, text).expect("the schema can be written");
    }
}

/// What a command printed as JSON, compared with its schema.
///
/// # Panics
///
/// As [`check`], or it is no JSON.
pub(crate) fn parsed(args: &[&str], printed: &str) -> Value {
    let found = serde_json::from_str(printed).unwrap_or_else(|error| panic!("{args:?}: {error}: {printed}"));
    check(args, &found);
    found
}

/// The schema with what a value adds to it.
///
/// *Errors:* a change that is not allowed, with the path of its key.
fn merged(old: Option<&Value>, found: &Value, at: &str, change: Change) -> Result<Value, String> {
    let mut schema = old.and_then(Value::as_object).cloned().unwrap_or_default();
    // Of a file's own keys, or described elsewhere.
    if schema.contains_key("$ref") || schema.contains_key("$defs") {
        return Ok(schema.into());
    }
    merge_type(&mut schema, found, at, change)?;
    match found {
        Value::Array(items) => {
            for item in items {
                let known = schema.get("items");
                let items = merged(known, item, &format!("{at}/*"), change)?;
                schema.insert("items".to_string(), items);
            }
        }
        Value::Object(object) if !is_open(at, &schema) => merge_keys(&mut schema, object, at, change)?,
        _ => {}
    }
    Ok(schema.into())
}

fn is_open(at: &str, schema: &Map<String, Value>) -> bool {
    let key = at.rsplit('/').next().unwrap_or_default();
    OPEN.contains(&key) || schema.contains_key("additionalProperties")
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn merge_type(
    schema: &mut Map<String, Value>,
    found: &Value,
    at: &str,
    change: Change,
) -> Result<(), String> {
    let own = type_name(found);
    let mut types: Vec<String> = match schema.get("type") {
        None => Vec::new(),
        Some(Value::String(one)) => vec![one.clone()],
        Some(several) => serde_json::from_value(several.clone()).map_err(|error| format!("{at}: {error}"))?,
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.contains(found)
    {
        return Err(format!("{at} is {found}, where the schema has {values:?}"));
    }
    let is_known = |name: &str| types.iter().any(|known| known == name);
    if is_known(own) || own == "integer" && is_known("number") {
        return Ok(());
    }
    let widens =
        own == "null" || own == "number" && is_known("integer") || types.iter().all(|known| known == "null");
    if change == Change::Forbidden || !widens && change == Change::Additions {
        return Err(format!("{at} is of type {own}, where the schema has {types:?}"));
    }
    types.retain(|known| !(own == "number" && known == "integer"));
    types.push(own.to_string());
    types.sort_by_key(|name| name == "null");
    let value = if let [one] = &types[..] { json!(one) } else { json!(types) };
    schema.insert("type".to_string(), value);
    Ok(())
}

fn merge_keys(
    schema: &mut Map<String, Value>,
    object: &Map<String, Value>,
    at: &str,
    change: Change,
) -> Result<(), String> {
    let is_first = !schema.contains_key("properties");
    let mut properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut required: Vec<String> = schema
        .get("required")
        .map_or(Vec::new(), |known| serde_json::from_value(known.clone()).unwrap_or_default());
    for (key, value) in object {
        let place = format!("{at}/{key}");
        if !properties.contains_key(key) && change == Change::Forbidden {
            return Err(format!("the schema lacks {place}; HEADSTACK_UPDATE=1 adds it"));
        }
        properties.insert(key.clone(), merged(properties.get(key), value, &place, change)?);
        if is_first {
            required.push(key.clone());
        }
    }
    if let Some(lost) = required.iter().find(|key| !object.contains_key(*key)) {
        if change != Change::NewVersion {
            return Err(format!(
                "{at}/{lost} is missing, which programs may read: removing it takes a new version"
            ));
        }
        required.retain(|key| object.contains_key(key));
    }
    schema.insert("properties".to_string(), properties.into());
    schema.insert("required".to_string(), required.into());
    Ok(())
}

#[test]
fn schema_accepts_additions_and_no_removal() {
    let first = json!({"a": 1, "b": {"c": [1.5]}, "n": null});
    let schema = merged(None, &first, "", Change::NewVersion).expect("all is new");
    let changed = |value: &Value, change| merged(Some(&schema), value, "", change);
    assert_eq!(changed(&first, Change::Forbidden), Ok(schema.clone()));
    let more = json!({"a": 1, "b": {"c": [1.5], "d": true}, "n": "text"});
    assert!(changed(&more, Change::Forbidden).is_err_and(|fault| fault.contains("lacks /b/d")));
    let wider = changed(&more, Change::Additions).expect("keys and values in place of null are additions");
    assert_eq!(wider["properties"]["b"]["properties"]["d"], json!({"type": "boolean"}));
    assert_eq!(wider["properties"]["n"]["type"], json!(["string", "null"]));
    assert_eq!(wider["properties"]["b"]["required"], json!(["c"]), "older output lacks the new key");
    for change in [Change::Forbidden, Change::Additions] {
        let less = json!({"a": 1, "n": null});
        assert!(changed(&less, change).is_err_and(|fault| fault.starts_with("/b is missing")));
        let other = json!({"a": "one", "b": {"c": []}, "n": null});
        assert!(changed(&other, change).is_err_and(|fault| fault.starts_with("/a is of type string")));
        let other = json!({"a": 1, "b": {"c": ["x"]}, "n": null});
        assert!(changed(&other, change).is_err_and(|fault| fault.starts_with("/b/c/* is of type string")));
    }
}
