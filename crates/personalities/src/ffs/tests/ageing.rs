//! Laws of ageing and its remedies: preallocation, moves off line and on line, retrofit.

use super::*;
use std::collections::BTreeMap;

fn plan(utilisation: f64, seed: u64) -> AgeingPlan {
    AgeingPlan { utilisation, turnovers: 1.0, growing_share: 0.5, first_handle: 100, seed }
}

fn aged(layout: Layout, utilisation: f64, seed: u64) -> Session<std::vec::IntoIter<Call>> {
    let mut session = Session::new(layout, FIRST, Vec::new().into_iter());
    age(&mut session, plan(utilisation, seed));
    session
}

/// What a block of the disk holds: a block of a file, or one that leads to others.
type BlockContent = (u32, bool, usize);

/// The disk's content by the places of files' blocks; each block has one owner.
fn contents<P: Iterator<Item = Call>>(session: &Session<P>) -> BTreeMap<u32, BlockContent> {
    let mut contents = BTreeMap::new();
    for (handle, open) in &session.files {
        let blocks =
            open.file.blocks.iter().enumerate().map(|(index, block)| (*block, (*handle, false, index)));
        let leads = open.file.leads.iter().enumerate().map(|(index, block)| (*block, (*handle, true, index)));
        for (block, content) in blocks.chain(leads) {
            assert_eq!(contents.insert(block, content), None, "block {block} has one owner");
        }
    }
    contents
}

/// What the disk holds after these moves: each batch reads all its blocks, then writes them.
fn moved(mut disk: BTreeMap<u32, BlockContent>, batches: &[MoveBatch]) -> BTreeMap<u32, BlockContent> {
    for batch in batches {
        let read: Vec<Option<BlockContent>> =
            batch.iter().map(|moved| disk.get(&moved.from).copied()).collect();
        for moved in batch {
            disk.remove(&moved.from);
            disk.remove(&moved.to);
        }
        for (moved, content) in batch.iter().zip(read) {
            disk.extend(content.map(|content| (moved.to, content)));
        }
    }
    disk
}

fn assert_space_adds_up<P: Iterator<Item = Call>>(session: &Session<P>) {
    let owned = contents(session).len() as u32;
    let directories = session.directories.paired_blocks(&session.directories).len() as u32;
    let layout = session.layout();
    assert_eq!(owned + directories + layout.free_blocks(), layout.blocks(), "free space adds up");
}

#[test]
fn ageing_ends_at_its_utilisation_and_repeats_by_seed() {
    for variant in [Variant::Unmodified, Variant::Traxtent] {
        let session = aged(layout(variant, 4), 0.7, 1);
        let raw = 4 * (GROUP_BLOCKS - GROUP_HEAD_BLOCKS);
        let used = f64::from(contents(&session).len() as u32) / f64::from(raw);
        assert!((0.68..0.75).contains(&used), "{variant:?}: {used}");
        assert_space_adds_up(&session);
        assert_eq!(contents(&session), contents(&aged(layout(variant, 4), 0.7, 1)));
        assert_ne!(contents(&session), contents(&aged(layout(variant, 4), 0.7, 2)));
    }
}

/// Blocks of files that grow in turn, and the tracks that they are on.
fn growing(layout: Layout) -> Vec<(Vec<u32>, BTreeSet<u64>)> {
    let files = [0, 1, 2].map(|handle| (handle, 2 * MB));
    let mut session = Session::new(layout, FIRST, scan(0));
    add_files_grown_in_turn(&mut session, &files, 0);
    assert_space_adds_up(&session);
    let of = |handle: u32| {
        let blocks = session.blocks_of(handle).to_vec();
        // The first blocks of a file do not show that it will be large.
        let later = blocks.iter().skip(DIRECT_BLOCKS as usize + 1);
        let tracks = later.map(|block| session.layout().tracks().start_of(sector_of(*block))).collect();
        (blocks, tracks)
    };
    (0..3).map(of).collect()
}

#[test]
fn preallocated_files_that_grow_in_turn_share_no_track() {
    let shared = |files: &[(Vec<u32>, BTreeSet<u64>)]| {
        files[0].1.intersection(&files[1].1).count() + files[1].1.intersection(&files[2].1).count()
    };
    let plain = growing(layout(Variant::Traxtent, 4));
    let reserved = growing(layout(Variant::Traxtent, 4).with_preallocation());
    assert!(shared(&plain) > 10, "{}", shared(&plain));
    assert_eq!(shared(&reserved), 0);
}

#[test]
fn reserved_blocks_are_used_when_the_disk_is_full() {
    let layout = layout(Variant::Traxtent, 2).with_preallocation();
    let calls = [Call::Create(9), Call::Append(9, 100 * MB), Call::Close(9)];
    let files = [0, 1].map(|handle| (handle, 300 * 1024));
    let mut session = Session::new(layout, FIRST, calls.into_iter());
    add_files_grown_in_turn(&mut session, &files, 0);
    assert!(session.layout().reserved_blocks() > 0);
    run(&mut session);
    assert!(session.is_full());
    assert_eq!(session.layout().free_blocks(), 0);
}

#[test]
fn off_line_moves_keep_every_block_of_every_file() {
    for (from, to) in [
        (Variant::Traxtent, Variant::Traxtent),
        (Variant::Unmodified, Variant::Traxtent),
        (Variant::Unmodified, Variant::Unmodified),
    ] {
        let mut session = aged(layout(from, 4), 0.8, 3);
        let disk = contents(&session);
        let batches = reorganize(&mut session, layout(to, 4)).expect("80 % fit");
        assert_space_adds_up(&session);
        let after = moved(disk, &batches);
        assert_eq!(after, contents(&session), "{from:?} to {to:?}");
        let written: usize = batches.iter().map(Vec::len).sum();
        assert!(written <= 2 * after.len(), "{written} blocks are written for {}", after.len());
    }
}

#[test]
fn reorganisation_that_does_not_fit_moves_nothing() {
    let mut session = aged(layout(Variant::Unmodified, 4), 0.97, 1);
    let before = contents(&session);
    assert_eq!(reorganize(&mut session, layout(Variant::Traxtent, 4)), None);
    assert_eq!(contents(&session), before);
}

#[test]
fn retrofitted_disk_excludes_blocks_once_they_are_freed() {
    let mut session = aged(layout(Variant::Unmodified, 4), 0.6, 1);
    let all = layout(Variant::Traxtent, 4).excluded_blocks();
    session = session.retrofitted(Variant::Traxtent);
    let excluded = session.layout().excluded_blocks();
    assert!(excluded > 0 && excluded < all, "{excluded} of {all}");
    assert_space_adds_up(&session);
    let handles: Vec<u32> = session.files.keys().copied().collect();
    handles.into_iter().for_each(|handle| session.remove(handle));
    let names = session.directories.paired_blocks(&session.directories);
    let split = names.iter().filter(|moved| session.layout().tracks().split(moved.0)).count() as u32;
    assert_eq!(session.layout().excluded_blocks() + split, all);
}

/// Runs a program to its end, with the time at which it wants to be called.
fn run_in_time<P: Iterator<Item = Call>>(session: &mut Session<P>) -> (Vec<Request>, Instant) {
    let service = Nanos::from_ms(10.0);
    let (mut requests, mut out) = (Vec::new(), std::collections::VecDeque::new());
    let (mut now, mut free) = (Instant::ZERO, Instant::ZERO);
    loop {
        match session.poll(now) {
            Poll::Issue(issue) => {
                free = free.max(now) + service;
                out.push_back((free, issue.id));
                requests.push(Request { lbn: Lbn(issue.request.lbn.0 - FIRST.0), ..issue.request });
            }
            Poll::Done => return (requests, now),
            Poll::Compute { .. } => panic!("calls without costs need no processor"),
            Poll::Later(until) if out.front().is_none_or(|(end, _)| *end > until) => now = now.max(until),
            Poll::Later(_) | Poll::Waiting => {
                let (end, id) = out.pop_front().expect("a load that waits has asked");
                now = now.max(end);
                session.handle_completion(now, id);
            }
        }
    }
}

fn idle(layout: Layout, utilisation: f64, time: Nanos) -> Session<std::vec::IntoIter<Call>> {
    let mut session = Session::new(layout, FIRST, vec![Call::Pause(time)].into_iter());
    age(&mut session, plan(utilisation, 5));
    session
}

#[test]
fn on_line_moves_keep_every_block_and_lessen_requests() {
    for retrofit in [false, true] {
        let from = if retrofit { Variant::Unmodified } else { Variant::Traxtent };
        let mut session = idle(layout(from, 4), 0.7, Nanos::from_secs(3600));
        session = session.retrofitted(Variant::Traxtent);
        let needs = |session: &Session<_>| -> usize {
            let files = session.files.values();
            files.map(|open| super::super::moving::requests_of(&open.file, session.layout())).sum()
        };
        let (disk, before) = (contents(&session), needs(&session));
        let mut session = session.with_on_line_reorganisation(0.5);
        let (requests, _) = run_in_time(&mut session);
        assert!(session.moves().len() > 20, "{} files moved", session.moves().len());
        // Each file has its blocks' content where it reads them.
        assert_eq!(moved(disk, session.moves()), contents(&session));
        assert_space_adds_up(&session);
        assert!(needs(&session) < before, "{} of {before} requests", needs(&session));
        // Every block that was moved was read and written.
        let moves: Vec<MovedBlock> = session.moves().concat();
        let from: Vec<u32> = moves.iter().map(|moved| moved.from).collect();
        let to: Vec<u32> = moves.iter().map(|moved| moved.to).collect();
        assert!(times(&requests, Op::Read, &from).iter().all(|times| *times > 0));
        assert!(times(&requests, Op::Write, &to).iter().all(|times| *times > 0));
    }
}

#[test]
fn on_line_moves_take_their_share_of_the_time() {
    for share in [0.1, 0.5] {
        let mut session = idle(layout(Variant::Traxtent, 4), 0.7, Nanos::from_secs(20));
        session = session.with_on_line_reorganisation(share);
        let (requests, end) = run_in_time(&mut session);
        let busy = requests.len() as f64 * 0.01 / end.as_secs();
        assert!((busy / share - 1.0).abs() < 0.05, "{busy} of {share}");
    }
}

#[test]
fn file_that_changes_while_it_is_moved_stays() {
    let handle = 0;
    // Written at once, while the mover reads it.
    let calls = vec![
        Call::Pause(Nanos::from_ms(25.0)),
        Call::Append(handle, 3 * BLOCK_BYTES),
        Call::Close(handle),
        Call::Pause(Nanos::from_ms(200.0)),
    ];
    let mut session = Session::new(layout(Variant::Traxtent, 4), FIRST, calls.into_iter());
    add_files_grown_in_turn(&mut session, &[0, 1, 2].map(|handle| (handle, MB)), 0);
    let mut session = session.with_on_line_reorganisation(1.0);
    let (before, (_, _)) = (session.blocks_of(handle).to_vec(), run_in_time(&mut session));
    assert_eq!(session.blocks_of(handle)[..before.len()], before[..]);
    assert_space_adds_up(&session);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn aged_and_reorganised_files_keep_their_blocks(seed in 0u64..1000, utilisation in 0.3f64..0.85, preallocates: bool) {
        let make = || {
            let layout = layout(Variant::Traxtent, 2);
            if preallocates { layout.with_preallocation() } else { layout }
        };
        let mut session = aged(make(), utilisation, seed);
        assert_space_adds_up(&session);
        let tracks = session.layout().tracks().clone();
        prop_assert!(contents(&session).keys().all(|block| !tracks.split(*block)));
        let disk = contents(&session);
        if let Some(batches) = reorganize(&mut session, make()) {
            let after = moved(disk, &batches);
            prop_assert_eq!(after, contents(&session));
            assert_space_adds_up(&session);
        }
    }
}
