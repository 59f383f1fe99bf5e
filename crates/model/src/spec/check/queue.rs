//! Relations among the keys of `[queue]`.

use super::{Checked, within};
use crate::spec::{QueueSpec, Tagging};

pub(super) fn queue(spec: &QueueSpec, tagging: Tagging) -> Checked {
    if tagging == Tagging::Ncq {
        within("queue.depth", f64::from(spec.depth), 1.0, f64::from(Tagging::NCQ_TAGS), "tags of NCQ")?;
    }
    let urgent = spec.committed_urgent.unwrap_or(spec.committed);
    within("queue.committed_urgent", f64::from(urgent), 1.0, f64::from(spec.committed), "commands")
}
