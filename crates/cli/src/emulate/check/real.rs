//! A job in real time, on a disk of this process.

use super::Bench;
use super::job::{Job, Until};
use crate::failure::Failure;
use headstack_host::disk::{Emulator, EmulatorFaults, Store, Volume};
use headstack_host::{Answer, BlockError, Caller, Clock, Disk, DiskHandle, Lateness, Operation, Timing};
use headstack_model::{Instant, Nanos, Op, Request};
use headstack_workload::{Load, Poll};
use indicatif::ProgressBar;
use std::io;
#[allow(clippy::disallowed_types, reason = "threads share a job")]
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

pub(super) struct Ran {
    pub(super) times: Vec<Nanos>,
    pub(super) lateness: Lateness,
    /// Whether the disk's thread had real-time priority.
    pub(super) is_real_time: bool,
}

impl Bench<'_> {
    /// Runs a job on a new disk in memory.
    pub(super) fn run(
        &self,
        job: &Job,
        end: Instant,
        clock: Clock,
        bar: &ProgressBar,
    ) -> Result<Ran, Failure> {
        let fault = |error: io::Error| Failure::Input(format!("{}: {error}", self.info.name));
        let load = job.load(self.info, end, self.seed)?;
        let engine = self.rig.build(self.seed).map_err(Failure::input)?;
        let volumes = self.rig.volumes().into_iter().map(|info| {
            let store = Store::memory(info.bytes()).map_err(fault)?;
            Ok(Volume::new(info, store))
        });
        let volumes = volumes.collect::<Result<Vec<_>, Failure>>()?;
        let emulator = Emulator::new(engine, volumes, EmulatorFaults::default()).map_err(Failure::Input)?;
        let disk = Disk::start(&self.info.name, emulator, clock, Timing::default()).map_err(fault)?;
        let (over, ended) = channel();
        let block = self.info.sector_bytes;
        #[allow(clippy::disallowed_types, reason = "threads share a job")]
        let client = Arc::new(Client {
            disk: disk.handle(),
            block,
            in_flight: Mutex::new(InFlightRequest::new(load, over)),
        });
        client.ask();
        let begun = bar.position();
        while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_millis(200)) {
            let seconds = (clock.real(clock.now().since_start()).as_secs()).min(self.seconds);
            bar.set_position(begun + seconds);
        }
        bar.set_position(begun + self.seconds);
        let times = std::mem::take(&mut client.lock().times);
        let (handle, is_real_time) = (disk.handle(), disk.is_real_time());
        // The disk records the lateness of an answer after it, so stop the disk before reading the lateness.
        disk.stop().map_err(|error| Failure::Input(format!("{}: {error}", self.info.name)))?;
        Ok(Ran { times, lateness: handle.lateness(), is_real_time })
    }
}

/// The client. The thread that delivers an answer submits the next request.
struct Client {
    disk: DiskHandle,
    block: u32,
    #[allow(clippy::disallowed_types, reason = "threads share a job")]
    in_flight: Mutex<InFlightRequest>,
}

struct InFlightRequest {
    load: Until,
    times: Vec<Nanos>,
    outstanding: usize,
    over: Sender<()>,
}

impl InFlightRequest {
    fn new(load: Until, over: Sender<()>) -> InFlightRequest {
        InFlightRequest { load, times: Vec::new(), outstanding: 0, over }
    }
}

impl Client {
    fn lock(&self) -> std::sync::MutexGuard<'_, InFlightRequest> {
        self.in_flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(self: &Arc<Client>) {
        loop {
            let now = self.disk.clock().now();
            let mut in_flight = self.lock();
            let Poll::Issue(issue) = in_flight.load.poll(now) else {
                // A closed load issues a request only after a completion. So it is over once none is outstanding.
                if in_flight.outstanding == 0 {
                    // Sent once.
                    let _ = in_flight.over.send(());
                }
                return;
            };
            in_flight.outstanding += 1;
            drop(in_flight);
            let asked = Asked { client: Arc::clone(self), id: issue.id, begun: now };
            self.disk.submit(issue.device, self.operation(&issue.request), Box::new(asked));
        }
    }

    fn operation(&self, request: &Request) -> Operation {
        let (offset, bytes) = (request.lbn.0 * u64::from(self.block), request.sectors * self.block);
        match request.op {
            Op::Read => Operation::Read { offset, bytes, fua: request.fua },
            Op::Write => Operation::Write { offset, data: vec![0x5A; bytes as usize], fua: request.fua },
            Op::Flush => Operation::Flush,
        }
    }
}

struct Asked {
    client: Arc<Client>,
    id: u64,
    begun: Instant,
}

impl Caller for Asked {
    fn answer(self: Box<Self>, result: Result<Answer, BlockError>) {
        assert!(result.is_ok(), "a disk without faults does what it is asked: {result:?}");
        let now = self.client.disk.clock().now();
        let mut in_flight = self.client.lock();
        in_flight.outstanding -= 1;
        in_flight.times.push(now.since(self.begun));
        in_flight.load.handle_completion(now, self.id);
        drop(in_flight);
        self.client.ask();
    }
}

#[cfg(test)]
mod tests {
    use super::super::job;
    use super::*;
    use crate::rig;

    #[test]
    fn every_response_is_counted_in_lateness() {
        let rig = rig::load::load("atlas-10k").expect("it is shipped");
        let (volumes, speed) = (rig.volumes(), 100.0);
        let bench = Bench { rig: &rig, info: &volumes[0], seed: 0, seconds: 1, speed };
        let run = |job, seconds| {
            let clock = Clock::new(speed).expect("it is allowed");
            let ran = bench.run(job, Instant::from_secs(seconds), clock, &ProgressBar::hidden());
            ran.expect("memory has room")
        };
        for job in &job::ALL {
            // On a busy machine 20 ms may pass without an answer.
            let mut runs = [2, 20, 200].into_iter().map(|seconds| run(job, seconds));
            let ran =
                runs.find(|ran| !ran.times.is_empty()).expect("requests are answered within two seconds");
            assert_eq!(ran.lateness.count(), ran.times.len() as u64);
        }
    }
}
