//! Requests per second of each generator, created from a load file, against a device that completes each request 32 requests later; and draws
//! per second of each distribution.

#![allow(missing_docs, reason = "the macros of criterion make public items without")]

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use headstack_model::{Instant, Nanos};
use headstack_personalities::LoadFile;
use headstack_workload::fio::{FioLoad, JobFile};
use headstack_workload::{Distribution, Load, Poll, Popularity, VolumeInfo};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

const REQUESTS: u64 = 100_000;

/// Requests that the device holds before it answers the oldest.
const HELD: usize = 32;

/// The generators: a name and the table of the load file.
const GENERATORS: [(&str, &str); 9] = [
    ("random, depth 32", "[[blocks]]\ndepth = 32"),
    ("sequential, depth 32", "[[blocks]]\ndepth = 32\norder = \"sequential\""),
    ("open, exponential gaps", "[[blocks]]\ngap = \"exponential(10ms)\""),
    ("64 thinking processes", "[[blocks]]\nprocesses = 64\nthink_time = \"exponential(10ms)\""),
    ("100 streams", "[[stream]]\nstreams = 100"),
    ("64 processes' runs", "[[burst]]\nprocesses = 64\nrun_bytes = 65536\ntimes = 1000000"),
    (
        "zipf with drift",
        "[[blocks]]\ndepth = 32\npopularity = \"zipf(1.0)\"\ngroup_bytes = 1048576\ndrift_per_hour = 1.0",
    ),
    (
        "8 synthetic processes",
        "[[process]]\nprocesses = 8\nblocking_sectors = 8\nsequential_share = 0.2\nlocal_share = 0.3\nread_share = 0.66\n\
         critical_share = 0.2\nlimited_share = 0.3\nsize_sectors = \"exponential(8)\"\n\
         local_distance_sectors = \"normal(0,200)\"\ngap = \"exponential(50ms)\"\ntime_limit = \"normal(30ms,10ms)\"",
    ),
    ("two tables", "[[blocks]]\ndepth = 16\n[[stream]]\nstreams = 16"),
];

fn load(table: &str) -> Box<dyn Load> {
    let text = format!("requests = {REQUESTS}\n{table}");
    let file = LoadFile::parse(&text, "bench").expect("the file is good");
    let volume =
        VolumeInfo { name: "sda".to_string(), sectors: 2_000_000_000, sector_bytes: 512, zones: None };
    file.build(&[volume], 1).expect("the load fits")
}

/// Jobs of fio: a name and the keys.
const JOBS: [(&str, &str); 4] = [
    ("fio random 4 KiB, depth 32", "rw=randread\nbs=4k\nioengine=libaio\niodepth=32"),
    ("fio random 4 KiB, no map", "rw=randread\nbs=4k\nioengine=libaio\niodepth=32\nnorandommap"),
    ("fio 100 streams", "rw=read\nbs=64k\nnumjobs=100\noffset_increment=1%"),
    (
        "fio zipf mix of sizes",
        "rw=randrw\nbssplit=4k/50:64k/50\nrandom_distribution=zipf:1.2\nioengine=libaio\niodepth=32",
    ),
];

fn fio(job: &str) -> FioLoad {
    let text = format!("[j]\nfilename=/dev/sda\n{job}");
    let mut nothing = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let file = JobFile::parse(&text, "bench", &mut nothing, &|_| None).expect("the job is good");
    let volume =
        VolumeInfo { name: "sda".to_string(), sectors: 2_000_000_000, sector_bytes: 512, zones: None };
    file.build(&[volume], 1).expect("the load fits")
}

/// Issues `REQUESTS` requests of a load; returns a value that depends on each of them, so that none is optimised away.
fn run(load: &mut dyn Load) -> u64 {
    let (mut out, mut now, mut sum) = (VecDeque::with_capacity(HELD + 1), Instant::ZERO, 0);
    let mut left = REQUESTS;
    while left > 0 {
        match load.poll(now) {
            Poll::Issue(issue) => {
                sum ^= black_box(issue).request.lbn.0;
                out.push_back(issue.id);
                left -= 1;
                if out.len() <= HELD {
                    continue;
                }
            }
            Poll::Later(at) => now = at,
            Poll::Waiting => now += Nanos(100_000),
            Poll::Done | Poll::Compute { .. } => return sum,
        }
        if let Some(id) = out.pop_front() {
            load.handle_completion(now, id);
        }
    }
    sum
}

fn generators(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("generator");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    for (name, table) in GENERATORS {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| run(load(table).as_mut()));
        });
    }
    for (name, job) in JOBS {
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_batched(|| fio(job), |mut load| run(&mut load), BatchSize::LargeInput);
        });
    }
}

fn distributions(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("distribution");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    for text in
        ["uniform(0,1)", "exponential(1)", "normal(0,1)", "poisson(3)", "poisson(1000)", "pareto(1,2)"]
    {
        let distribution: Distribution<f64> = text.parse().expect("the text is good");
        let sampler = distribution.sampler().expect("it was checked");
        let mut random = Pcg64Mcg::seed_from_u64(1);
        group.bench_function(BenchmarkId::from_parameter(text), |bencher| {
            bencher.iter(|| (0..REQUESTS).map(|_| sampler.draw(&mut random)).sum::<f64>());
        });
    }
    for text in ["zipf(0.9)", "zipf(1.2)", "zoned(60/10,30/20,10/70)"] {
        let popularity: Popularity = text.parse().expect("the text is good");
        let ranks = popularity.ranks(1 << 30).expect("it was checked");
        let mut random = Pcg64Mcg::seed_from_u64(1);
        group.bench_function(BenchmarkId::from_parameter(text), |bencher| {
            bencher.iter(|| (0..REQUESTS).fold(0, |sum, _| sum ^ ranks.draw(&mut random)));
        });
    }
}

criterion_group!(benches, generators, distributions);
criterion_main!(benches);
