//! The figures of small traces, computed manually.

use super::*;

fn stat(records: &[Record]) -> Summary {
    let mut stat = Stat::new();
    records.iter().for_each(|record| stat.observe(record));
    stat.summary(&Header::default())
}

fn record_at(ms: u64, kind: Kind, offset: u64, bytes: u64) -> Record {
    Record::new(Instant(ms * 1_000_000), 3, kind, offset, bytes)
}

#[test]
fn small_trace_summary_is_exact() {
    let known = |record: Record| Record { response: Some(Nanos(2_000_000)), ..record };
    let summary = stat(&[
        known(record_at(1000, Kind::Read, 0, 4096)),
        known(record_at(1001, Kind::Read, 4096, 8192)),
        known(record_at(1010, Kind::Write, 0, 512)),
        known(record_at(2000, Kind::Flush, 0, 0)),
    ]);
    assert_eq!((summary.requests, summary.duration_s, summary.requests_per_s), (4, 1.0, 4.0));
    assert_eq!((summary.mb_per_s, summary.out_of_order, summary.devices), (0.0128, 0, 1));
    let kinds: Vec<_> = summary.kinds.iter().map(|kind| (kind.kind, kind.requests, kind.bytes)).collect();
    assert_eq!(kinds, [("read", 2, 12_288), ("write", 1, 512), ("flush", 1, 0)]);
    let sizes = summary.size_bytes.expect("there are data");
    assert_eq!((sizes.min, sizes.p50, sizes.max), (512.0, 4096.0, 8192.0));
    assert_eq!(summary.gap_us.expect("there are gaps").max, 990_000.0);
    assert_eq!(summary.sequentiality.share, 1.0 / 3.0);
    assert_eq!((summary.locality.footprint_bytes, summary.locality.reach_bytes), (12_288.0, 12_288));
    assert_eq!(summary.locality.reused_share, Some(0.25));
    assert_eq!((summary.locality.zipf_exponent, summary.locality.sample_share), (None, 1.0));
    let depth = summary.queue_depth.expect("responses are known");
    assert_eq!((depth.max, depth.mean_while_busy), (2, 8.0 / 7.0));
    assert_eq!(summary.hottest_regions.len(), 1);
    assert_eq!((summary.hottest_regions[0].requests, summary.hottest_regions[0].device.as_str()), (3, "3"));
    assert_eq!(summary.over_time.iter().map(|interval| interval.requests).sum::<u64>(), 4);
}

#[test]
fn empty_trace_summary_has_no_division_by_zero() {
    let summary = stat(&[]);
    assert_eq!((summary.requests, summary.requests_per_s), (0, 0.0));
    assert!(summary.size_bytes.is_none() && summary.queue_depth.is_none() && summary.over_time.is_empty());
}

#[test]
fn out_of_order_requests_are_counted() {
    let summary = stat(&[
        record_at(5, Kind::Read, 0, 512),
        record_at(3, Kind::Read, 0, 512),
        record_at(9, Kind::Read, 0, 512),
    ]);
    assert_eq!((summary.out_of_order, summary.duration_s), (1, 0.004));
}
