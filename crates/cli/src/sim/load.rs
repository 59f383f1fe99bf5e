//! The load as a command-line argument: a fio job file, a load file or a trace, and the options of traces.

use crate::failure::Failure;
use crate::files::SystemFiles;
use headstack::workload::trace::{self, ReplayError};
use headstack::{Error, TraceOptions, Workload, WorkloadKind};
use headstack_explorer_wasm::PageTraceKeys;

/// The options of every command that runs a load.
#[derive(clap::Args, Clone)]
pub(crate) struct LoadArgs {
    /// The format of a trace, if its first bytes do not identify it.
    #[arg(long, value_name = "NAME", value_parser = formats())]
    format: Option<String>,
    /// Multiply the times of a trace by this factor: with 0.5 it is twice as fast. [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    time_scale: Option<f64>,
    /// If a trace has blocks beyond the end of a volume, wrap them around to its start.
    #[arg(long)]
    wrap: bool,
    /// Send all devices of a trace to one volume of the rig, numbered from 0.
    #[arg(long, value_name = "VOLUME")]
    all_to: Option<u32>,
    /// Skip at most this number of malformed lines or records of a trace.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_bad: u64,
}

impl LoadArgs {
    /// The workload in the file called `name`.
    ///
    /// *Errors:* it cannot be read or is invalid; it is no trace, and an option for traces is given.
    pub(crate) fn open(&self, name: &str) -> Result<Workload<'static>, Failure> {
        let (kind, options) = self.kind(name)?;
        Workload::open_as(kind, name, &options, &SystemFiles).map_err(failure)
    }

    /// The kind of the load in the file called `name`, and the options of traces.
    ///
    /// *Errors:* as [`LoadArgs::open`].
    pub(crate) fn kind(&self, name: &str) -> Result<(WorkloadKind, TraceOptions), Failure> {
        let options = TraceOptions {
            format: self.format.as_deref().and_then(trace::named),
            time_scale: self.time_scale.unwrap_or(1.0),
            wrap: self.wrap,
            all_to: self.all_to,
            malformed_max: self.skip_bad,
        };
        let kind = WorkloadKind::detect(name, &options, &SystemFiles).map_err(failure)?;
        match kind {
            WorkloadKind::FioJob => self.refuse_for(name, "a fio job file")?,
            WorkloadKind::LoadFile => self.refuse_for(name, "a load file")?,
            WorkloadKind::Trace => {}
        }
        Ok((kind, options))
    }

    /// The options of traces, in the form that a page contains.
    pub(crate) fn keys(&self) -> PageTraceKeys {
        PageTraceKeys {
            format: self.format.clone(),
            time_scale: self.time_scale.unwrap_or(1.0),
            wrap: self.wrap,
            all_to: self.all_to,
            malformed_max: self.skip_bad,
        }
    }

    /// Refuses the options of traces for a load that is not a trace.
    fn refuse_for(&self, name: &str, kind: &str) -> Result<(), Failure> {
        let given = [
            ("--format", self.format.is_some()),
            ("--time-scale", self.time_scale.is_some()),
            ("--wrap", self.wrap),
            ("--all-to", self.all_to.is_some()),
            ("--skip-bad", self.skip_bad > 0),
        ];
        let given: Vec<&str> =
            given.into_iter().filter(|(_, is_given)| *is_given).map(|(option, _)| option).collect();
        if given.is_empty() {
            return Ok(());
        }
        let verb = if given.len() == 1 { "is" } else { "are" };
        Err(Failure::Input(format!(
            "{} {verb} for traces, and {name} is {kind}; leave it out",
            given.join(", ")
        )))
    }
}

pub(crate) fn failure(error: Error) -> Failure {
    let hint = match &error {
        Error::Replay(ReplayError::TooManyDevices { .. }) => " (--all-to 0 sends all to one)",
        Error::Replay(ReplayError::OutOfRange { .. }) => " (--wrap puts such blocks on it all the same)",
        _ => "",
    };
    Failure::Input(format!("{error}{hint}"))
}

fn formats() -> clap::builder::PossibleValuesParser {
    trace::all().iter().map(|format| format.name).collect::<Vec<_>>().into()
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1e-6..=1e6).contains(&factor) => Ok(factor),
        _ => Err("must be 0.000001 to 1000000".to_string()),
    }
}
