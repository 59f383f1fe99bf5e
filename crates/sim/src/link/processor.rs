//! The host's processor: a resource of one or more lanes that serve work in order of arrival.
//!
//! Modelled: work has a length and a kind; it occupies one lane from its arrival, or from when the lane is free, to its end. Work
//! that is reserved for a later time (the interrupt at the end of a transfer) leaves the time before it to others, and work that
//! has begun then waits for it, as for an interrupt. Not modelled: caches, priorities, the switch between processes.

use super::lane::{Flow, Lane};
use headstack_model::{Instant, Nanos};

/// A kind of processor work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkKind {
    /// A program's own work.
    Program,
    /// Requests of clients that a storage node serves.
    Client,
    /// System calls.
    SystemCall,
    /// Copies between the page cache and programs.
    Copy,
    /// Submission of commands to drives.
    Submit,
    /// Interrupts.
    Interrupt,
    /// Words read from a drive by programmed I/O.
    WordRead,
    /// Words written to a drive by programmed I/O.
    WordWrite,
}

impl WorkKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [WorkKind; 8] = [
        WorkKind::Program,
        WorkKind::Client,
        WorkKind::SystemCall,
        WorkKind::Copy,
        WorkKind::Submit,
        WorkKind::Interrupt,
        WorkKind::WordRead,
        WorkKind::WordWrite,
    ];

    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::Program => "program",
            WorkKind::Client => "client",
            WorkKind::SystemCall => "system_call",
            WorkKind::Copy => "copy",
            WorkKind::Submit => "submit",
            WorkKind::Interrupt => "interrupt",
            WorkKind::WordRead => "word_read",
            WorkKind::WordWrite => "word_write",
        }
    }
}

/// Processor work of several kinds that is done without interruption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessorWork([Nanos; WorkKind::ALL.len()]);

impl ProcessorWork {
    /// No work.
    pub const NONE: ProcessorWork = ProcessorWork([Nanos::ZERO; WorkKind::ALL.len()]);

    /// Work of one kind.
    pub fn new(kind: WorkKind, time: Nanos) -> ProcessorWork {
        ProcessorWork::NONE.and(kind, time)
    }

    /// This work with more of one kind.
    pub fn and(mut self, kind: WorkKind, time: Nanos) -> ProcessorWork {
        self.0[kind as usize] += time;
        self
    }

    /// Its length: the sum over all kinds.
    pub fn total(&self) -> Nanos {
        self.0.iter().fold(Nanos::ZERO, |sum, time| sum + *time)
    }
}

/// The use of the host's processor in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessorUse {
    /// Busy time of each lane.
    pub lanes: Vec<Nanos>,
    /// Busy time of each kind of work, in the order of [`WorkKind::ALL`].
    pub kinds: [(WorkKind, Nanos); WorkKind::ALL.len()],
}

impl ProcessorUse {
    /// Busy time of all lanes.
    pub fn busy(&self) -> Nanos {
        self.lanes.iter().fold(Nanos::ZERO, |sum, lane| sum + *lane)
    }
}

/// The processor's work for each command of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandCost {
    pub(crate) submit: Nanos,
    pub(crate) interrupt: Nanos,
}

#[derive(Clone, Debug)]
pub(crate) struct Processor {
    lanes: Vec<Lane>,
    done: ProcessorWork,
    pub(super) command: CommandCost,
}

impl Processor {
    /// Nanoseconds of work that a lane does in a second.
    const RATE: u64 = 1_000_000_000;

    /// A processor with this number of lanes, at least one.
    pub(crate) fn new(lanes: u32, command: CommandCost) -> Processor {
        Processor {
            lanes: vec![Lane::new(Processor::RATE); lanes.max(1) as usize],
            done: ProcessorWork::NONE,
            command,
        }
    }

    /// Occupies the lane on which the work ends first, from `begins` on; returns the end. The data that the work handles arrive over
    /// `least`, and the work ends no earlier.
    pub(super) fn occupy(
        &mut self,
        now: Instant,
        begins: Instant,
        least: Nanos,
        work: &ProcessorWork,
    ) -> Instant {
        let units = work.total().0;
        if units == 0 {
            return begins + least;
        }
        self.done.0.iter_mut().zip(work.0).for_each(|(done, time)| *done += time);
        let flow = Flow { begins, least, units };
        let first = match self.lanes.len() {
            1 => 0,
            count => {
                (0..count).min_by_key(|lane| self.lanes[*lane].predict_end(flow)).expect("there is a lane")
            }
        };
        self.lanes[first].take(now, flow)
    }

    /// Does work from `now` on; returns its end.
    pub(crate) fn run(&mut self, now: Instant, work: &ProcessorWork) -> Instant {
        self.occupy(now, now, Nanos::ZERO, work)
    }

    pub(crate) fn usage(&self) -> ProcessorUse {
        let kinds = WorkKind::ALL.map(|kind| (kind, self.done.0[kind as usize]));
        ProcessorUse { lanes: self.lanes.iter().map(Lane::busy).collect(), kinds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(ns: u64) -> ProcessorWork {
        ProcessorWork::new(WorkKind::Program, Nanos(ns))
    }

    #[test]
    fn work_waits_for_earlier_work_and_lanes_work_side_by_side() {
        let mut one = Processor::new(1, CommandCost::default());
        assert_eq!([50, 30, 20].map(|ns| one.run(Instant(10), &program(ns)).0), [60, 90, 110]);
        let mut two = Processor::new(2, CommandCost::default());
        assert_eq!([50, 30, 20].map(|ns| two.run(Instant(10), &program(ns)).0), [60, 40, 60]);
        assert_eq!(two.usage().lanes, [Nanos(50), Nanos(50)]);
    }

    #[test]
    fn work_before_a_reserved_interrupt_is_done_first_and_resumes_after_it() {
        let mut one = Processor::new(1, CommandCost::default());
        let interrupt = ProcessorWork::new(WorkKind::Interrupt, Nanos(5));
        assert_eq!(one.occupy(Instant(0), Instant(100), Nanos::ZERO, &interrupt), Instant(105));
        assert_eq!(one.run(Instant(0), &program(60)), Instant(60));
        assert_eq!(one.run(Instant(80), &program(60)), Instant(145));
    }

    #[test]
    fn kinds_add_up_to_the_busy_time_of_all_lanes() {
        let mut two = Processor::new(2, CommandCost::default());
        for index in 0..100u64 {
            let kind = WorkKind::ALL[index as usize % WorkKind::ALL.len()];
            two.run(
                Instant(index * 13),
                &ProcessorWork::new(kind, Nanos(index * 7 % 31)).and(WorkKind::Copy, Nanos(3)),
            );
        }
        let usage = two.usage();
        let kinds: u64 = usage.kinds.iter().map(|(_, time)| time.0).sum();
        assert_eq!(
            (usage.busy().0, kinds),
            (kinds, 300 + (0..100u64).map(|index| index * 7 % 31).sum::<u64>())
        );
    }

    #[test]
    fn no_work_takes_no_time_and_occupies_nothing() {
        let mut one = Processor::new(1, CommandCost::default());
        one.run(Instant(0), &program(50));
        assert_eq!(one.run(Instant(10), &ProcessorWork::NONE), Instant(10));
        assert_eq!(one.usage().busy(), Nanos(50));
    }
}
