//! Exact counts of the violations that the repository still has, so that their number can only fall.
//!
//! `allow/NAME.txt` has the counts of one crate (or of the documents, or of the workspace): a line `rule key count` each. A test
//! fails where a count is larger than allowed, and also where it is smaller, so that the list is lowered with the code.
//! `HEADSTACK_UPDATE=1` rewrites the lists. It lowers counts, and moves them between crates where the total does not grow; it never
//! allows more.

#![allow(
    clippy::disallowed_types,
    reason = "tests run in threads, and one file has the counts of several rules"
)]

use crate::files::{entries, read, root};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Held while the lists are read or rewritten.
static LISTS: Mutex<()> = Mutex::new(());

const LOWER: &str =
    "Counts are exact: lower them (HEADSTACK_UPDATE=1 cargo test -p headstack-tidy --test rules).";
const REMOVE: &str = "Counts are not raised: remove the violation; docs/STYLE.md has the rules.";

/// Counts by list and key.
pub type Counts = BTreeMap<(String, String), usize>;

/// Adds one violation.
pub fn count(counts: &mut Counts, list: &str, key: impl Into<String>) {
    *counts.entry((list.to_string(), key.into())).or_default() += 1;
}

/// Compares what a rule found with what is allowed.
///
/// # Panics
///
/// If a count differs, with every difference and what to do.
pub fn check(rule: &str, found: &Counts) {
    let lock = LISTS.lock().unwrap_or_else(PoisonError::into_inner);
    let lists = lists();
    let allowed: Counts = lists
        .iter()
        .flat_map(|(list, rows)| rows.iter().map(move |row| (list, row)))
        .filter(|(_, row)| row.rule == rule)
        .map(|(list, row)| ((list.clone(), row.key.clone()), row.count))
        .collect();
    let is_update = std::env::var_os("HEADSTACK_UPDATE").is_some();
    if is_update && totals_shrink(&allowed, found) {
        return rewrite(rule, found, lists);
    }
    drop(lock);
    let advice = if totals_shrink(&allowed, found) { LOWER } else { REMOVE };
    let message = differences(&allowed, found);
    assert!(message.is_empty(), "{rule}:\n{message}{advice}");
}

struct Row {
    rule: String,
    key: String,
    count: usize,
}

fn lists() -> BTreeMap<String, Vec<Row>> {
    let paths = entries(&folder());
    paths.iter().map(|path| (name(path), read(path).lines().map(row).collect())).collect()
}

fn folder() -> PathBuf {
    root().join("crates/tidy/allow")
}

fn name(path: &Path) -> String {
    path.file_stem().and_then(|name| name.to_str()).unwrap_or_default().to_string()
}

fn row(line: &str) -> Row {
    let cells: Vec<_> = line.split('\t').collect();
    let count = cells.get(2).and_then(|count| count.parse().ok());
    match (cells[..].first(), cells.get(1), count) {
        (Some(rule), Some(key), Some(count)) => Row { rule: rule.to_string(), key: key.to_string(), count },
        _ => panic!("allow: `{line}` is not a rule, a key and a count with tabs between"),
    }
}

/// Whether each key's total over all lists is at most the allowed total.
fn totals_shrink(allowed: &Counts, found: &Counts) -> bool {
    let total = |counts: &Counts| {
        let mut totals: BTreeMap<String, usize> = BTreeMap::new();
        for ((_, key), count) in counts {
            *totals.entry(key.clone()).or_default() += count;
        }
        totals
    };
    let allowed = total(allowed);
    total(found).iter().all(|(key, count)| allowed.get(key).is_some_and(|allowed| count <= allowed))
}

fn rewrite(rule: &str, found: &Counts, mut lists: BTreeMap<String, Vec<Row>>) {
    for rows in lists.values_mut() {
        rows.retain(|row| row.rule != rule);
    }
    for ((list, key), count) in found {
        let row = Row { rule: rule.to_string(), key: key.clone(), count: *count };
        lists.entry(list.clone()).or_default().push(row);
    }
    for (list, mut rows) in lists {
        let path = folder().join(format!("{list}.txt"));
        rows.sort_by(|a, b| (&a.rule, &a.key).cmp(&(&b.rule, &b.key)));
        let mut text = String::new();
        for Row { rule, key, count } in &rows {
            writeln!(text, "{rule}\t{key}\t{count}").expect("a string can be written to");
        }
        let done = if rows.is_empty() { fs::remove_file(&path) } else { fs::write(&path, text) };
        done.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

fn differences(allowed: &Counts, found: &Counts) -> String {
    let mut message = String::new();
    for place in allowed.keys().chain(found.keys().filter(|place| !allowed.contains_key(*place))) {
        let (old, new) = (allowed.get(place).unwrap_or(&0), found.get(place).unwrap_or(&0));
        if old != new {
            let (list, key) = place;
            writeln!(message, "  {list}: {key}: {new} where {old} are allowed")
                .expect("a string can be written to");
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(rows: &[(&str, &str, usize)]) -> Counts {
        rows.iter().map(|(list, key, count)| ((list.to_string(), key.to_string()), *count)).collect()
    }

    #[test]
    fn both_directions_are_differences() {
        let message = differences(&counts(&[("a", "x", 2), ("a", "y", 1)]), &counts(&[("a", "x", 3)]));
        assert!(message.contains("x: 3 where 2 are allowed"), "{message}");
        assert!(message.contains("y: 0 where 1 are allowed"), "{message}");
    }

    #[test]
    fn moving_code_between_crates_is_no_growth() {
        let allowed = counts(&[("a", "x", 2), ("b", "x", 1)]);
        assert!(totals_shrink(&allowed, &counts(&[("c", "x", 3)])));
        assert!(!totals_shrink(&allowed, &counts(&[("a", "x", 4)])));
        assert!(!totals_shrink(&allowed, &counts(&[("a", "z", 1)])));
    }
}
