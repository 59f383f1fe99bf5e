//! Replays of traces with measured response times, one request at a time, to compare a simulated drive with a real one.

use crate::error::Error;
use crate::load::Workload;
use crate::simulation::Simulation;
use headstack_model::{DriveSpec, Instant, Op};
use headstack_sim::stats::Pair;
use headstack_sim::{DeviceOptions, Finished, Observer};
use headstack_workload::trace::{Kind, Record, Replay, ReplayOptions, Trace};
use headstack_workload::{Load, Poll, VolumeInfo};

/// Seed of what the drive draws.
const SEED: u64 = 1;

/// Replays a trace with measured response times on a fresh drive, one request outstanding: the next is issued its think
/// time after the simulated completion. The trace is read twice: its response times from `measured`, its requests from `replayed`.
///
/// *Errors:* the trace or the drive is invalid.
pub fn replay(spec: &DriveSpec, measured: Trace<'_>, replayed: Trace<'_>) -> Result<Vec<Pair>, Error> {
    Ok(replay_while(spec, measured, replayed, |_, _| true)?.pairs)
}

/// A replay that may have been stopped.
#[derive(Clone, Debug)]
pub struct PartialReplay {
    /// The replayed requests.
    pub pairs: Vec<Pair>,
    /// Number of requests in the whole trace.
    pub requests: usize,
}

/// The same as [`replay`], as long as `continues` returns true. It is called with two numbers of requests: those issued, and those in the
/// trace. While the trace is first read, it is called for each record with 0 issued and the number read so far; then each time that the
/// load is polled.
///
/// *Errors:* the trace or the drive is invalid.
pub fn replay_while(
    spec: &DriveSpec,
    measured: Trace<'_>,
    replayed: Trace<'_>,
    mut continues: impl FnMut(usize, usize) -> bool,
) -> Result<PartialReplay, Error> {
    let mut records: Vec<Record> = Vec::new();
    for record in measured {
        records.push(record?);
        if !continues(0, records.len()) {
            return Ok(PartialReplay { pairs: Vec::new(), requests: records.len() });
        }
    }
    let volume = VolumeInfo {
        name: spec.name.clone(),
        sectors: spec.capacity_sectors,
        sector_bytes: spec.sector_bytes,
        zones: None,
    };
    let replay = Replay::new(replayed, &[volume], ReplayOptions::default());
    let mut load = StoppableReplay { replay, issued: 0, requests: records.len(), continues };
    let mut observer = Pairs { records: &records, pairs: Vec::with_capacity(records.len()) };
    let simulation =
        Simulation::on_drive(spec, &DeviceOptions::default(), Workload::from_load("load", &mut load), SEED)?;
    simulation.observe(&mut observer).run()?;
    let pairs = observer.pairs;
    match load.replay.take_error() {
        Some(error) => Err(Error::Replay(error)),
        None => Ok(PartialReplay { pairs, requests: records.len() }),
    }
}

/// Pairs each request that completes with its record.
struct Pairs<'a> {
    records: &'a [Record],
    pairs: Vec<Pair>,
}

impl Observer for Pairs<'_> {
    fn finished(&mut self, finished: &Finished) {
        let record = &self.records[finished.id as usize];
        let op = if record.kind == Kind::Read { Op::Read } else { Op::Write };
        let measured = record.response.expect("a validation trace has them");
        self.pairs.push(Pair { op, measured, simulated: finished.completion.response() });
    }
}

/// A replay that issues requests as long as its caller agrees.
struct StoppableReplay<'a, F> {
    replay: Replay<'a>,
    issued: usize,
    requests: usize,
    continues: F,
}

impl<F: FnMut(usize, usize) -> bool> Load for StoppableReplay<'_, F> {
    fn poll(&mut self, now: Instant) -> Poll {
        if !(self.continues)(self.issued, self.requests) {
            return Poll::Done;
        }
        let polled = self.replay.poll(now);
        self.issued += usize::from(matches!(polled, Poll::Issue(_)));
        polled
    }

    fn handle_completion(&mut self, now: Instant, id: u64) {
        self.replay.handle_completion(now, id);
    }
}
