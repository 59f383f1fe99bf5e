//! The guide's table of orders agrees with the list of orders. If HEADSTACK_UPDATE is set, the test rewrites the table.

#![allow(clippy::disallowed_methods, reason = "the test reads a page of the repository")]

use headstack_policy::order::{self, Entry, Parameter};
use std::path::Path;

const HEAD: &str = "| order | what it does | knows | parameters | source |\n|---|---|---|---|---|\n";

fn parameter(parameter: &Parameter) -> String {
    let Parameter { letter, summary, default, least, most, .. } = parameter;
    format!("{letter} = {default}: {summary} ({least} to {most})")
}

fn row(entry: &Entry) -> String {
    let parameters: Vec<String> = entry.parameters.iter().map(parameter).collect();
    let (form, knows) = (entry.form(), entry.knowledge.name());
    format!("| `{form}` | {} | {knows} | {} | {} |\n", entry.summary, parameters.join("; "), entry.source)
}

#[test]
fn guide_lists_every_order() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/orders.md");
    let text = std::fs::read_to_string(&page).expect("the guide has the page");
    let (before, rest) = text.split_once(HEAD).expect("the page has the table");
    let table: String = order::all().iter().map(row).collect();
    let kept: String = rest.split_inclusive('\n').take_while(|line| line.starts_with('|')).collect();
    if std::env::var_os("HEADSTACK_UPDATE").is_some() {
        let after = &rest[kept.len()..];
        std::fs::write(&page, format!("{before}{HEAD}{table}{after}")).expect("the page can be written");
    } else {
        assert_eq!(kept, table, "run the test with HEADSTACK_UPDATE=1");
    }
}
