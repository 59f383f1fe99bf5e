//! Limits on the size of functions, files and structs, so that a reader can follow them.

use headstack_tidy::ratchet::{Counts, check};
use headstack_tidy::{Code, all_code, program_code, scan};
use std::collections::{BTreeMap, BTreeSet};

const LONGEST_FUNCTION: usize = 60;
const LONGEST_FILE: usize = 500;
const MOST_FIELDS: usize = 20;
const MOST_FILES_OF_A_TYPE: usize = 3;

/// Crates whose structs are held to [`MOST_FIELDS`]; elsewhere a struct of many fields is a file's format or a command's options.
const FEW_FIELDS: &[&str] = &["sim", "policy", "streams", "workload", "personalities", "tracks"];

#[test]
fn functions_have_at_most_60_lines() {
    let mut found = Counts::new();
    for code in all_code() {
        for function in scan::functions(&code.lines).iter().filter(|it| it.lines > LONGEST_FUNCTION) {
            let key = format!("{}::{}", code.stem(), function.name);
            found.insert((code.crate_name.clone(), key), function.lines);
        }
    }
    check("lines of a function", &found);
}

/// Sources are held to this without exception (`tests/tidy.rs`); files of tests by what stands today.
#[test]
fn files_have_at_most_500_lines() {
    let lines = |code: &Code| ((code.crate_name.clone(), code.stem().to_string()), code.lines.len());
    let mut found: Counts = all_code().iter().map(lines).collect();
    found.retain(|_, lines| *lines > LONGEST_FILE);
    check("lines of a file", &found);
}

#[test]
fn structs_have_at_most_20_fields() {
    let mut found = Counts::new();
    for code in program_code().iter().filter(|code| FEW_FIELDS.contains(&code.crate_name.as_str())) {
        for (index, line) in code.lines.iter().enumerate() {
            let Some(name) = scan::declared(&line.code, "struct") else { continue };
            let Some(lines) = scan::body(&code.lines[index..]) else { continue };
            let fields = code.lines[index..index + lines].iter().filter(|line| is_field(&line.code)).count();
            if fields > MOST_FIELDS {
                found.insert((code.crate_name.clone(), name.to_string()), fields);
            }
        }
    }
    check("fields of a struct", &found);
}

/// A field stands on a line of its own, as rustfmt puts it: `name: Type,`, with or without `pub`.
fn is_field(code: &str) -> bool {
    let code = code.trim_start();
    let name = code.split(':').next().unwrap_or_default();
    let last = name.rsplit(' ').next().unwrap_or_default();
    let is_name = !last.is_empty() && last.chars().all(|c| c.is_alphanumeric() || c == '_');
    code.contains(": ") && is_name && (last == name || name.starts_with("pub"))
}

/// Types of one name in one crate count as one type.
#[test]
fn the_methods_of_a_type_are_in_at_most_3_files() {
    let mut files: BTreeMap<(String, String), BTreeSet<&std::path::Path>> = BTreeMap::new();
    let program = program_code();
    for code in &program {
        for name in code.lines.iter().filter_map(|line| own_impl(&line.code)) {
            files.entry((code.crate_name.clone(), name.to_string())).or_default().insert(&code.path);
        }
    }
    let counts = files.into_iter().map(|(place, files)| (place, files.len()));
    let found: Counts = counts.filter(|(_, files)| *files > MOST_FILES_OF_A_TYPE).collect();
    check("files with methods of a type", &found);
}

/// The type of an `impl` block that is not a trait's.
fn own_impl(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("impl")?.trim_start();
    let generics = rest.starts_with('<').then(|| rest.find("> ")).flatten();
    let subject = generics.map_or(rest, |end| &rest[end + 2..]);
    let is_trait = scan::identifiers(subject).any(|word| word == "for");
    scan::identifiers(subject).next().filter(|_| !is_trait)
}
