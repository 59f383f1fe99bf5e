//! Laws of blocks that vary in size.

use super::*;

fn sectors_of(fitted: &FittedBlocks, block: u32) -> std::ops::Range<u64> {
    fitted.disk_sectors(sector_of(block)..sector_of(block + 1))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn blocks_fill_every_track_without_a_gap(lengths in prop::collection::vec(16u64..900, 1..40)) {
        let starts: Vec<u64> = lengths.iter().scan(0, |end, length| { *end += length; Some(*end - length) }).collect();
        let end = lengths.iter().sum();
        let tracks = TrackList::new(starts.iter().copied(), end).expect("tracks ascend");
        let fitted = FittedBlocks::new(&tracks);
        let counted = fitted.counted_tracks();
        let blocks = (counted.sectors() / u64::from(BLOCK_SECTORS)) as u32;
        let mut next = 0;
        for block in 0..blocks {
            let sectors = sectors_of(&fitted, block);
            prop_assert_eq!(sectors.start, next);
            let length = sectors.end - sectors.start;
            prop_assert!((8..=16).contains(&length), "{length} sectors");
            prop_assert_eq!(u64::from(fitted.sectors(block)), length);
            prop_assert!(tracks.end_of(sectors.start) >= sectors.end, "no block lies on two tracks");
            prop_assert!(!counted.split(block));
            next = sectors.end;
        }
        prop_assert_eq!(next, end);
        for (start, length) in starts.iter().zip(&lengths) {
            let counted_start = (0..blocks).find(|block| sectors_of(&fitted, *block).start == *start);
            let block = counted_start.expect("a block begins with each track");
            prop_assert_eq!(u64::from(counted.blocks_left(block)), length.div_ceil(16));
        }
    }
}

#[test]
fn file_has_blocks_for_all_its_bytes_and_is_read_without_a_gap() {
    let physical = tracks(4);
    let layout = || Layout::with_fitted_blocks(&physical, NextGroup::Following);
    let bytes = 20 * MB;
    let blocks = Session::new(layout(), FIRST, scan(0)).with_file(0, bytes).blocks_of(0).to_vec();
    assert!(blocks.len() as u64 > bytes / BLOCK_BYTES, "blocks are smaller than 8 KB");
    let fitted = FittedBlocks::new(&physical);
    let capacity: u64 = blocks.iter().map(|block| u64::from(fitted.sectors(*block)) * 512).sum();
    assert!((bytes..bytes + BLOCK_BYTES).contains(&capacity), "{capacity}");
    let all = blocks.len() as u64 * BLOCK_BYTES;
    let mut session = Session::new(layout(), FIRST, scan(all)).with_file(0, bytes);
    let requests = run(&mut session);
    let reads: Vec<&Request> = requests.iter().filter(|request| request.sectors > BLOCK_SECTORS).collect();
    let whole = reads.iter().filter(|request| u64::from(request.sectors) == TRACK).count();
    assert!(whole as u64 * TRACK * 512 > 19 * MB, "{whole} whole tracks");
    assert!(reads.iter().all(|request| !crosses(&physical, request)));
    assert_eq!(session.layout().excluded_blocks(), 0);
}
