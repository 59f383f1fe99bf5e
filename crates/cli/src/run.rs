//! `headstack run`: one load on one drive, by hand.

use crate::catalog::DriveArg;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::loads::{Arrivals, LoadSpec, Pattern};
use crate::measure::{self, Summary};
use crate::named::Named;
use crate::progress::Progress;
use crate::units::{parse_bytes, parse_whole, significant};
use clap::builder::PossibleValue;
use headstack_model::DriveSpec;
use headstack_policy::order;
use headstack_sim::{Device, DeviceOptions};
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;

/// Run one load on a drive and print throughput, response times and where the time went.
#[derive(clap::Args)]
pub(crate) struct Run {
    #[command(flatten)]
    drive: DriveArg,
    /// Which blocks are asked for.
    #[arg(long, value_enum)]
    pattern: Pattern,
    /// Size of a request (512, 4K, 1M; powers of 1024). [default: 4K; a whole track for aligned and unaligned]
    #[arg(long, value_parser = parse_bytes)]
    size: Option<u64>,
    /// Requests kept outstanding, and the length of the drive's queue. With streams or --rate: the length of the
    /// drive's queue alone, the drive's own by default. [default: 1]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    depth: Option<u32>,
    /// Which request next, in place of the drive's own order.
    #[arg(long, value_parser = ORDER)]
    order: Option<String>,
    /// How many requests.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Number of sequential streams, spaced evenly over the disk, each with one request outstanding.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    streams: u32,
    /// Share of writes, 0 to 1.
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    write_share: f64,
    /// Open arrivals: requests come at random times, so many a second, whatever is outstanding.
    #[arg(long, value_name = "REQUESTS_PER_S", value_parser = rate)]
    rate: Option<f64>,
    /// Seed of everything random.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_parser = parse_whole)]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// `--order`: any text that names an order; help lists them with what each does.
const ORDER: Named = Named {
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

/// What was run, and what came of it.
#[derive(Serialize)]
struct Outcome<'a> {
    drive: &'a str,
    pattern: Pattern,
    order: &'a str,
    seed: u64,
    partial: Option<Partial>,
    #[serde(flatten)]
    summary: Summary,
}

/// A run that a signal stopped.
#[derive(Serialize)]
struct Partial {
    signal: &'static str,
    /// Requests that were asked for.
    of: u64,
}

impl Run {
    pub(crate) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let spec = self.drive.load()?;
        let device = Device::new(&spec, &self.options()).map_err(Failure::input)?;
        let mut load = self.load_spec().build(&spec, &device).map_err(Failure::Input)?;
        let interrupt = Interrupt::watch()?;
        let mut progress = Progress::alone();
        let mut stopped = None;
        let measured = measure::run_while(&spec, device, &mut *load, &mut |now, done| {
            progress.show(now, done, Some(done as f64 / self.count as f64));
            stopped = interrupt.received();
            if stopped.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        progress.finish();
        let summary = measured.summary();
        let order = self.order.as_deref().unwrap_or(&spec.queue.order);
        let partial = stopped.map(|signal| Partial { signal: signal.name(), of: self.count });
        let outcome =
            Outcome { drive: &spec.name, pattern: self.pattern, order, seed: self.seed, partial, summary };
        if self.json {
            let text =
                serde_json::to_string_pretty(&outcome).expect("numbers and words are expressible in JSON");
            writeln!(out, "{text}")?;
        } else {
            print(&outcome, &spec, out)?;
        }
        stopped.map_or(Ok(()), |signal| Err(Failure::Stopped(signal)))
    }

    /// A closed pattern keeps the drive's queue full; otherwise the queue is the drive's own.
    fn options(&self) -> DeviceOptions {
        let closed = self.rate.is_none() && self.pattern != Pattern::Streams;
        let depth = self.depth.or(closed.then_some(1));
        DeviceOptions { seed: self.seed, depth, order: self.order.clone() }
    }

    fn load_spec(&self) -> LoadSpec {
        let arrivals = match self.rate {
            Some(rate) => Arrivals::Open { per_s: rate },
            None => Arrivals::Closed { depth: self.depth.unwrap_or(1) },
        };
        LoadSpec {
            pattern: self.pattern,
            size_bytes: self.size,
            within_sectors: None,
            arrivals,
            streams: self.streams,
            write_share: self.write_share,
            count: self.count,
            seed: self.seed,
        }
    }
}

fn print(outcome: &Outcome, spec: &DriveSpec, out: &mut dyn Write) -> Result<(), Failure> {
    let summary = &outcome.summary;
    let figure = |value: f64| significant(value, 4);
    let mut line = |name: &str, value: String| writeln!(out, "  {name:<20} {value}");
    if let Some(partial) = &outcome.partial {
        let share = 100.0 * summary.requests as f64 / partial.of as f64;
        line("partial", format!("stopped by {} after {share:.1} % of the requests", partial.signal))?;
    }
    line("drive", spec.title.clone())?;
    line("order", outcome.order.to_string())?;
    line("requests", summary.requests.to_string())?;
    line("simulated", format!("{} s", figure(summary.simulated_s)))?;
    let speed = format!("{:.0} requests a CPU second", summary.requests_per_cpu_s);
    line("CPU time", format!("{} s, {speed}", figure(summary.cpu_s)))?;
    line("throughput", format!("{} IOPS, {} MB/s", figure(summary.iops), figure(summary.bandwidth_mb_s)))?;
    let times = &summary.response_ms;
    let quantiles =
        format!("p50 {}, p99 {}, max {}", figure(times.p50), figure(times.p99), figure(times.max));
    line("response", format!("mean {} ms ({quantiles})", figure(times.mean)))?;
    for (name, mean) in &summary.parts_ms {
        let mean = mean.as_f64().unwrap_or(0.0);
        if name == "retries" && mean == 0.0 {
            continue;
        }
        let share = if times.mean > 0.0 { 100.0 * mean / times.mean } else { 0.0 };
        line(&format!("  {}", name.replace('_', " ")), format!("{mean:8.3} ms {share:5.1} %"))?;
    }
    Ok(())
}
