//! The error of the host's keys.

use headstack_model::spec::Fault;

/// A fault of a key in the `[host]` of a rig.
pub(crate) fn host_fault(key: &str, message: impl ToString) -> Fault {
    Fault::new(format!("host.{key}"), message.to_string())
}
