//! The cost of simulated requests without and with block rearrangement in front of the drive, with the statistics that `headstack sim`
//! makes. Random requests are one case. Skewed ones, most of which copies serve, are the other. The period ends once, after about half of
//! the requests, as after a day with 160,000 requests.

#![allow(missing_docs, reason = "the macros of criterion make public items without")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use headstack::{NoFiles, Results, Simulation, Workload, load_rig};
use headstack_sim::Rig;
use std::hint::black_box;

/// Requests of one measurement.
const REQUESTS: u64 = 300_000;

/// Drives, and the period for the random and for the skewed load.
const DRIVES: [(&str, [&str; 2]); 2] = [("hp-c2247a", ["3300", "3200"]), ("atlas-10k", ["1500", "1300"])];

/// Requests of 8 KiB to blocks with popularity by Zipf's law, eight outstanding.
fn run(rig: &Rig, exponent: &str) -> Results {
    let load = format!(
        "requests = {REQUESTS}\n[[blocks]]\ndepth = 8\nrequest_bytes = 8192\ngroup_bytes = 8192\nread_share = 0.5\n\
         popularity = \"zipf({exponent})\"\n"
    );
    let load = Workload::load_file(&load, "load.toml").expect("the load is right");
    Simulation::new(rig, load, 1).and_then(Simulation::run).expect("the load fits the drive")
}

fn simulate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("simulated requests");
    group.throughput(Throughput::Elements(REQUESTS)).sample_size(10);
    for (drive, periods_s) in DRIVES {
        for ((kind, exponent), period_s) in [("random", "0.01"), ("skewed", "1.2")].into_iter().zip(periods_s)
        {
            let plain = load_rig(drive, &NoFiles).expect("the drive ships");
            let mut with = plain.clone();
            with.set("rearrange.period_s", period_s).expect("it is a key");
            with.set("rearrange.when", "at-once").expect("it is a key");
            for (name, rig) in [("without", &plain), ("with", &with)] {
                let id = BenchmarkId::new(format!("{drive}, {kind}"), name);
                group.bench_function(id, |bencher| bencher.iter(|| black_box(run(rig, exponent))));
            }
        }
    }
    group.finish();
}

criterion_group!(benches, simulate);
criterion_main!(benches);
