//! `headstack drive firmware`.

use super::show::word;
use crate::failure::Failure;
use crate::list;
use crate::versioned;
use headstack_model::firmware::{self, ClassKey, FirmwareClass, Recording};
use headstack_model::spec::Interface;
use headstack_model::{SpecError, drives};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// List the classes of firmware, or show one: on what it was measured, its keys and their ranges.
///
/// A drive file names its class with `firmware = "NAME"` and overrides single keys.
#[derive(clap::Args)]
pub(crate) struct Firmware {
    /// A class. [default: all]
    #[arg(value_name = "NAME")]
    class: Option<String>,
    /// Print JSON; with NAME, it also has the source of each key.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(JsonSchema, Serialize)]
struct ClassList {
    classes: Vec<ListedClass>,
}

/// A class of firmware.
#[derive(JsonSchema, Serialize)]
struct ListedClass {
    name: String,
    title: String,
    measured_on: String,
    /// First and last year of the drives to which `headstack drive new` gives the class; null for a class that must be named.
    years: Option<[u32; 2]>,
    interfaces: Vec<Interface>,
    recording: Recording,
    queued: bool,
    /// Shipped drives that have the class.
    drives: Vec<String>,
    /// Sources of the numbers, by the short word in `source` of a key; null in the list of all classes.
    sources: Option<BTreeMap<String, String>>,
    /// The keys that the class gives to a drive file; null in the list of all classes.
    keys: Option<Vec<ListedKey>>,
}

/// A key of a class.
#[derive(JsonSchema, Serialize)]
struct ListedKey {
    /// Its path in a drive file.
    key: String,
    #[schemars(schema_with = "value_schema")]
    value: toml::Value,
    /// The comment in the class's file that gives the source; null for a word or a choice without one.
    source: Option<String>,
    /// Least and most that drives of the class may have; null where the class does not say.
    range: Option<[f64; 2]>,
}

fn value_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "description": "The class's value.", "type": ["boolean", "number", "string"] })
}

impl ListedKey {
    fn new(key: ClassKey<'_>) -> ListedKey {
        ListedKey {
            value: key.value.clone(),
            source: key.source.map(str::to_string),
            range: key.range,
            key: key.path,
        }
    }
}

impl ListedClass {
    fn new(class: &FirmwareClass, with_keys: bool) -> ListedClass {
        ListedClass {
            name: class.name.clone(),
            title: class.title.clone(),
            measured_on: class.measured_on.clone(),
            years: (class.years != [0, 0]).then_some(class.years),
            interfaces: class.interfaces.clone(),
            recording: class.recording,
            queued: class.queued,
            drives: users(class).into_iter().map(str::to_string).collect(),
            sources: with_keys.then(|| class.sources.clone()),
            keys: with_keys.then(|| class.keys().into_iter().map(ListedKey::new).collect()),
        }
    }
}

impl Firmware {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(name) = &self.class else { return self.list_classes(out) };
        let class = firmware::load(name).map_err(Failure::input)?;
        if self.json {
            return versioned::print(&ClassList { classes: vec![ListedClass::new(&class, true)] }, out);
        }
        show(&class, out)
    }

    fn list_classes(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let load = |(name, _): &(&str, &str)| firmware::load(name);
        let classes = firmware::all().iter().map(load).collect::<Result<Vec<_>, SpecError>>();
        let classes = classes.map_err(Failure::input)?;
        if self.json {
            let classes = classes.iter().map(|class| ListedClass::new(class, false)).collect();
            return versioned::print(&ClassList { classes }, out);
        }
        let row =
            |class: &FirmwareClass| [class.name.clone(), class.title.clone(), class.measured_on.clone()];
        list::write(&classes, false, ("Classes of firmware", ["name", "drives", "measured on"]), row, out)
    }
}

/// The shipped drives that have a class.
fn users(class: &FirmwareClass) -> Vec<&'static str> {
    let uses =
        |name: &str| drives::load(name).is_ok_and(|spec| spec.firmware.as_deref() == Some(&class.name));
    drives::all().iter().map(|(name, _)| *name).filter(|name| uses(name)).collect()
}

fn show(class: &FirmwareClass, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{}\n", class.title)?;
    let users = users(class);
    let years = match class.years {
        [0, 0] => "none: a drive file must name it".to_string(),
        [first, last] => format!("{} drives of {first} to {last}", word(&class.recording)),
    };
    writeln!(out, "  measured on    {}", class.measured_on)?;
    writeln!(
        out,
        "  shipped drives {}",
        if users.is_empty() { "none".to_string() } else { users.join(", ") }
    )?;
    writeln!(out, "  drive new      {years}\n\nKeys")?;
    for key in class.keys() {
        let range = key.range.map_or(String::new(), |[least, most]| format!("  ({least} to {most})"));
        writeln!(out, "  {:<36} {}{range}", key.path, key.value)?;
    }
    writeln!(out, "\nSources")?;
    for (short, full) in &class.sources {
        writeln!(out, "  {short:<14} {full}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        crate::versioned::schema::check::<ClassList>("drive firmware");
    }
}
