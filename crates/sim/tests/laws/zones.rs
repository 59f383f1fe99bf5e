//! Disks whose zones the host writes in sequence.

use crate::support::*;
use headstack_model::spec::ZoneSpec;
use headstack_model::zones::{ZoneModel, ZoneState};
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_sim::Outcome;

const ZONE: u64 = 524_288;
const CONVENTIONAL: u32 = 4;

/// A shipped drive with these zones in place of its own.
fn zoned(model: ZoneModel, full_at_first: bool) -> Rig {
    plain().with(|spec| {
        spec.zones = Some(ZoneSpec {
            model,
            zone_sectors: ZONE,
            conventional: CONVENTIONAL,
            open_max: 8,
            active_max: None,
            full_at_first,
        });
    })
}

/// The same without zones.
fn plain() -> Rig {
    let shipped = shipped().into_iter().find(|rig| rig.name() == "ultrastar-hc620").expect("it ships");
    shipped.with(|spec| spec.zones = None)
}

/// A block of a zone.
fn block(zone: u64, sector: u64) -> Lbn {
    Lbn(zone * ZONE + sector)
}

#[test]
fn refused_write_moves_neither_the_arm_nor_the_pointer() {
    let rig = zoned(ZoneModel::HostManaged, false);
    let mut device = rig.device();
    let first = serve(&mut device, Instant::ZERO, Request::write(block(9, 0), 64));
    let (before, accesses) = (device.zones().cloned(), device.activity().commands.accesses);
    for (zone, sector) in [(9, 0), (9, 128), (10, 8), (9, ZONE - 8)] {
        device.submit(first.completed, Request::write(block(zone, sector), 16)).expect("the queue is empty");
        let done = next(&mut device);
        assert_eq!(done.outcome, Outcome::ZoneRefused, "zone {zone}, sector {sector}");
        assert!(done.travel.is_none() && done.response() < Nanos::from_ms(1.0), "{done:?}");
    }
    assert_eq!(device.activity().commands.accesses, accesses);
    let pointers = |zones: &headstack_model::zones::Zones| zones.iter().collect::<Vec<_>>();
    assert_eq!(device.zones().map(pointers), before.as_ref().map(pointers));
    let (count, request, _) = device.refused_by_zones().expect("four were refused");
    assert_eq!((count, request), (4, Request::write(block(9, 0), 16)));
}

#[test]
fn reads_below_the_write_pointer_take_as_long_as_without_zones() {
    let (full, plain) = (zoned(ZoneModel::HostManaged, true), plain());
    let (mut zoned, mut without) = (full.device(), plain.device());
    let (mut random, mut now) = (seeded(3), Instant::ZERO);
    for _ in 0..500 {
        let request = Request::read(any_lbn(&mut random, &plain, 64), 64);
        let found = serve(&mut zoned, now, request);
        assert_eq!(found, serve(&mut without, now, request));
        now = found.completed;
    }
}

#[test]
fn read_beyond_the_write_pointer_needs_no_access() {
    let rig = zoned(ZoneModel::HostManaged, false);
    let mut device = rig.device();
    let write = serve(&mut device, Instant::ZERO, Request::write(block(9, 0), 64));
    let mut now = write.completed + Nanos::from_ms(1e3);
    for (lbn, needs_access) in [(block(9, 64), false), (block(30_000, 7), false), (block(2, 0), true)] {
        let done = serve(&mut device, now, Request::read(lbn, 256));
        assert_eq!(done.travel.is_some(), needs_access, "{lbn:?}: {done:?}");
        now = done.completed;
    }
}

#[test]
fn zones_written_in_sequence_run_at_the_rate_of_a_disk_without_zones() {
    let seconds = |rig: &Rig| {
        let (mut device, mut now) = (rig.device(), Instant::ZERO);
        for index in 0..600 {
            let done = serve(&mut device, now, Request::write(Lbn(9 * ZONE + 2048 * index), 2048));
            assert_eq!(done.outcome, Outcome::Done);
            now = done.completed;
        }
        if let Some(zones) = device.zones() {
            let states = [9, 10, 11].map(|zone| zones.zone(zone).state);
            assert_eq!(states, [ZoneState::Full, ZoneState::Full, ZoneState::ImplicitlyOpen]);
        }
        now
    };
    let without = seconds(&plain());
    // A full zone is reset by the write at its first block.
    for full_at_first in [true, false] {
        assert_eq!(seconds(&zoned(ZoneModel::HostManaged, full_at_first)), without);
    }
}

#[test]
fn host_aware_disk_takes_writes_anywhere() {
    let mut device = zoned(ZoneModel::HostAware, true).device();
    let done = serve(&mut device, Instant::ZERO, Request::write(block(40_000, 4096), 8));
    assert_eq!((done.outcome, device.refused_by_zones()), (Outcome::Done, None));
}
