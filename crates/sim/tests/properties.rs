//! Whatever is requested of whatever drive: each request comes back once, never early, with parts that add up.

use headstack_model::spec::{CacheSpec, ReadAhead, Segmentation, Tagging, WriteCache, ZeroLatency};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Op, Request, drives};
use headstack_policy::order;
use headstack_sim::{Completion, Device, DeviceOptions, Outcome};
use proptest::prelude::*;
use proptest::sample::select;

/// A request before it is fitted to a disk: where as a share of it, how long, what, and the gap before it.
#[derive(Clone, Debug)]
struct Ask {
    share: f64,
    sectors: u32,
    op: Op,
    fua: bool,
    gap_us: u32,
    /// Whether it follows the one before.
    continues: bool,
}

fn ask() -> impl Strategy<Value = Ask> {
    let op = prop_oneof![6 => Just(Op::Read), 5 => Just(Op::Write), 1 => Just(Op::Flush)];
    let sectors = prop_oneof![1u32..9, 1u32..300, Just(8u32)];
    let gap = prop_oneof![4 => Just(0u32), 2 => 0u32..20_000, 1 => 0u32..400_000];
    (0.0..1.0f64, sectors, op, prop::bool::weighted(0.1), gap, prop::bool::weighted(0.4)).prop_map(
        |(share, sectors, op, fua, gap_us, continues)| Ask { share, sectors, op, fua, gap_us, continues },
    )
}

fn requests(asks: &[Ask], capacity: u64) -> Vec<(u64, Request)> {
    let mut end = 0;
    let mut requests = Vec::new();
    for ask in asks {
        let sectors = u64::from(ask.sectors).min(capacity);
        let last = capacity - sectors;
        let lbn = if ask.continues && end <= last { end } else { (ask.share * last as f64) as u64 };
        let request = match ask.op {
            Op::Flush => Request::flush(),
            op => {
                end = lbn + sectors;
                Request { op, lbn: Lbn(lbn), sectors: sectors as u32, fua: ask.fua }
            }
        };
        requests.push((u64::from(ask.gap_us) * 1000, request));
    }
    requests
}

/// A small drive of any layout, with any cache.
fn any_small() -> impl Strategy<Value = DriveSpec> {
    let geometry = (1u32..5, 3u32..40, 4u32..60, 4u32..60, select(LAYOUTS.to_vec()));
    let mechanics = (
        3000.0..15_000.0f64,
        0.0..2.0f64,
        -0.3..1.0f64,
        select(vec![ZeroLatency::None, ZeroLatency::WithinTrack, ZeroLatency::PerFragment]),
    );
    (geometry, mechanics, any_cache(), any::<bool>(), 0.0..200.0f64).prop_map(
        |((heads, cylinders, outer, inner, layout), (rpm, switch, settle, zero), cache, held, bus)| {
            let mut spec = base(heads, cylinders, outer, inner, layout);
            spec.mechanics.rpm = rpm;
            spec.mechanics.head_switch_ms = switch;
            spec.mechanics.write_settle_ms = settle;
            spec.mechanics.zero_latency_read = zero;
            spec.mechanics.zero_latency_write = zero;
            spec.bus.never_disconnects = held;
            spec.bus.read_us_per_sector = bus;
            spec.bus.write_us_per_sector = 200.0 - bus;
            spec.cache = cache;
            spec.check().unwrap_or_else(|error| panic!("{error}\n{}", spec.to_toml()));
            spec
        },
    )
}

const LAYOUTS: [&str; 7] = ["cylinder", "serpentine", "serpentine-absolute", "ff", "af", "fa", "aa"];

fn base(heads: u32, cylinders: u32, outer: u32, inner: u32, layout: &str) -> DriveSpec {
    let middle = cylinders / 2;
    let capacity = heads * (middle * outer + (cylinders - middle) * inner);
    let zone = |first: u32, last: u32, sectors: u32| match layout {
        "cylinder" | "serpentine" | "serpentine-absolute" => format!(
            "{{ first_cylinder = {first}, last_cylinder = {last}, sectors_per_track = {sectors}, \
             track_skew_sectors = 1.5, cylinder_skew_sectors = 2 }}"
        ),
        _ => format!(
            "{{ first_cylinder = {first}, last_cylinder = {last}, sectors_per_track = [{sectors}], \
             band_tracks = 3, track_skew_turns = 0.2, head_skew_turns = 0.1 }}"
        ),
    };
    let zones = if layout.len() == 2 { "band_zones" } else { "zones" };
    let text = format!(
        "name = \"small\"\ntitle = \"Made up\"\nevidence = \"derived\"\ncapacity_sectors = {capacity}\n\
         [geometry]\nheads = {heads}\ncylinders = {cylinders}\nlayout = \"{layout}\"\n\
         {zones} = [{}, {}]\n[mechanics]\nrpm = 6000.0\nhead_switch_ms = 1.0\n\
         [mechanics.seek]\npieces = [{{ constant_ms = 1.0, sqrt_ms = 0.5 }}]\n\
         [bus]\nread_us_per_sector = 1.0\nwrite_us_per_sector = 1.0\n",
        zone(0, middle - 1, outer),
        zone(middle, cylinders - 1, inner),
    );
    DriveSpec::parse(&text, "small").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A cache of any kind.
fn any_cache() -> impl Strategy<Value = CacheSpec> {
    let ahead = select(vec![
        ReadAhead::None,
        ReadAhead::Track,
        ReadAhead::Cylinder,
        ReadAhead::Segment,
        ReadAhead::Stream,
        ReadAhead::Sequence,
        ReadAhead::OnArrival,
    ]);
    let write = select(vec![WriteCache::None, WriteCache::Sequential, WriteCache::Segment, WriteCache::Full]);
    let sizes = (1u32..6, 8u32..200, 0.0..1.0f64, 0.0..1.0f64);
    (sizes, ahead, write, any::<[bool; 11]>(), 0.0..30.0f64).prop_map(
        |((segments, size, most, least), read_ahead, write_cache, flags, idle)| {
            let most = (most * f64::from(size)) as u32;
            CacheSpec {
                buffered: flags[9] || flags[10],
                enabled: flags[0] || flags[1],
                segmentation: if flags[2] { Segmentation::Adaptive } else { Segmentation::Fixed },
                segments,
                segments_max: flags[2].then_some(4 * segments),
                segment_sectors: size,
                read_ahead,
                read_ahead_max_sectors: most,
                read_ahead_min_sectors: (least * f64::from(most)) as u32,
                read_ahead_over_requested: flags[3],
                read_ahead_on_hit: flags[4],
                read_ahead_stops_in_sector: flags[5],
                read_on_arrival: flags[6] && read_ahead != ReadAhead::Sequence,
                almost_hits: flags[7],
                read_hits_on_written: flags[8],
                write_cache,
                write_segments: (segments / 2).max(1),
                dedicated_write_segment: flags[0] && segments > 1,
                dirty_max_sectors: u64::from(size) * 2,
                dirty_start_sectors: u64::from(size),
                destage_idle_ms: idle,
                ..CacheSpec::default()
            }
        },
    )
}

/// Plays requests as they come, each held back while the queue is full; calls come late by up to `late_ns`.
fn play(device: &mut Device, script: &[(u64, Request)], late_ns: u64) -> Vec<Completion> {
    let (mut done, mut now) = (Vec::new(), Instant::ZERO);
    for (gap, request) in script {
        let at = now + Nanos(*gap);
        while let Some(due) = device.poll_timeout().filter(|due| *due <= at) {
            now = now.max(due);
            device.handle_timeout(now);
            done.extend(std::iter::from_fn(|| device.poll_completion()));
        }
        now = at.max(now);
        while device.outstanding() == device.depth() {
            device.submit(now, *request).expect_err("the queue is full");
            now = now.max(device.poll_timeout().expect("something is outstanding")) + Nanos(late_ns);
            device.handle_timeout(now);
            done.extend(std::iter::from_fn(|| device.poll_completion()));
        }
        device.submit(now, *request).expect("there is room");
        assert!(device.outstanding() <= device.depth());
    }
    while let Some(due) = device.poll_timeout() {
        now = now.max(due) + Nanos(late_ns);
        device.handle_timeout(now);
        done.extend(std::iter::from_fn(|| device.poll_completion()));
    }
    done
}

/// Plays requests at their own times on a queue that holds them all; calls come late by up to `late_ns`.
fn play_timed(device: &mut Device, script: &[(u64, Request)], late_ns: u64) -> Vec<Completion> {
    let (mut done, mut now) = (Vec::new(), 0);
    for (gap, request) in script {
        let at = now + gap;
        while let Some(due) = device.poll_timeout().map(|due| due.0 + late_ns).filter(|due| *due <= at) {
            device.handle_timeout(Instant(due));
        }
        device.submit(Instant(at), *request).expect("the queue holds all");
        now = at;
    }
    while let Some(due) = device.poll_timeout() {
        device.handle_timeout(due + Nanos(late_ns));
        done.extend(std::iter::from_fn(|| device.poll_completion()));
    }
    done
}

/// What holds of every run.
fn judge(spec: &DriveSpec, options: &DeviceOptions, asks: &[Ask], late_ns: u64) {
    let mut device = Device::new(spec, options).unwrap_or_else(|error| panic!("{error}"));
    let script = requests(asks, spec.capacity_sectors);
    let done = play(&mut device, &script, late_ns);
    assert_eq!(device.outstanding(), 0, "all have come back");
    let key = |request: &Request| (request.lbn.0, request.sectors, request.op == Op::Write, request.fua);
    let mut submitted: Vec<_> = script.iter().map(|(_, request)| key(request)).collect();
    let mut served: Vec<_> = done.iter().map(|done| key(&done.request)).collect();
    submitted.sort_unstable();
    served.sort_unstable();
    assert_eq!(submitted, served, "each has come back once");
    let turn = 60e9 / (spec.mechanics.rpm * (1.0 + spec.mechanics.rpm_deviation_percent / 100.0));
    for one in &done {
        assert_eq!(one.outcome, Outcome::Done);
        assert_eq!(one.parts.total(), one.response());
        let sectors = f64::from(one.request.sectors);
        let bus = if one.request.op == Op::Read {
            spec.bus.read_us_per_sector
        } else {
            spec.bus.write_us_per_sector
        };
        assert!(
            one.response().0 as f64 >= bus * 1e3 * sectors - 3.0 - sectors / 1024.0,
            "not before its transfer: {one:?}"
        );
        if one.request.fua && one.request.op != Op::Flush {
            let longest = longest_track(spec);
            let media = turn * sectors / f64::from(longest);
            assert!(
                one.response().0 as f64 >= media.min(turn * 0.999) - 3.0,
                "not before the media: {one:?}"
            );
        }
    }
}

fn longest_track(spec: &DriveSpec) -> u32 {
    let geometry = &spec.geometry;
    let zones = geometry.zones.iter().map(|zone| zone.sectors_per_track);
    let bands = geometry.band_zones.iter().flat_map(|zone| zone.sectors_per_track.iter().copied());
    let kinds = geometry.extents.iter().flat_map(|extents| extents.tracks.iter());
    zones.chain(bands).chain(kinds.map(|kind| kind.sectors_per_track)).max().expect("a disk has tracks")
}

fn options() -> impl Strategy<Value = DeviceOptions> {
    let names: Vec<&str> = order::all().iter().map(|entry| entry.name).collect();
    (any::<u64>(), 1..=Tagging::NCQ_TAGS, select(names)).prop_map(|(seed, depth, order)| DeviceOptions {
        seed,
        depth: Some(depth),
        order: Some(order.to_string()),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn every_small_drive_completes_each_request_once(
        spec in any_small(),
        options in options(),
        asks in prop::collection::vec(ask(), 1..80),
        late_ns in prop_oneof![Just(0u64), 0u64..30_000_000],
    ) {
        judge(&spec, &options, &asks, late_ns);
    }

    #[test]
    fn late_call_moves_no_completion_on_any_small_drive(
        spec in any_small(),
        options in options(),
        asks in prop::collection::vec(ask(), 1..80),
        late_ns in 0u64..100_000_000,
    ) {
        let options = DeviceOptions { depth: Some(80), ..options };
        let run = |late_ns| {
            let mut device = Device::new(&spec, &options).unwrap_or_else(|error| panic!("{error}"));
            play_timed(&mut device, &requests(&asks, spec.capacity_sectors), late_ns)
        };
        prop_assert_eq!(run(0), run(late_ns));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn every_shipped_drive_completes_each_request_once(
        name in select(drives::all().iter().map(|(name, _)| *name).collect::<Vec<_>>()),
        options in options(),
        asks in prop::collection::vec(ask(), 1..60),
        write_cache in prop::option::of(any_cache()),
        late_ns in prop_oneof![Just(0u64), 0u64..30_000_000],
    ) {
        let mut spec = drives::load(name).unwrap_or_else(|error| panic!("{error}"));
        // Half the time with a cache that its makers never thought of.
        spec.cache = write_cache.unwrap_or(spec.cache);
        spec.media_cache = spec.media_cache.filter(|_| spec.cache.buffered);
        // The writes lie anywhere.
        spec.zones = None;
        let may_shingle = matches!(spec.cache.write_cache, WriteCache::Full | WriteCache::None);
        spec.shingled = spec.shingled.filter(|_| spec.cache.buffered && may_shingle);
        judge(&spec, &options, &asks, late_ns);
    }
}
