//! A read of buffered sectors needs no media access, and read-ahead delays no request.

use crate::support::*;
use headstack_model::spec::{BusSpec, CacheSpec, JoinedWrites, OverheadSpec, ReadAhead, WriteCache};
use headstack_model::{Extent, Instant, Lbn, Nanos, Request};
use headstack_sim::CacheUse;

/// The rig with a cache of `segments` segments of `sectors` sectors each, 5 µs of bus time per sector, and constant overheads.
fn cached(rig: &Rig, segments: u32, sectors: u32) -> Rig {
    rig.plain().with(|spec| {
        spec.cache = CacheSpec { segments, segment_sectors: sectors, ..CacheSpec::default() };
        spec.bus = BusSpec { read_us_per_sector: 5.0, write_us_per_sector: 5.0, ..BusSpec::default() };
        spec.overhead = OverheadSpec::default();
        spec.overhead.after_read.read_hit_ms = 0.1;
        spec.overhead.after_read.read_miss_ms = 0.3;
        spec.overhead.after_read.write_ms = 0.4;
        spec.overhead.after_write = spec.overhead.after_read;
    })
}

/// A rig with a cache of four large segments that reads ahead by this rule, at most 8192 sectors.
fn ahead(rig: &Rig, rule: ReadAhead) -> Rig {
    cached(rig, 4, 16_384).with(|spec| {
        spec.cache.read_ahead = rule;
        spec.cache.read_ahead_max_sectors = 8192;
    })
}

fn whole_track(rig: &Rig) -> Option<Extent> {
    rig.whole_tracks(3).pop()
}

#[test]
fn whole_hit_takes_only_overhead_and_bus_time() {
    for rig in all() {
        let rig = cached(&rig, 4, 512);
        let (mut device, mut now) = (rig.device(), Instant::ZERO);
        for (index, lbn) in rig.spread(50).enumerate() {
            let sectors = (index as u32 * 37) % 500 + 1;
            let request = Request::read(Lbn(lbn.0.min(rig.sectors() - 500)), sectors);
            let miss = serve(&mut device, now, request);
            assert!(miss.parts.media > Nanos::ZERO);
            let hit = serve(&mut device, miss.completed, request);
            // 0.1 ms and 5 µs a sector.
            assert_eq!(hit.response(), Nanos(100_000 + 5_000 * u64::from(sectors)), "{}", rig.name());
            assert_eq!(hit.parts.bus, Nanos(5_000 * u64::from(sectors)));
            assert_eq!(hit.parts.seek + hit.parts.rotational_latency + hit.parts.media, Nanos::ZERO);
            now = hit.completed;
        }
    }
}

#[test]
fn repeated_read_needs_no_media_access_on_any_drive() {
    let mut judged = 0;
    for rig in shipped() {
        // Otherwise the read-ahead of a drive may evict the requested data, which the second read would then read from the media.
        let rig = rig.with(|spec| spec.cache.read_ahead_over_requested = false);
        if !rig.spec.cache.enabled {
            continue;
        }
        let (mut device, mut now) = (rig.device(), Instant::ZERO);
        for lbn in rig.spread(20) {
            let request = Request::read(Lbn(lbn.0.min(rig.sectors() - 16)), 16);
            let first = serve(&mut device, now, request);
            let again = serve(&mut device, rig.after(first.completed, 3.0), request);
            assert_eq!(again.parts.media + again.parts.seek, Nanos::ZERO, "{}", rig.name());
            assert_eq!(again.parts.rotational_latency + again.parts.cache, Nanos::ZERO, "{}", rig.name());
            now = rig.after(again.completed, 3.0);
            judged += 1;
        }
    }
    assert!(judged > 300, "only {judged} judged");
}

#[test]
fn queued_reads_are_not_read_ahead_of_if_the_drive_says_so() {
    let next_is_cached = |rig: &Rig, depth: u32, read_ahead: bool| {
        let rig = ahead(rig, ReadAhead::Segment).with(|spec| {
            (spec.queue.depth, spec.queue.read_ahead) = (depth, read_ahead);
        });
        let mut device = rig.device();
        let first = serve(&mut device, Instant::ZERO, Request::read(Lbn(0), 8));
        serve(&mut device, rig.after(first.completed, 2.0), Request::read(Lbn(8), 8)).parts.media
            == Nanos::ZERO
    };
    for rig in all() {
        let found = [(1, true), (8, true), (1, false), (8, false)]
            .map(|(depth, read_ahead)| next_is_cached(&rig, depth, read_ahead));
        assert_eq!(found, [true, true, true, false], "{}", rig.name());
    }
}

#[test]
fn fua_read_comes_from_the_media_despite_a_cached_copy() {
    for rig in all() {
        let rig = cached(&rig, 4, 512);
        let mut device = rig.device();
        let request = Request::read(Lbn(rig.sectors() / 2), 8);
        let first = serve(&mut device, Instant::ZERO, request);
        let forced = serve(&mut device, first.completed, Request { fua: true, ..request });
        assert!(forced.parts.media > Nanos::ZERO, "{}: {forced:?}", rig.name());
    }
}

#[test]
fn hit_completes_while_the_arm_is_busy() {
    for rig in all() {
        let rig = cached(&rig, 4, 512).with(|spec| spec.queue.depth = 2);
        let mut device = rig.device();
        let held = Request::read(Lbn(rig.sectors() - 8), 8);
        let far = Request::read(Lbn(0), 8);
        let now = serve(&mut device, Instant::ZERO, held).completed;
        let alone = serve(&mut rig.device(), Instant::ZERO, held).completed;
        assert_eq!(alone, now);
        // The hit arrives while the arm seeks to the other end of the disk.
        device.submit(now, far).expect("there is room");
        let at = now + Nanos(400_000);
        device.submit(at, held).expect("there is room");
        let hit = next(&mut device);
        assert_eq!((hit.request, hit.completed), (held, at + Nanos(100_000 + 8 * 5_000)), "{}", rig.name());
        let miss = next(&mut device);
        let mut other = rig.device();
        serve(&mut other, Instant::ZERO, held);
        assert_eq!(serve(&mut other, now, far).completed, miss.completed, "{}", rig.name());
    }
}

#[test]
fn next_sequential_read_hits_after_read_ahead() {
    for rule in
        [ReadAhead::Track, ReadAhead::Segment, ReadAhead::Stream, ReadAhead::Sequence, ReadAhead::OnArrival]
    {
        for rig in all() {
            let rig = ahead(&rig, rule);
            let Some(track) = whole_track(&rig) else { continue };
            let mut device = rig.device();
            let first = serve(&mut device, Instant::ZERO, Request::read(track.first, 8));
            let rest = Request::read(track.first + 8, track.sectors - 8);
            let second = serve(&mut device, rig.after(first.completed, 1.0), rest);
            let media = second.parts.media + second.parts.rotational_latency + second.parts.seek;
            assert_eq!(media + second.parts.cache, Nanos::ZERO, "{} {rule:?}: {second:?}", rig.name());
        }
    }
}

#[test]
fn read_ahead_by_sequence_crosses_the_track_only_after_a_second_read() {
    for rig in all() {
        // With a slow bus, the first read's read-ahead would reach the end of the track before the second read arrives, which would be a whole hit.
        let rig = ahead(&rig, ReadAhead::Sequence).with(|spec| spec.bus.read_us_per_sector = 0.0);
        let Some(track) = whole_track(&rig) else { continue };
        let beyond = Request::read(track.first + u64::from(track.sectors), 1);
        let media = |reads: &[Request]| {
            let mut device = rig.device();
            let mut now = Instant::ZERO;
            for read in reads {
                now = serve(&mut device, now, *read).completed;
            }
            serve(&mut device, rig.after(now, 3.0), beyond).parts.media
        };
        let half = track.sectors / 2;
        let [front, rest] = [
            Request::read(track.first, half),
            Request::read(track.first + u64::from(half), track.sectors - half),
        ];
        assert!(
            media(&[Request::read(track.first, track.sectors)]) > Nanos::ZERO,
            "{}: a lone read",
            rig.name()
        );
        assert_eq!(media(&[front, rest]), Nanos::ZERO, "{}: two reads in sequence", rig.name());
    }
}

#[test]
fn read_ahead_stops_at_its_maximum() {
    for rig in all() {
        let rig = ahead(&rig, ReadAhead::Segment).with(|spec| spec.cache.read_ahead_max_sectors = 20);
        let Some(track) = whole_track(&rig) else { continue };
        let read = |offset: u64, sectors: u32| {
            let mut device = rig.device();
            let first = serve(&mut device, Instant::ZERO, Request::read(track.first, 8));
            serve(&mut device, rig.after(first.completed, 1.0), Request::read(track.first + offset, sectors))
        };
        assert_eq!(read(8, 20).parts.media, Nanos::ZERO, "{}: all 20", rig.name());
        assert!(read(8, 21).parts.media > Nanos::ZERO, "{}: no more than 20", rig.name());
        assert!(read(28, 1).parts.media > Nanos::ZERO, "{}: not the next one", rig.name());
    }
}

#[test]
fn read_ahead_delays_other_requests_by_at_most_a_sector() {
    for stops_in_sector in [false, true] {
        for rig in all() {
            let rig = ahead(&rig, ReadAhead::Track)
                .with(|spec| spec.cache.read_ahead_stops_in_sector = stops_in_sector);
            let Some(track) = whole_track(&rig) else { continue };
            let sector = rig.turn() / f64::from(track.sectors_per_track);
            let far = Request::read(Lbn(rig.sectors() - 1), 1);
            let mut longest: f64 = 0.0;
            for step in 1..60 {
                let mut device = rig.device();
                let first = serve(&mut device, Instant::ZERO, Request::read(track.first, 8));
                let done = serve(&mut device, rig.after(first.completed, f64::from(step) * 0.0077), far);
                longest = longest.max(done.parts.queued.0 as f64);
            }
            // The command's overhead of 0.3 ms passes while the sector is read.
            let most = if stops_in_sector { 0.0 } else { (sector - 300_000.0).max(0.0) + 2.0 };
            assert!(longest <= most, "{}: {longest} ns, a sector takes {sector} ns", rig.name());
            // Without overhead, the command waits for the rest of the sector.
            let bare = rig.with(|spec| spec.overhead = OverheadSpec::default());
            let mut longest: f64 = 0.0;
            for step in 1..60 {
                let mut device = bare.device();
                let first = serve(&mut device, Instant::ZERO, Request::read(track.first, 8));
                let done = serve(&mut device, rig.after(first.completed, f64::from(step) * 0.0077), far);
                longest = longest.max(done.parts.queued.0 as f64);
            }
            if stops_in_sector {
                assert_eq!(longest, 0.0, "{}", rig.name());
            } else {
                assert!(longest <= sector + 2.0 && longest > 0.5 * sector, "{}: {longest}", rig.name());
            }
        }
    }
}

#[test]
fn read_joining_its_read_ahead_needs_no_positioning() {
    for rig in all() {
        let Some(track) = whole_track(&rig) else { continue };
        // The head is over the next sector already. A drive without almost hits would not use it and would wait for the next turn.
        let rig = ahead(&rig, ReadAhead::Track).with(|spec| spec.cache.almost_hits = true);
        let mut device = rig.device();
        let first = serve(&mut device, Instant::ZERO, Request::read(track.first, 8));
        // The second read asks for half of the track while the read-ahead is in the first sectors.
        let more = track.sectors / 2;
        let second = serve(&mut device, first.completed, Request::read(track.first + 8, more));
        // The media take this long from the end of the first read's blocks; the bus transfer of the last sector follows. The first read completed
        // some bus time after its blocks had left the media.
        let media = rig.turn() * f64::from(more) / f64::from(track.sectors_per_track);
        let bus = 5_000.0 * f64::from(more) + 100_000.0;
        let least = (media - 5_000.0 * 8.0).max(0.0);
        let found = second.response().0 as f64;
        assert!(
            found >= least && found <= media.max(bus) + 110_000.0,
            "{}: {found}, media {media}",
            rig.name()
        );
        assert_eq!(second.parts.rotational_latency + second.parts.seek, Nanos::ZERO, "{}", rig.name());
    }
}

#[test]
fn write_invalidates_the_cached_copy() {
    for rig in all() {
        let rig = cached(&rig, 4, 512).with(|spec| spec.cache.read_hits_on_written = false);
        let mut device = rig.device();
        let lbn = Lbn(rig.sectors() / 2);
        let read = serve(&mut device, Instant::ZERO, Request::read(lbn, 16));
        let write = serve(&mut device, read.completed, Request::write(lbn + 4, 2));
        let again = serve(&mut device, write.completed, Request::read(lbn, 16));
        assert!(again.parts.media > Nanos::ZERO, "{}: {again:?}", rig.name());
    }
}

#[test]
fn least_recently_used_segment_is_evicted() {
    for rig in all() {
        let rig = cached(&rig, 3, 64);
        let mut device = rig.device();
        let blocks: Vec<Lbn> = rig.spread(4).collect();
        let mut now = Instant::ZERO;
        let mut hit = |index: usize| {
            let done = serve(&mut device, now, Request::read(blocks[index], 4));
            now = done.completed;
            done.parts.media == Nanos::ZERO
        };
        let pattern = [0, 1, 2, 0, 3, 0, 2, 3, 1, 0].map(&mut hit);
        // Block 3 evicts block 1. Block 1 later evicts block 0, which is then the least recently used.
        let expected = [false, false, false, true, false, true, true, true, false, false];
        assert_eq!(pattern, expected, "{}", rig.name());
    }
}

#[test]
fn on_arrival_read_ahead_caches_the_track_in_two_turns() {
    for rig in all() {
        let Some(track) = whole_track(&rig) else { continue };
        let rig = ahead(&rig, ReadAhead::OnArrival);
        for part in [0, track.sectors / 3, track.sectors - 1] {
            let mut device = rig.device();
            let first = serve(&mut device, Instant::ZERO, Request::read(track.first + u64::from(part), 1));
            // The read-ahead takes one turn for the sectors behind the block, and at most another one for those before it.
            let later = first.completed + Nanos((2.1 * rig.turn()) as u64);
            let whole = serve(&mut device, later, Request::read(track.first, track.sectors));
            assert_eq!(whole.parts.media, Nanos::ZERO, "{} from sector {part}", rig.name());
        }
    }
}

/// A drive that reads ahead without a maximum, with segments of an eighth of a track, and the track that the test reads.
fn small_segments(rig: &Rig) -> Option<(Rig, Extent)> {
    let track = whole_track(rig).filter(|track| track.sectors >= 64)?;
    let rig = cached(rig, 4, track.sectors / 8).with(|spec| spec.cache.read_ahead = ReadAhead::Stream);
    Some((rig, track))
}

#[test]
fn full_segment_stops_read_ahead_or_wraps_over_its_front() {
    for rig in all() {
        let Some((rig, track)) = small_segments(&rig) else { continue };
        let size = track.sectors / 8;
        for past in [false, true] {
            let rig = rig.with(|spec| spec.cache.read_ahead_past_segment = past);
            let mut device = rig.device();
            let first = serve(&mut device, Instant::ZERO, Request::read(track.first, 1));
            let at = rig.after(first.completed, 2.0);
            let second = serve(&mut device, at, Request::read(track.first + 1, 1));
            let is_hit = second.parts.media == Nanos::ZERO;
            assert_eq!(is_hit, !past, "{}: the block behind the first, past: {past}", rig.name());
            // In both cases the segment holds the last blocks that were read.
            let end =
                if past { track.first + u64::from(track.sectors) } else { track.first + 1 + u64::from(size) };
            let mut device = rig.device();
            let first = serve(&mut device, Instant::ZERO, Request::read(track.first, 1));
            let at = rig.after(first.completed, 2.0);
            let last = serve(&mut device, at, Request::read(Lbn(end.0 - 1), 1));
            assert_eq!(last.parts.media, Nanos::ZERO, "{}: the last block, past: {past}", rig.name());
        }
    }
}

#[test]
fn read_ahead_waiting_for_room_keeps_data_being_sent() {
    for rig in all() {
        let Some((rig, track)) = small_segments(&rig) else { continue };
        // A sector takes as long on the bus as a segment does on the media.
        let slow = 60e6 / rig.spec.mechanics.rpm / 8.0;
        let rig = rig.with(|spec| {
            spec.bus.read_us_per_sector = slow;
            spec.cache.read_ahead_past_segment = true;
        });
        let next_is_hit = |waits: bool| {
            let rig = rig.with(|spec| spec.cache.read_ahead_waits_for_room = waits);
            let mut device = rig.device();
            let first = serve(&mut device, Instant::ZERO, Request::read(track.first, 4));
            serve(&mut device, first.completed, Request::read(track.first + 4, 4)).parts.media == Nanos::ZERO
        };
        assert!(next_is_hit(true), "{}", rig.name());
        assert!(!next_is_hit(false), "{}", rig.name());
    }
}

#[test]
fn read_ahead_waiting_for_room_keeps_rest_of_partial_hit() {
    for rig in all() {
        let Some((rig, track)) = small_segments(&rig) else { continue };
        let (end, size) = (track.first + u64::from(track.sectors), track.sectors / 8);
        // A sector takes as long on the bus as a segment does on the media.
        let slow = 60e6 / rig.spec.mechanics.rpm / 8.0;
        let rig = rig.with(|spec| {
            spec.bus.read_us_per_sector = slow;
            spec.cache.read_ahead_past_segment = true;
            // The rest of the partial hit has been read from the media before the first data cross the bus.
            spec.overhead.after_read.read_hit_ms = 120e3 / spec.mechanics.rpm;
        });
        // In case 0 the first read's read-ahead has ended at the end of the track; in case 1 it waits because its segment is full.
        let cases = [(Lbn(end.0 - 4), 2, 2.0), (track.first, 4, 0.0)];
        for (index, (from, sectors, wait)) in cases.into_iter().enumerate() {
            let next_is_hit = |waits: bool| {
                let rig = rig.with(|spec| spec.cache.read_ahead_waits_for_room = waits);
                let mut device = rig.device();
                let first = serve(&mut device, Instant::ZERO, Request::read(from, sectors));
                let held = if index == 0 { end } else { from + u64::from(size) };
                let later = rig.after(first.completed, wait);
                let part = serve(&mut device, later, Request::read(Lbn(held.0 - 2), 6));
                if waits {
                    let expected = [CacheUse::Part, CacheUse::Joined][index];
                    assert_eq!(part.cache, expected, "{}: case {index}", rig.name());
                }
                serve(&mut device, part.completed, Request::read(held + 4, 2)).parts.media == Nanos::ZERO
            };
            assert!(next_is_hit(true), "{}: case {index}", rig.name());
            assert!(!next_is_hit(false), "{}: case {index}", rig.name());
        }
    }
}

#[test]
fn resumed_read_ahead_still_crosses_the_track_boundary() {
    let mut judged = 0;
    for rig in all() {
        let Some((rig, track)) = small_segments(&rig) else { continue };
        let rig = rig.with(|spec| spec.cache.read_ahead_past_segment = true);
        let end = track.first + u64::from(track.sectors);
        let [next, last] = [end, end + u64::from(track.sectors)].map(|lbn| rig.geometry().track_at(lbn));
        if last.first != next.first + u64::from(next.sectors) || next.sectors != track.sectors {
            continue;
        }
        // The first read crosses into the next track, so that its read-ahead extends to the end of the track after that.
        let begin = || {
            let mut device = rig.device();
            let crossing = serve(&mut device, Instant::ZERO, Request::read(Lbn(end.0 - 2), 4));
            let stopped = rig.after(crossing.completed, 0.5);
            let far = serve(&mut device, stopped, Request::read(Lbn(rig.sectors() - 8), 1));
            (device, far.completed)
        };
        // The far read stopped the read-ahead inside the next track. A read that starts in the buffered part and ends behind it resumes it.
        for from in (0..u64::from(next.sectors - track.sectors / 8)).step_by(4) {
            let (mut device, now) = begin();
            let continuing = serve(&mut device, now, Request::read(next.first + from, track.sectors / 8));
            if continuing.cache == CacheUse::Part {
                let later = rig.after(continuing.completed, 4.0);
                let reached = Lbn(last.first.0 + u64::from(last.sectors) - 1);
                let read = serve(&mut device, later, Request::read(reached, 1));
                assert_eq!(read.parts.media, Nanos::ZERO, "{}: from sector {from}", rig.name());
                judged += 1;
                break;
            }
        }
    }
    assert!(judged > 5, "{judged} drives");
}

#[test]
fn arm_taking_hit_waits_for_destage_and_stops_read_ahead() {
    for rig in all() {
        let rig = cached(&rig, 4, 256).with(|spec| {
            (spec.cache.write_cache, spec.cache.read_ahead) = (WriteCache::Segment, ReadAhead::Segment);
            spec.cache.read_ahead_max_sectors = 200;
        });
        let (held, far) = (Request::read(Lbn(0), 8), Lbn(rig.sectors() - 512));
        let times = |takes: bool, other: Request, wait: f64| {
            let rig = rig.with(|spec| spec.cache.hits_take_arm = takes);
            let mut device = rig.device();
            let now = rig.after(serve(&mut device, Instant::ZERO, held).completed, 20.0);
            let began = serve(&mut device, now, other).completed;
            let hit = serve(&mut device, rig.after(began, wait), held);
            let behind = Request::read(other.end() + 150, 40);
            let then = serve(&mut device, rig.after(hit.completed, 20.0), behind);
            (hit.response(), then.parts.media == Nanos::ZERO)
        };
        let at_once = Nanos(100_000 + 8 * 5_000);
        let write = Request::write(far, 8);
        assert_eq!(times(false, write, 0.0).0, at_once, "{}", rig.name());
        assert!(times(true, write, 0.0).0 > at_once, "{}: it waits for the destage", rig.name());
        let read = Request::read(far, 8);
        assert_eq!(times(false, read, 0.02), (at_once, true), "{}: the read-ahead continues", rig.name());
        assert_eq!(times(true, read, 0.02), (at_once, false), "{}: the read-ahead is stopped", rig.name());
    }
}

#[test]
fn write_joining_a_destage_streams_or_is_rewritten() {
    for rig in all() {
        let Some(track) = whole_track(&rig).filter(|track| track.sectors >= 32) else { continue };
        let times = |joined: JoinedWrites| {
            let rig = cached(&rig, 4, 256).with(|spec| {
                spec.cache.write_cache = WriteCache::Segment;
                (spec.cache.write_prebuffering, spec.cache.joined_writes) = (false, joined);
            });
            // The arm has a long seek to the first write, so that the others arrive before it is on the media.
            let mut device = rig.device();
            let mut now =
                serve(&mut device, Instant::ZERO, Request::read(Lbn(rig.sectors() - 8), 8)).completed;
            let responses = [0, 4, 8].map(|from| {
                let written = serve(&mut device, now, Request::write(track.first + from, 4));
                now = written.completed;
                written.response()
            });
            device.handle_timeout(rig.after(now, 20.0));
            (responses, device.activity().destages.media)
        };
        let at_once = Nanos(400_000 + 4 * 5_000);
        let (streamed, once) = times(JoinedWrites::Stream);
        assert_eq!(streamed, [at_once; 3], "{}", rig.name());
        let ([first, second, third], twice) = times(JoinedWrites::Again);
        assert_eq!([first, second], [at_once; 2], "{}", rig.name());
        let turn = Nanos(rig.turn() as u64);
        assert!(third > turn, "{}: it waits until the one before it is written: {third:?}", rig.name());
        // The second write's blocks are written twice: 16 sectors instead of 12.
        let share = twice.0 as f64 / once.0 as f64;
        assert!((share - 16.0 / 12.0).abs() < 0.01, "{}: {share} times the media time", rig.name());
    }
}
