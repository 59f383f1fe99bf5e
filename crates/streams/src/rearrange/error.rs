//! Why a rearranger cannot be made.

/// A key with a value that it cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {met} is outside {allowed}")]
pub struct RearrangeError {
    /// The key's name.
    pub key: &'static str,
    met: String,
    allowed: String,
}

impl RearrangeError {
    pub(crate) fn new(key: &'static str, met: impl ToString, allowed: impl Into<String>) -> RearrangeError {
        RearrangeError { key, met: met.to_string(), allowed: allowed.into() }
    }

    /// What is wrong, without the key.
    pub fn reason(&self) -> String {
        format!("{} is outside {}", self.met, self.allowed)
    }
}
