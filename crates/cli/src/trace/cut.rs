//! `headstack trace cut`.

use super::formats;
use super::input::Input;
use super::output::TraceOutput;
use crate::failure::Failure;
use crate::files;
use crate::units;
use headstack_model::Nanos;
use headstack_model::spec::did_you_mean;
use headstack_workload::trace::{self, CutOptions};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Write a part of a trace, in its own format.
///
/// A request is kept if all conditions hold. Times stay as they were; in formats with think times, the think time becomes
/// the time between two kept requests.
#[derive(clap::Args)]
pub(crate) struct Cut {
    #[command(flatten)]
    input: Input,
    /// Where to write; `-` is standard output. A name that ends in .gz or .zst makes the output compressed.
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// The trace's format. [default: recognized by its first bytes]
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    format: Option<String>,
    /// Keep only requests issued at least this long after the first one (such as 90s, 2h 30m, 1500us).
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Nanos>,
    /// Keep only requests issued less than this long after the first one.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Nanos>,
    /// Keep only requests that reach beyond this byte (such as 4K, 10G).
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    from_offset: Option<u64>,
    /// Keep only requests that begin before this byte.
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    to_offset: Option<u64>,
    /// Keep only requests to this device, by its name in the trace.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Keep each request with this probability, up to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    share: f64,
    /// Seed of the random choice of --share.
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true, value_parser = units::parse_whole)]
    seed: u64,
}

impl Cut {
    pub(super) fn run(&self) -> Result<(), Failure> {
        files::check_apart(&[&self.input.file], &[("", Some(&self.output))])?;
        let options = CutOptions {
            from: self.from,
            to: self.to,
            first_byte: self.from_offset,
            end_byte: self.to_offset,
            device: self.device.clone(),
            share: self.share,
            seed: self.seed,
        };
        let mut cut = trace::Cut::new(options).map_err(Failure::input)?;
        let mut opened = self.input.open(formats::named(self.format.as_ref()))?;
        let format = opened.trace.format();
        let mut output = TraceOutput::create(&self.output, format)?;
        let (mut read, mut devices) = (0u64, BTreeMap::new());
        opened.for_each(|mut record, header| {
            read += 1;
            if self.device.is_some() {
                devices.entry(record.device).or_insert_with(|| header.label(record.device));
            }
            if !cut.keeps(&record, || header.label(record.device)) {
                return Ok(());
            }
            if format.carries.tick == 0 {
                // The time between two kept requests replaces the think time.
                record.think = None;
            }
            output.write(&record, header)
        })?;
        if output.written() == 0 && read > 0 {
            return Err(self.nothing_left(read, &devices));
        }
        let mut said = vec![format!("  of {}", units::grouped(read))];
        said.extend(opened.skipped());
        output.finish(opened.trace.header(), said)
    }
}

impl Cut {
    fn nothing_left(&self, read: u64, devices: &BTreeMap<u32, String>) -> Failure {
        let name = self.input.name();
        match &self.device {
            Some(device) if !devices.values().any(|known| known == device) => {
                let hint = did_you_mean(device, devices.values().map(String::as_str));
                let known: Vec<&str> = devices.values().take(20).map(String::as_str).collect();
                let more = if devices.len() > known.len() { ", …" } else { "" };
                let known = known.join(", ");
                Failure::Input(format!(
                    "{name}: no device is called `{device}`{hint}; there are {known}{more}"
                ))
            }
            _ => {
                let read = units::grouped(read);
                Failure::Input(format!("{name}: none of its {read} requests is in the chosen part"))
            }
        }
    }
}

/// A span of time with its unit.
fn parse_time(text: &str) -> Result<Nanos, String> {
    let span = humantime::parse_duration(text).map_err(|error| format!("{error} (such as 90s, 2h 30m)"))?;
    u64::try_from(span.as_nanos()).map(Nanos).map_err(|_| "longer than 584 years".to_string())
}
