//! How many requests the simulator serves in a CPU second, beside DiskSim 4.0 on the same loads.
//!
//! `make speed` runs it; `bench/runs/` keeps what it printed, with the machine and the commit. DiskSim's figures were
//! taken on a machine of the same kind: 140 thousand open random 4 KiB requests, 34 thousand of 100 sequential 64 KiB
//! streams with the queue in the driver, and 34, 19 and 10 thousand with SPTF at depths 64, 128 and 256.

use cpu_time::ProcessTime;
use headstack_model::{DriveSpec, Nanos, drives};
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::fio::{FioLoad, JobFile};
use headstack_workload::{
    Closed, Distribution, Load, Open, Pattern, Region, Shape, StreamShape, Streams, VolumeInfo,
};

/// A load and what it is measured against.
struct Case {
    name: String,
    load: Box<dyn Load>,
    options: DeviceOptions,
    /// What DiskSim 4.0 serves in a CPU second, where it was measured.
    disksim: Option<f64>,
}

fn cases(spec: &DriveSpec) -> Vec<Case> {
    let region = Region::whole(spec.capacity_sectors);
    let random = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 1.0 };
    let streams = StreamShape { alignment: 8, ..StreamShape::reads(region, 100, 128) };
    let gaps = Distribution::exponential(Nanos::from_ms(20.0));
    let options = |depth: u32, order: &str| DeviceOptions {
        seed: 1,
        depth: Some(depth),
        order: Some(order.to_string()),
    };
    let mut cases = vec![
        Case {
            name: "open random 4 KiB reads".to_string(),
            load: Box::new(Open::new(random, &gaps, 2_000_000, 1).expect("the load fits the drive")),
            options: options(1, "fcfs"),
            disksim: Some(140e3),
        },
        Case {
            name: "100 sequential 64 KiB streams".to_string(),
            load: Box::new(Streams::new(streams, 2_000_000).expect("the load fits the drive")),
            options: options(1, "fcfs"),
            disksim: Some(34e3),
        },
    ];
    for (depth, disksim) in [(64, 34e3), (128, 19e3), (256, 10e3)] {
        cases.push(Case {
            name: format!("random 4 KiB reads, SPTF at depth {depth}"),
            load: Box::new(Closed::new(random, depth, 1_000_000, 1).expect("the load fits the drive")),
            options: options(depth, "sptf"),
            disksim: Some(disksim),
        });
    }
    for (name, job) in [
        ("fio job: 100 sequential 64 KiB streams", "bs=64k\nnumjobs=100\noffset_increment=1%"),
        (
            "fio job: random 4 KiB reads at depth 32",
            "rw=randread\nbs=4k\nioengine=libaio\niodepth=32\nnorandommap",
        ),
    ] {
        // DiskSim reads no jobs; its figure is that of the same streams, or none.
        let disksim = job.contains("numjobs").then_some(34e3);
        let load = Box::new(fio(spec, job));
        cases.push(Case { name: name.to_string(), load, options: options(32, "fcfs"), disksim });
    }
    cases
}

/// Two million requests of a job on the whole drive.
fn fio(spec: &DriveSpec, job: &str) -> FioLoad {
    let each = if job.contains("numjobs") { 20_000 } else { 2_000_000 };
    let text = format!("[job]\nfilename=/dev/sda\ndirect=1\nnumber_ios={each}\nio_size=1p\n{job}");
    let mut nothing = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let file = JobFile::parse(&text, "speed", &mut nothing, &|_| None).expect("the job is good");
    let (sectors, sector_bytes) = (spec.capacity_sectors, 512);
    let volume = VolumeInfo { name: "sda".to_string(), sectors, sector_bytes };
    file.build(&[volume], 1).expect("the job fits the drive")
}

#[allow(clippy::disallowed_methods, reason = "a benchmark takes its drive from the command line")]
fn main() {
    let name = std::env::args().nth(1).unwrap_or_else(|| "atlas-10k".to_string());
    let spec = drives::load(&name).unwrap_or_else(|error| panic!("{error}"));
    println!("load\trequests\tcpu_s\trequests_per_cpu_s\tdisksim_requests_per_cpu_s\tratio");
    for mut case in cases(&spec) {
        let device = Device::new(&spec, &case.options).expect("a shipped drive works");
        let mut engine = Engine::new(vec![device]);
        let mut requests = 0u64;
        let start = ProcessTime::now();
        engine.run(case.load.as_mut(), &mut |_| requests += 1);
        let cpu = start.elapsed().as_secs_f64();
        let rate = requests as f64 / cpu;
        let (theirs, ratio) = case.disksim.map_or(("-".to_string(), "-".to_string()), |theirs| {
            (format!("{theirs:.0}"), format!("{:.1}", rate / theirs))
        });
        println!("{}\t{requests}\t{cpu:.3}\t{rate:.0}\t{theirs}\t{ratio}", case.name);
    }
}
