//! Rules about the code that a test can check: which crate may depend on which, how long a file may be, what no source may contain.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_tidy::{Source, all_files, entries, read, root, sources, without_tests};
use std::fs;
use std::process::Command;

/// Crates and the crates of this workspace that they may use; a crate that is not here may not be.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("policy", &["model"]),
    ("streams", &["model", "policy"]),
    ("workload", &["model"]),
    ("personalities", &["model", "workload"]),
    ("sim", &["model", "policy", "streams", "workload"]),
    ("disksim", &["model", "workload", "personalities", "sim"]),
    ("headstack", &["model", "policy", "workload", "personalities", "sim"]),
    ("sweep", &["model", "workload", "sim", "headstack"]),
    ("explorer-wasm", &["policy", "headstack"]),
    ("explorer", &[]),
    ("tracks", &["model"]),
    ("probe", &["model", "sim", "tracks"]),
    ("fit", &["model", "workload", "sim"]),
    ("nbd", &["model"]),
    ("ext4", &[]),
    ("host", &["model", "policy", "streams", "workload", "sim", "tracks", "probe", "nbd", "ext4"]),
    (
        "studies",
        &[
            "model",
            "policy",
            "streams",
            "workload",
            "personalities",
            "sim",
            "disksim",
            "headstack",
            "tracks",
            "probe",
        ],
    ),
    (
        "cli",
        &[
            "model",
            "policy",
            "streams",
            "workload",
            "sim",
            "disksim",
            "headstack",
            "sweep",
            "explorer-wasm",
            "explorer",
            "tracks",
            "probe",
            "fit",
            "nbd",
            "ext4",
            "host",
            "studies",
        ],
    ),
    ("py", &["policy", "headstack", "sweep"]),
    ("tidy", &[]),
    ("prerequisites", &[]),
];

/// Crates whose answers follow from their arguments alone.
const PURE: [&str; 11] = [
    "model",
    "policy",
    "streams",
    "workload",
    "personalities",
    "sim",
    "disksim",
    "headstack",
    "tracks",
    "probe",
    "fit",
];

/// Lines of a file that are not its unit tests.
const LONGEST: usize = 500;

/// The package of the crate in a folder: the library has the name of the whole.
fn package_of(folder: &str) -> String {
    if folder == "headstack" { folder.to_string() } else { format!("headstack-{folder}") }
}

/// The folder of the crate with this package, if it is one of ours.
fn crate_of(package: &str) -> Option<&str> {
    if package == "headstack" { Some(package) } else { package.strip_prefix("headstack-") }
}

#[test]
fn every_crate_depends_only_on_allowed_crates() {
    let mut met = 0;
    for folder in entries(&root().join("crates")) {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("names are ASCII").to_string();
        let manifest: toml::Table = read(&folder.join("Cargo.toml")).parse().expect("a manifest is TOML");
        assert_eq!(manifest["package"]["name"].as_str(), Some(package_of(&name).as_str()));
        let rule = MAY_USE.iter().find(|(known, _)| *known == name);
        let (_, allowed) = rule.unwrap_or_else(|| panic!("crate {name} has no place in the table"));
        for section in ["dependencies", "build-dependencies"] {
            let used = manifest.get(section).and_then(|table| table.as_table());
            for used in used.into_iter().flat_map(|table| table.keys()) {
                let Some(used) = crate_of(used) else { continue };
                assert!(allowed.contains(&used), "{name} may not use {used}");
            }
        }
        met += 1;
    }
    assert!(met >= 6, "only {met} crates met");
}

/// A row of the table of crates in the documents: the crate, and what the last cell allows it.
fn documented_row(line: &str) -> Option<(String, Vec<String>)> {
    let cells: Vec<_> = line.split('|').map(str::trim).collect();
    let name = cells.get(1)?.strip_prefix('`')?.strip_suffix('`')?;
    let allowed = cells.get(3)?.split(", ").filter(|used| *used != "–");
    Some((name.to_string(), allowed.map(str::to_string).collect()))
}

#[test]
fn architecture_documents_the_allowed_crates() {
    let text = read(&root().join("docs/ARCHITECTURE.md"));
    let table = text.split("## The rooms").nth(1).and_then(|rest| rest.split("\n## ").next());
    let documented: Vec<_> =
        table.expect("there is such a section").lines().filter_map(documented_row).collect();
    let rules = MAY_USE.iter();
    let allowed: Vec<_> = rules
        .map(|(name, used)| (name.to_string(), used.iter().map(|used| used.to_string()).collect()))
        .collect();
    assert_eq!(documented, allowed);
}

#[test]
fn no_source_exceeds_500_lines() {
    for Source { path, text } in sources() {
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
    for Source { path, text } in sources() {
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
    for Source { path, text } in sources() {
        if path.file_name().is_some_and(|name| name != "build.rs") {
            assert!(text.starts_with("//! "), "{} has no header", path.display());
        }
    }
}

#[test]
fn pure_crates_use_no_clock_thread_io_or_unsafe_code() {
    let banned = ["std::time", "std::thread", "std::net", "std::process", "std::fs", "unsafe "];
    for source in sources().into_iter().filter(|source| PURE.contains(&source.crate_name())) {
        for (index, line) in without_tests(&source.text).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            for word in banned {
                assert!(!code.contains(word), "{}:{}: {word}", source.path.display(), index + 1);
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
fn no_test_prints_its_own_skips() {
    // Written apart, so that this file is clean of it too.
    let print = ["eprint", "ln!(\"skipped"].concat();
    for path in all_files().iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs")) {
        let text = read(path).to_lowercase();
        assert!(!text.contains(&print), "{}: record skips by headstack-prerequisites", path.display());
    }
}

#[test]
fn every_ignored_test_names_the_command_that_runs_it() {
    let mut met = 0;
    for path in all_files().iter().filter(|path| path.extension().is_some_and(|ext| ext == "rs")) {
        for line in read(path).lines().map(str::trim_start).filter(|line| line.starts_with("#[ignore")) {
            let is_named = line.contains(": make ") || line.contains("another test runs it");
            assert!(is_named, "{}: {line}", path.display());
            met += 1;
        }
    }
    assert!(met >= 10, "only {met} ignored tests met");
}

#[test]
fn every_planted_fault_fits_its_file() {
    let mut judged = 0;
    for path in entries(&root().join("tests/planted")) {
        let text = read(&path);
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{}: no `{name}`", path.display()))
        };
        let file = read(&root().join(field("file: ")));
        let fits = file.lines().filter(|line| line.trim_start() == field("old: ")).count();
        assert_eq!(fits, 1, "{}: its old line stands so often in {}", path.display(), field("file: "));
        judged += 1;
    }
    assert!(judged >= 12, "{judged} planted faults");
}

/// The patches of `tests/extend` with the number of files that each may touch, without those of tests.
const ADDITIONS: [(&str, usize); 7] = [
    ("layer", 3),
    ("node-layer", 3),
    ("order", 2),
    ("drive-key", 2),
    ("trace-format", 2),
    ("counter", 1),
    ("study-row", 2),
];

#[test]
fn each_addition_applies_and_touches_few_files() {
    for (name, most) in ADDITIONS {
        let path = root().join(format!("tests/extend/{name}.patch"));
        let touched = |line: &&str| line.starts_with("+++ ") && !line.contains("/tests/");
        let files = read(&path).lines().filter(touched).count();
        assert!((1..=most).contains(&files), "{name}: {files} files (allowed: 1 to {most})");
        let check = Command::new("git").arg("-C").arg(root()).args(["apply", "--check"]).arg(&path).output();
        let check = check.expect("git is installed");
        assert!(check.status.success(), "{name}: {}", String::from_utf8_lossy(&check.stderr));
    }
}
