//! The architecture document: it is short, the files that it names exist and define what it says, and the way of a request is not longer
//! than it was.

use headstack_tidy::{read, root};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The most words of the document.
const WORDS: usize = 1600;

/// The most hops, files and tables of requests in flight of a walk. The goal is 8, 20 and 2.
struct Walk {
    heading: &'static str,
    hops: usize,
    files: usize,
    tables: usize,
}

/// Numbers only fall.
const WALKS: [Walk; 2] = [
    Walk { heading: "\n### A fio read", hops: 8, files: 20, tables: 2 },
    Walk { heading: "\n### An NBD READ", hops: 9, files: 20, tables: 3 },
];

fn document() -> String {
    read(&root().join("docs/ARCHITECTURE.md"))
}

/// The part of a text under a heading, up to the next heading.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, rest) = text.split_once(heading).unwrap_or_else(|| panic!("no heading {heading:?}"));
    rest.split("\n#").next().unwrap_or(rest)
}

/// What stands in backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The paths that `a/{b,c}.rs` stands for.
fn expanded(path: &str) -> Vec<String> {
    match path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?))) {
        Some((before, (names, after))) => {
            names.split(',').map(|name| [before, name, after].concat()).collect()
        }
        None => vec![path.to_string()],
    }
}

/// The file that the document calls `crate/path.rs`: in the sources of the crate, or in its folder.
fn file(name: &str) -> PathBuf {
    let crates = root().join("crates");
    let (of_crate, path) = name.split_once('/').unwrap_or_else(|| panic!("{name} has no crate"));
    let mut places =
        [crates.join(of_crate).join("src").join(path), crates.join(name), root().join(name)].into_iter();
    places.find(|place| place.is_file()).unwrap_or_else(|| panic!("{name} does not exist"))
}

/// The files of the document, and of a part of it.
fn files(text: &str) -> impl Iterator<Item = String> + '_ {
    quoted(text).filter(|name| name.contains('/') && name.ends_with(".rs")).flat_map(expanded)
}

/// Whether a name stands in a text behind `before`, and is not the beginning of a longer one.
fn has(text: &str, before: &str, name: &str) -> bool {
    let whole = [before, name].concat();
    let mut next = text.match_indices(&whole).map(|(at, _)| text[at + whole.len()..].chars().next());
    next.any(|next| next.is_none_or(|next| !next.is_alphanumeric() && next != '_'))
}

/// Panics unless a file defines an item: a type, or `Type::name`, where the name is a function or a field.
fn check_definition(item: &str, name: &str) {
    let text = read(&file(name));
    let (of_type, member) =
        item.split_once("::").map_or((item, None), |(of_type, member)| (of_type, Some(member)));
    let is_defined = ["struct ", "enum ", "trait "].iter().any(|kind| has(&text, kind, of_type));
    let is_implemented = text.lines().any(|line| line.starts_with("impl") && has(line, " ", of_type));
    assert!(is_defined || is_implemented, "{name} defines no `{of_type}`");
    if let Some(member) = member {
        let fields = text.split("struct ").find(|part| has(part.lines().next().unwrap_or(""), "", of_type));
        let body = fields.and_then(|part| part.split("\n}").next()).unwrap_or("");
        let is_field = body.contains(&format!(" {member}: "));
        assert!(is_field || is_implemented && has(&text, "fn ", member), "{name} defines no `{item}`");
    }
}

#[test]
fn architecture_has_at_most_1600_words() {
    let words = document().split_whitespace().count();
    assert!(words <= WORDS, "{words} words (allowed: up to {WORDS})");
}

#[test]
fn files_that_architecture_names_exist() {
    let named: BTreeSet<PathBuf> = files(&document()).map(|name| file(&name)).collect();
    assert!(named.len() > 30, "only {} files met", named.len());
}

#[test]
fn contracts_are_defined_where_architecture_says() {
    let document = document();
    let rows = section(&document, "\n## The contracts").lines().filter(|line| line.starts_with("| `"));
    let contracts: Vec<Vec<&str>> = rows.map(|row| quoted(row).collect()).collect();
    assert!(contracts.len() > 5, "only {} contracts met", contracts.len());
    for cells in contracts {
        check_definition(cells[0], cells[1]);
    }
}

#[test]
fn way_of_a_request_is_as_short_as_it_was() {
    let document = document();
    for Walk { heading, hops, files: most_files, tables } in WALKS {
        let walk = section(&document, heading);
        let line = |first: &str| {
            let found = walk.split("\n\n").find(|part| part.trim_start().starts_with(first));
            found.unwrap_or_else(|| panic!("{heading}: no paragraph `{first}`"))
        };
        let steps: Vec<&str> =
            walk.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())).collect();
        assert!((1..=hops).contains(&steps.len()), "{heading}: {} hops (allowed: up to {hops})", steps.len());
        let entered: BTreeSet<String> = files(line("Files")).collect();
        assert!(
            entered.len() <= most_files,
            "{heading}: {} files (allowed: up to {most_files})",
            entered.len()
        );
        for step in steps {
            let names: Vec<&str> = quoted(step).collect();
            check_definition(names[0], names[1]);
            assert!(entered.contains(names[1]), "{heading}: {} is not among its files", names[1]);
        }
        let names: Vec<&str> = quoted(line("Tickets")).collect();
        let waits = names.len() / 2;
        assert!((1..=tables).contains(&waits), "{heading}: {waits} tables (allowed: up to {tables})");
        names.chunks(2).for_each(|pair| check_definition(pair[0], pair[1]));
    }
}

#[test]
fn names_that_begin_alike_differ() {
    let text = "impl Load for FioLoad {\n    fn poll(&mut self)";
    assert!(has(text, " ", "FioLoad") && has(text, "fn ", "poll"));
    assert!(!has(text, "fn ", "pol") && !has(text, " ", "Fio"));
    assert_eq!(expanded("sim/os/{queue,port}.rs"), ["sim/os/queue.rs", "sim/os/port.rs"]);
}
