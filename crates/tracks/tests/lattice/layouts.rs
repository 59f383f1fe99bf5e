//! Disks without defects, of every layout.

use super::*;
use headstack_model::drives;

#[test]
fn are_all_layouts_found() {
    for layout in [Layout::Cylinder, Layout::Serpentine, Layout::Ff, Layout::Af, Layout::Fa, Layout::Aa] {
        let plan = plan(layout, 4, 20);
        let found = run(&plan.spec(), Noise::USUAL, 1).unwrap_or_else(|error| panic!("{layout:?}: {error}"));
        assert_exact(&found);
    }
}

#[test]
#[ignore = "millions of tracks: make probe-full"]
fn are_shipped_drives_found_whole() {
    for name in ["hp-c3323a", "atlas-10k", "samsung-hd400ld", "toshiba-x300", "exos-x18"] {
        let spec = drives::load(name).expect("it is shipped");
        match run(&spec, Noise::USUAL, 1) {
            Ok(found) => eprintln!("{:?}", found.agreement),
            Err(error) => eprintln!("{name}: {error}"),
        }
    }
}
