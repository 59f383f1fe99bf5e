//! Counts the allocations of loads: memory must not grow with the number of requests. It is a program without the test harness, because
//! the allocations of the harness's threads would be counted too.

use std::alloc::System;
use std::collections::VecDeque;

use headstack_model::{Instant, Nanos};
use headstack_personalities::LoadFile;
use headstack_workload::fio::JobFile;
use headstack_workload::{Load, Poll, VolumeInfo};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn volume() -> VolumeInfo {
    VolumeInfo { name: "sda".to_string(), sectors: 2_000_000_000, sector_bytes: 512, zones: None }
}

fn generator(table: &str) -> Box<dyn Load> {
    let file = LoadFile::parse(&format!("requests = 30000\n{table}"), "x.toml").expect("the file is good");
    file.build(&[volume()], 1).expect("the load fits")
}

fn fio(job: &str) -> Box<dyn Load> {
    let text = format!("[j]\nfilename=/dev/sda\n{job}");
    let mut nothing = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let file = JobFile::parse(&text, "x.fio", &mut nothing, &|_| None).expect("the job is good");
    Box::new(file.build(&[volume()], 1).expect("the load fits"))
}

/// The number of allocations between the 5,000th and the 25,000th completion, on a device that takes 2 ms for each request.
fn allocations(mut load: Box<dyn Load>) -> usize {
    let mut out = VecDeque::with_capacity(10_000);
    let (mut now, mut done, mut before) = (Instant::ZERO, 0, 0);
    loop {
        let wanted = match load.poll(now) {
            Poll::Issue(issue) => {
                let last = out.back().map_or(now, |(at, _): &(Instant, u64)| *at);
                out.push_back((now.max(last) + Nanos(2_000_000), issue.id));
                continue;
            }
            Poll::Done => panic!("the load is long enough"),
            Poll::Compute { .. } => unreachable!("no program computes"),
            Poll::Waiting => Instant::MAX,
            Poll::Later(at) => at,
        };
        match out.front() {
            Some((at, id)) if *at <= wanted => {
                now = *at;
                load.handle_completion(now, *id);
                out.pop_front();
                done += 1;
                match done {
                    5_000 => before = ALLOCATOR.stats().allocations,
                    25_000 => return ALLOCATOR.stats().allocations - before,
                    _ => {}
                }
            }
            _ => now = wanted,
        }
    }
}

fn main() {
    is_every_generator_free_of_allocations();
}

fn is_every_generator_free_of_allocations() {
    let synthetic = "[[process]]\nprocesses = 8\nsequential_share = 0.2\nlocal_share = 0.3\ncritical_share = 0.2\n\
                     limited_share = 0.8\nsize_sectors = \"empirical(8:3,128:1)\"\ngap = \"exponential(50ms)\"\n\
                     local_distance_sectors = \"normal(0,200)\"\ntime_limit = \"normal(30ms,10ms)\"";
    let tables = [
        "[[blocks]]\ndepth = 32",
        "[[blocks]]\ngap = \"exponential(10ms)\"",
        "[[blocks]]\nprocesses = 64\nthink_time = \"normal(10ms,3ms)\"",
        "[[blocks]]\ndepth = 32\npopularity = \"zipf(1.0)\"\ngroup_bytes = 1048576\ndrift_per_hour = 9.0",
        "[[stream]]\nstreams = 100\ndepth = 2",
        "[[burst]]\nprocesses = 64\nrun_bytes = 65536\ntimes = 1000000",
        synthetic,
        "[[blocks]]\ndepth = 16\n[[stream]]\nstreams = 16",
    ];
    for table in tables {
        assert_eq!(allocations(generator(table)), 0, "{table}");
    }
    for job in [
        "rw=randread\nbs=4k\nioengine=libaio\niodepth=32",
        "rw=randrw\nbssplit=4k/50:64k/50\nioengine=libaio\niodepth=8\nsize=8g",
        "rw=read\nbs=64k\nnumjobs=100\noffset_increment=1%",
        "rw=randwrite\nbs=4k\nfsync=4\nthinktime=1ms\nrate_iops=1000\nrandom_distribution=zipf:1.2",
        "rw=randread\nbs=4k\nsize=64k\ntime_based\nruntime=1d\n#headstack: think_time=exponential(5ms)",
    ] {
        assert_eq!(allocations(fio(job)), 0, "{job}");
    }
}
