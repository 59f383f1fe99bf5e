//! Does the file of a disk that was learned from outside, and from nothing else, take as long as the disk?

use headstack_model::{DriveSpec, Geometry, Lbn, Nanos, Request, drives};
use headstack_sim::stats::demerit;
use headstack_sim::{Device, DeviceOptions};
use headstack_tracks::drive::{Answers, run};
use headstack_tracks::lattice::extract;
use headstack_tracks::learn::{electronics, mechanics};
use headstack_tracks::simulated::{Noise, SimulatedDisk};
use headstack_tracks::{Disk, Extraction, TrackMap, check, spec};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// The file that comes of asking a disk.
fn probed(truth: &DriveSpec) -> DriveSpec {
    let mut disk = SimulatedDisk::new(truth, Noise::USUAL, 11).expect("the drive file holds");
    let facts = disk.facts();
    let name = truth.name.clone();
    let mut extraction = Extraction::new(facts, async move |handle: Disk| {
        let lattice = extract(handle.clone()).await.expect("it has tracks");
        let mechanics = mechanics(handle.clone(), &lattice).await;
        let turn = 60e9 / mechanics.rpm;
        let electronics = electronics(handle, lattice.map, turn).await.expect("it turns");
        spec::drive_file(&name, &facts, &mechanics, &electronics)
    });
    let found = run(&mut extraction, &mut disk, |_, _, _| true).expect("it cannot fail");
    println!("{}: {} probes, {:.1} min", truth.name, disk.probes(), disk.now().as_secs() / 60.0);
    found.expect("nobody ended it")
}

/// Response times of requests one after the other: reads of a page, or reads and writes of several.
fn response_times(spec: &DriveSpec, is_mixed: bool) -> Vec<Nanos> {
    let mut device = Device::new(spec, &DeviceOptions::default()).expect("it holds");
    let mut random = Pcg64Mcg::seed_from_u64(20);
    let mut now = Nanos::ZERO;
    (0..6000)
        .map(|_| {
            let sectors = if is_mixed { 8 * random.random_range(1..9) } else { 8 };
            let lbn = Lbn(random.random_range(0..(device.sectors() - 64) / 8) * 8);
            let is_write = is_mixed && random.random_bool(0.33);
            let request = if is_write { Request::write(lbn, sectors) } else { Request::read(lbn, sectors) };
            now += Nanos(random.random_range(0..20_000_000));
            device.submit(now, request).expect("none is under way");
            loop {
                if let Some(done) = device.poll_completion() {
                    now = now.max(done.completed);
                    return done.response();
                }
                now = now.max(device.poll_timeout().expect("one is under way"));
                device.handle_timeout(now);
            }
        })
        .collect()
}

/// Distance between the response times of a drive and of its probed file, as a share of the mean.
fn demerit_share(truth: &DriveSpec, file: &DriveSpec, is_mixed: bool) -> f64 {
    let (truth, found) = (response_times(truth, is_mixed), response_times(file, is_mixed));
    let mean = truth.iter().map(|time| time.as_ms()).sum::<f64>() / truth.len() as f64;
    demerit::exact_ms(&truth, &found).expect("there are some") / mean
}

fn boundaries_and_demerits(name: &str) -> (check::Agreement, [f64; 2]) {
    let truth = drives::load(name).expect("it is shipped");
    let file = probed(&truth);
    let map = |spec: &DriveSpec| TrackMap::of_geometry(&Geometry::new(spec).expect("it holds"));
    let agreement = check::compare(&map(&file), &map(&truth));
    let demerits = [false, true].map(|is_mixed| demerit_share(&truth, &file, is_mixed));
    println!(
        "{name}: {:?} as {:?}, {agreement:?}, demerit {:.2} % random and {:.2} % mixed",
        truth.geometry.layout,
        file.geometry.layout,
        100.0 * demerits[0],
        100.0 * demerits[1]
    );
    (agreement, demerits)
}

#[test]
fn does_the_probed_file_predict_the_disk() {
    // Of 1992, of 2005 and of 2015.
    for name in ["hp-c2247a", "wd800jd", "toshiba-x300"] {
        let (agreement, demerits) = boundaries_and_demerits(name);
        assert_eq!((agreement.missed, agreement.false_ones), (0, 0), "{name}");
        assert!(demerits.iter().all(|share| *share <= 0.03), "{name}: demerits {demerits:?}");
    }
}

#[test]
#[ignore = "a table of figures: make probe-full"]
fn how_well_does_every_probed_file_predict_its_disk() {
    drives::all().iter().for_each(|(name, _)| {
        boundaries_and_demerits(name);
    });
}
