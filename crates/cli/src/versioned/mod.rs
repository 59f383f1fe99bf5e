//! The JSON that commands print: objects whose first key says which version of Headstack made them.

#[cfg(test)]
pub(crate) mod schema;

use crate::failure::Failure;
use schemars::{Schema, json_schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::Write;

/// Prints an object with the key `version` before its own.
pub(crate) fn print(object: &impl Serialize, out: &mut dyn Write) -> Result<(), Failure> {
    Ok(out.write_all(text(object).as_bytes())?)
}

/// The same as a text that ends with a line's end.
pub(crate) fn text(object: &impl Serialize) -> String {
    format!("{:#}\n", with_version(object))
}

fn with_version(object: &impl Serialize) -> Value {
    let own = match serde_json::to_value(object).expect("numbers and words are expressible in JSON") {
        Value::Object(own) => own,
        other => unreachable!("a command's results are an object, not {other}"),
    };
    let version = ("version".to_string(), env!("CARGO_PKG_VERSION").into());
    [version].into_iter().chain(own).collect::<Map<String, Value>>().into()
}

/// The schema of an object with these keys, each with a value of the type `kind`.
pub(crate) fn numbers_schema(names: &[&str], kind: &str) -> Schema {
    let property = |name: &&str| (name.to_string(), json!({ "type": kind }));
    let properties: Map<String, Value> = names.iter().map(property).collect();
    json_schema!({ "type": "object", "properties": properties, "required": names })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_the_first_key_and_own_keys_keep_their_order() {
        let mut out = Vec::new();
        let object = serde_json::json!({"trace": "a", "block_bytes": 4096, "share": 0.1});
        print(&object, &mut out).unwrap_or_else(|failure| panic!("{failure}"));
        let expected = format!(
            "{{\n  \"version\": \"{}\",\n  \"trace\": \"a\",\n  \"block_bytes\": 4096,\n  \"share\": 0.1\n}}\n",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }
}
