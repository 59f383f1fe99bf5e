//! A run gives the same results however it is driven, and says what is missing where it ends early.

use headstack::sim::{Completion, Finished};
use headstack::workload::trace::{Kind, Record};
use headstack::workload::{Closed, Load, Pattern, Poll, Region, Shape};
use headstack::{
    AccessPattern, ArrivalProcess, Instant, Nanos, NoFiles, Observer, PatternSpec, Results, Simulation,
    TraceOptions, Workload, load_rig,
};
use std::ops::ControlFlow;

const JOB: &str =
    "[reads]\nrw=randread\nbs=4k\nsize=1g\nioengine=libaio\niodepth=8\nramp_time=1\nnumber_ios=3000\n";

fn simulation<'a>() -> Simulation<'a> {
    simulation_of(JOB)
}

fn simulation_of<'a>(job: &str) -> Simulation<'a> {
    let rig = load_rig("atlas-10k", &NoFiles).expect("the drive ships");
    let workload = Workload::fio_job(job, "reads.fio", &NoFiles).expect("the job holds");
    Simulation::new(&rig, workload, 7).expect("the job fits")
}

fn finished(simulation: Simulation<'_>) -> Results {
    simulation.finish().expect("the job ends")
}

#[test]
fn every_way_to_run_gives_the_same_results() {
    let whole = simulation().run().expect("the job ends").to_json();
    let mut stepped = simulation();
    while stepped.step() {}
    assert_eq!(finished(stepped).to_json(), whole);
    let mut timed = simulation();
    let mut until = Instant::ZERO;
    while timed.run_until(until) {
        until += Nanos::from_ms(37.0);
    }
    assert_eq!(finished(timed).to_json(), whole);
    let mut watched = simulation();
    watched.run_while(&mut |_| ControlFlow::Continue(()));
    assert_eq!(finished(watched).to_json(), whole);
}

#[test]
fn run_until_a_time_stops_there_and_reports_what_is_missing() {
    let mut simulation = simulation();
    let second = Instant::from_secs(2);
    assert!(simulation.run_until(second));
    let progress = simulation.progress();
    assert!(progress.now <= second && progress.completed > 100, "{progress:?}");
    assert!(progress.share.is_some_and(|share| 0.0 < share && share < 1.0), "{progress:?}");
    let results = finished(simulation);
    let stop = results.early_stop.as_ref().expect("the job has more requests");
    assert_eq!((stop.reason.as_str(), stop.outstanding), ("program", 8));
    assert_eq!(stop.share, progress.share);
    assert!(results.statistics.last() <= second);
}

#[test]
fn progress_function_ends_the_run_with_its_reason() {
    let mut simulation = simulation_of(&JOB.replace("3000", "30000"));
    let mut last = 0;
    simulation.run_while(&mut |progress| {
        assert!(progress.completed >= last);
        last = progress.completed;
        if last > 1000 { ControlFlow::Break("enough".to_string()) } else { ControlFlow::Continue(()) }
    });
    assert!(!simulation.step(), "it has stopped");
    let results = finished(simulation);
    assert_eq!(results.statistics.completed(), last);
    assert_eq!(results.early_stop.map(|stop| stop.reason), Some("enough".to_string()));
}

/// Ends a run after a number of requests.
struct StopAfter {
    left: u32,
    commands: u32,
}

impl Observer for StopAfter {
    fn finished(&mut self, _finished: &Finished) {
        self.left = self.left.saturating_sub(1);
    }

    fn served(&mut self, _device: u32, _command: &Completion) {
        self.commands += 1;
    }

    fn stops(&self) -> bool {
        self.left == 0
    }
}

#[test]
fn observer_sees_commands_and_ends_the_run() {
    let mut observer = StopAfter { left: 100, commands: 0 };
    let results = simulation().observe(&mut observer).run().expect("nothing is wrong");
    assert_eq!(results.statistics.completed(), 100);
    assert_eq!(results.early_stop.map(|stop| stop.reason), Some("observer".to_string()));
    assert!(observer.commands >= 100);
}

#[test]
fn warm_up_counts_in_no_figure() {
    let results = simulation().run().expect("the job ends");
    let counted = results.response().count();
    assert!(counted < results.statistics.completed(), "{counted} requests");
    assert_eq!(results.statistics.first_counted(), Instant::from_secs(1));
    let jobs: Vec<_> = results.jobs().collect();
    assert_eq!((jobs.len(), jobs[0].name), (1, "reads"));
    assert_eq!(jobs[0].kinds().map(|kind| kind.statistics.responses.count()).sum::<u64>(), counted);
}

#[test]
fn sources_of_an_own_load_report_as_jobs() {
    let rig = load_rig("atlas-10k", &NoFiles).expect("the drive ships");
    let region = Region::whole(rig.volumes()[0].sectors);
    let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.5 };
    let load = Closed::new(shape, 4, 500, 1).expect("the load fits");
    let workload = Workload::from_load("mix", load).with_sources(["one", "two"]);
    let results = Simulation::new(&rig, workload, 1).expect("it fits").run().expect("it ends");
    let counts: Vec<_> = results.jobs().map(|job| (job.name, job.kinds().count())).collect();
    assert_eq!(counts, [("one", 2), ("two", 0)], "all requests are of source 0");
    assert_eq!(results.workload.name, "mix");
}

#[test]
fn own_load_keeps_its_state_after_the_run() {
    let rig = load_rig("atlas-10k", &NoFiles).expect("the drive ships");
    let region = Region::whole(rig.volumes()[0].sectors);
    let shape = Shape { region, pattern: Pattern::Random, sectors: 8, alignment: 8, read_share: 0.5 };
    let mut load = Closed::new(shape, 4, 500, 1).expect("the load fits");
    let simulation = Simulation::new(&rig, Workload::from_load("mix", &mut load), 1).expect("it fits");
    assert_eq!(simulation.run().expect("it ends").statistics.completed(), 500);
    assert_eq!(load.poll(Instant::ZERO), Poll::Done, "all its requests were issued");
}

#[test]
fn trace_is_replayed_and_its_errors_have_their_place() {
    let rig = load_rig("atlas-10k", &NoFiles).expect("the drive ships");
    let replay = |text: &'static str| {
        let workload = Workload::trace(text.as_bytes(), "made.trace", &TraceOptions::default());
        let workload = workload.map_err(|error| error.to_string())?;
        Simulation::new(&rig, workload, 1).and_then(Simulation::run).map_err(|error| error.to_string())
    };
    let results = replay("0.000000 0 100 8 1\n10.000000 0 5000 8 0\n").expect("the trace is well formed");
    assert_eq!(results.response().count(), 2);
    assert!(results.workload.kind.starts_with("trace, "), "{}", results.workload.kind);
    let error =
        replay("0.000000 0 100 8 1\n10.000000 0 99999999999 8 0\n").expect_err("there is no such block");
    assert!(error.starts_with("made.trace: request 2: block "), "{error}");
}

/// What is wrong with a pattern on a rig.
fn refused(rig: &str, spec: PatternSpec) -> String {
    let rig = load_rig(rig, &NoFiles).expect("the rig ships");
    let simulation = Simulation::new(&rig, Workload::pattern(spec), 1);
    simulation.err().expect("the pattern cannot be had").to_string()
}

#[test]
fn contradicting_pattern_is_rejected() {
    let [random, streams, tracks] = [AccessPattern::Random, AccessPattern::Streams, AccessPattern::Aligned]
        .map(|pattern| PatternSpec::closed(pattern, 1));
    let open = |per_s| PatternSpec { arrivals: ArrivalProcess::Open { per_s }, ..random };
    let cases = [
        (
            PatternSpec { streams: 3, ..random },
            "streams: 3 is more than 1, which only the pattern `Streams` takes",
        ),
        (PatternSpec { write_share: 0.5, ..streams }, "write share: streams only read (0)"),
        (
            PatternSpec { request_bytes: Some(1000), ..random },
            "1000 bytes are no whole number of disk0's sectors of 512 bytes",
        ),
        (open(0.0), "arrivals: 0 is outside 0.000001 to 1000000000 requests a second"),
        (open(f64::NAN), "arrivals: NaN is outside 0.000001 to 1000000000 requests a second"),
        (
            PatternSpec { within_sectors: Some(1 << 40), ..tracks },
            "1099511627776 sectors are more than the 17966953 of disk0",
        ),
    ];
    for (spec, message) in cases {
        assert_eq!(refused("atlas-10k", spec), message);
    }
    assert!(refused("raid5", tracks).ends_with("patterns by track need the tracks of one"));
}

#[test]
fn every_pattern_runs() {
    use AccessPattern::{Aligned, Random, Sequential, Streams, Unaligned};
    let rig = load_rig("atlas-10k", &NoFiles).expect("the drive ships");
    for pattern in [Random, Sequential, Streams, Aligned, Unaligned] {
        let spec = PatternSpec { count: 200, ..PatternSpec::closed(pattern, 2) };
        let simulation = Simulation::new(&rig, Workload::pattern(spec), 1).expect("it fits");
        let results = simulation.run().expect("it ends");
        assert_eq!(results.response().count(), 200, "{pattern:?}");
        assert!(results.reads().is_some() && results.writes().is_none(), "{pattern:?}");
    }
}

#[test]
fn unknown_rig_names_the_nearest() {
    let error = load_rig("atlas-10", &NoFiles).expect_err("there is none").to_string();
    assert!(error.contains("did you mean `atlas-10k`?"), "{error}");
    let error = load_rig("folder/rig.toml", &NoFiles).expect_err("there are no files").to_string();
    assert_eq!(error, "folder/rig.toml: this program reads no files");
}

#[test]
fn kept_requests_agree_with_the_statistics() {
    let job = JOB.replace("ramp_time=1\n", "");
    let results = simulation_of(&job).keep_requests().run().expect("the job ends");
    let table = results.requests.as_deref().expect("they were kept");
    assert_eq!(table.len() as u64, results.response().count());
    let mut total_ns = vec![0; table.len()];
    for values in table.parts_ns.iter().filter_map(|column| column.clone().into_values()) {
        total_ns.iter_mut().zip(values).for_each(|(total, part)| *total += part);
    }
    let responses = table.completed_ns.iter().zip(&table.submitted_ns).map(|(end, start)| end - start);
    assert_eq!(responses.collect::<Vec<_>>(), total_ns, "the parts add up to the response");
    assert!(table.completed_ns.is_sorted(), "the rows are in the order of completion");
}

#[test]
fn records_of_a_program_are_replayed_like_those_of_a_file() {
    let rig = load_rig("atlas-10k", &NoFiles).expect("the drive ships");
    let replay = |lbn: u64| {
        let record =
            move |n: u64| Record::new(Instant(n * 10_000_000), 0, Kind::Read, (lbn + 9 * n) * 512, 4096);
        let workload = Workload::records((0..2).map(record), "made", &TraceOptions::default());
        Simulation::new(&rig, workload, 1).and_then(Simulation::run).map_err(|error| error.to_string())
    };
    let file = "0.000000 0 100 8 1\n10.000000 0 109 8 1\n";
    let workload = Workload::trace(file.as_bytes(), "made", &TraceOptions::default()).expect("it holds");
    let replayed = Simulation::new(&rig, workload, 1).and_then(Simulation::run).expect("it fits");
    let results = replay(100).expect("the blocks exist");
    assert_eq!(results.response().count(), 2);
    assert_eq!(results.end, replayed.end);
    let error = replay(99_999_999_999).expect_err("there is no such block");
    assert!(error.starts_with("made: request 1: block "), "{error}");
}
