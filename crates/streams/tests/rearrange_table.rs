//! The region and the table of copies on a disk: how they are recognised and recovered, and which damage is refused.

use headstack_model::Nanos;
use headstack_streams::rearrange::{HotBlock, TableChange};
use headstack_streams::rearrange_table::{
    LABELS_BYTES, PAGE_BYTES, RecoveredTable, RegionLabel, RegionRequest, RegionState, SavedCounts,
    TableError, TableStep, TableWriter, scan_labels,
};
use proptest::prelude::*;
use std::io;

const DISK: u64 = 16 << 20;

fn request(first: Option<u64>) -> RegionRequest {
    let (region_bytes, block_bytes) = (700 * 4096, 4096);
    RegionRequest { id: [9; 16], disk_bytes: DISK, region_bytes, block_bytes, first, counters: Some(20) }
}

fn label() -> RegionLabel {
    RegionLabel::lay_out(&request(None)).expect("the region fits")
}

/// A disk in memory with an empty region.
fn formatted(label: &RegionLabel) -> Vec<u8> {
    let mut disk = vec![0; label.disk_bytes as usize];
    for (first, page) in RecoveredTable::empty_pages(label) {
        put(&mut disk, first, &page);
    }
    let labels = RegionLabel::labels_first(label.disk_bytes).expect("the disk has room");
    [0, PAGE_BYTES as u64].iter().for_each(|place| put(&mut disk, labels + place, &label.encode()));
    disk
}

fn put(disk: &mut [u8], first: u64, bytes: &[u8]) {
    disk[first as usize..first as usize + bytes.len()].copy_from_slice(bytes);
}

fn reader(disk: &[u8]) -> impl FnMut(u64, &mut [u8]) -> io::Result<()> + '_ {
    move |first: u64, into: &mut [u8]| {
        into.copy_from_slice(&disk[first as usize..first as usize + into.len()]);
        Ok(())
    }
}

fn find(disk: &[u8]) -> Result<Option<RegionLabel>, TableError> {
    RecoveredTable::find(disk.len() as u64, &mut reader(disk))
}

fn recover(disk: &[u8]) -> Result<RecoveredTable, TableError> {
    RecoveredTable::read(find(disk)?.expect("the disk has a region"), &mut reader(disk))
}

fn refusal(disk: &[u8]) -> String {
    recover(disk).expect_err("the table is refused").to_string()
}

/// Executes the steps of a writer until there are none. Each write reaches the disk immediately.
fn carry_out(writer: &mut TableWriter, label: &RegionLabel, disk: &mut [u8]) {
    while let Some(step) = writer.poll_step() {
        if let TableStep::Write { copy, page } = step {
            put(disk, label.page_first(copy, page), &writer.page(page));
        }
        writer.handle_end(true);
    }
}

/// A disk in use, whose table has copies of blocks 5 (slot 0) and 7 (slot 650).
fn used() -> (RegionLabel, Vec<u8>) {
    let label = label();
    let mut disk = formatted(&label);
    let mut writer = TableWriter::new(&recover(&disk).expect("it is formatted"));
    carry_out(&mut writer, &label, &mut disk);
    for (slot, block) in [(0, 5), (650, 7)] {
        writer.change(TableChange { slot, block: Some(block) });
        carry_out(&mut writer, &label, &mut disk);
    }
    (label, disk)
}

proptest! {
    #[test]
    fn parts_of_a_region_neither_overlap_nor_leave_the_disk(
        disk in 1u64..40_000,
        slots in 1u64..3000,
        block in 1u64..5,
        first in prop::option::of(0u64..10_000),
        counters in prop::option::of(0u32..5000),
    ) {
        let (disk_bytes, block_bytes) = (disk * 512, block * 4096);
        let region_bytes = slots * block_bytes;
        let first = first.map(|page| page * 4096);
        let request = RegionRequest { id: [1; 16], disk_bytes, region_bytes, block_bytes, first, counters };
        let Ok(label) = RegionLabel::lay_out(&request) else { return Ok(()) };
        let ends = [
            label.slots_first + label.slots_bytes(),
            label.table_first(0),
            label.table_first(1),
            label.counts_first(0),
            label.counts_first(1),
            RegionLabel::labels_first(disk_bytes).expect("the region fits"),
            disk_bytes,
        ];
        prop_assert!(ends.windows(2).all(|pair| pair[0] <= pair[1]), "{ends:?}");
        let visible = label.visible_bytes().expect("the region fits");
        prop_assert!(visible >= block_bytes);
        prop_assert_eq!(visible, disk_bytes - label.slots_bytes() - (disk_bytes - label.table_first(0)));
        prop_assert!(label.slot_list().iter().all(|slot| label.region().expect("it fits").visible(slot.lbn).is_none()));
        let labels = [label.encode(), label.encode()].concat();
        prop_assert_eq!(scan_labels(&labels, disk_bytes).expect("it is whole"), Some(label));
    }
}

#[test]
fn region_is_recognised_by_either_label_and_refused_without_a_whole_one() {
    let label = label();
    let disk = formatted(&label);
    let first = RegionLabel::labels_first(DISK).expect("the disk has room") as usize;
    assert_eq!(find(&disk[..first]).expect("it is bare"), None);
    for damaged in [0, PAGE_BYTES] {
        let mut disk = disk.clone();
        disk[first + damaged + 40] ^= 1;
        assert_eq!(find(&disk).expect("the other is whole"), Some(label));
        disk[first + damaged..first + damaged + PAGE_BYTES].fill(0);
        assert_eq!(find(&disk).expect("the other is whole"), Some(label));
    }
    let mut damaged = disk.clone();
    damaged[first + 100] ^= 1;
    damaged[first + PAGE_BYTES + 100] ^= 1;
    let said = find(&damaged).expect_err("both are damaged").to_string();
    assert!(
        said.starts_with("the labels of its reserved region are damaged (pages 4094 and 4095)"),
        "{said}"
    );
    let mut longer = vec![0; LABELS_BYTES];
    longer.extend(&disk);
    let said = find(&longer).expect_err("it is another disk's").to_string();
    assert!(said.contains("made on a disk of 16777216 bytes, and this one has 16785408"), "{said}");
}

#[test]
fn damage_to_one_copy_of_the_table_is_repaired_and_to_both_refused() {
    let (label, disk) = used();
    let copies = [(0, 5, true), (650, 7, true)];
    for page in [0, 1] {
        for copy in [0, 1] {
            let mut disk = disk.clone();
            let place = label.page_first(copy, page) as usize;
            disk[place + 3000] ^= 0x40;
            let table = recover(&disk).expect("the other copy is whole");
            assert_eq!(table.copies().collect::<Vec<_>>(), copies);
            let mut writer = TableWriter::new(&table);
            assert!(!writer.is_open(), "the damaged copy must be written");
            assert_eq!(writer.poll_step(), Some(TableStep::Flush));
            writer.handle_end(true);
            assert_eq!(writer.poll_step(), Some(TableStep::Write { copy, page }), "not the only whole one");
            put(&mut disk, label.page_first(copy, page), &writer.page(page));
            writer.handle_end(true);
            carry_out(&mut writer, &label, &mut disk);
            let other = label.page_first(1 - copy, page) as usize;
            disk[other + 3000] ^= 0x40;
            let table = recover(&disk).expect("the damaged copy was repaired");
            assert_eq!(table.copies().collect::<Vec<_>>(), copies);
            disk[place + 3000] ^= 0x40;
            assert!(
                refusal(&disk).starts_with(&format!("page {page} of its hot block table is damaged in both"))
            );
        }
    }
}

#[test]
fn newer_one_of_two_whole_copies_of_a_page_counts_and_the_other_is_written_first() {
    let (label, disk) = used();
    let before = formatted(&label);
    for old in [0, 1] {
        let mut disk = disk.clone();
        let place = label.page_first(old, 1) as usize;
        disk[place..place + PAGE_BYTES].copy_from_slice(&before[place..place + PAGE_BYTES]);
        let table = recover(&disk).expect("both are whole");
        assert_eq!(table.copies().collect::<Vec<_>>(), [(0, 5, true), (650, 7, true)]);
        let mut writer = TableWriter::new(&table);
        assert_eq!(writer.poll_step(), Some(TableStep::Flush));
        writer.handle_end(true);
        assert_eq!(writer.poll_step(), Some(TableStep::Write { copy: old, page: 1 }));
    }
}

#[test]
fn table_of_another_region_or_with_impossible_entries_is_refused() {
    let (label, disk) = used();
    let other = RegionLabel { id: [8; 16], ..label };
    let mut foreign = disk.clone();
    for (first, page) in RecoveredTable::empty_pages(&other) {
        put(&mut foreign, first, &page);
    }
    assert!(refusal(&foreign).starts_with("page 0 of its hot block table is of another disk's region"));
    for (slot, block) in [(1, 5), (3, u64::MAX >> 8)] {
        let mut disk = disk.clone();
        let mut writer = TableWriter::new(&recover(&disk).expect("it is whole"));
        writer.change(TableChange { slot, block: Some(block) });
        carry_out(&mut writer, &label, &mut disk);
        let said = refusal(&disk);
        assert!(
            said.starts_with(&format!("its hot block table is invalid (slot {slot}, block {block})")),
            "{said}"
        );
    }
    let mut half = disk;
    let emptied = RegionLabel { state: RegionState::Emptied, ..label };
    let labels = RegionLabel::labels_first(DISK).expect("the disk has room");
    put(&mut half, labels + PAGE_BYTES as u64, &emptied.encode());
    assert_eq!(
        refusal(&half),
        "its reserved region is half dissolved: run `headstack rearrange dissolve` again"
    );
}

#[test]
fn copies_are_clean_only_in_a_table_that_was_closed() {
    let (label, mut disk) = used();
    let mut writer = TableWriter::new(&recover(&disk).expect("it is whole"));
    assert!(writer.is_open(), "both copies of each page are equal and open");
    writer.close(|slot| slot == 650);
    carry_out(&mut writer, &label, &mut disk);
    assert!(writer.is_closed());
    let closed = recover(&disk).expect("it is whole");
    assert_eq!(closed.copies().collect::<Vec<_>>(), [(0, 5, true), (650, 7, false)]);
    let mut writer = TableWriter::new(&closed);
    assert!(!writer.is_open(), "the disk must say that copies are in use");
    carry_out(&mut writer, &label, &mut disk);
    assert!(writer.is_open());
    let open = recover(&disk).expect("it is whole");
    assert_eq!(open.copies().collect::<Vec<_>>(), [(0, 5, true), (650, 7, true)]);
}

#[test]
fn change_is_in_force_after_its_page_is_flushed() {
    let (label, disk) = used();
    let mut writer = TableWriter::new(&recover(&disk).expect("it is whole"));
    writer.change(TableChange { slot: 1, block: Some(9) });
    writer.change(TableChange { slot: 2, block: Some(8) });
    let mut step = || {
        let step = writer.poll_step().expect("a step follows");
        assert_eq!(writer.poll_step(), None);
        let recorded = writer.poll_recorded();
        writer.handle_end(true);
        (step, recorded)
    };
    let write = |copy| TableStep::Write { copy, page: 0 };
    let first: Vec<(TableStep, Option<u32>)> = (0..4).map(|_| step()).collect();
    let first_copy = if first[1].0 == write(0) { 0 } else { 1 };
    let flush = TableStep::Flush;
    assert_eq!(
        first,
        [(flush, None), (write(first_copy), None), (flush, None), (write(1 - first_copy), Some(1))]
    );
    // A change that arrives while a batch is being written belongs to the next batch.
    assert_eq!([step().0, step().0], [flush, write(first_copy)]);
    assert_eq!(label.pages(), 2);
}

#[test]
fn failed_step_ends_the_writing() {
    let (_, disk) = used();
    let mut writer = TableWriter::new(&recover(&disk).expect("it is whole"));
    writer.change(TableChange { slot: 1, block: Some(9) });
    assert_eq!(writer.poll_step(), Some(TableStep::Flush));
    writer.handle_end(false);
    writer.change(TableChange { slot: 2, block: Some(8) });
    assert!(writer.has_failed() && !writer.is_idle());
    assert_eq!((writer.poll_step(), writer.poll_recorded()), (None, None));
}

#[test]
fn newest_whole_save_of_counts_counts() {
    let label = label();
    let mut disk = formatted(&label);
    let hot = |count| vec![HotBlock { block: 3, count, error: 1 }, HotBlock { block: 1, count: 2, error: 0 }];
    let save = |sequence| SavedCounts { sequence, left: Nanos(5), hot: hot(sequence + 10) };
    for sequence in 1..4 {
        let table = recover(&disk).expect("it is whole");
        put(&mut disk, label.counts_first(table.next_area()), &save(sequence).encode(&label.id));
        let table = recover(&disk).expect("it is whole");
        assert_eq!(table.counts(), Some(&save(sequence)));
    }
    let newest = label.counts_first(0) as usize;
    disk[newest + PAGE_BYTES + 8] ^= 1;
    let table = recover(&disk).expect("counts may be damaged");
    assert_eq!((table.counts(), table.next_area()), (Some(&save(2)), 0));
}
