//! The emulated disk: the same times as the simulator's, and the bytes that were written.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "tests of threads use threads")]

mod common;

use common::emulator;
use headstack_host::disk::{Answered, Emulator, EmulatorFaults, Kind, Outcome, Store, Volume};
use headstack_host::{Answer, BlockError, Caller, Clock, Disk, Operation, Timing};
use headstack_model::{Instant, Lbn, Nanos, Request, drives};
use headstack_sim::rig::shipped;
use headstack_sim::{Device, DeviceOptions, Fault};
use std::sync::mpsc::{Sender, channel};

/// Steps it until nothing is in flight; all completions, by ticket.
fn finish(emulator: &mut Emulator) -> Vec<Answered> {
    let mut over = Vec::new();
    while emulator.outstanding() > 0 {
        let next = emulator.poll_timeout().expect("operations are in flight");
        emulator.handle_timeout(next);
        over.extend(std::iter::from_fn(|| emulator.poll_answer()));
    }
    over.extend(std::iter::from_fn(|| emulator.poll_answer()));
    over.sort_by_key(|answered| answered.ticket);
    over
}

#[test]
fn operation_takes_the_time_of_the_model() {
    let spec = drives::load("atlas-10k").expect("the drive is shipped");
    let mut device = Device::new(&spec, &DeviceOptions::default()).expect("the drive is good");
    let mut emulator = emulator("atlas-10k", EmulatorFaults::default());
    let mut now = Instant(1000);
    for ticket in 0..50 {
        let lbn = ticket * 300_017 % 17_000_000;
        device.submit(now, Request::read(Lbn(lbn), 8)).expect("the queue is empty");
        emulator.submit(now, 0, Operation::Read { offset: lbn * 512, bytes: 4096, fua: false }, ticket);
        let completion = loop {
            let next = device.poll_timeout().expect("a read is in flight");
            device.handle_timeout(next);
            if let Some(completion) = device.poll_completion() {
                break completion;
            }
        };
        let over = finish(&mut emulator);
        assert_eq!((over.len(), over[0].ticket, over[0].at), (1, ticket, completion.completed));
        now = completion.completed;
    }
}

#[test]
fn long_operation_ends_with_its_last_piece() {
    let mut emulator = emulator("atlas-10k", EmulatorFaults::default());
    let bytes = 10 << 20;
    emulator.submit(Instant::ZERO, 0, Operation::Write { offset: 0, data: vec![5; bytes], fua: true }, 1);
    emulator.submit(Instant::ZERO, 0, Operation::Read { offset: 1, bytes: 9, fua: false }, 2);
    let over = finish(&mut emulator);
    assert!(over[1].at < over[0].at, "a short operation goes between the pieces of a long one");
    assert!(over[0].at > Instant::from_ms(300.0), "ten megabytes take their time: {}", over[0].at);
    assert_eq!(over[1].result, Ok(Outcome::Read { volume: 0, offset: 1, bytes: 9 }));
    let mut read = [0; 9];
    emulator.read(0, (bytes - 9) as u64, &mut read).expect("it is inside");
    assert_eq!(read, [5; 9]);
}

#[test]
fn misaligned_or_out_of_range_operation_is_rejected() {
    let mut emulator = emulator("atlas-10k", EmulatorFaults::default());
    let end = emulator.volumes()[0].info().bytes();
    let write = |offset, bytes| Operation::Write { offset, data: vec![0; bytes], fua: false };
    let refused = [
        write(512, 100),
        write(100, 512),
        write(end, 512),
        write(0, 0),
        Operation::Read { offset: end - 1, bytes: 2, fua: false },
        Operation::Read { offset: u64::MAX, bytes: 2, fua: false },
        Operation::Trim { offset: 1, bytes: 512 },
        Operation::WriteZeroes { offset: end - 512, bytes: 1024, may_trim: true, fua: false },
    ];
    for (ticket, operation) in refused.into_iter().enumerate() {
        emulator.submit(Instant(ticket as u64), 0, operation.clone(), ticket as u64);
        let answered = emulator.poll_answer().expect("it is answered at once");
        assert_eq!(answered.result, Err(BlockError::Invalid), "{operation:?}");
    }
}

#[test]
fn ignored_flush_is_acknowledged_at_once() {
    let mut emulator = emulator("st2000dm006", EmulatorFaults { ignore_flush: true, ..Default::default() });
    emulator.submit(Instant(5), 0, Operation::Write { offset: 0, data: vec![1; 4096], fua: true }, 0);
    emulator.submit(Instant(6), 0, Operation::Flush, 1);
    assert_eq!(emulator.poll_answer().map(|answered| answered.ticket), Some(1));
}

#[test]
fn stopping_disk_ends_a_long_operation_after_its_piece() {
    let mut emulator = emulator("atlas-10k", EmulatorFaults::default());
    let all = emulator.volumes()[0].info().bytes();
    let zeros = Operation::WriteZeroes { offset: 0, bytes: all, may_trim: false, fua: true };
    emulator.submit(Instant::ZERO, 0, zeros, 0);
    emulator.submit(Instant::ZERO, 0, Operation::Read { offset: all - 512, bytes: 512, fua: false }, 1);
    emulator.handle_timeout(Instant(1_000));
    emulator.stop_long_tasks();
    let over = finish(&mut emulator);
    assert_eq!(over[0].result, Err(BlockError::ShuttingDown));
    assert!(over[1].result.is_ok(), "a short one is done");
    assert!(over[0].at < Instant::from_secs(1), "{}", over[0].at);
}

/// What a block of the media first holds of two writes to it, the second `later` than the first; zero if the second one came
/// when the first was there already.
fn first_on_media(later: Instant) -> u8 {
    let mut emulator = emulator("st2000dm006", EmulatorFaults::default());
    let media = |emulator: &Emulator| {
        let mut byte = [0];
        emulator.volumes()[0].read_media(1 << 30, &mut byte).expect("it is inside");
        byte[0]
    };
    let write = |byte| Operation::Write { offset: 1 << 30, data: vec![byte; 4096], fua: false };
    emulator.submit(Instant::ZERO, 0, write(1), 1);
    emulator.handle_timeout(later);
    if media(&emulator) != 0 {
        return 0;
    }
    emulator.submit(later, 0, write(2), 2);
    while media(&emulator) == 0 {
        let next = emulator.poll_timeout().expect("the cache is written back");
        emulator.handle_timeout(next);
    }
    let first = media(&emulator);
    finish(&mut emulator);
    emulator.submit(later, 0, Operation::Flush, 3);
    finish(&mut emulator);
    assert_eq!((media(&emulator), emulator.volumes()[0].unwritten_bytes()), (2, 0));
    first
}

#[test]
fn access_writes_the_data_cached_at_its_start() {
    // One after the other: overwritten before it begins, during it, and after its end.
    let mut found: Vec<u8> = (1..100).map(|ms| first_on_media(Instant(ms * 1_000_000))).collect();
    found.dedup();
    assert_eq!(found, [2, 1, 0]);
}

/// A drive that dies at a time, and what was written before, within its cache.
fn dying(at: Instant) -> Emulator {
    let rig = shipped::load("st2000dm006").expect("it is shipped");
    let mut engine = rig.build(0).expect("it is good");
    engine.inject(0, Fault::Dead { from: at, timeout: Nanos::ZERO }).expect("any drive can die");
    let info = rig.volumes().remove(0);
    let store = Store::memory(info.bytes()).expect("unused memory is free");
    let volumes = vec![Volume::new(info, store)];
    let mut emulator = Emulator::new(engine, volumes, EmulatorFaults::default()).expect("it is one drive");
    emulator.submit(Instant::ZERO, 0, Operation::Write { offset: 0, data: vec![1; 4096], fua: true }, 0);
    assert_eq!(finish(&mut emulator)[0].result, Ok(Outcome::Done));
    let cached = Operation::Write { offset: 0, data: vec![2; 4096], fua: false };
    emulator.submit(at.saturating_sub(Nanos::from_us(500.0)), 0, cached, 1);
    assert_eq!(finish(&mut emulator)[0].result, Ok(Outcome::Done));
    emulator
}

#[test]
fn dead_drive_rejects_every_operation_and_loses_its_cache() {
    let at = Instant::from_secs(1);
    let mut emulator = dying(at);
    assert_eq!(emulator.volumes()[0].unwritten_bytes(), 4096);
    let now = Instant::from_secs(2);
    let operations = [
        Operation::Allocation { offset: 0, bytes: 4096 },
        Operation::Trim { offset: 0, bytes: 4096 },
        Operation::Write { offset: 8192, data: vec![3; 4096], fua: false },
        Operation::WriteZeroes { offset: 0, bytes: 4096, may_trim: true, fua: false },
        Operation::Read { offset: 0, bytes: 512, fua: false },
        Operation::Flush,
    ];
    for operation in operations {
        emulator.submit(now, 0, operation.clone(), 7);
        assert_eq!(finish(&mut emulator)[0].result, Err(BlockError::Dead), "{operation:?}");
        assert_eq!(emulator.volumes()[0].unwritten_bytes(), 0, "{operation:?}");
    }
    emulator.finish_writing().expect("there is nothing to write");
    let mut media = [9; 2];
    for (place, byte) in [0, 8192].into_iter().zip(&mut media) {
        emulator.volumes()[0].read_media(place, std::slice::from_mut(byte)).expect("it is inside");
    }
    assert_eq!(media, [1, 0], "what was forced to the media is all there is");
}

#[test]
fn idle_drive_loses_its_cache_when_it_dies() {
    let mut emulator = dying(Instant::from_secs(1));
    emulator.handle_timeout(Instant::from_secs(2));
    emulator.finish_writing().expect("there is nothing to write");
    let mut media = [9];
    emulator.volumes()[0].read_media(0, &mut media).expect("it is inside");
    assert_eq!(media, [1]);
}

struct Tell(Sender<Result<Answer, BlockError>>);

impl Caller for Tell {
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>) {
        self.0.send(result).expect("the test waits for it");
    }
}

#[test]
fn running_disk_serves_callers_of_any_thread() {
    let clock = Clock::new(1000.0).expect("it is allowed");
    let emulator = emulator("atlas-10k", EmulatorFaults::default());
    let disk = Disk::start("sda", emulator, clock, Timing::default()).expect("there are threads");
    let callers: Vec<_> = (0..4u8)
        .map(|number| {
            let handle = disk.handle();
            std::thread::spawn(move || {
                let (tell, output) = channel();
                let ask = |operation| {
                    handle.submit(0, operation, Box::new(Tell(tell.clone())));
                    output.recv().expect("the disk answers")
                };
                for turn in 0..100 {
                    let offset = (u64::from(number) * 100 + turn) * 40_960;
                    let data = vec![number + 1; 4096];
                    let done = ask(Operation::Write { offset, data: data.clone(), fua: false });
                    assert_eq!(done, Ok(Answer::Done));
                    assert_eq!(
                        ask(Operation::Read { offset, bytes: 4096, fua: false }),
                        Ok(Answer::Data(data))
                    );
                }
                assert_eq!(ask(Operation::Flush), Ok(Answer::Done));
            })
        })
        .collect();
    callers.into_iter().for_each(|caller| caller.join().expect("no thread failed"));
    assert_eq!(disk.handle().lateness().count(), 804);
    let handle = disk.handle();
    disk.stop().expect("memory has room");
    let (tell, output) = channel();
    handle.submit(0, Operation::Flush, Box::new(Tell(tell)));
    assert_eq!(output.recv(), Ok(Err(BlockError::ShuttingDown)));
}

/// Fails as soon as it is answered.
struct Bomb;

impl Caller for Bomb {
    fn answer(self: Box<Self>, _result: Result<Answer, BlockError>) {
        panic!("a caller that fails, to see what becomes of the others");
    }
}

#[test]
fn failed_disk_thread_answers_every_caller_with_dead() {
    let clock = Clock::new(1.0).expect("it is allowed");
    let emulator = emulator("atlas-10k", EmulatorFaults::default());
    let disk = Disk::start("sda", emulator, clock, Timing::default()).expect("there are threads");
    let handle = disk.handle();
    let (tell, output) = channel();
    // It takes seconds; the second one is over before it, between its pieces.
    let long = Operation::Read { offset: 0, bytes: 64 << 20, fua: false };
    handle.submit(0, long, Box::new(Tell(tell.clone())));
    handle.submit(0, Operation::Read { offset: 1 << 30, bytes: 4096, fua: false }, Box::new(Bomb));
    assert_eq!(output.recv(), Ok(Err(BlockError::Dead)));
    handle.submit(0, Operation::Flush, Box::new(Tell(tell)));
    assert_eq!(output.recv(), Ok(Err(BlockError::Dead)));
    assert_eq!(handle.snapshot().volumes.len(), 1);
    assert_eq!(disk.stop(), Err(BlockError::Dead));
}

#[test]
fn snapshot_reports_operations_and_their_times() {
    let clock = Clock::new(1000.0).expect("it is allowed");
    let emulator = emulator("atlas-10k", EmulatorFaults::default());
    let disk = Disk::start("sda", emulator, clock, Timing::default()).expect("there are threads");
    let handle = disk.handle();
    let (tell, output) = channel();
    let ask = |operation| {
        handle.submit(0, operation, Box::new(Tell(tell.clone())));
        output.recv().expect("the disk answers")
    };
    for turn in 0..20u64 {
        let read = Operation::Read { offset: turn * 400_000_000, bytes: 4096, fua: false };
        assert!(ask(read).is_ok());
    }
    assert!(ask(Operation::Read { offset: u64::MAX, bytes: 1, fua: false }).is_err());
    assert!(ask(Operation::Write { offset: 0, data: vec![1; 512], fua: true }).is_ok());
    assert!(ask(Operation::Allocation { offset: 0, bytes: 512 }).is_ok());
    assert!(ask(Operation::Trim { offset: 0, bytes: 1 << 30 }).is_ok());
    let snapshot = handle.snapshot();
    let books = &snapshot.volumes[0].books;
    let reads = books.count_of(Kind::Read);
    assert_eq!((reads.done, reads.failed, reads.bytes), (20, 1, 81_920));
    assert_eq!((books.all().done, books.all().bytes, books.responses().count()), (22, 82_432, 22));
    let mean_ms = reads.time.as_ms() / 20.0;
    assert!((2.0..20.0).contains(&mean_ms), "{mean_ms}");
    let (view, activity) = snapshot.drives[0];
    assert_eq!(activity.reads.iter().sum::<u64>(), 20);
    assert_eq!((view.queued, snapshot.outstanding, snapshot.is_dark), (0, 0, false));
    assert!(snapshot.at.since_start() >= reads.time, "the disk's time continues");
}
