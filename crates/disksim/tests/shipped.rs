//! The shipped drives that DiskSim also describes: each equals its import, except for named differences.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

mod reference;

use headstack_model::spec::{DriveSpec, Evidence, ZeroLatency};
use headstack_model::{Extent, Geometry, Lbn, drives};

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

/// Where a shipped drive departs from its import on purpose; the drive files and studies/validation/disksim.md say why.
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
    // DiskSim has no bound on waiting, and no stream that keeps the arm.
    imported.queue.age_limit_ms = shipped.queue.age_limit_ms;
    imported.queue.stream_hold_ms = shipped.queue.stream_hold_ms;
    assert_eq!(named_as(&shipped, imported), shipped);
}
