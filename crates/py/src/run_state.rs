//! The state that a simulation's thread shares with its owner: the progress, and the reason to end the run.

use headstack::RunProgress;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// The state that the thread shares with its owner during a task.
#[derive(Default)]
pub(crate) struct WorkerState {
    progress: Mutex<Option<RunProgress>>,
    /// The reason to end the run; none while it may continue.
    stop: Mutex<Option<String>>,
}

impl WorkerState {
    /// The progress at the last report.
    pub(crate) fn progress(&self) -> Option<RunProgress> {
        *self.progress.lock().expect("no thread panics with it")
    }

    /// Stores the progress.
    pub(crate) fn keep_progress(&self, progress: RunProgress) {
        *self.progress.lock().expect("no thread panics with it") = Some(progress);
    }

    /// Requests that the run end at its next report.
    pub(crate) fn stop(&self, reason: &str) {
        *self.stop.lock().expect("no thread panics with it") = Some(reason.to_string());
    }

    /// Whether the end of the run was requested.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.lock().expect("no thread panics with it").is_some()
    }

    /// Stores the progress. Breaks with the reason if the end of the run was requested.
    pub(crate) fn report(&self, progress: &RunProgress) -> ControlFlow<String> {
        self.keep_progress(*progress);
        let reason = self.stop.lock().expect("no thread panics with it").clone();
        reason.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}
