//! The rows: each a load, the drive that it runs on, and the options of that drive.

use headstack_model::{DriveSpec, Nanos, drives};
use headstack_sim::DeviceOptions;
use headstack_workload::fio::{FioLoad, JobFile};
use headstack_workload::{
    Closed, Distribution, Load, Open, Pattern, Region, Shape, StreamShape, Streams, VolumeInfo,
};

/// The drive that DiskSim was measured on.
const DRIVE: &str = "atlas-10k";

/// Drives whose read-ahead crosses tracks, each with the mean time in ms between arrivals at which it gets two thirds of the requests that it
/// could serve.
const OVER_TRACKS: [(&str, f64); 2] = [("exos-x16", 18.5), ("toshiba-x300", 19.0)];

/// Makes a row's load for a drive.
type MakeLoad = Box<dyn Fn(&DriveSpec) -> Box<dyn Load>>;

/// A load, its drive, and DiskSim's rate to compare with.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) drive: &'static str,
    make: MakeLoad,
    pub(crate) options: DeviceOptions,
    /// Requests that DiskSim 4.0 serves in a CPU second, where it was measured.
    pub(crate) disksim: Option<f64>,
}

impl Row {
    fn new(
        name: impl Into<String>,
        options: DeviceOptions,
        disksim: Option<f64>,
        make: impl Fn(&DriveSpec) -> Box<dyn Load> + 'static,
    ) -> Row {
        Row { name: name.into(), drive: DRIVE, make: Box::new(make), options, disksim }
    }

    /// The row's drive, and its load there.
    pub(crate) fn build(&self) -> (DriveSpec, Box<dyn Load>) {
        let spec = drives::load(self.drive).expect("the row's drive ships");
        let load = (self.make)(&spec);
        (spec, load)
    }
}

fn options(depth: u32, order: &str) -> DeviceOptions {
    DeviceOptions { seed: 1, depth: Some(depth), order: Some(order.to_string()) }
}

/// Random 4 KiB reads anywhere.
fn random(spec: &DriveSpec) -> Shape {
    let region = Region::whole(spec.capacity_sectors);
    Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 1.0 }
}

fn open(spec: &DriveSpec, gap_ms: f64) -> Box<dyn Load> {
    let gaps = Distribution::exponential(Nanos::from_ms(gap_ms));
    Box::new(Open::new(random(spec), &gaps, 2_000_000, 1).expect("the load fits the drive"))
}

fn closed(spec: &DriveSpec, depth: u32, requests: u64) -> Box<dyn Load> {
    Box::new(Closed::new(random(spec), depth, requests, 1).expect("the load fits the drive"))
}

/// Random 4 KiB writes. After 250,000 of them the extent map of a `seagate-archive-8tb` is full.
fn writes(spec: &DriveSpec, requests: u64) -> Box<dyn Load> {
    let shape = Shape { read_share: 0.0, ..random(spec) };
    Box::new(Closed::new(shape, 1, requests, 1).expect("the load fits the drive"))
}

fn streams(spec: &DriveSpec) -> Box<dyn Load> {
    let shape =
        StreamShape { alignment: 8, ..StreamShape::reads(Region::whole(spec.capacity_sectors), 100, 128) };
    Box::new(Streams::new(shape, 2_000_000).expect("the load fits the drive"))
}

/// A fio job on the whole drive. `requests_each` is the number of requests of each process.
fn fio(spec: &DriveSpec, requests_each: u64, job: &str) -> Box<dyn Load> {
    let text = format!("[job]\nfilename=/dev/sda\ndirect=1\nnumber_ios={requests_each}\nio_size=1p\n{job}");
    let mut nothing = |_: &str| Err(std::io::Error::from(std::io::ErrorKind::NotFound));
    let file = JobFile::parse(&text, "speed", &mut nothing, &|_| None).expect("the job is valid");
    let volume = VolumeInfo {
        name: "sda".to_string(),
        sectors: spec.capacity_sectors,
        sector_bytes: 512,
        zones: None,
    };
    let load: FioLoad = file.build(&[volume], 1).expect("the job fits the drive");
    Box::new(load)
}

/// All rows.
pub(crate) fn all() -> Vec<Row> {
    let depth = |depth: u32, disksim: f64| {
        let name = format!("random 4 KiB reads, SPTF at depth {depth}");
        Row::new(name, options(depth, "sptf"), Some(disksim), move |spec| closed(spec, depth, 1_000_000))
    };
    let open_on = |(drive, gap_ms): (&'static str, f64)| {
        let name = format!("open random 4 KiB reads on {drive}");
        Row { drive, ..Row::new(name, options(1, "fcfs"), None, move |spec| open(spec, gap_ms)) }
    };
    let mut rows = vec![
        Row::new("open random 4 KiB reads", options(1, "fcfs"), Some(140e3), |spec| open(spec, 20.0)),
        Row::new("closed random 4 KiB reads at depth 1", options(1, "fcfs"), None, |spec| {
            closed(spec, 1, 2_000_000)
        }),
        Row::new("100 sequential 64 KiB streams", options(1, "fcfs"), Some(34e3), streams),
        depth(64, 34e3),
        depth(128, 19e3),
        depth(256, 10e3),
        // DiskSim reads no fio jobs. Its figure is for the same streams as a load of DiskSim.
        Row::new("fio job: 100 sequential 64 KiB streams", options(32, "fcfs"), Some(34e3), |spec| {
            fio(spec, 20_000, "bs=64k\nnumjobs=100\noffset_increment=1%")
        }),
        Row::new("fio job: random 4 KiB reads at depth 32", options(32, "fcfs"), None, |spec| {
            fio(spec, 2_000_000, "rw=randread\nbs=4k\nioengine=libaio\niodepth=32\nnorandommap")
        }),
    ];
    rows.extend(OVER_TRACKS.map(open_on));
    let writes_to_shingled = |(requests, map): (u64, &str)| {
        let drive = "seagate-archive-8tb";
        let name = format!("random 4 KiB writes on {drive}, map {map}");
        Row { drive, ..Row::new(name, options(1, "fcfs"), None, move |spec| writes(spec, requests)) }
    };
    rows.extend([(240_000, "not full"), (500_000, "full for the second half")].map(writes_to_shingled));
    rows
}
