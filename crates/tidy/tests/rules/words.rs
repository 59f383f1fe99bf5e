//! Non-standard words that readers would have to translate: in names, keys, comments, messages and documents.

use headstack_tidy::ratchet::{Counts, check, count};
use headstack_tidy::{Code, all_code, all_files, pages, prose, read, root, scan};

/// Banned everywhere, with what to write instead.
const DIALECT: &[(&str, &str)] = &[
    ("told", "reported, announced, given"),
    ("foretold", "predicted"),
    ("foretell", "predict"),
    ("beside", "next to, in addition to; of requests: bypass"),
    ("besides", "also, in addition"),
    ("somebody", "a client, a caller: who it is"),
    ("nobody", "no client, no caller: who it is"),
    ("so many", "N, that number of"),
    ("so much", "N, that amount of"),
    ("go on", "continue"),
    ("goes on", "continues"),
    ("going on", "continuing"),
    ("went on", "continued"),
    ("under way", "in flight, pending, in progress"),
    ("by hand", "manually; of time: step by step"),
    ("for good", "permanently"),
    ("dearest", "costliest"),
    ("nought", "zero"),
    ("anew", "again"),
    ("once more", "again"),
    ("look again", "recheck, verify"),
    ("looks again", "rechecks, verifies"),
    ("looked again", "rechecked, verified"),
    ("lend", "pass, hand in"),
    ("lent", "passed, handed in"),
    ("give back", "return, release"),
    ("gives back", "returns, releases"),
    ("given back", "returned, released"),
    ("comes round", "recurs"),
    ("came round", "recurred"),
    ("to and fro", "both ways"),
    ("come by", "obtained"),
    ("came by", "obtained"),
    ("go past", "bypass, exceed"),
    ("goes past", "bypasses, exceeds"),
    ("oust", "evict"),
    ("dislodge", "redirect"),
    ("stranger", "unmatched"),
    ("strangers", "unmatched"),
    ("newcomer", "new request, new client"),
    ("newcomers", "new requests, new clients"),
    ("whereabouts", "location"),
    ("household", "address prefix"),
    ("hungry", "wants prefetch"),
    ("needy", "blocked"),
    ("farewell", "final flush"),
    ("whoever", "who it is"),
];

/// Banned in names and keys only: roles in a story in place of what a thing is.
const IN_NAMES: &[(&str, &str)] = &[
    ("asked", "pending request"),
    ("asker", "origin"),
    ("wish", "action, effect"),
    ("gather", "coalesce"),
    ("gathered", "coalesced"),
    ("onlooker", "observer"),
    ("turning", "event loop"),
    ("desk", "mailbox"),
    ("facts", "info"),
    ("seats", "limits"),
    ("rehearsed", "dry run"),
    ("rehearsal", "dry run"),
    ("unpress", "end escalation"),
    ("outdate", "invalidate"),
    ("punctual", "timer slack"),
    ("wakefulness", "CPU latency lock"),
    ("road", "method"),
    ("seating", "connection limits"),
    ("desert", "mark disconnected"),
    ("deserted", "disconnected"),
    ("take leave", "drain"),
    ("know again", "reidentify"),
];

/// Words that say nothing as the whole name of a function.
const FUNCTION_WORDS: &[&str] =
    &["at", "of", "by", "take", "known", "way", "place", "turn", "look", "ask", "so"];

/// All code but this file, which quotes what it forbids.
fn code() -> impl Iterator<Item = Code> {
    all_code().into_iter().filter(|code| !code.path.ends_with("tidy/tests/rules/words.rs"))
}

#[test]
fn names_have_no_dialect() {
    let mut found = Counts::new();
    for code in code() {
        for name in code.lines.iter().flat_map(|line| scan::identifiers(&line.code)) {
            count_in_name(&mut found, &code.crate_name, name);
        }
    }
    check("dialect in names", &found);
}

fn count_in_name(found: &mut Counts, list: &str, name: &str) {
    // Most names have no banned letters at all; splitting them is what costs time.
    let words = scan::words(name).join(" ");
    for (phrase, _) in DIALECT.iter().chain(IN_NAMES).filter(|(phrase, _)| words.contains(phrase)) {
        for _ in 0..prose::occurrences(&words, phrase) {
            count(found, list, *phrase);
        }
    }
}

#[test]
fn keys_have_no_dialect() {
    let mut found = Counts::new();
    for path in all_files().iter().filter(|path| path.extension().is_some_and(|end| end == "toml")) {
        let text = read(path);
        let inside = path.strip_prefix(root()).expect("it was found there");
        let list = inside.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
        for line in text.lines().map(|line| line.split('#').next().unwrap_or_default()) {
            let tables = line.strip_prefix('[').map(|table| table.trim_matches(['[', ']', ' ']));
            let keys = line
                .split('=')
                .rev()
                .skip(1)
                .filter_map(|key| key.split([' ', ',', '{', '.']).rfind(|key| !key.is_empty()));
            tables.into_iter().chain(keys).for_each(|key| count_in_name(&mut found, list, key));
        }
    }
    check("dialect in keys", &found);
}

#[test]
fn functions_are_not_named_by_function_words() {
    let mut found = Counts::new();
    for code in code() {
        for line in &code.lines {
            let name = scan::declared(&line.code, "fn").filter(|name| FUNCTION_WORDS.contains(name));
            name.into_iter().for_each(|name| count(&mut found, &code.crate_name, name));
        }
    }
    check("function word as a name", &found);
}

#[test]
fn comments_have_no_dialect() {
    let mut found = Counts::new();
    for code in code() {
        let text: Vec<_> = code.lines.iter().map(|line| line.comment.trim()).collect();
        count_in_text(&mut found, &code.crate_name, &text.join(" "));
    }
    check("dialect in comments", &found);
}

#[test]
fn messages_have_no_dialect() {
    let mut found = Counts::new();
    for code in code() {
        let text: Vec<_> = code.lines.iter().map(|line| line.strings.as_str()).collect();
        count_in_text(&mut found, &code.crate_name, &text.join(" "));
    }
    check("dialect in messages", &found);
}

#[test]
fn documents_have_no_dialect() {
    let mut found = Counts::new();
    for path in pages() {
        let page = path.strip_prefix(root()).expect("it was found there").display().to_string();
        // The rules quote what they forbid; what has been released keeps its words.
        if ["docs/STYLE.md", "CHANGELOG.md", "docs/history/before-0.1.md"].contains(&page.as_str()) {
            continue;
        }
        for paragraph in prose::paragraphs(&read(&path)) {
            let mut here = Counts::new();
            count_in_text(&mut here, "documents", &paragraph.text);
            for ((list, phrase), number) in here {
                *found.entry((list, format!("{page}: {phrase}"))).or_default() += number;
            }
        }
    }
    check("dialect in documents", &found);
}

fn count_in_text(found: &mut Counts, list: &str, text: &str) {
    let lower = prose::words(text).join(" ");
    for (phrase, _) in DIALECT.iter().filter(|(phrase, _)| lower.contains(phrase)) {
        for _ in 0..prose::occurrences(&lower, phrase) {
            count(found, list, *phrase);
        }
    }
}
