//! `headstack drive keys` and `headstack rig keys`, and the pages that are made of them.

use crate::common::{json, printed};
use headstack_model::DriveSpec;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// The line of the page below which everything is made by the command.
const MARK: &str = "<!-- Made by `make docs-formats` from here to the end. -->\n\n";

/// The kinds of files with lists of keys, and the commands that print them.
const KINDS: [(&str, [&str; 2]); 5] = [
    ("drive", ["drive", "keys"]),
    ("rig", ["rig", "keys"]),
    ("node", ["serve", "--keys"]),
    ("load", ["keys", "load"]),
    ("sweep", ["keys", "sweep"]),
];

fn page(kind: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../docs/formats/{kind}-file.md"))
}

/// The example on a page.
fn example(kind: &str) -> String {
    let text = fs::read_to_string(page(kind)).expect("the page is in the tree");
    let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    example.expect("the page has an example").to_string()
}

/// Keys that a section of one page and a section of another must share before the first links to the second.
const SHARED_KEYS: usize = 3;

/// The headings of a page with the text below each.
fn sections(page: &str) -> impl Iterator<Item = (&str, &str)> {
    page.split("## ").skip(1).filter_map(|section| section.split_once('\n'))
}

/// The keys of a section, each with its description.
fn keys(section: &str) -> Vec<&str> {
    section.split("\n- `").skip(1).map(str::trim_end).collect()
}

/// The node's keys with a link to the rig's page in place of each key that has the same description there.
fn with_links(node: &str, rig: &str) -> String {
    let mut page = String::new();
    for (heading, text) in sections(node) {
        let shared = |(_, other): &(&str, &str)| {
            let others = keys(other);
            keys(text).iter().filter(|key| others.contains(key)).count()
        };
        let nearest = sections(rig).max_by_key(shared).filter(|other| shared(other) >= SHARED_KEYS);
        let _ = writeln!(page, "## {heading}");
        match nearest {
            Some(other) => page.push_str(&with_link(text, other)),
            None => page.push_str(text),
        }
    }
    page
}

/// A section without the keys that another one has, and with a link to that.
fn with_link(text: &str, (other_heading, other): (&str, &str)) -> String {
    let others = keys(other);
    let (shared, own): (Vec<_>, Vec<_>) = keys(text).into_iter().partition(|key| others.contains(key));
    let about = text.split("\n- `").next().unwrap_or_default().trim_end();
    let own: String = own.iter().map(|key| format!("- `{key}\n")).collect();
    let names: Vec<_> = shared.iter().filter_map(|key| key.split('`').next()).collect();
    let keys = if own.is_empty() { "Keys".to_string() } else { format!("- `{}`:", names.join("`, `")) };
    let anchor: String = other_heading.chars().filter(|c| c.is_alphanumeric()).collect();
    format!("{about}\n\n{own}{keys} as in [{other_heading}](rig-file.md#{anchor}).\n\n")
}

/// The keys as they stand on the pages and as the command tells them. With `HEADSTACK_UPDATE` set it writes the pages.
#[test]
fn key_pages_match_the_printed_keys() {
    for (kind, command) in KINDS {
        let text = fs::read_to_string(page(kind)).expect("the page is in the tree");
        let (own, made) = text.split_once(MARK).expect("the page has the mark");
        let output = match kind {
            "node" => with_links(&printed(&command), &printed(&["rig", "keys"])),
            _ => printed(&command),
        };
        if std::env::var_os("HEADSTACK_UPDATE").is_some() {
            fs::write(page(kind), format!("{own}{MARK}{}\n", output.trim_end()))
                .expect("the page is writable");
            continue;
        }
        assert!(
            made.trim_end() == output.trim_end(),
            "{}: is old: run `make docs-formats`",
            page(kind).display()
        );
    }
}

#[test]
fn examples_on_the_key_pages_pass_the_check() {
    let spec = DriveSpec::parse(&example("drive"), "example");
    assert_eq!(spec.unwrap_or_else(|error| panic!("{error}")).name, "small-example");
    let folder = tempfile::tempdir().expect("a folder for the example");
    let file = folder.path().join("example.toml");
    fs::write(&file, example("rig")).expect("the folder is writable");
    let file = file.to_str().expect("the path is text");
    assert_eq!(printed(&["rig", "check", file]), format!("ok: {file}: 13 volumes\n"));
    let node = folder.path().join("node.toml");
    fs::write(&node, example("node")).expect("the folder is writable");
    let node = node.to_str().expect("the path is text");
    assert!(printed(&["serve", node, "--check=file"]).starts_with("ok: 2 disks and 2 exports\n"));
}

#[test]
fn every_key_has_a_comment_and_tables_have_headings() {
    let output = printed(&["drive", "keys"]);
    for part in
        ["## `[geometry]`", "## `[[geometry.zones]]`", "## `[mechanics.seek]`", "## `[bus.write_disconnect]`"]
    {
        assert!(output.contains(part), "{part}");
    }
    assert!(
        output.contains("- `head_switch_ms` (number, 0 to 100 ms, required): Time to change heads"),
        "{output}"
    );
    assert!(output.contains("- `depth` (whole number, 1 to 1024 commands, default `1`): "), "{output}");
    for line in
        KINDS.map(|(_, command)| printed(&command)).concat().lines().filter(|line| line.starts_with("- `"))
    {
        assert!(line.split_once("): ").is_some_and(|(_, said)| said.len() > 3), "{line}");
    }
}

#[test]
fn drive_schema_forbids_unknown_keys() {
    let schema = json(&["drive", "keys", "--json-schema"]);
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["sector_bytes"]["default"], 512);
    assert_eq!(schema["$defs"]["MechanicsSpec"]["required"][0], "rpm");
    assert_eq!(schema["$defs"]["QueueSpec"]["properties"]["depth"]["maximum"], 1024);
}
