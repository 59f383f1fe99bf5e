//! The error of the host's keys.

use thiserror::Error;

/// An invalid key in the `[host]` of a rig.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{key}: {message}")]
pub struct HostError {
    /// The key, as a path (`host.queue.order`).
    pub key: String,
    /// The fault, and what is allowed.
    pub message: String,
}

impl HostError {
    pub(crate) fn new(key: &str, message: impl ToString) -> HostError {
        HostError { key: format!("host.{key}"), message: message.to_string() }
    }
}
