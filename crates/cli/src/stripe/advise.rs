//! `headstack stripe advise`.

use super::commands::{LinuxCommands, RaidLevel};
use crate::catalog::DriveArg;
use crate::failure::Failure;
use crate::report::Table;
use crate::units::{parse_bytes, sectors, significant};
use crate::versioned;
use headstack_policy::stripe::advise::{self, DiskTimes, Question};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;

/// Print the stripe unit that our advisor and each published rule gives for an array.
#[derive(clap::Args)]
pub(crate) struct Advise {
    #[command(flatten)]
    drive: DriveArg,
    /// Disks of the array.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    disks: u32,
    /// Mean number of requests in the array at once (MPL), at least 1.
    #[arg(long, value_name = "L", value_parser = concurrency)]
    mpl: f64,
    /// Mean size of a request (4K, 1M; powers of 1024).
    #[arg(long, value_parser = parse_bytes)]
    size: u64,
    /// Requests begin at multiples of this size, anywhere in the array; a request that crosses a unit's end takes two disks.
    /// With `unit`, each begins with a unit, as the published rules assume.
    #[arg(long, value_name = "SIZE|unit", default_value = "4K", value_parser = alignment)]
    align: RequestAlignment,
    /// The longest transfer that the host requests with one command, if that is less than a unit. The next command
    /// follows when the last one is complete; without read-ahead it costs an additional revolution.
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    command: Option<u64>,
    /// RAID level of the array: striping without parity, or with rotated parity, of 3 disks or more.
    #[arg(long, value_enum, default_value_t = RaidLevel::Zero)]
    level: RaidLevel,
    /// Share of writes, 0 to 1. It matters on RAID-5, where a write of a part of a row reads first.
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    writes: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn concurrency(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(requests) if (1.0..=1e6).contains(&requests) => Ok(requests),
        _ => Err("must be 1 to 1000000 requests".to_string()),
    }
}

/// Where requests begin.
#[derive(Clone, Copy)]
enum RequestAlignment {
    /// At multiples of this number of bytes.
    Bytes(u64),
    /// At the start of a stripe unit.
    Unit,
}

fn alignment(text: &str) -> Result<RequestAlignment, String> {
    match text {
        "unit" => Ok(RequestAlignment::Unit),
        _ => parse_bytes(text).map(RequestAlignment::Bytes),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err("must be 0 to 1".to_string()),
    }
}

#[derive(JsonSchema, Serialize)]
struct Advice {
    drive: String,
    disks: u32,
    /// RAID level, 0 or 5.
    level: u32,
    /// Share of writes.
    writes: f64,
    mpl: f64,
    size_bytes: u64,
    /// Requests begin at multiples of this; null where each begins with a unit.
    align_bytes: Option<u64>,
    positioning_ms: f64,
    rate_mb_s: f64,
    reach_kib: f64,
    advisors: Vec<Row>,
    /// Commands that build such an array on Linux.
    commands: LinuxCommands,
}

#[derive(JsonSchema, Serialize)]
struct Row {
    name: &'static str,
    unit_kib: f64,
    /// Mean number of disks of a request of the mean size.
    disks: f64,
    summary: &'static str,
    source: &'static str,
}

impl Advise {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let spec = self.drive.load()?;
        if self.level == RaidLevel::Five && self.disks < 3 {
            let message = format!("--disks {}: RAID-5 takes 3 disks or more", self.disks);
            return Err(Failure::Input(message));
        }
        let mut disk = DiskTimes::from_spec(&spec).map_err(Failure::input)?;
        if let Some(bytes) = self.command {
            disk = disk.with_commands_of(sectors(bytes, &spec).map_err(Failure::Input)?);
        }
        let sector_bytes = f64::from(spec.sector_bytes);
        let request_sectors = self.size as f64 / sector_bytes;
        let align_bytes = match self.align {
            RequestAlignment::Bytes(bytes) => Some(bytes),
            RequestAlignment::Unit => None,
        };
        let alignment = align_bytes.map(|bytes| sectors(bytes, &spec)).transpose().map_err(Failure::Input)?;
        let alignment = alignment.map(|sectors| sectors as f64);
        let parity_writes = (self.level == RaidLevel::Five).then_some(self.writes);
        let question = Question {
            disk: &disk,
            disks: self.disks,
            concurrency: self.mpl,
            request_sectors,
            parity_writes,
            alignment,
        };
        let row = |entry: &advise::Entry| {
            let unit = entry.unit(&question);
            Row {
                name: entry.name,
                unit_kib: unit * sector_bytes / 1024.0,
                disks: advise::disks_of_request(request_sectors, unit, alignment, self.disks),
                summary: entry.summary,
                source: entry.source,
            }
        };
        let advisors: Vec<Row> = advise::all().iter().map(row).collect();
        let commands = LinuxCommands::new(advisors[0].unit_kib, self.disks, self.level, &spec);
        let advice = Advice {
            drive: spec.name.clone(),
            disks: self.disks,
            level: self.level.number(),
            writes: self.writes,
            mpl: self.mpl,
            size_bytes: self.size,
            align_bytes,
            positioning_ms: disk.positioning().as_ms(),
            rate_mb_s: disk.sectors_per_second() * sector_bytes / 1e6,
            reach_kib: disk.reach() * sector_bytes / 1024.0,
            advisors,
            commands,
        };
        if self.json {
            versioned::print(&advice, out)?;
            return Ok(());
        }
        print(&advice, &spec.title, out)
    }
}

fn print(advice: &Advice, title: &str, out: &mut dyn Write) -> Result<(), Failure> {
    let lines = [
        ("drive", title.to_string()),
        ("array", format!("{} disks{}", advice.disks, if advice.level == 5 { ", RAID-5" } else { "" })),
        (
            "load",
            format!(
                "{} requests at once, of {} KiB that begin {}{}",
                significant(advice.mpl, 3),
                advice.size_bytes as f64 / 1024.0,
                advice.align_bytes.map_or("with a unit".to_string(), |bytes| format!(
                    "at multiples of {} KiB",
                    bytes as f64 / 1024.0
                )),
                if advice.level == 5 {
                    format!(", {} % writes", significant(100.0 * advice.writes, 3))
                } else {
                    String::new()
                }
            ),
        ),
        ("P", format!("{} ms of seek and rotational latency", significant(advice.positioning_ms, 4))),
        ("X", format!("{} MB/s of long transfer", significant(advice.rate_mb_s, 4))),
        ("P·X", format!("{} KiB", significant(advice.reach_kib, 4))),
    ];
    for (name, value) in lines {
        writeln!(out, "  {name:<6} {value}")?;
    }
    let mut table = Table::new("Stripe units", &["advisor", "what it says", "unit (KiB)", "disks a request"])
        .with_words(2);
    for row in &advice.advisors {
        table.row([
            row.name.to_string(),
            row.summary.to_string(),
            significant(row.unit_kib, 4),
            significant(row.disks, 3),
        ]);
    }
    write!(out, "\n{}", table.to_text())?;
    advice.commands.print(advice.advisors[0].name, out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_schema_is_that_of_the_type() {
        versioned::schema::check::<Advice>("stripe advise");
    }
}
