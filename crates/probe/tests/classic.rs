//! The classic methods of extracting a map, on simulated disks: by timing, by address translation and by the five steps; and the repair of
//! a map.

use headstack_model::{DriveSpec, Geometry, Lbn, drives};
use headstack_probe::scsi::{Order, Scheme, ScsiError};
use headstack_probe::simulated::{Noise, SimulatedDisk};
use headstack_probe::timing::TimingError;
use headstack_probe::{
    Answer, Disk, DiskInfo, Extraction, Probe, ProbeCommand, drive, query, repair, scsi, timing,
};
use headstack_tracks::TrackMap;
use headstack_tracks::check::{Agreement, compare};

/// A disk that may hide where its blocks lie, and answer from its cache even if not allowed.
struct Altered {
    disk: SimulatedDisk,
    hides: bool,
    caches: bool,
}

impl drive::ProbeTarget for Altered {
    type Error = std::convert::Infallible;

    fn info(&self) -> DiskInfo {
        let info = self.disk.info();
        DiskInfo { translates: info.translates && !self.hides, ..info }
    }

    fn submit(&mut self, probe: Probe) -> Result<(), Self::Error> {
        let command = match probe.command {
            ProbeCommand::Read { lbn, sectors, .. } if self.caches => {
                ProbeCommand::Read { lbn, sectors, from_media: false }
            }
            command => command,
        };
        self.disk.submit(Probe { command, ..probe })
    }

    fn wait(&mut self) -> Result<(Probe, Answer), Self::Error> {
        self.disk.wait()
    }
}

fn requested(spec: &DriveSpec, noise: Noise, hides: bool) -> Altered {
    Altered { disk: SimulatedDisk::new(spec, noise, 7).expect("it holds"), hides, caches: false }
}

fn found<T, F>(disk: &mut Altered, extractor: impl FnOnce(Disk) -> F) -> T
where
    F: Future<Output = T> + 'static,
{
    let mut extraction = Extraction::new(drive::ProbeTarget::info(disk), extractor);
    drive::run(&mut extraction, disk, |_, _, _| true).expect("it cannot fail").expect("it is not cancelled")
}

fn truth(spec: &DriveSpec) -> TrackMap {
    TrackMap::of_geometry(&Geometry::new(spec).expect("it holds"))
}

/// The drive with zones of a twentieth of the cylinders, slips included.
fn small(name: &str) -> DriveSpec {
    small_of(name, usize::MAX)
}

/// Its first zones.
fn small_of(name: &str, zones: usize) -> DriveSpec {
    let mut spec = drives::load(name).expect("it is shipped");
    spec.geometry.zones.truncate(zones);
    let mut next = 0;
    for zone in &mut spec.geometry.zones {
        let cylinders = (zone.last_cylinder + 1 - zone.first_cylinder) / 20;
        (zone.first_cylinder, zone.last_cylinder) = (next, next + cylinders - 1);
        next += cylinders;
        zone.slips.iter_mut().for_each(|slip| *slip /= 20);
        zone.slips.dedup();
        let places = u64::from(cylinders * zone.sectors_per_track * spec.geometry.heads);
        zone.slips.retain(|slip| *slip < places);
    }
    spec.geometry.cylinders = next;
    let zones = spec.geometry.zones.iter();
    spec.capacity_sectors = zones
        .map(|zone| {
            let cylinders = zone.last_cylinder + 1 - zone.first_cylinder;
            u64::from(cylinders * zone.sectors_per_track * spec.geometry.heads - zone.spares)
        })
        .sum();
    spec
}

/// Tracks of one map that the other does not have.
fn differences(map: &TrackMap, truth: &TrackMap) -> Vec<(headstack_tracks::Track, headstack_tracks::Track)> {
    let pairs = map.iter().map(|track| (track, truth.track_of(track.first).expect("both are of one disk")));
    pairs.filter(|(found, real)| found != real).take(8).collect()
}

fn exact(boundaries: u64) -> Agreement {
    Agreement { boundaries, missed: 0, false_ones: 0 }
}

#[test]
fn walk_maps_atlas_with_under_2_3_translations_per_track() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let truth = truth(&spec);
    let walk = found(&mut requested(&spec, Noise::NONE, false), query::extract).expect("it translates");
    assert_eq!(compare(&walk.map, &truth), exact(truth.tracks() - 1));
    let each = walk.translations as f64 / truth.tracks() as f64;
    eprintln!("{} translations, {each:.3} a track", walk.translations);
    assert!(each < 2.3, "{each}");
}

#[test]
fn walk_skips_remapped_blocks() {
    let mut spec = small("atlas-10k");
    let zone = &mut spec.geometry.zones[1];
    let places = u64::from((zone.last_cylinder + 1 - zone.first_cylinder) * zone.sectors_per_track * 6);
    // In a track, at its end, at its front.
    let track = u64::from(zone.sectors_per_track);
    zone.remaps = vec![(7 * track + 9, places - 3), (11 * track - 1, places - 5), (30 * track, places - 7)];
    let truth = truth(&spec);
    let walk = found(&mut requested(&spec, Noise::NONE, false), query::extract).expect("it translates");
    assert_eq!(compare(&walk.map, &truth), exact(truth.tracks() - 1));
}

#[test]
fn walk_maps_other_layouts_exactly() {
    for name in ["atlas-10k-ii", "cheetah-4lp", "st41601n", "dec-rz26", "hp-c2247a", "atlas-iii"] {
        let spec = drives::load(name).expect("it is shipped");
        let truth = truth(&spec);
        let walk = found(&mut requested(&spec, Noise::NONE, false), query::extract).expect("it translates");
        assert_eq!(compare(&walk.map, &truth), exact(truth.tracks() - 1), "{name}");
    }
}

#[test]
fn five_step_extraction_finds_atlas_layout() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let truth = truth(&spec);
    let found = found(&mut requested(&spec, Noise::NONE, false), scsi::extract)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(compare(&found.map, &truth), exact(truth.tracks() - 1));
    eprintln!("{} translations", found.translations);
    assert!(found.translations < 30_000, "{}", found.translations);
    let layout = found.layout;
    assert_eq!((layout.heads, layout.cylinders), (6, 10_042));
    assert_eq!((layout.order, layout.scheme), (Order::Serpentine, Scheme::ZoneEnd));
    let limits: Vec<_> =
        layout.zones.iter().map(|zone| (zone.first_cylinder, zone.sectors_per_track)).collect();
    let real: Vec<_> =
        spec.geometry.zones.iter().map(|zone| (zone.first_cylinder, zone.sectors_per_track)).collect();
    assert_eq!(limits, real);
    let slips: usize = spec.geometry.zones.iter().map(|zone| zone.slips.len()).sum();
    assert_eq!((layout.slips.len(), layout.remaps.len()), (slips, 0));
}

#[test]
fn remaps_are_distinguished_from_slips() {
    let mut spec = small("atlas-10k");
    let zone = &mut spec.geometry.zones[1];
    let places = u64::from((zone.last_cylinder + 1 - zone.first_cylinder) * zone.sectors_per_track * 6);
    zone.slips = vec![700, 2_000, 2_001];
    zone.remaps = vec![(1_500, places - 3), (9_000, places - 5)];
    let truth = truth(&spec);
    let geometry = Geometry::new(&spec).expect("it holds");
    let found = found(&mut requested(&spec, Noise::NONE, false), scsi::extract)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(compare(&found.map, &truth), exact(truth.tracks() - 1));
    let mut remaps: Vec<_> = found.layout.remaps.iter().map(|(place, _)| *place).collect();
    remaps.sort_unstable();
    assert_eq!(remaps, [geometry.sector_at(1, 1_500), geometry.sector_at(1, 9_000)]);
}

/// Every layout is found exactly or refused; which is said of each.
#[test]
fn every_sparing_scheme_is_found_or_rejected() {
    for (name, scheme) in [
        // All its spares are in its last zone.
        ("atlas-10k-ii", Ok(Scheme::DiskEnd)),
        ("atlas-iii", Ok(Scheme::DiskEnd)),
        ("ultrastar-18es", Ok(Scheme::DiskEnd)),
        ("cheetah-9lp", Ok(Scheme::ZoneEnd)),
        ("st41601n", Ok(Scheme::CylinderEnd)),
        ("cheetah-4lp", Err("sectors per range")),
        ("wd800jd", Err("the layout is not understood: blocks go from cylinder")),
        ("toshiba-x300", Err("the layout is not understood: blocks go from cylinder")),
    ] {
        let spec = drives::load(name).expect("it is shipped");
        match (found(&mut requested(&spec, Noise::NONE, false), scsi::extract), scheme) {
            (Ok(found), Ok(scheme)) => {
                let truth = truth(&spec);
                assert_eq!(compare(&found.map, &truth), exact(truth.tracks() - 1), "{name}");
                assert_eq!(found.layout.scheme, scheme, "{name}");
                assert!(found.translations < 30_000, "{name}: {}", found.translations);
            }
            (Err(error), Err(what)) => assert!(error.to_string().contains(what), "{name}: {error}"),
            (found, _) => panic!("{name}: {:?}", found.map(|found| found.layout.scheme)),
        }
    }
}

#[test]
fn untranslatable_or_noisy_disk_is_rejected() {
    let spec = small("atlas-10k");
    let error =
        found(&mut requested(&spec, Noise::NONE, true), query::extract).expect_err("it hides").to_string();
    assert_eq!(error, "the disk does not translate addresses; find its tracks by time (lattice, timing)");
    let error = found(&mut requested(&spec, Noise::NONE, true), scsi::extract).expect_err("it hides");
    assert!(matches!(error, ScsiError::Translation(_)), "{error}");
    let noise = Noise { sigma: headstack_model::Nanos(60_000), ..Noise::USUAL };
    let error = found(&mut requested(&spec, noise, true), timing::extract).expect_err("it is too noisy");
    assert!(matches!(error, TimingError::Noisy { .. }), "{error}");
}

fn by_time(spec: &DriveSpec, noise: Noise, caches: bool) -> (Agreement, u64, f64) {
    let mut disk = Altered { caches, ..requested(spec, noise, true) };
    let found = found(&mut disk, timing::extract).unwrap_or_else(|error| panic!("{error}"));
    let truth = truth(spec);
    assert_eq!(differences(&found.map, &truth), []);
    let hours = disk.disk.now().0 as f64 / 3.6e12;
    let agreement = compare(&found.map, &truth);
    eprintln!(
        "{}: {agreement:?}, {} probes, {:.2} a track, {hours:.3} simulated hours, turn {}, noise {}",
        spec.name,
        disk.disk.probes(),
        disk.disk.probes() as f64 / truth.tracks() as f64,
        found.turn,
        found.noise
    );
    (agreement, disk.disk.probes(), hours)
}

#[test]
fn timing_maps_small_atlas_exactly() {
    let spec = small("atlas-10k");
    for noise in [Noise::NONE, Noise::USUAL] {
        let (agreement, probes, _) = by_time(&spec, noise, false);
        assert_eq!(agreement, exact(agreement.boundaries));
        // Where walks begin and zones end it takes some dozens.
        assert!(probes < 6 * agreement.boundaries, "{probes} probes");
    }
}

#[test]
fn interleaved_walks_map_caching_disk_exactly() {
    let (agreement, _, _) = by_time(&small_of("atlas-10k", 4), Noise::USUAL, true);
    assert_eq!(agreement, exact(agreement.boundaries));
}

#[test]
fn timing_maps_atlas_within_half_an_hour() {
    let spec = drives::load("atlas-10k").expect("it is shipped");
    let (agreement, probes, hours) = by_time(&spec, Noise::USUAL, false);
    assert!(probes < 3 * agreement.boundaries, "{probes} probes");
    assert_eq!(agreement, exact(60_250));
    assert!(hours < 0.5, "{hours} h");
}

/// The small Atlas with one more slip in a zone, and what a repair of the old map makes and costs.
fn repaired(hides: bool, zone: usize, slips: &[u64]) -> (u64, TrackMap, TrackMap) {
    let old = small("atlas-10k");
    let mut new = old.clone();
    let keys = &mut new.geometry.zones[zone].slips;
    keys.extend(slips);
    keys.sort_unstable();
    let (map, truth) = (truth(&old), truth(&new));
    let mut disk = requested(&new, Noise::USUAL, hides);
    let known = map.clone();
    let at = found(&mut disk, async move |disk: Disk| repair::notice(disk, &known).await);
    let at = at.expect("the disk answers").expect("the map is wrong");
    let noticed = disk.disk.probes();
    let mended = found(&mut disk, async move |disk: Disk| repair::repair(disk, &map, at).await);
    (disk.disk.probes() - noticed, mended.unwrap_or_else(|error| panic!("{error}")), truth)
}

#[test]
fn grown_slip_is_found_and_repaired_locally() {
    for (hides, most) in [(false, 100), (true, 600)] {
        for (zone, slips) in [(3, &[9_000u64][..]), (12, &[4_000, 4_001, 20_000]), (20, &[0])] {
            let (probes, mended, truth) = repaired(hides, zone, slips);
            assert_eq!(compare(&mended, &truth), exact(truth.tracks() - 1), "zone {zone}");
            eprintln!("zone {zone}, {slips:?}: {probes} probes");
            assert!(probes < most * slips.len() as u64, "{probes} probes");
        }
    }
}

#[test]
fn valid_map_is_kept_and_shorter_map_is_rejected() {
    let spec = small("atlas-10k");
    let map = truth(&spec);
    let mut disk = requested(&spec, Noise::USUAL, false);
    let known = map.clone();
    assert_eq!(found(&mut disk, async move |disk: Disk| repair::notice(disk, &known).await), Ok(None));
    let known = map.clone();
    let same = found(&mut disk, async move |disk: Disk| repair::repair(disk, &known, Lbn(99_999)).await);
    assert_eq!(same, Ok(map.clone()));
    let mut other = TrackMap::new();
    other.push(334, 9);
    let error = found(&mut disk, async move |disk: Disk| repair::repair(disk, &other, Lbn(9)).await);
    assert!(error.expect_err("it is foreign").to_string().starts_with("the map ends at block 3006"));
}

/// The small disk of the tests of the command line.
fn two_zones() -> DriveSpec {
    let text = include_str!("../../cli/tests/small.toml");
    DriveSpec::parse(text, "small.toml").expect("it holds")
}

#[test]
fn foreign_map_of_equal_size_is_rejected_after_few_probes() {
    let spec = two_zones();
    let truth = truth(&spec);
    for (hides, most) in [(false, 120), (true, 900)] {
        for (sectors, tracks) in [(220_000, 1), (1_000, 220), (550, 400), (250, 880), (500, 440)] {
            let mut disk = requested(&spec, Noise::USUAL, hides);
            let mut other = TrackMap::new();
            other.push(sectors, tracks);
            let error = found(&mut disk, async move |disk: Disk| repair::notice(disk, &other).await);
            let error = error.expect_err("it is of another disk").to_string();
            let probes = disk.disk.probes();
            eprintln!("{tracks} x {sectors}, hides {hides}: {error} ({probes} probes)");
            assert!(error.starts_with("the map is of another disk: "), "{error}");
            assert!(probes < most, "{probes} probes");
        }
        let (known, mut disk) = (truth.clone(), requested(&spec, Noise::USUAL, hides));
        let holds = found(&mut disk, async move |disk: Disk| repair::notice(disk, &known).await);
        eprintln!("{} probes, hides {hides}", disk.disk.probes());
        assert_eq!(holds, Ok(None));
    }
}

#[test]
fn map_splitting_physical_sectors_is_rejected() {
    let mut spec = two_zones();
    spec.physical_sector_bytes = 4096;
    let mut map = TrackMap::new();
    map.push(504, 10);
    map.push(500, 429);
    map.push(460, 1);
    let error = found(&mut requested(&spec, Noise::NONE, true), async move |disk: Disk| {
        repair::notice(disk, &map).await
    });
    let error = error.expect_err("it is of another disk").to_string();
    assert!(error.ends_with("a track begins at block 5540, within a physical sector of 8 blocks"), "{error}");
}
