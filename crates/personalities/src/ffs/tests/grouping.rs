//! Laws of groups of small files.

use super::*;

const FIXED: FileGrouping = FileGrouping { extent: GroupExtent::Blocks(20), most_file_blocks: 8 };
const TRAXTENTS: FileGrouping = FileGrouping { extent: GroupExtent::Traxtent, most_file_blocks: 8 };

/// File systems with groups: of a fixed length without and with tracks, and of tracks.
fn layouts(groups: u32) -> [Layout; 3] {
    let fixed = [Variant::Unmodified, Variant::PartialBlocks];
    let [plain, partial] = fixed.map(|variant| layout(variant, groups).with_grouping(FIXED));
    [plain, partial, layout(Variant::Traxtent, groups).with_grouping(TRAXTENTS)]
}

fn small_files() -> SmallFiles {
    SmallFiles { directories: 6, files_each: 10, least_bytes: 1_000, most_bytes: 12_000, seed: 1 }
}

fn with_files<P: Iterator<Item = Call>>(session: Session<P>, files: &[SmallFile]) -> Session<P> {
    files.iter().fold(session, |session, file| session.with_file_in(file.handle, file.bytes, file.directory))
}

/// Requests for blocks of these files.
fn data_requests<'a, P: Iterator<Item = Call>>(
    session: &Session<P>,
    requests: &'a [Request],
    files: &[SmallFile],
) -> Vec<&'a Request> {
    let own: BTreeSet<u32> =
        files.iter().flat_map(|file| session.blocks_of(file.handle).iter().copied()).collect();
    requests.iter().filter(|request| own.contains(&((request.lbn.0 / 16) as u32))).collect()
}

#[test]
fn directory_of_small_files_is_read_in_one_request_for_each_group() {
    let files = small_files().files();
    for layout in layouts(8) {
        let variant = layout.variant();
        let session = with_files(Session::new(layout, FIRST, small_files().read_all()), &files);
        let mut session = session;
        let requests = run(&mut session);
        let data = data_requests(&session, &requests, &files);
        // Ten files of a block or two each fill one group of 20 blocks at most.
        assert!((6..=12).contains(&data.len()), "{variant:?}: {} requests", data.len());
        let sectors: u32 = data.iter().map(|request| request.sectors).sum();
        let blocks: usize = files.iter().map(|file| session.blocks_of(file.handle).len()).sum();
        assert!(sectors as usize >= blocks * BLOCK_SECTORS as usize, "{variant:?}: all blocks are read");
    }
}

#[test]
fn group_holds_files_of_one_directory() {
    let files = small_files().files();
    for layout in layouts(8) {
        let session = with_files(Session::new(layout, FIRST, scan(0)), &files);
        let mut owners: std::collections::BTreeMap<u32, BTreeSet<u32>> = std::collections::BTreeMap::new();
        for file in &files {
            let open = &session.files[&file.handle].file;
            let group = session.layout().group_of(open, 0).expect("a small file is in a group");
            owners.entry(group).or_default().insert(file.directory);
            let span = session.layout().file_groups().span(group);
            assert!(open.blocks.iter().all(|block| span.contains(block)), "the whole file is in its group");
        }
        assert!(owners.values().all(|directories| directories.len() == 1), "{owners:?}");
    }
}

#[test]
fn files_of_a_directory_are_written_together() {
    let plan = small_files();
    let grouped = layouts(8).map(|layout| {
        let mut session = Session::new(layout, FIRST, plan.create_all());
        run(&mut session);
        session.counts().writes
    });
    let mut plain = Session::new(layout(Variant::Unmodified, 8), FIRST, plan.create_all());
    run(&mut plain);
    assert_eq!(plain.counts().writes, 60, "each file has a write");
    assert!(grouped.iter().all(|writes| (6..=12).contains(writes)), "{grouped:?}");
}

#[test]
fn traxtent_groups_keep_requests_within_tracks() {
    let tracks = tracks(8);
    let layout = layout(Variant::Traxtent, 8).with_grouping(TRAXTENTS);
    let files = small_files().files();
    let calls = small_files().create_all().chain(small_files().read_all());
    let mut session = Session::new(layout, FIRST, calls);
    let requests = run(&mut session);
    let data = data_requests(&session, &requests, &files);
    assert!(!data.is_empty() && data.iter().all(|request| !crosses(&tracks, request)));
}

#[test]
fn large_files_lie_outside_groups() {
    for layout in layouts(4) {
        let session = Session::new(layout, FIRST, scan(0)).with_file(0, MB).with_file(1, 9 * BLOCK_BYTES);
        assert_eq!(session.layout().file_groups().free_slots(), 0);
        assert!(session.files.values().all(|open| open.file.file_group.is_none()));
    }
}

#[test]
fn full_disk_uses_free_slots_of_groups_for_large_files() {
    for layout in layouts(2) {
        let all = layout.blocks();
        let calls = [Call::CreateIn(1, 0), Call::Append(1, 100 * MB), Call::Close(1)];
        let mut session = Session::new(layout, FIRST, calls.into_iter()).with_file(0, 1_000);
        run(&mut session);
        assert!(session.is_full());
        assert_eq!(session.layout().free_blocks(), 0, "of {all} blocks");
    }
}

#[test]
fn two_programs_have_two_requests_outstanding() {
    let plan = small_files();
    let files = plan.files();
    let session = Session::new(layout(Variant::Unmodified, 8), FIRST, plan.pages(20, 1));
    let mut session = with_files(session.with_program(plan.pages(20, 2)), &files);
    let (mut out, mut most, mut now) = (std::collections::VecDeque::new(), 0, Instant::ZERO);
    loop {
        match session.poll(now) {
            Poll::Issue(issue) => out.push_back(issue.id),
            Poll::Done => break,
            Poll::Compute { .. } => panic!("calls without costs need no processor"),
            Poll::Later(_) | Poll::Waiting => {
                most = most.max(out.len());
                now += Nanos::from_ms(1.0);
                session.handle_completion(now, out.pop_front().expect("a load that waits has asked"));
            }
        }
    }
    assert!((2..=4).contains(&most), "{most}");
}

/// Any calls on a few files of three directories.
fn calls_in_directories() -> impl Strategy<Value = Vec<Call>> {
    let call = (0u32..5, 0u32..24, 0u64..90_000).prop_map(|(kind, file, size)| match kind {
        0 | 1 => vec![Call::CreateIn(file, file % 3), Call::Append(file, size), Call::Close(file)],
        2 => vec![Call::Delete(file)],
        3 => vec![Call::Open(file), Call::Append(file, size / 10), Call::Close(file)],
        _ => [Call::Open(file)].into_iter().chain((0..6).map(|block| Call::Read(file, block))).collect(),
    });
    prop::collection::vec(call, 1..120).prop_map(|calls| calls.concat())
}

fn possible_in_directories(calls: Vec<Call>) -> Vec<Call> {
    let mut there = BTreeSet::new();
    let kept = calls.into_iter().filter(|call| match call {
        Call::CreateIn(file, _) => there.insert(*file),
        Call::Delete(file) => there.remove(file),
        _ => true,
    });
    kept.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn grouped_blocks_have_one_owner_and_free_space_adds_up(calls in calls_in_directories()) {
        let calls = possible_in_directories(calls);
        for layout in layouts(2) {
            let (all, excludes) = (layout.blocks(), layout.variant().excludes_blocks());
            let mut session = Session::new(layout, FIRST, calls.iter().copied());
            run(&mut session);
            prop_assert!(!session.is_full());
            let owned: Vec<u32> = session
                .files
                .values()
                .flat_map(|open| open.file.blocks.iter().chain(&open.file.leads).copied())
                .collect();
            let distinct: BTreeSet<u32> = owned.iter().copied().collect();
            prop_assert_eq!(owned.len(), distinct.len());
            let tracks = session.layout().tracks();
            prop_assert!(!excludes || owned.iter().all(|block| !tracks.split(*block)));
            // Three directories at most have a block of names each.
            let directories = session.layout().blocks() - session.layout().free_blocks() - owned.len() as u32;
            prop_assert!(directories <= 3 && all == session.layout().blocks(), "{directories}");
            // All that a program wrote and did not remove is on the disk in the end.
            for open in session.files.values() {
                prop_assert_eq!(open.file.written, open.file.bytes.div_ceil(512));
            }
        }
    }
}
