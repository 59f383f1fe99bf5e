//! The trace that a command writes: a file, whole or not at all, or standard output.

use crate::failure::{self, Failure};
use crate::files::{self, Output};
use crate::units::grouped;
use headstack_workload::trace::{self, Format, Header, Losses, Packing, Record, TraceWriter};
use std::path::Path;

pub(super) struct TraceOutput {
    writer: TraceWriter<Output>,
    format: &'static Format,
    name: String,
}

impl TraceOutput {
    /// Opens the file at `path`, or standard output. The ending of the file's name determines its compression.
    pub(super) fn create(path: &Path, format: &'static Format) -> Result<TraceOutput, Failure> {
        let output = Output::create(path)?;
        let name = output.name();
        let packing = if files::is_standard(path) { Packing::None } else { Packing::of_name(&name).0 };
        let writer =
            TraceWriter::new(output, format, packing).map_err(|error| Output::fault(&name, error))?;
        Ok(TraceOutput { writer, format, name })
    }

    pub(super) fn write(&mut self, record: &Record, header: &Header) -> Result<(), Failure> {
        self.writer.write(record, header).map_err(|error| Output::fault(&self.name, error))
    }

    pub(super) fn written(&self) -> u64 {
        self.writer.written()
    }

    /// Writes the rest, and reports on standard error what was written and lost.
    ///
    /// *Errors:* there were requests, and the format can express none of them.
    pub(super) fn finish(self, header: &Header, mut said: Vec<String>) -> Result<(), Failure> {
        let (written, title) = (self.writer.written(), self.format.title);
        let lost: Vec<String> = lost(self.writer.losses()).collect();
        let left_out = self.writer.losses().iter().any(|(loss, _)| loss.leaves_out());
        if written == 0 && left_out {
            let why: Vec<&str> = lost.iter().map(|line| line.trim()).collect();
            return Err(Failure::Input(format!(
                "{}: {title} can say no request of it: {}",
                self.name,
                why.join(", ")
            )));
        }
        let (output, _) = self.writer.finish(header).map_err(|error| Output::fault(&self.name, error))?;
        said.insert(0, format!("{} requests to {}, {title}", grouped(written), self.name));
        said.extend(lost);
        output.keep()?;
        said.iter().for_each(|line| failure::print_note(line));
        Ok(())
    }
}

/// A line for each property that the format cannot express.
fn lost(losses: &Losses) -> impl Iterator<Item = String> {
    losses.iter().map(|(loss, count)| format!("  {} {}", grouped(count), loss.words()))
}

/// The format that a file name's ending stands for.
///
/// *Errors:* none matches, or several do.
pub(super) fn format_of(path: &Path) -> Result<&'static Format, Failure> {
    let name = path.display().to_string();
    let (_, plain) = Packing::of_name(&name);
    let ending = Path::new(plain).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let met: Vec<&Format> =
        trace::all().iter().filter(|format| format.extensions.contains(&ending)).collect();
    match met[..] {
        [format] => Ok(format),
        _ => {
            let several = if met.is_empty() { "no format ends" } else { "several formats end" };
            let offered: Vec<&str> = if met.is_empty() { trace::all().iter().collect() } else { met }
                .iter()
                .map(|format| format.name)
                .collect();
            Err(Failure::Input(format!("{name}: {several} so: choose with --to {}", offered.join("|"))))
        }
    }
}
