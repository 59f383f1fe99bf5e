//! Faults that a test sets and clears while an emulated disk runs.

mod common;

use common::emulator;
use headstack_host::disk::{
    Answered, Emulator, EmulatorFaults, FaultEffect, FaultRule, Outcome, StruckOperations,
};
use headstack_host::{BlockError, Operation};
use headstack_model::{Instant, Lbn, Nanos};

const RULE: FaultRule = FaultRule {
    volume: None,
    operations: StruckOperations::Any,
    blocks: None,
    head: None,
    skip: 0,
    count: None,
    effect: FaultEffect::Fail,
};

fn disk() -> Emulator {
    emulator("atlas-10k", EmulatorFaults::default())
}

/// Submits an operation when the disk is idle, and returns its answer.
fn answer(emulator: &mut Emulator, now: Instant, operation: Operation) -> Answered {
    emulator.submit(now, 0, operation, 7);
    loop {
        if let Some(answered) = emulator.poll_answer() {
            return answered;
        }
        let next = emulator.poll_timeout().expect("an operation is in flight");
        emulator.handle_timeout(next);
    }
}

fn read(lbn: u64) -> Operation {
    Operation::Read { offset: lbn * 512, bytes: 4096, fua: true }
}

fn write(lbn: u64, byte: u8) -> Operation {
    Operation::Write { offset: lbn * 512, data: vec![byte; 4096], fua: true }
}

fn bytes(emulator: &Emulator, lbn: u64) -> Vec<u8> {
    let mut bytes = vec![0; 4096];
    emulator.read(0, lbn * 512, &mut bytes).expect("it is inside");
    bytes
}

#[test]
fn failing_write_changes_nothing_and_reads_succeed() {
    let mut emulator = disk();
    answer(&mut emulator, Instant::ZERO, write(100, 1)).result.expect("no fault is set");
    let rule = FaultRule { operations: StruckOperations::Writes, blocks: Some(104..105), ..RULE };
    let number = emulator.rules().add(rule);
    let now = Instant::from_secs(1);
    assert_eq!(answer(&mut emulator, now, write(100, 2)).result, Err(BlockError::Medium));
    assert!(answer(&mut emulator, now, read(100)).result.is_ok());
    assert!(answer(&mut emulator, now, write(200, 2)).result.is_ok());
    assert_eq!(bytes(&emulator, 100), [1; 4096]);
    assert_eq!(emulator.rules().remove(|other, _| other == number), 1);
    assert!(answer(&mut emulator, Instant::from_secs(2), write(100, 2)).result.is_ok());
    assert_eq!(bytes(&emulator, 100), [2; 4096]);
}

#[test]
fn nth_read_alone_is_later_by_a_fixed_time() {
    let (mut slow, mut sound) = (disk(), disk());
    let effect = FaultEffect::Delay(Nanos::from_ms(700.0));
    let operations = StruckOperations::Reads;
    slow.rules().add(FaultRule { operations, skip: 1, count: Some(1), effect, ..RULE });
    for (number, lbn) in [5_000_000, 17, 9_000_000].into_iter().enumerate() {
        let now = Instant::from_secs(10 * number as u64);
        let usual = answer(&mut sound, now, read(lbn)).at;
        let late = Nanos::from_ms(if number == 1 { 700.0 } else { 0.0 });
        assert_eq!(answer(&mut slow, now, read(lbn)).at, usual + late, "read {number}");
    }
    assert!(slow.rules().all().is_empty() && slow.outstanding() == 0);
}

#[test]
fn corruption_is_silent_and_stays_until_the_block_is_written() {
    let mut emulator = disk();
    answer(&mut emulator, Instant::ZERO, write(100, 8)).result.expect("no fault is set");
    let rule = FaultRule { effect: FaultEffect::Corrupt, count: Some(1), ..RULE };
    emulator.rules().add(FaultRule {
        operations: StruckOperations::Reads,
        blocks: Some(101..102),
        ..rule.clone()
    });
    let mut expected = vec![8; 4096];
    expected[512] = 9;
    let now = Instant::from_secs(1);
    for _ in 0..2 {
        assert!(matches!(answer(&mut emulator, now, read(100)).result, Ok(Outcome::Read { .. })));
        assert_eq!(bytes(&emulator, 100), expected);
    }
    answer(&mut emulator, Instant::from_secs(2), write(100, 8)).result.expect("it is only the data");
    assert_eq!(bytes(&emulator, 100), [8; 4096]);
    emulator.rules().add(FaultRule { operations: StruckOperations::Writes, ..rule });
    answer(&mut emulator, Instant::from_secs(3), write(300, 8)).result.expect("it is silent");
    let found = bytes(&emulator, 300);
    assert!(found.chunks(512).all(|block| block[0] == 9 && block[1..].iter().all(|byte| *byte == 8)));
}

#[test]
fn disk_that_was_gone_comes_back_with_its_data() {
    let mut emulator = disk();
    answer(&mut emulator, Instant::ZERO, write(100, 3)).result.expect("no fault is set");
    emulator.rules().add(FaultRule { effect: FaultEffect::Gone, ..RULE });
    let now = Instant::from_secs(1);
    for operation in
        [read(100), write(100, 4), Operation::Flush, Operation::Allocation { offset: 0, bytes: 512 }]
    {
        assert_eq!(answer(&mut emulator, now, operation).result, Err(BlockError::Dead));
    }
    emulator.rules().remove(|_, rule| rule.effect == FaultEffect::Gone);
    assert!(answer(&mut emulator, now, read(100)).result.is_ok());
    assert_eq!(bytes(&emulator, 100), [3; 4096]);
}

#[test]
fn blocks_under_one_head_fail_and_the_others_do_not() {
    let mut emulator = disk();
    emulator.rules().add(FaultRule { operations: StruckOperations::Reads, head: Some(2), ..RULE });
    let mut failed = 0;
    for step in 0..60_u64 {
        let lbn = step * 290_003 % 17_000_000;
        let geometry = emulator.geometry(0).expect("it is one drive");
        let is_bad = (lbn..lbn + 8).any(|lbn| geometry.locate(Lbn(lbn)).head == 2);
        let found = answer(&mut emulator, Instant::from_secs(step), read(lbn)).result;
        assert_eq!(found.is_err(), is_bad, "block {lbn}");
        failed += u32::from(is_bad);
    }
    assert!((1..59).contains(&failed), "{failed}");
}
