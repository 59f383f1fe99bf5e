//! Does the file of a probed disk have the tracks, the blocks and the cylinders of the disk?

use headstack_model::{DriveSpec, Geometry, drives};
use headstack_probe::drive::{ProbeTarget, run};
use headstack_probe::lattice::extract;
use headstack_probe::learn::mechanics;
use headstack_probe::simulated::{Noise, SimulatedDisk};
use headstack_probe::{Disk, Extraction, spec};
use headstack_tracks::{TrackMap, check};

/// Drives that are probed within a second, of all layouts.
const QUICK: [&str; 22] = [
    "atlas-10k",
    "atlas-10k-ii",
    "atlas-iii",
    "barracuda-st32171w",
    "cheetah-4lp",
    "cheetah-9lp",
    "cheetah-x15",
    "dec-rz26",
    "hp-97560",
    "hp-c2247a",
    "hp-c2249a",
    "hp-c2490a",
    "hp-c3323a",
    "maxtor-92048u8",
    "samsung-hd400ld",
    "st3146707lw",
    "st41601n",
    "ultrastar-18es",
    "ultrastar-dfhc-2gb",
    "wd2500jb",
    "wd800jd",
    "wde18300",
];
/// Its zones are cut within cylinders where slips shift the angles, and the part behind a cut begins on a cylinder of its own.
const CUT_WITHIN_CYLINDERS: [&str; 1] = ["cheetah-4lp"];
/// Maximum error of the number of cylinders, as a share.
const CYLINDERS_OFF: f64 = 0.005;

/// The file of a disk, and the tracks that were found.
fn probed(truth: &DriveSpec, seed: u64) -> (DriveSpec, TrackMap) {
    let mut disk = SimulatedDisk::new(truth, Noise::USUAL, seed).expect("the drive file holds");
    let info = disk.info();
    let name = truth.name.clone();
    let mut extraction = Extraction::new(info, async move |handle: Disk| {
        let lattice = extract(handle.clone()).await.expect("a simulated disk has a lattice");
        let mechanics = mechanics(handle, &lattice).await;
        let file = spec::mechanics_file(&name, &info, &mechanics).expect("its tracks can be expressed");
        (file, lattice.map)
    });
    let found = run(&mut extraction, &mut disk, |_, _, _| true).expect("it cannot fail");
    found.expect("it is not cancelled")
}

/// Maximum wrong boundaries: misses of the lattice next to slipped sectors, not of the file, which has the tracks that were found. Each is
/// what a seed of the test met; `tests/probed.rs` has one for the Cheetahs, with its own seed.
fn boundaries_off(name: &str) -> u64 {
    match name {
        "cheetah-4lp" | "cheetah-9lp" => 2,
        "atlas-10k" => 1,
        _ => 0,
    }
}

fn geometry(spec: &DriveSpec) -> Geometry {
    Geometry::new(spec).expect("it holds")
}

/// Cylinders from the first that holds a block to the last.
fn used_cylinders(geometry: &Geometry) -> f64 {
    let (mut low, mut high) = (u32::MAX, 0);
    for run in TrackMap::of_geometry(geometry).runs() {
        for track in 0..run.tracks {
            let first = run.first + u64::from(track) * u64::from(run.sectors);
            let cylinder = geometry.track_at(first).cylinder;
            (low, high) = (low.min(cylinder), high.max(cylinder));
        }
    }
    f64::from(high - low + 1)
}

#[test]
fn probed_file_has_the_cylinders_and_all_found_tracks_of_the_disk() {
    let mut wrong = Vec::new();
    for name in QUICK {
        let mut truth = drives::load(name).expect("it is shipped");
        // What is lost by chance is not learned.
        truth.mechanics.lost_turns = None;
        for seed in [0, 11] {
            let (file, found) = probed(&truth, seed);
            let case = format!("{name}, seed {seed}");
            let (truth, file) = (geometry(&truth), geometry(&file));
            assert_eq!(file.sectors(), truth.sectors(), "{case}");
            assert_eq!(TrackMap::of_geometry(&file), found, "{case}: the file has what was found");
            let agreement = check::compare(&found, &TrackMap::of_geometry(&truth));
            if agreement.missed.max(agreement.false_ones) > boundaries_off(name) {
                wrong.push(format!("{case}: {agreement:?}"));
            }
            let (has, expected) = (used_cylinders(&file), used_cylinders(&truth));
            if (has - expected).abs() > CYLINDERS_OFF * expected && !CUT_WITHIN_CYLINDERS.contains(&name) {
                wrong.push(format!("{case}: {has} cylinders for {expected}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
