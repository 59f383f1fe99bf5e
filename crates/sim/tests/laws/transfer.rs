//! The rates at which data pass the heads and cross the bus, and how the two transfers overlap.

use crate::support::*;
use headstack_model::spec::{BusSpec, Delivery, ZeroLatency};
use headstack_model::{Instant, Lbn, Request};

/// Consecutive whole tracks of equal length: the first block, and the number of tracks, which is at least two and at most `most`.
fn tracks_in_a_row(rig: &Rig, from: Lbn, most: u32) -> Option<(Lbn, u32)> {
    let first = rig.geometry().extent_at(from);
    let (mut next, mut count) = (first.first, 0);
    while count < most && next.0 < rig.sectors() {
        let run = rig.geometry().extent_at(next);
        if run.sectors != run.sectors_per_track || run.sectors != first.sectors_per_track || run.first != next
        {
            break;
        }
        (next, count) = (run.first + u64::from(run.sectors), count + 1);
    }
    (count >= 2).then_some((first.first, count))
}

/// Turns from the end of one track to the start of the next: the skew, plus whole turns until the head switch or seek has ended.
fn between(rig: &Rig, skew_turns: f64, cylinders: u32) -> f64 {
    let curve = headstack_model::SeekCurve::for_reads(&rig.spec.mechanics.seek, rig.spec.geometry.cylinders);
    let switch = rig.spec.mechanics.head_switch_ms * 1e6;
    let needed = if cylinders == 0 { switch } else { curve.time(cylinders).0 as f64 } / rig.turn();
    skew_turns.rem_euclid(1.0) + (needed - skew_turns.rem_euclid(1.0) - 1e-6).max(0.0).ceil()
}

#[test]
fn sequential_read_runs_at_the_media_rate_less_skews() {
    let mut judged = 0;
    for rig in all_plain() {
        let (rig, heads) = (rig.zero_latency(ZeroLatency::None), rig.spec.geometry.heads);
        for zone in &rig.spec.geometry.zones {
            // The read begins on the zone's second cylinder, so that it also includes a change of cylinder on a serpentine layout.
            let Some(from) = rig.geometry().lbn_at(zone.first_cylinder + 1, 0, 0) else { continue };
            let from =
                if rig.geometry().locate(from).cylinder == zone.first_cylinder + 1 { from } else { continue };
            let Some((first, count)) = tracks_in_a_row(&rig, from, 3 * heads) else { continue };
            let spt = f64::from(zone.sectors_per_track);
            let (mut expected, mut here) = (0.0, rig.geometry().locate(first));
            for index in 1..count {
                let next = rig.geometry().locate(first + u64::from(index * zone.sectors_per_track));
                let cylinders = next.cylinder - here.cylinder;
                let skew =
                    if cylinders > 0 { zone.cylinder_skew_sectors } else { zone.track_skew_sectors } / spt;
                // A change of cylinder includes a head switch, except in serpentine layouts. The longer of the two counts.
                let reached = between(&rig, skew, cylinders);
                let switched = if here.head == next.head { 0.0 } else { between(&rig, skew, 0) };
                expected += 1.0 + reached.max(switched);
                here = next;
            }
            let time = |tracks: u32| {
                let read = Request::read(first, tracks * zone.sectors_per_track);
                serve(&mut rig.device(), Instant::ZERO, read).response().0 as f64
            };
            // The model stores angles of tracks with a resolution of 2⁻³² turn, and times with one of 1 ns.
            assert_close(
                &format!("{} from {first}", rig.name()),
                time(count) - time(1),
                expected * rig.turn(),
                4.0 * f64::from(count),
            );
            judged += 1;
        }
    }
    assert!(judged > 60, "only {judged} zones judged");
}

#[test]
fn band_read_runs_at_the_media_rate_less_skews() {
    let mut judged = 0;
    for rig in all_plain() {
        for zone in &rig.spec.geometry.band_zones {
            let Some(from) = rig.geometry().lbn_at(zone.first_cylinder, 0, 0) else { continue };
            let Some((first, count)) = tracks_in_a_row(&rig, from, zone.band_tracks.min(12)) else {
                continue;
            };
            let spt = zone.sectors_per_track[0];
            let time = |tracks: u32| {
                let read = Request::read(first, tracks * spt);
                serve(&mut rig.device(), Instant::ZERO, read).response().0 as f64
            };
            let expected = f64::from(count - 1) * (1.0 + between(&rig, zone.track_skew_turns, 1));
            let what = format!("{} from {first}", rig.name());
            assert_close(&what, time(count) - time(1), expected * rig.turn(), 4.0 * f64::from(count));
            judged += 1;
        }
    }
    assert!(judged > 20, "only {judged} zones judged");
}

#[test]
fn zone_rates_follow_their_sectors_per_track() {
    for rig in all_plain() {
        let rate = |lbn: Lbn| {
            let done = serve(&mut rig.device(), Instant::ZERO, Request::read(lbn, 60));
            let run = rig.geometry().extent_at(lbn);
            let within = u64::from(run.sectors) - (lbn - run.first) >= 60;
            within.then(|| (60.0 / done.parts.media.0 as f64, f64::from(run.sectors_per_track)))
        };
        let runs = rig.spread(50).map(|lbn| rig.geometry().extent_at(lbn).first);
        let rates: Vec<(f64, f64)> = runs.filter_map(rate).collect();
        let Some((first, spt)) = rates.first().copied() else { continue };
        for (other, other_spt) in &rates {
            assert_close(rig.name(), (other / first) / (other_spt / spt), 1.0, 2e-5);
        }
    }
}

#[test]
fn slow_bus_limits_the_transfer_rate() {
    for rig in all_plain() {
        let rig = rig.zero_latency(ZeroLatency::None);
        // Ten times as slow as the fastest track.
        let us = 10.0 * rig.turn() / 1e3 / f64::from(rig.geometry().extent_at(Lbn(0)).sectors_per_track);
        let slow = rig.with(|spec| spec.bus = BusSpec { read_us_per_sector: us, ..BusSpec::default() });
        for lbn in rig.spread(5) {
            // The read begins with a track, so that the head reaches the next track before the bus has sent the data of the first.
            let start = rig.geometry().extent_at(Lbn(lbn.0.min(rig.sectors() - 900))).first;
            let request = Request::read(start, 900);
            let free = serve(&mut rig.device(), Instant::ZERO, request);
            let done = serve(&mut slow.device(), Instant::ZERO, request);
            let bus = 900.0 * us * 1e3;
            // The transfer starts when the first sector has been read, and then never waits.
            let first = free.response().0 as f64;
            let sector = rig.turn() / 30.0;
            let begins = positioning(&serve(&mut rig.device(), Instant::ZERO, Request::read(request.lbn, 1)));
            let found = done.response().0 as f64;
            assert!(found >= bus + begins as f64, "{}: {found}", rig.name());
            assert!(
                found <= bus + begins as f64 + sector,
                "{}: {found} for {bus} + {begins}, {first}",
                rig.name()
            );
        }
    }
}

#[test]
fn fast_bus_transfer_hides_behind_the_media() {
    for rig in all_plain() {
        let rig = rig.zero_latency(ZeroLatency::None);
        // A tenth of the time of a sector on the longest track.
        let us = 0.1 * rig.turn() / 1e3 / f64::from(rig.geometry().extent_at(Lbn(0)).sectors_per_track);
        let fast = rig.with(|spec| spec.bus = BusSpec { read_us_per_sector: us, ..BusSpec::default() });
        for lbn in rig.spread(5) {
            let request = Request::read(Lbn(lbn.0.min(rig.sectors() - 300)), 300);
            let free = serve(&mut rig.device(), Instant::ZERO, request);
            let done = serve(&mut fast.device(), Instant::ZERO, request);
            // When the last sector has been read, only its transfer is left.
            let left = done.response().0 as f64 - free.response().0 as f64;
            assert_close(rig.name(), left, us * 1e3, 2.0);
        }
    }
}

#[test]
fn faster_bus_never_slows_a_read() {
    for rig in all() {
        let slower = rig.with(|spec| spec.bus.read_us_per_sector *= 1.5);
        for lbn in rig.spread(40) {
            let request = Request::read(Lbn(lbn.0.min(rig.sectors() - 64)), 64);
            let fast = serve(&mut rig.device(), Instant::ZERO, request).response();
            let slow = serve(&mut slower.device(), Instant::ZERO, request).response();
            assert!(fast <= slow, "{}: {lbn}: {fast} and {slow}", rig.name());
        }
    }
}

#[test]
fn access_ends_with_its_last_sector_across_track_boundaries() {
    for rig in all_plain() {
        let rig = rig.zero_latency(ZeroLatency::None);
        for lbn in rig.spread(30) {
            let Some(boundary) = rig.geometry().next_track_boundary(lbn) else { continue };
            for beyond in [0, 1, 2, 7] {
                if boundary.0 < 3 || boundary.0 + beyond > rig.sectors() {
                    continue;
                }
                let read = Request::read(Lbn(boundary.0 - 3), 3 + beyond as u32);
                for request in [read, Request::write(read.lbn, read.sectors)] {
                    let done = serve(&mut rig.device(), Instant::ZERO, request);
                    let off = past_sector(&rig, done.completed, Lbn(request.end().0 - 1));
                    assert!(off.abs() < 1e-5, "{}: {request:?} ends {off} turns late", rig.name());
                }
            }
        }
    }
}

#[test]
fn out_of_order_delivery_hides_the_bus_of_a_whole_track() {
    let (mut judged, mut waits, mut whole_waits) = (0, 0.0, 0.0);
    for rig in all_plain() {
        for rule in [ZeroLatency::WithinTrack, ZeroLatency::PerFragment] {
            let rig = rig.zero_latency(rule);
            for track in rig.whole_tracks(8) {
                // The bus needs nine tenths of a turn for a track.
                let us = 0.9 * rig.turn() / 1e3 / f64::from(track.sectors);
                let bus = |delivery| {
                    let spec = BusSpec { read_us_per_sector: us, delivery, ..BusSpec::default() };
                    let request = Request::read(track.first, track.sectors);
                    let slow = rig.with(|drive| drive.bus = spec);
                    serve(&mut slow.device(), rig.after(Instant::ZERO, f64::from(judged) * 0.13), request)
                        .parts
                        .bus
                        .0
                };
                let (ordered, any) = (bus(Delivery::InOrder), bus(Delivery::OutOfOrder));
                let whole = bus(Delivery::InOrderWhole);
                // When the last sector has been read, only its transfer is left.
                assert_close(rig.name(), any as f64, us * 1e3, 3.0);
                assert!(ordered >= any, "{}: {ordered} and {any}", rig.name());
                // The whole transfer is left, unless the head arrives at the start of the track.
                assert!(whole >= ordered, "{}: {whole} and {ordered}", rig.name());
                whole_waits += whole as f64 / rig.turn();
                waits += ordered as f64 / rig.turn();
                judged += 1;
            }
        }
    }
    // The head arrives at a random sector: on average, half of the track is read before the sectors that the bus must send first.
    assert_close("turns", waits / f64::from(judged), 0.45, 0.05);
    assert_close("turns, whole", whole_waits / f64::from(judged), 0.9, 0.02);
    assert!(judged > 500, "only {judged} tracks judged");
}
