//! Which commands print JSON. That each object has `version` is checked wherever a test reads one (`common::json`).

use crate::common::{WITHOUT_VERSION, commands_with_json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The commands in the first column of the table below this heading of `docs/formats/results.md`.
fn documented(heading: &str) -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/results.md");
    let text = fs::read_to_string(page).expect("the page is there");
    let table = text.split(heading).nth(1).unwrap_or_else(|| panic!("no {heading}"));
    let table = table.split("\n## ").next().unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    rows.map(str::to_string).collect()
}

#[test]
fn results_page_lists_every_command_that_prints_json() {
    let documented = documented("## Commands that print JSON");
    assert_eq!(documented, commands_with_json());
    for command in WITHOUT_VERSION.map(|command| command.join(" ")) {
        assert!(documented.contains(&command), "{command} is not listed");
    }
}
