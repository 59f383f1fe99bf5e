//! The rig as a TOML document: merged over presets, and changed by paths.

pub use headstack_model::spec::lay;
use headstack_model::spec::{Fault, SpecError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// Tables that may occur once or as a list.
pub(super) const LISTED: [&str; 4] = ["drive", "bus", "controller", "array"];

/// Parses a document and converts the listed tables to lists.
///
/// *Errors:* not TOML; a listed table that is neither a table nor a list.
pub(super) fn read(text: &str, origin: &str) -> Result<Table, SpecError> {
    let mut document: Table =
        toml::from_str(text).map_err(|error| SpecError::from_toml(&error, text, origin))?;
    for name in LISTED {
        let Some(value) = document.get_mut(name) else { continue };
        let whole = std::mem::replace(value, Value::Boolean(false));
        *value = match whole {
            Value::Table(one) => Value::Array(vec![Value::Table(one)]),
            Value::Array(many) if many.iter().all(Value::is_table) => Value::Array(many),
            _ => {
                let message = format!("must be a table `[{name}]` or tables `[[{name}]]`");
                return Err(Fault::new(name, message).locate(text, origin));
            }
        };
    }
    Ok(document)
}

/// Turns a fault into an error: the line of its key in `text`, and the key as it is written in the file.
pub(super) fn locate(fault: Fault, text: &str, document: &Table, origin: &str) -> SpecError {
    let Fault { key, message } = fault;
    let list =
        LISTED.into_iter().find(|name| key.strip_prefix(*name).is_some_and(|rest| rest.starts_with("[0]")));
    let Some(list) = list else { return Fault { key, message }.locate(text, origin) };
    let short = key.replacen("[0]", "", 1);
    let is_table =
        toml::from_str::<Table>(text).is_ok_and(|table| table.get(list).is_some_and(Value::is_table));
    let written = if is_table { short.clone() } else { key.clone() };
    let shown = if tables(document, list).count() == 1 { short } else { key };
    SpecError { key: shown, ..Fault { key: written, message }.locate(text, origin) }
}

pub(super) fn tables<'a>(document: &'a Table, name: &str) -> impl Iterator<Item = &'a Table> {
    let list = document.get(name).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_table)
}

/// Sets `value` at the end of a path, and creates the tables on the way.
///
/// *Errors:* a part of the path is not a table; returns the length of the path up to it.
pub(super) fn put(table: &mut Table, path: &[&str], value: &Value) -> Result<(), usize> {
    let Some((first, rest)) = path.split_first() else { return Ok(()) };
    if rest.is_empty() {
        table.insert(first.to_string(), value.clone());
        return Ok(());
    }
    let inner = table.entry(first.to_string()).or_insert_with(|| Value::Table(Table::new()));
    let inner = inner.as_table_mut().ok_or(1usize)?;
    put(inner, rest, value).map_err(|gone| gone + 1)
}

/// Deserializes a table.
///
/// *Errors:* the key at fault, as a path within the table.
pub(super) fn typed<T: DeserializeOwned>(table: &Table) -> Result<T, Fault> {
    let text = text(table);
    toml::from_str(&text).map_err(|error| {
        let SpecError { key, message, .. } = SpecError::from_toml(&error, &text, "");
        Fault { key, message }
    })
}

pub(super) fn text<T: Serialize>(value: &T) -> String {
    toml::to_string(value).expect("rigs and drives are expressible in TOML")
}

/// A value from a command line: TOML if it parses, else a text.
pub fn value(word: &str) -> Value {
    let read: Option<Table> = toml::from_str(&format!("value = {word}")).ok();
    match read {
        Some(mut table) if table.len() == 1 => {
            table.remove("value").unwrap_or(Value::String(word.to_string()))
        }
        _ => Value::String(word.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_value_is_parsed_as_toml_or_kept_as_text() {
        assert_eq!(value("32"), Value::Integer(32));
        assert_eq!(value("0.5"), Value::Float(0.5));
        assert_eq!(value("true"), Value::Boolean(true));
        assert_eq!(value("[1, 2]"), Value::Array(vec![Value::Integer(1), Value::Integer(2)]));
        assert_eq!(value("\"7\""), Value::String("7".to_string()));
        for word in ["sptf", "c-look", "", "1\nvalue2 = 3", "a = 1"] {
            assert_eq!(value(word), Value::String(word.to_string()));
        }
    }

    #[test]
    fn overlay_merges_tables_and_replaces_lists() {
        let mut under: Table = toml::from_str("a = 1\nl = [1, 2]\n[t]\nb = 2\nc = 3").expect("TOML");
        lay(&mut under, toml::from_str("l = [3]\nt.c = 4\nt.d = 5").expect("TOML"));
        let wanted: Table = toml::from_str("a = 1\nl = [3]\n[t]\nb = 2\nc = 4\nd = 5").expect("TOML");
        assert_eq!(under, wanted);
    }

    #[test]
    fn path_through_a_scalar_is_rejected_at_that_key() {
        let mut table: Table = toml::from_str("[a]\nb = 1").expect("TOML");
        assert_eq!(put(&mut table, &["a", "b", "c"], &Value::Integer(2)), Err(2));
        assert_eq!(put(&mut table, &["a", "c", "d"], &Value::Integer(2)), Ok(()));
        assert_eq!(table["a"]["c"]["d"], Value::Integer(2));
    }
}
