//! The shipped drives: the angle between the end of each track and the start of the next.

use crate::laws::apart;
use headstack_model::spec::{GeometrySpec, Layout, Sparing, Zone};
use headstack_model::{Angle, DriveSpec, Geometry, Lbn, Place, drives};

/// Number of slips, in the region that ends here, that shift the angle of a track beyond the shift by `slips_before`.
fn pushed(spec: &GeometrySpec, zone: &Zone, last: &Place, first: &Place) -> usize {
    let cylinder = u64::from(zone.sectors_per_track) * u64::from(spec.heads);
    let start = |place: &Place| {
        let cylinders = u64::from(place.cylinder - zone.first_cylinder) * cylinder;
        match spec.sparing {
            Sparing::SectorsPerTrack => cylinders + u64::from(place.head) * u64::from(zone.sectors_per_track),
            Sparing::SectorsPerCylinder | Sparing::SectorsPerCylinderFront => cylinders,
            _ => 0,
        }
    };
    zone.slips.iter().filter(|slip| (start(last)..start(first)).contains(*slip)).count()
}

/// Index of a track in the LBN order of its zone.
fn order(spec: &GeometrySpec, zone: &Zone, place: &Place) -> u32 {
    let row = place.cylinder - zone.first_cylinder;
    let reversed = match spec.layout {
        Layout::Serpentine => row % 2 == 1,
        Layout::SerpentineAbsolute => place.cylinder % 2 == 1,
        _ => false,
    };
    row * spec.heads + if reversed { spec.heads - 1 - place.head } else { place.head }
}

/// Checks the turn between the last block of each track and the first of the next.
fn walk(drive: &DriveSpec) -> usize {
    let geometry = Geometry::new(drive).unwrap_or_else(|error| panic!("{error}"));
    let zone_of = |place: &Place| {
        drive
            .geometry
            .zones
            .iter()
            .find(|zone| (zone.first_cylinder..=zone.last_cylinder).contains(&place.cylinder))
    };
    let (mut lbn, mut changes) = (Lbn(0), 0);
    while let Some(next) = geometry.next_track_boundary(lbn) {
        let (last, first) = (geometry.locate(Lbn(next.0 - 1)), geometry.locate(next));
        lbn = next;
        let zone = zone_of(&last).expect("blocks lie in zones");
        if zone_of(&first) != Some(zone) {
            continue;
        }
        let spt = zone.sectors_per_track;
        let cylinders = f64::from(first.cylinder - last.cylinder);
        let tracks = f64::from(order(&drive.geometry, zone, &first) - order(&drive.geometry, zone, &last));
        // Only with track slipping may the next block be more than one track further.
        assert!(
            tracks == 1.0 || drive.geometry.sparing == Sparing::TracksPerZone,
            "{} at {next}",
            drive.name
        );
        let skew = cylinders * zone.cylinder_skew_sectors + (tracks - cylinders) * zone.track_skew_sectors;
        let sectors = f64::from(spt - last.sector) + skew + f64::from(first.sector);
        let pushed = pushed(&drive.geometry, zone, &last, &first) as f64;
        let expected = Angle::from_turns((sectors + pushed) / f64::from(spt));
        let met = first.angle - last.angle;
        assert!(apart(met, expected) <= 3, "{} at {next}: {met:?} instead of {expected:?}", drive.name);
        changes += 1;
    }
    changes
}

#[test]
fn next_track_begins_exactly_one_skew_later() {
    for (name, text) in drives::all() {
        let drive = DriveSpec::parse(text, name).unwrap_or_else(|error| panic!("{error}"));
        if !drive.geometry.zones.is_empty() {
            let tracks = drive.geometry.zones.iter().map(|zone| zone.last_cylinder + 1 - zone.first_cylinder);
            let tracks = tracks.sum::<u32>() * drive.geometry.heads;
            let changes = walk(&drive) as f64;
            assert!(changes > 0.9 * f64::from(tracks), "{name}: {changes} changes of {tracks} tracks");
        }
    }
}
