//! A run of a load on a rig, and all that is known of it afterwards.

use super::load::SimLoad;
use crate::interrupt::{Interrupt, Signal};
use crate::progress::Progress;
use headstack_model::{Nanos, Op};
use headstack_policy::Guard;
use headstack_sim::stats::{Collector, Totals, VolumeStats};
use headstack_sim::{Activity, Engine, Finished, LinkUse, TimeSplit};
use headstack_workload::{Issue, Load, Poll, VolumeInfo};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// A job as results name it: the sources that share an entry of the books.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Job {
    /// Its name.
    pub name: String,
    /// Number of the group of jobs that ran together.
    pub group: u32,
    /// Its options as they were written.
    pub options: Map<String, Value>,
    /// Requests that it has outstanding at most, where it says so.
    pub depth: Option<u32>,
}

/// A section of a load file or job file, with all its clones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Section {
    /// Its name.
    pub name: String,
    /// How often it runs at once.
    pub clones: u32,
    /// Number of the group of jobs that ran together.
    pub group: u32,
}

/// What results say of a load beside the requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadNotes {
    /// The file or the words it was given by.
    pub name: String,
    /// What it is: a fio job file, a trace and in which format, a load file.
    pub kind: String,
    /// Options that hold for all jobs.
    pub global_options: Map<String, Value>,
    /// The jobs, by entry of the books.
    pub jobs: Vec<Job>,
    /// The entry of each source, by its number.
    pub entry_of: Vec<u32>,
    /// The sections, whose figures are kept apart from each other whatever is reported as a group.
    pub sections: Vec<Section>,
    /// The section of each source, by its number.
    pub section_of: Vec<u32>,
    /// Files that it is read from beside the one that was named.
    pub inputs: Vec<PathBuf>,
    /// What was met and not taken into account, for people.
    pub remarks: Vec<String>,
}

/// A load that is ready to run.
pub(crate) struct ReadyLoad {
    pub load: Box<dyn SimLoad>,
    pub notes: LoadNotes,
}

/// A volume of the rig.
#[derive(Clone, Debug)]
pub(crate) struct VolumeOutcome {
    /// Its name.
    pub name: String,
    /// The numbers of its devices.
    pub devices: Vec<usize>,
    /// Share of its spares that was filled, where it has any.
    pub rebuilt: Option<f64>,
}

/// A device of the rig after the run.
#[derive(Clone, Debug)]
pub(crate) struct DeviceOutcome {
    /// Its name in the rig.
    pub name: String,
    /// What it counted.
    pub activity: Activity,
    /// What the starvation guard before it did, if there is one.
    pub guard: Option<GuardUse>,
}

/// What a starvation guard did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuardUse {
    /// How often it began to hold commands back.
    pub holds: u64,
    /// The most often that a command was overtaken.
    pub worst_overtaken: u32,
}

impl GuardUse {
    pub(crate) fn of(guard: &Guard) -> GuardUse {
        GuardUse { holds: guard.holds(), worst_overtaken: guard.worst_overtaken() }
    }
}

/// A run and what came of it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub seed: u64,
    /// The rig's file or name.
    pub rig_name: String,
    /// Its title, or that of its drive.
    pub rig_title: String,
    /// The rig with all its keys.
    pub rig: Value,
    pub load: LoadNotes,
    pub books: Collector,
    /// The volumes, by number.
    pub volumes: Vec<VolumeOutcome>,
    pub devices: Vec<DeviceOutcome>,
    /// What the links that devices share have carried.
    pub links: Vec<LinkUse>,
    /// When the run ended.
    pub end: Nanos,
    pub cpu_s: f64,
    /// What is missing where a signal stopped the run.
    pub partial: Option<Partial>,
}

/// A run that a signal stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partial {
    /// The signal.
    pub signal: Signal,
    /// Share of the load that was done, where it is known.
    pub share: Option<f64>,
    /// Requests that had not come back.
    pub outstanding: u64,
}

impl LoadNotes {
    /// The notes of a load that is one job, named as the load.
    pub(crate) fn of_one_job(name: String, kind: String) -> LoadNotes {
        let jobs = vec![Job { name: name.clone(), ..Job::default() }];
        let sections = vec![Section { name: name.clone(), clones: 1, group: 0 }];
        LoadNotes { name, kind, jobs, sections, ..LoadNotes::default() }
    }
}

impl Outcome {
    /// Time over which requests counted, in seconds.
    pub(crate) fn counted_s(&self) -> f64 {
        self.books.last().since(self.books.first_counted()).as_secs()
    }

    /// Requests of all kinds that counted.
    pub(crate) fn totals(&self) -> Totals {
        self.books.total().all()
    }

    /// Requests a second.
    pub(crate) fn iops(&self) -> f64 {
        ratio(self.totals().responses.count() as f64, self.counted_s())
    }

    /// Millions of bytes a second.
    pub(crate) fn bandwidth_mb_s(&self) -> f64 {
        ratio(self.totals().bytes as f64 / 1e6, self.counted_s())
    }

    /// All requests, also those that did not count, a CPU second.
    pub(crate) fn requests_per_cpu_s(&self) -> f64 {
        ratio(self.books.completed() as f64, self.cpu_s)
    }

    /// The volumes, each with what is kept of it.
    pub(crate) fn volumes(&self) -> impl Iterator<Item = (&VolumeOutcome, &VolumeStats)> {
        self.volumes.iter().zip(self.books.volumes())
    }

    /// Share of the run in which a device's arm was at work for commands and destages.
    pub(crate) fn utilisation(&self, device: &DeviceOutcome) -> f64 {
        self.share(device.activity.busy())
    }

    /// Share of the run that a time is.
    pub(crate) fn share(&self, time: Nanos) -> f64 {
        ratio(time.as_secs(), self.end.as_secs())
    }
}

/// How many parts a response time has.
pub(crate) const PARTS: usize = TimeSplit::NAMES.len();

/// Means of the parts of the response times in milliseconds, in the order of [`TimeSplit::NAMES`].
pub(crate) fn parts_ms(totals: &Totals) -> [f64; PARTS] {
    let count = totals.responses.count() as f64;
    totals.parts_ns.map(|sum| ratio(sum as f64 / 1e6, count))
}

/// A quotient; 0 where the divisor is.
pub(crate) fn ratio(value: f64, by: f64) -> f64 {
    if by > 0.0 { value / by } else { 0.0 }
}

/// Who looks on while a run goes on.
pub(crate) trait Onlooker {
    /// A request was issued.
    fn issued(&mut self, issue: &Issue);
    /// A request came back.
    fn finished(&mut self, finished: &Finished);
}

/// What may stop a run, and what shows how far it is.
pub(crate) struct Control<'a> {
    interrupt: &'a Interrupt,
    progress: &'a mut Progress,
    /// How often the load was asked.
    polls: u64,
    stopped: Option<(Signal, Option<f64>)>,
}

impl<'a> Control<'a> {
    /// The load is asked so often between two looks at the interrupt: less than a millisecond's work on most rigs.
    const EVERY: u64 = 1 << 12;

    pub(crate) fn new(interrupt: &'a Interrupt, progress: &'a mut Progress) -> Control<'a> {
        Control { interrupt, progress, polls: 0, stopped: None }
    }

    /// Counts a poll of the load; says whether it is time for a look.
    #[inline]
    fn is_due(&mut self) -> bool {
        self.polls += 1;
        self.polls.is_multiple_of(Control::EVERY)
    }

    fn look(&mut self, now: Nanos, requests: u64, share: Option<f64>) {
        self.progress.show(now, requests, share);
        self.stopped = self.interrupt.received().map(|signal| (signal, share));
    }
}

/// What sees each request of a run.
struct Witness<'a> {
    books: Collector,
    onlooker: Option<&'a mut dyn Onlooker>,
    control: Control<'a>,
}

/// A load whose issues are witnessed, as the engine tells nobody of them.
struct Watched<'a, 'b> {
    load: &'a mut dyn SimLoad,
    witness: &'a RefCell<Witness<'b>>,
    /// Which sources have issued before.
    met: Vec<bool>,
}

impl Load for Watched<'_, '_> {
    fn poll(&mut self, now: Nanos) -> Poll {
        let Witness { books, onlooker, control } = &mut *self.witness.borrow_mut();
        if control.is_due() {
            control.look(now, books.completed(), self.load.progress(now));
        }
        if control.stopped.is_some() {
            return Poll::Done;
        }
        let poll = self.load.poll(now);
        if let Poll::Issue(issue) = &poll {
            if let Some(met) = self.met.get_mut(issue.source as usize).filter(|met| !**met) {
                *met = true;
                books.count_from(issue.source, self.load.counted_from(issue.source));
            }
            books.issued(now, issue);
            onlooker.iter_mut().for_each(|onlooker| onlooker.issued(issue));
        }
        poll
    }

    fn handle_completion(&mut self, now: Nanos, id: u64) {
        self.load.handle_completion(now, id);
    }
}

/// Runs a load on an engine of these volumes until it is done or `control` stops it; `onlooker` sees each request go and
/// come back.
pub(crate) fn run<'a>(
    engine: &mut Engine,
    volumes: &[VolumeInfo],
    ready: &mut ReadyLoad,
    control: Control<'a>,
    onlooker: Option<&'a mut dyn Onlooker>,
) -> (Collector, Option<Partial>) {
    let (entry_of, section_of) = (&ready.notes.entry_of, &ready.notes.section_of);
    let books = Collector::with_jobs(volumes, entry_of, section_of);
    let witness = RefCell::new(Witness { books, onlooker, control });
    let mut watched = Watched { load: &mut *ready.load, witness: &witness, met: vec![false; entry_of.len()] };
    engine.run_while(&mut watched, &mut |finished| {
        let Witness { books, onlooker, control } = &mut *witness.borrow_mut();
        books.finished(finished);
        onlooker.iter_mut().for_each(|onlooker| onlooker.finished(finished));
        if control.stopped.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let Witness { books, control, .. } = witness.into_inner();
    let outstanding = books.requests() - books.completed();
    let partial = control.stopped.map(|(signal, share)| Partial { signal, share, outstanding });
    (books, partial)
}

/// A request's kind, in a word.
pub(crate) fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
    }
}
