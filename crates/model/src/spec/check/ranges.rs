//! Ranges of single keys, as the attributes of their fields give them.
//!
//! A field's `#[schemars(range(min = …, max = …))]` is its range here and in the JSON schema; `inner(range(…))` is the range of each
//! number of a list, `length(max = …)` that of the list's length. The unit in errors is the last word of the key, such as `ms`; a field
//! whose key ends otherwise has `#[schemars(extend("x-unit" = "…"))]`, which is empty for a number without a unit.

use crate::spec::{DriveSpec, Fault};
use serde::Serialize;
use serde::ser::{Error, Impossible, SerializeSeq, SerializeStruct, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::LazyLock;

/// Checks the keys of a table and of the tables in it; `path` is the prefix of their keys in errors.
pub(super) fn ranges(table: &impl Serialize, path: &str) -> Result<(), Fault> {
    let fault = |Outside(fault): Outside| Fault { key: format!("{path}{}", fault.key), ..fault };
    table.serialize(Checker { rule: &NO_RULE }).map_err(fault)
}

/// What the attributes of one field say.
#[derive(Debug, Default)]
struct KeyRule {
    /// Range of the number, or of each number of the list.
    number: Option<Range>,
    length: Option<Range>,
}

#[derive(Debug)]
struct Range {
    least: f64,
    most: f64,
    unit: String,
}

static NO_RULE: KeyRule = KeyRule { number: None, length: None };

/// Rules by the name of a table's type and by key. A key that has no range and holds no table has none, so that the check passes by the
/// long lists of a layout.
static RULES: LazyLock<BTreeMap<String, BTreeMap<String, KeyRule>>> = LazyLock::new(|| {
    let root = DriveSpec::json_schema().to_value();
    let types = root["$defs"].as_object().into_iter().flatten();
    let named = types.map(|(name, table)| (name.clone(), rules(table, &root)));
    named.chain([("DriveSpec".to_string(), rules(&root, &root))]).collect()
});

fn rules(table: &Value, root: &Value) -> BTreeMap<String, KeyRule> {
    let keys = table["properties"].as_object().into_iter().flatten();
    keys.filter_map(|(key, schema)| Some((key.clone(), rule(key, schema, root)?))).collect()
}

fn rule(key: &str, schema: &Value, root: &Value) -> Option<KeyRule> {
    let unit = schema["x-unit"].as_str().or(key.rsplit('_').next()).unwrap_or_default();
    let range = |least: &Value, most: &Value| {
        Some(Range { least: least.as_f64()?, most: most.as_f64()?, unit: unit.to_string() })
    };
    let number = |schema: &Value| range(&schema["minimum"], &schema["maximum"]);
    let rule = KeyRule {
        number: number(schema).or_else(|| number(&schema["items"])),
        length: range(schema.get("minItems").unwrap_or(&Value::from(0)), &schema["maxItems"]),
    };
    (rule.number.is_some() || rule.length.is_some() || holds_tables(schema, root)).then_some(rule)
}

/// Whether the key holds a table or a list of tables.
fn holds_tables(schema: &Value, root: &Value) -> bool {
    let choices = schema["anyOf"].as_array().into_iter().flatten();
    let mut places = choices.chain([schema, &schema["items"]]).filter_map(|schema| schema["$ref"].as_str());
    let table = |place: &str| root.pointer(place.strip_prefix('#')?)?.get("properties");
    places.any(|place| table(place).is_some())
}

/// A value outside its range, with the part of its key that is known so far.
#[derive(Debug)]
struct Outside(Fault);

impl Outside {
    /// The same fault, seen from the table that has the key.
    fn below(self, key: &str) -> Outside {
        let dot = if self.0.key.is_empty() || self.0.key.starts_with('[') { "" } else { "." };
        Outside(Fault { key: format!("{key}{dot}{}", self.0.key), ..self.0 })
    }

    /// The same fault, seen from the list. The key of a number in a list is that of the list.
    fn in_list(self, index: usize) -> Outside {
        if self.0.key.is_empty() { self } else { self.below(&format!("[{index}]")) }
    }
}

impl Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.key, self.0.message)
    }
}

impl std::error::Error for Outside {}

impl Error for Outside {
    fn custom<T: Display>(message: T) -> Outside {
        Outside(Fault::new("", message.to_string()))
    }
}

impl Range {
    fn check(&self, value: f64) -> Result<(), Outside> {
        super::within("", value, self.least, self.most, &self.unit).map_err(Outside)
    }
}

/// Checks one value on its way through serde, which gives the name of each table's type and all keys without a copy of the values. (A
/// `toml::Value` holds no `u64`, and a JSON value no NaN.)
#[derive(Clone, Copy)]
struct Checker {
    rule: &'static KeyRule,
}

/// Accepts numbers in the rule's range.
macro_rules! numbers {
    ($($method:ident($kind:ty))*) => {
        $(fn $method(self, value: $kind) -> Result<(), Outside> {
            self.rule.number.as_ref().map_or(Ok(()), |range| range.check(value as f64))
        })*
    };
}

/// Accepts values that have no range.
macro_rules! others {
    ($($method:ident($($kind:ty),*))*) => {
        $(fn $method(self, $(_: $kind),*) -> Result<(), Outside> {
            Ok(())
        })*
    };
}

/// Rejects forms that no table of a drive file has where a range can be.
macro_rules! no_form {
    ($($method:ident($($kind:ty),*) -> $form:ident)*) => {
        $(fn $method(self, $(_: $kind),*) -> Result<Self::$form, Outside> {
            Err(Outside::custom("has a form without ranges"))
        })*
    };
}

impl Serializer for Checker {
    type Ok = ();
    type Error = Outside;
    type SerializeSeq = Items;
    type SerializeStruct = TableKeys;
    type SerializeTuple = Impossible<(), Outside>;
    type SerializeTupleStruct = Impossible<(), Outside>;
    type SerializeTupleVariant = Impossible<(), Outside>;
    type SerializeMap = Impossible<(), Outside>;
    type SerializeStructVariant = Impossible<(), Outside>;

    numbers! {
        serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
        serialize_f32(f32) serialize_f64(f64)
    }
    others! {
        serialize_bool(bool) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_none() serialize_unit() serialize_unit_struct(&'static str)
        serialize_unit_variant(&'static str, u32, &'static str)
    }
    no_form! {
        serialize_tuple(usize) -> SerializeTuple
        serialize_tuple_struct(&'static str, usize) -> SerializeTupleStruct
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> SerializeTupleVariant
        serialize_map(Option<usize>) -> SerializeMap
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> SerializeStructVariant
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Outside> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Outside> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Outside> {
        value.serialize(self)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Items, Outside> {
        if let (Some(range), Some(length)) = (&self.rule.length, length) {
            range.check(length as f64)?;
        }
        Ok(Items { each: self, index: 0 })
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<TableKeys, Outside> {
        let rules = RULES.get(name);
        assert!(rules.is_some(), "{name}: a type of the drive file has another name in its schema");
        Ok(TableKeys { rules })
    }
}

struct Items {
    each: Checker,
    index: usize,
}

impl SerializeSeq for Items {
    type Ok = ();
    type Error = Outside;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Outside> {
        value.serialize(self.each).map_err(|fault| fault.in_list(self.index))?;
        self.index += 1;
        Ok(())
    }

    fn end(self) -> Result<(), Outside> {
        Ok(())
    }
}

struct TableKeys {
    rules: Option<&'static BTreeMap<String, KeyRule>>,
}

impl SerializeStruct for TableKeys {
    type Ok = ();
    type Error = Outside;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Outside> {
        let Some(rule) = self.rules.and_then(|rules| rules.get(key)) else { return Ok(()) };
        value.serialize(Checker { rule }).map_err(|fault| fault.below(key))
    }

    fn end(self) -> Result<(), Outside> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives;
    use crate::spec::DurationLimits;

    /// The message for a shipped drive with one change.
    fn said(change: impl Fn(&mut DriveSpec)) -> String {
        let mut spec = drives::load("atlas-10k").expect("it is shipped");
        assert_eq!(ranges(&spec, ""), Ok(()));
        change(&mut spec);
        let fault = ranges(&spec, "").expect_err("a value is outside its range");
        format!("{}: {}", fault.key, fault.message)
    }

    #[test]
    fn value_outside_its_range_is_rejected_by_key_range_and_unit() {
        assert_eq!(said(|spec| spec.queue.depth = 0), "queue.depth: 0 is outside 1 to 1024 commands");
        assert_eq!(
            said(|spec| spec.overhead.after_write.write_ms = f64::NAN),
            "overhead.after_write.write_ms: NaN is outside 0 to 100 ms"
        );
        assert_eq!(
            said(|spec| spec.queue.age_limit_ms = Some(f64::INFINITY)),
            "queue.age_limit_ms: inf is outside 1 to 10000000 ms"
        );
        assert_eq!(
            said(|spec| spec.bus.buffer_full_ratio = 1.5),
            "bus.buffer_full_ratio: 1.5 is outside 0 to 1 "
        );
    }

    #[test]
    fn value_in_a_list_of_tables_is_rejected_by_its_index() {
        let limits = |guideline_ms, count| {
            let mut reads = vec![Default::default(); count];
            reads.push(crate::spec::DurationLimit { guideline_ms, ..Default::default() });
            Some(DurationLimits { reads, ..DurationLimits::default() })
        };
        assert_eq!(
            said(|spec| spec.queue.duration_limits = limits(Some(10.0), 2)),
            "queue.duration_limits.reads[2].guideline_ms: 10 is outside 20 to 655350 ms"
        );
        assert_eq!(
            said(|spec| spec.queue.duration_limits = limits(None, 7)),
            "queue.duration_limits.reads: 8 is outside 0 to 7 limits"
        );
    }

    #[test]
    fn each_range_has_a_unit_or_none_by_name() {
        let known = [
            "",
            "%",
            "commands",
            "copies",
            "cylinders",
            "extents",
            "heads",
            "limits",
            "ms",
            "pieces",
            "records",
            "regions",
            "rpm",
            "runs",
            "s",
            "sectors",
            "segments",
            "times",
            "tracks",
            "turns",
            "us",
            "writes",
        ];
        let rules = RULES.iter().flat_map(|(table, rules)| rules.iter().map(move |rule| (table, rule)));
        let mut count = 0;
        for (table, (key, rule)) in rules {
            for range in rule.number.iter().chain(&rule.length) {
                assert!(
                    known.contains(&range.unit.as_str()),
                    "{table}.{key}: `{}`; give it `x-unit`",
                    range.unit
                );
                assert!(range.least < range.most, "{table}.{key}");
                count += 1;
            }
        }
        assert!(count > 80, "only {count} ranges");
    }
}
