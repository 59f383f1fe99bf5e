//! The trace that a command reads: a file or standard input, with a bar on a terminal.

use crate::failure::Failure;
use crate::files::{self, is_standard};
use crate::units::grouped;
use headstack_workload::trace::{ColumnNames, Format, Header, Record, Trace};
use indicatif::ProgressBar;
use std::io::{self, Read};
use std::path::PathBuf;

/// The trace to read.
#[derive(clap::Args)]
pub(crate) struct Input {
    /// The trace, uncompressed or compressed with gzip or zstd; `-` is standard input.
    #[arg(value_name = "TRACE")]
    pub(super) file: PathBuf,
    /// Skip at most this number of malformed lines or records.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_bad: u64,
    /// What the columns of a table are that have other names: time_us=NAME,lba=NAME,sectors=NAME,op=NAME. Others are found by
    /// common names.
    #[arg(long, value_name = "COLUMN=NAME,…", value_parser = ColumnNames::parse)]
    columns: Option<ColumnNames>,
}

impl Input {
    /// Opens the trace; without a `format`, its first bytes decide.
    pub(crate) fn open(&self, format: Option<&'static Format>) -> Result<Opened, Failure> {
        let (bar, reader): (ProgressBar, Box<dyn Read>) = if is_standard(&self.file) {
            (ProgressBar::hidden(), Box::new(io::stdin()))
        } else {
            let file = files::open(&self.file)?;
            let length = file.metadata().map_or(0, |data| data.len());
            let bar = ProgressBar::new(length)
                .with_style(crate::progress::style("{bar:30} {percent:>3} %  {binary_bytes_per_sec}"));
            (bar.clone(), Box::new(bar.wrap_read(file)))
        };
        let columns = self.columns.clone().unwrap_or_default();
        let trace =
            Trace::open_with_columns(reader, &self.name(), format, &columns).map_err(Failure::input)?;
        Ok(Opened { trace: trace.skipping(self.skip_bad), bar })
    }

    pub(crate) fn name(&self) -> String {
        if is_standard(&self.file) { "standard input".to_string() } else { self.file.display().to_string() }
    }
}

pub(crate) struct Opened {
    pub(super) trace: Trace<'static>,
    bar: ProgressBar,
}

impl Opened {
    pub(crate) fn for_each(
        &mut self,
        mut use_record: impl FnMut(Record, &Header) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        while let Some(record) = self.trace.next_record().map_err(Failure::input)? {
            use_record(record, self.trace.header())?;
        }
        self.bar.finish_and_clear();
        Ok(())
    }

    pub(super) fn skipped(&self) -> Option<String> {
        let (count, first) = self.trace.skipped();
        let first = first?;
        Some(format!("{} malformed passed over, the first: {first}", grouped(count)))
    }
}
