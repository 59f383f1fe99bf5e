//! `headstack trace convert`.

use super::formats;
use super::input::Input;
use super::output::{TraceOutput, format_of};
use crate::failure::Failure;
use crate::files;
use crate::units::significant;
use headstack_model::Instant;
use std::path::PathBuf;

/// Write a trace in another format.
///
/// What the new format cannot express is left out, rounded or widened, and counted on standard error. If the output's name ends
/// in .gz or .zst, the output is compressed.
#[derive(clap::Args)]
pub(crate) struct Convert {
    #[command(flatten)]
    input: Input,
    /// Where to write; `-` is standard output.
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,
    /// The trace's format. [default: recognized by its first bytes]
    #[arg(long, visible_alias = "from", value_name = "FORMAT", value_parser = formats::values())]
    format: Option<String>,
    /// The output's format. [default: by the ending of its name]
    #[arg(long, value_name = "FORMAT", value_parser = formats::values())]
    to: Option<String>,
    /// Count times from the first request. This is the default if the output's format cannot express the time of the
    /// first request.
    #[arg(long)]
    from_zero: bool,
}

impl Convert {
    pub(super) fn run(&self) -> Result<(), Failure> {
        files::check_apart(&[&self.input.file], &[("", Some(&self.output))])?;
        let format = match formats::named(self.to.as_ref()) {
            Some(format) => format,
            None => format_of(&self.output)?,
        };
        let mut opened = self.input.open(formats::named(self.format.as_ref()))?;
        let mut output = TraceOutput::create(&self.output, format)?;
        let (mut base, mut is_too_late) = (None, false);
        opened.for_each(|mut record, header| {
            let first: Instant = *base.get_or_insert_with(|| {
                is_too_late = format.carries.is_too_late(record.time);
                record.time
            });
            if self.from_zero || is_too_late {
                record.time = Instant::ZERO + record.time.since(first);
            }
            output.write(&record, header)
        })?;
        let mut said = Vec::new();
        if let Some(first) = base.filter(|_| is_too_late && !self.from_zero) {
            let at = significant(first.as_secs(), 3);
            let title = format.title;
            said.push(format!(
                "  times counted from the first request (--from-zero): {title} cannot say its {at} s"
            ));
        }
        said.extend(opened.skipped());
        output.finish(opened.trace.header(), said)
    }
}
