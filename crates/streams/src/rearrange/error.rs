//! Why a rearranger cannot be made.

use headstack_model::spec::Fault;

/// A key with a value that it cannot have.
pub(crate) fn outside(key: &str, met: impl std::fmt::Display, allowed: impl std::fmt::Display) -> Fault {
    Fault::new(key, format!("{met} is outside {allowed}"))
}
