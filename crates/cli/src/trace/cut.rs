//! `headstack trace cut`.

use super::formats;
use super::input::Input;
use super::output::Output;
use crate::failure::Failure;
use crate::units;
use headstack_model::Nanos;
use headstack_workload::trace::{self, CutOptions};
use std::io::Write;
use std::path::PathBuf;

/// Write a part of a trace, in its own format.
///
/// All conditions must hold for a request to be kept. Times are kept as they were; in formats that have think times in their
/// place, what was between the kept requests is thought.
#[derive(clap::Args)]
pub(crate) struct Cut {
    #[command(flatten)]
    input: Input,
    /// Where to write; `-` is standard output. An ending .gz or .zst packs it.
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// The trace's format; told by its first bytes when absent.
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    format: Option<String>,
    /// Requests issued this long after the first one, or later (such as 90s, 2h 30m, 1500us).
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Nanos>,
    /// Requests issued less than this long after the first one.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<Nanos>,
    /// Requests that reach beyond this byte (such as 4K, 10G).
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    from_offset: Option<u64>,
    /// Requests that begin before this byte.
    #[arg(long, value_name = "BYTES", value_parser = units::parse_bytes)]
    to_offset: Option<u64>,
    /// Requests to this device, as the trace calls it.
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Each request with this probability, up to 1.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    share: f64,
    /// What the chances are drawn from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Cut {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
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
        let mut output = Output::create(&self.output, format, out)?;
        let mut read = 0u64;
        opened.for_each(|mut record, header| {
            read += 1;
            if !cut.keeps(&record, || header.label(record.device)) {
                return Ok(());
            }
            if format.carries.tick == 0 {
                // The time to the next request that is kept takes its place.
                record.think = None;
            }
            output.write(&record, header)
        })?;
        let mut said = vec![format!("  of {}", units::grouped(read))];
        said.extend(opened.skipped());
        output.finish(opened.trace.header(), said)
    }
}

/// A span of time with its unit.
fn parse_time(text: &str) -> Result<Nanos, String> {
    let span = humantime::parse_duration(text).map_err(|error| format!("{error} (such as 90s, 2h 30m)"))?;
    u64::try_from(span.as_nanos()).map(Nanos).map_err(|_| "longer than 584 years".to_string())
}
