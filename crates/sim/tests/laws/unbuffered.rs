//! A drive without a buffer: data cross the bus while they pass under the head. If the bus is not ready, they cross whole revolutions later.

use crate::support::*;
use headstack_model::spec::{Delivery, WriteCache};
use headstack_model::{Instant, Lbn, Nanos, Op, Request, drives};
use headstack_sim::{Engine, Finished, Rig as HostRig};
use headstack_workload::{Issue, Load, Poll};
use rand::RngExt;

/// The drive behind a bus that takes `us` µs per sector, with or without a buffer.
fn behind_bus(plain: &Rig, us: f64, buffered: bool) -> Rig {
    plain.with(|spec| {
        spec.cache.buffered = buffered;
        (spec.bus.read_us_per_sector, spec.bus.write_us_per_sector) = (us, us);
    })
}

/// One request to an idle drive, at a time drawn from the seed.
fn alone(rig: &Rig, op: Op, sectors: u32, seed: u64) -> headstack_sim::Completion {
    let mut random = seeded(seed);
    let at = Instant(random.random_range(0..100_000_000));
    let request = Request { op, ..Request::read(any_lbn(&mut random, rig, sectors), sectors) };
    serve(&mut rig.device(), at, request)
}

/// The time in ns in which a sector of the track of `lbn` passes the head.
fn sector_ns(rig: &Rig, lbn: Lbn) -> f64 {
    rig.turn() / f64::from(rig.geometry().extent_at(lbn).sectors_per_track)
}

/// Some shipped drives and the small ones, with their mechanics alone.
fn some_plain() -> Vec<Rig> {
    let names = ["hp-c2247a", "atlas-10k", "eagle-m2361a", "exos-x18"];
    let shipped = shipped().into_iter().filter(|rig| names.contains(&rig.name()));
    shipped.chain(small()).map(|rig| rig.plain()).collect()
}

#[test]
fn free_fast_bus_costs_seek_latency_media_and_one_sector() {
    for plain in some_plain() {
        // The bus takes a tenth of the time that a sector takes on the media.
        let us = sector_ns(&plain, Lbn(0)) / 1e4;
        let [free, fast] = [0.0, us].map(|us| behind_bus(&plain, us, false));
        for seed in 0..20 {
            let sectors = 1 + (seed as u32 * 37) % 300;
            let read = alone(&free, Op::Read, sectors, seed);
            assert_eq!(read.response(), read.parts.seek + read.parts.rotational_latency + read.parts.media);
            let past = past_sector(&free, read.completed, Lbn(read.request.end().0 - 1));
            assert!(past.abs() < 1e-4, "{}: {past} turns from the end of its last sector", free.name());
            let last = alone(&fast, Op::Read, sectors, seed).response().0 as f64 - read.response().0 as f64;
            assert_close(&format!("{} read of {sectors}", free.name()), last, us * 1e3, 2.0);
            // The data of a write's first sector must cross the bus before the sector passes the head. During a seek, that costs no time.
            let write = alone(&free, Op::Write, sectors, seed);
            if write.parts.seek.0 as f64 > us * 1e3 + 2.0 {
                let fast = alone(&fast, Op::Write, sectors, seed);
                assert_eq!(fast.response(), write.response(), "{} write of {sectors}", free.name());
            }
        }
    }
}

#[test]
fn access_into_a_zone_faster_than_the_bus_lasts_at_least_its_transfer() {
    let small = small().into_iter().find(|rig| rig.name() == "small-cylinder").expect("it is a small drive");
    let plain = small.plain().with(|spec| {
        spec.geometry.zones[0].sectors_per_track = 30;
        spec.capacity_sectors = 4 * (60 * 30 + 60 * 90);
    });
    let boundary = Lbn(4 * 60 * 30);
    // A sector takes 333 µs in the first zone and 111 µs in the second.
    let rig = behind_bus(&plain, 250.0, false);
    for op in [Op::Read, Op::Write] {
        let request = Request { op, ..Request::read(Lbn(boundary.0 - 4), 64) };
        let response = serve(&mut rig.device(), Instant::ZERO, request).response();
        assert!(response.0 >= 64 * 250_000, "{op:?}: {response:?}");
    }
}

#[test]
fn bus_slower_than_the_media_costs_a_revolution_per_sector() {
    for plain in some_plain() {
        let track = plain.whole_tracks(1)[0];
        let (sectors, us) = (9.min(track.sectors), 1.5 * sector_ns(&plain, track.first) / 1e3);
        let [free, slow] = [0.0, us].map(|us| behind_bus(&plain, us, false));
        for op in [Op::Read, Op::Write] {
            let request = Request { op, ..Request::read(track.first, sectors) };
            let [free, slow] = [&free, &slow]
                .map(|rig| serve(&mut rig.device(), Instant::ZERO, request).response().0 as f64);
            let last = if op == Op::Read { us * 1e3 } else { 0.0 };
            let turns = (slow - free - last) / plain.turn();
            let least = f64::from(sectors) - 1.0;
            // A write loses another revolution if its first data are late.
            let most = if op == Op::Write { least + 1.0 } else { least };
            assert!((least - 1e-4..=most + 1e-4).contains(&turns), "{}: {turns} turns", plain.name());
            assert!((turns - turns.round()).abs() < 1e-4, "{}: {turns} turns", plain.name());
        }
    }
}

#[test]
fn drive_without_a_buffer_is_never_earlier_than_with_one() {
    for rig in all() {
        // A buffered drive may collect data before it sends any, and arbitrates for the bus when it has data. This one sends data as they are read,
        // on a bus without arbitration time.
        let with = |buffered: bool| {
            rig.with(|spec| {
                (spec.cache.buffered, spec.cache.enabled) = (buffered, false);
                spec.cache.write_cache = WriteCache::None;
                (spec.bus.delivery, spec.bus.buffer_full_ratio) = (Delivery::InOrder, 0.0);
                (spec.bus.reconnect_first_ms, spec.overhead.data_preparation_ms) = (0.0, 0.0);
            })
        };
        let [buffered, bare] = [true, false].map(with);
        for seed in 0..40 {
            for op in [Op::Read, Op::Write] {
                let sectors = 1 + (seed as u32 * 53) % 600;
                let [held, passing] = [&buffered, &bare].map(|rig| alone(rig, op, sectors, seed).completed);
                assert!(passing >= held, "{} {op:?} of {sectors}: {passing} before {held}", rig.name());
            }
        }
    }
}

/// Issues all requests at time 0.
struct Together(Vec<(u32, Request)>);

impl Load for Together {
    fn poll(&mut self, _now: Instant) -> Poll {
        self.0.pop().map_or(Poll::Done, |(volume, request)| Poll::Issue(Issue::new(volume, request, 0)))
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {}
}

/// Two unbuffered drives of one model on a bus of 10 MB/s.
fn two_drives(preset: &str, arbitration_us: f64) -> Engine {
    let text = format!(
        "[drive]\npreset = \"{preset}\"\ncount = 2\ncache.buffered = false\n\
         mechanics.recalibration = {{ interval_s = 1e6, duration_ms = 0.0 }}\n\
         [bus]\nsharing = \"exclusive\"\nread_us_per_sector = 51.2\nwrite_us_per_sector = 51.2\n\
         arbitration_us = {arbitration_us}\n"
    );
    let rig = HostRig::parse(&text, "two.toml", &mut |name| drives::load(name));
    rig.and_then(|rig| rig.build(1)).unwrap_or_else(|error| panic!("{error}"))
}

/// The response times of requests that are issued at time 0, in order of volume.
fn responses(engine: &mut Engine, requests: &[(u32, Request)]) -> Vec<(u32, Nanos)> {
    let mut all = Vec::new();
    engine.run(&mut Together(requests.to_vec()), &mut |one: &Finished| {
        all.push((one.volume, one.completion.response()));
    });
    all.sort();
    all
}

#[test]
fn busy_bus_costs_whole_revolutions() {
    for preset in ["hp-c2247a", "dec-rz26", "hp-c3323a"] {
        let spec = drives::load(preset).unwrap_or_else(|error| panic!("{error}"));
        let turn = 60e9 / (spec.mechanics.rpm * (1.0 + spec.mechanics.rpm_deviation_percent / 100.0));
        for arbitration_us in [0.0, 2.4] {
            let (mut lost, mut random) = (0, seeded(9));
            for _ in 0..60 {
                let requests = [0, 1].map(|volume| {
                    let sectors = random.random_range(1..200);
                    let lbn = Lbn(random.random_range(0..spec.capacity_sectors - 200));
                    let op = if random.random_bool(0.3) { Op::Write } else { Op::Read };
                    (volume, Request { op, ..Request::read(lbn, sectors) })
                });
                let both = responses(&mut two_drives(preset, arbitration_us), &requests);
                assert_eq!(both.len(), 2);
                let mut waits = [0.0; 2];
                for (index, request) in requests.iter().enumerate() {
                    let alone = responses(&mut two_drives(preset, arbitration_us), &[*request])[0].1;
                    waits[index] = (both[index].1.0 as f64 - alone.0 as f64) / turn;
                }
                // Commands and statuses also wait for the bus, for at most a hundredth of a revolution.
                for wait in waits {
                    assert!(wait > -0.01 && (wait - wait.round()).abs() < 0.01, "{preset}: {wait} turns");
                    lost += u32::from(wait.round() >= 1.0);
                }
            }
            assert!(lost > 10, "{preset}: {lost} of 60 pairs met on the bus");
        }
    }
}
