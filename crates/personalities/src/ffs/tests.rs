//! Laws of the file system, over all variants, on a disk that answers at once and in order.

use super::*;
use headstack_model::{Instant, Lbn, Nanos, Op, Request};
use headstack_workload::{Load, Poll};
use proptest::prelude::*;
use std::collections::BTreeSet;

mod ageing;
mod fitted;
mod grouping;

/// Sectors of a track: not a multiple of a block's.
const TRACK: u64 = 334;

const FIRST: Lbn = Lbn(1000);

const MB: u64 = 1 << 20;

fn tracks(groups: u32) -> TrackList {
    let sectors = sector_of(groups * GROUP_BLOCKS);
    TrackList::new((0..).map(|track| track * TRACK).take_while(|first| *first < sectors), sectors)
        .expect("tracks are equal")
}

fn layout(variant: Variant, groups: u32) -> Layout {
    Layout::new(tracks(groups), variant, NextGroup::Following)
}

/// Runs a program to its end, each request a millisecond; its requests as the partition counts sectors.
fn run<P: Iterator<Item = Call>>(session: &mut Session<P>) -> Vec<Request> {
    let (mut requests, mut out, mut now) = (Vec::new(), std::collections::VecDeque::new(), Instant::ZERO);
    loop {
        match session.poll(now) {
            Poll::Issue(issue) => {
                let lbn = Lbn(issue.request.lbn.0 - FIRST.0);
                requests.push(Request { lbn, ..issue.request });
                out.push_back(issue.id);
            }
            Poll::Done => break,
            Poll::Compute { .. } => panic!("calls without costs need no processor"),
            Poll::Later(_) | Poll::Waiting => {
                now += Nanos::from_ms(1.0);
                let id = out.pop_front().expect("a load that waits has asked");
                session.handle_completion(now, id);
            }
        }
    }
    assert!(out.is_empty(), "all that was asked has come back");
    requests
}

/// How often each sector of a file is in requests of a kind.
fn times(requests: &[Request], op: Op, blocks: &[u32]) -> Vec<u32> {
    let end = requests.iter().map(|request| request.end().0).max().unwrap_or_default();
    let mut seen =
        vec![0; end.max(blocks.iter().map(|block| sector_of(block + 1)).max().unwrap_or(0)) as usize];
    for request in requests.iter().filter(|request| request.op == op) {
        (request.lbn.0..request.end().0).for_each(|sector| seen[sector as usize] += 1);
    }
    let sectors = blocks.iter().flat_map(|block| sector_of(*block)..sector_of(block + 1));
    sectors.map(|sector| seen[sector as usize]).collect()
}

fn crosses(tracks: &TrackList, request: &Request) -> bool {
    tracks.end_of(request.lbn.0) < request.end().0
}

#[test]
fn scan_reads_every_sector_once() {
    for variant in Variant::ALL {
        let mut session = Session::new(layout(variant, 4), FIRST, scan(40 * MB)).with_file(0, 40 * MB);
        let requests = run(&mut session);
        let times = times(&requests, Op::Read, session.blocks_of(0));
        assert_eq!(times.len() as u64, 40 * MB / 512);
        assert!(times.iter().all(|times| *times == 1), "{variant:?}");
        let counts = session.counts();
        assert_eq!((counts.read_sectors, counts.writes), (40 * MB / 512, 0), "{variant:?}");
    }
}

#[test]
fn copy_writes_every_sector_once() {
    for variant in Variant::ALL {
        let mut session =
            Session::new(layout(variant, 4), FIRST, copy(20 * MB + 700)).with_file(0, 20 * MB + 700);
        let requests = run(&mut session);
        let written = times(&requests, Op::Write, session.blocks_of(1));
        let length = (20 * MB + 700u64).div_ceil(512) as usize;
        assert!(written[..length].iter().all(|times| *times == 1), "{variant:?}");
        assert!(written[length..].iter().all(|times| *times == 0), "{variant:?}");
        assert_eq!(session.counts().write_sectors, length as u64);
    }
}

#[test]
fn only_track_aware_variants_keep_requests_within_tracks() {
    let tracks = tracks(4);
    for variant in Variant::ALL {
        let mut session = Session::new(layout(variant, 4), FIRST, copy(20 * MB)).with_file(0, 20 * MB);
        let requests = run(&mut session);
        let owned: BTreeSet<u32> = (0..2).flat_map(|file| session.blocks_of(file).to_vec()).collect();
        let is_data = |request: &&Request| owned.contains(&((request.lbn.0 / 16) as u32));
        let crossing = requests.iter().filter(is_data).filter(|request| crosses(&tracks, request)).count();
        assert_eq!(crossing == 0, variant.ends_with_tracks(), "{variant:?}: {crossing}");
    }
}

#[test]
fn scan_by_partial_blocks_reads_mostly_whole_tracks() {
    let mut session =
        Session::new(layout(Variant::PartialBlocks, 4), FIRST, scan(40 * MB)).with_file(0, 40 * MB);
    let requests = run(&mut session);
    let whole = requests.iter().filter(|request| u64::from(request.sectors) == TRACK).count() as u64;
    assert!(whole * TRACK * 512 > 39 * MB, "{whole} of {}", requests.len());
}

#[test]
fn excluded_share_of_334_sector_tracks_is_4_2_percent() {
    let layout = layout(Variant::Traxtent, 8);
    let all = f64::from(layout.blocks() + layout.excluded_blocks());
    // A track ends inside a block seven times in eight: 334 and 16 have the common divisor 2.
    let share = 7.0 / 8.0 * 16.0 / TRACK as f64;
    assert!((f64::from(layout.excluded_blocks()) / all - share).abs() < 0.001);
    assert_eq!(super::tests::layout(Variant::PartialBlocks, 8).excluded_blocks(), 0);
}

#[test]
fn large_file_changes_group_at_half() {
    for variant in Variant::ALL {
        let session = Session::new(layout(variant, 8), FIRST, scan(0)).with_file(0, 100 * MB);
        let blocks = session.blocks_of(0);
        for group in 0..8 {
            let in_group = blocks.iter().filter(|block| **block / GROUP_BLOCKS == group).count() as u32;
            assert!(in_group <= GROUP_BLOCKS / 2 + DIRECT_BLOCKS, "{variant:?}: {in_group} in group {group}");
        }
        assert_eq!(blocks.len() as u64, 100 * MB / BLOCK_BYTES);
    }
}

#[test]
fn random_reads_fetch_one_block_in_every_variant() {
    // The first session in order lets the fourth variant learn; the second is not.
    let far = (1..60).map(|step| Call::Read(1, (step * 577) % 2500));
    for variant in Variant::ALL {
        let calls = [Call::Open(1)].into_iter().chain(far.clone());
        let mut session = Session::new(layout(variant, 4), FIRST, calls).with_file(1, 20 * MB);
        let requests = run(&mut session);
        let own: BTreeSet<u32> = session.blocks_of(1).iter().copied().collect();
        let data = requests.iter().filter(|request| own.contains(&((request.lbn.0 / 16) as u32)));
        let later: Vec<u32> = data.skip(2).map(|request| request.sectors).collect();
        assert!(
            later.len() > 60 && later.iter().all(|sectors| *sectors <= BLOCK_SECTORS),
            "{variant:?}: {later:?}"
        );
    }
}

#[test]
fn first_fetch_learns_from_earlier_files() {
    let first_fetch = |reads: u32| {
        let calls = (0..20).flat_map(move |file| {
            [Call::Open(file)].into_iter().chain((0..reads).map(move |block| Call::Read(file, block)))
        });
        let mut session = Session::new(layout(Variant::PartialBlocks, 4), FIRST, calls);
        for file in 0..20 {
            session = session.with_file(file, 96 << 10);
        }
        let requests = run(&mut session);
        let of = |file: u32| {
            let first = sector_of(session.blocks_of(file)[0]);
            requests.iter().find(|request| request.lbn.0 == first).map(|request| request.sectors)
        };
        (of(0), of(19))
    };
    assert_eq!(first_fetch(1), (Some(16), Some(16)), "files of which one block is read");
    assert_eq!(first_fetch(12), (Some(16), Some(12 * 16)), "files that are read whole");
}

#[test]
fn first_access_fetches_block_or_cluster_by_variant() {
    let expected = [(Variant::Unmodified, 16), (Variant::FastStart, 12 * 16), (Variant::Traxtent, 12 * 16)];
    for (variant, sectors) in expected {
        let mut session = Session::new(layout(variant, 2), FIRST, head(1)).with_file(0, 200 << 10);
        let first = sector_of(session.blocks_of(0)[0]);
        let requests = run(&mut session);
        let found = requests.iter().find(|request| request.lbn.0 == first).map(|request| request.sectors);
        assert_eq!(found, Some(sectors), "{variant:?}");
    }
}

#[test]
fn small_file_stays_on_one_track_in_every_group() {
    for variant in [Variant::Traxtent, Variant::PartialBlocks] {
        let mut session = Session::new(layout(variant, 4), FIRST, scan(0));
        for file in 0..400 {
            session = session.with_file(file, 12 * BLOCK_BYTES);
        }
        let tracks = session.layout().tracks();
        let groups: BTreeSet<u32> = session.blocks_of(399).iter().map(|block| block / GROUP_BLOCKS).collect();
        assert!(groups.iter().all(|group| *group > 0), "{variant:?}: the first group is full by then");
        for file in 0..400 {
            let blocks = session.blocks_of(file);
            let ends = [blocks[0], blocks[11]].map(|block| tracks.end_of(sector_of(block)));
            let is_on_one = ends[0] == ends[1] && !tracks.split(blocks[11]);
            assert!(is_on_one, "{variant:?}: file {file}");
        }
    }
}

#[test]
fn file_fits_one_traxtent_or_starts_at_closest_cluster() {
    let mut session = Session::new(layout(Variant::Traxtent, 4), FIRST, scan(0));
    // 18 blocks and the one that leads to the last six; then 25 blocks, more than a track holds.
    let lengths: Vec<u64> = [18, 25, 25, 18, 25].map(|blocks| blocks * BLOCK_BYTES).to_vec();
    for (file, bytes) in lengths.iter().enumerate() {
        session = session.with_file(file as u32, *bytes);
    }
    let tracks = session.layout().tracks();
    let track_of = |block: u32| tracks.start_of(sector_of(block)) / TRACK;
    let mut ends_before = 0;
    for (file, bytes) in lengths.iter().enumerate() {
        let blocks = session.blocks_of(file as u32);
        let (first, last) = (blocks[0], blocks[blocks.len() - 1]);
        if *bytes == 18 * BLOCK_BYTES {
            assert_eq!(track_of(first), track_of(last), "file {file}");
        }
        assert_eq!(track_of(first), track_of(blocks[11]), "file {file}: direct blocks");
        // No file leaves out a track on which its direct blocks have room.
        assert!(track_of(first) <= ends_before + 1 || file == 0, "file {file} begins at {first}");
        ends_before = track_of(last);
    }
    let begins: Vec<bool> = (0..5).map(|file| tracks.begins_traxtent(session.blocks_of(file)[0])).collect();
    assert!(begins.contains(&false), "some file begins inside a traxtent: {begins:?}");
}

#[test]
fn cluster_length_follows_layout() {
    let long = layout(Variant::Unmodified, 4).with_clusters(100);
    let mut session = Session::new(long, FIRST, scan(12 * MB)).with_file(0, 12 * MB);
    let requests = run(&mut session);
    assert_eq!(requests.iter().map(|request| request.sectors).max(), Some(100 * BLOCK_SECTORS));
}

#[test]
fn full_disk_ends_program() {
    for variant in Variant::ALL {
        let calls = [Call::Create(0), Call::Append(0, 100 * MB), Call::Close(0), Call::Create(1)];
        let mut session = Session::new(layout(variant, 2), FIRST, calls.into_iter());
        run(&mut session);
        assert!(session.is_full(), "{variant:?}");
        let held = session.blocks_of(0).len() as u32;
        assert!(
            held + 10 > session.layout().blocks(),
            "{variant:?}: {held} of {}",
            session.layout().blocks()
        );
    }
}

#[test]
fn data_removed_before_write_back_is_never_written() {
    let calls = [Call::Create(0), Call::Append(0, 3000), Call::Close(0), Call::Mark, Call::Delete(0)];
    let mut session = Session::new(layout(Variant::Unmodified, 2), FIRST, calls.into_iter());
    run(&mut session);
    let counts = session.counts();
    assert_eq!(
        (counts.metadata_writes, counts.writes),
        (4, 0),
        "what is removed before it is written never is"
    );
    let calls = [Call::Create(0), Call::Append(0, 3000), Call::Close(0)];
    let mut session = Session::new(layout(Variant::Unmodified, 2), FIRST, calls.into_iter());
    run(&mut session);
    assert_eq!((session.counts().writes, session.counts().write_sectors), (1, 6));
}

#[test]
fn impossible_track_lists_are_rejected() {
    assert!(TrackList::new([0, 100, 200], 300).is_ok());
    let order = TrackListError::Order { index: 2, first: 100, end: 300 };
    assert_eq!(TrackList::new([0, 100, 100], 300), Err(order));
    assert_eq!(TrackList::new([0, 300], 300), Err(TrackListError::Order { index: 1, first: 300, end: 300 }));
    assert_eq!(TrackList::new([0, 100, 110], 300), Err(TrackListError::Short { first: 100, sectors: 10 }));
    let tracks = TrackList::new([8, 108], 300).expect("a partition may begin inside a track");
    assert_eq!((tracks.end_of(0), tracks.end_of(8), tracks.end_of(299)), (8, 108, 300));
    assert!(tracks.split(0) && !tracks.split(1) && tracks.begins_traxtent(1));
}

/// Any calls on a few files.
fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = (0u32..6, 0u32..12, 0u64..900_000).prop_map(|(kind, file, size)| match kind {
        0 => vec![Call::Create(file), Call::Append(file, size), Call::Close(file)],
        1 => vec![Call::Delete(file)],
        2 => vec![Call::Open(file), Call::Append(file, size / 40), Call::Close(file)],
        3 => vec![Call::Open(file), Call::Read(file, (size / 9000) as u32)],
        _ => (0..(size / 9000) as u32).map(|block| Call::Read(file, block)).collect(),
    });
    prop::collection::vec(call, 1..60).prop_map(|calls| calls.concat())
}

/// Removes calls that no program can make: creating a file that exists.
fn possible(calls: Vec<Call>) -> Vec<Call> {
    let mut there = BTreeSet::new();
    let kept = calls.into_iter().filter(|call| match call {
        Call::Create(file) => there.insert(*file),
        Call::Delete(file) => there.remove(file),
        _ => true,
    });
    kept.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_block_has_one_owner_and_excluded_blocks_none(calls in calls()) {
        let calls = possible(calls);
        for variant in Variant::ALL {
            let mut session = Session::new(layout(variant, 2), FIRST, calls.iter().copied());
            let requests = run(&mut session);
            prop_assert!(!session.is_full());
            let all: Vec<u32> = (0..12).flat_map(|file| session.blocks_of(file).to_vec()).collect();
            let distinct: BTreeSet<u32> = all.iter().copied().collect();
            prop_assert_eq!(all.len(), distinct.len());
            let tracks = session.layout().tracks();
            prop_assert!(all.iter().all(|block| block % GROUP_BLOCKS >= GROUP_HEAD_BLOCKS));
            if variant.excludes_blocks() {
                prop_assert!(all.iter().all(|block| !tracks.split(*block)));
            }
            let mut again = Session::new(layout(variant, 2), FIRST, calls.iter().copied());
            prop_assert_eq!(run(&mut again), requests, "the same calls make the same requests");
        }
    }
}

#[test]
fn postmark_uses_only_existing_files() {
    let mut there = BTreeSet::new();
    let mut marks = 0;
    for call in Postmark::default().calls() {
        match call {
            Call::Create(file) | Call::CreateIn(file, _) => assert!(there.insert(file)),
            Call::Delete(file) => assert!(there.remove(&file)),
            Call::Open(file) | Call::Read(file, _) | Call::Append(file, _) | Call::Close(file) => {
                assert!(there.contains(&file));
            }
            Call::Pause(_) => {}
            Call::Mark => marks += 1,
        }
    }
    assert!(there.is_empty() && marks == 2);
}

#[test]
fn processor_time_of_calls_adds_up_and_changes_no_request() {
    let calls = || copy(MB);
    let play = |costs: CallCosts| {
        let mut session = Session::new(layout(Variant::Unmodified, 4), FIRST, calls()).with_file(0, MB);
        session = session.with_costs(costs);
        let mut computed = Nanos::ZERO;
        let (mut out, mut now) = (std::collections::VecDeque::new(), Instant::ZERO);
        let mut requests = Vec::new();
        loop {
            match session.poll(now) {
                Poll::Issue(issue) => {
                    requests.push(issue.request);
                    out.push_back(issue.id);
                }
                Poll::Compute { id, time } => {
                    computed += time;
                    session.handle_computed(now, id, now + time);
                }
                Poll::Later(until) if out.is_empty() => now = until,
                Poll::Done => return (requests.len(), computed),
                Poll::Later(_) | Poll::Waiting => {
                    let id = out.pop_front().expect("a program that waits has a request in flight");
                    session.handle_completion(now, id);
                    now += Nanos(1);
                }
            }
        }
    };
    let (requests, free) = play(CallCosts::default());
    let costs = CallCosts { call: Nanos(100), block: Nanos(10), awaited_write: Nanos(1_000) };
    let (with_costs, computed) = play(costs);
    assert_eq!((requests, free), (with_costs, Nanos::ZERO));
    // Open, create, 128 reads and 16 appends of 8 blocks each, close; an inode and a name are awaited.
    let calls = calls().count() as u64;
    assert_eq!(calls, 3 + 128 + 16);
    assert_eq!(computed, Nanos(calls * 100 + 256 * 10 + 2 * 1_000));
}
