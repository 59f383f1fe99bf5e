//! The keys of a class of firmware one by one, and where a drive that names a class has each of its keys from.

use super::{FirmwareClass, SECTIONS, load, named_in};
use crate::spec::SpecError;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A key that a class gives to a drive file.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassKey<'a> {
    /// Its path, such as `queue.committed`.
    pub path: String,
    /// The class's value.
    pub value: &'a Value,
    /// The comment in the class's file that gives the value's source; words may have none.
    pub source: Option<&'a str>,
    /// Least and most that drives of the class may have.
    pub range: Option<[f64; 2]>,
}

/// A key that firmware decides, as a drive with a class has it.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveKey {
    /// Its path, such as `queue.committed`.
    pub path: String,
    /// The class's value; none for a key that the class does not give.
    pub in_class: Option<Value>,
    /// The drive file's value; none for a key that the file does not set.
    pub in_file: Option<Value>,
}

impl DriveKey {
    /// The drive's value, which is the file's where it sets the key.
    pub fn value(&self) -> Option<&Value> {
        self.in_file.as_ref().or(self.in_class.as_ref())
    }
}

impl FirmwareClass {
    /// The keys that the class gives, in the order of their paths.
    pub fn keys(&self) -> Vec<ClassKey<'_>> {
        let key = |(path, value): (String, _)| ClassKey {
            value,
            source: self.comments.get(&path).map(String::as_str),
            range: self.range.get(&path).copied(),
            path,
        };
        leaves(&self.tables).into_iter().map(key).collect()
    }
}

/// The keys that firmware decides and that a drive file or its class has, in the order of their paths; none if the file names no class.
///
/// *Errors:* no such class; the text is not TOML.
pub fn drive_keys(text: &str, origin: &str) -> Result<Vec<DriveKey>, SpecError> {
    let Some(name) = named_in(text) else { return Ok(Vec::new()) };
    let class = load(&name)?;
    let mut own: Table = toml::from_str(text).map_err(|error| SpecError::from_toml(&error, text, origin))?;
    own.retain(|table, _| SECTIONS.contains(&table));
    let (in_class, in_file) = (leaves(&class.tables), leaves(&own));
    let mut paths: Vec<&String> = in_class.keys().chain(in_file.keys()).collect();
    paths.sort();
    paths.dedup();
    let value = |from: &BTreeMap<String, &Value>, path: &str| from.get(path).map(|value| (*value).clone());
    let key = |path: &String| DriveKey {
        path: path.clone(),
        in_class: value(&in_class, path),
        in_file: value(&in_file, path),
    };
    Ok(paths.into_iter().map(key).collect())
}

/// The values in tables and in tables of tables, by path.
fn leaves(table: &Table) -> BTreeMap<String, &Value> {
    let mut found = BTreeMap::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) => {
                let inner = leaves(inner);
                found.extend(inner.into_iter().map(|(path, value)| (format!("{key}.{path}"), value)));
            }
            value => {
                found.insert(key.clone(), value);
            }
        }
    }
    found
}

/// The comment that gives the source of each key, by path: the one behind its value, else the one behind the heading of its table.
///
/// Reads what the files of classes have: one key on each line.
pub(super) fn comments(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let (mut table, mut of_table) = (String::new(), None);
    for line in text.lines() {
        let (code, comment) = split_comment(line);
        let code = code.trim();
        if code.starts_with('[') {
            table = format!("{}.", code.trim_matches(['[', ']']));
            of_table = comment;
        } else if let Some((key, _)) = code.split_once('=')
            && let Some(comment) = comment.or(of_table)
        {
            found.insert(format!("{table}{}", key.trim()), comment.trim().to_string());
        }
    }
    found
}

/// Splits a line at the `#` that begins a comment.
fn split_comment(line: &str) -> (&str, Option<&str>) {
    let mut is_quoted = false;
    for (index, c) in line.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '#' if !is_quoted => return (&line[..index], Some(&line[index + 1..])),
            _ => {}
        }
    }
    (line, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drives;

    #[test]
    fn comment_of_a_key_is_its_own_or_that_of_its_table() {
        let text = "a = 1 # of a\n[t] # of t\nb = \"# no\" # of b\nc = 2\n[u.v]\nd = 3\n";
        let found = comments(text);
        let found: Vec<(&str, &str)> =
            found.iter().map(|(key, said)| (key.as_str(), said.as_str())).collect();
        assert_eq!(found, [("a", "of a"), ("t.b", "of b"), ("t.c", "of t")]);
    }

    #[test]
    fn key_of_a_class_has_value_source_and_range() {
        let class = load("samsung-2007").expect("it is shipped");
        let keys = class.keys();
        let committed = keys.iter().find(|key| key.path == "queue.committed").expect("it has one");
        assert_eq!((committed.value, committed.range), (&Value::Integer(9), Some([1.0, 10.0])));
        assert!(committed.source.is_some_and(|said| said.starts_with("derived: ")), "{committed:?}");
        let read_hit = keys.iter().find(|key| key.path == "overhead.after_read.read_hit_ms");
        assert_eq!(read_hit.map(|key| key.range), Some(None));
    }

    #[test]
    fn drive_key_is_of_the_class_or_of_the_file_or_overridden() {
        let (_, text) =
            drives::all().iter().find(|(name, _)| *name == "samsung-hd103sj").expect("it is shipped");
        let text = text.replace("[queue]", "[queue]\ncommitted = 2");
        let keys = drive_keys(&text, "d.toml").expect("it is good");
        let of = |path: &str| {
            let key = keys.iter().find(|key| key.path == path).expect("it has one");
            (key.in_class.clone(), key.in_file.clone(), key.value().cloned())
        };
        let [two, nine, queue] = [2, 9, 32].map(|number| Some(Value::Integer(number)));
        assert_eq!(of("queue.committed"), (nine, two.clone(), two));
        assert_eq!(of("queue.depth"), (None, queue.clone(), queue));
        assert_eq!(of("queue.order").1, None);
        assert!(keys.iter().all(|key| !key.path.starts_with("mechanics")));
        let (_, old) = drives::all().iter().find(|(name, _)| *name == "atlas-10k").expect("it is shipped");
        assert_eq!(drive_keys(old, "d.toml"), Ok(Vec::new()), "it has no class");
    }
}
