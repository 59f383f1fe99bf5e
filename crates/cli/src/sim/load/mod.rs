//! LOAD on the command line: a fio job file, a load file or a trace, told by its ending and its first bytes.

mod file;
mod job;
mod trace;

use super::outcome::ReadyLoad;
use crate::failure::Failure;
use crate::files;
use headstack_model::Nanos;
use headstack_sim::rig::Rig;
use headstack_workload::Load;
use headstack_workload::trace as traces;
use std::io::Read;
use std::path::Path;

/// Bytes at the head of a file by which its kind is told.
const HEAD: u64 = 4096;

/// A load that can say how it goes.
pub(crate) trait SimLoad: Load {
    /// Share of it that is done by `now`, where it knows how much there is.
    fn progress(&self, _now: Nanos) -> Option<f64> {
        None
    }

    /// From when on what comes back for a source that has begun counts; before, it warms up.
    fn counted_from(&self, _source: u32) -> Nanos {
        Nanos::ZERO
    }

    /// Whether it ran to its end, and what is to be said of it then.
    ///
    /// *Errors:* what stopped it.
    fn finish(&self) -> Result<Vec<String>, Failure> {
        Ok(Vec::new())
    }
}

/// The options of every command that runs a load.
#[derive(clap::Args, Clone)]
pub(crate) struct LoadArgs {
    /// The format of a trace, where its first bytes do not tell it.
    #[arg(long, value_name = "NAME", value_parser = formats())]
    format: Option<String>,
    /// Stretch the times of a trace: 0.5 is twice as fast. [default: 1]
    #[arg(long, value_name = "FACTOR", value_parser = factor)]
    time_scale: Option<f64>,
    /// Put blocks of a trace that a volume does not have on it all the same, by wrapping around.
    #[arg(long)]
    wrap: bool,
    /// Send all devices of a trace to one volume of the rig, numbered from 0.
    #[arg(long, value_name = "VOLUME")]
    all_to: Option<u32>,
    /// Pass over at most so many malformed lines or records of a trace.
    #[arg(long, value_name = "N", default_value_t = 0)]
    skip_bad: u64,
}

impl LoadArgs {
    /// Refuses the options that say something of a trace, for a load that is none.
    ///
    /// *Errors:* one is given.
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

fn formats() -> clap::builder::PossibleValuesParser {
    traces::all().iter().map(|format| format.name).collect::<Vec<_>>().into()
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1e-6..=1e6).contains(&factor) => Ok(factor),
        _ => Err("must be 0.000001 to 1000000".to_string()),
    }
}

/// Reads and checks the load called `name`, for a rig.
pub(crate) fn ready(name: &str, options: &LoadArgs, rig: &Rig, seed: u64) -> Result<ReadyLoad, Failure> {
    let path = Path::new(name);
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if ending == "toml" {
        options.refuse_for(name, "a load file")?;
        return file::ready(path, &rig.volumes(), seed);
    }
    if ending == "fio" || options.format.is_none() && is_job(path)? {
        options.refuse_for(name, "a fio job file")?;
        return job::ready(path, &rig.volumes(), seed);
    }
    trace::ready(path, options, rig)
}

/// A file's name without its folder, as results show it.
fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Whether the first line of a file that is neither empty nor a comment is the head of a section.
fn is_job(path: &Path) -> Result<bool, Failure> {
    let mut head = Vec::new();
    let fault = |error| Failure::Input(format!("{}: {error}", path.display()));
    files::open(path)?.take(HEAD).read_to_end(&mut head).map_err(fault)?;
    let text = String::from_utf8_lossy(&head);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut lines = text.lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', ';']));
    Ok(first.is_some_and(|line| line.starts_with('[') && line.ends_with(']')))
}
