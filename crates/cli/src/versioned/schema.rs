//! Compares the published schemas of what commands print, `docs/formats/schema`, with those of the types that they print.

#![allow(clippy::disallowed_methods, reason = "the published schemas are files of the repository")]

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};
use std::env;
use std::fs;
use std::path::Path;

/// Compares the published schema of a command with that of its type. Updates the published one if `HEADSTACK_UPDATE` or
/// `HEADSTACK_SCHEMA=new` requests that.
///
/// # Panics
///
/// They differ, or an update would break what the published version promises.
pub(crate) fn check<T: JsonSchema>(command: &str) {
    let file = format!("../../docs/formats/schema/{}.json", command.replace(' ', "-"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&file);
    let committed = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let old: Value = serde_json::from_str(&committed).expect("a schema is JSON");
    let version = old["$id"].as_str().and_then(|id| id.rsplit(':').next()?.parse::<u32>().ok());
    let version = version.unwrap_or_else(|| panic!("{file}: $id does not end with a version"));
    let new = published::<T>(command, version);
    let may_begin_version = env::var_os("HEADSTACK_SCHEMA").is_some_and(|word| word == "new");
    let promise = broken_promise(&old, &new, "");
    let new = match &promise {
        Some(_) if may_begin_version => published::<T>(command, version + 1),
        Some(promise) => panic!("{file}: {promise}, which programs may read: it takes HEADSTACK_SCHEMA=new"),
        None => new,
    };
    let text = serde_json::to_string_pretty(&new).expect("a schema is JSON") + "\n";
    if may_begin_version || env::var_os("HEADSTACK_UPDATE").is_some() {
        fs::write(&path, &text).expect("the schema can be written");
    }
    let committed = fs::read_to_string(&path).expect("it was read before");
    assert!(
        committed == text,
        "{file} is not the schema of its type: HEADSTACK_UPDATE=1 brings it up to date"
    );
}

/// The published schema of a type: without references, and with the key `version` where it is an object.
fn published<T: JsonSchema>(command: &str, version: u32) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(RecursiveTransform(simplify));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut own = schema.as_object().expect("types have keys or items").clone();
    // The title of the whole schema replaces the type's title. The type's comment is for readers of the code.
    for key in ["title", "description"] {
        own.remove(key);
    }
    if own["type"] == "object" {
        let mut properties: Map<String, Value> =
            [("version".to_string(), json!({ "type": "string" }))].into_iter().collect();
        properties.extend(own["properties"].as_object().cloned().unwrap_or_default());
        let required = std::iter::once("version".into()).chain(list(&own["required"]).iter().cloned());
        let required = required.collect::<Vec<Value>>();
        own.insert("properties".to_string(), properties.into());
        own.insert("required".to_string(), required.into());
    }
    let mut all = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:headstack:{}:{version}", command.replace(' ', "-")),
        "title": format!("What `headstack {command} --json` prints, version {version}"),
    });
    all.as_object_mut().expect("it was made as one").extend(own);
    all
}

/// Simplifies a schema to the form of the published ones: a value that may be null has a list of types, and a choice of words is an `enum`.
fn simplify(schema: &mut Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    let mut may_be_null = false;
    if let Some([value, null]) = object.get("anyOf").and_then(Value::as_array).map(Vec::as_slice)
        && *null == json!({ "type": "null" })
        && let Value::Object(value) = value.clone()
    {
        object.remove("anyOf");
        may_be_null = true;
        for (key, value) in value {
            object.entry(key).or_insert(value);
        }
    }
    if let Some(words) = object.get("oneOf").and_then(Value::as_array).and_then(|choices| words(choices)) {
        object.remove("oneOf");
        object.insert("type".to_string(), "string".into());
        object.insert("enum".to_string(), words.into());
    }
    if may_be_null {
        let known = object.get("type").cloned().expect("a value that may be null has a type");
        object.insert("type".to_string(), json!([known, "null"]));
        if let Some(Value::Array(words)) = object.get_mut("enum") {
            words.push(Value::Null);
        }
    }
}

/// All words of a choice; none if a choice is not a word.
fn words(choices: &[Value]) -> Option<Vec<Value>> {
    let of_choice = |choice: &Value| match (choice.get("const"), choice.get("enum")) {
        (Some(word), _) => Some(vec![word.clone()]),
        (_, Some(Value::Array(words))) => Some(words.clone()),
        _ => None,
    };
    Some(choices.iter().map(of_choice).collect::<Option<Vec<_>>>()?.concat())
}

/// The first key that the old schema promises and that the new one lacks or has with another type; none if the new one keeps all promises.
fn broken_promise(old: &Value, new: &Value, at: &str) -> Option<String> {
    let (was, is) = (types(old), types(new));
    let fits = |kind: &&str| was.contains(kind) || *kind == "integer" && was.contains(&"number");
    if !was.is_empty() && !is.iter().all(fits) {
        return Some(format!("{at} is of type {is:?} instead of {was:?}"));
    }
    let lost = list(&old["required"]).iter().find(|key| !list(&new["required"]).contains(key));
    if let Some(lost) = lost.and_then(Value::as_str) {
        return Some(format!("{at}/{lost} is not in every output"));
    }
    let empty = Map::new();
    for (key, value) in old["properties"].as_object().unwrap_or(&empty) {
        let broken = match new["properties"].get(key) {
            None => Some(format!("{at}/{key} is gone")),
            Some(new) => broken_promise(value, new, &format!("{at}/{key}")),
        };
        if broken.is_some() {
            return broken;
        }
    }
    let items = (old.get("items"), new.get("items"));
    if let (Some(old), Some(new)) = items { broken_promise(old, new, &format!("{at}/*")) } else { None }
}

/// The types of a value, except null.
fn types(schema: &Value) -> Vec<&str> {
    let all = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        several => list(several).iter().filter_map(Value::as_str).collect(),
    };
    all.into_iter().filter(|name| *name != "null").collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Serialize;

    #[derive(JsonSchema, Serialize)]
    #[serde(rename_all = "kebab-case")]
    enum Colour {
        /// A comment makes this word a choice with a description.
        DarkRed,
        /// So does this one.
        Blue,
    }

    #[derive(JsonSchema, Serialize)]
    struct Inner {
        share: f64,
    }

    #[derive(JsonSchema, Serialize)]
    struct Outer {
        colour: Colour,
        other: Option<Colour>,
        inner: Option<Inner>,
        #[serde(flatten)]
        flat: Inner,
    }

    #[test]
    fn schema_of_a_type_lists_words_and_null_and_requires_every_key() {
        let schema = published::<Outer>("try this", 3);
        assert_eq!(schema["$id"], "urn:headstack:try-this:3");
        assert_eq!(schema["required"], json!(["version", "colour", "other", "inner", "share"]));
        let properties = &schema["properties"];
        assert_eq!(properties["colour"]["enum"], json!(["dark-red", "blue"]));
        assert_eq!(properties["other"]["type"], json!(["string", "null"]));
        assert_eq!(properties["other"]["enum"], json!(["dark-red", "blue", null]));
        assert_eq!(properties["inner"]["type"], json!(["object", "null"]));
        assert_eq!(properties["inner"]["required"], json!(["share"]));
        assert!(!schema.to_string().contains("$ref"), "{schema}");
        let (colour, other) = (Colour::Blue, Some(Colour::DarkRed));
        let value = Outer { colour, other, inner: None, flat: Inner { share: 0.5 } };
        let printed = serde_json::to_value(value).expect("it is an object");
        let keys: Vec<&String> = printed.as_object().expect("it is an object").keys().collect();
        assert_eq!(
            list(&schema["required"])[1..],
            keys.into_iter().map(|key| json!(key)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn lost_keys_and_other_types_break_the_promise_of_a_schema() {
        let old = published::<Outer>("try", 1);
        let changed = |change: fn(&mut Value)| {
            let mut new = old.clone();
            change(&mut new["properties"]["inner"]);
            broken_promise(&old, &new, "")
        };
        assert_eq!(changed(|inner| inner["properties"]["more"] = json!({ "type": "string" })), None);
        assert_eq!(changed(|inner| inner["properties"]["share"]["type"] = json!("integer")), None);
        assert_eq!(changed(|inner| inner["properties"]["share"]["type"] = json!(["number", "null"])), None);
        let fault = changed(|inner| inner["required"] = json!([]));
        assert_eq!(fault.as_deref(), Some("/inner/share is not in every output"));
        let fault = changed(|inner| inner["properties"]["share"]["type"] = json!("string"));
        assert!(fault.is_some_and(|fault| fault.starts_with("/inner/share is of type")));
    }
}
