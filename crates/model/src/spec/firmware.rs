//! The shipped classes of firmware: every file of `firmware/`, built into the crate.
//!
//! A class has the keys of a drive file that firmware decides: overheads, cache, log on the media, translation of shingled tracks, queue.
//! Drives of one maker and time share it, so it is measured on few drives and says on which. A drive file names its class with
//! `firmware = "NAME"` and overrides single keys.

mod keys;

pub use keys::{ClassKey, DriveKey, drive_keys};

use crate::spec::{DriveSpec, Fault, Interface, SpecError, did_you_mean, lay};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Name and text of each file, by name.
static ALL: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/firmware.rs"));

/// The tables of a drive file that a class may have.
const SECTIONS: [&str; 5] = ["overhead", "cache", "media_cache", "shingled", "queue"];

/// How a drive's tracks are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Recording {
    /// Tracks that can be written one by one.
    #[default]
    Conventional,
    /// Shingled tracks that the drive manages.
    DriveManaged,
    /// Shingled tracks in zones that the host writes in sequence.
    HostManaged,
}

impl Recording {
    /// Every kind, with its word.
    pub const ALL: [(&str, Recording); 3] = [
        ("conventional", Recording::Conventional),
        ("drive-managed", Recording::DriveManaged),
        ("host-managed", Recording::HostManaged),
    ];
}

/// A class of firmware.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FirmwareClass {
    /// Its name, in lower case with hyphens.
    pub name: String,
    /// The drives that have it, for people.
    pub title: String,
    /// The drives on which it was measured, and how; or what it is assumed from.
    pub measured_on: String,
    /// First and last year of introduction of the drives to which `headstack drive new` gives it; zeros for a class that must be named.
    pub years: [u32; 2],
    /// Interfaces of these drives.
    pub interfaces: Vec<Interface>,
    /// How their tracks are recorded.
    pub recording: Recording,
    /// Whether they have a queue.
    pub queued: bool,
    /// Sources of the numbers, as in a drive file.
    #[serde(default)]
    pub sources: BTreeMap<String, String>,
    /// What drives of the class may have, by key: least and most.
    #[serde(default)]
    pub range: BTreeMap<String, [f64; 2]>,
    /// The keys that it gives to a drive file, by table.
    #[serde(flatten)]
    #[schemars(skip)]
    pub tables: Table,
    /// The comment in its file that gives the source of each key, by path.
    #[serde(skip)]
    pub comments: BTreeMap<String, String>,
}

/// All shipped classes, in the order of their names: name and file.
pub fn all() -> &'static [(&'static str, &'static str)] {
    ALL
}

/// The shipped class `name`.
///
/// *Errors:* no such class; the error names the nearest one.
pub fn load(name: &str) -> Result<FirmwareClass, SpecError> {
    let Some(text) = text_of(name) else {
        let hint = did_you_mean(name, ALL.iter().map(|(known, _)| *known));
        let shown: String = name.chars().take(60).collect();
        return Err(Fault::new("", format!("no class of firmware `{shown}`{hint}")).locate("", "firmware"));
    };
    FirmwareClass::parse(text, &origin(name))
}

/// The class that a drive of this kind has if nothing more is known of it; none for drives that are older than all classes.
pub fn usual(year: u32, interface: Interface, queued: bool, recording: Recording) -> Option<&'static str> {
    let fits = |class: &FirmwareClass| {
        (class.years[0]..=class.years[1]).contains(&year)
            && class.interfaces.contains(&interface)
            && class.queued == queued
            && class.recording == recording
    };
    let found = ALL.iter().find(|(name, _)| load(name).is_ok_and(|class| fits(&class)));
    found.map(|(name, _)| *name)
}

fn text_of(name: &str) -> Option<&'static str> {
    ALL.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

fn origin(name: &str) -> String {
    format!("firmware/{name}.toml")
}

impl FirmwareClass {
    /// Reads and checks the file of a class.
    ///
    /// *Errors:* the first fault found, with its line, its key and what is allowed.
    pub fn parse(text: &str, origin: &str) -> Result<FirmwareClass, SpecError> {
        let mut class: FirmwareClass =
            toml::from_str(text).map_err(|error| SpecError::from_toml(&error, text, origin))?;
        class.comments = keys::comments(text);
        class.check().map_err(|fault| fault.locate(text, origin))?;
        Ok(class)
    }

    fn check(&self) -> Result<(), Fault> {
        let unknown = self.tables.keys().find(|key| !SECTIONS.contains(&key.as_str()));
        if let Some(key) = unknown {
            let message = format!("is no table of a class of firmware; these are {}", SECTIONS.join(", "));
            return Err(Fault::new(key, message));
        }
        for (key, [least, most]) in &self.range {
            let message = match self.number(key) {
                None => "has no number in this file to which the range belongs".to_string(),
                Some(value) if *least <= value && value <= *most => continue,
                Some(value) => format!("[{least}, {most}] does not have the class's own value, {value}"),
            };
            return Err(Fault::new(format!("range.{key}"), message));
        }
        Ok(())
    }

    /// The number at a path such as `queue.committed`.
    pub fn number(&self, path: &str) -> Option<f64> {
        let mut keys = path.split('.');
        let first = self.tables.get(keys.next()?)?;
        let value = keys.try_fold(first, |value, key| value.get(key))?;
        value.as_float().or(value.as_integer().map(|whole| whole as f64))
    }
}

/// The class that a drive file names before its first table.
fn named_in(text: &str) -> Option<String> {
    let head = text.lines().map(str::trim_start).take_while(|line| !line.starts_with('['));
    let line = head.into_iter().find(|line| line.starts_with("firmware"))?;
    let table: Table = toml::from_str(line).ok()?;
    table.get("firmware")?.as_str().map(str::to_string)
}

/// Reads a drive file over the class that it names.
///
/// *Errors:* no such class; a key or value that the file or the whole of both may not have.
pub(crate) fn read(text: &str, origin: &str) -> Result<DriveSpec, SpecError> {
    let refused = |error: &toml::de::Error| SpecError::from_toml(error, text, origin);
    let Some(name) = named_in(text) else { return toml::from_str(text).map_err(|error| refused(&error)) };
    let class = load(&name).map_err(|error| Fault::new("firmware", error.message).locate(text, origin))?;
    let own: Table = toml::from_str(text).map_err(|error| refused(&error))?;
    let mut whole = Joined::new(text);
    for (key, value) in &class.tables {
        whole.add(key, value, own.get(key));
    }
    let joined = whole.text();
    if toml::from_str::<Table>(&joined).is_err() {
        // A table without a header, such as `queue = { depth = 8 }`, takes no more lines.
        let mut tables = class.tables;
        lay(&mut tables, own);
        let merged = Value::Table(tables).try_into::<DriveSpec>();
        return merged.map_err(|error| Fault::new("", error.message()).locate(text, origin));
    }
    toml::from_str(&joined).map_err(|error| {
        let error = SpecError::from_toml(&error, &joined, origin);
        if let Some(line) = whole.line_in_file(error.line) {
            return SpecError { line, ..error };
        }
        // The class's table is complete but for what the drive file must have: a misspelt name of the table explains more.
        match toml::from_str::<DriveSpec>(text) {
            Err(alone) if alone.message().starts_with("unknown field") => refused(&alone),
            _ => SpecError { line: Fault::new("firmware", "").locate(text, origin).line, ..error },
        }
    })
}

/// A drive file with the lines that its class adds, so that an error has its line in the file.
struct Joined {
    /// Each line with its number in the drive file; none for those of the class.
    lines: Vec<(String, Option<usize>)>,
}

impl Joined {
    fn new(text: &str) -> Joined {
        Joined {
            lines: text
                .lines()
                .enumerate()
                .map(|(index, line)| (line.to_string(), Some(index + 1)))
                .collect(),
        }
    }

    /// Adds what a table of the class has and the file's table of the same path has not.
    fn add(&mut self, path: &str, value: &Value, own: Option<&Value>) {
        let Some(table) = value.as_table() else { return };
        let mut missing = Vec::new();
        for (key, value) in table {
            let own = own.and_then(|own| own.get(key));
            match value {
                Value::Table(_) => self.add(&format!("{path}.{key}"), value, own),
                _ if own.is_none() => missing.push((format!("{key} = {value}"), None)),
                _ => {}
            }
        }
        let header = format!("[{path}]");
        let is_header =
            |(line, _): &(String, Option<usize>)| line.split('#').next().unwrap_or("").trim() == header;
        let place = match self.lines.iter().position(is_header) {
            Some(place) => place + 1,
            None => {
                self.lines.push((header, None));
                self.lines.len()
            }
        };
        self.lines.splice(place..place, missing);
    }

    fn text(&self) -> String {
        self.lines.iter().map(|(line, _)| format!("{line}\n")).collect()
    }

    fn line_in_file(&self, line: usize) -> Option<usize> {
        self.lines.get(line.checked_sub(1)?)?.1
    }
}

/// The error of a fault in a drive file, or in the class that it names where the file has no such key.
pub(crate) fn locate(fault: Fault, text: &str, file: &str) -> SpecError {
    let error = fault.clone().locate(text, file);
    let class = if error.line == 0 { named_in(text).filter(|name| text_of(name).is_some()) } else { None };
    let in_class = class.map(|name| fault.locate(text_of(&name).unwrap_or(""), &origin(&name)));
    match in_class {
        Some(found) if found.line > 0 => {
            SpecError { origin: format!("{file} over {}", found.origin), ..found }
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives;

    #[test]
    fn every_shipped_class_loads_by_its_name() {
        for (name, _) in all() {
            let class = load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(class.name, *name);
            assert!(!class.range.is_empty(), "{name}");
        }
    }

    #[test]
    fn unknown_class_is_rejected_with_line_and_nearest_name() {
        let text = format!("firmware = \"samsung-2006\"\n{}", drives::all()[0].1);
        let error = DriveSpec::parse(&text, "d.toml").expect_err("there is no such class");
        let said = "d.toml:1: firmware: no class of firmware `samsung-2006`; did you mean `samsung-2007`?";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn drive_file_overrides_single_keys_of_its_class() {
        let (_, text) =
            drives::all().iter().find(|(name, _)| *name == "samsung-hd103sj").expect("it is shipped");
        let spec = DriveSpec::parse(&text.replace("[queue]", "[queue]\ncommitted = 2"), "d.toml")
            .expect("it is good");
        let class = load("samsung-2007").expect("it is shipped");
        assert_eq!(spec.queue.committed, 2);
        assert_eq!(
            f64::from(spec.cache.dirty_runs_max),
            class.number("cache.dirty_runs_max").expect("it has one")
        );
        assert_eq!(DriveSpec::parse(&spec.to_toml(), "d.toml").as_ref(), Ok(&spec));
    }

    #[test]
    fn fault_that_comes_from_the_class_names_its_file() {
        let (_, text) =
            drives::all().iter().find(|(name, _)| *name == "samsung-hd103sj").expect("it is shipped");
        let error = DriveSpec::parse(&text.replace("[queue]", "[queue]\ncommitted_urgent = 200"), "d.toml");
        let error = error.expect_err("it is more than committed").to_string();
        assert!(error.contains("d.toml:") && error.contains("queue.committed_urgent: 200"), "{error}");
    }

    #[test]
    fn each_kind_of_drive_from_2000_on_has_one_usual_class() {
        for year in 2000..2030 {
            for (interface, queued) in [(Interface::Sata, true), (Interface::Ide, false)] {
                let queued = queued && year >= 2005;
                if !queued && year > 2006 {
                    continue;
                }
                let class = usual(year, interface, queued, Recording::Conventional);
                assert!(class.is_some(), "{year} {interface:?}");
            }
        }
        assert_eq!(usual(1995, Interface::Scsi, true, Recording::Conventional), None);
    }
}
