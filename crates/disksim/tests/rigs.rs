//! Does every parameter file of DiskSim's become a rig and a load?
//!
//! The files lie in `$HEADSTACK_REFERENCE/disksim/rigs`; without that variable there is nothing to import.

#![allow(clippy::disallowed_methods, reason = "tests read files")]

use headstack_disksim::rig::{ImportedRig, import};
use headstack_model::drives;
use headstack_personalities::LoadFile;
use headstack_sim::rig::{Rig, shipped};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> Option<PathBuf> {
    headstack_prerequisites::reference_data("disksim")
}

fn import_file(folder: &Path, name: &str) -> Result<ImportedRig, String> {
    let text =
        fs::read_to_string(folder.join("rigs").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let read =
        |name: &str| fs::read_to_string(folder.join("specs").join(name)).map_err(|error| error.to_string());
    import(&text, name, read).map_err(|error| error.to_string())
}

fn rig(imported: &ImportedRig, name: &str) -> Rig {
    Rig::parse(&imported.rig, name, &mut |name| drives::load(name)).unwrap_or_else(|error| panic!("{error}"))
}

/// The name of each parameter file.
const FILES: [&str; 23] = [
    "3disks",
    "3disks2",
    "ascii",
    "atlas10k",
    "atlas_III",
    "barracuda",
    "cheetah4LP",
    "cheetah9LP",
    "dec_rz26",
    "hp_c2247a",
    "hp_c2490a",
    "hp_c3323a",
    "hplajw",
    "ibm18es",
    "st41601n",
    "syntharrays",
    "synthcachedev",
    "synthcachemem",
    "synthclosed",
    "synthmixed",
    "synthopen",
    "synthraid5",
    "synthsimpledisk",
];

#[test]
fn every_parameter_file_imports_as_rig_and_load() {
    let Some(folder) = folder() else { return };
    let met = fs::read_dir(folder.join("rigs")).expect("the folder is there").flatten();
    let met = met.filter(|entry| entry.path().extension().is_some_and(|end| end == "parv")).count();
    assert_eq!(met, FILES.len());
    for name in FILES {
        let imported = import_file(&folder, &format!("{name}.parv"));
        let imported = imported.unwrap_or_else(|error| panic!("{error}"));
        let rig = rig(&imported, name);
        let load = imported.load.expect("each of them has a load");
        let load = LoadFile::parse(&load, name).unwrap_or_else(|error| panic!("{error}"));
        load.build(&rig.volumes(), 1).unwrap_or_else(|error| panic!("{error}"));
        rig.build(1).unwrap_or_else(|error| panic!("{name}: {error}"));
        let again = Rig::parse(&rig.to_toml(), name, &mut |preset| panic!("{preset}"));
        assert_eq!(again.expect("a resolved rig is a rig").volumes(), rig.volumes(), "{name}");
    }
}

#[test]
fn shipped_rigs_equal_the_imported_ones() {
    let Some(folder) = folder() else { return };
    for (shipped, file) in [("ascii-trace", "ascii.parv"), ("hp-workstation", "hplajw.parv")] {
        let imported = import_file(&folder, file).unwrap_or_else(|error| panic!("{error}"));
        let (imported, shipped) = (rig(&imported, file), shipped::load(shipped).expect("it is shipped"));
        // The shipped drive has the bus's time for a sector in itself, too.
        let whole = |rig: &Rig| {
            let mut spec = rig.resolved().drive[0].spec.clone();
            let bus = &rig.resolved().bus[0];
            spec.bus.read_us_per_sector = spec.bus.read_us_per_sector.max(bus.read_us_per_sector);
            spec.bus.write_us_per_sector = spec.bus.write_us_per_sector.max(bus.write_us_per_sector);
            spec
        };
        assert!(whole(&imported) == whole(&shipped), "{file}: another drive");
        assert_eq!(imported.volumes(), shipped.volumes(), "{file}");
        assert_eq!(imported.trace_devices(), shipped.trace_devices(), "{file}");
        assert_eq!(imported.resolved().host.queue.order, shipped.resolved().host.queue.order, "{file}");
    }
}
