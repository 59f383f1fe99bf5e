//! `headstack drive keys`, and the page that is made of it.

use crate::common::{json, printed};
use headstack_model::DriveSpec;
use std::fs;
use std::path::PathBuf;

/// The line of the page below which everything is made by the command.
const MARK: &str = "<!-- Made by `make docs-formats` from here to the end. -->\n\n";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/drive-file.md")
}

/// The keys as they stand on the page and as the command tells them. With `HEADSTACK_UPDATE` set it writes the page.
#[test]
fn is_the_page_of_keys_up_to_date() {
    let text = fs::read_to_string(page()).expect("the page is in the tree");
    let (own, made) = text.split_once(MARK).expect("the page has the mark");
    let told = printed(&["drive", "keys"]);
    if std::env::var_os("HEADSTACK_UPDATE").is_some() {
        fs::write(page(), format!("{own}{MARK}{}\n", told.trim_end())).expect("the page is writable");
        return;
    }
    assert!(made.trim_end() == told.trim_end(), "docs/formats/drive-file.md is old: run `make docs-formats`");
}

#[test]
fn does_the_example_on_the_page_pass_the_check() {
    let text = fs::read_to_string(page()).expect("the page is in the tree");
    let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let spec = DriveSpec::parse(example.expect("the page has an example"), "example");
    assert_eq!(spec.unwrap_or_else(|error| panic!("{error}")).name, "small-example");
}

#[test]
fn has_every_key_a_comment_and_every_table_its_heading() {
    let told = printed(&["drive", "keys"]);
    for part in
        ["## `[geometry]`", "## `[[geometry.zones]]`", "## `[mechanics.seek]`", "## `[bus.write_disconnect]`"]
    {
        assert!(told.contains(part), "{part}");
    }
    assert!(told.contains("- `head_switch_ms` (number, ms, required): Time to change heads"), "{told}");
    assert!(told.contains("- `depth` (whole number, default `1`): "), "{told}");
    for line in told.lines().filter(|line| line.starts_with("- `")) {
        assert!(line.split_once("): ").is_some_and(|(_, said)| said.len() > 3), "{line}");
    }
}

#[test]
fn does_the_schema_forbid_unknown_keys() {
    let schema = json(&["drive", "keys", "--json-schema"]);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["sector_bytes"]["default"], 512);
    assert_eq!(schema["$defs"]["MechanicsSpec"]["required"][0], "rpm");
}
