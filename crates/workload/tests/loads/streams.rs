//! Streams: where they begin, their lengths, and their number.

use headstack_workload::Spacing;

use super::*;

#[test]
fn every_stream_reads_within_its_own_part() {
    let region = Region { first: Lbn(100), sectors: 4 * 1003 };
    let shape = StreamShape { depth: 2, alignment: 8, ..StreamShape::reads(region, 4, 300) };
    let mut load = Streams::new(shape, 32).expect("the shape is good");
    let (seen, _) = run(&mut load, Nanos(5), false);
    for stream in 0..4u64 {
        let first = (100 + 1003 * stream).next_multiple_of(8);
        let of_stream = seen.iter().filter(|(_, issue)| issue.id % 4 == stream);
        let lbns: Vec<u64> = of_stream.map(|(_, issue)| issue.request.lbn.0).collect();
        let expected: Vec<u64> = (0..8).map(|step| first + step % 3 * 300).collect();
        assert_eq!(lbns, expected);
    }
    let narrow = Streams::new(StreamShape { sectors: 1004, ..shape }, 1).expect_err("a part has 1003");
    assert!(matches!(narrow, ShapeError::Narrow { sectors: 1004, available: 1003, .. }));
    let many = Streams::new(StreamShape { depth: u32::MAX, ..shape }, 1).expect_err("no host holds as many");
    assert!(matches!(many, ShapeError::Outstanding { .. }));
}

#[test]
fn interval_streams_continue_to_region_end() {
    let region = Region { first: Lbn(100), sectors: 1000 };
    let shape = StreamShape {
        spacing: Spacing::Interval(300),
        op: Op::Write,
        each: Some(5),
        ..StreamShape::reads(region, 3, 200)
    };
    let (seen, _) = run(&mut Streams::new(shape, u64::MAX).expect("the shape is good"), Nanos(5), false);
    let lbns = |stream: u32| -> Vec<u64> {
        let of_stream = seen.iter().filter(|(_, issue)| issue.source == stream);
        of_stream.map(|(_, issue)| issue.request.lbn.0).collect()
    };
    assert_eq!(lbns(0), [100, 300, 500, 700, 900]);
    assert_eq!(lbns(1), [400, 600, 800, 400, 600]);
    assert_eq!(lbns(2), [700, 900, 700, 900, 700]);
    assert!(seen.iter().all(|(_, issue)| issue.request.op == Op::Write));
    let far = StreamShape { streams: 4, sectors: 101, ..shape };
    assert_eq!(
        Streams::new(far, 1).expect_err("the last one has 100").to_string(),
        "no aligned request of 101 sectors fits in the 100 sectors from block 1000 on"
    );
    let none = StreamShape { spacing: Spacing::Interval(0), ..shape };
    assert_eq!(
        Streams::new(none, 1).expect_err("they would all be one").to_string(),
        "the interval of streams is 0, where at least 1 is needed"
    );
}

#[test]
fn every_stream_stops_at_its_count_at_every_depth() {
    for depth in [1, 3, 9] {
        let shape = StreamShape { depth, each: Some(5), ..StreamShape::reads(shape().region, 4, 8) };
        let mut load = Streams::new(shape, u64::MAX).expect("the shape is good");
        let (seen, most) = run(&mut load, Nanos(5), true);
        for stream in 0..4 {
            assert_eq!(seen.iter().filter(|(_, issue)| issue.source == stream).count(), 5);
        }
        assert!(most <= 4 * depth.min(5) as usize);
    }
}
