//! `--requests`: one line of CSV per request, in the order of issue: Headstack's own trace format with more columns.

use crate::failure::Failure;
use crate::files::Output;
use headstack_model::{Instant, Op};
use headstack_sim::rig::Rig;
use headstack_sim::{Finished, Observer, Outcome, TimeSplit};
use headstack_workload::{Issue, Load};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Columns before the parts of the response time: those of Headstack's trace format, then those that only a simulation knows.
const COLUMNS: &str = "time_ns,device,op,offset,bytes,response_ns,think_ns,process,completed_ns,cache,from_cylinder,to_cylinder,outcome";

/// The file, under a temporary name until the run is over; or standard output.
pub(crate) struct Requests {
    file: BufWriter<Output>,
    /// Bytes in a sector of each volume.
    sector_bytes: Vec<u64>,
    /// Requests from the oldest outstanding one on, in the order of issue; none for an outstanding one. A completed request is held until all
    /// before it have completed.
    held: VecDeque<Option<Finished>>,
    /// Index, in the order of issue, of the first request in `held`; and the index of each outstanding request by the number that the load gave it.
    first: u64,
    numbers: BTreeMap<u64, u64>,
    error: Option<io::Error>,
}

impl Requests {
    pub(crate) fn create(path: &Path, rig: &Rig) -> Result<Requests, Failure> {
        let mut requests = Requests {
            file: BufWriter::new(Output::create(path)?),
            sector_bytes: rig.volumes().iter().map(|volume| u64::from(volume.sector_bytes)).collect(),
            held: VecDeque::new(),
            first: 0,
            numbers: BTreeMap::new(),
            error: None,
        };
        let parts = TimeSplit::NAMES.map(|name| format!(",{name}_ns")).concat();
        let written = writeln!(requests.file, "{COLUMNS}{parts}");
        requests.error = written.err();
        Ok(requests)
    }

    /// Moves the file to its place. Requests that did not complete have no line.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        let name = self.file.get_ref().name();
        for finished in std::mem::take(&mut self.held).into_iter().flatten() {
            self.add(&finished);
        }
        if let Some(error) = self.error {
            return Err(Output::fault(&name, error));
        }
        self.file.into_inner().map_err(|error| Output::fault(&name, error.into_error()))?.keep()
    }

    /// Writes a line, unless an earlier one failed.
    fn add(&mut self, finished: &Finished) {
        if self.error.is_none() {
            self.error = self.line(finished).err();
        }
    }

    fn line(&mut self, finished: &Finished) -> io::Result<()> {
        let completion = &finished.completion;
        let request = &completion.request;
        let sector = self.sector_bytes[finished.volume as usize];
        write!(
            self.file,
            "{},{},{},{},{},{},,{},{},{},",
            completion.submitted.0,
            finished.volume,
            op_name(request.op),
            request.lbn.0 * sector,
            u64::from(request.sectors) * sector,
            completion.response().0,
            finished.source,
            completion.completed.0,
            completion.cache.name(),
        )?;
        match completion.travel {
            Some(travel) => write!(self.file, "{},{}", travel.from, travel.to)?,
            None => write!(self.file, ",")?,
        }
        let outcome = match completion.outcome {
            Outcome::Done => "done",
            Outcome::OutOfRange => "out-of-range",
            Outcome::MediumError => "medium-error",
            Outcome::Aborted => "aborted",
            Outcome::ZoneRefused => "zone-refused",
            Outcome::Dead => "dead",
        };
        write!(self.file, ",{outcome}")?;
        for part in completion.parts.parts() {
            write!(self.file, ",{}", part.0)?;
        }
        writeln!(self.file)
    }
}

impl Observer for Requests {
    fn issued(&mut self, _now: Instant, issue: &Issue, _load: &dyn Load) {
        self.numbers.insert(issue.id, self.first + self.held.len() as u64);
        self.held.push_back(None);
    }

    fn finished(&mut self, finished: &Finished) {
        let number = self.numbers.remove(&finished.id).expect("what comes back was issued");
        self.held[(number - self.first) as usize] = Some(*finished);
        while let Some(Some(next)) = self.held.front().copied() {
            self.held.pop_front();
            self.first += 1;
            self.add(&next);
        }
    }
}

fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
    }
}
