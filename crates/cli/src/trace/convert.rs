//! `headstack trace convert`.

use super::formats;
use super::input::Input;
use super::output::{Output, format_of};
use crate::failure::Failure;
use headstack_model::Nanos;
use std::io::Write;
use std::path::PathBuf;

/// Write a trace in another format.
///
/// What the new format cannot say is left out, rounded or widened, and counted on standard error. An output that ends in .gz or
/// .zst is packed.
#[derive(clap::Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    input: Input,
    /// Where to write; `-` is standard output.
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// The trace's format; told by its first bytes when absent.
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    from: Option<String>,
    /// The output's format; told by its ending when absent.
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    to: Option<String>,
    /// Count times from the first request.
    #[arg(long)]
    from_zero: bool,
}

impl Convert {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let format = match formats::named(self.to.as_ref()) {
            Some(format) => format,
            None => format_of(&self.output)?,
        };
        let mut opened = self.input.open(formats::named(self.from.as_ref()))?;
        let mut output = Output::create(&self.output, format, out)?;
        let mut base = None;
        opened.for_each(|mut record, header| {
            let first: Nanos = *base.get_or_insert(record.time);
            if self.from_zero {
                record.time = record.time.since(first);
            }
            output.write(&record, header)
        })?;
        output.finish(opened.trace.header(), opened.skipped().into_iter().collect())
    }
}
