//! What the thread of a simulation and its owner share: the progress, and why to end the run.

use headstack::RunProgress;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// What the thread and its owner share while a task is carried out.
#[derive(Default)]
pub(crate) struct WorkerState {
    progress: Mutex<Option<RunProgress>>,
    /// Why to end the run now.
    stop: Mutex<Option<String>>,
}

impl WorkerState {
    /// The progress at the last report.
    pub(crate) fn progress(&self) -> Option<RunProgress> {
        *self.progress.lock().expect("no thread panics with it")
    }

    /// Keeps the progress of a task that has ended.
    pub(crate) fn keep_progress(&self, progress: RunProgress) {
        *self.progress.lock().expect("no thread panics with it") = Some(progress);
    }

    /// Ends the run at the next report.
    pub(crate) fn stop(&self, reason: &str) {
        *self.stop.lock().expect("no thread panics with it") = Some(reason.to_string());
    }

    /// Whether the run is to end now.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.lock().expect("no thread panics with it").is_some()
    }

    /// Keeps the progress; breaks where the run is to end now.
    pub(crate) fn report(&self, progress: &RunProgress) -> ControlFlow<String> {
        self.keep_progress(*progress);
        let reason = self.stop.lock().expect("no thread panics with it").clone();
        reason.map_or(ControlFlow::Continue(()), ControlFlow::Break)
    }
}
