//! Sequential streams: a drive serves as many of them well as its cache has segments. With more, its throughput collapses.

use crate::support::*;
use headstack_model::spec::{BusSpec, CacheSpec, ReadAhead};
use headstack_workload::{Region, StreamShape, Streams};

/// The rig with eight segments. After each read the drive fills the segment by read-ahead, even if a request waits.
fn eight_segments(rig: &Rig) -> Rig {
    rig.plain().with(|spec| {
        spec.cache = CacheSpec {
            segments: 8,
            segment_sectors: 512,
            read_ahead: ReadAhead::Segment,
            read_ahead_min_sectors: 480,
            read_ahead_max_sectors: 480,
            ..CacheSpec::default()
        };
        spec.bus = BusSpec { read_us_per_sector: 1.0, write_us_per_sector: 1.0, ..BusSpec::default() };
        spec.queue.depth = 1;
    })
}

/// Sectors per second, of all streams together.
fn rate(rig: &Rig, streams: u32) -> f64 {
    let shape = StreamShape::reads(Region::whole(rig.sectors()), streams, 32);
    let mut load = Streams::new(shape, 3000).expect("the load fits");
    let (finished, end) = run(rig.device(), &mut load);
    finished.len() as f64 * 32.0 / end.as_secs()
}

#[test]
fn throughput_collapses_beyond_one_stream_per_segment() {
    for rig in all() {
        let rig = eight_segments(&rig);
        let (few, many) = (rate(&rig, 7), rate(&rig, 12));
        // If each stream has a segment, one access serves sixteen requests; if not, each request needs an access.
        assert!(few > 2.0 * many, "{}: {few} and {many} sectors a second", rig.name());
        assert!(rate(&rig, 4) > 0.7 * few, "{}: no cliff below the number of segments", rig.name());
    }
}

#[test]
fn single_stream_runs_at_half_to_full_media_rate() {
    for rig in all() {
        // When the next request arrives, the head is over its first sector already.
        let rig = eight_segments(&rig).with(|spec| spec.cache.almost_hits = true);
        let rate = rate(&rig, 1);
        let spt = f64::from(rig.geometry().extent_at(headstack_model::Lbn(0)).sectors_per_track);
        let media = spt / rig.turn() * 1e9;
        assert!(rate < media, "{}: {rate} of {media} sectors a second", rig.name());
        assert!(rate > 0.5 * media, "{}: {rate} of {media} sectors a second", rig.name());
    }
}
