//! A signal that ended a command.

use signal_hook::low_level::signal_name;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signal(pub(crate) i32);

impl Signal {
    pub(crate) fn name(self) -> &'static str {
        signal_name(self.0).unwrap_or("a signal")
    }

    /// The exit code of shells for it: 128 + its number.
    pub(crate) fn exit_code(self) -> u8 {
        128 + self.0 as u8
    }
}
