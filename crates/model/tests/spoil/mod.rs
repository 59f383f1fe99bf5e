//! Makes TOML files that have one error each, for each key in turn. The error message must be one line with the key and its line.
//!
//! The tests of drive files and of rigs use it.

use headstack_model::SpecError;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A key of a file and its value.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    /// For example `geometry.zones[0].spares`.
    pub(crate) path: String,
    /// For example `spares`.
    pub(crate) name: String,
    pub(crate) key: Range<usize>,
    pub(crate) value: Range<usize>,
    /// The numbers in the value: the value itself, or the first and the last number of an array.
    pub(crate) numbers: Vec<Range<usize>>,
    pub(crate) kind: Kind,
    /// Start of the table that has the key.
    pub(crate) table: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// What kind of value a key has.
pub(crate) enum Kind {
    Number,
    Text,
    Flag,
    Array,
    Table,
}

pub(crate) fn leaves(text: &str) -> Vec<Leaf> {
    let document = DeTable::parse(text).unwrap_or_else(|error| panic!("{error}"));
    let mut found = Vec::new();
    walk(text, document.get_ref(), "", 0, &mut found);
    found.retain(|leaf| !leaf.path.starts_with("sources."));
    found
}

fn walk(text: &str, table: &DeTable<'_>, prefix: &str, begins: usize, found: &mut Vec<Leaf>) {
    for (key, value) in table.iter() {
        let name = key.get_ref().to_string();
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let mut numbers = Vec::new();
        scalars(value.get_ref(), value.span(), &mut numbers);
        let kind = match value.get_ref() {
            DeValue::Integer(_) | DeValue::Float(_) => Kind::Number,
            DeValue::String(_) => Kind::Text,
            DeValue::Boolean(_) => Kind::Flag,
            DeValue::Array(_) if !is_heading(text, key.span().start) => Kind::Array,
            _ => Kind::Table,
        };
        numbers.dedup();
        if numbers.len() > 2 {
            numbers = vec![numbers[0].clone(), numbers[numbers.len() - 1].clone()];
        }
        found.push(Leaf {
            path: path.clone(),
            name,
            key: key.span(),
            value: value.span(),
            numbers,
            kind,
            table: begins,
        });
        match value.get_ref() {
            DeValue::Table(table) => walk(text, table, &path, key.span().start, found),
            DeValue::Array(items) => {
                // Tests only the first, the second and the last table of an array, unless each has a heading.
                for (index, item) in items.iter().enumerate() {
                    let headed = is_heading(text, item.span().start);
                    let judged = headed || index < 2 || index + 1 == items.len();
                    if let (true, Some(table)) = (judged, item.get_ref().as_table()) {
                        walk(text, table, &format!("{path}[{index}]"), item.span().start, found);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether a key is in the heading of a table.
fn is_heading(text: &str, key: usize) -> bool {
    let line = text[..key].rfind('\n').map_or(0, |at| at + 1);
    text[line..].starts_with('[')
}

fn scalars(value: &DeValue<'_>, span: Range<usize>, found: &mut Vec<Range<usize>>) {
    match value {
        DeValue::Integer(_) | DeValue::Float(_) => found.push(span),
        DeValue::Array(items) => items.iter().for_each(|item| scalars(item.get_ref(), item.span(), found)),
        _ => {}
    }
}

pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

pub(crate) fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
}

impl Leaf {
    /// The lines of the key and its value.
    pub(crate) fn lines(&self, text: &str) -> Range<usize> {
        line_of(text, self.key.start)..line_of(text, self.value.end) + 1
    }

    /// The file with `wrong` instead of its value.
    pub(crate) fn set(&self, file: &str, text: &str, wrong: &str) -> Spoilt {
        self.set_part(file, text, self.value.clone(), wrong)
    }

    /// The file with `wrong` instead of a part of its value.
    fn set_part(&self, file: &str, text: &str, part: Range<usize>, wrong: &str) -> Spoilt {
        Spoilt {
            text: replaced(text, part, wrong),
            what: format!("{file}: {} = {wrong}", self.path),
            lines: self.lines(text),
            names: self.name.clone(),
        }
    }

    /// The file with `wrong` instead of its key. The error must suggest the right key.
    pub(crate) fn renamed(&self, file: &str, text: &str, wrong: &str) -> Spoilt {
        let line = line_of(text, self.key.start);
        Spoilt {
            text: replaced(text, self.key.clone(), wrong),
            what: format!("{file}: {wrong} for {}", self.path),
            lines: line..line + 1,
            names: format!("did you mean `{}`", self.name),
        }
    }

    /// The file without the key. The error must name the key and the table that lacks it.
    pub(crate) fn left_out(&self, file: &str, text: &str) -> Spoilt {
        let rest = &text[self.value.end..];
        let comma = rest.trim_start().starts_with(',');
        let end = self.value.end + if comma { rest.find(',').map_or(0, |at| at + 1) } else { 0 };
        // All parts of a dotted key are removed.
        let dotted = |c: char| c == '.' || c == '_' || c.is_ascii_alphanumeric();
        let start = text[..self.key.start].trim_end_matches(dotted).len();
        Spoilt {
            text: replaced(text, start..end, ""),
            what: format!("{file}: no {}", self.path),
            lines: line_of(text, self.table)..line_of(text, self.key.start) + 1,
            names: self.name.clone(),
        }
    }
}

/// A file with one error.
pub(crate) struct Spoilt {
    pub(crate) text: String,
    /// What is wrong, for the message of a failed test.
    pub(crate) what: String,
    /// The message must name one of these lines.
    pub(crate) lines: Range<usize>,
    /// Text that the message must contain.
    pub(crate) names: String,
}

impl Spoilt {
    /// Checks that the file was refused with a message of one line that names one of the lines and contains `names`. Returns the violation, if
    /// any.
    pub(crate) fn complaint<T>(&self, read: Result<T, SpecError>) -> Option<String> {
        let Spoilt { what, lines, names, .. } = self;
        let Err(error) = read else { return Some(format!("{what}: taken")) };
        let shown = error.to_string();
        let good = is_one_line(&error) && lines.contains(&error.line) && shown.contains(names);
        (!good).then(|| format!("{what}: not one line, in {lines:?}, with `{names}`: {shown}"))
    }

    #[track_caller]
    pub(crate) fn must_be_refused<T>(&self, read: Result<T, SpecError>) {
        assert_eq!(self.complaint(read), None);
    }

    /// A missing key may have a default. Otherwise the error names the key, or one that depends on it.
    #[track_caller]
    pub(crate) fn may_be_missed<T>(&self, read: Result<T, SpecError>) {
        let Err(error) = read else { return };
        let last = error.key.rsplit('.').next().unwrap_or("").split('[').next().unwrap_or("");
        let line = self.text.lines().nth(error.line - 1).unwrap_or("");
        let known = error.to_string().contains(&self.names) || !last.is_empty() && line.contains(last);
        assert!(known && is_one_line(&error), "{}: {error}", self.what);
    }
}

/// Whether an error's message is one line that begins with the file and the line.
pub(crate) fn is_one_line(error: &SpecError) -> bool {
    let shown = error.to_string();
    let placed = error.line > 0 && shown.starts_with(&format!("x.toml:{}: ", error.line));
    placed && !shown.contains('\n') && shown.len() < 1000
}

/// Asserts that all files with an error are refused.
#[track_caller]
pub(crate) fn all_refused<T>(spoilt: &[Spoilt], mut read: impl FnMut(&str) -> Result<T, SpecError>) {
    let complaints: Vec<String> = spoilt.iter().filter_map(|one| one.complaint(read(&one.text))).collect();
    assert!(!spoilt.is_empty() && complaints.is_empty(), "{}", complaints.join("\n"));
}

/// A file for each value, which has another type.
pub(crate) fn other_types(file: &str, text: &str) -> Vec<Spoilt> {
    let mut found = Vec::new();
    for leaf in leaves(text) {
        let wrongs: &[&str] = match leaf.kind {
            Kind::Number => &["\"many\"", "true", "[1]", "{ a = 1 }"],
            Kind::Text => &["7", "true", "[]"],
            Kind::Flag => &["1", "\"yes\""],
            Kind::Array => &["true", "\"some\"", "[true]"],
            // The heading of a table has no value that could be replaced.
            Kind::Table => continue,
        };
        found.extend(wrongs.iter().map(|wrong| leaf.set(file, text, wrong)));
    }
    found
}

/// A file for each number, which is negative, except the numbers of the keys `signed`.
pub(crate) fn negative(file: &str, text: &str, signed: &[&str]) -> Vec<Spoilt> {
    let mut found = Vec::new();
    for leaf in leaves(text).iter().filter(|leaf| !signed.contains(&leaf.name.as_str())) {
        // Numbers in inline tables are tested with their own keys.
        let holds_tables = leaf.kind == Kind::Array && text[leaf.value.clone()].contains('{');
        let numbers = leaf.numbers.iter().filter(|_| !holds_tables);
        found.extend(numbers.map(|number| leaf.set_part(file, text, number.clone(), "-3")));
    }
    found
}

/// Files for each number, which is NaN, infinite or far too large.
pub(crate) fn beyond_numbers(file: &str, text: &str) -> Vec<Spoilt> {
    let wrongs = ["nan", "inf", "1e300", "99999999999999999"];
    let numbers = leaves(text).into_iter().filter(|leaf| leaf.kind == Kind::Number);
    numbers.flat_map(|leaf| wrongs.map(|wrong| leaf.set(file, text, wrong))).collect()
}

/// Files for each key, which has a doubled letter, lacks a letter or lacks an underscore.
pub(crate) fn misspelt(file: &str, text: &str) -> Vec<Spoilt> {
    let mut found = Vec::new();
    for leaf in leaves(text) {
        // The other headings of its table would name it rightly still; devices are called what they are.
        let other_headings = leaf.kind == Kind::Table && text.contains(&format!("[{}.", leaf.path));
        if other_headings || leaf.path.starts_with("devices.") {
            continue;
        }
        let twice = format!("{}{}", leaf.name, &leaf.name[leaf.name.len() - 1..]);
        let lost = leaf.name[..leaf.name.len() - 1].to_string();
        for wrong in [twice, lost, leaf.name.replacen('_', "", 1)] {
            if wrong != leaf.name {
                found.push(leaf.renamed(file, text, &wrong));
            }
        }
    }
    found
}

/// Files for each number, which is not a valid number in TOML.
pub(crate) fn no_toml(file: &str, text: &str) -> Vec<Spoilt> {
    let numbers = leaves(text).into_iter().filter(|leaf| leaf.kind == Kind::Number);
    let spoilt = numbers.flat_map(|leaf| ["1.2.3", "0x", "12 34"].map(|wrong| leaf.set(file, text, wrong)));
    spoilt.map(|spoilt| Spoilt { names: String::new(), ..spoilt }).collect()
}

/// The file cut off anywhere.
pub(crate) fn cut_off(text: &str) -> impl Iterator<Item = &str> {
    (0..text.len()).step_by(61).filter_map(|end| text.get(..end))
}
