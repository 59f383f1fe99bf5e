//! A signal that ended a command.

use signal_hook::consts::SIGXFSZ;
use signal_hook::low_level::signal_name;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal(pub(crate) i32);

impl Signal {
    pub(crate) fn name(self) -> &'static str {
        signal_name(self.0).unwrap_or("a signal")
    }

    /// The exit code that shells use for it: 128 + its number.
    pub(crate) fn exit_code(self) -> u8 {
        128 + self.0 as u8
    }
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail with an error, which the command reports. Without this, a signal would end the
/// process and leave a temporary file.
pub(crate) fn survive_file_limit() {
    // Without the handler the limit ends the process, as before.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}
