//! Errors of drive files: the place, the value met, what is allowed.

use std::fmt;

/// Why a file (a drive, a rig, a load, a job) was refused. Displays as one line: `file:line: key: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SpecError {
    /// The file that the text came from, or a name for it.
    pub origin: String,
    /// Line in the text, counted from 1; 0 where no line is at fault.
    pub line: usize,
    /// The key at fault, as a path (`geometry.zones[2].spares`); empty for faults of the TOML syntax.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.origin)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", one_line(&self.key))?;
        }
        write!(f, ": {}", one_line(&self.message))
    }
}

/// A text whose line ends and other control characters, which a name in a file may hold, are written as escapes.
fn one_line(text: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

/// A fault found in a spec, before its line is known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {message}")]
pub struct Fault {
    /// The key at fault, as a path.
    pub key: String,
    /// What is wrong, and what is allowed.
    pub message: String,
}

impl Fault {
    /// A fault of the value at `key`.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Fault {
        Fault { key: key.into(), message: message.into() }
    }

    /// The same fault, seen from the table that has the key.
    pub fn below(self, table: &str) -> Fault {
        let dot = if self.key.is_empty() || self.key.starts_with('[') { "" } else { "." };
        Fault { key: format!("{table}{dot}{}", self.key), ..self }
    }

    /// Turns the fault into an error that names the line of its key in `text`.
    pub fn locate(self, text: &str, origin: &str) -> SpecError {
        let line = locate_key(text, &self.key).map_or(0, |offset| line_of(text, offset));
        SpecError { origin: origin.to_string(), line, key: self.key, message: self.message }
    }
}

impl SpecError {
    /// An error of the TOML reader: syntax, type, missing or unknown key.
    pub fn from_toml(error: &toml::de::Error, text: &str, origin: &str) -> SpecError {
        let offset = error.span().map(|span| span.start);
        let line = offset.map_or(1, |offset| line_of(text, offset));
        let key = offset.map_or(String::new(), |offset| {
            key_path(text, offset).unwrap_or_else(|| key_on_line(text, offset))
        });
        let mut message = in_words(&error.message().replace('\n', "; "));
        if let Some(hint) = nearest_name(&message) {
            message.push_str(&hint);
        }
        SpecError { origin: origin.to_string(), line, key, message }
    }
}

/// A message of serde in which words replace Rust's types.
fn in_words(message: &str) -> String {
    let Some((before, expected)) = message.rsplit_once("expected ") else { return message.to_string() };
    // A type of ours has a name in capitals, which says nothing to who writes a file.
    let of_ours = expected
        .strip_prefix("struct ")
        .map(|name| name.trim_start_matches(|c: char| c.is_ascii_alphanumeric()));
    if let Some(rest) = of_ours {
        return format!("{before}expected a table{rest}");
    }
    let end = expected.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(expected.len());
    let words = match &expected[..end] {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0 on",
        "i8" | "i16" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        _ => return message.to_string(),
    };
    format!("{before}expected {words}{}", &expected[end..])
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

/// The path of the key whose name or value holds `offset`; none where the text is no TOML.
fn key_path(text: &str, offset: usize) -> Option<String> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let path = path_in_table(document.get_ref(), offset)?;
    Some(path.chars().take(200).collect())
}

fn path_in_table(table: &toml::de::DeTable<'_>, offset: usize) -> Option<String> {
    let mut found = None;
    for (key, value) in table.iter() {
        let within = path_in_value(value.get_ref(), offset).map(|rest| format!("{}{rest}", key.get_ref()));
        if within.is_some() {
            return within;
        }
        if key.span().contains(&offset) || value.span().contains(&offset) {
            found = Some(key.get_ref().to_string());
        }
    }
    found
}

/// What comes after a key's own name in the path of a key in its value: `.spares`, `[2].spares`.
fn path_in_value(value: &toml::de::DeValue<'_>, offset: usize) -> Option<String> {
    if let Some(table) = value.as_table() {
        return path_in_table(table, offset).map(|path| format!(".{path}"));
    }
    let (index, item) =
        value.as_array()?.iter().enumerate().find(|(_, item)| {
            item.span().contains(&offset) || path_in_value(item.get_ref(), offset).is_some()
        })?;
    Some(format!("[{index}]{}", path_in_value(item.get_ref(), offset).unwrap_or_default()))
}

/// The key (or table heading) written on the line that holds `offset`.
fn key_on_line(text: &str, offset: usize) -> String {
    let start = text.get(..offset).and_then(|t| t.rfind('\n')).map_or(0, |at| at + 1);
    let line = text.get(start..).and_then(|t| t.lines().next()).unwrap_or("");
    let name = line.split(['=', '#']).next().unwrap_or("").trim();
    name.trim_matches(['[', ']', '{', ' ']).chars().take(80).collect()
}

/// Names the nearest known name when a message of serde lists the expected ones.
fn nearest_name(message: &str) -> Option<String> {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let (met, known) = quoted.split_first()?;
    if !message.starts_with("unknown") || known.is_empty() {
        return None;
    }
    Some(did_you_mean(met, known.iter().copied()))
}

/// The known name most similar to `met`; of equally similar names, the one with the most similar beginning.
pub fn nearest<'a>(met: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let rank = |name: &str| [likeness(met, name), strsim::jaro_winkler(&met.to_lowercase(), name)];
    let compare = |a: &&str, b: &&str| {
        let ranks = rank(a).into_iter().zip(rank(b));
        ranks.map(|(a, b)| a.total_cmp(&b)).find(|order| order.is_ne()).unwrap_or(b.cmp(a))
    };
    known.into_iter().max_by(compare)
}

/// Least similarity at which a message suggests a name.
const LIKE_ENOUGH: f64 = 0.45;

/// The most similar known name as the end of a message; empty where none is similar.
pub fn did_you_mean<'a>(met: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let best = nearest(met, known).filter(|best| likeness(met, best) >= LIKE_ENOUGH);
    best.map_or(String::new(), |best| format!("; did you mean `{best}`?"))
}

/// Whether `met` is probably a typing error for `known`: one letter apart, the same letters with another number at the end, or three letters
/// of four the same.
pub fn is_near(met: &str, known: &str) -> bool {
    let letters = |text: &str| text.trim_end_matches(|c: char| c.is_ascii_digit()).to_lowercase();
    let same_letters = letters(met) == letters(known) && !letters(met).is_empty();
    let distance = strsim::damerau_levenshtein(met, known);
    let length = met.chars().count().max(known.chars().count());
    same_letters || distance == 1 && length > 2 || 4 * distance <= length
}

/// Similarity of two names: by the letters to change, in the whole path and in its last part, where most typing errors are. Equal first words
/// count in addition, so that a key with a wrong unit leads to the same key with the right one.
fn likeness(met: &str, known: &str) -> f64 {
    let (met, known) = (met.to_lowercase(), known.to_lowercase());
    let before_unit = met.matches('_').count().min(known.matches('_').count());
    let words = met.split('_').zip(known.split('_')).take(before_unit);
    let same = words.take_while(|(a, b)| a == b).count();
    let [last_met, last_known] = [&met, &known].map(|path| path.rsplit('.').next().unwrap_or_default());
    let letters = strsim::normalized_damerau_levenshtein;
    (letters(&met, &known) + letters(last_met, last_known)) / 2.0 + 0.1 * same as f64
}

/// Byte offset in a TOML text of a key path such as `geometry.zones[2].spares`: of the deepest part that the text has.
fn locate_key(text: &str, path: &str) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut found = None;
    let mut table = Some(document.get_ref());
    let mut rest = Some(path);
    while let Some(path) = rest {
        // The writer's own names may hold dots and brackets.
        if let Some((key, _)) = table.and_then(|t| t.get_key_value(path)) {
            return Some(key.span().start);
        }
        let part = path.split('.').next().unwrap_or_default();
        rest = path.get(part.len() + 1..);
        let mut names = part.split(['[', ']']).filter(|name| !name.is_empty());
        let Some((key, value)) = table.and_then(|t| t.get_key_value(names.next()?)) else { break };
        found = Some(key.span().start);
        let mut value = value;
        for index in names {
            let index = index.parse::<usize>().ok();
            let Some(item) = index.and_then(|i| value.get_ref().as_array()?.get(i)) else { break };
            found = Some(item.span().start);
            value = item;
        }
        table = value.get_ref().as_table();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distant_suggestion_is_dropped() {
        assert_eq!(did_you_mean("nope", ["hp-97560", "atlas-10k"]), "");
        assert_eq!(did_you_mean("atlas10k", ["hp-97560", "atlas-10k"]), "; did you mean `atlas-10k`?");
    }

    #[test]
    fn typo_is_near_and_another_word_is_not() {
        for (met, known) in
            [("data99", "data9"), ("sdb", "sda"), ("disk", "disk0"), ("Data1", "data1"), ("dsik0", "disk0")]
        {
            assert!(is_near(met, known), "{met} {known}");
        }
        for (met, known) in [("table", "disk0"), ("log", "sda"), ("a", "b"), ("shared", "sda"), ("7", "8")] {
            assert!(!is_near(met, known), "{met} {known}");
        }
    }

    #[test]
    fn number_types_are_described_in_words() {
        let said = "invalid type: string \"four\", expected u32";
        assert_eq!(in_words(said), "invalid type: string \"four\", expected a whole number from 0 on");
        let said = "invalid type: string \"vibration\", expected struct SlowPatternSpec";
        assert_eq!(in_words(said), "invalid type: string \"vibration\", expected a table");
        assert_eq!(in_words("unknown field `a`, expected `b`"), "unknown field `a`, expected `b`");
    }
}
