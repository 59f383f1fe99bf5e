//! The memory of a trace that is read, summarised or replayed does not depend on its length. It is a program without the test harness,
//! because the allocations of the harness's threads would be counted too.

use std::alloc::System;
use std::io::Read;

use headstack_workload::trace::stat::Stat;
use headstack_workload::trace::{self, OutOfRange, Replay, ReplayOptions, Trace};
use headstack_workload::{Load, Poll, VolumeInfo};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static MEMORY: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A DiskSim trace with `left` more requests, which are generated while it is read.
struct Made {
    left: u64,
    time_us: u64,
    line: Vec<u8>,
}

impl Made {
    fn new(requests: u64) -> Made {
        Made { left: requests, time_us: 0, line: Vec::new() }
    }
}

impl Read for Made {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.line.is_empty() && self.left > 0 {
            self.left -= 1;
            self.time_us += 700;
            // There are only 4,096 offsets, so that tables with an entry for each offset stop growing.
            let (ms, us, lbn) = (self.time_us / 1000, self.time_us % 1000, self.left * 7919 % 4096 * 8);
            self.line.extend(format!("{ms}.{us:03} 0 {lbn} 8 {}\n", self.left % 2).bytes());
        }
        let count = self.line.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.line[..count]);
        self.line.drain(..count);
        Ok(count)
    }
}

fn open(requests: u64) -> Trace<'static> {
    Trace::open(Made::new(requests), "made", trace::named("disksim")).expect("it can be read")
}

/// Bytes that are held after `run` has processed a trace of `requests` requests, with what it returns.
fn held<T>(requests: u64, run: impl Fn(Trace<'static>) -> T) -> isize {
    let region = Region::new(MEMORY);
    let kept = run(open(requests));
    let change = region.change();
    drop(kept);
    change.bytes_allocated as isize - change.bytes_deallocated as isize
}

fn summed_up(mut trace: Trace<'static>) -> (Stat, Trace<'static>) {
    let mut stat = Stat::new();
    while let Some(record) = trace.next_record().expect("it is well formed") {
        stat.observe(&record);
    }
    (stat, trace)
}

fn replayed(trace: Trace<'static>) -> Replay<'static> {
    let volume = VolumeInfo { name: "d".to_string(), sectors: 1 << 20, sector_bytes: 512, zones: None };
    let options = ReplayOptions { out_of_range: OutOfRange::Error, ..ReplayOptions::default() };
    let mut replay = Replay::new(trace, &[volume], options);
    let mut now = headstack_model::Instant::ZERO;
    loop {
        match replay.poll(now) {
            Poll::Issue(issue) => replay.handle_completion(now, issue.id),
            Poll::Later(time) => now = time,
            Poll::Compute { .. } => unreachable!("no program computes"),
            Poll::Waiting | Poll::Done => return replay,
        }
    }
}

fn main() {
    does_a_longer_trace_take_more_memory();
}

fn does_a_longer_trace_take_more_memory() {
    for requests in [20_000, 400_000] {
        let (stat, replay) = (held(requests, summed_up), held(requests, replayed));
        // Histograms and samples, and the reader's buffers.
        assert!(stat < 6_000_000, "{requests} requests: {stat} bytes");
        assert!(replay < 700_000, "{requests} requests: {replay} bytes");
    }
    let grown = held(400_000, summed_up) - held(20_000, summed_up);
    assert!(grown < 200_000, "{grown} bytes more for twenty times the requests");
    let grown = held(400_000, replayed) - held(20_000, replayed);
    assert!(grown < 1000, "{grown} bytes more for twenty times the requests");
}
