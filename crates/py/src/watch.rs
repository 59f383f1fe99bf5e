//! Long calls: they run on a separate thread, while Python's thread handles signals and reports.

use crate::error::{CallError, caught, input_error};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long a call may ignore Ctrl-C, and the time between two reports.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// Threads for one call; 0 is one for each core. The library's global pool is never used: after a `fork` the child has that pool's state but not
/// its threads, and would wait for them forever.
pub(crate) fn own_threads(count: usize) -> PyResult<ThreadPool> {
    ThreadPoolBuilder::new().num_threads(count).build().map_err(input_error)
}

/// Runs `work` on a separate thread, and calls `check` at intervals until `work` returns. The caller must not hold the global lock. If `check`
/// raises, this sets `is_stopped`, upon which `work` should end, and returns the exception as the second value.
pub(crate) fn watched<T: Send>(
    is_stopped: &AtomicBool,
    work: impl FnOnce() -> Result<T, CallError> + Send,
    mut check: impl FnMut() -> PyResult<()>,
) -> (Result<T, CallError>, Option<PyErr>) {
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || sender.send(caught(work)));
        let mut raised = None;
        loop {
            let ended = receiver.recv_timeout(SIGNAL_INTERVAL);
            if raised.is_none() {
                raised = check().err();
                is_stopped.fetch_or(raised.is_some(), Ordering::Relaxed);
            }
            if let Ok(ended) = ended {
                break (ended, raised);
            }
        }
    })
}
