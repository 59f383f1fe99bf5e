//! Disks with zones that the host must write in sequence.

use crate::support::*;
use headstack_model::spec::ZoneSpec;
use headstack_model::zones::{ZoneModel, ZoneState};
use headstack_model::{Instant, Lbn, Nanos, Request};
use headstack_sim::{Device, Outcome};
use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeSet;

const ZONE: u64 = 524_288;
const CONVENTIONAL: u32 = 4;

/// The shipped drive with these zones instead of those in its file.
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

/// The shipped drive without zones.
fn plain() -> Rig {
    let shipped = shipped().into_iter().find(|rig| rig.name() == "ultrastar-hc620").expect("it ships");
    shipped.with(|spec| spec.zones = None)
}

/// The block at this offset in a zone.
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

/// Writes at the write pointers of four zones, with a flush now and then, until the power is cut.
struct ZonedLoad {
    device: Device,
    now: Instant,
    media: BTreeSet<Lbn>,
    pointers: [u64; 4],
    /// Sectors of each zone that a flush has made safe.
    flushed: [u64; 4],
}

impl ZonedLoad {
    fn new(rig: &Rig) -> ZonedLoad {
        let mut device = rig.device();
        device.track_media();
        let (now, media) = (Instant::ZERO, BTreeSet::new());
        ZonedLoad { device, now, media, pointers: [0; 4], flushed: [0; 4] }
    }

    fn listen(&mut self) {
        while let Some(written) = self.device.poll_media_write() {
            self.media.extend((written.start.0..written.end.0).map(Lbn));
        }
    }

    fn step(&mut self, random: &mut Pcg64Mcg) {
        if random.random_range(0..12) == 0 {
            let done = serve(&mut self.device, self.now, Request::flush());
            (self.now, self.flushed) = (done.completed, self.pointers);
            self.listen();
            return;
        }
        let zone = random.random_range(0..4);
        let sectors = random.random_range(1..40) * 8;
        let request = Request::write(block(9 + zone as u64, self.pointers[zone]), sectors);
        let done = serve(&mut self.device, self.now, request);
        assert_eq!(done.outcome, Outcome::Done);
        self.pointers[zone] += u64::from(sectors);
        self.listen();
        // After one write in four there may be a pause in which the disk destages its cache.
        let longest = if random.random_range(0..4) == 0 { 3_000_000_000 } else { 20_000_000 };
        self.now = done.completed + Nanos(random.random_range(0..longest));
    }

    /// Submits a last write and cuts the power before, during or after its transfer to the media.
    fn cut(&mut self, random: &mut Pcg64Mcg) {
        let request = Request::write(block(9, self.pointers[0]), 512);
        self.device.submit(self.now, request).expect("the queue is empty");
        self.pointers[0] += 512;
        let at = self.now + Nanos(random.random_range(0..30_000_000));
        self.device.cut_power(at);
        self.listen();
    }
}

#[test]
fn power_cut_sets_write_pointers_to_what_is_on_the_media() {
    let rig = zoned(ZoneModel::HostManaged, false);
    let (mut back, mut held) = (0, 0);
    for seed in 0..150 {
        let (mut random, mut load) = (seeded(seed), ZonedLoad::new(&rig));
        for _ in 0..random.random_range(1..60) {
            load.step(&mut random);
        }
        load.cut(&mut random);
        let zones = load.device.zones().expect("it has zones");
        for number in 0..4 {
            let zone = zones.zone(9 + number as u32);
            let kept = zone.write_pointer - zone.start;
            assert!(kept >= load.flushed[number], "seed {seed}: {kept} of {:?}", load.flushed);
            let lost = (0..kept).find(|sector| !load.media.contains(&block(9 + number as u64, *sector)));
            assert_eq!(lost, None, "seed {seed}: zone {number}, pointer {kept}");
            assert!(matches!(zone.state, ZoneState::Closed | ZoneState::Empty), "{zone:?}");
            back += u32::from(kept < load.pointers[number]);
            held += u32::from(kept > load.flushed[number]);
        }
    }
    assert!(back > 100 && held > 20, "{back} pointers went back, {held} kept more than was flushed");
}
