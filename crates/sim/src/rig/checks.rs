//! Checks that several parts of a rig have in common.

use headstack_model::spec::{Fault, did_you_mean};
use std::collections::BTreeSet;

pub(super) type Checked = Result<(), Fault>;

/// The error for a name without a letter.
pub(super) const NAMELESS: &str = "a name has a letter at least";

/// Checks that the names of things of one kind, given with their keys, are unique; returns the names.
pub(super) fn check_names(
    kind: &str,
    names: impl Iterator<Item = (String, String)>,
) -> Result<BTreeSet<String>, Fault> {
    let mut met = BTreeSet::new();
    for (key, name) in names {
        if name.is_empty() {
            return Err(Fault::new(key, NAMELESS));
        }
        if met.contains(&name) {
            return Err(Fault::new(key, format!("two {kind} are called `{name}`")));
        }
        met.insert(name);
    }
    Ok(met)
}

/// Checks that a name refers to an existing thing; it may be left out if there is no choice.
pub(super) fn link<'a>(
    key: &str,
    kind: &str,
    name: Option<&str>,
    known: impl Iterator<Item = &'a str>,
) -> Checked {
    let known: Vec<&str> = known.collect();
    match name {
        Some(name) if known.contains(&name) => Ok(()),
        Some(name) => {
            let hint = did_you_mean(name, known);
            Err(Fault::new(key, format!("no {kind} is called `{name}`{hint}")))
        }
        None if known.len() > 1 => {
            Err(Fault::new(key, format!("is needed, because the rig has {} of them", known.len())))
        }
        None => Ok(()),
    }
}

/// Checks that none of these keys is set, each given with whether it is; `message` says what they are for.
pub(super) fn unused(key: impl Fn(&str) -> String, set: &[(&str, bool)], message: &str) -> Checked {
    match set.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => Err(Fault::new(key(name), message)),
        None => Ok(()),
    }
}
