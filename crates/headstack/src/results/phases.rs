//! Results of each phase of a load, with its share of the host's processor.

use crate::numbers::ratio;
use headstack_model::{Instant, Nanos};
use headstack_workload::LoadPhase;

/// A phase of a load that ended within the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseResult {
    /// Its name.
    pub name: String,
    /// When it began.
    pub began: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Bytes that its programs read or wrote.
    pub bytes: u64,
    /// Operations of its programs.
    pub operations: u64,
    /// Busy time of the host's processor during the phase: the sum over all lanes and kinds of work. `None` if no work of the host
    /// takes processor time on this rig.
    pub processor_busy: Option<Nanos>,
}

impl PhaseResult {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.ended.since(self.began).as_secs()
    }

    /// Units of 1,024 bytes per second.
    pub fn kib_s(&self) -> f64 {
        ratio(self.bytes as f64 / 1024.0, self.seconds())
    }

    /// Operations per second.
    pub fn operations_per_s(&self) -> f64 {
        ratio(self.operations as f64, self.seconds())
    }

    /// Busy time of the host's processor over the length of the phase. It can exceed 1 if the processor has several lanes. `None` as for
    /// `processor_busy`.
    pub fn processor_share(&self) -> Option<f64> {
        Some(ratio(self.processor_busy?.as_secs(), self.seconds()))
    }
}

/// Records the processor's busy time when each phase began and ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseWatch {
    began: Vec<Option<Nanos>>,
    ended: Vec<Option<Nanos>>,
}

impl PhaseWatch {
    /// Records which phases have begun or ended; `busy` returns the processor's busy time so far.
    pub(crate) fn observe(&mut self, phases: &[LoadPhase], busy: impl FnOnce() -> Option<Nanos>) {
        let began = phases.iter().take_while(|phase| phase.began.is_some()).count();
        let ended = phases.iter().take_while(|phase| phase.ended.is_some()).count();
        if began > self.began.len() || ended > self.ended.len() {
            let busy = busy();
            self.began.resize(began, busy);
            self.ended.resize(ended, busy);
        }
    }

    /// The phases that ended.
    pub(crate) fn results(&self, phases: &[LoadPhase]) -> Vec<PhaseResult> {
        let of = |(phase, (from, to)): (&LoadPhase, (&Option<Nanos>, &Option<Nanos>))| {
            Some(PhaseResult {
                name: phase.name.clone(),
                began: phase.began?,
                ended: phase.ended?,
                bytes: phase.bytes,
                operations: phase.operations,
                processor_busy: to.zip(*from).map(|(to, from)| to.saturating_sub(from)),
            })
        };
        phases.iter().zip(self.began.iter().zip(&self.ended)).filter_map(of).collect()
    }
}
