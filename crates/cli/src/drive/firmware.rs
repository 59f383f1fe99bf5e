//! `headstack drive firmware`.

use super::show::word;
use crate::failure::Failure;
use crate::list;
use headstack_model::firmware::{self, FirmwareClass};
use headstack_model::{SpecError, drives};
use std::io::Write;

/// List the classes of firmware, or show one: on what it was measured, its keys and their ranges.
///
/// A drive file names its class with `firmware = "NAME"` and overrides single keys.
#[derive(clap::Args)]
pub(crate) struct Firmware {
    /// A class. [default: all]
    #[arg(value_name = "NAME")]
    class: Option<String>,
}

impl Firmware {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let Some(name) = &self.class else { return list_classes(out) };
        let class = firmware::load(name).map_err(Failure::input)?;
        show(&class, out)
    }
}

fn list_classes(out: &mut dyn Write) -> Result<(), Failure> {
    let load = |(name, _): &(&str, &str)| firmware::load(name);
    let classes =
        firmware::all().iter().map(load).collect::<Result<Vec<_>, SpecError>>().map_err(Failure::input)?;
    let row = |class: &FirmwareClass| [class.name.clone(), class.title.clone(), class.measured_on.clone()];
    list::write(&classes, false, ("Classes of firmware", ["name", "drives", "measured on"]), row, out)
}

fn show(class: &FirmwareClass, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "{}\n", class.title)?;
    let uses =
        |name: &str| drives::load(name).is_ok_and(|spec| spec.firmware.as_deref() == Some(&class.name));
    let users: Vec<&str> = drives::all().iter().map(|(name, _)| *name).filter(|name| uses(name)).collect();
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
    for (table, keys) in &class.tables {
        write_keys(class, table, keys, out)?;
    }
    writeln!(out, "\nSources")?;
    for (short, full) in &class.sources {
        writeln!(out, "  {short:<14} {full}")?;
    }
    Ok(())
}

/// Writes each key below a path, with its range.
fn write_keys(
    class: &FirmwareClass,
    path: &str,
    value: &toml::Value,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if let Some(table) = value.as_table() {
        for (key, value) in table {
            write_keys(class, &format!("{path}.{key}"), value, out)?;
        }
        return Ok(());
    }
    let range = class.range.get(path).map_or(String::new(), |[least, most]| format!("  ({least} to {most})"));
    writeln!(out, "  {path:<36} {value}{range}")?;
    Ok(())
}
