//! Runs that several studies share.

use crate::study::StudyError;
use headstack::{AccessPattern, PatternSpec, Results, Simulation, Workload};
use headstack_model::{DriveSpec, Instant, Lbn, Nanos, Request};
use headstack_sim::stats::SortedTimes;
use headstack_sim::{Device, DeviceError, DeviceOptions, Engine, Finished, Observer};
use headstack_workload::{Closed, Issue, Load, Pattern, Poll, Region, Shape};

/// Blocks of 512 B in the 4 KiB of a random access.
const SMALL: u64 = 8;

/// Blocks in the 1 MiB of a sequential one.
const LARGE: u32 = 2048;

/// Seed of everything random in the loads.
const SEED: u64 = 1;

/// The response times of a run, and its duration.
#[derive(Clone, Debug)]
pub(crate) struct Responses {
    times: SortedTimes,
    seconds: f64,
}

impl Responses {
    /// These response times, in a run of this many seconds.
    pub(crate) fn new(times: Vec<Nanos>, seconds: f64) -> Responses {
        Responses { times: times.into(), seconds }
    }

    /// The response times and duration of a finished run that kept them.
    pub(crate) fn from_results(results: Results) -> Responses {
        let times = results.response_times.expect("the run kept the response times");
        Responses { times, seconds: results.end.as_secs() }
    }

    /// How long the run took, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    pub(crate) fn rate(&self) -> f64 {
        self.times.count() as f64 / self.seconds
    }

    pub(crate) fn mean_ms(&self) -> f64 {
        self.times.mean_ms()
    }

    /// The response time in ms that this share of the requests does not exceed.
    pub(crate) fn quantile_ms(&self, share: f64) -> f64 {
        self.times.quantile(share).as_ms()
    }
}

/// Calls a function with each request that completes.
struct EachRequest<F>(F);

impl<F: FnMut(&Finished)> Observer for EachRequest<F> {
    fn finished(&mut self, finished: &Finished) {
        (self.0)(finished);
    }
}

/// Runs a load on a drive that is idle at first; `observer` sees its requests and the drive's commands.
pub(crate) fn run_observed(
    spec: &DriveSpec,
    options: &DeviceOptions,
    load: &mut dyn Load,
    observer: &mut dyn Observer,
) -> Result<Results, StudyError> {
    Ok(Simulation::on_drive(spec, options, Workload::from_load("load", load), SEED)?
        .observe(observer)
        .run()?)
}

/// Runs a load on a drive that is idle at first; `observe` is called with each request that completes.
pub(crate) fn run_load(
    spec: &DriveSpec,
    options: &DeviceOptions,
    load: &mut dyn Load,
    observe: impl FnMut(&Finished),
) -> Result<Results, StudyError> {
    run_observed(spec, options, load, &mut EachRequest(observe))
}

/// The time that a drive, with the options of its file, takes for a load.
pub(crate) fn time_of(spec: &DriveSpec, load: &mut dyn Load) -> Result<Nanos, StudyError> {
    Ok(run_load(spec, &DeviceOptions::default(), load, |_| ())?.end.since_start())
}

/// An engine with one drive at the queue depth of its file.
fn engine(spec: &DriveSpec) -> Result<Engine, DeviceError> {
    Ok(Engine::new(vec![Device::new(spec, &DeviceOptions::default())?]))
}

/// Random requests over the whole disk, `depth` of them outstanding.
fn random(sectors: u64, write_share: f64, depth: u32, count: u64, spec: &DriveSpec) -> PatternSpec {
    let request_bytes = Some(sectors * u64::from(spec.sector_bytes));
    PatternSpec { request_bytes, write_share, count, ..PatternSpec::closed(AccessPattern::Random, depth) }
}

/// Runs a pattern on a drive that is idle at first, at the queue depth of its file.
fn simulation(spec: &DriveSpec, pattern: PatternSpec) -> Result<Simulation<'static>, StudyError> {
    Ok(Simulation::on_drive(spec, &DeviceOptions::default(), Workload::pattern(pattern), SEED)?)
}

/// Random 4 KiB reads over the whole disk, `depth` of them outstanding.
pub(crate) fn random_reads(spec: &DriveSpec, depth: u32, count: u64) -> Result<Responses, StudyError> {
    random_reads_of(spec, SMALL, depth, count)
}

/// Random reads of `sectors` blocks over the whole disk, `depth` of them outstanding.
pub(crate) fn random_reads_of(
    spec: &DriveSpec,
    sectors: u64,
    depth: u32,
    count: u64,
) -> Result<Responses, StudyError> {
    let pattern = random(sectors, 0.0, depth, count, spec);
    Ok(Responses::from_results(simulation(spec, pattern)?.keep_response_times().run()?))
}

/// Random 4 KiB writes over the whole disk, `depth` outstanding: the rate in writes per second between the seconds `from` and `to`.
pub(crate) fn random_write_rate(spec: &DriveSpec, depth: u32, from: u64, to: u64) -> Result<f64, StudyError> {
    // No drive sustains a thousand a second. The writes that the cache absorbs at once complete early in the run.
    let mut simulation = simulation(spec, random(SMALL, 1.0, depth, to * 1000, spec))?;
    let mut completed_before = |second: u64| {
        simulation.run_until(Instant::from_secs(second).saturating_sub(Nanos(1)));
        simulation.progress().completed
    };
    let (before, at_end) = (completed_before(from), completed_before(to));
    Ok((at_end - before) as f64 / (to - from) as f64)
}

/// MB/s of requests of 1 MiB, one after the other, through the regions in turn.
pub(crate) fn sequential_mb_s(
    spec: &DriveSpec,
    read_share: f64,
    regions: impl Iterator<Item = Region>,
) -> Result<f64, DeviceError> {
    let mut engine = engine(spec)?;
    let mut bytes = 0.0;
    for region in regions {
        let pattern = Pattern::Sequential;
        let shape = Shape { region, pattern, sectors: LARGE, alignment: LARGE, read_share };
        let count = region.sectors / u64::from(LARGE);
        let mut load = Closed::new(shape, 1, count, 1).expect("a region holds a request");
        engine.run(&mut load, &mut |_| ());
        bytes += (count * u64::from(LARGE) * u64::from(spec.sector_bytes)) as f64;
    }
    Ok(bytes / engine.now().as_secs() / 1e6)
}

/// Number of blocks of a region that is read in order: 1 GiB, or a hundredth of the disk if that is less.
pub(crate) fn stretch(spec: &DriveSpec) -> u64 {
    let large = u64::from(LARGE);
    (spec.capacity_sectors / 100 / large).clamp(1, 1024) * large
}

/// Regions of `sectors` blocks, evenly spread over the disk from its start to its end.
pub(crate) fn spread(spec: &DriveSpec, regions: u64, sectors: u64) -> impl Iterator<Item = Region> + use<> {
    let room = spec.capacity_sectors - sectors;
    let first = move |index: u64| {
        let at = (u128::from(room) * u128::from(index) / u128::from(regions - 1)) as u64;
        Lbn(at / u64::from(LARGE) * u64::from(LARGE))
    };
    (0..regions).map(move |index| Region { first: first(index), sectors })
}

/// The requests of a list, in its order, `depth` of them outstanding.
pub(crate) struct Script {
    requests: Vec<Request>,
    next: usize,
    out: u32,
    depth: u32,
}

impl Script {
    /// One after the other.
    pub(crate) fn new(requests: Vec<Request>) -> Script {
        Script::with_depth(requests, 1)
    }

    pub(crate) fn with_depth(requests: Vec<Request>, depth: u32) -> Script {
        Script { requests, next: 0, out: 0, depth }
    }
}

impl Load for Script {
    fn poll(&mut self, _now: Instant) -> Poll {
        if self.out == self.depth {
            return Poll::Waiting;
        }
        let Some(request) = self.requests.get(self.next).copied() else {
            return if self.out == 0 { Poll::Done } else { Poll::Waiting };
        };
        self.out += 1;
        self.next += 1;
        Poll::Issue(Issue::new(0, request, self.next as u64 - 1))
    }

    fn handle_completion(&mut self, _now: Instant, _id: u64) {
        self.out -= 1;
    }
}

/// Mean time in ms of a FLUSH after `writes` cached 4 KiB writes at random places, over `rounds` flushes.
pub(crate) fn flush_ms(spec: &DriveSpec, writes: u64, rounds: u64) -> Result<f64, DeviceError> {
    let mut engine = engine(spec)?;
    let (region, sectors) = (Region::whole(spec.capacity_sectors), SMALL as u32);
    let shape = Shape { region, pattern: Pattern::Random, sectors, alignment: sectors, read_share: 0.0 };
    let mut places = Closed::new(shape, 1, writes * rounds, SEED).expect("every drive holds a request");
    let (mut sum, now) = (0.0, engine.now());
    for _ in 0..rounds {
        let mut requests = Vec::new();
        while requests.len() < writes as usize {
            let Poll::Issue(issue) = places.poll(now) else { unreachable!("the load has all the writes") };
            places.handle_completion(now, issue.id);
            requests.push(issue.request);
        }
        requests.push(Request::flush());
        engine.run(&mut Script::new(requests), &mut |finished| {
            if finished.id == writes {
                sum += finished.completion.response().as_ms();
            }
        });
    }
    Ok(sum / rounds as f64)
}
