//! Maps of whole disks, in their files.

use headstack_model::{DriveSpec, Geometry, Lbn, drives};
use headstack_tracks::TrackMap;
use headstack_tracks::map::{self, Identity};

/// An Exos X18 whose tracks hold a ninth more.
fn of_20_tb() -> DriveSpec {
    let mut spec = drives::load("exos-x18").expect("it is shipped");
    for zone in &mut spec.geometry.band_zones {
        for sectors in &mut zone.sectors_per_track {
            *sectors = *sectors / 8 * 10 / 9 * 8;
        }
        zone.spares = 0;
    }
    spec.capacity_sectors = map_of(&spec).end().0;
    spec
}

/// The map of a seek-first layout without slips and spares, run by run.
fn map_of(spec: &DriveSpec) -> TrackMap {
    let mut map = TrackMap::new();
    for zone in &spec.geometry.band_zones {
        let mut cylinder = zone.first_cylinder;
        while cylinder <= zone.last_cylinder {
            let tracks = zone.band_tracks.min(zone.last_cylinder + 1 - cylinder);
            zone.sectors_per_track.iter().for_each(|sectors| map.push(*sectors, tracks));
            cylinder += tracks;
        }
    }
    map
}

fn bytes(map: &TrackMap) -> Vec<u8> {
    let mut bytes = Vec::new();
    map::write(&mut bytes, &Identity::new(map.end().0, 512), map).expect("memory takes it");
    bytes
}

#[test]
fn map_of_20_tb_fits_in_10_kb() {
    let spec = of_20_tb();
    let (map, geometry) = (map_of(&spec), Geometry::new(&spec).expect("it holds"));
    assert!(geometry.sectors() * 512 > 19_900_000_000_000, "{} blocks", geometry.sectors());
    for step in 0..20_000 {
        let lbn = Lbn(step * 1_999_993 % geometry.sectors());
        let track = map.track_of(lbn).expect("it lies on the disk");
        assert_eq!(track.first, geometry.track_at(lbn).first);
        assert_eq!(map.next_boundary(lbn), geometry.next_track_boundary(lbn));
    }
    let bytes = bytes(&map);
    assert!(
        map.tracks() > 9_000_000 && bytes.len() < 10_000,
        "{} tracks, {} bytes",
        map.tracks(),
        bytes.len()
    );
    assert_eq!(map::read(&mut &bytes[..]).expect("it was written").1, map);
}

/// Slips all over the disk: each takes a block from a track.
#[test]
fn map_of_20_tb_with_slips_fits_in_400_kb() {
    let regular = map_of(&of_20_tb());
    let mut map = TrackMap::new();
    for run in regular.runs() {
        // Two tracks that slip in each run of some hundred.
        map.push(run.sectors, 100);
        map.push(run.sectors - 1, 1);
        map.push(run.sectors, 57);
        map.push(run.sectors - 3, 2);
        map.push(run.sectors, run.tracks - 160);
    }
    let bytes = bytes(&map);
    assert!(bytes.len() < 400_000, "{} bytes for {} runs", bytes.len(), map.runs().len());
    assert_eq!(map::read(&mut &bytes[..]).expect("it was written").1, map);
}

#[test]
fn maps_of_smaller_shipped_drives_read_back_unchanged() {
    for (name, _) in drives::all() {
        let spec = drives::load(name).expect("it is shipped");
        if spec.capacity_sectors > 500_000_000 {
            continue;
        }
        let map = TrackMap::of_geometry(&Geometry::new(&spec).expect("it holds"));
        let bytes = bytes(&map);
        assert_eq!(map::read(&mut &bytes[..]).expect("it was written").1, map, "{name}");
        // Defects apart, a disk is some dozens of zones.
        assert!(bytes.len() < 30_000, "{name}: {} bytes", bytes.len());
    }
}
