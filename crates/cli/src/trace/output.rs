//! The trace that a command writes: a file, whole or not at all, or standard output.

use super::input::is_standard;
use crate::failure::Failure;
use crate::files::NewFile;
use crate::units::grouped;
use headstack_workload::trace::{self, Format, Header, Losses, Packing, Record, TraceWriter};
use std::io::{self, Write};
use std::path::Path;

/// Where a trace goes to.
pub(super) enum Sink<'a> {
    File(NewFile),
    Standard(&'a mut dyn Write),
}

impl Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::File(file) => file.write(bytes),
            Sink::Standard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Sink::File(file) => file.flush(),
            Sink::Standard(out) => out.flush(),
        }
    }
}

/// A trace being written.
pub(super) struct Output<'a> {
    writer: TraceWriter<Sink<'a>>,
    format: &'static Format,
    name: Option<String>,
}

impl<'a> Output<'a> {
    /// Begins the file at `path`, packed as its ending says, or standard output.
    pub(super) fn create(
        path: &Path,
        format: &'static Format,
        out: &'a mut dyn Write,
    ) -> Result<Output<'a>, Failure> {
        let (sink, packing, name) = if is_standard(path) {
            (Sink::Standard(out), Packing::None, None)
        } else {
            let name = path.display().to_string();
            (Sink::File(NewFile::beside(path)?), Packing::of_name(&name).0, Some(name))
        };
        let writer =
            TraceWriter::new(sink, format, packing).map_err(|error| fault(name.as_deref(), error))?;
        Ok(Output { writer, format, name })
    }

    pub(super) fn write(&mut self, record: &Record, header: &Header) -> Result<(), Failure> {
        self.writer.write(record, header).map_err(|error| fault(self.name.as_deref(), error))
    }

    /// Writes the rest, and says what was written and lost: to where the trace does not go.
    pub(super) fn finish(self, header: &Header, mut said: Vec<String>) -> Result<(), Failure> {
        let written = self.writer.written();
        let (sink, losses) =
            self.writer.finish(header).map_err(|error| fault(self.name.as_deref(), error))?;
        let to = self.name.as_deref().unwrap_or("standard output");
        said.insert(0, format!("{} requests to {to}, {}", grouped(written), self.format.title));
        said.extend(lost(&losses));
        match sink {
            Sink::File(file) => file.keep(),
            Sink::Standard(out) => Ok(out.flush()?),
        }?;
        said.iter().for_each(|line| eprintln!("{line}"));
        Ok(())
    }
}

fn fault(name: Option<&str>, error: io::Error) -> Failure {
    match name {
        Some(name) => Failure::Input(format!("{name}: {error}")),
        None => Failure::Output(error),
    }
}

/// A line for each thing that the format could not say.
fn lost(losses: &Losses) -> impl Iterator<Item = String> {
    losses.iter().map(|(loss, count)| format!("  {} {}", grouped(count), loss.words()))
}

/// The format that a file's ending stands for.
///
/// *Errors:* none does, or several do.
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
