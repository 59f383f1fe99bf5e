//! docs/formats/traces.md describes every format as the list of formats does. With `HEADSTACK_UPDATE=1` the test rewrites the page.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use std::fmt::Write as _;
use std::path::Path;

use headstack_workload::trace::{self, Carries, Encoding, Format, Presence, Span};

const BEGIN: &str = "<!-- from the list of formats -->\n";
const END: &str = "<!-- to here -->\n";

#[test]
fn trace_page_lists_every_format() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats/traces.md");
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark at which the list begins");
    let (_, after) = rest.split_once(END).expect("the page has the mark at which the list ends");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", list());
    if std::env::var_os("HEADSTACK_UPDATE").is_some() {
        std::fs::write(&path, wanted).expect("the page can be written");
        return;
    }
    assert!(page == wanted, "{}: out of date; run again with HEADSTACK_UPDATE=1", path.display());
}

fn list() -> String {
    let mut text = String::new();
    for format in trace::all() {
        section(format, &mut text);
    }
    text
}

fn section(format: &Format, text: &mut String) {
    let kind = if format.encoding == Encoding::Text { "text" } else { "binary" };
    let endings: Vec<String> = format.extensions.iter().map(|ending| format!("`.{ending}`")).collect();
    writeln!(text, "\n## {}: {}\n", format.name, format.title).expect("a text takes all");
    writeln!(text, "A {kind} format; files end in {}. A request:\n", endings.join(", "))
        .expect("a text takes all");
    writeln!(text, "```text\n{}\n```\n", format.form).expect("a text takes all");
    if !format.note.is_empty() {
        writeln!(text, "{}.\n", capital(format.note)).expect("a text takes all");
    }
    text.push_str("| of a request | says |\n|---|---|\n");
    for (what, says) in rows(&format.carries) {
        writeln!(text, "| {what} | {says} |").expect("a text takes all");
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn rows(carries: &Carries) -> [(&'static str, String); 7] {
    let kinds = match (carries.flush, carries.trim) {
        (true, true) => "reads, writes, flushes, trims",
        _ => "reads, writes",
    };
    let time = match carries.tick {
        0 => "no: it follows from response and think times".to_string(),
        tick => format!("in {}", unit(tick)),
    };
    let devices = match carries.devices {
        1 => "one".to_string(),
        some if some <= 256 => format!("{some}"),
        _ => "any".to_string(),
    };
    let place = match (carries.offset_grain, carries.grain) {
        (1, 1) => "in bytes".to_string(),
        (sector, 1) => format!("from a sector of {sector} bytes on, length in bytes"),
        (_, sector) => format!("in sectors of {sector} bytes"),
    };
    let process = if carries.source == Presence::Never { "no" } else { "yes" };
    [
        ("kind", kinds.to_string()),
        ("time", time),
        ("device", devices),
        ("first byte and length", place),
        ("response time", span(carries.response)),
        ("think time", span(carries.think)),
        ("process", process.to_string()),
    ]
}

fn span(span: Option<Span>) -> String {
    span.map_or("no".to_string(), |span| {
        let always = if span.always { ", 0 where not known" } else { "" };
        format!("in {}{always}", unit(span.tick))
    })
}

fn unit(tick: u64) -> String {
    match tick {
        1 => "ns".to_string(),
        100 => "100 ns".to_string(),
        1_000 => "µs".to_string(),
        1_000_000_000 => "s".to_string(),
        other => format!("{other} ns"),
    }
}
