//! The shipped drive files: each number with its source, each file what its name says, each as DiskSim has it.

mod reference;

use headstack_model::drives;
use headstack_model::spec::{DriveSpec, Evidence};
use std::path::Path;

#[test]
fn is_every_file_of_the_folder_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives");
    let entries = std::fs::read_dir(folder).expect("the workspace has a folder `drives`");
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned())
        .filter(|name| !name.starts_with('.'))
        .collect();
    files.sort();
    let listed: Vec<String> = drives::all().iter().map(|(name, _)| format!("{name}.toml")).collect();
    assert_eq!(files, listed);
}

#[test]
fn does_every_drive_parse_and_bear_the_name_of_its_file() {
    for (name, text) in drives::all() {
        let spec = DriveSpec::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.name, *name);
        assert!(spec.year.is_some(), "{name}: year");
        assert!(spec.title.contains(&spec.year.unwrap_or(0).to_string()), "{name}: year in {}", spec.title);
        let written = DriveSpec::parse(&spec.to_toml(), name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(written, spec, "{name} written and read again");
    }
}

#[test]
fn has_every_number_its_source_beside_it() {
    let mut wrong = Vec::new();
    for (name, text) in drives::all() {
        wrong.extend(unsourced(text).into_iter().map(|line| format!("drives/{name}.toml:{line}")));
    }
    assert!(
        wrong.is_empty(),
        "numbers without a source, or sources that [sources] lacks:\n{}",
        wrong.join("\n")
    );
}

/// Lines of a drive file that hold a number without a source, or name a source that is not listed.
///
/// A source is the first word of a comment behind the number, on the line that opens the array around it, or on the heading
/// of the table around it; it must be a key of `[sources]`.
fn unsourced(text: &str) -> Vec<String> {
    let sources = source_keys(text);
    let mut wrong = Vec::new();
    let (mut table, mut table_sourced) = ("", false);
    let (mut depth, mut array_sourced) = (0i32, false);
    for (index, line) in text.lines().enumerate() {
        let (code, comment) = split_comment(line);
        let code = code.trim();
        let source = comment.and_then(|comment| comment.split_whitespace().next());
        let sourced = source.is_some_and(|word| sources.contains(&word.trim_end_matches([':', ',', ';'])));
        if depth == 0 && code.starts_with('[') {
            (table, table_sourced) = (code.trim_matches(['[', ']']), sourced);
            continue;
        }
        if table == "sources" {
            continue;
        }
        let value = if depth == 0 { code.split_once('=').map_or("", |(_, value)| value) } else { code };
        let opens = depth == 0;
        if opens && (sourced || table_sourced) || depth > 0 && array_sourced {
            // The line has its source.
        } else if numeric(value) && !sourced {
            wrong.push(format!("{}: {line}", index + 1));
        }
        depth += brackets(value);
        if opens {
            array_sourced = sourced || table_sourced;
            if depth > 0 && !array_sourced {
                wrong.push(format!("{}: {line}", index + 1));
            }
        }
    }
    wrong
}

/// The keys of `[sources]`.
fn source_keys(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| *line != "[sources]").skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter_map(|l| l.split_once('='))
        .map(|(key, _)| key.trim())
        .collect()
}

/// Splits a line at the `#` that begins a comment.
fn split_comment(line: &str) -> (&str, Option<&str>) {
    let mut quoted = false;
    for (at, c) in line.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '#' if !quoted => return (&line[..at], Some(&line[at + 1..])),
            _ => {}
        }
    }
    (line, None)
}

/// Whether a value, its strings left out, holds a number.
fn numeric(value: &str) -> bool {
    let plain: String = value.split('"').step_by(2).collect();
    plain
        .split([',', '[', ']', '{', '}', '=', ' '])
        .any(|word| word.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit()))
}

fn brackets(value: &str) -> i32 {
    let plain: String = value.split('"').step_by(2).collect();
    plain.chars().map(|c| i32::from(matches!(c, '[' | '{')) - i32::from(matches!(c, ']' | '}'))).sum()
}

#[test]
fn does_the_rule_about_sources_catch_what_it_should() {
    let good = "name = \"a1\"\nyear = 1 # s\n[sources]\ns = \"x 1\"\n";
    let body = |lines: &str| format!("[sources]\ns = \"x 1\"\n[t]\n{lines}");
    assert_eq!(
        unsourced(&body("a = 1 # s\nb = \"2\"\nc = [ # s: why\n 1,\n]\nd = true\n")),
        Vec::<String>::new()
    );
    assert_eq!(unsourced(&body("a = 1\n")).len(), 1);
    assert_eq!(unsourced(&body("a = 1 # t\n")).len(), 1);
    assert_eq!(unsourced(&body("c = [\n 1,\n]\n")).len(), 2);
    assert_eq!(unsourced(&body("c = [ # s\n 1,\n]\nd = -0.5\n")).len(), 1);
    assert_eq!(unsourced(good), Vec::<String>::new());
}

/// Shipped drives and the files of DiskSim that describe the same drive in the set-up in which it was measured.
const FROM_DISKSIM: [(&str, &str); 11] = [
    ("atlas-10k", "rigs/atlas10k.parv"),
    ("atlas-iii", "rigs/atlas_III.parv"),
    ("barracuda-st32171w", "rigs/barracuda.parv"),
    ("cheetah-4lp", "rigs/cheetah4LP.parv"),
    ("cheetah-9lp", "rigs/cheetah9LP.parv"),
    ("ultrastar-18es", "rigs/ibm18es.parv"),
    ("hp-c2247a", "rigs/hp_c2247a.parv"),
    ("hp-c2490a", "rigs/hp_c2490a.parv"),
    ("hp-c3323a", "rigs/hp_c3323a.parv"),
    ("dec-rz26", "rigs/dec_rz26.parv"),
    ("st41601n", "rigs/st41601n.parv"),
];

#[test]
fn does_a_shipped_drive_equal_the_import_of_disksims_files() {
    let Some(folder) = reference::disksim() else { return };
    for (name, file) in FROM_DISKSIM {
        let imported =
            reference::import_file(&folder, &folder.join(file)).unwrap_or_else(|error| panic!("{error}"));
        let shipped = drives::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(shipped.evidence, Evidence::Validated, "{name}");
        // What names the drive and the sources is ours; every number must be the same.
        let named = DriveSpec {
            name: shipped.name.clone(),
            title: shipped.title.clone(),
            year: shipped.year,
            evidence: shipped.evidence,
            sources: shipped.sources.clone(),
            ..imported.spec
        };
        assert_eq!(named, shipped, "{name}");
    }
}
