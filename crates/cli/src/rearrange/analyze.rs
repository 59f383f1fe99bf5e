//! `headstack rearrange analyze`.

use crate::failure::Failure;
use crate::report::Table;
use crate::trace::formats;
use crate::trace::input::Input;
use crate::units::{capacity, grouped, parse_bytes};
use crate::versioned;
use headstack_model::Nanos;
use headstack_streams::rearrange::{
    CaughtShares, CounterReplacement, HotBlock, PeriodAnalysis, RearrangeSpec, ReferenceAnalysis,
};
use headstack_workload::trace::{Kind, Record};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

/// Print which blocks of a trace are hot, how their references change from period to period, and what share of them a
/// reserved region would serve.
///
/// If the trace has several devices, the command analyzes the one with the most references, unless --device
/// names another.
#[derive(clap::Args)]
pub(crate) struct Analyze {
    #[command(flatten)]
    input: Input,
    /// The trace's format. [default: recognized by its first bytes]
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    format: Option<String>,
    /// The device to analyze, by its name or number in the trace.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Blocks of the region.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=67_108_864))]
    blocks: u32,
    /// Bytes of a block.
    #[arg(long, value_name = "SIZE", default_value = "8K", value_parser = block_bytes)]
    block_bytes: u64,
    /// Time from one hot list to the next.
    #[arg(long, value_name = "TIME", default_value = "1day", value_parser = period)]
    period: Duration,
    /// Number of block counters. [default: four for each block of the region]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=67_108_864))]
    counters: Option<u32>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

fn block_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes @ 512..=16_777_216 => Ok(bytes),
        bytes => Err(format!("{bytes} is outside 512 to 16777216 bytes")),
    }
}

fn period(text: &str) -> Result<Duration, String> {
    let period = humantime::parse_duration(text).map_err(|error| format!("{error} (such as 1h, 1day)"))?;
    if (1..=100_000_000).contains(&period.as_secs()) {
        Ok(period)
    } else {
        Err("must be 1 s to 100000000 s".to_string())
    }
}

/// Number of hottest blocks that are printed.
const SHOWN: usize = 10;

/// Maximum number of periods that are printed; the JSON has them all.
const PERIODS_SHOWN: usize = 40;

/// The references of a device.
struct DeviceReferences {
    analysis: ReferenceAnalysis,
    references: u64,
    periods: Vec<PeriodAnalysis>,
}

impl Analyze {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let mut opened = self.input.open(formats::named(self.format.as_ref()))?;
        let mut devices: BTreeMap<u32, DeviceReferences> = BTreeMap::new();
        let mut labels: BTreeMap<u32, String> = BTreeMap::new();
        opened.for_each(|record, header| {
            if matches!(record.kind, Kind::Read | Kind::Write) && record.bytes > 0 {
                labels.entry(record.device).or_insert_with(|| header.label(record.device));
                self.observe(devices.entry(record.device).or_insert_with(|| self.device()), &record);
            }
            Ok(())
        })?;
        let total: u64 = devices.values().map(|device| device.references).sum();
        let chosen = self.choose(&devices, &labels)?;
        let DeviceReferences { analysis, references, mut periods } =
            devices.remove(&chosen).expect("the device was chosen among them");
        periods.extend(analysis.finish());
        if periods.iter().all(|period| self.is_without_skew(period)) {
            let message = format!(
                "{}: no block of device {} is referenced more often than the others in a period of {}: a region would \
                 gain nothing; give a longer --period",
                self.input.name(),
                labels[&chosen],
                humantime::format_duration(self.period)
            );
            return Err(Failure::Input(message));
        }
        if self.json {
            versioned::print(&self.object(&labels[&chosen], &periods), out)?;
            return Ok(());
        }
        let share = 100.0 * references as f64 / total as f64;
        writeln!(out, "{}, device {} ({share:.1} % of the references)", self.input.name(), labels[&chosen])?;
        for table in [skew(&periods), self.hottest(&periods), changes(&periods), sizes(&periods)] {
            writeln!(out, "\n{}\n{}", table.title, table.to_text().trim_end())?;
        }
        Ok(())
    }

    /// Whether a region gains nothing in a period: all its blocks are referenced equally often, and either none of them twice or they do not
    /// all fit into the region.
    fn is_without_skew(&self, period: &PeriodAnalysis) -> bool {
        let most = period.hot.first().map_or(0, |hot| hot.count);
        let is_even = most * period.blocks == period.references;
        is_even && (most < 2 || period.blocks > u64::from(self.blocks))
    }

    /// The keys of rearrangement that the options of the command set; the others have their defaults.
    fn spec(&self) -> RearrangeSpec {
        RearrangeSpec { blocks: self.blocks, counters: self.counters, ..RearrangeSpec::default() }
    }

    fn device(&self) -> DeviceReferences {
        let blocks = self.blocks as usize;
        let sizes = [100, 30, 10, 3, 1].map(|part| (blocks / part).max(1)).to_vec();
        let period = Nanos(self.period.as_nanos() as u64);
        let counters = self.spec().counters() as usize;
        let analysis = ReferenceAnalysis::new(sizes, period, CounterReplacement::SpaceSaving, counters);
        DeviceReferences { analysis, references: 0, periods: Vec::new() }
    }

    fn observe(&self, device: &mut DeviceReferences, record: &Record) {
        let first = record.offset / self.block_bytes;
        let last = record.offset.saturating_add(record.bytes - 1) / self.block_bytes;
        // The rearranger does not count longer requests either.
        if last - first < u64::from(self.spec().longest_blocks) {
            device.references += last - first + 1;
            let ended = (first..=last).filter_map(|block| device.analysis.observe(record.time, block));
            device.periods.extend(ended);
        }
    }

    fn choose(
        &self,
        devices: &BTreeMap<u32, DeviceReferences>,
        labels: &BTreeMap<u32, String>,
    ) -> Result<u32, Failure> {
        let chosen = match &self.device {
            Some(name) => labels.iter().find(|(_, label)| *label == name).map(|(device, _)| *device),
            None => devices.iter().max_by_key(|(_, device)| device.references).map(|(device, _)| *device),
        };
        chosen.ok_or_else(|| {
            let known: Vec<&str> = labels.values().map(String::as_str).take(20).collect();
            let name = self.input.name();
            Failure::Input(match &self.device {
                Some(device) => format!("{name}: no device `{device}` (it has {})", known.join(", ")),
                None => format!("{name}: no reads and no writes"),
            })
        })
    }

    fn hottest(&self, periods: &[PeriodAnalysis]) -> Table {
        let mut table = Table::new("Hottest blocks of the last period", &["from", "references", "share"]);
        let Some(last) = periods.last() else { return table };
        for HotBlock { block, count, .. } in last.hot.iter().take(SHOWN) {
            let share = percent(*count as f64 / last.references as f64);
            table.row([capacity(block * self.block_bytes), grouped(*count), share]);
        }
        table
    }

    fn object(&self, device: &str, periods: &[PeriodAnalysis]) -> Value {
        let caught = |caught: &CaughtShares| {
            json!({
                "blocks": caught.blocks,
                "own_share": caught.own,
                "last_share": caught.last,
                "last_counted_share": caught.last_counted,
            })
        };
        let hot =
            |hot: &HotBlock| json!({"offset_bytes": hot.block * self.block_bytes, "references": hot.count});
        let period = |period: &PeriodAnalysis| {
            json!({
                "number": period.number,
                "references": period.references,
                "blocks": period.blocks,
                "caught": period.caught.iter().map(caught).collect::<Vec<_>>(),
                "drift_of_blocks": period.drift.map(|drift| drift.by_block),
                "drift_of_references": period.drift.map(|drift| drift.by_reference),
                "counter_error_of_blocks": period.counter_error.by_block,
                "counter_error_of_references": period.counter_error.by_reference,
                "hot": period.hot.iter().take(self.blocks as usize).map(hot).collect::<Vec<_>>(),
            })
        };
        json!({
            "trace": self.input.name(),
            "device": device,
            "block_bytes": self.block_bytes,
            "period_s": self.period.as_secs_f64(),
            "counters": self.spec().counters(),
            "periods": periods.iter().map(period).collect::<Vec<_>>(),
        })
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The distribution of references over the blocks of a period, for all periods.
fn skew(periods: &[PeriodAnalysis]) -> Table {
    let mut table = Table::new("Skew", &["blocks of a period", "share of its references"]);
    let references: u64 = periods.iter().map(|period| period.references).sum();
    for index in 0..periods.first().map_or(0, |period| period.caught.len()) {
        let caught: f64 =
            periods.iter().map(|period| period.caught[index].own * period.references as f64).sum();
        table.row([grouped(periods[0].caught[index].blocks as u64), percent(caught / references as f64)]);
    }
    table
}

fn changes(periods: &[PeriodAnalysis]) -> Table {
    let columns = [
        "period",
        "references",
        "blocks",
        "own list catches",
        "last list catches",
        "drift of blocks",
        "of references",
        "counters err by",
    ];
    let mut table = Table::new("Periods", &columns);
    for period in periods.iter().take(PERIODS_SHOWN) {
        let largest = period.caught.last().expect("a region has a size");
        let share = |share: Option<f64>| share.map_or(String::new(), percent);
        table.row([
            period.number.to_string(),
            grouped(period.references),
            grouped(period.blocks),
            percent(largest.own),
            share(largest.last),
            share(period.drift.map(|drift| drift.by_block)),
            share(period.drift.map(|drift| drift.by_reference)),
            percent(period.counter_error.by_block),
        ]);
    }
    table
}

/// The share of references that a region of each size would serve, over all periods that follow another one.
fn sizes(periods: &[PeriodAnalysis]) -> Table {
    let columns = ["region, blocks", "at best", "by the last period", "with bounded counters"];
    let mut table = Table::new("What a region would catch", &columns);
    let later: Vec<&PeriodAnalysis> = periods.iter().filter(|period| period.drift.is_some()).collect();
    let references: u64 = later.iter().map(|period| period.references).sum();
    for index in 0..later.first().map_or(0, |period| period.caught.len()) {
        let mean = |value: fn(&CaughtShares) -> Option<f64>| {
            let caught = |period: &&PeriodAnalysis| {
                value(&period.caught[index]).unwrap_or(0.0) * period.references as f64
            };
            percent(later.iter().map(caught).sum::<f64>() / references as f64)
        };
        table.row([
            grouped(later[0].caught[index].blocks as u64),
            mean(|caught| Some(caught.own)),
            mean(|caught| caught.last),
            mean(|caught| caught.last_counted),
        ]);
    }
    table
}
