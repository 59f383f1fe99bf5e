//! `headstack stripe follow`.

use crate::catalog::DriveArg;
use crate::failure::Failure;
use crate::report::Table;
use crate::trace::formats;
use crate::trace::input::Input;
use crate::units::{grouped, parse_bytes, sectors, significant};
use crate::versioned;
use headstack_model::{Instant, Nanos};
use headstack_policy::stripe::advise::{DiskTimes, OnLine};
use headstack_workload::trace::{Kind, Record};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Write;

/// Choose the stripe unit of a file or array while the requests of a trace arrive, and print when the unit would have
/// changed.
///
/// The advisor changes the unit once the time that requests lost because of the current one reaches the time of a
/// change.
#[derive(clap::Args)]
pub(crate) struct Follow {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    drive: DriveArg,
    /// Disks of the array.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    disks: u32,
    /// The unit at the start, rounded down to a power of two sectors.
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = parse_bytes)]
    unit: u64,
    /// The time that moving the data to another unit takes, in seconds.
    #[arg(long, value_name = "S", default_value_t = 10.0, value_parser = seconds)]
    change: f64,
    /// Requests in the array at once, for a trace without response times.
    #[arg(long, value_name = "L", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    mpl: Option<u32>,
    /// The trace's format. [default: recognized by its first bytes]
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    format: Option<String>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err("must be 0 to 1000000000 seconds".to_string()),
    }
}

#[derive(JsonSchema, Serialize)]
struct Followed {
    trace: String,
    drive: String,
    disks: u32,
    requests: u64,
    /// The unit at the start, then each one with the request and the time from which on it holds.
    units: Vec<UnitInForce>,
}

#[derive(JsonSchema, Serialize)]
struct UnitInForce {
    from_request: u64,
    from_s: f64,
    unit_kib: f64,
}

/// The requests that are in the array, by the times at which they complete.
#[derive(Default)]
struct InArray(BinaryHeap<Reverse<Instant>>);

impl InArray {
    /// Adds a request, and returns the number of earlier requests that are still in the array when it arrives. None if the trace does not have
    /// its response time.
    fn meet(&mut self, record: &Record) -> Option<u32> {
        while self.0.peek().is_some_and(|Reverse(ends)| *ends <= record.time) {
            self.0.pop();
        }
        let others = self.0.len() as u32;
        self.0.push(Reverse(record.time + record.response?));
        Some(others)
    }
}

impl Follow {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let spec = self.drive.load()?;
        let disk = DiskTimes::from_spec(&spec).map_err(Failure::input)?;
        let first = u64::from(sectors(self.unit, &spec).map_err(Failure::Input)?).max(1);
        let first = 1 << first.ilog2();
        let mut advisor = OnLine::new(disk, self.disks, first, Nanos::from_ms(1e3 * self.change));
        let sector_bytes = u64::from(spec.sector_bytes);
        let kib = |unit: u64| (unit * sector_bytes) as f64 / 1024.0;
        let mut units = vec![UnitInForce { from_request: 0, from_s: 0.0, unit_kib: kib(first) }];
        let (mut requests, mut began, mut in_array) = (0, None, InArray::default());
        let mut opened = self.input.open(formats::named(self.format.as_ref()))?;
        opened.for_each(|record, _| {
            if !matches!(record.kind, Kind::Read | Kind::Write) || record.bytes == 0 {
                return Ok(());
            }
            let others = self.mpl.map(|mpl| mpl - 1).or_else(|| in_array.meet(&record));
            let others = others.ok_or_else(|| {
                let message =
                    "the trace has no response times: give the requests in the array at once with --mpl";
                Failure::Input(message.to_string())
            })?;
            let changes = advisor.changes();
            advisor.observe(record.bytes.div_ceil(sector_bytes), others);
            requests += 1;
            let from_s = record.time.since(*began.get_or_insert(record.time)).as_ms() / 1e3;
            if advisor.changes() > changes {
                units.push(UnitInForce { from_request: requests, from_s, unit_kib: kib(advisor.unit()) });
            }
            Ok(())
        })?;
        let followed = Followed {
            trace: self.input.name(),
            drive: spec.name.clone(),
            disks: self.disks,
            requests,
            units,
        };
        if self.json {
            versioned::print(&followed, out)?;
            return Ok(());
        }
        print(&followed, &spec.title, out)
    }
}

fn print(followed: &Followed, title: &str, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(
        out,
        "{}: {} requests to {} disks {title}\n",
        followed.trace,
        grouped(followed.requests),
        followed.disks
    )?;
    let mut table = Table::new("Units", &["from request", "from second", "unit (KiB)"]);
    for unit in &followed.units {
        table.row([grouped(unit.from_request), significant(unit.from_s, 4), significant(unit.unit_kib, 4)]);
    }
    write!(out, "{}", table.to_text())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<Followed>("stripe follow");
    }
}
