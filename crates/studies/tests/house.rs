//! The rules of the house that a machine can keep: who may use whom, how long a file may be, what no source may hold.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use std::fs;
use std::path::{Path, PathBuf};

/// Crates and the crates of the house that they may use; a crate that is not here may not be.
const MAY_USE: [(&str, &[&str]); 9] = [
    ("model", &[]),
    ("policy", &["model"]),
    ("workload", &["model"]),
    ("sim", &["model", "policy", "workload"]),
    ("tracks", &["model", "policy", "workload", "sim"]),
    ("host", &["model", "policy", "workload", "sim", "tracks"]),
    ("studies", &["model", "policy", "workload", "sim", "tracks"]),
    ("cli", &["model", "policy", "workload", "sim", "tracks", "host", "studies"]),
    ("py", &["model", "policy", "workload", "sim", "tracks", "host", "studies"]),
];

/// Lines of a file that are not its unit tests.
const LONGEST: usize = 500;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder, but for what tools put there.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("the folder can be listed").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_symlink() || [".git", "target", "out", "corpus", "artifacts"].contains(&name) {
            continue;
        }
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

fn all_files() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&root(), &mut found);
    assert!(found.len() > 100, "the repository is more than {} files", found.len());
    found
}

/// Rust files that are part of a program, not of its tests.
fn sources() -> Vec<(PathBuf, String)> {
    let is_source = |path: &PathBuf| {
        let inside = path.strip_prefix(root()).expect("it was found there");
        let parts: Vec<_> = inside.iter().filter_map(|part| part.to_str()).collect();
        path.extension().is_some_and(|ext| ext == "rs")
            && parts.first() == Some(&"crates")
            && parts.get(2) == Some(&"src")
            && parts.last() != Some(&"tests.rs")
    };
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("sources are text");
        (path, text)
    };
    all_files().into_iter().filter(is_source).map(read).collect()
}

/// A source without the unit tests at its foot.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or(text)
}

#[test]
fn every_crate_depends_only_on_allowed_crates() {
    let mut met = 0;
    for entry in fs::read_dir(root().join("crates")).expect("there are crates") {
        let folder = entry.expect("the folder can be listed").path();
        let name = folder.file_name().and_then(|name| name.to_str()).expect("names are ASCII").to_string();
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a manifest");
        let manifest: toml::Table = text.parse().expect("a manifest is TOML");
        assert_eq!(manifest["package"]["name"].as_str(), Some(format!("headstack-{name}").as_str()));
        let rule = MAY_USE.iter().find(|(known, _)| *known == name);
        let (_, allowed) = rule.unwrap_or_else(|| panic!("crate {name} has no place in the table"));
        for section in ["dependencies", "build-dependencies"] {
            let used = manifest.get(section).and_then(|table| table.as_table());
            for used in used.into_iter().flat_map(|table| table.keys()) {
                let Some(used) = used.strip_prefix("headstack-") else { continue };
                assert!(allowed.contains(&used), "{name} may not use {used}");
            }
        }
        met += 1;
    }
    assert!(met >= 6, "only {met} crates met");
}

#[test]
fn no_source_exceeds_500_lines() {
    for (path, text) in sources() {
        let lines = without_tests(&text).lines().count();
        assert!(lines <= LONGEST, "{}: {lines} lines", path.display());
    }
}

#[test]
fn no_source_unwraps_or_leaves_a_todo() {
    // Written apart, so that this file is clean of them too.
    let banned = [".unwrap", "todo", "dbg", "unimplemented"].map(|word| match word {
        ".unwrap" => format!("{word}()"),
        word => format!("{word}!("),
    });
    for (path, text) in sources() {
        for (index, line) in without_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in &banned {
                assert!(!code.contains(word), "{}:{}: {word}", path.display(), index + 1);
            }
        }
    }
}

#[test]
fn every_source_begins_with_a_header_comment() {
    for (path, text) in sources() {
        if path.file_name().is_some_and(|name| name != "build.rs") {
            assert!(text.starts_with("//! "), "{} has no header", path.display());
        }
    }
}

#[test]
fn pure_crates_use_no_clock_thread_io_or_unsafe_code() {
    let banned = ["std::time", "std::thread", "std::net", "std::process", "std::fs", "unsafe "];
    for (path, text) in sources() {
        let inside = path.strip_prefix(root()).expect("it was found there");
        let name = inside.iter().nth(1).and_then(|name| name.to_str()).unwrap_or_default();
        if !["model", "policy", "workload", "sim", "tracks"].contains(&name) {
            continue;
        }
        for (index, line) in without_tests(&text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in banned {
                assert!(!code.contains(word), "{}:{}: {word}", path.display(), index + 1);
            }
        }
    }
}

#[test]
fn no_file_refers_outside_the_repository() {
    // A clean clone must build and pass without a neighbour.
    let outside = ["..", "shared"].join("/");
    for path in all_files() {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        assert!(!text.contains(&outside), "{} names {outside}", path.display());
    }
}

#[test]
fn every_planted_fault_fits_its_file() {
    let folder = root().join("tests/planted");
    let mut judged = 0;
    for entry in fs::read_dir(&folder).expect("there are planted faults") {
        let path = entry.expect("the folder can be read").path();
        let text = fs::read_to_string(&path).expect("faults are text");
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{}: no `{name}`", path.display()))
        };
        let file = fs::read_to_string(root().join(field("file: "))).expect("the fault's file is there");
        let fits = file.lines().filter(|line| line.trim_start() == field("old: ")).count();
        assert_eq!(fits, 1, "{}: its old line stands so often in {}", path.display(), field("file: "));
        judged += 1;
    }
    assert!(judged >= 12, "{judged} planted faults");
}
