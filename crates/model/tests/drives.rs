//! The shipped drive files: each number has a source, and each file is named after its drive.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod sources;

use headstack_model::drives;
use headstack_model::spec::{DriveSpec, Interface};
use sources::unsourced;
use std::path::Path;

#[test]
fn every_drive_file_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drives");
    let entries = std::fs::read_dir(folder).expect("the workspace has a folder `drives`");
    let files =
        entries.map(|entry| entry.expect("a readable entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        files.filter_map(|file| file.strip_suffix(".toml").map(str::to_string)).collect();
    names.sort();
    let listed: Vec<&str> = drives::all().iter().map(|(name, _)| *name).collect();
    assert_eq!(names, listed);
}

#[test]
fn every_drive_round_trips_and_bears_its_file_name() {
    for (name, text) in drives::all() {
        let spec = DriveSpec::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(spec.name, *name);
        assert!(spec.year.is_some(), "{name}: year");
        let written = DriveSpec::parse(&spec.to_toml(), name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(written, spec, "{name} written and read again");
    }
}

#[test]
fn every_shipped_drive_has_the_tags_of_its_interface() {
    let mut queued_sata = Vec::new();
    for (name, text) in drives::all() {
        let spec = DriveSpec::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        let interface = spec.bus.interface.unwrap_or_else(|| panic!("{name}: bus.interface"));
        assert_eq!(spec.tagging(), interface.tagging(), "{name}");
        if interface == Interface::Sata && spec.queue.depth > 1 {
            queued_sata.push(*name);
        }
    }
    let wanted = [
        "exos-2x18-half",
        "exos-x16",
        "exos-x18",
        "samsung-hd103sj",
        "seagate-archive-8tb",
        "st2000dm006",
        "toshiba-mg06",
        "toshiba-x300",
        "ultrastar-7k6000",
        "ultrastar-7k8",
        "ultrastar-hc570",
        "ultrastar-hc620",
        "wd40efax",
    ];
    assert_eq!(queued_sata, wanted);
}

#[test]
fn every_number_names_its_source() {
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

#[test]
fn source_rule_flags_every_unsourced_number() {
    let faults =
        |lines: &str| unsourced(&format!("year = 1 # s\n[sources]\ns = \"x 1\"\n[t]\n{lines}")).len();
    assert_eq!(
        faults("a = 1 # s\nb = \"2 # 3\"\nc = [ # s: why\n 1,\n]\nd = true\ne = 1 # derived: so\n"),
        0
    );
    assert_eq!(faults("# s: as measured\n# in the study\na = 1\n"), 0);
    assert_eq!(faults("[[t.u]] # s\na = 1\n[t.v]\nb = 1\n"), 1);
    for bare in
        ["a = 1\n", "a = 1 # t\n", "c = [\n -1,\n]\n", "c = [ # s\n 1,\n]\nd = -0.5\n", "# s\n\na = 1\n"]
    {
        assert_eq!(faults(bare), 1, "{bare}");
    }
}
