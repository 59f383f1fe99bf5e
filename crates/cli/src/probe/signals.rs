//! Signals that ask for the end.

use crate::failure::Failure;
use crate::files;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Whether somebody asked for the end.
pub(super) struct Signals {
    last: Arc<AtomicUsize>,
}

impl Signals {
    /// Begins to watch for signals. Who asks once more wants the end at once.
    pub(super) fn watch() -> Result<Signals, Failure> {
        let (last, is_asked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let watch = |signal: i32| {
            // What is done already at the second signal has to come before what the first one tells.
            flag::register_conditional_default(signal, Arc::clone(&is_asked))?;
            flag::register(signal, Arc::clone(&is_asked))?;
            flag::register_usize(signal, Arc::clone(&last), signal as usize)
        };
        // Who had a signal ignored, as nohup does, wants no end by it.
        let ignored = ignored();
        let heeded = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        for signal in heeded {
            watch(signal).map_err(|error| Failure::Input(format!("signals cannot be watched: {error}")))?;
        }
        Ok(Signals { last })
    }

    /// The signal that asked for it, if one did.
    pub(super) fn asked(&self) -> Option<u8> {
        u8::try_from(self.last.load(Ordering::Relaxed)).ok().filter(|signal| *signal > 0)
    }
}

/// The signals that this program was begun to ignore, a bit each, as the system tells; none where it does not.
fn ignored() -> u64 {
    let status = files::read_text(Path::new("/proc/self/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
