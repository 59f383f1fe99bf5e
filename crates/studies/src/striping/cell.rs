//! One run: a load on an array, and what came of it.

use crate::study::StudyError;
use headstack_model::spec::{ReadAhead, WriteCache};
use headstack_model::{DriveSpec, Instant, Nanos, drives};
use headstack_policy::stripe::advise::{DiskTimes, Others};
use headstack_sim::rig::shipped;
use headstack_sim::stats::Batches;
use headstack_sim::{Device, DeviceOptions, Engine};
use headstack_workload::Distribution;
use headstack_workload::process::{ForkJoin, ForkJoinShape, Joined, Spread, ThreadCosts};

/// Maximum blocks per SCSI command in the study: 128 KB.
pub(super) const COMMAND: u32 = 256;

/// Spread of the drives' speeds in percent, so that their spindles are not in step. *Source:* assumption.
const SPEEDS: f64 = 0.5;

/// The use of the drives' buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffer {
    /// No read-ahead and no write cache, as in the study.
    None,
    /// The drives read ahead, and report a write as soon as the buffer holds it.
    Both,
}

/// A load on an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub disks: u32,
    pub buffer: Buffer,
    pub read_share: f64,
    pub sequential_share: f64,
    /// Mean think time.
    pub think: Nanos,
    pub mpl: u32,
    /// Blocks per request, and the number of disks over which it is spread.
    pub request: u64,
    pub across: u32,
}

impl Point {
    /// Blocks of the stripe unit.
    pub(super) fn unit(&self) -> u64 {
        self.request / u64::from(self.across)
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StripedRun {
    pub point: Point,
    pub response_ms: f64,
    /// Half-width of its 95 % confidence interval.
    pub half_width_ms: f64,
    pub others: Others,
}

pub(super) fn drive(buffer: Buffer) -> Result<DriveSpec, StudyError> {
    let mut spec = drives::load("ultrastar-dfhc-2gb")?;
    match buffer {
        Buffer::None => spec.cache.read_ahead = ReadAhead::None,
        Buffer::Both => {
            spec.cache.write_cache = WriteCache::Segment;
            spec.cache.write_segments = 2;
        }
    }
    Ok(spec)
}

/// The drive's times, as input of the advisors.
pub(super) fn times(buffer: Buffer) -> Result<DiskTimes, StudyError> {
    Ok(DiskTimes::from_spec(&drive(buffer)?)?.with_commands_of(COMMAND))
}

/// Copies of a drive that turn at slightly different speeds.
pub(super) fn devices(spec: &DriveSpec, disks: u32) -> Result<Vec<Device>, StudyError> {
    let device = |index: u32| {
        let mut spec = spec.clone();
        let share = (f64::from(index) * 0.618_033_988_749_895).fract() - 0.5;
        spec.mechanics.rpm_deviation_percent += SPEEDS * share;
        Device::new(&spec, &DeviceOptions::default())
    };
    Ok((0..disks).map(device).collect::<Result<_, _>>()?)
}

/// The disks alone: the study's four on their loop, or more, each with its own link to the host.
pub(super) fn array(buffer: Buffer, disks: u32) -> Result<Engine, StudyError> {
    if disks != super::grid::DISKS {
        return Ok(Engine::new(devices(&drive(buffer)?, disks)?));
    }
    let mut rig = shipped::load("ssa-loop")?;
    if buffer == Buffer::Both {
        let on = [("read_ahead", "segment"), ("write_cache", "segment"), ("write_segments", "2")];
        on.into_iter().try_for_each(|(key, value)| rig.set(&format!("drive.cache.{key}"), value))?;
    }
    Ok(rig.build(0)?)
}

/// The host's processor time for threads, and its adapter's for commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostCosts {
    /// To create a thread; joining a thread that has ended takes no time.
    pub thread: Nanos,
    pub command_us: u32,
}

impl HostCosts {
    pub(super) const NONE: HostCosts = HostCosts { thread: Nanos::ZERO, command_us: 0 };
}

/// The study's array before a host with one processor.
fn array_of_host(host: &HostCosts) -> Result<Engine, StudyError> {
    let mut rig = shipped::load("ssa-loop")?;
    rig.set("host.processor.lanes", "1")?;
    rig.set("bus.command_us", &host.command_us.to_string())?;
    Ok(rig.build(0)?)
}

/// Runs a load whose requests go over as many disks as `spread` says.
pub(super) fn run<S: Spread>(
    engine: &mut Engine,
    point: &Point,
    spread: S,
    requests: u64,
) -> Result<ForkJoin<S>, StudyError> {
    run_threads(engine, point, spread, requests, ThreadCosts::default())
}

fn run_threads<S: Spread>(
    engine: &mut Engine,
    point: &Point,
    spread: S,
    requests: u64,
    threads: ThreadCosts,
) -> Result<ForkJoin<S>, StudyError> {
    let think = match point.think {
        Nanos::ZERO => Distribution::Constant(Nanos::ZERO),
        mean => Distribution::Exponential { base: Nanos::ZERO, mean },
    };
    let shape = ForkJoinShape {
        disks: point.disks,
        disk_sectors: engine.device(0).sectors(),
        processes: point.mpl,
        think,
        request_sectors: point.request,
        command_sectors: COMMAND,
        read_share: point.read_share,
        sequential_share: point.sequential_share,
        threads,
    };
    let each = requests.div_ceil(u64::from(point.mpl));
    // The seed is the same for every number of disks, so that all runs access the same places and differ less by chance.
    let mut load = ForkJoin::new(shape, spread, each, 1)?;
    engine.run(&mut load, &mut |_| ());
    Ok(load)
}

/// Runs a point with this number of requests.
pub(super) fn measure(point: &Point, requests: u64) -> Result<StripedRun, StudyError> {
    let mut engine = array(point.buffer, point.disks)?;
    let load = run(&mut engine, point, point.across, requests)?;
    summary(point, &load, requests)
}

/// As [`measure`], on the study's array before a host whose threads and commands take time.
pub(super) fn measure_with(point: &Point, host: &HostCosts, requests: u64) -> Result<StripedRun, StudyError> {
    let threads = ThreadCosts { create: host.thread, join: Nanos::ZERO };
    let load = run_threads(&mut array_of_host(host)?, point, point.across, requests, threads)?;
    summary(point, &load, requests)
}

fn summary(point: &Point, load: &ForkJoin<u32>, requests: u64) -> Result<StripedRun, StudyError> {
    let mut batches = Batches::new();
    for joined in load.joined() {
        batches.record(joined.ended, joined.ended.since(joined.requested), 0);
    }
    let few = || StudyError::Input(format!("{requests} requests are too few for a mean"));
    let response = batches.confidence(Instant::ZERO).ok_or_else(few)?.response_ms;
    Ok(StripedRun {
        point: *point,
        response_ms: response.mean,
        half_width_ms: response.half_width,
        others: others(load.joined()),
    })
}

/// Mean and variance of the number of other requests that each request met, without the first tenth of the requests.
fn others(joined: &[Joined]) -> Others {
    let met = &joined[joined.len() / 10..];
    let (count, number) = (met.len() as f64, |request: &Joined| f64::from(request.others));
    let mean = met.iter().map(number).sum::<f64>() / count;
    let variance = met.iter().map(|request| (number(request) - mean).powi(2)).sum::<f64>() / count;
    Others { mean, variance }
}
