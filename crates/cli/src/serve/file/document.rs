//! A node file as text, with the settings of the command line applied.

use super::plan::{Plan, plan};
use super::spec::NodeSpec;
use crate::failure::Failure;
use headstack_model::SpecError;
use headstack_model::spec::Fault;
use toml::{Table, Value};

const LISTED: [&str; 2] = ["disk", "export"];

/// Settings of the command line, which replace or extend the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Overlay {
    pub(crate) top: Table,
    pub(crate) disks: Vec<Table>,
    /// Keys by path: those of `disk` and `export` apply to all of them.
    pub(crate) set: Vec<(String, Value)>,
}

/// Reads and checks a node file, if there is one, with the command line's settings. `origin` (the file's name) goes into errors.
///
/// *Errors:* the first fault found, with its line, its key and what is allowed.
pub(crate) fn read(file: Option<(&str, &str)>, overlay: &Overlay) -> Result<Plan, Failure> {
    let mut document = match file {
        // The file is checked without the command line's settings first, so that an error in it is reported with its line.
        Some((text, origin)) => checked(text, origin).map_err(Failure::input)?,
        None => Table::new(),
    };
    let is_changed = *overlay != Overlay::default();
    overlay.lay_on(&mut document).map_err(Failure::Input)?;
    let text = match file {
        Some((text, _)) if !is_changed => text.to_string(),
        _ => toml::to_string(&document).expect("a document is expressible in TOML"),
    };
    let origin = file.map_or("command line", |(_, origin)| origin);
    let placed = |error: SpecError| if is_changed { SpecError { line: 0, ..error } } else { error };
    let spec = typed(&text, origin).map_err(placed).map_err(Failure::input)?;
    plan(&spec).map_err(|fault| Failure::input(placed(fault.locate(&text, origin))))
}

/// The document, after a check that each key is known and of the right kind.
fn checked(text: &str, origin: &str) -> Result<Table, SpecError> {
    let document: Table = toml::from_str(text).map_err(|error| SpecError::from_toml(&error, text, origin))?;
    for name in LISTED {
        if document.get(name).is_some_and(Value::is_table) {
            return Err(Fault::new(name, format!("must stand as `[[{name}]]`")).locate(text, origin));
        }
    }
    typed(text, origin)?;
    Ok(document)
}

fn typed(text: &str, origin: &str) -> Result<NodeSpec, SpecError> {
    toml::from_str(text).map_err(|error| SpecError::from_toml(&error, text, origin))
}

impl Overlay {
    fn lay_on(&self, document: &mut Table) -> Result<(), String> {
        document.extend(self.top.clone());
        if !self.disks.is_empty() {
            let disks = document.entry("disk").or_insert_with(|| Value::Array(Vec::new()));
            let disks = disks.as_array_mut().expect("the file was checked");
            disks.extend(self.disks.iter().cloned().map(Value::Table));
        }
        for (path, value) in &self.set {
            let keys: Vec<&str> = path.split('.').collect();
            put(document, &keys, value)
                .ok_or_else(|| format!("--set {path}: there are no tables on the way to that key"))?;
        }
        Ok(())
    }
}

/// Sets the value at a path. Where the path meets a list of tables, sets it in each of them. None if a part of the path is not a table.
fn put(table: &mut Table, path: &[&str], value: &Value) -> Option<()> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        table.insert(first.to_string(), value.clone());
        return Some(());
    }
    match table.entry(first.to_string()).or_insert_with(|| Value::Table(Table::new())) {
        Value::Table(inner) => put(inner, rest, value),
        Value::Array(items) => items.iter_mut().try_for_each(|item| put(item.as_table_mut()?, rest, value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        match read(Some((text, "node.toml")), &Overlay::default()) {
            Ok(_) => panic!("it holds: {text}"),
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn every_fault_is_reported_with_its_line_and_key() {
        for (text, reported) in [
            ("listen = [\n", "node.toml:1"),
            ("[[disk]]\npaht = \"/dev/sdb\"", "node.toml:2: disk[0].paht: unknown field `paht`"),
            ("[[disk]]\npaht = \"/dev/sdb\"", "did you mean `path`?"),
            ("[disk]\npath = \"a\"", "node.toml:1: disk: must stand as `[[disk]]`"),
            ("[[disk]]\npath = \"a\"\n[disk.streams]\nmemory = 5", "did you mean `memory_bytes`?"),
            (
                "[[disk]]\npath = \"a\"\nstreams.memory_bytes = 5",
                "node.toml:3: disk[0].streams.memory_bytes: 5 is outside",
            ),
            ("", "node.toml: disk: there is none"),
            ("[[disk]]\nname = \"a\"", "node.toml:1: disk[0]: one of `path`, `emulate` and `ram_bytes`"),
            ("[[disk]]\npath = \"a\"\nram_bytes = 4096", "one of `path`, `emulate` and `ram_bytes`"),
            ("[[disk]]\npath = \"a\"\ndata = \"b\"", "node.toml:3: disk[0].data: is for an emulated disk"),
            (
                "[[disk]]\nemulate = \"null\"\nspeed = 0.0",
                "node.toml:3: disk[0].speed: 0 is outside 0.001 to 5000",
            ),
            (
                "[[disk]]\npath = \"x/a\"\n[[disk]]\npath = \"y/a\"",
                "node.toml:3: disk[1].name: two disks are called `a`",
            ),
            (
                "[[disk]]\npath = \"a\"\n[[disk]]\npath = \"a\"\nname = \"b\"",
                "disk[1].path: `a` is disk `a` already",
            ),
            (
                "[[disk]]\npath = \"vide0\"\n[[export]]\ndisk = \"video\"",
                "node.toml:4: export[0].disk: there is no disk `video`; did you mean `vide0`?",
            ),
            (
                "[[disk]]\npath = \"a\"\n[[export]]\ndisk = \"a\"\n[[export]]\ndisk = \"a\"",
                "node.toml:5: export[1].name: two exports are called `a`",
            ),
            (
                "[limits]\nconnections = 0\n[[disk]]\npath = \"a\"",
                "node.toml:2: limits.connections: 0 is outside",
            ),
            (
                "[limits]\nreply_ms = nan\n[[disk]]\npath = \"a\"",
                "node.toml:2: limits.reply_ms: NaN is outside",
            ),
            (
                "[[disk]]\npath = \"a\"\n[[export]]\ndisk = \"a\"\nallow = [\"10.0.0.0/33\"]",
                "node.toml:5: export[0].allow: `10.0.0.0/33` allows no client",
            ),
            (
                "listen = [\":9\", \"nowhere\"]\n[[disk]]\npath = \"a\"",
                "node.toml:1: listen[1]: `nowhere` is no address",
            ),
        ] {
            let met = refused(text);
            assert!(met.contains(reported), "{text}: {met}");
        }
    }

    #[test]
    fn impossible_rearrangement_is_reported_with_its_key() {
        for (text, reported) in [
            (
                "[[disk]]\npath = \"a\"\n[disk.rearrange]\nperiod_s = 0.0",
                "node.toml:4: disk[0].rearrange.period_s: 0 is outside 1 to 100000000 s",
            ),
            (
                "[[disk]]\nram_bytes = 4096\n[disk.rearrange]",
                "disk[0].rearrange: a disk in memory (`ram_bytes`) has no reserved region",
            ),
        ] {
            let met = refused(text);
            assert!(met.contains(reported), "{text}: {met}");
        }
    }

    #[test]
    fn command_line_overrides_the_file() {
        let text = "listen = [\"unix:a\"]\n[[disk]]\nram_bytes = 4096\n[[disk]]\nram_bytes = 8192";
        let number = |value| Value::Integer(value);
        let overlay = Overlay {
            top: Table::from_iter([("listen".to_string(), Value::Array(vec!["unix:b".into()]))]),
            disks: vec![Table::from_iter([("path".to_string(), "/dev/sdc".into())])],
            set: vec![("disk.streams.dispatch_set".to_string(), number(3))],
        };
        let plan = read(Some((text, "node.toml")), &overlay).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(plan.listen[0].to_string(), "unix:b");
        let names: Vec<&str> = plan.disks.iter().map(|disk| disk.name.as_str()).collect();
        assert_eq!(names, ["disk0", "disk1", "sdc"]);
        assert!(plan.disks.iter().all(|disk| disk.streams.dispatch_set == Some(3)));
        let wrong = Overlay { set: vec![("disk.ram_bytes.x".to_string(), number(1))], ..Overlay::default() };
        assert!(read(Some((text, "node.toml")), &wrong).is_err());
        let unknown = Overlay { set: vec![("disk.stream.x".to_string(), number(1))], ..Overlay::default() };
        let reported =
            read(Some((text, "node.toml")), &unknown).expect_err("there is no such key").to_string();
        assert!(
            reported.starts_with("node.toml: disk[0].stream: ")
                && reported.contains("did you mean `streams`?"),
            "{reported}"
        );
    }
}
