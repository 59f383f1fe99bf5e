//! How a FLUSH affects reads, with NCQ and with SCSI's tagged commands.
//!
//! *Source:* ACS-3, FLUSH CACHE EXT: the command is not queued, so the host waits for all queued commands before it sends it, and sends no
//! other until it has ended. SBC-3, SYNCHRONIZE CACHE, with SAM-5, task attributes: the command is queued. With SIMPLE it may be served
//! before or after any other and excludes none; with HEAD OF QUEUE it is served first.

use crate::support::*;
use headstack_model::spec::{Tagging, WriteCache};
use headstack_model::{Instant, Op, Request};
use headstack_sim::{Command, Device, TaskAttribute};

/// Number of scattered blocks that are only in the cache when the flush is submitted.
const DIRTY: u64 = 20;

/// The small drives with a write cache that destages only on a flush.
fn caching(tagging: Tagging) -> Vec<Rig> {
    let cached = |rig: &Rig| {
        rig.plain().with(|spec| {
            spec.cache.enabled = true;
            spec.cache.write_cache = WriteCache::Full;
            (spec.cache.dirty_max_sectors, spec.cache.dirty_start_sectors) = (600, 600);
            spec.cache.destage_idle_ms = 1e6;
            (spec.queue.depth, spec.queue.tagging) = (32, Some(tagging));
        })
    };
    small().iter().map(cached).collect()
}

/// A device of the rig with [`DIRTY`] dirty blocks in its cache, and the time.
fn dirty(rig: &Rig) -> (Device, Instant) {
    let (mut device, mut now, mut random) = (rig.device(), Instant::ZERO, seeded(71));
    for _ in 0..DIRTY {
        now = serve(&mut device, now, Request::write(any_lbn(&mut random, rig, 1), 1)).completed;
    }
    assert_eq!(device.activity().destages.accesses, 0, "{}: all is in the cache", rig.name());
    (device, now)
}

fn reads(rig: &Rig, count: usize) -> Vec<Request> {
    let mut random = seeded(72);
    (0..count).map(|_| Request::read(any_lbn(&mut random, rig, 1), 1)).collect()
}

fn flush(attribute: TaskAttribute) -> Command {
    Command { attribute, ..Request::flush().into() }
}

#[test]
fn queued_flush_alternates_reads_and_destages() {
    for rig in caching(Tagging::Tcq) {
        let (mut device, now) = dirty(&rig);
        device.submit(now, flush(TaskAttribute::Simple)).expect("the queue is empty");
        for read in reads(&rig, 10) {
            device.submit(now, read).expect("the queue is deep enough");
        }
        for done in 0..10u64 {
            let read = next(&mut device);
            assert_eq!(read.request.op, Op::Read, "{}: {done} reads before the flush", rig.name());
            // One destage may precede each read, and another may have begun when the last read completed.
            let written = device.activity().destages.accesses;
            assert!(written <= done + 2, "{}: {written} destages before read {done} was done", rig.name());
        }
        assert_eq!(next(&mut device).request.op, Op::Flush);
        assert_eq!(device.activity().destages.accesses, DIRTY, "{}", rig.name());
    }
}

#[test]
fn queued_flush_completes_under_continuous_reads() {
    for rig in caching(Tagging::Tcq) {
        let (mut device, mut now) = dirty(&rig);
        device.submit(now, flush(TaskAttribute::Simple)).expect("the queue is empty");
        let mut reads = reads(&rig, 1000).into_iter();
        let mut served = 0;
        loop {
            while device.outstanding() < 16 {
                device.submit(now, reads.next().expect("the flush ends before")).expect("there is room");
            }
            let done = next(&mut device);
            now = done.completed;
            if done.request.op == Op::Flush {
                break;
            }
            served += 1;
        }
        assert!(served <= DIRTY + 2, "{}: {served} reads went before {DIRTY} destages", rig.name());
    }
}

#[test]
fn head_of_queue_flush_does_not_wait_for_reads() {
    for rig in caching(Tagging::Tcq) {
        let (mut device, now) = dirty(&rig);
        for read in reads(&rig, 10) {
            device.submit(now, read).expect("the queue is deep enough");
        }
        device.submit(now, flush(TaskAttribute::HeadOfQueue)).expect("the queue is deep enough");
        let first: Vec<Op> = (0..2).map(|_| next(&mut device).request.op).collect();
        // When the flush was submitted, the arm was already serving a read.
        assert_eq!(first, [Op::Read, Op::Flush], "{}", rig.name());
    }
}

#[test]
fn ncq_flush_waits_for_earlier_reads_and_delays_later_ones() {
    for rig in caching(Tagging::Ncq) {
        let (mut device, now) = dirty(&rig);
        let reads = reads(&rig, 20);
        let mut commands: Vec<Command> = reads.iter().map(|read| (*read).into()).collect();
        commands.insert(10, flush(TaskAttribute::Simple));
        for command in &commands {
            device.submit(now, *command).expect("the queue is deep enough");
        }
        for earlier in 0..10 {
            // No destage begins before the last of the earlier reads is done.
            assert_eq!(device.activity().destages.accesses, 0, "{}: {earlier} reads are done", rig.name());
            assert!(reads[..10].contains(&next(&mut device).request), "{}", rig.name());
        }
        let flush = next(&mut device);
        assert_eq!(flush.request.op, Op::Flush, "{}", rig.name());
        assert_eq!(device.activity().destages.accesses, DIRTY, "{}", rig.name());
        for _ in 0..10 {
            let read = next(&mut device);
            let begins = read.completed.saturating_sub(read.parts.total() - read.parts.queued);
            assert!(begins >= flush.completed, "{}: a read began at {begins}", rig.name());
        }
    }
}
