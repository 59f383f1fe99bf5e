//! One run of a load on a drive, and what is measured of it.

use cpu_time::ProcessTime;
use headstack_model::{DriveSpec, Nanos};
use headstack_sim::stats::TimeHistogram;
use headstack_sim::{Device, Engine, Finished, TimeSplit};
use headstack_workload::Load;
use serde::Serialize;
use serde_json::{Map, Value};
use std::ops::ControlFlow;

/// Requests between two looks at a run.
const EVERY: u64 = 1 << 12;

/// What is measured of a run. It takes the same memory however many requests there are.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    responses: TimeHistogram,
    parts_ns: [u128; TimeSplit::NAMES.len()],
    sectors: u64,
    sector_bytes: u32,
    end: Nanos,
    cpu_s: f64,
}

/// Runs `load` on `device`, a drive of `spec`, to its end.
pub(crate) fn run(spec: &DriveSpec, device: Device, load: &mut dyn Load) -> Measured {
    run_while(spec, device, load, &mut |_, _| ControlFlow::Continue(()))
}

/// As [`run`], but `look` is called with the time and the number of requests that came back every [`EVERY`] requests, and may end it.
pub(crate) fn run_while(
    spec: &DriveSpec,
    device: Device,
    load: &mut dyn Load,
    look: &mut dyn FnMut(Nanos, u64) -> ControlFlow<()>,
) -> Measured {
    let mut measured = Measured {
        responses: TimeHistogram::new(),
        parts_ns: [0; TimeSplit::NAMES.len()],
        sectors: 0,
        sector_bytes: spec.sector_bytes,
        end: Nanos::ZERO,
        cpu_s: 0.0,
    };
    let mut engine = Engine::new(vec![device]);
    let started = ProcessTime::now();
    engine.run_while(load, &mut |finished| {
        measured.observe(finished);
        match measured.responses.count() {
            count if count.is_multiple_of(EVERY) => look(finished.completion.completed, count),
            _ => ControlFlow::Continue(()),
        }
    });
    measured.cpu_s = started.elapsed().as_secs_f64();
    measured
}

impl Measured {
    fn observe(&mut self, finished: &Finished) {
        let completion = &finished.completion;
        self.responses.record(completion.response());
        for (sum, part) in self.parts_ns.iter_mut().zip(completion.parts.parts()) {
            *sum += u128::from(part.0);
        }
        self.sectors += u64::from(completion.request.sectors);
        self.end = self.end.max(completion.completed);
    }

    /// The response times.
    pub(crate) fn responses(&self) -> &TimeHistogram {
        &self.responses
    }

    /// Time that passed on the drive, in seconds.
    pub(crate) fn simulated_s(&self) -> f64 {
        self.end.as_secs()
    }

    /// Requests a second of the drive's time.
    pub(crate) fn iops(&self) -> f64 {
        ratio(self.responses.count() as f64, self.simulated_s())
    }

    /// Data a second of the drive's time, in millions of bytes.
    pub(crate) fn bandwidth_mb_s(&self) -> f64 {
        ratio(self.sectors as f64 * f64::from(self.sector_bytes) / 1e6, self.simulated_s())
    }

    /// The figures as they are printed.
    pub(crate) fn summary(&self) -> Summary {
        let requests = self.responses.count();
        let mean_ms = |sum: &u128| ratio(*sum as f64 / 1e6, requests as f64);
        let parts = TimeSplit::NAMES.iter().zip(&self.parts_ns);
        Summary {
            requests,
            simulated_s: self.simulated_s(),
            cpu_s: self.cpu_s,
            requests_per_cpu_s: ratio(requests as f64, self.cpu_s),
            iops: self.iops(),
            bandwidth_mb_s: self.bandwidth_mb_s(),
            response_ms: Responses {
                mean: self.responses.mean_ms(),
                p50: self.responses.p50().as_ms(),
                p99: self.responses.p99().as_ms(),
                max: self.responses.max().as_ms(),
            },
            parts_ms: parts.map(|(name, sum)| (name.to_string(), Value::from(mean_ms(sum)))).collect(),
        }
    }
}

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) requests: u64,
    pub(crate) simulated_s: f64,
    pub(crate) cpu_s: f64,
    pub(crate) requests_per_cpu_s: f64,
    pub(crate) iops: f64,
    pub(crate) bandwidth_mb_s: f64,
    pub(crate) response_ms: Responses,
    /// Mean of every part of the response time.
    pub(crate) parts_ms: Map<String, Value>,
}

/// Response times, in milliseconds.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Responses {
    pub(crate) mean: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// A quotient; 0 where the divisor is.
fn ratio(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}
