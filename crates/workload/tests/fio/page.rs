//! The page of fio's keys, which is generated from the parser's tables.

use crate::real::has_fio;
use headstack_workload::fio::{FioOption, Role, options, own_keys};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

/// The line below which this test generates the page.
const MARK: &str = "<!-- Made by `make docs-formats` from here to the end. -->\n\n";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/fio-jobs.md")
}

fn name(option: &FioOption) -> String {
    option.alias.map_or(format!("`{}`", option.name), |alias| format!("`{}`, `{alias}`", option.name))
}

/// The tables of the page.
fn tables() -> String {
    let mut text = String::new();
    let rows = |wanted: fn(&Role) -> bool| options().filter(move |option| wanted(&option.role));
    text.push_str("## Honoured\n\nA key with `,` may have a value each for reads, writes and trims.\n\n");
    text.push_str("| key | value | meaning |\n|---|---|---|\n");
    for option in rows(|role| matches!(role, Role::Honoured(_))) {
        let many = if option.by_direction { "`,`" } else { "" };
        let kind = option.kind.name();
        let _ = writeln!(text, "| {} | {kind} {many} | {} |", name(option), option.summary);
    }
    text.push_str("\n## Our own keys\n\n| key | example | meaning |\n|---|---|---|\n");
    for key in own_keys() {
        let (name, example) = (key.name, key.example);
        let _ = writeln!(text, "| `{name}` | `#headstack: {name}={example}` | {} |", key.summary);
    }
    text.push_str("\n## Refused\n\nWithout them the load would differ.\n\n");
    text.push_str("| key | meaning | why | accepted all the same |\n|---|---|---|---|\n");
    for option in options() {
        let Role::Refused { reason, harmless } = option.role else { continue };
        let harmless: Vec<String> = harmless.iter().map(|value| format!("`{value}`")).collect();
        let _ =
            writeln!(text, "| {} | {} | {reason} | {} |", name(option), option.summary, harmless.join(", "));
    }
    text.push_str("\n## Ignored\n\nThey control fio's internals; a run lists those that it met.\n\n");
    text.push_str("| key | what it is about |\n|---|---|\n");
    for option in rows(|role| matches!(role, Role::Ignored)) {
        let _ = writeln!(text, "| {} | {} |", name(option), option.summary);
    }
    text
}

/// With `HEADSTACK_UPDATE` set, the test rewrites the page.
#[test]
fn key_page_is_up_to_date() {
    let text = std::fs::read_to_string(page()).expect("the page is in the tree");
    let (own, made) = text.split_once(MARK).expect("the page has the mark");
    let reported = tables();
    if std::env::var_os("HEADSTACK_UPDATE").is_some() {
        std::fs::write(page(), format!("{own}{MARK}{reported}")).expect("the page is writable");
        return;
    }
    assert!(made == reported, "docs/formats/fio-jobs.md is old: run `make docs-formats`");
}

#[test]
fn every_fio_key_is_in_table() {
    let known: BTreeSet<&str> =
        options().flat_map(|option| std::iter::once(option.name).chain(option.alias)).collect();
    assert_eq!(
        known.len(),
        options().map(|o| 1 + usize::from(o.alias.is_some())).sum::<usize>(),
        "no name twice"
    );
    if !has_fio() {
        return;
    }
    let output = Command::new("fio").arg("--cmdhelp=all").output().expect("fio starts");
    let reported = String::from_utf8_lossy(&output.stdout);
    let names = reported.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim());
    let missing: Vec<&str> = names.filter(|name| !known.contains(name)).collect();
    assert_eq!(missing, [""; 0], "keys of fio that are not in the table");
}
