//! How fast a disk serves sequential streams, with the stream scheduler before it and without.
//!
//! `cargo run --release -p headstack-sim --example streams -- [RIG] [KEY=VALUE …]`: a shipped rig or drive, and keys that replace
//! its own (`node.memory_bytes=16777216`). Keys of the load: `streams=1,10,100`, `kib=64`, `depth=1`, `write=true`, `seconds=60`
//! (measured after a warm-up of the same length).

use headstack_model::{Instant, Lbn, Op};
use headstack_sim::rig::{Rig, shipped};
use headstack_workload::{Load, Member, Mix, Region, Spacing, StreamShape, Streams};

struct Plan {
    streams: Vec<u32>,
    kib: u32,
    depth: u32,
    op: Op,
    seconds: u64,
}

struct Found {
    mb_s: f64,
    slowest: f64,
    mean_ms: f64,
    worst_ms: f64,
}

#[allow(clippy::disallowed_methods, reason = "a program reads its options from its command line")]
fn main() {
    let mut words = std::env::args().skip(1).peekable();
    let name = words.next_if(|word| !word.contains('=')).unwrap_or_else(|| "stream-node".to_string());
    let mut rig = shipped::load(&name).unwrap_or_else(|error| panic!("{error}"));
    let mut plan = Plan { streams: vec![1, 10, 30, 60, 100], kib: 64, depth: 1, op: Op::Read, seconds: 60 };
    rig.set("node.scheduling", "true").unwrap_or_else(|error| panic!("{error}"));
    for word in words {
        let (key, value) = word.split_once('=').expect("KEY=VALUE");
        let number = || value.parse().expect("a number");
        match key {
            "streams" => plan.streams = value.split(',').map(|n| n.parse().expect("a number")).collect(),
            "kib" => plan.kib = number(),
            "depth" => plan.depth = number(),
            "seconds" => plan.seconds = number().into(),
            "write" => plan.op = if value == "true" { Op::Write } else { Op::Read },
            _ => rig.set(key, value).unwrap_or_else(|error| panic!("{error}")),
        }
    }
    let mut without = rig.clone();
    without.set("node.scheduling", "false").unwrap_or_else(|error| panic!("{error}"));
    println!("{:>8} {:>10} {:^42} {:^42}", "", "own", "without", "with");
    let columns = format!("{:>10} {:>10} {:>10} {:>9}", "MB/s", "slow/mean", "mean ms", "worst ms");
    println!("{:>8} {:>10} {columns} {columns}", "streams", "MB/s");
    for streams in plan.streams.clone() {
        let own = own(&without, streams);
        let line = [&without, &rig].map(|rig| {
            let Found { mb_s, slowest, mean_ms, worst_ms } = measure(rig, streams, &plan);
            format!("{mb_s:>10.2} {slowest:>10.3} {mean_ms:>10.2} {worst_ms:>9.0}")
        });
        println!("{streams:>8} {own:>10.2} {}", line.join(" "));
    }
}

/// All streams together over the seconds that count.
fn measure(rig: &Rig, streams: u32, plan: &Plan) -> Found {
    let volume = &rig.volumes()[0];
    let shape = StreamShape {
        op: plan.op,
        depth: plan.depth,
        alignment: 8,
        ..StreamShape::reads(Region::whole(volume.sectors), streams, plan.kib * 1024 / volume.sector_bytes)
    };
    let load: Box<dyn Load> = Box::new(Streams::new(shape, u64::MAX).expect("the streams fit"));
    let (from, end) = (Instant::from_secs(plan.seconds), Instant::from_secs(2 * plan.seconds));
    let member = Member { load, device: 0, sources: streams };
    let mut load = Mix::new(vec![member], u64::MAX, end).expect("it has a member");
    let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
    let mut counts = vec![0u64; streams as usize];
    let (mut sum_ms, mut worst_ms) = (0.0, 0.0f64);
    engine.run(&mut load, &mut |finished| {
        if (from..end).contains(&finished.completion.completed) {
            let response = finished.completion.response().as_ms();
            counts[finished.source as usize] += 1;
            sum_ms += response;
            worst_ms = worst_ms.max(response);
        }
    });
    let all = counts.iter().sum::<u64>() as f64;
    let slowest = *counts.iter().min().expect("there is a stream") as f64;
    Found {
        mb_s: all * f64::from(plan.kib) * 1024.0 / 1e6 / plan.seconds as f64,
        slowest: slowest * f64::from(streams) / all,
        mean_ms: sum_ms / all,
        worst_ms,
    }
}

/// The disk's own bandwidth at the same places: 32 MiB at each, one after the other, in requests of 1 MiB.
fn own(rig: &Rig, streams: u32) -> f64 {
    let volume = &rig.volumes()[0];
    let (part, sectors) = (volume.sectors / u64::from(streams), (1 << 20) / volume.sector_bytes);
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for stream in 0..u64::from(streams) {
        let first = Lbn(part * stream / 8 * 8);
        let region = Region { first, sectors: 32 * u64::from(sectors) };
        let shape = StreamShape { spacing: Spacing::Even, ..StreamShape::reads(region, 1, sectors) };
        let mut load = Streams::new(shape, 32).expect("it fits");
        let mut engine = rig.build(1).unwrap_or_else(|error| panic!("{error}"));
        let mut begun = None;
        engine.run(&mut load, &mut |finished| {
            // What comes before the end of the first request is positioning.
            begun.get_or_insert(finished.completion.completed);
        });
        bytes += 31.0 * 1048576.0;
        seconds += (engine.now() - begun.expect("it asked")).as_secs();
    }
    bytes / seconds / 1e6
}
