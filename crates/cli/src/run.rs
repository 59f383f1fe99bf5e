//! `headstack run`: one load on one drive, from the command line.

use crate::catalog;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::sim::text;
use crate::units::{parse_bytes, parse_whole};
use crate::value_parser::ListedName;
use crate::versioned;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use cpu_time::ThreadTime;
use headstack::{
    AccessPattern, ArrivalProcess, Error, Note, PatternError, PatternSpec, Results, Simulation, Workload,
    ratio,
};
use headstack_policy::order;
use headstack_sim::{DeviceOptions, TimeSplit};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value};
use std::io::Write;
use std::ops::ControlFlow;

/// Run one load on a drive and print throughput, response times and where the time went.
#[derive(clap::Args)]
pub(crate) struct Run {
    /// A shipped drive (`headstack drive list`) or a drive file.
    #[arg(value_name = "DRIVE", required_unless_present = "drive_option")]
    drive: Option<String>,
    /// The same as DRIVE.
    #[arg(
        long = "drive",
        id = "drive_option",
        value_name = "NAME|FILE",
        conflicts_with = "drive",
        hide = true
    )]
    drive_option: Option<String>,
    /// Which blocks the requests are for.
    #[arg(long, value_enum)]
    pattern: PatternArg,
    /// Size of a request (512, 4K, 1M; powers of 1024). [default: 4K; a whole track for aligned and unaligned]
    #[arg(long, value_parser = parse_bytes)]
    size: Option<u64>,
    /// Requests kept outstanding, and the length of the drive's queue. With streams or --rate: only the length
    /// of the drive's queue, by default that of the drive file. [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: Option<u32>,
    /// The order in which the drive serves requests. [default: that of the drive file]
    #[arg(long, value_parser = ORDER)]
    order: Option<String>,
    /// Number of requests.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Number of sequential streams, spaced evenly over the disk, each with one request outstanding.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    streams: u32,
    /// Share of writes, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    write_share: f64,
    /// Open arrivals: requests arrive at random times, on average this number per second, however many are
    /// outstanding.
    #[arg(long, value_name = "REQUESTS_PER_S", value_parser = rate)]
    rate: Option<f64>,
    /// Seed of all random numbers.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = parse_whole)]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Which blocks a load asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
enum PatternArg {
    /// Anywhere on the disk, at multiples of the request's size.
    Random,
    /// One after the other from the first block on.
    Sequential,
    /// Several sequential readers, spaced evenly over the disk.
    Streams,
    /// From the start of a random track.
    Aligned,
    /// As long as `aligned`, from any block.
    Unaligned,
}

impl PatternArg {
    fn pattern(self) -> AccessPattern {
        match self {
            PatternArg::Random => AccessPattern::Random,
            PatternArg::Sequential => AccessPattern::Sequential,
            PatternArg::Streams => AccessPattern::Streams,
            PatternArg::Aligned => AccessPattern::Aligned,
            PatternArg::Unaligned => AccessPattern::Unaligned,
        }
    }
}

/// `--order`: any text that names an order; help lists them with their effects.
const ORDER: ListedName = ListedName {
    check: |text| order::built_in(text).map(|_| ()).map_err(|error| error.to_string()),
    known: || order::all().iter().map(|entry| PossibleValue::new(entry.name).help(entry.summary)).collect(),
};

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be 0 to 1".to_string()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1e-3..=1e6).contains(&rate) => Ok(rate),
        _ => Err("must be 0.001 to 1000000 requests a second".to_string()),
    }
}

#[derive(JsonSchema, Serialize)]
struct Outcome<'a> {
    drive: &'a str,
    pattern: PatternArg,
    order: &'a str,
    seed: u64,
    partial: Option<Partial>,
    /// What is suspicious in the figures.
    notes: Vec<RunNote>,
    #[serde(flatten)]
    figures: RunFigures,
}

#[derive(JsonSchema, Serialize)]
struct Partial {
    signal: &'static str,
    /// Requests in the whole run.
    of: u64,
}

#[derive(JsonSchema, Serialize)]
struct RunNote {
    /// The name of the check.
    name: &'static str,
    /// What was met, and the key to look at.
    text: String,
}

impl Run {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let named = self.drive.as_ref().or(self.drive_option.as_ref()).expect("the parser asks for one");
        let spec = catalog::load(named)?;
        let workload = Workload::pattern(self.pattern_spec());
        let simulation = Simulation::on_drive(&spec, &self.options(), workload, self.seed);
        let mut simulation = simulation.map_err(|error| failure(&error))?;
        let interrupt = Interrupt::watch()?;
        let mut progress = Progress::alone();
        let (started, mut stopped) = (ThreadTime::now(), None);
        simulation.run_while(&mut |run| {
            progress.show(run.now, run.completed, Some(run.completed as f64 / self.count as f64));
            stopped = interrupt.received();
            stopped.map_or(ControlFlow::Continue(()), |signal| ControlFlow::Break(signal.name().to_string()))
        });
        let cpu_s = started.elapsed().as_secs_f64();
        progress.finish();
        let mut results = simulation.finish().map_err(Failure::input)?;
        results.cpu_s = Some(cpu_s);
        results.rig.title.clone_from(&spec.title);
        results.workload.name =
            self.pattern.to_possible_value().map_or(String::new(), |value| value.get_name().to_string());
        if let Some(stop) = &mut results.early_stop {
            stop.share = Some(results.statistics.completed() as f64 / self.count as f64);
        }
        let figures = RunFigures::new(&results, cpu_s);
        let notes = results.notes().into_iter().map(|Note { name, text }| RunNote { name, text }).collect();
        let order = self.order.as_deref().unwrap_or(&spec.queue.order);
        let partial = stopped.map(|signal| Partial { signal: signal.name(), of: self.count });
        let (drive, pattern, seed) = (&spec.name, self.pattern, self.seed);
        let outcome = Outcome { drive, pattern, order, seed, partial, notes, figures };
        if self.json {
            versioned::print(&outcome, out)?;
        } else {
            text::print(&results, out)?;
        }
        if let Some(signal) = stopped { Err(Failure::Stopped(signal)) } else { Ok(()) }
    }

    /// The options of the drive. Without `--depth`, a closed pattern gets a queue of length 1; streams and open arrivals get that of the drive
    /// file.
    fn options(&self) -> DeviceOptions {
        let closed = self.rate.is_none() && self.pattern != PatternArg::Streams;
        let depth = self.depth.or(closed.then_some(1));
        DeviceOptions { seed: self.seed, depth, order: self.order.clone() }
    }

    fn pattern_spec(&self) -> PatternSpec {
        let arrivals = match self.rate {
            Some(per_s) => ArrivalProcess::Open { per_s },
            None => ArrivalProcess::Closed { depth: self.depth.unwrap_or(1) },
        };
        PatternSpec {
            pattern: self.pattern.pattern(),
            arrivals,
            request_bytes: self.size,
            within_sectors: None,
            streams: self.streams,
            write_share: self.write_share,
            count: self.count,
        }
    }
}

/// The error of a pattern, reworded with the names of the command's options.
fn failure(error: &Error) -> Failure {
    let Error::Pattern(error) = error else { return Failure::input(error) };
    Failure::Input(match error {
        PatternError::Streams(_) => "--streams is for --pattern streams".to_string(),
        PatternError::StreamWrites => "streams are read only: leave --write-share out".to_string(),
        PatternError::TrackMix => {
            "track patterns are all reads or all writes: --write-share 0 or 1".to_string()
        }
        PatternError::OpenArrivals => "--rate is for --pattern random and sequential".to_string(),
        other => other.to_string(),
    })
}

/// The figures of a run: times count from 0 to the last completion.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct RunFigures {
    requests: u64,
    simulated_s: f64,
    cpu_s: f64,
    requests_per_cpu_s: f64,
    iops: f64,
    bandwidth_mb_s: f64,
    response_ms: ResponseMs,
    /// Mean of each part of the response time.
    #[schemars(schema_with = "parts_schema")]
    parts_ms: Map<String, Value>,
}

#[derive(Clone, Debug, JsonSchema, Serialize)]
struct ResponseMs {
    mean: f64,
    p50: f64,
    p99: f64,
    max: f64,
}

/// The parts of a response time are a number each.
fn parts_schema(_: &mut SchemaGenerator) -> Schema {
    versioned::numbers_schema(&TimeSplit::NAMES, "number")
}

impl RunFigures {
    fn new(results: &Results, cpu_s: f64) -> RunFigures {
        let (totals, simulated_s) = (results.totals(), results.statistics.last().as_secs());
        let (responses, requests) = (&totals.responses, totals.responses.count() as f64);
        let parts = TimeSplit::NAMES.iter().zip(totals.parts_ms());
        RunFigures {
            requests: responses.count(),
            simulated_s,
            cpu_s,
            requests_per_cpu_s: ratio(requests, cpu_s),
            iops: ratio(requests, simulated_s),
            bandwidth_mb_s: ratio(totals.bytes as f64 / 1e6, simulated_s),
            response_ms: ResponseMs {
                mean: responses.mean_ms(),
                p50: responses.p50().as_ms(),
                p99: responses.p99().as_ms(),
                max: responses.max().as_ms(),
            },
            parts_ms: parts.map(|(name, mean)| (name.to_string(), Value::from(mean))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<Outcome<'_>>("run");
    }
}
