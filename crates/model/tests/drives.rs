//! The shipped drive files: each number with its source, each file what its name says, each as DiskSim has it.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod reference;
mod sources;

use headstack_model::spec::{DriveSpec, Evidence, Interface, ZeroLatency};
use headstack_model::{Extent, Geometry, Lbn, drives};
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
        "exos-x16",
        "exos-x18",
        "samsung-hd103sj",
        "st2000dm006",
        "toshiba-mg06",
        "toshiba-x300",
        "ultrastar-7k6000",
        "ultrastar-7k8",
        "ultrastar-hc570",
        "ultrastar-hc620",
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

/// Shipped drives and the files of DiskSim that describe the same drive in the set-up in which it was measured.
const FROM_DISKSIM: [(&str, &str); 12] = [
    ("atlas-10k", "rigs/atlas10k.parv"),
    ("atlas-iii", "rigs/atlas_III.parv"),
    ("barracuda-st32171w", "rigs/barracuda.parv"),
    ("cheetah-4lp", "rigs/cheetah4LP.parv"),
    ("cheetah-9lp", "rigs/cheetah9LP.parv"),
    ("ultrastar-18es", "rigs/ibm18es.parv"),
    ("hp-c2247a", "rigs/hp_c2247a.parv"),
    ("hp-c2249a", "rigs/ascii.parv"),
    ("hp-c2490a", "rigs/hp_c2490a.parv"),
    ("hp-c3323a", "rigs/hp_c3323a.parv"),
    ("dec-rz26", "rigs/dec_rz26.parv"),
    ("st41601n", "rigs/st41601n.parv"),
];

/// The import with the names and sources of the shipped drive, which are ours.
fn named_as(shipped: &DriveSpec, imported: DriveSpec) -> DriveSpec {
    DriveSpec {
        name: shipped.name.clone(),
        title: shipped.title.clone(),
        year: shipped.year,
        evidence: shipped.evidence,
        sources: shipped.sources.clone(),
        ..imported
    }
}

/// Where a shipped drive departs from its import on purpose; the drive files and docs/VALIDATION.md say why.
fn departures(name: &str, spec: &mut DriveSpec) {
    match name {
        "atlas-10k" | "atlas-10k-v-300" => spec.cache.read_ahead_past_segment = false,
        "dec-rz26" => spec.mechanics.zero_latency_read = ZeroLatency::None,
        "hp-c2490a" => spec.bus.write_us_per_sector = 163.03,
        "hp-c3323a" => spec.bus.write_us_per_sector = 159.84,
        _ => {}
    }
}

#[test]
fn shipped_drive_equals_the_import_of_disksim_files() {
    let Some(folder) = reference::disksim() else { return };
    for (name, file) in FROM_DISKSIM {
        let mut imported =
            reference::import_file(&folder, &folder.join(file)).unwrap_or_else(|error| panic!("{error}"));
        departures(name, &mut imported.spec);
        let shipped = drives::load(name).unwrap_or_else(|error| panic!("{error}"));
        // The C2249A was never measured: it is the C2247A with more surfaces.
        let evidence = if name == "hp-c2249a" { Evidence::Derived } else { Evidence::Validated };
        assert_eq!(shipped.evidence, evidence, "{name}");
        assert_eq!(named_as(&shipped, imported.spec), shipped, "{name}");
        let more = DriveSpec { capacity_sectors: shipped.capacity_sectors + 1, ..shipped };
        assert!(Geometry::new(&more).is_err(), "{name} holds more than its capacity");
    }
}

#[test]
fn shorter_atlas_10k_v_layout_equals_the_measured_one() {
    let Some(folder) = reference::disksim() else { return };
    let file = folder.join("specs/maxtor300g.diskspecs");
    let mut imported = reference::import_file(&folder, &file).unwrap_or_else(|error| panic!("{error}")).spec;
    let shipped = drives::load("atlas-10k-v-300").unwrap_or_else(|error| panic!("{error}"));
    let measured = Geometry::new(&imported).unwrap_or_else(|error| panic!("{error}"));
    let shorter = Geometry::new(&shipped).unwrap_or_else(|error| panic!("{error}"));
    let mut lbn = 0;
    while lbn < measured.sectors() {
        let (one, other) = (measured.extent_at(Lbn(lbn)), shorter.extent_at(Lbn(lbn)));
        assert_eq!(one, Extent { angle: one.angle, ..other });
        // The angles of single tracks were rounded, as the file says, by a thousandth of a turn.
        let off = (one.angle - other.angle).as_turns();
        assert!(off.min(1.0 - off) <= 0.001, "{one:?}: off by {off} turn");
        lbn = one.first.0 + u64::from(one.sectors);
    }
    imported.geometry.extents.clone_from(&shipped.geometry.extents);
    departures("atlas-10k-v-300", &mut imported);
    assert_eq!(named_as(&shipped, imported), shipped);
}
