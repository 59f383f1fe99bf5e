//! Ranges and units of single keys, as the attributes of their fields give them, for every kind of file.
//!
//! A field's `#[schemars(range(min = …, max = …))]` is its range in the check, in the JSON schema and in the documents; `inner(range(…))` is
//! the range of each number of a list, `length(max = …)` that of the list's length. The unit ends the name of a key; a field whose name
//! ends otherwise may have `#[schemars(extend("x-unit" = "…"))]`.

use crate::spec::Fault;
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::ser::{Error, Impossible, SerializeSeq, SerializeStruct, SerializeTuple, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::{self, Display};

/// The ranges of a kind of file, by the name of a table's type and by key. A key that has no range and holds no table has no rule, so that
/// the check passes by the long lists of a layout.
#[derive(Debug)]
pub struct KeyRules(BTreeMap<String, BTreeMap<String, KeyRule>>);

impl KeyRules {
    /// The rules of the keys of `T` and of the tables in it.
    pub fn from_type<T: JsonSchema>() -> KeyRules {
        let root = schema_for!(T).to_value();
        let types = root["$defs"].as_object().into_iter().flatten();
        let named = types.map(|(name, table)| (name.clone(), rules(table, &root)));
        KeyRules(named.chain([(T::schema_name().into_owned(), rules(&root, &root))]).collect())
    }

    /// Checks the keys of a table and of the tables in it; `prefix` begins their keys in errors.
    ///
    /// *Errors:* the first value outside its range.
    pub fn check(&self, table: &impl Serialize, prefix: &str) -> Result<(), Fault> {
        let fault = |Outside(fault): Outside| Fault { key: format!("{prefix}{}", fault.key), ..fault };
        table.serialize(Checker { rules: self, rule: &KeyRule::default() }).map_err(fault)
    }
}

/// What the attributes of one field say.
#[derive(Debug, Default)]
pub struct KeyRule {
    /// Range of the number, or of each number of the list.
    pub number: Option<KeyRange>,
    /// Range of the list's length.
    pub length: Option<KeyRange>,
}

impl KeyRule {
    /// The rule of a key by its schema.
    pub fn from_schema(key: &str, schema: &Value) -> KeyRule {
        let unit = unit(key, schema);
        let number = |schema: &Value| {
            let (least, most) = (schema["minimum"].as_f64()?, schema["maximum"].as_f64());
            // Each whole number is at least 0.
            (most.is_some() || least > 0.0).then(|| KeyRange { least, most, unit: unit.to_string() })
        };
        let length = schema["maxItems"].as_f64().map(|most| KeyRange {
            least: schema["minItems"].as_f64().unwrap_or(0.0),
            most: Some(most),
            unit: "entries".to_string(),
        });
        KeyRule { number: number(schema).or_else(|| number(&schema["items"])), length }
    }
}

/// The least and the most that a key allows. Displays as in errors and documents: `1 to 1024 commands`.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyRange {
    least: f64,
    /// `None` where only the type ends the range.
    most: Option<f64>,
    unit: String,
}

impl KeyRange {
    /// Checks a number, which stands in the error as `met`; not-a-number lies in no range.
    fn check(&self, value: f64, met: impl Display) -> Result<(), Outside> {
        if value >= self.least && self.most.is_none_or(|most| value <= most) {
            return Ok(());
        }
        Err(Outside(Fault::new("", format!("{met} is outside {self}"))))
    }
}

impl Display for KeyRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.least)?;
        if let Some(most) = self.most {
            write!(f, " to {most}")?;
        }
        if !self.unit.is_empty() {
            write!(f, " {}", self.unit)?;
        }
        f.write_str(if self.most.is_none() { " and more" } else { "" })
    }
}

/// Checks a number against a range that depends on other keys; not-a-number lies in none.
///
/// *Errors:* it lies outside; the error names `key`.
pub fn within(key: &str, value: f64, least: f64, most: f64, unit: &str) -> Result<(), Fault> {
    let range = KeyRange { least, most: Some(most), unit: unit.to_string() };
    range.check(value, value).map_err(|Outside(fault)| Fault { key: key.to_string(), ..fault })
}

/// Units by the end of a key's name, longer ends first.
const UNITS: [(&str, &str); 21] = [
    ("us_per_sector", "µs a sector"),
    ("us_per_kib", "µs a KiB"),
    ("us_per_page", "µs a page"),
    ("us_per_byte", "µs a byte"),
    ("mb_s", "MB/s"),
    ("_cylinders_ms", "cylinders and ms"),
    ("_ms", "ms"),
    ("_us", "µs"),
    ("_bytes_per_s", "bytes/s"),
    ("_s", "s"),
    ("_centisecs", "hundredths of a second"),
    ("_nsec", "ns"),
    ("_mb", "MiB"),
    ("_kb", "KiB"),
    ("sectors", "sectors"),
    ("_bytes", "bytes"),
    ("_cylinders", "cylinders"),
    ("_cylinder", "cylinder"),
    ("_turns", "turns"),
    ("_percent", "%"),
    ("rpm", "rpm"),
];

/// The unit of a key: that of its schema, else by the end of its name; empty for a number without a unit.
pub fn unit<'a>(key: &str, schema: &'a Value) -> &'a str {
    let by_name = || UNITS.iter().find(|(end, _)| key.ends_with(end)).map(|(_, unit)| *unit);
    schema["x-unit"].as_str().or_else(by_name).unwrap_or_default()
}

fn rules(table: &Value, root: &Value) -> BTreeMap<String, KeyRule> {
    let keys = table["properties"].as_object().into_iter().flatten();
    let rule = |(key, schema): (&String, &Value)| {
        let rule = KeyRule::from_schema(key, schema);
        let is_used = rule.number.is_some() || rule.length.is_some() || holds_tables(schema, root);
        is_used.then(|| (key.clone(), rule))
    };
    keys.filter_map(rule).collect()
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
    /// The same fault, seen from the list. The key of a number in a list is that of the list.
    fn in_list(self, index: usize) -> Outside {
        if self.0.key.is_empty() { self } else { Outside(self.0.below(&format!("[{index}]"))) }
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

/// Checks one value on its way through serde, which gives the name of each table's type and all keys without a copy of the values. (A
/// `toml::Value` holds no `u64`, and a JSON value no NaN.)
#[derive(Clone, Copy)]
struct Checker<'a> {
    rules: &'a KeyRules,
    rule: &'a KeyRule,
}

/// Accepts numbers in the rule's range.
macro_rules! numbers {
    ($($method:ident($kind:ty))*) => {
        $(fn $method(self, value: $kind) -> Result<(), Outside> {
            self.rule.number.as_ref().map_or(Ok(()), |range| range.check(value as f64, value))
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

/// Rejects forms that no table of a file has where a range can be.
macro_rules! no_form {
    ($($method:ident($($kind:ty),*) -> $form:ident)*) => {
        $(fn $method(self, $(_: $kind),*) -> Result<Self::$form, Outside> {
            Err(Outside::custom("has a form without ranges"))
        })*
    };
}

impl<'a> Serializer for Checker<'a> {
    type Ok = ();
    type Error = Outside;
    type SerializeSeq = Items<'a>;
    type SerializeStruct = TableKeys<'a>;
    type SerializeTuple = Items<'a>;
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

    fn serialize_seq(self, length: Option<usize>) -> Result<Items<'a>, Outside> {
        if let (Some(range), Some(length)) = (&self.rule.length, length) {
            range.check(length as f64, length)?;
        }
        Ok(Items { each: self, index: 0 })
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'a>, Outside> {
        Ok(Items { each: self, index: 0 })
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<TableKeys<'a>, Outside> {
        let keys = self.rules.0.get(name);
        let keys = keys.unwrap_or_else(|| panic!("{name}: the type has another name in its schema"));
        Ok(TableKeys { rules: self.rules, keys })
    }
}

struct Items<'a> {
    each: Checker<'a>,
    index: usize,
}

impl SerializeSeq for Items<'_> {
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

impl SerializeTuple for Items<'_> {
    type Ok = ();
    type Error = Outside;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Outside> {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Result<(), Outside> {
        Ok(())
    }
}

struct TableKeys<'a> {
    rules: &'a KeyRules,
    keys: &'a BTreeMap<String, KeyRule>,
}

impl SerializeStruct for TableKeys<'_> {
    type Ok = ();
    type Error = Outside;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Outside> {
        let Some(rule) = self.keys.get(key) else { return Ok(()) };
        value
            .serialize(Checker { rules: self.rules, rule })
            .map_err(|Outside(fault)| Outside(fault.below(key)))
    }

    fn end(self) -> Result<(), Outside> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::drives;
    use crate::spec::{DriveSpec, DurationLimits, RULES};

    /// The message for a shipped drive with one change.
    fn said(change: impl Fn(&mut DriveSpec)) -> String {
        let mut spec = drives::load("atlas-10k").expect("it is shipped");
        assert_eq!(RULES.check(&spec, ""), Ok(()));
        change(&mut spec);
        let fault = RULES.check(&spec, "").expect_err("a value is outside its range");
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
            "bus.buffer_full_ratio: 1.5 is outside 0 to 1"
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
            "queue.duration_limits.reads: 8 is outside 0 to 7 entries"
        );
    }
}
